"""What became of a hostile submission under a grader, in words, and the page that shows all of them."""

import statistics
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from peers.sandbox import Run

AS_DESERVED = "as deserved"
NOT_APPLICABLE = "does not apply"


@dataclass(frozen=True)
class Row:
    """An entry of the corpus, and what each grader made of it: by the grader's name, a list of what went wrong."""

    kind: str
    name: str
    tries: str
    deserved: float
    found: Mapping[str, list[str]]


def judge(run: Run, score: float | None, deserved: float, neighbour: float | None, full: float, marker: str) -> list:
    """All that is not as it should be; an empty list is as deserved.

    score: of the submission, None without a grade. neighbour: the grade of the blameless one beside it, who deserves
    `full`. A submission that deserves nothing may be refused.
    """
    found = []
    if run.hung:
        found.append(f"hung, stopped after {run.seconds:.0f} s")
    elif run.lost or (run.status or 0) < 0:
        found.append("grader killed")
    elif run.status and score is None and deserved:
        found.append("no grade")
    if score is not None and abs(score - deserved) > 1e-6:
        found.append(f"earned {score - deserved:g} too many" if score > deserved else f"lost {deserved - score:g}")
    elif score is None and deserved:
        found.append(f"lost {deserved:g}")
    if neighbour != full and not run.hung:
        found.append("batch aborted" if neighbour is None else "another's grade changed")
    if not run.hung and run.processes:
        found.append("left a process")
    if any(marker in path for path in run.files):
        found.append("left a file")
    return found


def totals(rows: Iterable[Row]) -> dict[str, Counter]:
    """How often each thing went wrong, by grader; points and seconds left out."""
    counted: dict[str, Counter] = {}
    for row in rows:
        for grader, found in row.found.items():
            counted.setdefault(grader, Counter()).update({_plain(each) for each in found} or {AS_DESERVED})
    return counted


def page(rows: list[Row], intro: str, speed: dict | None = None) -> str:
    """The page in Markdown: the introduction, the totals, what `speed.json` holds, a table for each kind of attack."""
    graders = list(rows[0].found)
    counted = totals(rows)
    wrong = sorted({each for counter in counted.values() for each in counter} - {AS_DESERVED, NOT_APPLICABLE})
    lines = [intro.rstrip(), "", "## Totals", "", *_head(["", *graders])]
    for each in (AS_DESERVED, *wrong, NOT_APPLICABLE):
        if any(counter[each] for counter in counted.values()):
            lines.append(_line([each, *(str(counted[grader][each]) for grader in graders)]))
    lines += _time(speed) if speed else []
    for kind in dict.fromkeys(row.kind for row in rows):
        lines += ["", f"## {kind[:1].upper()}{kind[1:]}", "", *_head(["submission", "deserves", *graders])]
        for row in rows:
            if row.kind == kind:
                cells = [", ".join(row.found[grader]) or AS_DESERVED for grader in graders]
                lines.append(_line([f"{row.name}: {row.tries}", f"{row.deserved:g}", *cells]))
    return "\n".join(lines) + "\n"


def _plain(found: str) -> str:
    """A thing that went wrong without its figures."""
    for start, short in {"hung": "hung", "earned": "earned too many points", "lost": "lost points"}.items():
        if found.startswith(start):
            return short
    return found


def _time(speed: dict) -> list[str]:
    about = speed["environment"]
    lines = [
        "",
        "## Time",
        "",
        f"`python benchmarks/peers/speed.py` on {about['date'][:10]},"
        f" {speed['submissions']} harmless submissions of day 1.",
        "Each grader was called as its documentation says, start-up included, and ours confined with "
        f"`--jobs {speed['jobs']}`.",
        f"{about['device']}, {about['cores']} cores, Python {about['python']}, torch {about['torch']}.",
        "",
        *_head(["", "seconds a submission", "times ours"]),
    ]
    for name, taken in speed["seconds_a_submission"].items():
        ratio = f"{speed['ratio_to_ours'][name]:.1f}"
        lines.append(_line([speed["graders"][name], f"{statistics.median(taken):.2f}", ratio]))
    return lines


def _head(titles: list[str]) -> list[str]:
    return [_line(titles), _line(["---"] * len(titles))]


def _line(cells: list[str]) -> str:
    return "| " + " | ".join(" ".join(cell.replace("|", "\\|").replace("<", "&lt;").split()) for cell in cells) + " |"
