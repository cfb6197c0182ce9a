"""A profile as a picture: tracks over time. Needs Matplotlib, the extra ``plot``."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from numba_offload.diagnostics.events import ProfileEvent
from numba_offload.diagnostics.timeline import Track, tracks

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Okabe and Ito's colours, told apart by colour-blind readers, and light enough for black letters.
_COLOURS = {"call": "#D3D3D3", "h2d": "#56B4E9", "launch": "#E69F00", "d2h": "#009E73"}
_EDGES = {"call": "#8C8C8C", "h2d": "#0072B2", "launch": "#A66E00", "d2h": "#00664B"}
_LEGEND = {"call": "call on the host", "h2d": "copy to the device", "launch": "kernel", "d2h": "copy back"}
_INCHES_WIDE = 11.0
_BAR = 0.72
_FONT = 8.0
_LETTER = 0.62
"""Width of a letter over the size of its font, on the safe side."""


def timeline_figure(
    events: Sequence[ProfileEvent], title: str, path: str | os.PathLike[str] | None = None
) -> Figure:
    """The figure of ``Profile.plot``, written to ``path`` where that is given."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError(
            "Profile.plot draws with Matplotlib, which is not installed: pip install numba-offload[plot]. "
            "Profile.save_trace needs nothing more"
        ) from error
    laid = tracks(events)
    # Not through pyplot: no window, and no figure that stays until it is closed.
    figure = Figure(figsize=(_INCHES_WIDE, 1.7 + 0.36 * max(len(laid), 1)), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    figure.suptitle(title, fontsize=10)
    if laid:
        _draw(figure, axes, laid)
    else:
        axes.set(xticks=[], yticks=[])
        axes.text(0.5, 0.5, "nothing was copied or launched", ha="center", va="center")
    if path is not None:
        figure.savefig(path, dpi=150)
    return figure


def _draw(figure: Any, axes: Any, laid: Sequence[Track]) -> None:
    from matplotlib.patches import Patch

    origin = min(track.events[0].start for track in laid)
    length = max(event.end for track in laid for event in track.events) - origin
    scale, unit = next(((s, u) for s, u in ((1.0, "s"), (1e3, "ms")) if length * s >= 2), (1e6, "µs"))
    length = max(length * scale, 1e-9)
    # Constrained layout leaves about this much for the axes, which is as close as letters need.
    points_per_unit = 0.82 * _INCHES_WIDE * 72 / (1.02 * length)
    for row, track in enumerate(laid):
        colour = _COLOURS[track.kind]
        spans = [((event.start - origin) * scale, event.seconds * scale) for event in track.events]
        # The edge keeps what is shorter than a pixel visible.
        axes.broken_barh(spans, (row - _BAR / 2, _BAR), facecolor=colour, edgecolor=_EDGES[track.kind], linewidth=0.6)
        for event, (start, width) in zip(track.events, spans, strict=True):
            text = event.name or event.kernel
            if width * points_per_unit > (len(text) + 1) * _FONT * _LETTER:
                axes.text(start + width / 2, row, text, ha="center", va="center", fontsize=_FONT, clip_on=True)
        if row and track.group != laid[row - 1].group:
            axes.axhline(row - 0.5, color="0.35", linewidth=0.8)
    axes.set_yticks(range(len(laid)), [f"{track.group}: {track.name}" for track in laid])
    axes.set_ylim(len(laid) - 0.5, -0.5)
    axes.set_xlim(-0.01 * length, 1.01 * length)
    axes.set_xlabel(f"time in {unit}")
    axes.grid(axis="x", color="0.85", linewidth=0.6)
    axes.set_axisbelow(True)
    axes.tick_params(axis="y", length=0)
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    shown = [kind for kind in _COLOURS if any(track.kind == kind for track in laid)]
    patches = [Patch(facecolor=_COLOURS[kind], edgecolor=_EDGES[kind], label=_LEGEND[kind]) for kind in shown]
    figure.legend(handles=patches, loc="outside lower center", ncols=len(patches), frameon=False, fontsize=9)
