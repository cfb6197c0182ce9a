"""The Mandelbrot set: work that differs from pixel to pixel, an array that is only written, a device
function.

The image is mapped `from`: the kernel assigns every pixel, so nothing goes to the device. It is checked pixel
by pixel against NumPy, and written as a picture.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

import matplotlib
import numpy as np

from numba_offload import Region, Tiles2D, offload_function, offload_kernel

LIMIT = 200
LEFT, TOP, HEIGHT = -2.25, 1.2, 2.4


@offload_function
def escape_time(x, y, limit):
    u, v, k = 0.0, 0.0, 0
    while k < limit and u * u + v * v <= 4.0:
        u, v = u * u - v * v + x, 2.0 * u * v + y
        k += 1
    return k


# Fused multiply-adds, the default on GPUs, would change the count of a few pixels.
@offload_kernel(contract=False)
def mandelbrot(left, top, spacing, image):
    for i, j in image.indices():
        image[i, j] = escape_time(left + j * spacing, top - i * spacing, LIMIT)


def mandelbrot_in_numpy(left: float, top: float, spacing: float, shape: tuple[int, int]) -> np.ndarray:
    rows, columns = np.indices(shape)
    x, y = (left + columns * spacing).ravel(), (top - rows * spacing).ravel()
    u, v, where = np.zeros_like(x), np.zeros_like(y), np.arange(x.size)
    count = np.zeros(x.size, dtype=np.int32)
    for _ in range(LIMIT):
        inside = u * u + v * v <= 4.0
        x, y, u, v, where = (a[inside] for a in (x, y, u, v, where))
        u, v = u * u - v * v + x, 2.0 * u * v + y
        count[where] += 1
    return count.reshape(shape)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=800, help="height of the picture (default: 800)")
    parser.add_argument("--output", type=Path, default=Path("mandelbrot.png"), help="picture")
    options = parser.parse_args(arguments)

    shape = (options.rows, options.rows * 4 // 3)
    spacing = HEIGHT / options.rows
    image = np.empty(shape, dtype=np.int32)
    region = Region(image, Tiles2D(8, 32))
    maps = mandelbrot.mappings(LEFT, TOP, spacing, region)
    mandelbrot(LEFT, TOP, spacing, region)
    np.testing.assert_array_equal(image, mandelbrot_in_numpy(LEFT, TOP, spacing, shape))

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    plt.imsave(options.output, np.log(image), cmap="magma")
    print(
        f"{image.size} pixels agree with NumPy (the image is mapped {maps['image']!r}); see {options.output}"
    )


if __name__ == "__main__":
    main()
