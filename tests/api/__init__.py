"""The REST interface, through HTTP."""
