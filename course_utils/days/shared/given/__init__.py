"""What the checks of several days share. No answers."""
