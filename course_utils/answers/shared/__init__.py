"""What the answers of several days share."""
