"""Code that several widgets use: the base class, numbers as text, conversion of arguments, and parts of pages."""
