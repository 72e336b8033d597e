"""Files of a real S3 server and of HTTP servers with and without ranges; written files and datasets in S3."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests import samples
from tests.fleet import fleets
from tests.zip.range_server import serve

pytest.importorskip("distributed", reason="pt2kit[fleet] is not installed")
s3fs = pytest.importorskip("s3fs", reason="pt2kit[fleet-test] is not installed")
pytest.importorskip("moto", reason="pt2kit[fleet-test] is not installed")
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def s3() -> Iterator[dict[str, str]]:
    """A server of S3 in a process of its own; the variables by which s3fs finds it."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    server = subprocess.Popen(
        [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        for _ in range(600):
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    break
            assert server.poll() is None
            time.sleep(0.1)
        yield {
            "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}",
            "AWS_ACCESS_KEY_ID": "key",
            "AWS_SECRET_ACCESS_KEY": "secret",
            "AWS_DEFAULT_REGION": "us-east-1",
        }
    finally:
        server.kill()
        server.wait()


def bucket(s3: dict[str, str], name: str) -> Any:
    """A new bucket, through s3fs."""
    fs = s3fs.S3FileSystem(
        key="key", secret="secret", client_kwargs={"endpoint_url": s3["AWS_ENDPOINT_URL"], "region_name": "us-east-1"}
    )
    fs.call_s3("create_bucket", Bucket=name)
    return fs


def test_a_bucket(s3: dict[str, str], tmp_path: Path) -> None:
    """Keys of a bucket are listed in pages and read by ranges; a row has the etag; --resume leaves out what it has."""
    fs = bucket(s3, "models")
    for number, path in enumerate(samples.corpus("2.13.0")[:6]):
        fs.put_file(str(path), f"models/team{number % 2}/m{number}.pt2")
    fs.pipe_file("models/notes.txt", b"no program")
    done = fleets.fleet("check", "s3://models/**/*.pt2", "--out", tmp_path / "out", "--workers", "2", **s3)
    assert done.code == 0, done.err
    rows = fleets.by_name(tmp_path / "out")
    assert sorted(row["url"] for row in rows.values()) == [
        f"s3://models/team{n}/m{m}.pt2" for n in (0, 1) for m in (n, n + 2, n + 4)
    ]
    for name, row in rows.items():
        info = fs.info(f"models/team{int(name[1]) % 2}/{name}")
        assert (row["size"], row["etag"]) == (info["size"], info["ETag"].strip('"'))
    fs.put_file(str(samples.sample("2.13.0", "mlp")), "models/team0/m0.pt2")
    again = fleets.fleet("check", "s3://models/", "--out", tmp_path / "out", "--resume", **s3)
    assert again.out.startswith("check: 1 file,"), (again.out, again.err)


def test_results_in_a_bucket(s3: dict[str, str], tmp_path: Path) -> None:
    """The dataset and the written files can be in a bucket; another work's dataset there is refused."""
    fs = bucket(s3, "results")
    fleets.copies(tmp_path / "models", 4)
    args = (str(tmp_path / "models" / "**" / "*.pt2"), "--out", "s3://results/clean", "--workers", "1")
    done = fleets.fleet("sanitize", *args, **s3)
    assert done.code == 0, done.err
    written = sorted(name for name in fs.find("results/clean") if name.endswith(".pt2"))
    assert written == [f"results/clean/team{n % 3}/m{n:05}.pt2" for n in (0, 3, 1, 2)]
    import pt2kit

    for name in written:
        with pt2kit.open(fs.cat_file(name)) as package:
            assert package.programs
    assert fs.find("results/clean/files")
    assert not [name for name in fs.find("results") if ".tmp" in name]
    other = fleets.fleet("check", *args, "--resume", **s3)
    assert other.code == 2
    assert 'expected a dataset of work "check", got one of work "sanitize"' in other.err
    report = fleets.fleet("report", "s3://results/clean", **s3)
    assert (report.code, report.out.startswith("sanitize: 4 files")) == (0, True), report.err


def test_many_keys_under_one_prefix(s3: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    """More keys than one page of a listing are all found."""
    from pt2kit.fleet.targets import Targets

    for name, value in s3.items():
        monkeypatch.setenv(name, value)
    fs = bucket(s3, "flat")
    fs.pipe({f"flat/all/m{number:04}.pt2": b"x" for number in range(1100)})
    found = Targets(["s3://flat/all/*.pt2"]).files()
    assert sorted(one.relative for one in found) == [f"m{number:04}.pt2" for number in range(1100)]


def test_credentials_that_are_missing(s3: dict[str, str], tmp_path: Path) -> None:
    """Without credentials, nothing starts, and the message says what is missing."""
    variables = {**s3, "AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": "", "HOME": str(tmp_path)}
    variables |= {"AWS_EC2_METADATA_DISABLED": "true", "AWS_CONFIG_FILE": os.devnull}
    done = fleets.fleet("check", "s3://nobody/**", "--out", tmp_path / "out", **variables)
    assert done.code == 2
    assert "s3://nobody: expected to read it, got: Unable to locate credentials" in done.err
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("ranges", ["yes", "no", "none"])
def test_http_servers(tmp_path: Path, ranges: str) -> None:
    """A server with ranges is read by them, not whole; of one without the whole file is."""
    from pt2kit.zip.writer import ArchiveWriter

    folder = tmp_path / "served"
    folder.mkdir()
    path = folder / "large.pt2"
    import pt2kit

    with pt2kit.open(samples.sample("2.13.0", "mlp")) as package, ArchiveWriter(path, root="mlp") as writer:
        for name in package.records:
            writer.write(name.partition("/")[2], bytes(package.archive.read(name)))
        writer.write("extra/filler.bin", bytes(1 << 20) * 8)
    with serve(folder, ranges=ranges) as server:
        names = tmp_path / "names.txt"
        names.write_text(f"{server.url('large.pt2')}?key=secret\n{server.url('gone.pt2')}\n")
        done = fleets.fleet("show", names, "--out", tmp_path / "out", "--workers", "1")
        assert done.code == 1, done.err
        rows = {row["url"].partition("?")[0].rpartition("/")[2]: row for row in fleets.rows(tmp_path / "out")}
        assert rows["large.pt2"]["outcome"] == "ok"
        assert rows["gone.pt2"]["outcome"] == "unreadable"
        assert "secret" not in str(rows)
        if ranges == "yes":
            assert server.sent < path.stat().st_size / 10
            assert rows["large.pt2"]["size"] == path.stat().st_size
