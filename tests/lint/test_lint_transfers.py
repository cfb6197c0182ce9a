"""Transfers that repeat in loops, preloads that start late: what is certain is found, and nothing else is told."""

from __future__ import annotations

from programs import check


def test_uploads_and_downloads_that_repeat() -> None:
    check("""
    def run(x, y, n):
        for _ in range(n):
            saxpy(2.0, x, Region(y))  # <- NO101 NO102
        print(y)

    def main():
        x, y = np.ones(9), np.zeros(9)
        while y.size > 3:
            copy[1, 32](y=Region(y), x=x)  # <- NO101 NO102
    """)


def test_the_host_changes_or_reads_what_is_moved() -> None:
    check("""
    def changed(x, y, n):
        for step in range(n):
            x[0] = step
            copy(x, Region(y))
            print(y.sum())

    def read(x, y, n):
        while True:
            saxpy(2.0, x, Region(y))  # <- NO101
            if y[0] > 3.0:
                break

    def through_others(x, y, n, log, model):
        part = x[1:]
        total = y[::2]
        for _ in range(n):
            np.add(part, 1.0, part)
            saxpy(2.0, x, Region(y))
            log(total)

    def out(x, y, n):
        for _ in range(n):
            np.sqrt(y, out=x)
            copy(x, Region(y))

    def given_away(x, y, n, f):
        for _ in range(n):
            f(x)
            copy(x, Region(y))  # <- NO102
    """)


def test_another_array_in_each_iteration() -> None:
    check("""
    def rows(x, y):
        for k in range(len(x)):
            copy(x[k], Region(y[k]))

    def lists(xs, ys):
        for x, y in zip(xs, ys):
            copy(x, Region(y))

    def made(n):
        for k in range(n):
            x, y = np.full(9, k), np.zeros(9)
            copy(x, Region(y))
            print(y)

    def swapped(old, new, n):
        for _ in range(n):
            copy(old, Region(new[1:-1]))  # <- NO101 NO102
            old, new = new, old
    """)


def test_loops_that_do_not_repeat() -> None:
    check("""
    def once(x, y):
        for _ in range(1):
            copy(x, Region(y))
        while True:
            copy(x, Region(y))
            break
        for k in range(9):
            if k == 3:
                copy(x, Region(y))
                return
    """)


def test_what_holds_arrays_on_the_device_already() -> None:
    check("""
    @optimize_transfers
    def optimised(x, y, n):
        for _ in range(n):
            saxpy(2.0, x, Region(y))

    def staged(x, y, n):
        with preload(x) as gx, preload_mut(y) as gy:
            for _ in range(n):
                saxpy(2.0, gx, Region(gy))

    def inner(x, y, n):
        for _ in range(n):
            saxpy(2.0, x, Region(y))

    def outer(x, y, n):
        with preload(x) as gx, preload_mut(y) as gy:
            inner(gx, gy, n)

    def other(n):
        import cupy
        x, y = cupy.ones(9), cupy.zeros(9)
        for _ in range(n):
            saxpy(2.0, x, Region(y))
    """)


def test_scalars_and_shapes_are_not_moved() -> None:
    check("""
    @offload_kernel
    def fill(value, like, y):
        for i in y.indices():
            y[i] = value * like.size

    def run(value, x, y, n):
        for _ in range(n):
            fill(value, x, Region(y))
            print(y[0])
    """)


def test_attributes_and_globals_are_anyones() -> None:
    check("""
    X = np.ones(9)

    class Model:
        def run(self, n, y):
            for _ in range(n):
                self.advance()
                copy(self.x, Region(y))  # <- NO102
            for _ in range(n):
                copy(self.x, Region(y))  # <- NO101 NO102

    def run(n, y, f):
        for _ in range(n):
            copy(X, Region(y))  # <- NO102
            f()

    def captured(n, f):
        y = np.zeros(9)
        f(lambda: y.sum())
        for _ in range(n):
            copy(X, Region(y))
            f()

    def steps(x, y, n):
        for _ in range(n):
            copy(x, Region(y))
            yield

    async def arrivals(x, y, source):
        async for _ in source:
            copy(x, Region(y))
    """)


def test_a_preload_in_a_loop() -> None:
    check("""
    def hoist(x, y, n):
        for _ in range(n):
            with preload(x) as gx, preload_mut(y) as gy:  # <- NO201 NO201
                saxpy(2.0, gx, Region(gy))

    def used(x, y, n):
        for k in range(n):
            x[0] = k
            with preload(x) as gx, preload_mut(y) as gy:
                saxpy(2.0, gx, Region(gy))
            print(y)

    def parts(x, y, n):
        for k in range(n):
            with preload(x[k]) as gx, preload_mut(y[k]) as gy:
                saxpy(2.0, gx, Region(gy))

    def released(x, y, n):
        for _ in range(n):
            h = preload(x)  # <- NO201
            copy(h, Region(y))
            h.release()
            print(y)
    """)


def test_a_preload_after_work() -> None:
    check("""
    def work(y):
        for k in range(y.size):
            y[k] = k ** 0.5

    def late(x, y, z):
        x[0] = 1.0
        for k in range(z.size):
            z[k] = k ** 0.5
        with preload(x) as gx, preload_mut(y) as gy:  # <- NO202 NO202
            saxpy(2.0, gx, Region(gy))
        print(z)

    def called(x, y, z):
        work(z)
        h = preload(x)  # <- NO202
        copy(h, Region(y))
        h.release()

    def in_time(x, y, z):
        for k in range(x.size):
            x[k] = k
        print(z)
        y = np.zeros(x.size)
        for name in ("a", "b"):
            print(name)
        with preload(x) as gx, preload_mut(y) as gy:
            saxpy(2.0, gx, Region(gy))

    def checked(x, y, z):
        for k in range(z.size):
            if z[k] < 0:
                raise ValueError(k)
        with preload(x) as gx:
            copy(gx, Region(y))
    """)
