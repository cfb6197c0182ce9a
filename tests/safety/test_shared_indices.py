"""Index expressions in which one part is used again and again: decided in steps, not in paths."""

from __future__ import annotations

import numpy as np
import pytest

from numba_offload import Region, offload_kernel, use_target
from numba_offload.analysis.affine import Access, Expression, Facts, symbols

DOUBLINGS = 60


def doubled(text: str) -> str:
    lines = [f"        k{n + 1} = k{n} + k{n}" for n in range(DOUBLINGS)]
    return "\n".join([text, *lines, f"        y[i] = x[k{DOUBLINGS}]\n"])


def test_an_index_that_is_doubled_dozens_of_times():
    namespace: dict[str, object] = {}
    exec(doubled("def k(x, y):\n    for i in y.indices():\n        k0 = i - i"), namespace)
    exec(doubled("def far(x, by, y):\n    for i in y.indices():\n        k0 = i + by"), namespace)
    x, y = np.arange(9.0) + 5, np.zeros(7)
    with use_target("cpu"):
        # The interval of i - i is (-6, 6) here, so the variant with checks runs.
        offload_kernel(namespace["k"])(x, Region(y))
        assert y.tolist() == [5.0] * 7
        far = offload_kernel(namespace["far"])
        far(x, 0, Region(y[:1]))
        assert y[0] == 5.0
        with pytest.raises(IndexError, match=str(2**DOUBLINGS)):
            far(x, 1, Region(y[:1]))


def test_the_interval_of_a_shared_part_is_that_of_the_tree():
    node = Expression("owned", ("y", 0))
    for _ in range(DOUBLINGS):
        node = Expression("+", (node, node))
    node = Expression("-", (Expression("*", (node, node)), Expression("scalar", ("a",))))
    assert node.evaluate(Facts({"y": (4,)}, {"a": 1})) == (-1, (3 * 2**DOUBLINGS) ** 2 - 1)
    assert symbols([node, node]) == {("shape", "y"), ("scalar", "a")}
    assert not Access((), "y", (node,)).in_range(Facts({"y": (4,)}, {"a": 0}))
    assert Access((), "y", (node,)).in_range(Facts({"y": (1,)}, {"a": 0}))


@pytest.mark.parametrize("every", [1, 450])
def test_a_long_chain_of_sums_is_checked_in_the_kernel(every):
    """With an access at each step the expressions grow one by one; with one at the end, all at once."""
    levels = max(150, every)
    lines = ["def chain(x, by, y):", "    for i in y.indices():", "        total = 0.0", "        k0 = i + by"]
    for n in range(levels):
        lines.append(f"        k{n + 1} = k{n} + 1")
        if (n + 1) % every == 0:
            lines.append(f"        total += x[k{n + 1}]")
    namespace: dict[str, object] = {}
    exec("\n".join([*lines, "        y[i] = total\n"]), namespace)
    chain = offload_kernel(namespace["chain"])
    x, y = np.ones(1000), np.zeros(3)
    with use_target("cpu"):
        chain(x, 0, Region(y))
        assert y.tolist() == [levels // every] * 3
        with pytest.raises(IndexError):
            chain(x, 999, Region(y))
