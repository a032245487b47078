"""What several days share."""
