"""The built site as tests read it: its pages, what each loads, where each leads, and what can be read on it."""

import re
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

VOID = {"img", "input", "meta", "link", "br", "hr", "source", "wbr", "col"}
LOADS = {"img": "src", "script": "src", "source": "src", "iframe": "src", "link": "href"}


class Read(HTMLParser):
    """A page: ids, links, what it loads, its words, and its widgets as pairs of class and state."""

    def __init__(self, path):
        super().__init__(convert_charrefs=True)
        self.path = path
        self.ids = set()
        self.links = []
        self.loads = []
        self.words = []
        self.widgets = []
        self._skipped = 0
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attrs):
        attributes = dict(attrs)
        self.ids |= {attributes[name] for name in ("id", "name") if attributes.get(name)}
        if tag == "a" and attributes.get("href"):
            self.links.append(attributes["href"])
        if attributes.get(LOADS.get(tag, "")) and attributes.get("rel") not in (
            "index",
            "search",
            "next",
            "prev",
            "canonical",
        ):
            self.loads.append(attributes[LOADS[tag]])
        if "data-widget" in attributes:
            self.widgets.append((attributes["data-widget"], attributes["id"]))
        self._skipped += tag in ("script", "style")

    def handle_endtag(self, tag):
        self._skipped -= tag in ("script", "style")

    def handle_data(self, data):
        if not self._skipped:
            self.words.append(data)

    @property
    def text(self):
        return "".join(self.words)

    def files(self):
        """What it loads, as files of the site: also what its style sheets load, and its widgets when they come near."""
        static = next(folder for folder in self.path.parents if (folder / "_static").exists()) / "_static"
        files_needed = {(self.path.parent / unquote(re.sub(r"[?#].*", "", name))).resolve() for name in self.loads}
        for widget, state in self.widgets:
            files_needed |= {static / "widgets" / f"{widget}.js", static / "states" / f"{state}.js"}
        sheets = [path for path in files_needed if path.suffix == ".css"]
        files_needed |= {
            used for path in sheets for used in _used_by(path) if used.suffix == ".woff2" and used.exists()
        }
        return files_needed


def _used_by(sheet):
    text = sheet.read_text(encoding="utf-8")
    names = re.findall(r"url\(\s*[\"']?([^\"')?#]+)", text)
    return [(sheet.parent / unquote(name)).resolve() for name in names if not name.startswith(("data:", "http"))]


def pages_of(site: Path) -> dict[str, Read]:
    """All pages of a site by their path in it."""
    return {path.relative_to(site).as_posix(): Read(path) for path in sorted(site.rglob("*.html"))}
