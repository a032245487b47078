"""Code that several days share."""
