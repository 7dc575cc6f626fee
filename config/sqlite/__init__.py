"""Django's SQLite backend with one writer lock for all threads of the process."""
