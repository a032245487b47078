"""The course as a website, where people read, search and try everything with nothing installed.

`build.py` makes the pages with Sphinx from the built notebooks and executes nothing. `pages.py` turns a notebook into a
page, `widgets.py` makes its widgets live, `mathml.py` sets formulas, `start_pages.py` fills in the first page, and
`widget_gallery.py` shows all widgets and figures; both lay out cards by `picture_cards.py`. `flash_cards.py` puts the
cards of the Anki deck on a page. `glossary.py` links terms to their definitions and finds their first use. `search.py`
makes the data for the search, and `page_wording.py` replaces sentences that hold only in JupyterLab.
"""

from importlib.util import find_spec

from course_utils.errors import CourseError


def verify_installed() -> None:
    """Raise CourseError, which says what to install, where a package for the site is missing."""
    for name in ("sphinx", "myst_nb", "sphinx_book_theme", "math_core", "genanki"):
        if find_spec(name) is None:
            raise CourseError(f"making the pages needs {name}, which is not installed: pip install -e '.[site]'")
