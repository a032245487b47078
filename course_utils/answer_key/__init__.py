"""What the official notebooks of solutions hold: the exercises, their answers, and the seeds of the hidden inputs.

Importing this loads nothing else.
"""

import sys

# jsonschema would compile a grammar of web addresses, 0.7 s per process that reads notebooks, and none is checked.
sys.modules.setdefault("rfc3987_syntax", None)  # type: ignore[arg-type]  # None makes the import fail
