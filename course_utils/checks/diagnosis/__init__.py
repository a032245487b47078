"""What wrong numbers have in common with the right ones, where no known mistake explains them."""
