"""An edition says one thing of itself: its version, its date and its address are the same wherever they stand."""

import importlib.metadata
import re
from datetime import date

import yaml
from in_process import course as run_course
from packaging.version import Version
from schemas import faults
from test_project import PROJECT, files

from course_utils import course
from course_utils.course import ROOT

CHANGELOG = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
CITATION = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
EDITIONS = re.findall(r"^## \[(.+)\] - (\d{4}-\d\d-\d\d)$", CHANGELOG, re.MULTILINE)
KINDS = {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}
SAY_THE_ADDRESS = ("CITATION.cff", ".github/ISSUE_TEMPLATE/config.yml", "README.md")  # and can compute nothing
TEXTS = ("*.cff", "*.html", "*.ipynb", "*.js", "*.json", "*.md", "*.py", "*.toml", "*.yml")


def test_the_newest_edition_of_the_changelog_is_the_version_of_the_project():
    assert EDITIONS[0][0] == PROJECT["version"] == course.version()


def test_the_changelog_keeps_its_form():
    headings = re.findall(r"^## (.+)$", CHANGELOG, re.MULTILINE)
    assert [one for one in headings if one != "[Unreleased]"] == [f"[{name}] - {day}" for name, day in EDITIONS]
    assert set(re.findall(r"^### (.+)$", CHANGELOG, re.MULTILINE)) <= KINDS
    versions, days = [Version(name) for name, _ in EDITIONS], [date.fromisoformat(day) for _, day in EDITIONS]
    assert versions == sorted(set(versions), reverse=True) and days == sorted(days, reverse=True)


def test_the_citation_is_valid():
    assert not faults("citation-file-format", ROOT / "CITATION.cff")


def test_the_citation_cites_this_edition():
    assert str(CITATION["version"]) == PROJECT["version"]
    assert str(CITATION["date-released"]) == EDITIONS[0][1]
    assert PROJECT["description"].startswith(CITATION["title"])
    assert [author["name"] for author in CITATION["authors"]] == [f"The authors of {CITATION['title']}"]


def test_the_command_says_the_version():
    assert run_course("--version") == (0, f"course {PROJECT['version']}\n", "")


def test_an_installed_course_says_version_and_repository_by_its_metadata(monkeypatch, tmp_path):
    told = importlib.metadata.PathDistribution(tmp_path / "course_utils.dist-info")
    told._path.mkdir()
    urls = "Project-URL: Page, https://a.example/\nProject-URL: Repository, https://b.example/x/\n"
    (told._path / "METADATA").write_text(f"Metadata-Version: 2.4\nName: course_utils\nVersion: 9.8.7\n{urls}")
    monkeypatch.setattr(course, "IN_CHECKOUT", False)
    monkeypatch.setattr(course, "metadata", lambda name: told.metadata)
    assert (course.version(), course.repository()) == ("9.8.7", "https://b.example/x")


def test_files_repeat_the_address_of_the_repository_as_it_is_set():
    *_, owner, repository = course.repository().split("/")
    said = re.compile(rf"(?:github\.com|github|gh)/([\w.-]+)/{re.escape(repository)}\b")  # also at Colab and Binder
    owners = {path: said.findall(path.read_text(encoding="utf-8")) for path in files(*TEXTS)}
    assert all(owners[ROOT / name] for name in SAY_THE_ADDRESS)
    assert not {path: found for path, found in owners.items() if set(found) - {owner}}
