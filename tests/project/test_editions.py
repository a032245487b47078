"""An edition says one thing of itself: its version, its date and its address are the same wherever they stand."""

import importlib.metadata
import re
import subprocess
import sys
from datetime import date

import yaml
from in_process import course as run_course
from packaging.version import Version
from schemas import faults
from test_project import PROJECT, files

from course_utils import course
from course_utils.course import ROOT
from course_utils.sandbox.confinement import write_kernel_library

CHANGELOG = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
CITATION = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
EDITIONS = re.findall(r"^## \[(.+)\] - (\d{4}-\d\d-\d\d)$", CHANGELOG, re.MULTILINE)
KINDS = {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}
SAY_THE_ADDRESS = ("CITATION.cff", ".github/ISSUE_TEMPLATE/config.yml", "README.md")  # once it is set
# What notebooks of edition 0.3.0 import: they are in the hands of learners, and keep working.
IN_0_3_0 = {
    "attention": "arrays flash flash_decode lists masks multihead scaling tensors tiled traffic triton_setup",
    "attention.cache": "ContiguousCache PagedCache QuantisedCache SlidingWindowCache dequantise quantise",
    "checks": "checks_for",
    "costs": "counts fragmentation generation measure memory records roofline zoo",
    "costs.baselines": "library naive",
    "costs.configurations": "MODELS model",
    "costs.counts": "attention_flops",
    "costs.measure": "time_together",
    "costs.memory": "score_bytes",
    "costs.mixed": "LATER",
    "days.day1": "figures guesses",
    "days.day2": "figures guesses",
    "days.day3": "figures guesses",
    "days.day3.patients": "SayTheTokenBefore look patients vital_signs",
    "days.day4": "figures guesses",
    "days.day5": "TinyModel figures guesses rotate",
    "days.day6": "figures guesses launch launch_rows load_triton",
    "days.day7": "figures guesses",
    "models": "characters encoder facts_record induction real scale_experiment",
    "models.decoder": "Decoder generate new_caches",
    "models.leak_experiment": "random_tokens train",
    "parts": "compare mine",
    "serving": "costs latency machines paged prefix_traffic prefixes speculative",
    "serving.costs": "RECORDED",
    "serving.engine": "Engine",
    "serving.latency": "summary",
    "serving.measured": "measure_acceptance measure_steps one_pass own_text",
    "serving.simulate": "simulate timeline",
    "serving.traffic": "DOCUMENTS THREE poisson",
    "views": "AttentionHeatmap AttentionStepper DecodeStepper Guesses HeadAblation HeadExplorer HeadGallery "
    "MaskPainter MemoryCalculator OnlineSoftmaxStepper PageTable Practice ProgressMap QueryPlane Quiz "
    "SaturationExplorer ServingTimeline SpeculativeStepper TemperatureExplorer TileWalker TracePlayer",
    "views.matrices": "show",
    "views.picture": "picture",
}
IN_EXERCISES = {
    "checks": "checks_for",
    "days.day5": "TinyModel rotate",
    "days.day6": "launch launch_rows load_triton",
}
TEXTS = ("*.cff", "*.html", "*.ipynb", "*.js", "*.json", "*.md", "*.py", "*.toml", "*.yml")


def test_the_newest_edition_of_the_changelog_is_the_version_of_the_project():
    assert EDITIONS[0][0] == PROJECT["version"] == course.version()


def test_the_changelog_keeps_its_form():
    headings = re.findall(r"^## (.+)$", CHANGELOG, re.MULTILINE)
    assert [one for one in headings if one != "[Unreleased]"] == [f"[{name}] - {day}" for name, day in EDITIONS]
    assert set(re.findall(r"^### (.+)$", CHANGELOG, re.MULTILINE)) <= KINDS
    versions = [Version(name) for name, _ in EDITIONS]
    days = [date.fromisoformat(day) for _, day in EDITIONS]
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
    distribution = importlib.metadata.PathDistribution(tmp_path / "course_utils.dist-info")
    distribution._path.mkdir()
    urls = "Project-URL: Page, https://a.example/\nProject-URL: Repository, https://b.example/x/\n"
    (distribution._path / "METADATA").write_text(f"Metadata-Version: 2.4\nName: course_utils\nVersion: 9.8.7\n{urls}")
    monkeypatch.setattr(course, "IN_CHECKOUT", False)
    monkeypatch.setattr(course, "metadata", lambda name: distribution.metadata)
    assert (course.version(), course.repository()) == ("9.8.7", "https://b.example/x")


def test_files_repeat_the_address_of_the_repository_as_it_is_set():
    *_, owner, repository = course.repository().split("/")
    address = re.compile(rf"(?:github\.com|github|gh)/([\w.-]+)/{re.escape(repository)}\b")  # also at Colab and Binder
    owners = {path: address.findall(path.read_text(encoding="utf-8")) for path in files(*TEXTS)}
    assert all(bool(owners[ROOT / name]) == course.is_published() for name in SAY_THE_ADDRESS)
    assert not {path: owners_there for path, owners_there in owners.items() if set(owners_there) - {owner}}


def lines(modules):
    return "\n".join(
        f"from course_utils.{module} import {', '.join(names.split())}" for module, names in modules.items()
    )


def test_what_notebooks_of_the_last_edition_import_is_there():
    exec(lines(IN_0_3_0), {})


def test_what_its_exercises_import_is_there_where_they_are_graded(tmp_path):
    write_kernel_library(tmp_path)
    code = lines(IN_EXERCISES)
    subprocess.run([sys.executable, "-c", code], env={"PYTHONPATH": str(tmp_path)}, cwd=tmp_path, check=True)
