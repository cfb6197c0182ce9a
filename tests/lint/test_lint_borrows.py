"""What the host does with arrays that a preload holds."""

from __future__ import annotations

from programs import check


def test_a_mutable_borrow_is_the_handles_alone() -> None:
    check("""
    def run(x, y, f):
        upper, fancy = y[4:], y[[1, 2]]
        y[0] = 1.0
        with preload_mut(y) as gy:
            saxpy(2.0, x, Region(gy))
            print(y.shape, len(y), gy.size)
            print(y)  # <- NO301
            y[0] = 2.0  # <- NO301
            y += 1.0  # <- NO301
            if upper.sum() > 0:  # <- NO301
                pass
            print(fancy)
            f(y)  # <- NO301
            saxpy(2.0, x, Region(y))  # <- NO301
            saxpy(2.0, y, Region(x))  # <- NO301
            later = lambda: y.sum()
            other = y
        print(y)
    """)


def test_a_read_borrow_may_be_read() -> None:
    check("""
    def run(x, y, f):
        with preload(x) as gx:
            print(x.sum(), x[0])
            copy(x, Region(y))
            f(x)
            x[0] = 1.0  # <- NO302
            x.fill(0.0)  # <- NO302
            np.copyto(x, y)  # <- NO302
            np.add(y, y, out=x)  # <- NO302
            saxpy(2.0, y, Region(x))  # <- NO303
            saxpy(2.0, y, Region(gx))  # <- NO303
    """)


def test_two_borrows_of_one_array() -> None:
    check("""
    def run(x):
        with preload(x) as a, preload(x) as b, preload_mut(x) as c:  # <- NO303
            pass
        with preload_mut(x[:5]) as a, preload_mut(x[5:]) as b:
            pass
        with preload_mut(x) as a:
            pass
        with preload_mut(x) as a:
            h = preload(x)  # <- NO303
            h.release()
    """)


def test_handles_that_are_released() -> None:
    check("""
    def run(x, y):
        h = preload_mut(y)
        saxpy(2.0, x, Region(h))
        print(y)  # <- NO301
        h.release()
        print(y)

    def guarded(x, y):
        h = preload_mut(y)
        try:
            saxpy(2.0, x, Region(h))
            y[0] = 1.0  # <- NO301
        finally:
            h.release()
        y[0] = 1.0

    def early(x, y):
        with preload_mut(y) as gy:
            saxpy(2.0, x, Region(gy))
            gy.release()
            print(y)

    def held(y):
        h = preload_mut(y)
        with h:
            print(y)  # <- NO301
        print(y)

    def handed_on(x, y, f):
        h = preload_mut(y)
        f(h)
        print(y)
    """)


def test_a_name_that_changes_its_meaning() -> None:
    check("""
    def run(x, y):
        with preload_mut(y) as gy:
            y = np.zeros(3)
            y[0] = 1.0
    """)
