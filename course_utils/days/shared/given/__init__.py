"""Code that the checks of several days share; it holds no answers."""
