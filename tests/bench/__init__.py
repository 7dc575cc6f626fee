"""Measurements for `make bench`. Never part of the tests: a timed test proves nothing."""
