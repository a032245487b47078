"""Record the moving picture of the README, docs/day1.gif, and docs/day1-dark.gif for a dark page. Needs Chromium.

    .venv/bin/python scripts/moving_picture.py

The query of day 1's widget is moved by arrow keys, as a reader moves it, and each step is a frame.
"""

import io
import tempfile
from pathlib import Path

from PIL import Image, ImageColor
from playwright.sync_api import Page, sync_playwright

from course_utils.course import ROOT
from course_utils.doctor import find_chromium
from course_utils.views import QueryPlane
from course_utils.views.static_page import static_page

STEPS = [  # a key, how often it is pressed, and how long the last picture of it stays, in milliseconds
    ("ArrowLeft", 10, 550),
    ("ArrowUp", 8, 440),
    ("ArrowLeft", 20, 110),
    ("ArrowUp", 4, 1650),
]
FIRST, EACH = 880, 110  # milliseconds of the first picture, and of one on the way
GROUNDS = {"light": "#ffffff", "dark": "#0d1117"}  # of pages on GitHub
FACE = (ROOT / "course_utils/site/assets/SourceSans3.woff2").as_uri()
STYLE = """
@font-face {{ font-family: "Course Sans"; src: url("{face}"); font-weight: 200 900; }}
h1 {{ display: none; }}
body {{ --jp-ui-font-family: "Course Sans"; --jp-layout-color1: {ground}; background: {ground}; }}
body {{ margin: 0; padding: 0 4px; }}
.course-plane-handle .course-plane-halo {{ stroke: none !important; fill-opacity: 0.1; }}
"""


def frames(page: Page) -> list[tuple[Image.Image, int]]:
    """Return the pictures of the widget as the query moves, each with its milliseconds."""
    text_box = page.locator(".course-plane-message").bounding_box()
    root = page.locator(".course-plane").bounding_box()
    clip = {
        "x": root["x"],
        "y": root["y"],
        "width": root["width"],
        "height": text_box["y"] + text_box["height"] - root["y"],
    }

    def shot() -> Image.Image:
        return Image.open(io.BytesIO(page.screenshot(clip=clip)))

    page.locator(".course-plane-handle").focus()
    pictures = [(shot(), FIRST)]
    for key, times, last in STEPS:
        for step in range(times):
            page.keyboard.press(key)
            pictures.append((shot(), last if step == times - 1 else EACH))
    return pictures


def save(pictures: list[tuple[Image.Image, int]], ground: str, path: Path) -> None:
    """Write an animation in 128 colours, the same in each picture, one of which is that of the ground."""
    palette = pictures[-1][0].convert("RGB").quantize(128, dither=Image.Dither.NONE)
    images = [each.convert("RGB").quantize(palette=palette, dither=Image.Dither.NONE) for each, _ in pictures]
    for image in images:
        colours = image.getpalette() or []
        place = 3 * image.getpixel((0, 0))
        image.putpalette([*colours[:place], *ImageColor.getrgb(ground), *colours[place + 3 :]])
    times = [duration for _, duration in pictures]
    images[0].save(path, save_all=True, append_images=images[1:], duration=times, loop=0, optimize=True)


def main() -> None:
    """Record both pictures."""
    keys, values = [[1, 0], [0, 1], [1, 1]], [[1, 0], [0, 1], [0, 0]]
    widget = QueryPlane(query=[1, 1], keys=keys, values=values, names=["the", "parcel", "arrived"])
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        file = Path(folder) / "page.html"
        file.write_text(static_page(widget, "Day 1"), encoding="utf-8")
        browser = playwright.chromium.launch(executable_path=find_chromium(), args=["--no-sandbox", "--disable-gpu"])
        for scheme, ground in GROUNDS.items():
            page = browser.new_page(viewport={"width": 728, "height": 900}, color_scheme=scheme)
            page.goto(file.as_uri())
            page.locator(".course-plane").wait_for()
            page.evaluate("(light) => { document.body.dataset.jpThemeLight = light; }", str(scheme == "light").lower())
            page.add_style_tag(content=STYLE.format(ground=ground, face=FACE))
            page.evaluate("document.fonts.load('1em \"Course Sans\"')")
            save(frames(page), ground, ROOT / "docs" / ("day1.gif" if scheme == "light" else "day1-dark.gif"))


if __name__ == "__main__":
    main()
