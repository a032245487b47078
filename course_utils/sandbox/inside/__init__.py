"""What runs beside student code. It stands alone, since nothing else of the course can be read where it runs."""
