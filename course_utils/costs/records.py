"""Measured results, kept as JSON: {"schema", "benchmark", "environment", "settings", "rows", "findings"}.

Results that ship with the course lie in course_utils/data/benchmarks/, one file for each benchmark and device. A run on
another machine writes into the folder `local` beside them, which git ignores, so it neither clashes nor gets lost.
"""

import json
import re
from pathlib import Path

SCHEMA = 1
RECORDED = Path(__file__).parents[1] / "data" / "benchmarks"
LOCAL = RECORDED / "local"


def write(benchmark, environment, settings, rows, findings, folder=LOCAL):
    """Write one result and return its path, <benchmark>-<device>.json in `folder`; an older one there is replaced.

    environment is measure.environment()'s, settings say what was run (shapes, dtype, repeats), rows are dicts of plain
    numbers and words, findings are sentences computed from them. Floats are kept to six digits. Raises ValueError, and
    writes nothing, for a number that JSON does not have (NaN, infinity) or rows that are not dicts.
    """
    rows = [dict(row) for row in rows]
    result = {"schema": SCHEMA, "benchmark": benchmark, "environment": dict(environment), "settings": dict(settings)}
    text = _as_json(result | {"rows": rows, "findings": list(findings)})
    path = Path(folder) / f"{_slug(benchmark)}-{_slug(environment['device'])}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text + "\n", encoding="utf-8")
    return path


def read(path):
    """One result, as the dict that was written. Raises ValueError when the file is not such a result."""
    try:
        result = json.loads(Path(path).read_text(encoding="utf-8"))
    except json.JSONDecodeError as error:
        raise ValueError(f"{Path(path).name} is not JSON: {error}") from None
    missing = {"schema", "benchmark", "environment", "settings", "rows", "findings"} - set(result)
    if missing or result["schema"] != SCHEMA:
        raise ValueError(f"{Path(path).name} is not a result of schema {SCHEMA}: run the benchmark again")
    return result


def recorded(benchmark, folder=RECORDED):
    """The results of that benchmark which ship with the course, newest first. An empty list when there are none."""
    results = [read(path) for path in sorted(Path(folder).glob(f"{_slug(benchmark)}-*.json"))]
    found = [result for result in results if result["benchmark"] == benchmark]
    return sorted(found, key=lambda result: result["environment"]["date"], reverse=True)


def table(rows, columns=None):
    """The rows as plain text, one line each, columns aligned: numbers to the right, to three digits. None is a dash.

    columns is {key: title}; all keys of the first row when left out.
    """
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


def _cell(value):
    if value is None:
        return "–"
    if isinstance(value, float):
        return f"{value:.3g}" if abs(value) < 1000 else f"{value:,.0f}"
    return f"{value:,}" if isinstance(value, int) and abs(value) >= 10000 else str(value)


def _as_json(result):
    """JSON with each row on a line of its own, so that people and diffs can read it."""
    lines = []
    for key, value in result.items():
        items = value if isinstance(value, list) else [value]
        inner = ",\n  ".join(json.dumps(_six_digits(one), ensure_ascii=False, allow_nan=False) for one in items)
        lines.append(f' "{key}": ' + (f"[\n  {inner}\n ]" if isinstance(value, list) else inner))
    return "{\n" + ",\n".join(lines) + "\n}"


def _six_digits(value):
    if isinstance(value, dict):
        return {key: _six_digits(one) for key, one in value.items()}
    return float(f"{value:.6g}") if isinstance(value, float) else value


def _slug(words):
    return re.sub(r"[^a-z0-9]+", "-", words.lower()).strip("-")
