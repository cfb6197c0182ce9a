"""What uses no array and what does, decided on exact types: each operation next to those that look like it."""

# ruff: noqa: F401 - names that the bodies of loops use

from __future__ import annotations

import collections
import dataclasses
import enum
import itertools
import logging
import math
import random
import time
import types
from typing import NamedTuple

import numpy as np
import pytest

from numba_offload import Region, optimize_transfers, profile

from .optimizer_helpers import add_one, assert_nothing_left, twelve

Pair = collections.namedtuple("Pair", ["left", "right"], defaults=[0])


class Point(NamedTuple):
    x: object
    y: float = 0.0


@dataclasses.dataclass
class State:
    field: object
    time: float = 0.0
    step: int = 0


@dataclasses.dataclass(slots=True)
class Slotted:
    field: object
    time: float = 0.0


class Plain:
    kind = "plain"

    def __init__(self, field, *rest, option=None):
        self.field = field
        self.rest = rest
        self.option = option
        self.ready = True


class Empty:
    pass


class Derived(State):
    pass


class Mode(enum.Enum):
    FAST = 1
    SAFE = "safe"


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


quiet = logging.getLogger("numba_offload.tests.quiet")
quiet.setLevel(logging.ERROR)


def spied(meddle):
    """A place for code that reads and writes arrays, which the guard must see coming."""
    return types.SimpleNamespace(meddle=meddle)


# Each is a body of a loop, with the array a on the device. The names are those of this module; m is an adversary's.

HARMLESS = {
    "named tuple": "p = Pair(a, k); p = Point(a, y=2.0); p = Point(*[a, k])",
    "its parts": "p = Pair(k, a); l, r = p; p.left; p[1]; p[0:1]; [*p]; [e for e in p]",
    "dataclass": "s = State(a, step=k); s.time += 0.5; s.field",
    "dataclass with slots": "s = Slotted(a); s.time = 2.0; s.field",
    "derived dataclass": "Derived(a, 1.0)",
    "class that stores": "Plain(a, k, option=a).option; Plain.kind; Empty()",
    "namespace": "types.SimpleNamespace(a=a, k=k).a",
    "enumeration": "mode = Mode.FAST; mode.value; mode.name; Level.HIGH.value",
    "comparing members": "mode = Mode.SAFE; mode == Mode.FAST; mode != 1; Level.LOW < Level.HIGH; Level.LOW == 1; 2 >= Level.LOW",
    "truth of members": "1 if Mode.FAST else 2; not Mode.SAFE",
    "members as keys": "table = {Mode.FAST: a}; table[Mode.FAST]; Mode.SAFE in table; table[Mode.SAFE] = k; table.get(Mode.FAST)",
    "format": "'{} {:.2f} {x!r:>{w}}'.format(k, 1.5, x='s', w=9); '{0.real}'.format(k); f'{k:03d} {k!r}'; '%d %s' % (k, 's')",
    "strings": "'a,b'.split(','); ', '.join(['x', str(k)]); 'x'.upper(); 'x'.startswith(('x', 'y'))",
    "getattr": "getattr(state, 'field'); getattr(state, 'missing', None); hasattr(state, 'x'); setattr(state, 'field', a)",
    "count and islice": "[n for n in itertools.islice(itertools.count(k), 3)]",
    "product": "[(i, j) for i, j in itertools.product(range(2), 'ab', repeat=1)]",
    "product of arrays in lists": "[p for p in itertools.product([a, a], [k])]",
    "chain and repeat": "[n for n in itertools.chain([1], (2,), {3: 4}, itertools.repeat(a, 2))]",
    "pairwise and cycle": "[n for n in itertools.pairwise([1, 2])]; [n for n in zip([1], itertools.cycle('ab'))]",
    "combinations": "[*itertools.combinations([1, 2, 3], 2), *itertools.permutations(range(2))]",
    "loggers that are off": "quiet.debug('%s', a); quiet.info(f'{k}'); quiet.warning('w', extra=state)",
    "math": "math.sin(k); math.hypot(1.0, 2.0); math.isclose(1.0, 1.0); math.comb(4, 2)",
    "random": "random.random(); random.uniform(0, 1); random.gauss(0.0, 1.0); random.randint(1, 6); random.choice([a, a])",
    "random sequences": "l = [a, k]; random.shuffle(l); random.sample(range(9), 2); random.seed(3); own.randrange(4)",
    "NumPy's older random": "np.random.rand(3); np.random.uniform(0, 1, size=4); np.random.randint(9)",
    "time": "time.perf_counter(); time.time_ns(); time.strftime('%H'); time.sleep(0); time.thread_time()",
    "slices": "l = [1, 2, 3]; l[k % 2 :]; l[:-1]; a[1:3]; (1, 2)[::-1]; 'abc'[k % 2 :]",
    "isinstance": "isinstance(a, np.ndarray); isinstance(state, State); isinstance(k, (int, float))",
    "keys": "d = {(k, 'x'): a, k: 1}; d[k, 'x']; (k, 'y') in d; d.pop(k); s = {1, 2}; s.add(k); 3 in s",
}


@pytest.mark.parametrize("body", HARMLESS.values(), ids=HARMLESS)
def test_what_uses_no_array_leaves_it_where_it_is(body, made_from):
    program = made_from(body)
    a = twelve()
    with profile() as moved:
        program(a, State(a), random.Random(1), None)
    assert (moved.h2d_count, moved.d2h_count) == (1, 1), program.explain()
    assert a.tolist() == (twelve() + 4).tolist()
    assert_nothing_left()


@pytest.fixture
def made_from(tmp_path, request):
    """A host function from the body of its loop; ``m`` is what a test gives it last."""

    def make(body):
        lines = "\n".join(f"        {statement.strip()}" for statement in body.split(";"))
        source = f"""def program(a, state, own, m):
    add_one(Region(a))
    for k in range(3):
{lines}
        add_one(Region(a))
"""
        file = tmp_path / "program.py"
        file.write_text(source)
        names = {**globals()}
        exec(compile(source, str(file), "exec"), names)
        return optimize_transfers(names["program"])

    return make


class Watching:
    """What an adversary runs: whether it saw the array as the launches so far have left it, and a change of it."""

    def __init__(self):
        self.array = None
        self.seen = []

    def __call__(self, *args):
        self.seen.append(float(self.array[0]))
        self.array[1] += 100.0
        return 1


def overridden_init(w):
    class Sub(Pair):
        def __init__(self, *args):
            w()

    return Sub


def changed_init(w):
    made = collections.namedtuple("made", ["left", "right"])
    made.__init__ = lambda self, *args: [w()].clear()
    return made


def changed_new(w):
    made = collections.namedtuple("made", ["left", "right"])
    new = made.__new__

    def meddling(cls, *args):
        w()
        return new(cls, *args)

    made.__new__ = meddling
    return made


def iterated(w):
    class Sub(Pair):
        def __iter__(self):
            w()
            return iter((1, 2))

        def __getitem__(self, key):
            w()
            return 1

    return Sub(1, 2)


def changed_iteration(w):
    made = collections.namedtuple("made", ["left", "right"])
    made.__iter__ = made.__getitem__ = lambda self, *key: (w(), iter((1, 2)))[1]
    return made(1, 2)


def with_post_init(w):
    @dataclasses.dataclass
    class Made:
        field: object

        def __post_init__(self):
            w()

    return Made


def with_factory(w):
    @dataclasses.dataclass
    class Made:
        field: object
        other: object = dataclasses.field(default_factory=w)

    return Made


def with_setattr(w):
    @dataclasses.dataclass
    class Made:
        field: object

        def __setattr__(self, name, value):
            w()
            object.__setattr__(self, name, value)

    return Made


def with_property(w):
    class Made:
        def __init__(self, field):
            self.field = field

        @property
        def field(self):
            return 1

        @field.setter
        def field(self, value):
            w()

    return Made


def with_descriptor_set_later(w):
    class Descriptor:
        def __set__(self, owner, value):
            w()

    Made = dataclasses.make_dataclass("Made", ["field"])
    Made.field = Descriptor()
    return Made


def with_new(w):
    class Made:
        def __new__(cls, field):
            w()
            return object.__new__(cls)

        def __init__(self, field):
            self.field = field

    return Made


def with_metaclass(w):
    class Meta(type):
        def __call__(cls, *args):
            w()
            return 1

    class Made(metaclass=Meta):
        def __init__(self, field):
            self.field = field

    return Made


def setting_its_argument(w):
    class Other:
        @property
        def field(self):
            return 1

        @field.setter
        def field(self, value):
            w()

    class Made:
        def __init__(self, field, other=Other()):  # noqa: B008
            other.field = field

    return Made


def calling(w):
    class Made:
        def __init__(self, field):
            self.field = w()

    return Made


def member_with_property(w):
    class Made(enum.Enum):
        ONE = 1

        @property
        def value(self):
            return w()

    return Made.ONE


def member_with_getattribute(w):
    class Made(enum.Enum):
        ONE = 1

        def __getattribute__(self, name):
            if name == "value":
                w()
            return super().__getattribute__(name)

    return Made.ONE


def enumeration_with_metaclass(w):
    class Meta(enum.EnumType):
        def __getattribute__(cls, name):
            if name == "ONE":
                w()
            return super().__getattribute__(name)

    class Made(enum.Enum, metaclass=Meta):
        ONE = 1

    return Made


def member_with_get(w):
    class Made(enum.Enum):
        ONE = 1

        def __get__(self, instance, owner):
            w()
            return self

    return Made


def member_that_compares(w):
    class Made(enum.Enum):
        ONE = 1

        def __eq__(self, other):
            return bool(w())

        def __hash__(self):
            return int(w())

        def __bool__(self):
            return bool(w())

    return Made.ONE


class ComparedWith:
    def __init__(self, w):
        self.w = w

    def __eq__(self, other):
        return bool(self.w())

    def __hash__(self):
        return hash("FAST")

    def __format__(self, spec):
        return str(self.w())

    def __str__(self):
        return str(self.w())

    __repr__ = __str__

    def __index__(self):
        return self.w()

    def __float__(self):
        return float(self.w())

    def __bool__(self):
        return bool(self.w())

    def __iter__(self):
        self.w()
        return iter((1, 2))

    @property
    def content(self):
        return self.w()

    @content.setter
    def content(self, value):
        self.w()


class HashesAs:
    """Is found where something else is looked for."""

    def __init__(self, w, value):
        self.w, self.hash = w, hash(value)

    def __eq__(self, other):
        return bool(self.w())

    def __hash__(self):
        return self.hash


class StringLike(str):
    def __str__(self):
        self.w()
        return "x"


def string_like(w):
    made = StringLike("x")
    made.w = w
    return made


def pretending(w):
    class Made:
        @property
        def __class__(self):
            w()
            return int

    return Made()


def logger(w):
    class Logger(logging.Logger):
        def isEnabledFor(self, level):
            w()
            return False

    return Logger("made")


def logger_given_a_method(w):
    made = logging.Logger("made")
    made.isEnabledFor = lambda level: bool(w()) and False
    return made


def logger_with_a_changed_table(w):
    made = logging.Logger("made")
    made._cache = {HashesAs(w, logging.DEBUG): False, logging.DEBUG: False}
    return made


def logger_that_says_something(w):
    class Handler(logging.Handler):
        def emit(self, record):
            w()

    made = logging.Logger("made", logging.DEBUG)
    made.addHandler(Handler())
    return made


def generator(w):
    class Made(random.Random):
        def random(self):
            w()
            return 0.5

    return Made(1)


def patched_generator(w):
    made = random.Random(1)
    made.random = lambda: w() * 0.5
    return made


def bound_method(w):
    class Made:
        def __call__(self, *args):
            pass

        def __hash__(self):
            return int(w())

    return types.MethodType(Made(), 3)


def with_operators(w):
    class Made:
        def __floor__(self):
            return w()

        def __sub__(self, other):
            return w()

    return Made()


def key_in_dict(w):
    return {HashesAs(w, 7): 1}


# What looks like something harmless, what makes it from the watching function, and how often at least it runs in three turns.

ADVERSARIES = {
    "named tuple with __init__": ("m(a, k)", overridden_init),
    "named tuple given __init__": ("m(a, k)", changed_init),
    "named tuple given __new__": ("m(a, k)", changed_new),
    "iterating a subclass": ("l, r = m", iterated),
    "going through a subclass": ("[e for e in m]", iterated),
    "indexing a subclass": ("m[0]", iterated),
    "iterating a changed one": ("l, r = m", changed_iteration),
    "indexing a changed one": ("m[0]", changed_iteration),
    "__post_init__": ("m(a)", with_post_init),
    "default factory": ("m(a)", with_factory),
    "__setattr__": ("m(a)", with_setattr),
    "property": ("m(a)", with_property),
    "descriptor set later": ("m(a)", with_descriptor_set_later),
    "__new__": ("m(a)", with_new),
    "metaclass": ("m(a)", with_metaclass),
    "sets its argument's": ("m(a)", setting_its_argument),
    "calls in __init__": ("m(a)", calling),
    "member's own value": ("m.value", member_with_property),
    "member's __getattribute__": ("m.value", member_with_getattribute),
    "enumeration's metaclass": ("m.ONE", enumeration_with_metaclass),
    "member that is a descriptor": ("m.ONE", member_with_get),
    "member's __eq__": ("m == Mode.FAST", member_that_compares),
    "member's __eq__ on the right": ("Mode.FAST == m", member_that_compares),
    "member's __hash__": ("d = {m: 1}", member_that_compares),
    "member's __bool__": ("1 if m else 2", member_that_compares),
    "member and another type": ("Mode.FAST == m", ComparedWith),
    "format": ("'{}'.format(m)", ComparedWith),
    "attribute in a template": ("'{0.content}'.format(m)", ComparedWith),
    "attribute of a part in a template": ("'{0[0].content}'.format([m])", ComparedWith),
    "format_map": ("'{x.content}'.format_map({'x': m})", ComparedWith),
    "per cent": ("'%s' % m", ComparedWith),
    "per cent of a tuple": ("'%s %d' % (m, k)", ComparedWith),
    "getattr": ("getattr(m, 'content')", ComparedWith),
    "hasattr": ("hasattr(m, 'content')", ComparedWith),
    "setattr": ("setattr(m, 'content', 1)", ComparedWith),
    "chain": ("[e for e in itertools.chain([1], m)]", ComparedWith),
    "islice": ("[e for e in itertools.islice(m, 1)]", ComparedWith),
    "islice up to": ("[e for e in itertools.islice([1, 2], m)]", ComparedWith),
    "product": ("itertools.product(m, [1])", ComparedWith),
    "repeat times": ("itertools.repeat(1, m)", ComparedWith),
    "product repeat": ("itertools.product([1], repeat=m)", ComparedWith),
    "enumerate from": ("enumerate([1], start=m)", ComparedWith),
    "zip strict": ("zip([1], strict=m)", ComparedWith),
    "math": ("math.sin(m)", ComparedWith),
    "slice of a list": ("[1, 2, 3][m:]", ComparedWith),
    "slice of an array": ("b = np.zeros(3); b[m:]", ComparedWith),
    "slice that is assigned": ("l = [1, 2]; l[m:] = [3]", ComparedWith),
    "index to pop": ("[1, 2, 3].pop(m)", ComparedWith),
    "index to insert": ("[1, 2, 3].insert(m, 1)", ComparedWith),
    "end of print": ("print('', end=m)", string_like),
    "flush of print": ("print('', end='', flush=m)", ComparedWith),
    "in a deque": ("1 in collections.deque([m])", ComparedWith),
    "key that hashes alike": ("m.get(7)", key_in_dict),
    "item that hashes alike": ("7 in m and m[7]", key_in_dict),
    "bound method as a key": ("d = {m: 1}", bound_method),
    "isinstance": ("isinstance(m, int)", pretending),
    "attribute of what pretends": ("getattr(m, 'real', 1); isinstance(m, int)", pretending),
    "subclass of Logger": ("m.debug('x')", logger),
    "logger given a method": ("m.debug('x')", logger_given_a_method),
    "logger with a changed table": ("m.debug('x')", logger_with_a_changed_table),
    "logger that is on": ("m.debug('x')", logger_that_says_something),
    "subclass of Random": ("m.random()", generator),
    "subclass of Random, shared code": ("m.uniform(0, 1)", generator),
    "changed Random": ("m.uniform(0, 1)", patched_generator),
    "numbers for random": ("random.uniform(0, m)", with_operators),
    "numbers for math": ("math.floor(m)", with_operators),
}


@pytest.mark.parametrize(("body", "make"), ADVERSARIES.values(), ids=ADVERSARIES)
def test_what_may_run_anybodys_code_uses_everything(body, make, made_from, capsys):
    watching = Watching()
    watching.array = np.zeros(12)
    # Made before: what making it runs does not count.
    adversary = make(watching)
    program = made_from(body)
    watching.array, watching.seen = twelve(), []
    program(watching.array, State(None), random.Random(1), adversary)
    seen, runs = watching.seen, len(watching.seen)
    assert runs >= 3 and seen == sorted(seen) and {1.0, 2.0, 3.0} == set(seen)
    expected = twelve() + 4
    expected[1] += 100.0 * runs
    assert watching.array.tolist() == expected.tolist()
    assert_nothing_left()


PATCHES = {
    "logging.Logger.isEnabledFor": ("quiet.debug('x')", logging.Logger, "isEnabledFor"),
    "logging.Logger.debug": ("quiet.debug('x')", logging.Logger, "debug"),
    "logging.debug": ("logging.debug('x')", logging, "debug"),
    "random.Random.uniform": ("own.uniform(0, 1)", random.Random, "uniform"),
    "random.uniform": ("random.uniform(0, 1)", random, "uniform"),
    "math.sin": ("math.sin(1.0)", math, "sin"),
    "time.time": ("time.time()", time, "time"),
    "itertools.chain": ("itertools.chain([1])", itertools, "chain"),
    "types.SimpleNamespace": ("types.SimpleNamespace(a=1)", types, "SimpleNamespace"),
    "enum.property.__get__": ("Mode.FAST.value", enum.property, "__get__"),
    "State.__init__": ("State(a)", State, "__init__"),
    "np.random.rand": ("np.random.rand()", np.random, "rand"),
}


@pytest.mark.parametrize(("body", "owner", "name"), PATCHES.values(), ids=PATCHES)
def test_what_somebody_has_put_in_its_place_uses_everything(body, owner, name, made_from, monkeypatch):
    watching = Watching()
    program = made_from(body)
    watching.array = a = twelve()
    state, own = State(None), random.Random(1)

    def meddling(*args, **kwargs):
        watching()

    with monkeypatch.context() as patch:
        patch.setattr(owner, name, meddling)
        program(a, state, own, None)
    runs = len(watching.seen)
    assert runs >= 3 and set(watching.seen) == {1.0, 2.0, 3.0}
    expected = twelve() + 4
    expected[1] += 100.0 * runs
    assert a.tolist() == expected.tolist()


def test_arrays_with_a_formatter_of_somebody(made_from):
    watching = Watching()
    for body in ("'%s' % a", "'{}'.format(a)", "f'{a}'"):
        watching.array, watching.seen = twelve(), []
        with np.printoptions(formatter={"float": lambda value: str(watching())}):
            made_from(body)(watching.array, None, None, None)
        assert set(watching.seen) == {1.0, 2.0, 3.0}, body
        assert watching.array[1] == 1 + 4 + 100 * len(watching.seen)
