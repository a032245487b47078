"""From the sources to the notebooks, and to the editions that a class gets. Importing this loads nothing else."""

import sys

# jsonschema would compile a grammar of web addresses, 0.7 s in each process that reads notebooks; none is checked here.
sys.modules.setdefault("rfc3987_syntax", None)  # type: ignore[arg-type]  # None is how an import is ruled out
