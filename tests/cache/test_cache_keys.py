"""Whatever compiled code follows from, changed: the code on disk is not taken."""

from __future__ import annotations

import os
import sys

import llvmlite
import numba
import numpy as np
import pytest
from cached_kernels import HIT, MISS, again, counts, imported, run

from numba_offload import CacheWarning, Region
from numba_offload.cache import versions
from numba_offload.errors import NotPlainError

HELPER = """
    import math
    import numba
    from numba_offload import PartitioningStrategy, offload_function
    from deeper import thrice

    SHIFT = 3.0

    class Complaint(Exception):
        pass

    @offload_function
    def twist(v):
        if v > 1000:
            raise Complaint("too large", v)
        return thrice(v) + SHIFT

    @numba.njit
    def half(v):
        return v / 2

    class Backwards(PartitioningStrategy):
        ndim = 1
        last = 1

        def count(self, t, T, shape):
            return 1 if t < shape[0] else 0

        def index(self, t, k, T, shape):
            return shape[0] - self.last - t

        def threads(self, shape):
            return shape[0]
"""
DEEPER = """
    from numba_offload import offload_function

    @offload_function
    def thrice(v):
        return 3 * v
"""
MAIN = """
    import helper
    from helper import half
    from numba_offload import offload_kernel

    FACTOR = 2.0
    TABLE = (1.0, 2.0)

    def closure(c):
        @offload_kernel(cache=True)
        def k(x, y, more=0):
            for i in y.indices():
                y[i] = FACTOR * helper.twist(half(x[i])) + TABLE[1] + c + more
        return k

    k = closure(1.0)
"""


def edited(text, old, new):
    assert text.count(old) == 1
    return text.replace(old, new)


def made(folder, main=MAIN, helper=HELPER, deeper=DEEPER):
    # In the order of imports, so that none is found under its old version.
    return imported(folder, deeper=deeper, helper=helper, main=main)


def outcome(module):
    """What a call of the kernel found on disk."""
    x, y = np.arange(5.0), np.zeros(5)
    module.k(x, Region(y, module.helper.Backwards()))
    return counts(module.k)


# And what checks the strategy.
HITS, MISSES = (1, 0, 2, 0), (0, 1, 0, 2)


@pytest.fixture
def start(folder, cpu, tmp_path):
    """The unchanged kernel is on disk."""
    assert outcome(made(tmp_path)) == MISSES
    assert outcome(made(tmp_path)) == HITS
    return tmp_path


EDITS = {
    "kernel": ("main", "TABLE[1] + c", "TABLE[1] - c"),
    "lines of the kernel": ("main", "    def closure", "\n    def closure"),
    "an unused default": ("main", "more=0", "more=1"),
    "global": ("main", "FACTOR = 2.0", "FACTOR = 2.5"),
    "kind of a global": ("main", "FACTOR = 2.0", "FACTOR = 2"),
    "item of a tuple": ("main", "(1.0, 2.0)", "(1.0, 3.0)"),
    "closure": ("main", "closure(1.0)", "closure(-1.0)"),
    "fastmath": ("main", "cache=True", "cache=True, fastmath=True"),
    "boundscheck": ("main", "cache=True", "cache=True, boundscheck=False"),
    "contract": ("main", "cache=True", "cache=True, contract=True"),
    "callee in another file": ("helper", "thrice(v) + SHIFT", "thrice(v) - SHIFT"),
    "lines of a callee": ("helper", "    @offload_function", "\n    @offload_function"),
    "global of a callee": ("helper", "SHIFT = 3.0", "SHIFT = 4.0"),
    "plain jitted callee": ("helper", "v / 2", "v / 4"),
    "callee of a callee": ("deeper", "3 * v", "4 * v"),
}
CHECK_IS_KEPT = (0, 1, 1, 1)


@pytest.mark.parametrize("what", EDITS)
def test_an_edit(what, start):
    where, old, new = EDITS[what]
    sources = {"main": MAIN, "helper": HELPER, "deeper": DEEPER}
    sources[where] = edited(sources[where], old, new)
    changed = made(start, **sources)
    found = outcome(changed)
    # A line that moves the strategy makes another one of it, whose errors would tell other lines.
    assert found == (MISSES if what == "lines of a callee" else CHECK_IS_KEPT)
    assert outcome(made(start)) == HITS


@pytest.mark.parametrize(
    "old, new",
    [
        ("shape[0] - self.last - t", "(shape[0] - self.last) - (t + 0)"),
        ("last = 1", "last = 1\n        unused = 3\n        "),
        ("return 1 if t < shape[0] else 0", "return int(t < shape[0])"),
    ],
)
def test_another_strategy(old, new, start):
    assert outcome(made(start, helper=edited(HELPER, old, new))) == MISSES
    assert outcome(made(start)) == HITS


def test_a_module_that_is_called_like_one_of_pythons(folder, cpu, tmp_path, monkeypatch):
    main = """
        import profile
        from profile import Kind
        from numba_offload import offload_kernel

        @offload_kernel(cache=True)
        def k(x, y):
            module = profile
            for i in y.indices():
                if Kind.ONE == 2:
                    y[i] = 0.0
                else:
                    y[i] = module.STEP * x[i]
    """
    theirs = """
        import enum
        STEP = 2

        class Kind(enum.IntEnum):
            ONE = 1
    """
    for name in ("profile", "main"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    for source, expected, found in (
        (theirs, [0, 2, 4, 6], MISS),
        (edited(theirs, "STEP = 2", "STEP = 3"), [0, 3, 6, 9], MISS),
        (edited(theirs, "ONE = 1", "ONE = 2"), [0, 0, 0, 0], MISS),
        (theirs, [0, 2, 4, 6], HIT),
    ):
        kernel = imported(tmp_path, profile=source, main=main).k
        assert run(kernel) == expected
        assert counts(kernel) == found
    del sys.modules["profile"]  # not by monkeypatch, which would put it back


def test_an_array_of_a_module_is_frozen_in_an_unsafe_kernel(folder, cpu, tmp_path):
    main = """
        import deeper
        from numba_offload import offload_kernel

        @offload_kernel(cache=True, unsafe=True)
        def k(y):
            for i in range(y.size):
                y[i] = deeper.TABLE[i]
    """
    for content, found in (("[1.0, 2.0]", MISS), ("[1.0, 3.0]", MISS), ("[1, 2]", MISS), ("[1.0, 2.0]", HIT)):
        kernel = imported(tmp_path, deeper=f"import numpy as np\nTABLE = np.array({content})\n", main=main).k
        y = np.zeros(2)
        kernel[1, 1](y)
        assert str(y.tolist()) == content.replace("[1, 2]", "[1.0, 2.0]")
        assert counts(kernel) == found


def test_what_changes_nothing(start):
    assert outcome(made(start, main=MAIN + "\n    UNUSED = 3\n")) == HITS
    assert outcome(made(start, helper=HELPER + "\n    UNUSED = 3\n")) == HITS


def test_another_folder_is_another_file_in_error_messages(start):
    other = start / "other"
    other.mkdir()
    assert outcome(made(other)) == MISSES


@pytest.fixture
def kernel(folder, cpu, tmp_path):
    found = imported(tmp_path, main="""
        from numba_offload import offload_kernel

        @offload_kernel(cache=True)
        def k(x, y):
            for i in y.indices():
                y[i] = 2 * x[i]
    """).k  # fmt: skip
    run(found)
    assert counts(found) == MISS
    return found


@pytest.mark.parametrize(
    "module, name, value",
    [
        (numba, "__version__", "0.68.9"),
        (llvmlite, "__version__", "0.50.9"),
        (np, "__version__", "2.4.99"),
        (versions.ll, "llvm_version_info", (22, 1, 9)),
        (versions.sys, "version", "3.11.99"),
        (versions, "sources_digest", lambda: "another"),
        (numba.config, "EXTEND_VARIABLE_LIFETIMES", 7),
    ],
)
def test_another_version(module, name, value, kernel, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(module, name, value)
        other = again(kernel)
        run(other)
        assert counts(other) == MISS
    same = again(kernel)
    run(same)
    assert counts(same) == HIT


def test_another_processor(kernel, monkeypatch):
    from numba_offload.targets.cpu.target import CPUTarget

    with monkeypatch.context() as patch:
        patch.setattr(CPUTarget, "arch", property(lambda self: "another,+features"))
        other = again(kernel)
        run(other)
        assert counts(other) == (1, 0, 0, 1)
    same = again(kernel)
    run(same)
    assert counts(same) == HIT


def test_other_argument_types(kernel):
    other = again(kernel)
    other(np.arange(5.0, dtype="f4"), Region(np.zeros(4)))
    assert counts(other) == MISS
    other(np.arange(10.0)[::2], Region(np.zeros(4)))
    assert counts(other) == (0, 2, 0, 2)


def test_sources_that_changed_after_they_were_imported(kernel, monkeypatch):
    versions.sources_digest.cache_clear()
    monkeypatch.setattr(versions, "_IMPORTED", 0.0)
    other = again(kernel)
    with pytest.warns(CacheWarning, match=r"kernel 'k' is compiled in each process.*\.py has changed since it was imported"):
        run(other)
    assert other.cache_stats.uncached == 1
    monkeypatch.undo()
    versions.sources_digest.cache_clear()


def test_sources_that_are_not_there(monkeypatch):
    versions.sources_digest.cache_clear()
    monkeypatch.setattr(versions, "_sources", lambda: iter(()))
    with pytest.raises(NotPlainError, match="source files"):
        versions.versions()
    versions.sources_digest.cache_clear()


def test_the_digest_of_the_sources_sees_every_file():
    paths = [str(path.relative_to(root)) for root, path in versions._sources()]
    for name in ("numba_offload/kernel.py", "numba_offload/targets/cpu/entry.py", "partitioning/strategy.py"):
        assert name.replace("/", os.sep) in paths


def test_a_value_without_a_form_is_named_once(folder, cpu, recwarn):
    class Local(Exception):
        pass

    def body(x, y):
        for i in y.indices():
            if x[i] > 100:
                raise Local("large", x[i])
            y[i] = 2 * x[i]

    from numba_offload import offload_kernel

    for _ in range(2):
        kernel = offload_kernel(cache=True)(body)
        assert run(kernel) == [0, 2, 4, 6]
        assert kernel.cache_stats.uncached == 1
    (told,) = [w for w in recwarn if w.category is CacheWarning]
    assert "kernel 'body' is compiled in each process, in spite of cache=True: 'Local'" in str(told.message)
    assert told.filename.endswith("cached_kernels.py")
    assert not folder.exists()


def test_files_beside_the_sources(tmp_path, monkeypatch):
    """Editors leave links that lead nowhere, and a file may not be readable."""
    package = tmp_path / "package"
    package.mkdir()
    (package / "one.py").write_text("pass\n")
    (package / ".#one.py").symlink_to("nobody@nowhere.123")
    monkeypatch.setattr(versions, "__file__", str(package / "cache" / "versions.py"))
    assert [path.name for root, path in versions._sources() if root == tmp_path] == ["one.py"]
    (package / "two.py").symlink_to("nothing")
    monkeypatch.setattr(versions, "_IMPORTED", versions.time.time() + 60)
    versions.sources_digest.cache_clear()
    with pytest.raises(NotPlainError, match=r"two\.py.*cannot be read"):
        versions.sources_digest()
    versions.sources_digest.cache_clear()
