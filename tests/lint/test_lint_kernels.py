"""Writes in kernels: what is refused for sure is found, and what compiles is not."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from programs import check, source

from numba_offload.lint.check import check_paths, check_sources

REFUSED = Path(__file__).parents[1] / "safety" / "refused_kernels"


def test_indices_that_are_plain_integers() -> None:
    check("""
    LAST = 3

    @offload_kernel
    def constants(y, n):
        y[0] = 1.0  # <- NO402
        y[-1] = 1.0  # <- NO402
        y[n] = 1.0  # <- NO402
        y[1:3] = 0.0  # <- NO402
        y[...] = 0.0  # <- NO402

    @offload_kernel
    def arithmetic(x, where, y):
        n = y.shape[0]
        for i in y.indices():
            y[i] = x[i + 1]
            y[i + 1] = 1.0  # <- NO402
            k = i // 2
            y[k] += 1.0  # <- NO402
            y[where[i]] = 1.0  # <- NO402
            y[min(i, n)] = 1.0  # <- NO402
            y[i if x[i] > 0 else 0] = 1.0  # <- NO402
        for j in range(n):
            y[j] = 1.0  # <- NO402
        for slot, i in enumerate(y.indices()):
            y[i] = slot
            y[slot] = 1.0  # <- NO402
    """)


def test_an_index_outside_of_its_loop() -> None:
    check("""
    @offload_kernel
    def after(y):
        for i in y.indices():
            y[i] = 1.0
        else:
            y[i] = 2.0  # <- NO402
        y[i] = 3.0  # <- NO402

    @offload_kernel
    def bound_again(y):
        for i in y.indices():
            y[i] = 1.0
        for i in y.indices():
            y[i] = 2.0
    """)


def test_components_of_indices() -> None:
    check("""
    @offload_kernel
    def planes(y, z, u):
        for i, j in y.indices():
            y[i, j] = 1.0
            y[j, i] = 1.0  # <- NO403
            y[i, i] = 1.0  # <- NO403
            y[i, 0] = 1.0  # <- NO402
            u[i] = 1.0  # <- NO403
            for p, q in z.indices():
                z[p, q] = 1.0
                z[p, j] = 1.0  # <- NO403
        for at in y.indices():
            y[at] = 1.0
        for k, (a, b) in enumerate(y.indices()):
            y[a, b] = k
        for m, n in zip(u.indices(), u.indices()):
            u[m] = u[n]
    """)


def test_what_is_not_certain_is_left_to_the_compiler() -> None:
    check("""
    @offload_function
    def put(y, i):
        y[i + 0] = 1.0

    @offload_kernel
    def fine(x, y, p, flag):
        block = y.local
        block[0] = 1.0
        for k in range(block.shape[0]):
            block[k] = x[k]
            y.local[k] += 1.0
        k = 0
        for k in y.indices():
            y[k] = 1.0
            put(y, k)
        p.velocity[0] = 1.0
        p[1][0] = 1.0
        for i in (x, y):
            y[i] = 1.0

    @offload_kernel(unsafe=True)
    def raw(y):
        y[0] = 1.0

    def plain(y):
        y[0] = 1.0
    """)


def test_fields_of_elements_and_several_targets() -> None:
    check("""
    @offload_kernel
    def fields(r, q):
        for i in r.indices():
            r[i].mass = 1.0
            r[0].mass = 1.0  # <- NO402
            r[i]["mass"], q[i + 1] = 1.0, 2.0  # <- NO402
            (r[i], [q[i], q[2]]) = 1.0, (2.0, 3.0)  # <- NO402
    """)


def test_captured_arrays_are_only_read() -> None:
    check("""
    TABLE = np.zeros(8)

    @offload_kernel
    def table(y):
        for i in y.indices():
            y[i] = TABLE[i]
            TABLE[i] = y[i]  # <- NO401

    def make():
        held = np.zeros(3)
        @offload_kernel
        def inner(y):
            for i in y.indices():
                held[i] = 1.0  # <- NO401
        return inner
    """)


def test_arrays_where_regions_belong() -> None:
    check("""
    @offload_kernel
    def fields(x, y, n):
        for i in y.indices():
            y[i].mass = x[i] + n.size

    def host(given, flag):
        x, y = np.zeros(9), np.zeros(9)
        saxpy(2.0, x, Region(y))
        saxpy(2.0, x, y)  # <- NO401
        saxpy(2.0, y=y[1:], x=x)  # <- NO401
        saxpy[1, 32](2.0, x, np.zeros(9))  # <- NO401
        fields(x, y, x)  # <- NO401
        saxpy(2.0, x, given)
        region = Region(y)
        saxpy(2.0, x, region)
        either = y if flag else Region(y)
        saxpy(2.0, x, either)
        saxpy(2.0, *(x, Region(y)))
        with preload_mut(y) as gy:
            saxpy(2.0, x, gy)
    """)


def test_blocks_that_a_partition_does_not_have() -> None:
    check("""
    import partitioning
    from numba_offload import Chunked1D, GridStride1D

    @offload_kernel
    def scan(y):
        block = y.local
        for k in range(1, len(block)):
            block[k] += block[k - 1]

    def host(y, strategy):
        scan(Region(y, Chunked1D(8)))
        scan(Region(y, GridStride1D()))  # <- NO404
        scan(Region(y, strategy=partitioning.Permuted(y)))  # <- NO404
        scan(Region(y, strategy))
        scan(Region(y, GridStride1D().then(strategy)))
    """)


@pytest.mark.parametrize(
    "imports, name",
    [
        ("import numba_offload", "numba_offload.offload_kernel"),
        ("import numba_offload as no", "no.offload_kernel"),
        ("import numba_offload as no", "no.offload_kernel()"),
        ("from numba_offload import offload_kernel as k", "k(cache=True)"),
        ("from numba_offload.kernel import offload_kernel", "offload_kernel"),
        ("import numba_offload.kernel as inner", "inner.offload_kernel"),
        ("from numba_offload import *", "offload_kernel"),
        ("import numba_offload\nkernel = numba_offload.offload_kernel", "kernel"),
        ("try:\n    from numba_offload import offload_kernel\nexcept ImportError:\n    raise", "offload_kernel"),
    ],
)
def test_every_way_to_name_the_decorator(imports: str, name: str) -> None:
    found = check_sources([source(f"{imports}\n@{name}\ndef first(y):\n    y[0] = 1.0\n")])
    assert [finding.code for finding in found] == ["NO402"]


def test_a_decorator_of_that_name_from_elsewhere_is_none() -> None:
    assert check_sources([source("from other import offload_kernel\n@offload_kernel\ndef f(y):\n    y[0] = 1.0\n")]) == []


def test_kernels_of_other_files() -> None:
    text = "from numba_offload import offload_kernel\n@offload_kernel\ndef fill(y):\n    for i in y.indices():\n        y[i] = 1."
    kernels = source(text, "package/kernels.py")
    use = "import numpy as np\n{}\ny = np.zeros(3)\n{}(y)\n"
    for imports, name in [
        ("from package.kernels import fill", "fill"),
        ("import package.kernels", "package.kernels.fill"),
        ("import package.kernels as k", "k.fill[1, 32]"),
        ("from package import kernels", "kernels.fill"),
    ]:
        main = source(use.format(imports, name), "main.py")
        assert [f.code for f in check_sources([kernels, main])] == ["NO401"], imports
    elsewhere = source(use.format("from kernels import fill", "fill"), "other/main.py")
    assert check_sources([kernels, elsewhere]) == [], "kernels.py of another folder is another module"


def test_kernels_that_a_package_passes_on(tmp_path: Path) -> None:
    package = tmp_path / "package"
    (package / "inner").mkdir(parents=True)
    text = "from numba_offload import offload_kernel\n@offload_kernel\ndef fill(y):\n    for i in y.indices():\n        y[i] = 1."
    (package / "inner" / "__init__.py").write_text("")
    (package / "inner" / "kernels.py").write_text(text)
    (package / "__init__.py").write_text("from .inner.kernels import fill as filled\n")
    (tmp_path / "main.py").write_text("import numpy as np\nfrom package import filled\nfilled(np.zeros(3))\n")
    (package / "inner" / "use.py").write_text("import numpy\nfrom .. import filled as f\nf(numpy.ones(3))\n")
    found = check_paths([tmp_path]).findings
    assert [(f.place.path.name, f.place.line, f.code) for f in found] == [("main.py", 3, "NO401"), ("use.py", 3, "NO401")]


def test_imports_in_a_circle() -> None:
    one = source("from two import fill\nfill(1)\n", "one.py")
    two = source("from one import fill\nfill(1)\ncopy = copy\ncopy(1)\n", "two.py")
    assert check_sources([one, two]) == []


def test_refused_kernels_are_found_at_their_marked_lines() -> None:
    """The kernels that the compiler's tests refuse: much is beyond the text, but nothing is told of a line that is right."""
    seen = []
    for path in sorted(REFUSED.glob("*.py")):
        text = re.sub(r"^@refused\(.*\)$", "@offload_kernel", path.read_text(), flags=re.MULTILINE)
        text = text.replace("from __future__ import annotations\n", "from numba_offload import offload_kernel\n")
        seen += [(path.name, finding.source.strip()) for finding in check_sources([source(text, str(path))])]
    # Three kernels are refused at an earlier line for another reason; these of their lines would be refused as well.
    beside = {("newcomers.py", "y[i] = 1.0"), ("whole_regions.py", "y[0] = part[0]"), ("whole_regions.py", "y[0] = value")}
    assert {each for each in seen if "# <- here" not in each[1]} == beside
    assert len(seen) >= 26
