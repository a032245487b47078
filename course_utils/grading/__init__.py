"""Build the notebooks from their sources, and grade what students send. Importing this loads nothing else."""

import sys

# jsonschema would compile a grammar of web addresses, 0.7 s in each process that reads notebooks; none is checked here.
sys.modules.setdefault("rfc3987_syntax", None)
