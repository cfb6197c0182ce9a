"""Cases from the field, 26 to 28: caches across processes, fork, Python threads and threading layers."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest

import numba_offload
from numba_offload import Region, offload_kernel

ROOT = Path(numba_offload.__file__).parents[1]


def run(script: Path, target, *args: str, timeout: float = 120, **environment: str) -> subprocess.CompletedProcess[str]:
    """A Python process on the test's target; its output is checked by the caller."""
    if target.emulated:
        pytest.skip("an emulated device lives in the test's own process")
    env = {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "NUMBA_OFFLOAD_TARGET": target.name,
        # Two versions of a file within one second have one time stamp: Python's own cache would mix them up.
        "PYTHONDONTWRITEBYTECODE": "1",
        **environment,
    }
    return subprocess.run(
        [sys.executable, str(script), *args], env=env, capture_output=True, text=True, timeout=timeout, check=False
    )


def lines(done: subprocess.CompletedProcess[str]) -> list[str]:
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def write(folder: Path, name: str, source: str) -> Path:
    path = folder / name
    path.write_text(textwrap.dedent(source))
    return path


# ------------------------------------------------------------------------------------------------------- 26: caches


CACHED = """
    import sys
    import numpy as np
    from numba_offload import Region, offload_kernel
    from helper import twist

    FACTOR = float(sys.argv[1])
    BOUNDS = sys.argv[2] == "checked"
    TABLE = (1.0, FACTOR)

    def closure(c):
        @offload_kernel(cache=True, boundscheck=BOUNDS)
        def k(x, y):
            for i in y.indices():
                y[i] = FACTOR * x[i] + TABLE[1] + c
        return k

    @offload_kernel(cache=True)
    def call(x, y):
        for i in y.indices():
            y[i] = twist(x[i])

    @offload_kernel(cache=True, boundscheck=BOUNDS)
    def beyond(x, y, by):
        for i in y.indices():
            y[i] = x[i + by]

    x, y = np.arange(4.0), np.zeros(4)
    closure(float(sys.argv[3]))(x, Region(y))
    print(y.tolist())
    call(x, Region(y))
    print(y.tolist())
    try:
        # Without checks nothing may be out of range; a stale kernel with them does no harm, one without would.
        beyond(np.arange(4.0), Region(y), 1 if BOUNDS else 0)
    except IndexError:
        print("IndexError")
    else:
        print("no error")
    print("compiled" if call.cache_stats.code_misses else "found")
"""

HELPER = """
    from numba_offload import offload_function

    SHIFT = {shift}

    @offload_function
    def twist(v):
        return {expression}
"""


def expected_output(factor, bounds, constant, twisted, found):
    x = np.arange(4.0)
    return [
        str((factor * x + factor + constant).tolist()),
        str(twisted(x).tolist()),
        "IndexError" if bounds == "checked" else "no error",
        found,
    ]


def test_case_26_a_second_process_never_gets_a_stale_result(target, tmp_path):
    script = write(tmp_path, "script.py", CACHED)
    twists = {
        ("0.0", "v + SHIFT"): lambda x: x + 0.0,
        ("3.0", "v + SHIFT"): lambda x: x + 3.0,
        ("3.0", "v - SHIFT"): lambda x: x - 3.0,
    }
    runs = [
        (2.0, "checked", 1.0, ("0.0", "v + SHIFT"), "compiled"),
        (2.0, "checked", 1.0, ("0.0", "v + SHIFT"), "found"),  # unchanged: what a cache is for
        (5.0, "checked", 1.0, ("3.0", "v + SHIFT"), "compiled"),  # another global, another global of the callee
        (5.0, "unchecked", 4.0, ("3.0", "v - SHIFT"), "compiled"),  # another option, another closure, another callee
        (2.0, "checked", 1.0, ("0.0", "v + SHIFT"), "found"),
    ]
    for factor, bounds, constant, (shift, expression), found in runs:
        write(tmp_path, "helper.py", HELPER.format(shift=shift, expression=expression))
        environment = {
            "PYTHONPATH": os.pathsep.join([str(ROOT), str(tmp_path)]), "NUMBA_OFFLOAD_CACHE_DIR": str(tmp_path / "cache")
        }  # fmt: skip
        done = run(script, target, str(factor), bounds, str(constant), **environment)
        assert lines(done) == expected_output(factor, bounds, constant, twists[shift, expression], found)


SCALE = 2.0


def test_case_26_within_one_process(target, monkeypatch):
    def body(x, y):
        for i in y.indices():
            y[i] = SCALE * x[i]

    plain, cached, fast = offload_kernel(body), offload_kernel(cache=True)(body), offload_kernel(fastmath=True)(body)
    x, y = np.arange(5.0), np.zeros(5)
    for scale in (2.0, 3.0, 2.0, 7):
        monkeypatch.setitem(globals(), "SCALE", scale)
        for kernel in (plain, cached, fast):
            kernel(x, Region(y))
            assert np.array_equal(y, scale * x)


def test_case_26_options_do_not_mix(target):
    def body(x, y):
        for i in y.indices():
            y[i] = x[i + 1]

    checked, unchecked = offload_kernel(body), offload_kernel(boundscheck=False)(body)
    x, y = np.arange(6.0), np.zeros(5)
    for _ in range(2):
        unchecked(x, Region(y))
        assert y.tolist() == [1, 2, 3, 4, 5]
        with pytest.raises(IndexError):
            checked(x[:5], Region(y))


def test_case_26_a_kernel_defined_again(target):
    results = []
    for constant in (1.0, 2.0):
        namespace: dict[str, object] = {"offload_kernel": offload_kernel}
        source = f"def k(y):\n    for i in y.indices():\n        y[i] = {constant}\n"
        exec(source, namespace)
        y = np.zeros(3)
        offload_kernel(namespace["k"])(Region(y))
        results.append(y.tolist())
    assert results == [[1.0] * 3, [2.0] * 3]


# --------------------------------------------------------------------------------------------------------- 27: fork


FORK = """
    import os, sys, threading
    import numpy as np
    from numba_offload import OffloadError, Region, offload_kernel

    @offload_kernel
    def k(x, y, a):
        for i in y.indices():
            y[i] = a * x[i]

    n = int(sys.argv[1])
    x, y = np.arange(float(n)), np.zeros(n)
    k(x, Region(y), 2.0)
    assert (y == 2 * x).all()
    sys.stdout.flush()

    pid = os.fork()
    if pid == 0:
        try:
            for factor in (3, 4.0):     # one type that is compiled, and one that is not
                k(x, Region(y), factor)
                assert (y == factor * x).all(), "wrong result"
        except OffloadError as error:
            print("refused:", error, flush=True)
            os._exit(0 if "fork" in str(error) else 3)
        except BaseException as error:
            print(repr(error), file=sys.stderr, flush=True)
            os._exit(2)
        print("right", flush=True)
        os._exit(0)
    status = os.waitpid(pid, 0)[1]
    k(x, Region(y), 5.0)
    assert (y == 5 * x).all()
    print("parent right, child", os.waitstatus_to_exitcode(status))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.parametrize("n", [100, 200_000])
@pytest.mark.parametrize("layer", ["workqueue", "omp", "tbb"])
def test_case_27_after_a_fork(target, tmp_path, layer, n):
    skip_without(layer)
    done = run(write(tmp_path, "fork.py", FORK), target, str(n), NUMBA_THREADING_LAYER=layer)
    child, parent = lines(done)
    assert parent == "parent right, child 0"
    if target.name == "cpu":
        assert child == "right" or "fork" in child
    else:
        assert child.startswith("refused:")
        assert "fork" in child


FORK_DURING_A_LAUNCH = """
    import os, signal, threading, time
    import numpy as np
    from numba_offload import Region, offload_kernel

    @offload_kernel
    def total(n, y):
        for i in y.indices():
            s = 0.0
            for j in range(n):
                s += (j % 7) * 0.5 + s * 1e-9
            y[i] = s

    y = np.zeros(4)
    total(10, Region(y))
    busy = threading.Thread(target=lambda: total(100_000_000, Region(y)))
    busy.start()
    time.sleep(0.1)
    pid = os.fork()
    if pid == 0:
        signal.alarm(20)
        total(10, Region(y))
        os._exit(0)
    print("child", os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
    busy.join()
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_case_27_a_fork_while_another_thread_is_in_a_launch(target, tmp_path):
    if target.name != "cpu":
        pytest.skip("a device cannot be used in a child forked after a launch; the error is tested above")
    assert lines(run(write(tmp_path, "fork.py", FORK_DURING_A_LAUNCH), target)) == ["child 0"]


POOL = """
    import multiprocessing, sys
    import numpy as np
    from numba_offload import Region, offload_kernel

    @offload_kernel
    def k(y, a):
        for i in y.indices():
            y[i] = a

    def work(a):
        y = np.zeros(100_000)
        k(Region(y), a)
        return float(y.sum())

    if __name__ == "__main__":
        if sys.argv[2] == "before":
            work(1.0)
        with multiprocessing.get_context(sys.argv[1]).Pool(2) as pool:
            print(pool.map(work, [1.0, 2.0, 3.0, 4.0], 1))
"""


@pytest.mark.parametrize("first", ["before", "never"])
@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_case_27_a_pool_of_processes(target, tmp_path, method, first):
    if method == "fork" and not hasattr(os, "fork"):
        pytest.skip("needs fork")
    if method == "fork" and first == "before" and target.name != "cpu":
        pytest.skip("a device cannot be used in a child forked after a launch; the error is tested above")
    done = run(write(tmp_path, "pool.py", POOL), target, method, first)
    assert lines(done) == [str([100_000.0 * a for a in (1.0, 2.0, 3.0, 4.0)])]


# ------------------------------------------------------------------------------------------------ 28: Python threads


def skip_without(layer: str) -> None:
    """Skip where this build of Numba has no such threading layer."""
    module = {"workqueue": "workqueue", "omp": "omppool", "tbb": "tbbpool"}[layer]
    probe = f"import numba.np.ufunc.{module}"
    done = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"Numba has no {layer} threading layer here: {done.stderr.strip().splitlines()[-1]}")


THREADS = """
    import sys, threading
    import numpy as np
    import numba
    from numba_offload import GridStride1D, Region, offload_function, offload_kernel

    @offload_function
    def twice(v):
        return v + v

    @offload_kernel
    def scale(x, y, a):
        for i in y.indices():
            y[i] = a * twice(x[i])

    @offload_kernel
    def fail(x, y, a):
        for i in y.indices():
            if x[i] > a:
                raise ValueError("above", a)
            y[i] = x[i]

    shared = np.arange(60_000.0)
    wrong = []
    barrier = threading.Barrier(4)

    def work(number):
        try:
            barrier.wait()          # the first launches, and so the compilations, come at once
            for round in range(20):
                n = 60_000 if round % 2 else 100
                y = np.zeros(n)
                a = float(10 * number + round)
                strategy = GridStride1D() if round % 3 else None
                scale(shared[:n], Region(y, strategy), a)
                if not np.array_equal(y, 2 * a * shared[:n]):
                    wrong.append((number, round, "scale"))
                try:
                    fail(shared[:n], Region(y), float(number))
                except ValueError as error:
                    if error.args[1] != number:
                        wrong.append((number, round, error.args))
                else:
                    wrong.append((number, round, "no error"))
        except BaseException as error:
            wrong.append((number, repr(error)))
            barrier.abort()

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    print(wrong)
    try:
        print(numba.threading_layer())
    except ValueError:
        print("not started")
"""


@pytest.mark.parametrize("workers", ["1", "3"])
@pytest.mark.parametrize("layer", ["workqueue", "omp", "tbb"])
def test_case_28_four_threads_launch_at_once(target, tmp_path, layer, workers):
    if target.name != "cpu" and (layer, workers) != ("workqueue", "1"):
        pytest.skip("the threading layer is the CPU target's")
    skip_without(layer)
    script = write(tmp_path, "threads.py", THREADS)
    done = run(script, target, NUMBA_THREADING_LAYER=layer, NUMBA_NUM_THREADS=workers)
    wrong, used = lines(done)
    assert wrong == "[]"
    if target.name == "cpu" and workers != "1":
        assert used == layer


def test_case_28_beside_numbas_own_parallel_code(target, tmp_path):
    script = write(
        tmp_path,
        "beside.py",
        """
        import threading
        import numba, numpy as np
        from numba_offload import Region, offload_kernel

        @numba.njit(parallel=True)
        def total(x):
            s = 0.0
            for i in numba.prange(x.size):
                s += x[i]
            return s

        @offload_kernel
        def k(x, y):
            for i in y.indices():
                y[i] = x[i] + 1

        x = np.ones(50_000)
        for _ in range(10):
            y = np.zeros(50_000)
            assert total(x) == 50_000
            k(x, Region(y))
            assert total(y) == 100_000
        print("right")
        """,
    )
    assert lines(run(script, target)) == ["right"]
