"""Files in the forms that others read, held to the schemas that check-jsonschema ships."""

from pathlib import Path

from click.testing import CliRunner


def faults(schema: str, *paths: Path) -> str:
    """What is wrong with files under a schema, such as github-workflows; empty text where nothing is."""
    from check_jsonschema import main

    options = ["--builtin-schema", f"vendor.{schema}", "--default-filetype", "yaml"]
    done = CliRunner().invoke(main, [*options, *map(str, paths)])
    return (done.output or repr(done.exception)) if done.exit_code else ""
