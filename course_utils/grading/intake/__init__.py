"""What students send: found on the disk or in zips, read with care, and only the answers taken."""
