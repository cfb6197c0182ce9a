"""benchmarks.transfers: it runs to its end and says what it measured. Nothing here looks at times."""

from __future__ import annotations

import pytest

from benchmarks import transfers


def test_it_runs_on_the_cpu(monkeypatch, capsys):
    monkeypatch.setenv("NUMBA_OFFLOAD_CPU_MEMORY", "discrete")
    monkeypatch.setattr(transfers, "LAUNCH_ELEMENTS", 1000)
    assert transfers.main(["--target", "cpu", "--rounds", "1", "--largest", "0.02", "--check"]) == 0
    shown = capsys.readouterr().out
    assert "4 KiB" in shown and "16 KiB" in shown and "64 KiB" not in shown
    assert "managed, page-locked" in shown


def test_a_target_that_does_not_work_is_told(capsys):
    assert transfers.main(["--target", "nonsense"]) == 2
    assert "unknown target 'nonsense'" in capsys.readouterr().out


@pytest.mark.parametrize(("rate", "verdict"), [(60.0, "met"), (10.0, "missed")])
def test_bars_are_met_missed_or_not_measured(rate, verdict):
    table, missed = transfers.judged({key: rate for key in transfers.BARS if key[0] != "launch"})
    assert missed == (verdict == "missed")
    assert list(table.columns[3].cells) == [verdict] * 4 + ["not measured"]
