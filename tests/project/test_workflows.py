"""The project's own workflows: GitHub can read them, they may do little, and what they call exists."""

import os
import re
import subprocess

import pytest
import yaml
from packaging.specifiers import SpecifierSet
from schemas import faults
from test_project import PROJECT
from test_templates import bash, run_of, steps

from course_utils.course import ROOT

PATHS = sorted(ROOT.glob(".github/workflows/*.yml"))
TEMPLATES = sorted(ROOT.glob("templates/*/*.yml"))
WORKFLOWS = {path.stem: yaml.safe_load(path.read_text(encoding="utf-8")) for path in PATHS}
SERVED = SpecifierSet(PROJECT["requires-python"])
SCRIPT = (ROOT / ".ci/run").read_text(encoding="utf-8")
STAGES = re.search(r"\$\{\*:-(.+)\}", SCRIPT)[1].split()
PAGES = {"pages": "write", "id-token": "write"}
RELEASE = {"actions": "read", "contents": "write"}
each_workflow = pytest.mark.parametrize("name", WORKFLOWS)


def test_the_schemas_of_github_accept_workflows_and_templates():
    assert not faults("github-workflows", *PATHS, *TEMPLATES)
    assert not faults("github-actions", *ROOT.glob("templates/*/*/action.yml"))


@each_workflow
def test_a_workflow_may_read_the_repository_and_only_publishing_may_more(name):
    workflow = WORKFLOWS[name]
    assert workflow["permissions"] == {"contents": "read"}
    permissions = {
        job: settings["permissions"] for job, settings in workflow["jobs"].items() if "permissions" in settings
    }
    assert permissions == ({"publish": PAGES, "release": RELEASE} if name == "site" else {})
    assert not re.search(r"secrets\.|pull_request_target", str(workflow))
    assert workflow["concurrency"]["group"].startswith(f"{name}-")
    assert all(job["timeout-minutes"] <= 180 for job in workflow["jobs"].values())
    checkouts = [step for step in steps(workflow) if step.get("uses", "").startswith("actions/checkout@")]
    history = {"fetch-depth": 0} if name == "site" else {}  # the site's cards bear the time of their last change
    assert checkouts and all(step["with"] == {"persist-credentials": False} | history for step in checkouts)


@each_workflow
def test_actions_are_githubs_own_by_major_version_and_scripts_take_no_expressions(name):
    for step in steps(WORKFLOWS[name]):
        assert re.fullmatch(r"actions/[\w-]+@v\d+", step.get("uses", "actions/none@v1"))
        assert "${{" not in step.get("run", "")


def test_an_action_has_one_version_in_all_workflows():
    text = "".join(path.read_text() for path in [*PATHS, *ROOT.glob("templates/**/*.yml")])
    used = re.findall(r"uses: (actions/[\w-]+)@(v\d+)", text)
    assert len(set(used)) == len(dict(used))


def test_each_stage_of_ci_is_run_and_the_bare_machine_with_each_python():
    matrix = WORKFLOWS["test"]["jobs"]["test"]["strategy"]["matrix"]
    runs = [(stages, python) for stages in matrix["stages"] for python in matrix["python"]]
    runs += [(one["stages"], one["python"]) for one in matrix["include"]]
    assert sorted(stage for stages in {stages for stages, _ in runs} for stage in stages.split()) == sorted(STAGES)
    every = {f"3.{minor}" for minor in range(30) if SERVED.contains(f"3.{minor}.0")}
    assert {python for stages, python in runs if stages == "bare"} == every
    assert {python for _, python in runs} == every
    assert all(f"\n{stage}() {{" in SCRIPT for stage in STAGES)


def test_stages_are_handed_to_the_script_of_ci_one_by_one(tmp_path):
    (tmp_path / ".ci").mkdir()
    (tmp_path / ".ci/run").write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n')
    (tmp_path / ".ci/run").chmod(0o755)
    assert os.access(ROOT / ".ci/run", os.X_OK)
    done = bash(run_of(steps(WORKFLOWS["test"]), "Run the stages"), tmp_path, STAGES="everything user")
    assert done.stdout.split() == ["everything", "user"] and done.returncode == 0


@each_workflow
def test_targets_and_files_that_a_workflow_names_exist(name):
    run = "\n".join(step.get("run", "") for step in steps(WORKFLOWS[name]))
    targets = re.findall(r"^([a-z][a-z-]*):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert set(re.findall(r"^make ([\w-]+)$", run, re.MULTILINE)) <= set(targets)
    assert all((ROOT / path).exists() for path in re.findall(r"-r (\S+)", run))


def test_the_site_is_published_from_main_after_it_was_built_and_is_what_make_site_wrote():
    build, publish = (WORKFLOWS["site"]["jobs"][job] for job in ("build", "publish"))
    (upload,) = [step for step in build["steps"] if "upload-pages-artifact" in step.get("uses", "")]
    assert (
        run_of(build["steps"], "Build the site") == 'make site ARGS="--python --zip"'
        and upload["with"]["path"] == "build/site"
    )
    assert subprocess.run(["git", "check-ignore", "-q", "build/site"], cwd=ROOT).returncode in (0, 128)
    assert publish["needs"] == "build" and "github.ref == 'refs/heads/main'" in publish["if"]
    assert publish["environment"]["name"] == "github-pages"
    last = publish["steps"][-1]
    assert last["uses"].startswith("actions/deploy-pages@") and f"steps.{last['id']}." in publish["environment"]["url"]
    (python,) = [step for step in build["steps"] if step.get("uses", "").startswith("actions/setup-python@")]
    assert SERVED.contains(f"{python['with']['python-version']}.0")


def test_an_editions_release_gets_the_zip_that_was_built(tmp_path):
    """Whether the release is there already, or this makes it."""
    build, release = (WORKFLOWS["site"]["jobs"][job] for job in ("build", "release"))
    (kept,) = [step for step in build["steps"] if "upload-artifact" in step.get("uses", "")]
    assert kept["with"] == {"name": "zip", "path": "build/site.zip"}
    assert release["needs"] == "build" and "refs/tags/v" in release["if"]
    assert WORKFLOWS["site"][True]["push"]["tags"] == ["v*"]  # YAML reads the key "on" so
    for there in (True, False):
        gh = tmp_path / "gh"
        gh.write_text(f'#!/bin/sh\necho "$@" >> calls\n[ "$2" != view ] || {"true" if there else "false"}\n')
        gh.chmod(0o755)
        path = f"{tmp_path}{os.pathsep}{os.environ['PATH']}"
        script = run_of(release["steps"], "Give the release the pages")
        done = bash(script, tmp_path, PATH=path, GITHUB_RUN_ID="7", GITHUB_REF_NAME="v1.0")
        assert done.returncode == 0, done.stderr
        calls = (tmp_path / "calls").read_text().splitlines()
        (tmp_path / "calls").unlink()
        assert calls[0] == "run download 7 --name zip" and calls[-1] == "release upload v1.0 site.zip --clobber"
        assert ("release create v1.0 --verify-tag --generate-notes" in calls) is not there
