"""Describe how wrong numbers relate to the right ones, where no known mistake explains them."""
