"""Edges of a photograph: a 3 x 3 filter over an image of bytes, with the weights captured from around the
kernel.

The photograph is the sample image that comes with Matplotlib. Sobel's operator gives the strength of the
edges; the border, where the neighbourhood would leave the image, is left out through a Region over the
interior. The result is checked against NumPy and written beside the original.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence
from pathlib import Path

import matplotlib
import numpy as np
from matplotlib.cbook import get_sample_data

from numba_offload import Region, Rows, offload_kernel

SOBEL = np.array([[-1.0, 0.0, 1.0], [-2.0, 0.0, 2.0], [-1.0, 0.0, 1.0]])


@offload_kernel
def edges(image, strength):
    # `strength` is the interior: its element (i, j) lies at (i + 1, j + 1) of `image`.
    for i, j in strength.indices():
        across = 0.0
        down = 0.0
        for di in range(3):
            for dj in range(3):
                value = image[i + di, j + dj]
                across += SOBEL[di, dj] * value
                down += SOBEL[dj, di] * value
        strength[i, j] = math.sqrt(across * across + down * down)


def edges_in_numpy(image: np.ndarray) -> np.ndarray:
    windows = np.lib.stride_tricks.sliding_window_view(image.astype(float), (3, 3))
    across = np.einsum("ijkl,kl->ij", windows, SOBEL)
    down = np.einsum("ijkl,lk->ij", windows, SOBEL)
    return np.hypot(across, down)


def photograph() -> np.ndarray:
    """Matplotlib's sample photograph in shades of grey, one byte a pixel."""
    from matplotlib import image

    with get_sample_data("grace_hopper.jpg") as file:
        colours = image.imread(file, format="jpg")
    return (colours @ np.array([0.299, 0.587, 0.114])).round().astype(np.uint8)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path, default=Path("edges.png"), help="picture (default: edges.png)")
    options = parser.parse_args(arguments)

    image = photograph()
    strength = np.zeros(image.shape)
    edges(image, Region(strength[1:-1, 1:-1], Rows()))
    np.testing.assert_allclose(strength[1:-1, 1:-1], edges_in_numpy(image), rtol=1e-12, atol=1e-9)
    assert not strength[0].any() and not strength[:, 0].any(), "the border is not part of the Region"

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 5.5), layout="constrained")
    left.imshow(image, cmap="gray")
    left.set_title("photograph")
    right.imshow(strength, cmap="gray_r")
    right.set_title("strength of edges")
    for axes in (left, right):
        axes.set_axis_off()
    figure.savefig(options.output, dpi=120)
    print(f"{image.shape[0]} x {image.shape[1]} pixels agree with NumPy; see {options.output}")


if __name__ == "__main__":
    main()
