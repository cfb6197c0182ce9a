"""Code of others that runs where it is easily overlooked: each program sees and changes the array that is on the device."""

# ruff: noqa: B015, B018, UP032 - statements as users write them

from __future__ import annotations

import contextlib
import functools
import sys
import types
import weakref

import numpy as np
import pytest

from numba_offload import Region

from .optimizer_helpers import add_one, assert_nothing_left, optimised, outcome, twelve


class Shared:
    """The array, and what was seen of it."""

    array = np.zeros(1)
    seen = None


def peek(*_):
    Shared.seen.append(float(Shared.array[0]))
    Shared.array[1] += 100.0
    return Shared.array[0]


class Descriptor:
    def __init__(self, value=None):
        self.value = value

    def __get__(self, instance, owner):
        seen = peek()
        return seen if self.value is None else self.value


class WithDescriptors:
    content = Descriptor()
    dtype = Descriptor(np.dtype("f8"))

    @classmethod
    @property
    def chained(cls):
        return peek()

    def __class_getitem__(cls, key):
        return peek()


class Shown:
    def __repr__(self):
        return str(peek())

    def method(self):
        pass


class Callable:
    __hash__ = None

    def __call__(self, *args):
        pass

    def __eq__(self, other):
        return bool(peek())

    def __getattr__(self, name):
        return peek()


class Counting(Exception):
    def __init__(self):
        super().__init__(peek())


class Key:
    def __init__(self, value):
        peek()

    def __lt__(self, other):
        return False


class WithBases:
    @property
    def __bases__(self):
        peek()
        return ()


class Pretending:
    @property
    def __class__(self):
        peek()
        return int


class Parent:
    @property
    def content(self):
        return peek()


class Child(Parent):
    pass


class HashesAsSeven:
    def __hash__(self):
        return hash(7)

    def __eq__(self, other):
        peek()
        return False


class Split(ExceptionGroup):
    def derive(self, parts):
        peek()
        return Split(self.message, parts)


class Finalized:
    def method(self):
        pass

    def __del__(self):
        peek()


def steps():
    try:
        yield 1
        yield 2
    finally:
        peek()


def asks_classes(a):
    made = WithDescriptors()
    for k in range(3):
        add_one(Region(a))
        WithDescriptors.content
        add_one(Region(a))
        if sys.version_info < (3, 13):
            WithDescriptors.chained
            add_one(Region(a))
            made.chained
            add_one(Region(a))
        WithDescriptors[k]


def asks_others(a):
    method, parent = types.MethodType(Callable(), 3), super(Child, child)
    for _ in range(3):
        add_one(Region(a))
        method.content
        add_one(Region(a))
        parent.content
        add_one(Region(a))
        isinstance(proxy, int)
        add_one(Region(a))
        issubclass(with_bases, int)


child, with_bases, pretending = Child(), WithBases(), Pretending()
proxy = weakref.proxy(pretending)


def shows(a):
    method, partial = Shown().method, functools.partial(peek, Shown(), a)
    texts = []
    for _ in range(3):
        add_one(Region(a))
        texts.append(f"{method}")
        add_one(Region(a))
        texts.append("%s" % [method])
        add_one(Region(a))
        texts.append("{}".format(partial))
    return [text.partition(" at ")[0] for text in texts]


def compares(a):
    one, other = types.MethodType(Callable(), 3), types.MethodType(print, 3)
    for _ in range(3):
        add_one(Region(a))
        one == other
        add_one(Region(a))
        other in [one]


def calls_classes(a):
    for _ in range(3):
        add_one(Region(a))
        sorted([1, 2], key=Key)
        add_one(Region(a))
        max([1, 2], key=Key)
        add_one(Region(a))
        np.empty(3, dtype=WithDescriptors)
        add_one(Region(a))
        np.empty_like(a, WithDescriptors)
        add_one(Region(a))
        np.array([1], WithDescriptors)


def raises(a):
    with contextlib.suppress(Counting):
        add_one(Region(a))
        raise Counting
    with contextlib.suppress(ValueError):
        add_one(Region(a))
        raise ValueError from Counting
    with contextlib.suppress(ValueError):
        add_one(Region(a))
        raise ValueError from (add_one(Region(a)), Counting)[1]


def raises_out(a):
    add_one(Region(a))
    raise Counting


def splits(a):
    group = Split("two", [ValueError(), KeyError(), TypeError()])
    try:
        add_one(Region(a))
        raise group
    except* ValueError:
        add_one(Region(a))
    except* KeyError:
        add_one(Region(a))


def adds_keys(a):
    evil = HashesAsSeven()
    {(add_one(Region(a)), key)[1] for key in [evil, 7, 7]}
    return len({(add_one(Region(a)), key)[1]: 1 for key in [evil, 7, 7]})


def leaves_loops(a):
    for _ in steps():
        add_one(Region(a))
        break
    for _, _ in zip(steps(), [1], strict=False):
        add_one(Region(a))
        break
    try:
        for _ in steps():
            add_one(Region(a))
            raise ValueError
    except ValueError:
        add_one(Region(a))
    for _ in steps():
        add_one(Region(a))
        return


def drops(a):
    for _ in range(3):
        method = Finalized().method
        add_one(Region(a))
        del method


def drops_attributes(a):
    owner = types.SimpleNamespace()
    for _ in range(3):
        owner.x = Finalized()
        add_one(Region(a))
        del owner.x


def drops_items(a):
    values, table = [0], {}
    for _ in range(3):
        values.append(Finalized())
        add_one(Region(a))
        del values[-1]
        values += [Finalized(), 1]
        add_one(Region(a))
        del values[1:]
        table["x"] = [Finalized()]
        add_one(Region(a))
        del table["x"]


def clears(a):
    values, table = [], {}
    for _ in range(3):
        values.append(Finalized())
        add_one(Region(a))
        values.clear()
        table["x"] = Finalized()
        add_one(Region(a))
        table.clear()


def formats_late(a):
    texts = []
    for _ in range(2):
        add_one(Region(a))
        texts.append(f"{a!s:>{(add_one(Region(a)), 90)[1]}}{a[0]:{str(9)}.2f}")
    return texts


class Telling(type):
    def __subclasscheck__(cls, kind):
        peek()
        return False


class Told(Exception, metaclass=Telling):
    pass


def suppresses(a):
    for _ in range(3):
        with contextlib.suppress(Told, ValueError):
            add_one(Region(a))
            raise ValueError
        add_one(Region(a))


PROGRAMS = [
    asks_classes, asks_others, shows, compares, calls_classes, raises, raises_out, splits, adds_keys, leaves_loops, drops,
    formats_late, suppresses, drops_attributes, drops_items, clears,
]  # fmt: skip


def _run(function):
    Shared.array, Shared.seen = twelve(), []
    return outcome(function, Shared.array), Shared.seen, Shared.array.tolist()


@pytest.mark.parametrize("program", PROGRAMS)
def test_code_of_others_sees_what_launches_have_left(program):
    decorated = optimised(program)
    wanted = _run(program)
    assert _run(decorated) == wanted
    assert_nothing_left()


def test_arrays_shown_by_a_function_of_somebody():
    def program(a):
        for _ in range(3):
            add_one(Region(a))
            f"{a}"
            text = "%s"
            add_one(Region(a))
            text %= [a]

    decorated = optimised(program)
    if "override_repr" not in np.get_printoptions():
        pytest.skip("came with NumPy 2.1")
    with np.printoptions(override_repr=lambda array: str(peek())):
        wanted = _run(program)
        assert _run(decorated) == wanted
    assert len(wanted[1]) >= 3
