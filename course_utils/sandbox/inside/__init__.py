"""The code that runs beside student code. It stands alone, because it can read nothing else of the course there."""
