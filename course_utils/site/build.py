"""Build the site: write a folder of Markdown and notebooks, from which Sphinx makes the pages. Nothing is executed."""

from __future__ import annotations

import json
import pprint
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from course_utils.authoring.widget_states import read_states
from course_utils.cards import all_cards, make_cards
from course_utils.course import (
    DAYS,
    EXERCISES,
    LESSONS,
    ROOT,
    day_of,
    folder_advice,
    is_published,
    pages_to_look_up,
    repository,
    version,
)
from course_utils.errors import CourseError
from course_utils.files import Marker, make_zip, write_all
from course_utils.notebooks import dump, read_notebook
from course_utils.site import exercise_pages, flash_cards
from course_utils.site.glossary import (
    SOURCE,
    Entry,
    Place,
    add_meanings,
    entries,
    glossary_page,
    lessons_of,
    link_terms,
)
from course_utils.site.page_wording import page_texts
from course_utils.site.pages import Links, Page, link_text, notebook_page
from course_utils.site.python_files import python_files
from course_utils.site.start_pages import contents, day_pictures, fill_marks
from course_utils.site.widget_gallery import plays_page, small_pictures
from course_utils.site.widgets import classic_script, scripts

ASSETS = Path(__file__).parent / "assets"
MARKER = Marker(".course-site.json", "site build")
SERVED = (".css", ".svg", ".woff2")
SERVICE_WORKER = Path(__file__).parent / "answers" / "service_worker.js"
TITLE = "Attention, from pencil to kernel"
WRITTEN = "sources/site"  # pages that are no notebooks: index.md and the files beside it
DOCUMENTS = ("docs/install.md", "docs/using.md", "docs/teaching.md", "docs/github.md", "docs/peers.md", "CHANGELOG.md")
PLAYS = "plays"
CARDS = "cards"
LOST = "404.html"  # hosts of static files show it in place of a page that is not there
TERM = "glossary:"  # the scheme of links to the glossary
LEFT_OVER = (
    ".buildinfo",
    "objects.inv",
    "_static/**/*.map",
    "_static/*.html",
    "_static/scripts/fontawesome*",
    "searchindex.js",
)
BRAND = r'<div (class="sidebar-primary-item">\s*<a class="navbar-brand[^§]*?</a>)</div>'
MENDED = {  # replacements in pages: icons that a font draws already, and faults that axe finds in theme and tables
    r"<script[^>]*/fontawesome\.js[^>]*></script>\n?": "",
    r'<script src="(\.\./)*searchindex\.js"></script>\n?': "",  # search.js looks through texts.js
    BRAND: r'<nav aria-label="Home" \1</nav>',
    r'<th class="head"><p></p></th>': "<td></td>",
    r'id="pst-page-toc-nav" ': "",  # else the theme's script marks in it what stood where before widgets came
    r'√dₖ(?=[^<>]*(?:</a>|</p>|</h1>|<a class="headerlink))': "√d<sub>k</sub>",
}
OnProgress = Callable[[str], None]


@dataclass(frozen=True)
class Site:
    """The finished site: its folder, the number of its pages, and the number of its live widgets."""

    out: Path
    pages: int
    widgets: int


def build_site(root: Path, out: Path, progress: OnProgress = lambda _: None, python: bool = False) -> Site:
    """Write the site of the course in `root` into the folder `out`, which it replaces.

    Args:
        progress: called with a few words on each stage as it begins.
        python: put Python beside the pages, so that exercises are answered and checked on them.

    Raises:
        CourseError: the course has no notebooks, `out` holds files that no site build wrote, Sphinx finds a fault, a
            source of Python is missing, or `root` is a class's edition, for which the pages would hold the answers.
    """
    root = Path(root).resolve()
    out = Path(out).resolve()
    if python and root != ROOT:
        raise CourseError("with --python the pages hold the course's answers; leave it out for the edition of a class")
    MARKER.verify(out)
    with tempfile.TemporaryDirectory(prefix="course-site-") as folder:
        source = Path(folder) / "source"
        made = Path(folder) / "html"
        progress("reading the notebooks")
        folder_of_python, files = python_files() if python else ("", {})
        pages = write_source(root, source, folder_of_python)
        write_all({source / "_static" / name: content for name, content in files.items()})
        progress("Sphinx makes the pages")
        _sphinx(source, made, Path(folder) / "doctrees")
        _trim(made)
        lost = (ASSETS / LOST).read_text(encoding="utf-8").replace("TITLE", TITLE).replace("VERSION", version())
        write_all({made / LOST: lost})
        if python:
            worker = SERVICE_WORKER.read_text(encoding="utf-8").replace("BUILD", folder_of_python)
            write_all({made / SERVICE_WORKER.name: worker})
        MARKER.write(made)
        shutil.rmtree(out, ignore_errors=True)
        shutil.copytree(made, out)
    return Site(out, len(list(out.rglob("*.html"))), sum(len(page.states) for page in pages))


def zip_site(site: Site) -> Path:
    """Write a finished site as one zip beside its folder, to be unpacked on a server, and return the zip's path.

    Raises:
        CourseError: the zip cannot be written.
    """
    files = (path for path in site.out.rglob("*") if path.is_file() and path.name != MARKER.name)
    path = site.out.with_name(f"{site.out.name}.zip")
    write_all({path: make_zip({file.relative_to(site.out.parent).as_posix(): file.read_bytes() for file in files})})
    return path


def write_source(root: Path, source: Path, python: str = "") -> list[Page]:
    """Write the files that Sphinx reads into the folder `source`, and return the pages that were notebooks.

    `python` is the folder of the Python that runs on the pages, "" if there is none.

    Raises:
        CourseError: the course has no notebooks.
    """
    files = {f"{path.parent.name}/{path.stem}": path for path in _notebooks(root)}
    if not files:
        raise CourseError(f"{root}: no notebooks in {LESSONS}/; {folder_advice()}")
    texts = dict(_texts(root))
    # the pages: notebooks, with links into the site and to the glossary, then texts
    own = {f"{WRITTEN}/{name}.md": name for name in texts if (ROOT / WRITTEN / f"{name}.md").exists()}
    links = Links(frozenset({*files, *texts, PLAYS}), repository() if is_published() else "", own)
    terms = entries(SOURCE.read_text(encoding="utf-8"), lessons_of())
    pages = [_page(name, path, terms, links, python) for name, path in files.items()]
    written: dict[Path, str | bytes] = {source / f"{page.name}.ipynb": dump(page.notebook) for page in pages}
    for name, text in texts.items():
        if name == SOURCE.stem:
            text = glossary_page(text, terms, lambda place: _first_use(place, files))
        origin = f"{WRITTEN}/{name}" if f"{WRITTEN}/{name}.md" in own else name
        text = fill_marks(links.resolved(name, origin, text), pages, python)
        sidebar = contents([*files, *texts, PLAYS]) if name == "index" else ""
        written[source / f"{name}.md"] = text + sidebar
    # the gallery, and all that the pages fetch
    small = small_pictures(pages)
    written[source / f"{PLAYS}.md"] = plays_page([play for page in pages for play in page.plays], small)
    static = source / "_static"
    written |= {static / name: content for name, content in _static_files(pages, terms, small).items()}
    if python:
        written |= {static / name: text for name, text in exercise_pages.data_scripts(root).items()}
        written[static / exercise_pages.SCRIPT.name] = classic_script(exercise_pages.SCRIPT)
        written[static / exercise_pages.EDITOR.name] = exercise_pages.EDITOR.read_bytes()
    write_all(written)
    if CARDS in texts:
        make_cards(static / CARDS, root)
        write_all({static / name: text for name, text in flash_cards.scripts(all_cards(root)).items()})
    return pages


def _static_files(pages: Sequence[Page], terms: Sequence[Entry], small: Mapping[str, bytes]) -> dict[str, str | bytes]:
    """Return the files that pages fetch, by their path in the static folder: scripts, pictures, styles and fonts."""
    files: dict[str, str | bytes] = {}
    # the widgets and their states
    states = {key: state for page in pages for key, state in page.states.items()}
    files |= scripts((play.widget for page in pages for play in page.plays if play.widget), states)
    # the pictures of pages, of the gallery and of the cards of days
    for each in pages:
        files |= each.pictures
    files |= small
    files |= day_pictures(pages)
    # what is the same for every course
    files |= {path.name: path.read_bytes() for path in ASSETS.iterdir() if path.suffix in SERVED}
    files |= {path.name: classic_script(path) for path in ASSETS.glob("*.js")}
    # the meanings of terms, which a page shows beside their links
    meanings = {term.anchor: term.typeset for term in terms}
    files["meanings.js"] = f"course.meanings({json.dumps(meanings, ensure_ascii=False)});\n"
    return files


def _page(name: str, path: Path, terms: Sequence[Entry], links: Links, python: str) -> Page:
    """Return the page of a notebook; a lesson gets its wording for the site, and links from terms to the glossary."""
    notebook, trouble = read_notebook(path)
    if notebook is None:
        raise CourseError(f"{path}: {trouble}; restore it, or run `course build`")
    marked = {term.first.cell for term in terms if term.first and name == f"{LESSONS}/{term.first.notebook}"}
    day = day_of(path.name)
    if name.startswith(LESSONS):
        cells = [cell for cell in notebook.cells if cell.cell_type == "markdown"]
        texts = page_texts(path.stem, day, [cell.source for cell in cells])
        if day:
            texts = [add_meanings(text, terms, TERM) for text in link_terms(texts, terms, TERM, day)]
        for cell, text in zip(cells, texts, strict=True):
            cell.source = text
    return notebook_page(name, notebook, read_states(path), links, marked, day, python)


def _first_use(place: Place, names: Container[str]) -> str:
    """Return where the course uses a term first, as Markdown; a link if the lesson is on the site."""
    name = f"{LESSONS}/{place.notebook}"
    heading = "" if place.heading.startswith(f"Day {place.day}") else f", {link_text(place.heading)}"
    use = f"day {place.day}{heading}"
    return f"First used on [{use}](page:{name}.html#cell-{place.cell})." if name in names else f"First used on {use}."


def _notebooks(root: Path) -> Iterator[Path]:
    """Yield lessons and exercises in the order of the days, then the pages that belong to no day."""
    for day in DAYS:
        yield from (path for folder in (LESSONS, EXERCISES) if (path := day.notebook(folder, root)))
    if (course_map := root / LESSONS / "course_map.ipynb").exists():
        yield course_map
    yield from pages_to_look_up(root)


def _texts(root: Path) -> Iterator[tuple[str, str]]:
    """Yield the name and text of each page that is Markdown.

    These are the pages written for the site, which the site of a class's edition has too, and the documents.
    """
    for path in sorted((ROOT / WRITTEN).glob("*.md")):
        if path.stem != CARDS or root == ROOT:  # a class's edition lacks the sources of the cards
            yield path.stem, path.read_text(encoding="utf-8")
    for name in DOCUMENTS:
        if (path := root / name).exists():
            yield name.removesuffix(".md"), path.read_text(encoding="utf-8")


def _sphinx(source: Path, made: Path, doctrees: Path) -> None:
    """Run Sphinx. Raises CourseError with its first warnings, because a page with a warning is not as it was meant."""
    write_all({source / "conf.py": f"globals().update({pprint.pformat(_settings())})\n"})
    command = [sys.executable, "-m", "sphinx", "-b", "html", "-q", "-E", "--no-color", "-d", doctrees, source, made]
    ended = subprocess.run(list(map(str, command)), capture_output=True, text=True)
    lines = [line for line in ended.stderr.splitlines() if line.strip()]
    if lines or ended.returncode:
        more = f" (and {len(lines) - 3} more)" if len(lines) > 3 else ""
        warnings = " | ".join(lines[:3] or [f"Sphinx ended with status {ended.returncode}"])
        raise CourseError(f"the site is not right: {warnings.replace(f'{source}/', '')}{more}")


def _trim(made: Path) -> None:
    """Remove what nobody needs: half of a page's bytes are a script that draws icons which a font has drawn already."""
    for pattern in LEFT_OVER:
        for leftover in made.glob(pattern):
            leftover.unlink()
    for path in made.rglob("*.html"):
        text = path.read_text(encoding="utf-8")
        for wrong, right in MENDED.items():
            text = re.sub(wrong, right, text)
        text = exercise_pages.mark_contents(text)
        path.write_text(text, encoding="utf-8", newline="\n")


def _settings() -> dict[str, Any]:
    """Return Sphinx's configuration."""
    there = is_published()
    return {
        "project": TITLE,
        "author": "the authors of the course",
        "copyright": "the authors of the course; code MIT, text CC BY 4.0",
        "release": version(),
        "extensions": ["myst_nb", "course_utils.site.mathml", "course_utils.site.search"],
        "html_math_renderer": "mathml",
        "nb_execution_mode": "off",
        "nb_render_markdown_format": "myst",
        "nb_code_prompt_show": "Show the code",
        "nb_code_prompt_hide": "Hide the code",
        "myst_enable_extensions": ["dollarmath", "deflist", "attrs_block", "attrs_inline"],
        "myst_heading_anchors": 4,
        "myst_update_mathjax": False,
        "myst_url_schemes": {
            "http": None,
            "https": None,
            "mailto": None,
            "page": "{{path}}#{{fragment}}",
            "glossary": {"url": "../glossary.html#{{fragment}}", "classes": ["course-term"]},
        },
        "html_theme": "sphinx_book_theme",
        "html_title": TITLE,
        "html_static_path": ["_static"],
        "html_favicon": "_static/icon.svg",
        "html_css_files": ["site.css"],
        "html_js_files": ["page.js"],
        "html_show_sourcelink": False,
        "html_copy_source": False,
        "html_use_index": False,
        "html_context": {"default_mode": "auto"},
        "html_theme_options": {
            "repository_url": repository() if there else "",
            "repository_branch": "main",
            "use_repository_button": there,
            "use_download_button": False,
            "launch_buttons": {
                "colab_url": "https://colab.research.google.com" if there else "",
                "binderhub_url": "https://mybinder.org" if there else "",
            },
            "show_toc_level": 1,
            "enable_search_shortcuts": False,  # it would take "/" from those who write an answer
            "navigation_with_keys": False,  # and the arrow keys
            "navbar_persistent": [],
            "extra_footer": f"Version {version()}",
        },
    }
