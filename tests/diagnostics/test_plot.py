"""The timeline as a picture: what is drawn, where it is written, and what is said without Matplotlib."""

from __future__ import annotations

import sys

import pytest
from observed_kernels import arrays, saxpy

from numba_offload import Region, profile
from numba_offload.diagnostics.events import record_copy, record_launch


def texts(figure) -> list[str]:
    return [text.get_text() for text in figure.axes[0].texts]


def test_tracks_bars_and_legend(discrete, tmp_path):
    x, y = arrays()
    saxpy(2.0, x, Region(y))
    with profile() as p:
        saxpy(2.0, x, Region(y))
    figure = p.plot(tmp_path / "timeline.png")
    axes = figure.axes[0]
    assert [label.get_text() for label in axes.get_yticklabels()] == [
        "host: MainThread", "cpu: copies over", "cpu: kernels", "cpu: copies back",
    ]  # fmt: skip
    assert [len(bars.get_paths()) for bars in axes.collections] == [1, 2, 1, 1]
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == [
        "call on the host", "copy to the device", "kernel", "copy back",
    ]  # fmt: skip
    assert axes.get_xlabel().startswith("time in ")
    assert "1 launches, 2 copies to the device (16.0 kB), 1 back (8.0 kB)" in figure.get_suptitle()
    assert (tmp_path / "timeline.png").read_bytes().startswith(b"\x89PNG\r\n\x1a\n")
    assert "matplotlib.pyplot" not in sys.modules or not sys.modules["matplotlib.pyplot"].get_fignums()


def test_bars_are_where_the_events_were():
    with profile() as p:
        record_copy("h2d", "x", 10**9, 2.0, "k", "cuda", 10.0)
        record_launch("k", "cuda", 4.0, 12.0)
    figure = p.plot()
    axes = figure.axes[0]
    assert axes.get_xlabel() == "time in s"
    spans = [bars.get_paths()[0].get_extents().intervalx.tolist() for bars in axes.collections]
    assert spans == [[0.0, 2.0], [2.0, 6.0]]
    assert texts(figure) == ["x", "k"]


def test_labels_that_do_not_fit_are_left_out():
    with profile() as p:
        record_copy("h2d", "a_long_name_for_an_array", 8, 1e-3, "k", "cuda", 0.0)
        record_launch("k", "cuda", 4.0, 1.0)
    assert texts(p.plot()) == ["k"]


@pytest.mark.parametrize("suffix", ["svg", "pdf"])
def test_other_formats(suffix, tmp_path):
    with profile() as p:
        record_launch("k", "cuda", 4.0, 1.0)
    p.plot(tmp_path / f"t.{suffix}")
    assert (tmp_path / f"t.{suffix}").stat().st_size > 1000


def test_an_empty_profile_says_so():
    with profile() as p:
        pass
    assert texts(p.plot()) == ["nothing was copied or launched"]


def test_labels_do_not_overlap_the_axes_or_each_other():
    with profile() as p:
        for thread in range(3):
            for k in range(20):
                record_copy("h2d", f"a{k}", 8, 0.9, "k", "cuda", k + 0.3 * thread)
    figure = p.plot()
    figure.canvas.draw()
    renderer = figure.canvas.get_renderer()
    boxes = [text.get_window_extent(renderer) for text in figure.axes[0].texts]
    assert boxes
    assert not any(one.overlaps(other) for k, one in enumerate(boxes) for other in boxes[:k])
    ticks = [label.get_window_extent(renderer) for label in figure.axes[0].get_yticklabels()]
    assert not any(one.overlaps(other) for k, one in enumerate(ticks) for other in ticks[:k])
    assert all(box.x0 >= 0 for box in ticks)


def test_without_matplotlib_the_extra_is_named(monkeypatch):
    for name in [name for name in sys.modules if name.split(".")[0] == "matplotlib"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with profile() as p:
        pass
    with pytest.raises(ImportError, match=r"pip install numba-offload\[plot\]"):
        p.plot()
