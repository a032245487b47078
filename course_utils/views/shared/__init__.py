"""What several widgets use: the base class, numbers as text, what is given made into arrays, and parts of pages."""
