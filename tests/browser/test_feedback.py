"""The page of feedback in a browser: nothing fetched, no script, axe-clean in both themes, readable on a telephone."""

import pytest

from course_utils.answer_key.key import COURSE
from course_utils.grading.reports.feedback import write_feedback
from course_utils.grading.results import Graded, Result

STATUSES = ("passed", "failed", "error", "missing", "forbidden", "timeout", "killed")
EVIL = "</script><script>document.title = 'evil'</script><img src='http://evil.example/x' onerror='document.title=1'>"


def submissions():
    results = tuple(
        Result(q.grade_id, STATUSES[n % 7], 0.0, q.points, f"Look here: {EVIL}", "no scaling" if n % 7 == 1 else None)
        for n, q in enumerate(COURSE.exercises(1))
    )
    long = f'def f(x):\n    """{EVIL}"""\n    return 1.5 + abs(x)  # ' + "long " * 60
    answers = {result.id: long for result in results}
    yield Graded(f"Ada {EVIL}", "day1_ada.ipynb", 1, "failed", 0.0, 25.0, 0.1, results, answers=answers)
    yield Graded("Bob", "day1_bob.ipynb", 1, "unreadable", 0.0, 25.0, 0.1, message="day1_bob.ipynb: empty file")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_pages_of_feedback_are_clean(chromium, tmp_path, scheme):
    from axe_playwright_python.sync_playwright import Axe

    context = chromium.new_context(color_scheme=scheme, viewport={"width": 400, "height": 800}, offline=True)
    page = context.new_page()
    recorded = []
    page.on("console", lambda message: recorded.append(message.text))
    page.on("request", lambda request: None if request.url.startswith("file:") else recorded.append(request.url))
    try:
        for one in submissions():
            page.goto(write_feedback(one, COURSE, tmp_path).as_uri())
            for summary in page.locator("summary").all()[:3]:
                summary.click()
            assert page.locator(".hint:visible").count() == (3 if one.exercises else 0)
            assert page.evaluate("document.documentElement.scrollWidth") <= 400
            assert page.title().startswith("Day 1")
            background = page.evaluate("getComputedStyle(document.body).backgroundColor")
            assert background == ("rgb(255, 255, 255)" if scheme == "light" else "rgb(22, 22, 22)")
            assert recorded == []
            response = Axe().run(page).response
            assert response["passes"]
            assert [f"{v['id']}: {node['html'][:200]}" for v in response["violations"] for node in v["nodes"]] == []
    finally:
        context.close()
