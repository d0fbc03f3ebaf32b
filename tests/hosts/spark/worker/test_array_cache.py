"""The cache of arrays: its size is limited, old arrays are removed, and changed files are never used."""

import os
import stat
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from braid.errors import BraidError
from braid.hosts.spark.driver.session import Session
from braid.hosts.spark.shared.cache_space import (
    ABANDONED_SECONDS,
    CACHE,
    IN_USE_SECONDS,
    CacheSpace,
    remove_orphans,
    session_directory,
)
from braid.hosts.spark.worker.array_cache import ArrayCache
from braid.hosts.spark.worker.engine_cache import WorkerEngineCache
from braid.testing import assert_same_rows, oracle
from braid.testing.cluster import ShardedCase, batches, plain_case


def cache_in(root: Path, limit: int | None) -> ArrayCache:
    return ArrayCache(session_directory(root) / "query" / CACHE, CacheSpace(root, limit))


def write(cache: ArrayCache, size: int) -> str | None:
    """The token of a new version of `size` bytes; None if there is no room."""
    version = cache.create()
    assert version is not None
    return version.token if version.write({"array": np.zeros(size, np.int8)}) is not None else None


def leave_unused(root: Path, seconds: float = 2 * IN_USE_SECONDS) -> None:
    long_ago = time.time() - seconds
    for path in root.glob(f"*/*/{CACHE}/*"):
        os.utime(path, (long_ago, long_ago))


def test_arrays_that_do_not_fit_are_not_kept(tmp_path: Path) -> None:
    cache = cache_in(tmp_path, 10_000)
    first = write(cache, 6_000)
    assert first is not None
    assert write(cache_in(tmp_path, 10_000), 6_000) is None
    claimed = cache.claim(first)
    assert claimed is not None
    assert claimed.read() is not None


def test_arrays_that_were_not_used_lately_are_removed_to_make_room(tmp_path: Path) -> None:
    old, new = cache_in(tmp_path, 10_000), cache_in(tmp_path, 10_000)
    first = write(old, 6_000)
    leave_unused(tmp_path)
    assert first is not None
    assert write(new, 6_000) is not None
    assert old.claim(first) is None


def test_arrays_that_were_not_used_for_a_day_are_removed_although_there_is_room(tmp_path: Path) -> None:
    old, new = cache_in(tmp_path, 100_000), cache_in(tmp_path, 100_000)
    first = write(old, 6_000)
    leave_unused(tmp_path, 2 * ABANDONED_SECONDS)
    assert first is not None
    assert write(new, 6_000) is not None
    assert old.claim(first) is None


def test_arrays_that_another_process_is_writing_are_not_removed(tmp_path: Path) -> None:
    """One of their files may be gone when its size is read, like the target of this link."""
    cache = cache_in(tmp_path, 10_000)
    first = write(cache, 100)
    (directory,) = tmp_path.glob(f"*/*/{CACHE}/*")
    (directory / "going").symlink_to("gone")
    assert write(cache_in(tmp_path, 10_000), 100) is not None
    assert first is not None
    assert cache.claim(first) is not None


@pytest.mark.parametrize(("limit", "outcome"), [(None, "hot"), (0, "rebuilt")])
def test_engines_kept_only_in_the_process_need_no_directory(limit: int | None, outcome: str, tmp_path: Path) -> None:
    """The directory may be missing on a host, or may have been removed."""
    case = plain_case("SELECT a.n AS an, b.n AS bn FROM a [ROWS 7], b [ROWS 3] WHERE a.k = b.k")
    cache = cache_in(tmp_path / "gone", limit)
    cluster = ShardedCase(case, 1, lambda: WorkerEngineCache(cache))
    first, second, *_ = batches(case)
    cluster.batch(first)
    cluster.batch(second)
    assert cluster.engines_opened == ["new", outcome]


def test_by_default_the_limit_is_half_of_the_file_system(tmp_path: Path) -> None:
    assert CacheSpace(tmp_path).limit > 1 << 20
    assert CacheSpace(tmp_path).make(1)
    assert not CacheSpace(tmp_path).make(1 << 60)


def test_without_room_for_arrays_the_result_is_the_same(tmp_path: Path) -> None:
    case = plain_case()
    cache = cache_in(tmp_path, 1)
    cluster = ShardedCase(case, 1, lambda: WorkerEngineCache(cache))
    for rows in batches(case):
        cluster.batch(rows)
    assert cluster.engines_opened == ["new", "rebuilt", "rebuilt", "rebuilt"]
    assert_same_rows(cluster.result(), oracle(case.text, case.streams))


def test_on_a_full_disk_engines_are_rebuilt(tmp_path: Path) -> None:
    """From the sixth batch on, the process can write no file larger than 100 bytes."""
    program = f"""
import resource, signal
from pathlib import Path
from braid.testing import assert_same_rows, oracle
from braid.hosts.spark.worker.array_cache import ArrayCache
from braid.hosts.spark.worker.engine_cache import WorkerEngineCache
from braid.testing.cluster import ShardedCase, batches, plain_case
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
case = plain_case(rows=100)
oracle(case.text, case.streams)
cluster = ShardedCase(case, 1, lambda: WorkerEngineCache(ArrayCache(Path({str(tmp_path)!r}))))
for number, rows in enumerate(batches(case)):
    if number == 5:
        resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))
    cluster.batch(rows)
print(*cluster.engines_opened)
assert_same_rows(cluster.result(), oracle(case.text, case.streams))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["new", *["hot"] * 5, *["rebuilt"] * 4]


def test_a_file_that_is_overwritten_at_once_is_not_trusted(tmp_path: Path) -> None:
    """Not even if the clock of the file system has not moved since the file was sealed."""
    cache = ArrayCache(tmp_path)
    for _ in range(50):
        version = cache.create()
        assert version is not None
        assert version.write({"array": np.arange(100)}) is not None
        for path in tmp_path.glob(f"{version.token}/*"):
            if path.name != "header.json":
                with path.open("r+b") as file:
                    file.write(b"garbage")
        claimed = cache.claim(version.token)
        assert claimed is not None
        assert claimed.read() is None


def test_directories_of_processes_that_have_ended_are_removed(tmp_path: Path) -> None:
    ended = subprocess.Popen(["true"])
    ended.wait()
    remaining = [session_directory(tmp_path), tmp_path / f"braid-00000000-{ended.pid}-of-another-host"]
    for path in (session_directory(tmp_path, ended.pid), *remaining):
        path.mkdir()
    remove_orphans(tmp_path)
    assert sorted(tmp_path.iterdir()) == sorted(remaining)


def test_the_cache_is_readable_for_its_user_only(spark: object, tmp_path: Path) -> None:
    Session(spark, cache=str(tmp_path / "new" / "place"))  # type: ignore[arg-type]
    (directory,) = (tmp_path / "new" / "place").iterdir()
    assert stat.S_IMODE(directory.stat().st_mode) == 0o700
    (tmp_path / "file").write_text("no directory")
    with pytest.raises(
        BraidError, match=r"the cache .*file cannot be written \(Not a directory\); give another cache="
    ):
        Session(spark, cache=str(tmp_path / "file"))  # type: ignore[arg-type]


@pytest.mark.parametrize("limit", [-1, "1 GB"])
def test_the_limit_must_be_a_number_of_bytes(limit: object, spark: object) -> None:
    with pytest.raises(BraidError, match="cache_limit is"):
        Session(spark, cache_limit=limit)  # type: ignore[arg-type]


BUSY = """
import sys, threading, time
from contextlib import suppress
from pathlib import Path
import braid

session = braid.Session(log=sys.argv[1])
directory = str(session._directory)

def keep(batches):
    while True:
        (Path(directory) / "query" / "cache").mkdir(parents=True, exist_ok=True)
        time.sleep(0.001)
        yield from ()

def work():
    with suppress(Exception):
        session.spark.range(1).mapInArrow(lambda batches: keep(batches), "id long").collect()

threading.Thread(target=work, daemon=True).start()
while not (Path(directory) / "query").exists():
    time.sleep(0.01)
print(directory)
"""


def test_a_worker_that_is_busy_when_the_program_ends_leaves_no_files(tmp_path: Path) -> None:
    log = str(tmp_path / "spark.log")
    ended = subprocess.run([sys.executable, "-c", BUSY, log], capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    assert "Traceback" not in ended.stderr
    assert ended.stdout.strip() and not Path(ended.stdout.strip()).exists()
