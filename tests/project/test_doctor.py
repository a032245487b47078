"""`course doctor`: what it finds on this machine, and what it says where something is missing."""

import importlib.metadata
import json
import os
import shutil
import sys
from contextlib import contextmanager
from types import SimpleNamespace

import in_process
import needs
import pytest

from course_utils import doctor
from course_utils.errors import NotConfined
from course_utils.sandbox import confinement
from course_utils.sandbox.confinement import Confinement


@pytest.fixture(scope="module")
def findings():
    return {each.part: each for each in doctor.examine()}


def test_here_it_finds_what_the_marks_of_the_tests_find(findings):
    assert doctor.ready(list(findings.values()))
    assert all(findings[part].state == doctor.GOOD for part in ("course", "Python", "packages", "torch", "JupyterLab"))
    assert (findings["browser"].state == doctor.GOOD) == (not needs.NO_CHROMIUM)
    if findings["sandbox"].state == doctor.GOOD:
        assert not needs.BUBBLEWRAP.args[0]


def test_it_names_the_pythons_on_which_this_edition_was_tested(findings):
    assert "this edition was tested on 3.11, 3.12, 3.13" in findings["Python"].found


def test_whatever_is_missing_and_can_be_had_has_a_word_on_how(findings):
    for each in findings.values():
        assert each.state in (doctor.GOOD, doctor.OPTIONAL, doctor.NEEDED) and each.found
        assert not (each.state == doctor.GOOD and each.todo), each
        assert not (each.state == doctor.NEEDED and not each.todo), each


def test_the_command_says_it_in_words_and_as_json(monkeypatch):
    some = [doctor.Finding("torch", doctor.NEEDED, "not [red]there[/red]", "pip install torch")]
    monkeypatch.setattr(doctor, "examine", lambda: some)
    status, out, err = in_process.course("doctor")
    assert (status, err) == (1, "")
    assert "✗" in out and "not [red]there[/red]" in out and "To have it: pip install torch" in out
    status, out, err = in_process.course("doctor", "--json")
    report = json.loads(out)
    assert (status, report["ready"], report["findings"][0]["part"]) == (1, False, "torch")
    monkeypatch.setattr(doctor, "examine", lambda: [doctor.Finding("GPU", doctor.OPTIONAL, "none")])
    assert in_process.course("doctor")[0] == 0 and in_process.course("doctor", "--json")[0] == 0


def without(monkeypatch, *names, **other):
    """As if packages were not installed, or in another version."""

    def version(name):
        if name in names:
            raise importlib.metadata.PackageNotFoundError(name)
        return other.get(name) or importlib.metadata.version(name)

    monkeypatch.setattr(doctor, "version", version)


def test_packages_that_are_missing_or_others(monkeypatch):
    without(monkeypatch, "anywidget", "hypothesis", numpy="1.26.4")
    missing = doctor.packages()
    assert missing.state == doctor.NEEDED and missing.found == "not installed: anywidget hypothesis"
    assert '"anywidget>=' in missing.todo and "numpy" not in missing.todo
    without(monkeypatch, numpy="1.26.4")
    other = doctor.packages()
    assert other.state == doctor.OPTIONAL and "numpy 1.26.4 where" in other.found


@pytest.mark.parametrize("error", [ImportError("libcudart.so.12: cannot open"), OSError("a DLL")])
def test_a_torch_that_does_not_load(monkeypatch, error):
    class Finder:
        def find_spec(self, name, path=None, target=None):
            if name == "torch":
                raise error

    monkeypatch.delitem(sys.modules, "torch")
    monkeypatch.setattr(sys, "meta_path", [Finder(), *sys.meta_path])
    finding = doctor.torch()
    assert finding.state == doctor.NEEDED and str(error) in finding.found and '"torch==' in finding.todo


def test_another_torch_and_one_with_a_gpu(monkeypatch):
    cuda = SimpleNamespace(
        device_count=lambda: 1,
        get_device_properties=lambda one: SimpleNamespace(name="NVIDIA H100", total_memory=80 * 2**30),
    )
    fake = SimpleNamespace(__version__="2.4.1+cu121", version=SimpleNamespace(cuda="12.1"), cuda=cuda)
    monkeypatch.setitem(sys.modules, "torch", fake)
    monkeypatch.delenv("TRITON_INTERPRET", raising=False)
    finding = doctor.torch()
    assert finding.state == doctor.OPTIONAL and "2.4.1+cu121, for CUDA 12.1; the course pins ==" in finding.found
    assert doctor.gpu() == doctor.Finding("GPU", doctor.GOOD, "NVIDIA H100, 80 GiB")
    if sys.platform == "linux":
        assert "compiled for the GPU" in doctor.triton().found
        monkeypatch.setenv("TRITON_INTERPRET", "1")
        assert "interpreter" in doctor.triton().found


@needs.LINUX
def test_no_triton(monkeypatch):
    without(monkeypatch, "triton")
    finding = doctor.triton()
    assert finding.state == doctor.OPTIONAL and '"triton==' in finding.todo and "day 6" in finding.todo


def test_no_jupyterlab_and_one_without_widgets(monkeypatch, tmp_path):
    from jupyter_core import paths

    monkeypatch.setattr(paths, "jupyter_path", lambda *parts: [str(tmp_path)])
    finding = doctor.jupyterlab()
    assert finding.state == doctor.NEEDED and "without its extension" in finding.found and "anywidget" in finding.todo
    for name in doctor.EXTENSIONS:
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "package.json").touch()
    assert doctor.jupyterlab().state == doctor.GOOD
    (tmp_path / "course_utils" / "package.json").unlink()
    assert doctor.jupyterlab().state == doctor.OPTIONAL
    without(monkeypatch, "jupyterlab")
    assert doctor.jupyterlab().state == doctor.NEEDED


def test_a_sandbox_that_holds_less_or_not_at_all(monkeypatch):
    @contextmanager
    def held(warm):
        yield SimpleNamespace(confinement=Confinement("limits", False, "bubblewrap is not installed"))

    monkeypatch.setattr(confinement, "open_kernels", held)
    monkeypatch.setattr(shutil, "which", lambda name: None)
    finding = doctor.sandbox()
    assert finding.state == doctor.OPTIONAL and "What stays open" in finding.found
    assert ("apt-get install bubblewrap" in finding.todo) == (sys.platform == "linux")

    def refused(warm):
        raise NotConfined("no kernel can be confined by limits on this machine: why")

    monkeypatch.setattr(confinement, "open_kernels", refused)
    assert "no kernel can be confined by limits" in doctor.sandbox().found


def test_no_chromium(monkeypatch):
    monkeypatch.setattr(shutil, "which", lambda name: None)
    without(monkeypatch, "playwright")
    finding = doctor.browser()
    assert finding.state == doctor.OPTIONAL and finding.found == "without Chromium and playwright"
    assert "apt-get install chromium and " in finding.todo and "pip install playwright" in finding.todo


def test_an_old_python_and_a_course_installed_alone(monkeypatch):
    monkeypatch.setattr(doctor.platform, "python_version", lambda: "3.9.2")
    assert doctor.python().state == doctor.NEEDED and ">=3.11" in doctor.python().todo
    monkeypatch.setattr(doctor.course, "IN_CHECKOUT", False)
    monkeypatch.setattr(doctor.course, "repository", lambda: "https://example.org/course")
    finding = doctor.the_course()
    assert finding.state == doctor.OPTIONAL and "git clone https://example.org/course" in finding.todo


def test_an_address_that_is_not_set_is_one_line_on_who_sets_it(monkeypatch):
    monkeypatch.setattr(doctor.course, "repository", lambda: "https://github.com/OWNER/course")
    address_findings = [each for each in doctor.examine() if each.part == "address"]
    assert (
        len(address_findings) == 1
        and address_findings[0].state == doctor.OPTIONAL
        and "pyproject.toml" in address_findings[0].found
    )
    assert doctor.ready(address_findings) and not address_findings[0].todo and "OWNER" not in address_findings[0].found
    for there in ("https://github.com/ada/course", ""):  # a class's edition has none
        monkeypatch.setattr(doctor.course, "repository", lambda there=there: there)
        assert doctor.address() is None


def test_a_system_that_says_little_of_the_machine(monkeypatch):
    monkeypatch.delattr(os, "sysconf", raising=False)
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    assert "memory unknown" in doctor.machine().found
