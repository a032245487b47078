"""What became of a hostile submission under a grader, in words, and the page that counts it for all of them."""

import statistics
from collections import Counter
from collections.abc import Iterable, Mapping

from peers.sandbox import Run

AS_DESERVED = "as deserved"
NOT_APPLICABLE = "does not apply"


Outcome = Mapping[str, list[str]]  # what each grader made of a submission: by its name, a list of what went wrong


def judge(run: Run, score: float | None, deserved: float, neighbour: float | None, full: float, marker: str) -> list:
    """Return all that is not as it should be; an empty list is as deserved.

    score: of the submission, None without a grade. neighbour: the grade of the blameless one beside it, who deserves
    `full`. A submission that deserves nothing may be refused.
    """
    faults = []
    if run.hung:
        faults.append(f"hung, stopped after {run.seconds:.0f} s")
    elif run.lost or (run.status or 0) < 0:
        faults.append("grader killed")
    elif run.status and score is None and deserved:
        faults.append("no grade")
    if score is not None and abs(score - deserved) > 1e-6:
        faults.append(f"earned {score - deserved:g} too many" if score > deserved else f"lost {deserved - score:g}")
    elif score is None and deserved:
        faults.append(f"lost {deserved:g}")
    if neighbour != full and not run.hung:
        faults.append("batch aborted" if neighbour is None else "another's grade changed")
    if not run.hung and run.processes:
        faults.append("left a process")
    if any(marker in path for path in run.files):
        faults.append("left a file")
    return faults


def totals(outcomes: Iterable[Outcome]) -> dict[str, Counter]:
    """Return how often each thing went wrong, by grader; points and seconds left out."""
    counted: dict[str, Counter] = {}
    for outcome in outcomes:
        for grader, wrong in outcome.items():
            counted.setdefault(grader, Counter()).update({_plain(each) for each in wrong} or {AS_DESERVED})
    return counted


def page(outcomes: list[Outcome], intro: str, meaning: str, again: str, speed: dict | None = None) -> str:
    """The page in Markdown: the introduction, the totals and what they mean, what `speed.json` holds, how to go on."""
    graders = list(outcomes[0])
    counted = totals(outcomes)
    wrong = sorted({each for counter in counted.values() for each in counter} - {AS_DESERVED, NOT_APPLICABLE})
    lines = [intro.rstrip(), "", "## Totals", "", *_head(["", *graders])]
    for each in (AS_DESERVED, *wrong, NOT_APPLICABLE):
        if any(counter[each] for counter in counted.values()):
            lines.append(_line([each, *(str(counted[grader][each]) for grader in graders)]))
    lines.append("")
    for grader in graders:
        applies = len(outcomes) - counted[grader][NOT_APPLICABLE]
        lines.append(f"- {grader} treated {counted[grader][AS_DESERVED]} of {applies} submissions as they deserve.")
    lines += ["", meaning.rstrip(), *(_time(speed) if speed else []), "", again.rstrip()]
    return "\n".join(lines) + "\n"


def _plain(text: str) -> str:
    """Return a thing that went wrong without its figures."""
    for start, short in {"hung": "hung", "earned": "earned too many points", "lost": "lost points"}.items():
        if text.startswith(start):
            return short
    return text


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
