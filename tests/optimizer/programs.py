"""Random host programs as source text, for Hypothesis."""

from __future__ import annotations

from hypothesis import strategies as st

ARRAYS = ("a", "b", "c", "t", "big[:12]", "big[12:]", "big[::2]", "big[1::2]", "m[0]", "m[1]", "ns.f", "box[0]", "table['x']",
          "new")  # fmt: skip
NAMES = ("a", "b", "c", "t", "big", "m", "v", "new", "captured")
_READS = (
    "out.append(float({x}[3]))", "out.append(float({x}.sum()))", 'out.append(f"{({x})}")', "print({x}, s, file=sink)",
    "out.append([float(e) for e in {x}])", "out.append(bool(({x} > 1).any()))", "out.append(float(np.dot({x}, {y})))",
    "out.append(float(np.max({x})))", "out.append(float(sum({x})))", "out.append((lambda: float({x}[1]))())",
    "s = s + int({x}[2]) % 5", "out.append(str({x}[-1]))", "out.append({x}.tolist())", "out.append([*map(float, {x})])",
    "p, *q = {x}; out.append(float(p) + float(q[1]))", "out.append(sum(float(e) for e in {x}))", "out.append('%s' % {x})",
    "out.append(float({x} @ {y}))", "out.append(3.0 in {x})", "out.append({x}.copy()[4] + ({x} * 2)[5])",
    "out.append(float({x}.reshape(3, 4)[1, 1]))", "out.append([float(e) for e, k in zip({x}, range(4))])",
    "out.append(max({x}.max(), {y}.min()))", "out.append({x}.item(3))", "out.append(np.transpose([{x}, {y}]).tolist())",
    "out.append([*memoryview({x})])", "out.append([e for e in {x}.flat])", "out.append(next(iter({x})))",
    "out.append([*enumerate('ab', count({x}))])", "out.append([*itertools.islice(range(9), count({x}), None, count({y}))])",
    "out.append([*itertools.repeat(s, count({x}))])", "e = number[()]; out.append(e)",
    "out.append([*itertools.islice(range(90), number)])",
)  # fmt: skip
_WRITES = (
    "{x}[s % 12] = 4.0", "{x}[2:5] += 1.0", "{x}[:] = 3.0", "{x}[...] = {y} * 0.5", "{x}.fill(2.0)", "np.copyto({x}, {y})",
    "np.add({x}, {y}, out={x})", "{x} *= 0.5", "{x}.sort()", "{x}[::2], {x}[1::2] = 1.0, 2.0", "np.negative({x}, {x})",
    "{x}.setflags(write=True)", "{x}.shape = (12,)",
    "memoryview({x})[2] = 6.0", "for e in np.nditer({x}, op_flags=['readwrite']): e[...] = e + 1.0", "number[...] = 2",
    "{x}[[1, 3]] = 7.0", "{x}[{y} > 2] = 0.25", "{x}.flat[3] = 9.0", "view = {x}[3:9]; view[0] = 8.0", "{x}.real[1] = 5.0",
)  # fmt: skip
_STORED = (
    "p, q = Pair({x}, s); p[2] = 5.0", "pair = Pair(s, {x}); out.append(float(pair.right[1])); out.append(pair[0])",
    "state = State({x}, time=1.0); state.time += s; out.append(float(state.field[2]) + state.time)",
    "out.append((Mode.FAST.value, Mode.SAFE.name, Mode.FAST == Mode.SAFE, 1 if Mode.FAST else 2))",
    "modes = {Mode.FAST: {x}}; out.append(float(modes[Mode.FAST][0])); modes[Mode.FAST][1] = 2.0",
    "out.append('{} {:.1f}'.format(s, 2)); out.append('{}'.format({x}))", "quiet.debug('%s', {x}); quiet.info(s)",
    "out.append(float(getattr(ns, 'f')[s % 3])); setattr(ns, 'h', {x}); ns.h[0] = 6.0",
    "for e in itertools.chain([{x}], ({y},)): out.append(float(e[3]))",
    "for k, e in itertools.product(range(2), [{x}]): e[k] += 1.0", "out.append([float(e) for e in itertools.islice({x}, 2)])",
    "for e, k in zip(itertools.repeat({x}, 2), itertools.count(s)): e[k % 12] = 3.0",
    "out.append([(float(p), float(q)) for p, q in itertools.combinations({x}[:3], 2)])",
)  # fmt: skip
_LOOKING_ALIKE = (
    "pair = MeddlingPair({x}, s)", "p, q = MeddlingPair(s, 1); out.append(p)", "out.append(MeddlingPair(s, 1)[0])",
    "MeddlingState({x})", "out.append(mode.value)", "out.append(mode == Mode.FAST)", "out.append(Mode.FAST == mode)",
    "out.append(2 if mode else 3)", "modes = {mode: 1}", "log.debug('%s', s)", "out.append('{}'.format(obj))",
    "out.append('{0.content}'.format(obj))", "setattr(obj, 'content', 1)", "out.append([*itertools.chain(obj, [1])])",
    "out.append(list(range(9))[:obj])", "out.append([*itertools.product(obj, [1])])", "out.append([1, 2, 3].pop(obj))",
)  # fmt: skip
_UNKNOWN = (
    "out.append(peek())", "poke()", "out.append(obj.content)", "obj.content = 3", "out.append(obj + 1)", "out.append(-obj)",
    "out.append(obj < 1)", "out.append(len(obj))", "out.append([*obj])", "out.append(3 in obj)", "out.append(obj[0])",
    "obj[0] = 1",
    "del obj[0]", "out.append(f'{obj}')", "out.append(str(obj))", "out.append(float(obj))", "out.append(obj(1))", "obj += 1",
    "out.append(obj.missing)", "out.append(not obj)", "out.append(obj and 1)", "p, q = obj; out.append(p + q)",
    "out.append(list(range(12))[obj])", "out.append(obj == 1)", "out.append({obj: 1}[obj] if s < 0 else 0)",
    "print(obj, file=sink)", "out.append(sorted([2, 1], key=obj))", "s = s + (1 if obj else 2)", "out.append(0 < s < 3 < obj)",
    "out.append([1 for e in obj if e > 1])", "out.append(max([1, 2], key=peek))", "out.append(getattr(obj, 'content'))",
    "out.append(obj.field[1])", "out.append([peek() for e in range(2)])", "out.append({'k': peek()}['k'])",
    "assert obj or True, peek()", "out.append(isinstance(obj, int))",
)  # fmt: skip
_MOVES = (
    "t = {x}", "a, b = b, a", "box[0], box[1] = box[1], box[0]", "ns.f = {x}", "table['x'] = {x}", "new = np.zeros(12)",
    "new = {x}.copy()", "v = {x}", "t = new", "box.append({x})", "t = [{x}, {y}][s % 2]", "t = {x} if s % 2 else {y}",
    "s += 1", "s = (s * 3 + 1) % 7", "del t; t = {x}", "new = np.ones(12) + s", "(t := {x})",
)  # fmt: skip
_LAUNCHES = (
    "add_to({x}, Region({y}))", "copy_to({x}, Region({y}))", "fill_with(Region({x}), s + 0.5)", "add_captured(Region({x}))",
    "two_outputs({x}, Region({y}), Region({z}))", "may_fail({x}, Region({y}), {limit})", "add_to(x={x}, y=Region({y}))",
    "view = np.asarray(memoryview({y})); add_to({x}, y=Region(view)); view = None", "add_one(Region(number))",
    "view = strided({y}); add_to({x}, y=Region(view)); view = None", "number += 1; add_one(Region(number))",
    "new = np.ones(12); add_to({x}, Region(new)); new.resize(15, refcheck=False); fill_with(Region(new), s); "
    "new.resize(12, refcheck=False)",
    "r = Region({y}); add_to({x}, r)", "args = ({x}, Region({y})); copy_to(*args)",
)  # fmt: skip
_TESTS = ("s % 2", "{x}[0] > 2", "({x} < {y}).all()", "peek() > 10", "obj", "not s", "s > 1 and {x}[1] > 1", "s < {x}[2] < 9")

array = st.sampled_from(ARRAYS)
_limit = st.sampled_from(["-100.0", "8.0", "1e9", "{y}[0]"])


def _filled(text: str, x: str, y: str, z: str = "") -> str:
    for mark, array_ in (("{x}", x), ("{y}", y), ("{z}", z)):
        text = text.replace(mark, array_)
    return text


def _indented(lines: list[str]) -> list[str]:
    return [f"    {line}" for line in lines]


@st.composite
def _simple(draw: st.DrawFn, jumps: bool) -> list[str]:
    # Launches are the most, so that something is on the device when the host does something.
    kind = draw(st.sampled_from([*[_LAUNCHES] * 4, _READS, _WRITES, _STORED, _UNKNOWN, _LOOKING_ALIKE, _MOVES, None]))
    if kind is None:
        jump = draw(st.sampled_from(["return s", "raise KeyError(s)", *(["break", "continue"] if jumps else []), "pass", "pass"]))
        return [f"if s % 5 == {draw(st.integers(0, 4))}: {jump}"]
    x, y, z = draw(array), draw(array), draw(array)
    text = draw(st.sampled_from(kind))
    return [_filled(text.replace("{limit}", draw(_limit)), x, y, z)]


@st.composite
def _block(draw: st.DrawFn, depth: int, jumps: bool, generator: bool) -> list[str]:
    lines: list[str] = []
    for _ in range(draw(st.integers(1, 4))):
        lines += draw(_statement(depth, jumps, generator))
    return lines


@st.composite
def _statement(draw: st.DrawFn, depth: int, jumps: bool, generator: bool) -> list[str]:
    kinds = ["simple"] * 6
    if depth:
        kinds += ["if", "for", "for over", "while", "try", "with", "nested", "finally", "match"]
    if generator:
        kinds += ["yield", "yield"]
    kind = draw(st.sampled_from(kinds))
    if kind == "simple":
        return draw(_simple(jumps))
    if kind == "yield":
        forms = ["yield s", "got = yield float(a[0]); s += got or 0", "yield from [1, 2]", "yield from obj"]
        return [draw(st.sampled_from(forms))]
    inner = draw(_block(depth - 1, jumps or kind.startswith("for") or kind == "while", generator))
    x, y = draw(array), draw(array)
    if kind == "if":
        head = f"if {_filled(draw(st.sampled_from(_TESTS)), x, y)}:"
        lines = [head, *_indented(inner)]
        if draw(st.booleans()):
            lines += ["else:", *_indented(draw(_block(depth - 1, jumps, generator)))]
        return lines
    if kind == "for":
        return [f"for k in range({draw(st.integers(0, 3))}):", *_indented(inner)]
    if kind == "for over":
        head = draw(st.sampled_from([
            "for e in obj:", f"for e in {x}[:3]:", f"for e in [{x}, {y}]:", f"for k, e in enumerate({x}[:2]):",
            "for k, e in enumerate(range(2)):", "for e in (peek() for _ in range(2)):", "for e in m:",
        ]))  # fmt: skip
        return [head, *_indented(inner)]
    if kind == "while":
        return ["turns = 0", "while (turns := turns + 1) < 3:", *_indented(inner)]
    if kind == "try":
        caught = draw(st.sampled_from(["ValueError", "KeyError", "Exception"]))
        handler = draw(_block(depth - 1, jumps, generator))
        handled = [f"except {caught} as error:", "    out.append(type(error).__name__)", *_indented(handler)]
        return ["try:", *_indented(inner), *handled]
    if kind == "finally":
        return ["try:", *_indented(inner), "finally:", *_indented(draw(_block(depth - 1, False, False)))]
    if kind == "with":
        head = draw(st.sampled_from(["with obj:", "with obj as e:", "with np.errstate(all='ignore'), obj:"]))
        return [head, *_indented(inner)]
    if kind == "match":
        return ["match s:", "    case 1 | 2:", *_indented(_indented(inner)), "    case _:", "        s += 1"]
    plain = [line for line in draw(_simple(False)) if "return" not in line]
    names = "    nonlocal s, t, obj, a, b, v, new, number"
    return ["def nested():", names, *_indented(plain or ["pass"]), "    return 1", "nested()"]


@st.composite
def programs(draw: st.DrawFn) -> str:
    """The source of ``def program(world)``, a function or a generator function."""
    generator = draw(st.integers(0, 5)) == 0
    body = draw(_block(2, False, generator))
    while not any("Region" in line for line in body):
        body = [*draw(_simple(False)), *body, f"add_to({draw(array)}, Region({draw(array)}))"]
    head = [
        "def program(world):",
        "    global captured",
        "    a, b, c, big, m, out, sink, obj, ns, box, table = (",
        "        world.a, world.b, world.c, world.big, world.m, world.out, world.sink, world.obj, world.ns, world.box,",
        "        world.table)",
        "    peek, poke, number = world.peek, world.poke, world.number",
        "    MeddlingPair, MeddlingState, mode, log = world.look_alikes",
        "    s, t, v, new = 1, a, a[2:8], np.zeros(12)",
    ]
    end = ["    yield s"] if generator else ["    return s"]
    return "\n".join([*head, *_indented(body), *end]) + "\n"
