"""What holds for every kernel of this folder's tests, besides what the tests say.

What is compiled for the CPU is compiled and linked for AMD GPUs too. What is launched on an emulated AMD GPU gives the
CPU's results bit for bit.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from emulation.compiled_for_amd import compiled_for_amd, why_not
from emulation.same_bits import SameBits

_same_bits = SameBits()


@pytest.fixture(autouse=True)
def _on_amd_gpus_too(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    if "cpu-unified" in request.node.name and why_not() is None:
        with compiled_for_amd(monkeypatch):
            yield
    elif request.node.get_closest_marker("emulated"):
        with _same_bits.required(monkeypatch):
            yield
    else:
        yield


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """How many launches were compared bit for bit."""
    if SameBits.compared:
        terminalreporter.write_line(
            f"emulated AMD GPUs: {SameBits.compared} launches gave the CPU's bits; {SameBits.left_out} were not compared "
            "(mathematics, sums of floats in any order)"
        )
