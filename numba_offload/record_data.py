"""A kernel's record as plain data, for files, and back."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable
from typing import Any

from numba_offload.analysis.affine import Access, Expression, Key
from numba_offload.analysis.intent import LeafIntent
from numba_offload.analysis.ownership import SharedIndex
from numba_offload.errors import BundleError
from numba_offload.launch_facts import plain_scalars
from numba_offload.plain_data import Plain, fields, flag, listed, one_of, parts, real, refuse, text, whole
from numba_offload.record import KernelRecord, Parameter
from numba_offload.targets.facts_data import facts_to_data, read_fact
from numba_offload.targets.layout import LLVM_TYPES, POINTER, Slot
from numba_offload.targets.options import THREADS_FIT, CompileOptions

FORMAT = 1
"""Raised whenever what is written here changes its meaning: other formats are refused."""

_FIELDS = (
    "format", "name", "filename", "parameters", "captured", "options", "united", "layout", "leaves", "shared", "nodes",
    "accesses", "facts",
)  # fmt: skip
_OPTIONS = ("boundscheck", "fastmath", "contract", "unsafe")
_DEEPEST = 400
_MAPS = ("none", "to", "from", "tofrom")


# ------------------------------------------------------------------------------------------------------------- writing


def record_to_data(record: KernelRecord) -> Plain:
    """What ``record_from_data`` reads."""
    nodes = _Nodes()
    accesses = [[list(a.key), a.leaf, [nodes.number(e) for e in a.indices]] for a in record.accesses]
    return {
        "format": FORMAT,
        "name": record.name,
        "filename": record.filename,
        "parameters": [[p.name, p.positional_only, _default(p)] for p in record.parameters],
        "captured": list(record.captured),
        "options": {name: getattr(record.options, name) for name in _OPTIONS},
        "united": record.united,
        "layout": [[s.name, s.code, s.llvm, s.data, s.written] for s in record.layout],
        "leaves": [[leaf.name, leaf.map, list(leaf.reasons)] for leaf in record.leaves.values()],
        "shared": [[sorted(s.source), sorted(s.target), s.line] for s in record.shared_indices],
        "nodes": nodes.data,
        "accesses": accesses,
        "facts": facts_to_data(record.facts),
    }


class _Nodes:
    """Expressions as one table, in which a node refers to earlier ones: a shared part is written once."""

    def __init__(self) -> None:
        self.data: list[Plain] = []
        self._numbers: dict[int, int] = {}
        self._kept: list[Expression] = []

    def number(self, node: Expression) -> int:
        known = self._numbers.get(id(node))
        if known is None:
            args = [self.number(a) if isinstance(a, Expression) else a for a in node.args]
            known = self._numbers[id(node)] = len(self.data)
            self._kept.append(node)  # an id is a node's only while it lives
            self.data.append([node.op, *args])
        return known


def _default(parameter: Parameter) -> Plain:
    if not parameter.has_default:
        return []
    value = parameter.default
    if isinstance(value, complex):
        return ["complex", value.real.hex(), value.imag.hex()]
    if isinstance(value, float):
        return ["float", value.hex()]
    return ["plain", value]


# ------------------------------------------------------------------------------------------------------------- reading


def record_from_data(data: Plain) -> KernelRecord:
    """The record, every part of it checked. Raises BundleError, and nothing else, for data that is none."""
    if type(data) is dict and "format" in data:
        one_of(data["format"], "the format of a record", [FORMAT])
    found = fields(data, "a record", _FIELDS)
    layout = listed(found["layout"], "layout", _slot)
    _distinct((slot.name for slot in layout), "layout")
    leaves = {leaf.name: leaf for leaf in listed(found["leaves"], "leaves", _leaf)}
    if len(leaves) != len(found["leaves"]) or set(leaves) != {s.name.removesuffix(".data") for s in layout if s.data}:
        raise BundleError("a record's leaves are not the arrays of its layout")
    parameters = listed(found["parameters"], "parameters", _parameter)
    captured = listed(found["captured"], "captured", text)
    _distinct((*(p.name for p in parameters), *captured), "parameters")
    known = _Symbols(leaves, layout)
    nodes: list[Expression] = []
    for k, node in enumerate(listed(found["nodes"], "nodes", _any)):
        nodes.append(_expression(node, f"nodes[{k}]", nodes, known))
    _check_depth(nodes)
    accesses = listed(found["accesses"], "accesses", lambda value, what: _access(value, what, nodes, known))
    keys = {access.key for access in accesses}
    facts = frozenset(listed(found["facts"], "facts", lambda value, what: _fact(value, what, keys, known)))
    return KernelRecord(
        text(found["name"], "name"),
        text(found["filename"], "filename"),
        parameters,
        captured,
        _options(found["options"]),
        flag(found["united"], "united"),
        layout,
        leaves,
        listed(found["shared"], "shared", lambda value, what: _shared(value, what, leaves)),
        accesses,
        facts,
    )


class _Symbols:
    """What a record's expressions may refer to."""

    def __init__(self, leaves: Collection[str], layout: tuple[Slot, ...]) -> None:
        names = {slot.name: slot for slot in layout}
        axes = Counter(slot.name.rpartition(".shape[")[0] for slot in layout if ".shape[" in slot.name)
        self.axes = {leaf: axes[leaf] for leaf in leaves}
        self.integers = {name for name in plain_scalars(leaves, layout) if names[name].code in "qQiIhHbB"}
        self.slots = set(names)


def _any(value: Plain, what: str) -> Plain:
    return value


def _distinct(names: Iterable[str], what: str) -> None:
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise BundleError(f"{what} has {twice[0]!r} twice")


def _slot(value: Plain, what: str) -> Slot:
    name, code, llvm, data, written = parts(value, what, 5)
    code = one_of(code, f"{what}'s format", list(LLVM_TYPES))
    llvm = one_of(llvm, f"{what}'s type", [LLVM_TYPES[code], *([POINTER] if code == "q" else [])])
    data, written = flag(data, what), flag(written, what)
    name = text(name, what)
    if (data and not (llvm == POINTER and name.endswith(".data"))) or (written and not data):
        refuse(what, value, "a data pointer named after its array")
    return Slot(name, code, llvm, data, written)


def _leaf(value: Plain, what: str) -> LeafIntent:
    name, how, reasons = parts(value, what, 3)
    return LeafIntent(text(name, what), one_of(how, f"{what}'s map", _MAPS), listed(reasons, f"{what}'s reasons", text))


def _parameter(value: Plain, what: str) -> Parameter:
    name, only, default = parts(value, what, 3)
    name, only = text(name, what), flag(only, what)
    what = f"the default of {name!r}"
    if default == [] and type(default) is list:
        return Parameter(name, only)
    if type(default) is not list:
        refuse(what, default, "a list")
    kind = one_of(default[0], what, ["plain", "float", "complex"])
    if kind == "complex":
        _, re, im = parts(default, what, 3)
        return Parameter(name, only, True, complex(real(re, what), real(im, what)))
    _, number = parts(default, what, 2)
    if kind == "float":
        return Parameter(name, only, True, real(number, what))
    if number is not None and type(number) not in (bool, int):
        refuse(what, number, "null, true, false or an integer")
    return Parameter(name, only, True, number)


def _options(value: Plain) -> CompileOptions:
    found = fields(value, "options", _OPTIONS)
    contract = one_of(found["contract"], "contract", [None, True, False])
    boundscheck, fastmath, unsafe = (flag(found[name], name) for name in ("boundscheck", "fastmath", "unsafe"))
    return CompileOptions(boundscheck, fastmath, contract, unsafe)


def _shared(value: Plain, what: str, leaves: Collection[str]) -> SharedIndex:
    source, target, line = parts(value, what, 3)
    known = sorted(leaves)
    one, other = (frozenset(listed(names, what, lambda v, w: one_of(v, w, known))) for names in (source, target))
    if not (one and other):
        refuse(what, value, "Regions on both sides")
    return SharedIndex(one, other, whole(line, what, 0))


def _expression(value: Plain, what: str, nodes: list[Expression], known: _Symbols) -> Expression:
    if type(value) is not list or not value:
        refuse(what, value, "an operation and its arguments")
    op = one_of(value[0], what, ["const", "owned", "scalar", "shape", "range", "+", "-", "*"])
    if op == "const":
        number = parts(value, what, 2)[1]
        return Expression(op, (number if type(number) is int else refuse(what, number, "an integer"),))
    if op == "scalar":
        return Expression(op, (one_of(parts(value, what, 2)[1], what, sorted(known.integers)),))
    _, left, right = parts(value, what, 3)
    if op in ("owned", "shape"):
        leaf = one_of(left, what, sorted(known.axes))
        return Expression(op, (leaf, whole(right, what, 0, known.axes[leaf] - 1)))
    return Expression(op, tuple(nodes[whole(k, what, 0, len(nodes) - 1)] for k in (left, right)))


def _check_depth(nodes: list[Expression]) -> None:
    """Expressions are evaluated by recursion. One that the analysis has built, by recursion too, is never so deep."""
    depths: dict[int, int] = {}
    for node in nodes:
        depths[id(node)] = 1 + max((depths[id(a)] for a in node.args if isinstance(a, Expression)), default=0)
        if depths[id(node)] > _DEEPEST:
            raise BundleError(f"nodes has an expression of more than {_DEEPEST} levels")


def _access(value: Plain, what: str, nodes: list[Expression], known: _Symbols) -> Access:
    key, leaf, indices = parts(value, what, 3)
    leaf = one_of(leaf, what, sorted(known.axes))
    numbers = listed(indices, what, lambda v, w: whole(v, w, 0, len(nodes) - 1))
    if len(numbers) != known.axes[leaf]:
        refuse(what, indices, f"an index for each axis of {leaf!r}")
    return Access(read_fact(key, what), leaf, tuple(nodes[k] for k in numbers))


def _fact(value: Plain, what: str, keys: set[Key], known: _Symbols) -> Key:
    fact = read_fact(value, what)
    if fact[0] == THREADS_FIT:
        array: Any = fact[1] if len(fact) == 2 else None
        if array in known.axes or f"{array}.size" in known.slots:
            return fact
    elif fact in keys:
        return fact
    refuse(what, value, "an access, or a Region or an index array that is no smaller than the launch")
