"""The check on a web page in Chromium: the first verdict, cold and warm, a verdict, and the smallest input, in seconds.

The page is served on this machine, so no network is in the figures. Each is the median and the worst of seven runs; the
same check in this process, run in turns with it, gives the ratio. A cold run begins in a browser that has loaded
nothing, and counts from the click on the answer; a warm one begins on a page that was visited before. Needs Pyodide
from npm, as `make test-all` brings it.
usage: python benchmarks/answers_in_page.py
"""

import gzip
import statistics
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from course_utils.checks import in_page
from course_utils.course import EXERCISES, ROOT, day_numbered
from course_utils.notebooks import read_notebook
from course_utils.site.build import build_site
from course_utils.site.exercise_pages import given_cells
from course_utils.site.serve import serving
from tests.browser.lab import launched

RUNS = 7
WRONG = """import math

def softmax_row(row):
    exps = [math.exp(x) for x in row]
    return [e / sum(exps) for e in exps]
"""
VERDICT = "document.querySelector('.course-result').innerText.includes('overflows above 709')"
EXAMPLE = "document.querySelector('.course-result').innerText.includes('[1000.0]')"


def main():
    with tempfile.TemporaryDirectory() as folder, launched() as browser:
        out = build_site(ROOT, Path(folder) / "site", python=True).out
        print(f"Python beside the pages: {over_the_wire(out):.1f} MB as a server sends it")
        with serving(out) as address:
            rows = [run(browser, f"{address}/index.html") | in_this_process() for _ in range(RUNS)]
    for name in ("cold", "warm", "verdict", "smallest input"):
        seconds = [row[name] for row in rows]
        print(f"{name:15} {statistics.median(seconds):6.2f} s, worst {max(seconds):6.2f} s")
    for name in ("verdict", "smallest input"):
        ratio = statistics.median(row[name] / row[f"{name} here"] for row in rows)
        print(f"{name:15} takes {ratio:.1f} times as long as in this process")


def over_the_wire(out):
    """MB of what the first check loads, compressed as hosts of static files do."""
    (python,) = (out / "_static" / "python").iterdir()
    files = [
        *python.iterdir(),
        *(out / "_static" / name for name in ("answers.js", "codemirror.js", "exercises/day1.js")),
    ]
    return sum(len(gzip.compress(path.read_bytes())) for path in files) / 1e6


def run(browser, address):
    """Seconds of one visit that is cold, a second one, and of a check on a page where Python is there."""
    context = browser.new_context()
    page = context.new_page()
    page.goto(address)
    page.locator(".course-check").wait_for()
    times = {"cold": first_verdict(page)}
    page.wait_for_function(EXAMPLE)
    page.wait_for_function("navigator.serviceWorker.controller !== null")
    page.reload()
    page.locator(".course-check").wait_for()
    times["warm"] = first_verdict(page)
    page.wait_for_function(EXAMPLE)
    page.wait_for_timeout(200)
    page.evaluate("document.querySelector('.course-result').textContent = ''")
    began = time.perf_counter()
    page.locator(".course-check").click()
    page.wait_for_function(VERDICT)
    times["verdict"] = time.perf_counter() - began
    page.wait_for_function(EXAMPLE)
    times["smallest input"] = time.perf_counter() - began
    context.close()
    return times


def first_verdict(page):
    """Seconds from the click on an answer to the verdict on what is typed then."""
    began = time.perf_counter()
    page.locator(".course-code").click()
    editor = page.locator(".cm-content")
    editor.press("Control+a")
    page.keyboard.insert_text(WRONG)
    page.locator(".course-check").click()
    page.wait_for_function(VERDICT, timeout=90_000)
    return time.perf_counter() - began


def in_this_process():
    """Seconds of the same check in this process, whose parts are imported already."""
    exercises, _ = read_notebook(day_numbered(1).notebook(EXERCISES))
    given = given_cells(exercises)
    in_page.check(1, "softmax_row", given, {}, WRONG, lambda record: None)
    seconds = []
    began = time.perf_counter()
    in_page.check(1, "softmax_row", given, {}, WRONG, lambda record: seconds.append(time.perf_counter() - began))
    return {"verdict here": seconds[0], "smallest input here": seconds[1]}


if __name__ == "__main__":
    main()
