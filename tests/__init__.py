"""Tests of Countersign, through the outside: HTTP, commands, services, sockets, processes."""
