"""What decides over evidence: what is right, which mistake it shows, and how many points it earns."""
