"""Judge evidence: decide whether an answer is right, which known mistake it shows and how many points it earns."""
