"""A rewritten host function does what the original does, in the same order, and looks like it."""

# ruff: noqa: B015, B018, B032, B905, C400 - statements of every kind, as users write them

from __future__ import annotations

import copy
import inspect
import logging
import pickle
import sys
import traceback
import types
import warnings

import numpy as np
import pytest

from numba_offload import Region, optimize_transfers

from .optimizer_helpers import add_one, check_same, optimised, outcome, twelve


class Log:
    """Notes every operation on it, and gives others like it."""

    def __init__(self, trace, name):
        object.__setattr__(self, "_trace", trace)
        object.__setattr__(self, "_name", name)

    def _note(self, what, *others):
        self._trace.append((self._name, what, *map(repr, others)))
        return Log(self._trace, f"{self._name}.{what}")

    def __repr__(self):
        return self._name

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return self._note("get", name)

    def __setattr__(self, name, value):
        self._note("set", name, value)

    def __delattr__(self, name):
        self._note("del", name)

    def __getitem__(self, key):
        return self._note("item", key)

    def __setitem__(self, key, value):
        self._note("set item", key, value)

    def __delitem__(self, key):
        self._note("del item", key)

    def __call__(self, *args, **kwargs):
        return self._note("call", *args, *sorted(kwargs.items()))

    def __iter__(self):
        self._note("iter")
        for k in range(2):
            self._note("next")
            yield Log(self._trace, f"{self._name}{k}")

    def __enter__(self):
        return self._note("enter")

    def __exit__(self, kind, error, trace):
        self._note("exit", kind)
        return False

    def __bool__(self):
        self._note("bool")
        return True

    def __hash__(self):
        self._note("hash")
        return 1

    def __eq__(self, other):
        return self._note("eq", other)

    def __contains__(self, item):
        self._note("contains", item)
        return True

    def __format__(self, spec):
        self._note("format", spec)
        return self._name

    def __index__(self):
        self._note("index")
        return 1

    def keys(self):
        self._note("keys")
        return ["k"]


for _operation in ("add", "radd", "iadd", "sub", "mul", "imul", "lt", "le", "gt", "ge", "neg", "matmul", "mod", "pow", "and"):
    setattr(
        Log, f"__{_operation}__", lambda self, *others, _operation=_operation: Log._note(self, _operation, *others)
    )


def assignments(a, b, c):
    i, a[i], (b.x, i), *c[i] = 1, 2, (3, 4), 5, 6
    a.x = b[c] = c.y = a + b
    a[i], i = 7, 8
    b.total += a[c]
    b[a, 1:c] *= c.z
    [b[0], i], c.q = (i, 9), 1
    del b[c], a.x, (i, c.r)
    a.field: int = 3
    b.other.part: int
    c[a.key]: int


def orders(a, b, c):
    a.f(b.g, *c, other=a[b], **c)
    a < b.x < c
    a if b else c
    (a and b) or c
    not a
    a in b, a not in c
    {a: b.v, b: c.v}
    {a, b}
    {**c, "x": a.z}
    [a, *b, c.d]
    f"{a.x!r:>{b.w}} {c}"
    a[b:c.stop, ...]
    -a @ b ** c


def loops(a, b, c):
    for b.x, c[0] in [(1, 2), (a.y, 4)]:
        a.note(b)
    else:
        a.done()
    [p + q for p, q in zip(a, b) if p > q]
    {p: q.v for p in c for q in p}
    {p.x for p in c}
    list(p.x for p in a.many if p)
    while a:
        if b.stop:
            break
    with a.lock as b.held, c as (p, q):
        p(q)


def jumps(a, b, c):
    try:
        try:
            raise KeyError(a.x)
        except KeyError as error:
            b.note(error.args)
            raise ValueError from error
        finally:
            c.finish()
    except ValueError:
        return a.result
    else:
        c.never()
    finally:
        b.last()


def groups(a, b, c):
    try:
        raise ExceptionGroup("two", [ValueError(1), KeyError(2)])
    except* ValueError as some:
        a.note(len(some.exceptions))
    except* KeyError:
        b.note()


def matching(a, b, c):
    match a.kind:
        case {"x": 1}:
            b.never()
        case _ if b.test:
            c.taken()
    match (1, [2, 3]):
        case (1, [p, *q]):
            b.note(p, q)


def inner(a, b, c):
    def g(x=a.default, *, y=b.key):
        nonlocal c
        c = x
        return c.z

    class C(a.Base if not a else object):
        attr = b.attr

    h = lambda x=a.lam: x.v  # noqa: E731
    return g(), h(), C.attr


@pytest.mark.parametrize("function", [assignments, orders, loops, jumps, groups, matching, inner])
def test_operations_come_in_the_same_order(function):
    traces = []
    for one in (function, optimised(function)):
        trace = []
        result = outcome(one, Log(trace, "a"), Log(trace, "b"), Log(trace, "c"))
        traces.append((result, trace))
    assert traces[1] == traces[0]
    assert len(traces[0][1]) > 3


class Shape:
    count = 1

    def area(self):
        return 3


class Square(Shape):
    __slots__ = ("__side", "other")

    def __init__(self):
        self.__side = 2

    @optimize_transfers
    def area(self):
        """First line.

        Second line, behind an indented one.
        """
        text = """
    kept
  as it stands"""
        return super().area() + self.__side + len(text) + Square.count

    @optimize_transfers
    def rebound(self):
        self.__side += 1
        return self.__side, super().__class__.__name__

    def enclosing(self):
        @optimize_transfers
        def nested():
            return self.__side

        return nested

    @classmethod
    @optimize_transfers
    def made(cls, n: int = 3):
        return cls.__name__, n

    @staticmethod
    @optimize_transfers
    def free(n):
        return n + 1

    @property
    @optimize_transfers
    def side(self):
        return self.__side


def test_methods():
    square = Square()
    assert Square.__dict__["area"].reason is None
    assert square.area() == 3 + 2 + len("\n    kept\n  as it stands") + 1
    assert square.rebound() == (3, "super")
    nested = square.enclosing()
    assert nested.reason is None
    assert nested() == 3
    assert Square.made() == ("Square", 3)
    assert square.free(2) == 3
    assert square.side == 3
    assert Square.area(square) == 3 + 3 + len("\n    kept\n  as it stands") + 1


class ___:
    @optimize_transfers
    def private(self):
        self.__x = 1
        return vars(self)


def test_private_names_of_a_class_without_a_name():
    assert ___().private() == {"__x": 1}


def sees_itself(a, *rest, flag=False):
    b = 2
    a.shape = (12,)
    c = d = b
    c += 1
    return sorted(locals()), sorted(vars()), dir(), sorted(sys._getframe().f_locals)[:1], sys._getframe().f_code.co_name, d


def test_what_a_function_sees_of_its_frame():
    decorated = optimised(sees_itself)
    assert decorated(twelve(), 1)[:3] == sees_itself(twelve(), 1)[:3]
    assert decorated(twelve())[4] == "sees_itself"


def warns(a):
    warnings.warn("here", UserWarning, stacklevel=1)
    add_one(Region(a))


def logs(a, logger):
    add_one(Region(a))
    logger.warning("%s", a[0])


def test_warnings_and_log_records_name_the_users_line(caplog):
    with pytest.warns(UserWarning, match="here") as caught:
        optimised(warns)(twelve())
    assert (caught[0].filename, caught[0].lineno) == (__file__, warns.__code__.co_firstlineno + 1)
    optimised(logs)(twelve(), logging.getLogger("users"))
    assert caplog.records[-1].pathname == __file__
    assert caplog.records[-1].funcName == "logs"


def fails_in_the_middle(a):
    b = (
        a[0]
        + a[1]
        + missing  # noqa: F821
    )
    return b


def test_tracebacks_name_the_users_line():
    for function in (fails_in_the_middle, optimised(fails_in_the_middle)):
        with pytest.raises(NameError) as info:
            function(twelve())
        last = traceback.extract_tb(info.tb)[-1]
        assert (last.filename, last.lineno) == (__file__, fails_in_the_middle.__code__.co_firstlineno + 4)


def called(a, /, b, *, c=3):
    return a, b, c


@pytest.mark.parametrize("args", [(), (1,), (1, 2, 3), (1, 2)])
@pytest.mark.parametrize("kwargs", [{}, {"a": 1}, {"c": 1}, {"d": 1}])
def test_wrong_arguments_are_told_as_by_the_function(args, kwargs):
    decorated = optimised(called)
    assert outcome(lambda: decorated(*args, **kwargs)) == outcome(lambda: called(*args, **kwargs))


def test_it_looks_like_the_function():
    decorated = optimised(called)
    assert inspect.signature(decorated) == inspect.signature(called)
    assert decorated.__name__ == "called"
    assert decorated.__doc__ is called.__doc__
    assert decorated.__wrapped__ is called


class Owner:
    def defines(self, a):
        class Inner:
            def method(self):
                pass

        def function(x):
            return [lambda: x for _ in range(1)]

        try:
            function()
        except TypeError as error:
            text = str(error)
        return text, repr(Inner), Inner.method.__qualname__, function(1)[0].__qualname__, type(self).__name__


def test_what_is_defined_inside_is_called_the_same():
    def nested(a):
        class Inner:
            pass

        return repr(Inner), (lambda: 1).__qualname__

    check_same(nested, twelve)
    check_same(Owner.defines, Owner, twelve)


def named_like_a_method(self, function=1):
    return self, function


def test_parameters_of_any_name():
    assert optimised(named_like_a_method)(self=1, function=2) == (1, 2)


def loses_its_traceback(a):
    add_one(Region(a))
    try:
        a[0] += "x"
    except TypeError as error:
        error.__traceback__ = None
        raise


def test_an_error_of_its_own_is_none_of_its_arguments():
    check_same(loses_its_traceback, twelve)


def test_errors_of_arguments_have_no_context():
    with pytest.raises(TypeError) as info:
        optimised(called)(1, 2, 3)
    assert info.value.__context__ is None


@optimize_transfers
def recursive(a, n):
    add_one(Region(a))
    return 0 if n == 0 else 1 + recursive(a, n - 1)


def test_recursion_is_as_deep_as_it_was():
    assert recursive(twelve(), sys.getrecursionlimit() // 2) == sys.getrecursionlimit() // 2


@optimize_transfers
def pickled(a):
    return a


def test_pickles_by_name():
    assert pickle.loads(pickle.dumps(pickled)) is pickled
    assert copy.deepcopy(pickled) is pickled


def in_turn(a):
    got = yield 1
    try:
        yield got
        yield from [2, 3]
    finally:
        a[0] = -1.0
    return 4


def test_generators():
    results = []
    for function in (in_turn, optimised(in_turn)):
        a = twelve()
        steps = function(a)
        assert inspect.isgenerator(steps)
        results.append([next(steps), steps.send("x"), next(steps), steps.close(), a.tolist()])
    assert results[0] == results[1]


async def awaiting(a):
    add_one(Region(a))

    @types.coroutine
    def pause():
        yield a[0]

    await pause()
    return a[0]


def test_coroutines():
    steps = optimised(awaiting)(twelve())
    assert steps.send(None) == 1.0
    with pytest.raises(StopIteration) as end:
        steps.send(None)
    assert end.value.value == 1.0


def lifetimes():
    import weakref

    seen = []
    a = b = np.zeros(12)
    r = weakref.ref(a)
    b[2:][0] += 1.0
    for c in [np.zeros(3), np.ones(3)]:
        s = weakref.ref(c)
        del c
    seen.append(s() is None)
    a.resize(12)
    del a, b
    seen.append(r() is None)
    return seen


def test_nothing_lives_longer():
    check_same(lifetimes)
