"""Files in the forms that others read, held to the schemas that check-jsonschema ships."""

import subprocess
import sys
from pathlib import Path


def faults(schema: str, *paths: Path) -> str:
    """What is wrong with files under a schema, such as github-workflows; empty text where nothing is."""
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", f"vendor.{schema}"]
    done = subprocess.run([*command, "--default-filetype", "yaml", *paths], capture_output=True, text=True)
    return done.stdout + done.stderr if done.returncode else ""
