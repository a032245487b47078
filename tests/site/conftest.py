"""The site, built once for the tests of this folder."""

import pytest

pytest.importorskip("sphinx", reason="Sphinx is not installed: make test installs it")


@pytest.fixture(scope="session")
def site(tmp_path_factory):
    """The folder of the course's own site."""
    from course_utils.course import ROOT
    from course_utils.site.build import build_site

    return build_site(ROOT, tmp_path_factory.mktemp("site") / "html").out


@pytest.fixture(scope="session")
def pages(site):
    """Its pages, read."""
    from site_pages import pages_of

    return pages_of(site)
