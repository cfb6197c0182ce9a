"""The cache's folder: where it is, whom it belongs to, and what happens where there is none."""

from __future__ import annotations

import errno
import os
import stat
import subprocess
import sys
import time
import warnings
from pathlib import Path

import pytest
from cached_kernels import HIT, MISS, again, counts, nothing_compiles, run

import numba_offload
from numba_offload import CacheWarning, offload_kernel
from numba_offload.cache import folder as cache_folder
from numba_offload.cache.folder import cache_path

pytestmark = pytest.mark.skipif(not hasattr(os, "geteuid"), reason="the cache needs to know who owns a file")


@offload_kernel
def doubled(x, y):
    for i in y.indices():
        y[i] = 2 * x[i]


DOUBLED = [0.0, 2.0, 4.0, 6.0]


def without_cache(reason):
    """Two kernels work, and the reason is told once."""
    with pytest.warns(CacheWarning, match=reason) as told:
        for _ in range(2):
            kernel = again(doubled)
            assert run(kernel) == DOUBLED
            assert counts(kernel) == MISS
            assert kernel.cache_stats.written == 0
    assert len(told) == 1
    assert told[0].filename.endswith("cached_kernels.py")


# ------------------------------------------------------------------------------------------------------- where it is


@pytest.mark.parametrize(
    "environment, expected",
    [
        ({"NUMBA_OFFLOAD_CACHE_DIR": "/a/b", "XDG_CACHE_HOME": "/x", "HOME": "/h"}, "/a/b"),
        ({"XDG_CACHE_HOME": "/x", "HOME": "/h"}, "/x/numba_offload"),
        ({"XDG_CACHE_HOME": "relative", "HOME": "/h"}, "/h/.cache/numba_offload"),
        ({"NUMBA_OFFLOAD_CACHE_DIR": "", "XDG_CACHE_HOME": "", "HOME": "/h"}, "/h/.cache/numba_offload"),
        ({"HOME": "relative"}, None),
    ],
)
def test_where_it_is(environment, expected, monkeypatch):
    for name in ("NUMBA_OFFLOAD_CACHE_DIR", "XDG_CACHE_HOME", "HOME"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert cache_path() == (None if expected is None else Path(expected))


@pytest.mark.parametrize("home", [None, ""])
def test_without_a_home_the_system_is_asked(home, monkeypatch):
    pwd = pytest.importorskip("pwd")
    for name in ("NUMBA_OFFLOAD_CACHE_DIR", "XDG_CACHE_HOME", "HOME"):
        monkeypatch.delenv(name, raising=False)
    if home is not None:
        monkeypatch.setenv("HOME", home)
    monkeypatch.setattr(pwd, "getpwuid", lambda uid: pwd.struct_passwd(["me", "x", uid, 0, "", "/homes/me", ""]))
    assert cache_path() == Path("/homes/me/.cache/numba_offload")


def test_no_home_at_all(folder, cpu, monkeypatch):
    pwd = pytest.importorskip("pwd")

    def nobody(uid):
        raise KeyError(uid)

    for name in ("NUMBA_OFFLOAD_CACHE_DIR", "XDG_CACHE_HOME", "HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(pwd, "getpwuid", nobody)
    without_cache("cannot be cached in any folder: no home folder is known")


# -------------------------------------------------------------------------------------------------- whom it belongs to


def test_only_the_user_can_read_what_is_made(tmp_path, folder, cpu, monkeypatch):
    monkeypatch.setenv("NUMBA_OFFLOAD_CACHE_DIR", str(tmp_path / "new" / "cache"))
    before = os.umask(0)
    try:
        run(again(doubled))
    finally:
        os.umask(before)
    made = tmp_path / "new" / "cache"
    assert stat.S_IMODE(made.stat().st_mode) == 0o700
    files = list(made.iterdir())
    assert sorted(path.suffix for path in files) == [".code", ".record"]
    assert {stat.S_IMODE(path.stat().st_mode) for path in files} == {0o600}


@pytest.mark.parametrize("mode", [0o777, 0o770, 0o702, 0o1777])
def test_a_folder_that_others_can_write_is_refused(mode, folder, cpu):
    run(again(doubled))
    folder.chmod(mode)
    without_cache(f"other users can write to it \\(mode {mode:o}\\); chmod go-w")
    folder.chmod(0o700)
    kernel = again(doubled)
    run(kernel)
    assert counts(kernel) == HIT


def test_a_folder_of_another_user_is_refused(folder, cpu, monkeypatch):
    run(again(doubled))
    monkeypatch.setattr(cache_folder.os, "geteuid", lambda: 12345)
    without_cache("it belongs to another user")


@pytest.mark.parametrize("ending, found", [("record", (0, 1, 1, 0)), ("code", (1, 0, 0, 1))])
def test_a_file_that_others_can_write_is_not_used(ending, found, folder, cpu):
    run(again(doubled))
    (path,) = folder.glob(f"*.{ending}")
    path.chmod(0o666)
    with pytest.warns(CacheWarning, match=rf"other users can write to doubled-.*\.{ending}"):
        kernel = again(doubled)
        assert run(kernel) == DOUBLED
    assert counts(kernel) == found
    # It made way for one of the user's own.
    kernel = again(doubled)
    run(kernel)
    assert counts(kernel) == HIT


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can give files away")
def test_what_belongs_to_another_user(folder, cpu):
    run(again(doubled))
    (code,) = folder.glob("*.code")
    os.chown(code, 12345, -1)
    with pytest.warns(CacheWarning, match=r"\.code belongs to another user \(uid 12345\)"):
        kernel = again(doubled)
        assert run(kernel) == DOUBLED
    assert counts(kernel) == (1, 0, 0, 1)
    os.chown(folder, 12345, -1)
    without_cache(r"it belongs to another user \(uid 12345\)")


def test_a_link_to_a_folder_of_the_users_will_do(tmp_path, folder, cpu):
    (tmp_path / "real").mkdir(0o700)
    folder.symlink_to(tmp_path / "real")
    run(again(doubled))
    kernel = again(doubled)
    run(kernel)
    assert counts(kernel) == HIT
    assert len(list((tmp_path / "real").iterdir())) == 2


@pytest.mark.parametrize("what", ["link", "pipe", "folder"])
def test_what_is_no_file_is_no_cache(what, tmp_path, folder, cpu):
    run(again(doubled))
    for path in list(folder.iterdir()):
        kept = tmp_path / path.name
        path.rename(kept)
        if what == "link":
            path.symlink_to(kept)
        elif what == "pipe":
            os.mkfifo(path)
        else:
            path.mkdir()
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        kernel = again(doubled)
        assert run(kernel) == DOUBLED
    assert {w.category for w in told} == {CacheWarning}
    assert counts(kernel) == MISS


# ------------------------------------------------------------------------------------------- where nothing can be kept


@pytest.mark.parametrize("below", ["file", "/proc/none"])
def test_a_folder_that_cannot_be_made(below, tmp_path, folder, cpu, monkeypatch):
    (tmp_path / "file").touch()
    monkeypatch.setenv("NUMBA_OFFLOAD_CACHE_DIR", str(tmp_path / below / "cache"))
    without_cache("cannot be cached in .*/cache: ")


def failing(monkeypatch, name, number):
    """A function of the system fails for files that are being written."""
    real = getattr(os, name)

    def fail(first, *args, **kwargs):
        if name != "open" or args[0] & os.O_CREAT:
            raise OSError(number, os.strerror(number))
        return real(first, *args, **kwargs)

    monkeypatch.setattr(cache_folder.os, name, fail)


@pytest.mark.parametrize(
    "name, number", [("open", errno.EROFS), ("open", errno.EACCES), ("write", errno.ENOSPC), ("replace", errno.EDQUOT)]
)
def test_a_disk_that_takes_nothing(name, number, folder, cpu, monkeypatch):
    monkeypatch.setattr(cache_folder.os, "supports_dir_fd", {*os.supports_dir_fd, os.open})
    with monkeypatch.context() as patch:
        failing(patch, name, number)
        if name == "open":
            patch.setattr(cache_folder.os, "supports_dir_fd", {os.open})
        without_cache(os.strerror(number))
    assert list(folder.iterdir()) == []


def test_what_a_read_only_folder_has_is_used(folder, cpu, monkeypatch, recwarn):
    run(again(doubled))
    failing(monkeypatch, "open", errno.EROFS)
    monkeypatch.setattr(cache_folder.os, "supports_dir_fd", {os.open})
    monkeypatch.setattr(cache_folder.os, "utime", None)
    nothing_compiles(monkeypatch)
    kernel = again(doubled)
    assert run(kernel) == DOUBLED
    assert counts(kernel) == HIT
    assert not [w for w in recwarn if w.category is CacheWarning]


READ_ONLY = """
import sys, warnings
sys.path[:0] = [{root!r}]
import os
os.setuid(65534)
import numpy as np
from numba_offload import CacheWarning, Region, offload_kernel

@offload_kernel(cache=True)
def k(y):
    for i in y.indices():
        y[i] = 1

with warnings.catch_warnings(record=True) as told:
    warnings.simplefilter("always")
    y = np.zeros(3)
    k(Region(y))
print(y.tolist(), [str(w.message) for w in told if w.category is CacheWarning])
"""


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="becomes another user, as only root can")
def test_as_a_user_without_a_home(tmp_path):
    root = Path(numba_offload.__file__).parents[1]
    environment = {k: v for k, v in os.environ.items() if k not in ("HOME", "XDG_CACHE_HOME", "NUMBA_OFFLOAD_CACHE_DIR")}
    environment.update(NUMBA_OFFLOAD_TARGET="cpu", PYTHONDONTWRITEBYTECODE="1", HOME="/nowhere/at/all")
    script = READ_ONLY.format(root=str(root))
    done = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=False,
                          cwd="/", timeout=120)  # fmt: skip
    if "PermissionError" in done.stderr or "ModuleNotFoundError" in done.stderr:
        pytest.skip("another user cannot import the package here")
    assert done.stdout.startswith("[1.0, 1.0, 1.0] ['compiled kernels cannot be cached in /nowhere"), done.stderr
    assert done.stdout.count("cannot be cached") == 1


# ------------------------------------------------------------------------------------------------------------- pruning


def test_the_oldest_files_make_way(folder, cpu, monkeypatch):
    run(again(doubled))
    old = time.time() - 1e6
    for k in range(20):
        path = folder / f"old-{k}.code"
        path.write_bytes(b"x" * 1000)
        os.utime(path, (old + k, old + k))
    (folder / "notes.txt").write_bytes(b"y" * 10**6)
    os.utime(folder / "notes.txt", (0, 0))
    abandoned, busy = folder / ".writing-1-a", folder / ".writing-2-b"
    for path in (abandoned, busy):
        path.write_bytes(b"z" * 1000)
    os.utime(abandoned, (old, old))
    size = sum(path.stat().st_size for path in folder.glob("doubled-*"))
    monkeypatch.setattr(cache_folder, "MAX_BYTES", 2 * size + 4500)
    monkeypatch.setattr(cache_folder, "_writes", cache_folder._PRUNED_EVERY - 1)
    kernel = again(offload_kernel(fastmath=True)(doubled.py_func))
    run(kernel)
    assert {path.name for path in folder.glob("old-*")} <= {f"old-{k}.code" for k in range(15, 20)}
    assert len(list(folder.glob("doubled-*"))) == 4
    assert (folder / "notes.txt").exists()
    assert busy.exists()
    assert not abandoned.exists()


def test_what_is_used_stays_young(folder, cpu):
    run(again(doubled))
    old = time.time() - 1e6
    for path in folder.iterdir():
        os.utime(path, (old, old))
    run(again(doubled))
    assert all(path.stat().st_mtime > old + 1000 for path in folder.iterdir())


def test_a_relative_folder_without_a_working_directory(folder, monkeypatch, tmp_path):
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    monkeypatch.setenv("NUMBA_OFFLOAD_CACHE_DIR", "relative")
    gone.rmdir()
    assert cache_folder.read_file("a.record") is None
    with pytest.warns(CacheWarning, match="cannot be cached in relative: No such file"):
        assert not cache_folder.write_file("a.record", b"data")
