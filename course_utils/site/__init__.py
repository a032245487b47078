"""The course as pages: everything readable, searchable and touchable with nothing installed.

`build.py` makes them with Sphinx from the built notebooks and executes nothing. `pages.py` turns a notebook into a
page, `widgets.py` makes its widgets live, `mathml.py` sets formulas, `start_pages.py` writes the first page's tables,
and `widget_gallery.py` lists what there is to play with. `glossary.py` links terms to what they mean and finds their
first use. `search.py` keeps what the search looks through, and `page_wording.py` says on a page what holds there.
"""

from importlib.util import find_spec

from course_utils.errors import CourseError


def verify_installed() -> None:
    """Raise CourseError, with what to install, where a package that makes pages is missing."""
    for name in ("sphinx", "myst_nb", "sphinx_book_theme", "math_core", "genanki"):
        if find_spec(name) is None:
            raise CourseError(f"pages are made with {name}, which is not installed here: pip install -e '.[site]'")
