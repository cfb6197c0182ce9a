"""``transfer_guard``: what it lets through, what it shows, and that a refusal moves nothing."""

from __future__ import annotations

import shlex
import threading

import numpy as np
import pytest
from observed_kernels import arrays, saxpy, scale

from numba_offload import OffloadError, Region, TransferError, profile, transfer_guard
from numba_offload.mapping import ArrayUse
from numba_offload.targets.registry import current_target


def assert_nothing_mapped() -> None:
    device = current_target().device
    assert device.pool.bytes_in_use == 0 and not device.present.entries


def transfers(capsys: pytest.CaptureFixture[str]) -> list[dict[str, str]]:
    found = [shlex.split(line) for line in capsys.readouterr().err.splitlines()]
    assert all(words[:2] == ["numba_offload:", "transfer"] for words in found)
    return [dict(pair.split("=", 1) for pair in words[2:]) for words in found]


def test_a_refused_launch_moves_nothing(target):
    x, y = arrays()
    before = y.copy()
    with profile() as p, transfer_guard("disallow"):
        if target.separate:
            with pytest.raises(TransferError) as caught:
                saxpy(2.0, x, Region(y))
        else:
            saxpy(2.0, x, Region(y))
            before = 2.0 * x + 1.0
    np.testing.assert_array_equal(y, before)
    assert p.h2d_count == p.d2h_count == 0
    assert_nothing_mapped()
    if target.separate:
        message = str(caught.value)
        assert isinstance(caught.value, OffloadError) and isinstance(caught.value, RuntimeError)
        for part in ("kernel 'saxpy'", "argument 'y'", f"{y.nbytes} bytes", __file__, "transfer_guard('disallow')", "preload"):
            assert part in message
        saxpy(2.0, x, Region(y))
        np.testing.assert_array_equal(y, 2.0 * x + 1.0)


def test_a_copy_back_alone_is_refused_before_the_launch(discrete):
    x, y = arrays()
    present = current_target().device.present
    held = present.hold(ArrayUse("x", x, "to"))
    try:
        with transfer_guard("disallow"), pytest.raises(TransferError, match=r"back from the cpu device"):
            scale(2.0, x, Region(y))
    finally:
        present.release(held)
    assert (y == 1.0).all()
    assert_nothing_mapped()


def test_what_is_held_already_is_no_transfer(discrete):
    x, y = arrays()
    present = current_target().device.present
    held = [present.hold(ArrayUse("x", x, "to")), present.hold(ArrayUse("y", y, "tofrom"))]
    with transfer_guard("disallow_explicit"):
        saxpy(2.0, x, Region(y))
        for entry in held:  # what was computed comes back, whatever the guard says
            present.release(entry)
    np.testing.assert_array_equal(y, 2.0 * x + 1.0)
    assert_nothing_mapped()


def test_explicit_transfers_are_allowed_unless_disallowed_too(discrete):
    x, _ = arrays()
    present = current_target().device.present
    with transfer_guard("disallow"):
        present.release(present.hold(ArrayUse("x", x, "to")))
    with transfer_guard("disallow_explicit"), pytest.raises(TransferError, match="preloading 'x'"):
        present.hold(ArrayUse("x", x, "to"))
    assert_nothing_mapped()


def test_log_tells_each_implicit_transfer(discrete, capsys):
    x, y = arrays()
    present = current_target().device.present
    with transfer_guard("log"):
        saxpy(2.0, x, Region(y))
        present.release(present.hold(ArrayUse("x", x, "to")))
    found = transfers(capsys)
    assert sorted((said["direction"], said["argument"], said["bytes"]) for said in found) == [
        ("d2h", "y", str(y.nbytes)),
        ("h2d", "x", str(x.nbytes)),
        ("h2d", "y", str(y.nbytes)),
    ]
    assert all(said["kernel"] == "saxpy" and said["at"].startswith(__file__ + ":") for said in found)
    np.testing.assert_array_equal(y, 2.0 * x + 1.0)


def test_log_explicit_tells_preloads_too(discrete, capsys):
    x, _ = arrays()
    present = current_target().device.present
    with transfer_guard("log_explicit"):
        present.release(present.hold(ArrayUse("x", x, "to")))
    (said,) = transfers(capsys)
    assert said["argument"] == "x" and said["asked"] == "explicit" and "kernel" not in said


def test_guards_nest_and_end(discrete):
    x, y = arrays()
    with transfer_guard("disallow"):
        with transfer_guard("allow"):
            saxpy(2.0, x, Region(y))
        with pytest.raises(TransferError):
            saxpy(2.0, x, Region(y))
        with pytest.raises(KeyError), transfer_guard("allow"):
            raise KeyError
        with pytest.raises(TransferError):
            saxpy(2.0, x, Region(y))
    saxpy(2.0, x, Region(y))


def test_one_guard_can_be_entered_again(discrete):
    x, y = arrays()
    guard = transfer_guard("disallow")
    for _ in range(2):
        with guard, pytest.raises(TransferError):
            saxpy(2.0, x, Region(y))
        saxpy(2.0, x, Region(y))


def test_as_a_call_it_holds_from_then_on(discrete):
    x, y = arrays()
    failed: list[BaseException] = []

    def run() -> None:
        transfer_guard("disallow")
        try:
            saxpy(2.0, x, Region(y))
        except TransferError as error:
            failed.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert len(failed) == 1
    saxpy(2.0, x, Region(y))  # another thread


def test_other_threads_are_not_guarded(discrete):
    x, y = arrays()
    failed: list[BaseException] = []

    def run() -> None:
        try:
            saxpy(2.0, x, Region(y))
        except BaseException as error:
            failed.append(error)

    with transfer_guard("disallow"):
        thread = threading.Thread(target=run)
        thread.start()
        thread.join()
    assert not failed
    np.testing.assert_array_equal(y, 2.0 * x + 1.0)


def test_the_environment_has_the_default(discrete, monkeypatch):
    x, y = arrays()
    monkeypatch.setenv("NUMBA_OFFLOAD_TRANSFER_GUARD", "disallow")
    with pytest.raises(TransferError, match="NUMBA_OFFLOAD_TRANSFER_GUARD=disallow"):
        saxpy(2.0, x, Region(y))
    with transfer_guard("allow"):
        saxpy(2.0, x, Region(y))
    monkeypatch.setenv("NUMBA_OFFLOAD_TRANSFER_GUARD", "forbid")
    with pytest.raises(TransferError, match=r"'forbid': expected one of 'allow'"):
        saxpy(2.0, x, Region(y))
    assert_nothing_mapped()


@pytest.mark.parametrize("level", ["forbid", "", None, 1])
def test_unknown_levels_are_refused(level):
    with pytest.raises(ValueError, match="expected one of 'allow', 'log', 'disallow'"):
        transfer_guard(level)
