"""usage: python -m inside FOLDER LEVEL [MODULE...]: the fork server, see `forkserver`."""

import sys

from .forkserver import main

main(sys.argv[1], sys.argv[2], sys.argv[3:])
