"""How soon does a page of the site show, and how much does it load? Beside nbconvert's page of the same notebook.

    make site && .venv/bin/python benchmarks/site.py

Each page is opened from disk in Chromium, in turns, ROUNDS times. "first" is the first paint of content, "ready" the
load event, both from the start of the navigation, in the median; "alive" counts the widgets that work. nbconvert's page
shows a picture in place of each, and asks a server elsewhere for its formulas: here that fails at once.
"""

import statistics
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from nbconvert import HTMLExporter
from site_pages import Read

from course_utils.course import DAYS, LESSONS, ROOT
from tests.browser.lab import launched

SITE = ROOT / "build" / "site"
ROUNDS = 7
PAINT = """() => [performance.getEntriesByName("first-contentful-paint")[0]?.startTime ?? NaN,
  performance.getEntriesByType("navigation")[0].loadEventEnd]"""


def times(browser, path):
    """Milliseconds to the first paint and to the load event of a page opened afresh."""
    context = browser.new_context(offline=True)
    page = context.new_page()
    page.goto(path.as_uri())
    page.wait_for_function("performance.getEntriesByName('first-contentful-paint').length > 0")
    paint_times = page.evaluate(PAINT)
    context.close()
    return paint_times


def row(name, times_found, weight, alive):
    first, ready = (statistics.median(column) for column in zip(*times_found, strict=True))
    print(f"  {name:<10} first {first:5.0f} ms, ready {ready:5.0f} ms, {weight / 1e6:4.1f} MB, {alive:2} alive")
    return first


def main():
    if not SITE.exists():
        sys.exit("no site in build/site: run make site first")
    with tempfile.TemporaryDirectory() as folder, launched() as browser:
        for day in (day for day in DAYS if day.notebook(LESSONS)):
            lesson = day.notebook(LESSONS)
            ours = SITE / LESSONS / f"{lesson.stem}.html"
            theirs = Path(folder) / ours.name
            theirs.write_text(HTMLExporter().from_filename(str(lesson))[0], encoding="utf-8")
            measurements = [(times(browser, ours), times(browser, theirs)) for _ in range(ROUNDS)]
            mine, others = zip(*measurements, strict=True)
            assets = Read(ours)
            weight = ours.stat().st_size + sum(path.stat().st_size for path in assets.files() if path != ours)
            print(f"day {day.number}")
            first = row("the site", mine, weight, len(assets.widgets))
            other = row("nbconvert", others, theirs.stat().st_size, 0)
            print(f"  ratio of the first paints: {first / other:.2f}")


if __name__ == "__main__":
    main()
