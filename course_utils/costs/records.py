"""Measured results, kept as JSON: {"schema", "benchmark", "environment", "settings", "rows", "findings"}.

Results that ship with the course lie in course_utils/data/benchmarks/, one file for each benchmark and device. A run on
another machine writes into the folder `local` beside them, which git ignores, so it neither clashes nor gets lost.
"""

import argparse
import json
import math
import re
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from course_utils.errors import CourseError

SCHEMA = 1
COLUMNS = 96  # of an output in JupyterLab that a window of 1280 pixels shows without breaking it
RECORDED = Path(__file__).parents[1] / "data" / "benchmarks"
LOCAL = RECORDED / "local"


def write(
    benchmark: str,
    environment: Mapping[str, Any],
    settings: Mapping[str, Any],
    rows: Iterable[Mapping[str, Any]],
    findings: Iterable[str],
    folder: Path | str = LOCAL,
) -> Path:
    """Write one result and return its path, <benchmark>-<device>.json in `folder`; an older one there is replaced.

    A quick run, settings["quick"], gets -quick in its name, and so replaces no full one. environment is
    measure.environment()'s, settings say what was run (shapes, dtype, repeats), rows are dicts of numbers and words,
    findings are sentences computed from them. Floats are kept to six digits; NumPy's numbers and tensors of one number
    become Python's. Writes nothing, and names the field, where it raises ValueError for a number that JSON does not
    have (NaN, infinity) or a row that is no dict, TypeError for what is neither number nor word. Nor does it write a
    full run whose times contradict each other: CourseError, see `check_times`.
    """
    rows = list(rows)
    for number, row in enumerate(rows):
        if not isinstance(row, dict):
            raise ValueError(f"rows[{number}] is a {type(row).__name__}: each row is a dict, {{column: value}}")
    if not settings.get("quick"):
        check_times(benchmark, rows)
    result = {"schema": SCHEMA, "benchmark": benchmark, "environment": dict(environment), "settings": dict(settings)}
    text = _as_json(result | {"rows": rows, "findings": list(findings)})
    quick = "-quick" if settings.get("quick") else ""
    path = Path(folder) / f"{_slug(benchmark)}-{_slug(environment['device'])}{quick}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text + "\n", encoding="utf-8")
    return path


def read(path: Path | str) -> dict[str, Any]:
    """One result, as the dict that was written.

    Raises ValueError when the file is not such a result, CourseError when it is a full run whose times contradict each
    other: see `check_times`.
    """
    try:
        result = json.loads(Path(path).read_text(encoding="utf-8"))
    except json.JSONDecodeError as error:
        raise ValueError(f"{Path(path).name} is not JSON: {error}") from None
    keys = {"schema", "benchmark", "environment", "settings", "rows", "findings"}
    if not isinstance(result, dict) or keys - set(result) or result["schema"] != SCHEMA:
        raise ValueError(f"{Path(path).name} is not a result of schema {SCHEMA}: run the benchmark again")
    if not result["settings"].get("quick"):
        check_times(Path(path).name, result["rows"])
    return result


def check_times(source: str, rows: Iterable[Mapping[str, Any]]) -> None:
    """Raise CourseError where naive attention is faster with the causal mask than without, beyond the noise.

    With the mask it does all that it does without, and builds the mask and fills it in besides. So such times depend on
    something else, such as where a fresh process gets its memory from. Rows are compared that differ in `causal` alone.
    Beyond the noise: the upper quartile with the mask lies below the lower one without. source: what to call them.
    """
    times = [row for row in rows if row.get("implementation") == "naive" and "seconds_low" in row]
    full = {tuple(map(row.get, ("direction", "d", "T"))): row for row in times if not row.get("causal")}
    for row in times:
        other = full.get(tuple(map(row.get, ("direction", "d", "T"))))
        if row.get("causal") and other and row["seconds_high"] < other["seconds_low"]:
            raise CourseError(
                f"{source}: at T = {row['T']:,} naive attention takes {1e3 * row['seconds']:.3g} ms with the causal "
                f"mask and {1e3 * other['seconds']:.3g} ms without, though the mask is more work; measure again on a "
                "quiet machine"
            )


def describe_findings(result: Mapping[str, Any]) -> str:
    """The findings of a result as text, one below the other, broken between words so that a notebook need not break it.

    JupyterLab breaks an output's lines at any letter. An equation such as T = 512 stays together.
    """
    whole = [finding.replace(" = ", "\xa0=\xa0") for finding in result["findings"]]
    return "\n".join(textwrap.fill(finding, COLUMNS, subsequent_indent="  ") for finding in whole).replace("\xa0", " ")


def recorded(benchmark: str, folder: Path | str = RECORDED) -> list[dict[str, Any]]:
    """Return the results of that benchmark which ship with the course, newest first. An empty list when there are none.

    With folder=LOCAL those of this machine. Quick runs measure nothing and are left out.
    """
    results = [read(path) for path in sorted(Path(folder).glob(f"{_slug(benchmark)}-*.json"))]
    matches = [result for result in results if result["benchmark"] == benchmark and not result["settings"].get("quick")]
    return sorted(matches, key=lambda result: result["environment"]["date"], reverse=True)


def fact(result: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Return the row of a result whose "fact" is this name. Raises KeyError, with all names, if it has none."""
    rows = {row["fact"]: row for row in result["rows"]}
    if name not in rows:
        raise KeyError(f"{name!r} is not in the record, which has {', '.join(rows)}")
    return rows[name]


def table(rows: Sequence[Mapping[str, Any]], columns: Mapping[str, str] | None = None) -> str:
    """The rows as plain text, one line each, columns aligned: numbers to the right, to three digits. None is a dash.

    columns is {key: title}; all keys of the first row when left out. Raises ValueError when there are no rows.
    """
    if not rows:
        raise ValueError("rows is empty: a table needs at least one row")
    columns = {key: key for key in rows[0]} if columns is None else columns
    lines = [list(columns.values())] + [[_cell(row.get(key)) for key in columns] for row in rows]
    widths = [max(len(line[i]) for line in lines) for i in range(len(columns))]
    numeric = [not any(isinstance(row.get(key), str) for row in rows) for key in columns]
    return "\n".join(
        "  ".join(
            cell.rjust(width) if right else cell.ljust(width)
            for cell, width, right in zip(line, widths, numeric, strict=True)
        ).rstrip()
        for line in lines
    )


def command_line(main: Callable[[bool, Path], object], description: str, recorded: Path = RECORDED) -> None:
    """Run a benchmark as the command line asks: main(quick, folder), with --quick, and --out DIR or --record.

    The first line of `description`, a module's __doc__, is what --help says. recorded: the folder of --record. Ends
    with status 2 and one line where the result is refused.
    """
    parser = argparse.ArgumentParser(description=description.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="tiny sizes, to see that it runs")
    where = parser.add_mutually_exclusive_group()
    where.add_argument("--out", type=Path, default=LOCAL, metavar="DIR", help="folder for the JSON")
    where.add_argument("--record", action="store_true", help="write where the results lie that ship with the course")
    chosen = parser.parse_args()
    if chosen.quick and chosen.record:
        parser.error("--quick measures nothing worth recording")
    try:
        main(chosen.quick, recorded if chosen.record else chosen.out)
    except CourseError as refused:
        parser.exit(refused.exit_code, f"{refused}\n")


def _cell(value: Any) -> str:
    if value is None:
        return "–"
    if isinstance(value, float):
        return f"{value:.3g}" if abs(value) < 1000 else f"{value:,.0f}"
    return f"{value:,}" if isinstance(value, int) and abs(value) >= 10000 else str(value)


def _as_json(result: Mapping[str, Any]) -> str:
    """JSON with each row on a line of its own, so that people and diffs can read it."""
    lines = []
    for key, value in result.items():
        plain = _as_json_value(value, key)
        items = plain if isinstance(plain, list) else [plain]
        inner = ",\n  ".join(json.dumps(one, ensure_ascii=False, allow_nan=False) for one in items)
        lines.append(f' "{key}": ' + (f"[\n  {inner}\n ]" if isinstance(plain, list) else inner))
    return "{\n" + ",\n".join(lines) + "\n}"


def _as_json_value(value: Any, field: str) -> Any:
    """What JSON can hold of a value: its dicts and lists, words, whole numbers, floats to six digits."""
    if isinstance(value, dict):
        return {key: _as_json_value(one, f"{field}[{key!r}]") for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [_as_json_value(one, f"{field}[{number}]") for number, one in enumerate(value)]
    shape = getattr(value, "shape", None)
    if isinstance(shape, tuple) and math.prod(shape) == 1:  # a number of NumPy or torch
        value = value.item()
    if isinstance(value, float):
        if not math.isfinite(value):
            raise ValueError(f"{field} is {value}, which JSON does not have: leave it out, or write None")
        return float(f"{value:.6g}")
    if value is None or isinstance(value, (str, int)):
        return value
    raise TypeError(f"{field} is a {type(value).__name__}: give one number, words, None, or lists and dicts of these")


def _slug(words: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", words.lower()).strip("-") or "unnamed"
