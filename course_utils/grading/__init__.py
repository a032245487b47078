"""Build the notebooks from their sources, and grade what students send. Importing this loads nothing else."""
