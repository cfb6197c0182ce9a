"""The kernels of the demo, and a partitioning strategy of its own."""

# mypy: disable-error-code="no-untyped-def"

from numba_offload import PartitioningStrategy, offload_function, offload_kernel


@offload_kernel
def saxpy(alpha, x, y):
    for i in y.indices():
        y[i] = alpha * x[i] + y[i]


@offload_kernel
def heat(old, rate, new):
    # `new` is the interior of the plate: its element (i, j) lies at (i + 1, j + 1) of `old`.
    for i, j in new.indices():
        centre = old[i + 1, j + 1]
        neighbours = old[i, j + 1] + old[i + 2, j + 1] + old[i + 1, j] + old[i + 1, j + 2]
        new[i, j] = centre + rate * (neighbours - 4.0 * centre)


@offload_function
def escape_time(x, y, limit):
    u, v, k = 0.0, 0.0, 0
    while k < limit and u * u + v * v <= 4.0:
        u, v = u * u - v * v + x, 2.0 * u * v + y
        k += 1
    return k


# Fused multiply-adds would change the count of a few pixels; without them all targets agree exactly.
@offload_kernel(contract=False)
def mandelbrot(left, top, step, limit, image):
    for i, j in image.indices():
        image[i, j] = escape_time(left + j * step, top - i * step, limit)


@offload_kernel
def fir(signal, taps, out):
    for i in out.indices():
        total = 0.0
        for k in range(taps.size):
            total += taps[k] * signal[i + k]
        out[i] = total


@offload_kernel
def multiply_tiles(a, b, c):
    # Each thread's tile is one matrix of the batch, or a part of its rows.
    tile = c.local
    batch, row, column = c.origin
    for m in range(tile.shape[0]):
        for i in range(tile.shape[1]):
            for j in range(tile.shape[2]):
                total = 0.0
                for k in range(a.shape[2]):
                    total += a[batch + m, row + i, k] * b[batch + m, k, column + j]
                tile[m, i, j] = total


class MirrorPairs(PartitioningStrategy):
    """Thread t owns element t and the one as far from the other end. Checked before it is used."""

    ndim = 1

    def count(self, t, T, shape):
        return min(max(shape[0] - 2 * t, 0), 2)

    def index(self, t, k, T, shape):
        return t if k == 0 else shape[0] - 1 - t

    def threads(self, shape):
        return (shape[0] + 1) // 2


class Overlapping(MirrorPairs):
    """Not a partition: thread t owns elements t and t + 1, so that neighbours share one."""

    def index(self, t, k, T, shape):
        return t + k


@offload_kernel
def shifted(x, y):
    for i in y.indices():
        y[i] = x[i + 1]


@offload_kernel
def racing(x, y):
    for i in y.indices():
        y[i // 2] = x[i]
