"""The parts of a release exist and fit together: fragments, workflows, pins, the forms next to them."""

from __future__ import annotations

import re
import zipfile
from pathlib import Path

import pytest
import yaml
from tools import release
from tools.lowest import lowest_versions

ROOT = Path(__file__).parents[2]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


@pytest.mark.parametrize("path", sorted((ROOT / "changes").glob("*.md")), ids=lambda path: path.stem)
def test_fragments_have_a_kind_that_the_changelog_knows(path: Path) -> None:
    """`<name>.<kind>.md`; a file of another name would be left out of the changelog in silence."""
    if path.name in ("README.md", "template.md"):
        return
    assert re.fullmatch(r"[\w-]+\.(added|changed|fixed)\.md", path.name)
    assert path.read_text(encoding="utf-8").strip()


def test_every_dependency_has_a_lowest_version() -> None:
    """`make release` and `make test-lowest` try the lowest version of each dependency, so each has one."""
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    [block] = re.findall(r"^dependencies = \[\n(.*?)^\]", text, re.DOTALL | re.MULTILINE)
    assert len(lowest_versions()) == len([line for line in block.splitlines() if '"' in line]) >= 6
    assert "ml_dtypes==0.5.1" in lowest_versions()
    assert lowest_versions("http", "sign")[len(lowest_versions()) :] == [
        "aiohttp==3.9",
        "model-signing==1.1",
        "pyopenssl==24.2.1",
    ]


def test_an_extra_that_is_not_there_has_no_versions() -> None:
    """It is named, not passed over."""
    with pytest.raises(SystemExit, match=r"pyproject\.toml: expected a list 'nothing', got none"):
        lowest_versions("nothing")


def test_the_wheel_is_weighed_without_the_page(tmp_path: Path) -> None:
    """Bytes of the viewer's page are counted apart from the rest."""
    wheel = tmp_path / "x-1-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("pt2kit/viewing/page/index.html", b"p" * 1000)
        archive.writestr("pt2kit/x.py", b"x" * 10)
    rest, page = release.wheel_bytes(wheel)
    assert page == 1000
    assert rest == wheel.stat().st_size - 1000


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_workflows_ask_for_no_more_than_they_need(path: Path) -> None:
    """A workflow reads alone unless a job says otherwise, and no secret is in it."""
    text = path.read_text(encoding="utf-8")
    workflow = yaml.safe_load(text)
    assert workflow["permissions"] == {"contents": "read"}
    assert "secrets." not in text
    for job in workflow["jobs"].values():
        assert set(job.get("needs", [])) <= set(workflow["jobs"]) or job["needs"] in workflow["jobs"]
        for step in job["steps"]:
            for target in re.findall(r"make ([a-z-]+)", step.get("run", "")):
                assert re.search(rf"^{target}:", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
            for file in re.findall(r"(?:^|checkout/|\s)((?:tools|tests|\.ci)/[\w./-]+)", step.get("run", "")):
                assert (ROOT / file).exists(), file


def test_ci_runs_on_three_systems_with_every_python() -> None:
    """The systems and releases of Python that are promised are those that the workflow runs on."""
    matrix = yaml.safe_load((WORKFLOWS[0]).read_text(encoding="utf-8"))["jobs"]["core"]["strategy"]["matrix"]
    assert {name.split("-")[0] for name in matrix["os"]} == {"ubuntu", "macos", "windows"}
    classifiers = re.findall(r"Python :: (3\.\d+)", (ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert matrix["python"] == classifiers == list(release.PYTHONS)


def test_publishing_attests_and_stores_no_token() -> None:
    """Only the jobs that attest and publish may ask for an identity, and what is published was tried before."""
    jobs = yaml.safe_load((ROOT / ".github" / "workflows" / "publish.yml").read_text(encoding="utf-8"))["jobs"]
    assert [name for name, job in jobs.items() if "id-token" in job.get("permissions", {})] == ["provenance", "publish"]
    assert jobs["publish"]["needs"] == ["build", "provenance"]
    assert any("attest-build-provenance" in step["uses"] for step in jobs["provenance"]["steps"])


@pytest.mark.parametrize("name", ["ISSUE_TEMPLATE/bug.yml", "ISSUE_TEMPLATE/idea.yml"])
def test_issue_forms_are_forms(name: str) -> None:
    """A form has a name, a description, and fields that can be told apart."""
    form = yaml.safe_load((ROOT / ".github" / name).read_text(encoding="utf-8"))
    fields = [row for row in form["body"] if row["type"] != "markdown"]
    assert form["name"]
    assert form["description"]
    assert len({row["id"] for row in fields}) == len(fields) >= 2
    assert all(row["attributes"]["label"] for row in fields)


def test_citation_and_image() -> None:
    """The citation is of its format; the image has no torch, and does not run as root."""
    assert yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))["cff-version"] == "1.2.0"
    image = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    assert "torch]" not in image
    assert image.index("USER pt2") < image.index("ENTRYPOINT")
