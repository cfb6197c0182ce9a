"""A host function's source with every operation that may use an array handed to a guard, which looks at the operands.

The rewritten function does what the original does, in the same order; its last parameter is the guard (``uses.py``). What is
not rewritten is either plain (names, constants, displays, jumps) or code that runs elsewhere or later (lambdas, nested
functions and classes, generator expressions): to call it or to iterate over it is a use of everything.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Sequence
from typing import Any

from numba_offload.optimizer.hints import Hint, hints
from numba_offload.optimizer.sites import Loop, Site

GUARD = "_offload_uses"
"""The rewritten function's last parameter."""
_TEMPORARY, _CALL = "_offload_value_", "_offload_call"
_TEXT = 60

_BINARY = {
    ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.Div: "truediv", ast.FloorDiv: "floordiv", ast.Mod: "mod",
    ast.Pow: "pow", ast.MatMult: "matmul", ast.LShift: "lshift", ast.RShift: "rshift", ast.BitAnd: "and_",
    ast.BitOr: "or_", ast.BitXor: "xor",
}  # fmt: skip
_UNARY = {ast.USub: "neg", ast.UAdd: "pos", ast.Invert: "invert"}
_COMPARE = {ast.Eq: "eq", ast.NotEq: "ne", ast.Lt: "lt", ast.LtE: "le", ast.Gt: "gt", ast.GtE: "ge"}
_FRAMES = {"super", "locals", "vars", "dir", "eval", "exec"}
"""Builtins that look at the frame that calls them."""


class NotRewritable(Exception):
    """A construct that is left to run as it stands. The message says which, and where."""


def rewrite(function: ast.FunctionDef | ast.AsyncFunctionDef, owner: str | None) -> tuple[Any, list[Site], list[Loop]]:
    """The function rewritten, with its sites and loops. ``owner``: the class whose method it is, if any.

    Raises NotRewritable.
    """
    rewriter = _Rewriter(owner)
    return rewriter.function(function), rewriter.sites, rewriter.loops


class _Rewriter(ast.NodeTransformer):
    def __init__(self, owner: str | None) -> None:
        self.sites: list[Site] = []
        self.loops: list[Loop] = []
        self._owner = owner
        self._loop = -1
        self._statement = ""
        """The statement that is being rewritten, or its head."""
        self._temporaries = 0
        self._iterated = False
        """Inside what a comprehension goes through."""

    def visit(self, node: ast.AST) -> Any:
        done = super().visit(node)
        if isinstance(done, ast.expr) and not hasattr(done, "lineno"):
            ast.copy_location(done, node)
        return done

    def function(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> Any:
        out = bare(node)
        # By keyword only: super() takes the first argument for the instance.
        out.args.kwonlyargs.append(ast.arg(GUARD))
        out.args.kw_defaults.append(None)
        body = list(node.body)
        head: list[Any] = []
        if isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant) and isinstance(body[0].value.value, str):
            head, body = body[:1], body[1:]
        self._end = node
        end = self._call("leave", node, text=f"the end of {node.name}()", at=_last_line(node))
        failing = ast.ExceptHandler(None, None, [ast.Expr(ast.Call(_guard("failing"), [], [])), ast.Raise()])
        out.body = [*head, ast.Try(self._block(body, True) or [ast.Pass()], [failing], [], [ast.Expr(end)])]
        return out

    # How guards are called

    def _site(self, node: Any, text: str | None = None, at: int | None = None) -> ast.Constant:
        arguments: tuple[str, ...] = ()
        keywords: tuple[str, ...] = ()
        if isinstance(node, ast.Call):
            arguments = tuple(_argument(a) for a in (*node.args, *(k.value for k in node.keywords)))
            keywords = tuple(k.arg or "**" for k in node.keywords)
        if text is None:
            # A name by itself does not tell what is done with it.
            text = self._statement if isinstance(node, ast.Name) else _shown(node)
        self.sites.append(Site(at or node.lineno, text, self._loop, arguments, keywords))
        return ast.Constant(len(self.sites) - 1)

    def _call(self, guard: str, node: Any, *values: Any, text: str | None = None, at: int | None = None) -> ast.Call:
        return ast.Call(_guard(guard), [self._site(node, text, at), *values], [])

    def _temporary(self) -> str:
        self._temporaries += 1
        return f"{_TEMPORARY}{self._temporaries}"

    def _mangled(self, name: str) -> str:
        owner = (self._owner or "").lstrip("_")
        return f"_{owner}{name}" if owner and name.startswith("__") and not name.endswith("__") else name

    # Statements

    def _block(self, statements: Sequence[Any], whole_function: bool = False) -> list[Any]:
        out: list[Any] = []
        early = hints(statements, whole_function)
        for position, statement in enumerate(statements):
            self._statement = _headline(statement)
            done = self.visit(statement)
            begun = [self._begin_copy(hint) for hint in early if hint.position == position]
            for one in [*(done if isinstance(done, list) else [done]), *begun]:
                if one is not None:
                    ast.copy_location(one, statement)
                    out.append(one)
        return out

    def _begin_copy(self, hint: Hint) -> Any:
        user = self._end if hint.next is None else hint.next
        text = f"the end of {self._end.name}()" if hint.next is None else _headline(user)
        guard = "soon_back" if hint.way == "back" else "soon_over"
        at = _last_line(user) if hint.next is None else None
        call = self._call(guard, user, ast.Name(hint.name, ast.Load()), ast.Constant(hint.name), text=text, at=at)
        if hint.certain:
            return ast.Expr(call)
        unbound = ast.ExceptHandler(ast.Name("NameError", ast.Load()), None, [ast.Pass()])
        return ast.Try([ast.Expr(call)], [unbound], [], [])

    def visit_Expr(self, node: ast.Expr) -> Any:
        return ast.Expr(self.visit(node.value))

    def visit_Assign(self, node: ast.Assign) -> Any:
        value = self.visit(node.value)
        if len(node.targets) == 1:
            return self._store(node.targets[0], value)
        name = self._temporary()
        out: list[Any] = [ast.Assign([ast.Name(name, ast.Store())], value)]
        for target in node.targets:
            out += self._store(target, ast.Name(name, ast.Load()))
        return [*out, _forgotten(name)]

    def visit_AnnAssign(self, node: ast.AnnAssign) -> Any:
        if node.value is None:
            # Where it belongs is looked at, and no more.
            if isinstance(node.target, ast.Attribute):
                return ast.Expr(self.visit(node.target.value))
            if isinstance(node.target, ast.Subscript):
                return [ast.Expr(self.visit(node.target.value)), ast.Expr(self._key(node.target.slice))]
            return node
        return self._store(node.target, self.visit(node.value))

    def _store(self, target: Any, value: Any) -> list[Any]:
        """Assign to a target, whatever it is."""
        if isinstance(target, ast.Name):
            return [ast.Assign([target], value)]
        if isinstance(target, ast.Attribute):
            name = ast.Constant(self._mangled(target.attr))
            return [ast.Expr(self._call("set_attribute", target, value, self.visit(target.value), name, text=self._statement))]
        if isinstance(target, ast.Subscript):
            key = self._key(target.slice)
            return [ast.Expr(self._call("set_item", target, value, self.visit(target.value), key, text=self._statement))]
        unpacked = self._call("iterable", target, value, text=self._statement)
        if all(isinstance(_starred(part), ast.Name) for part in target.elts):
            return [ast.Assign([target], unpacked)]
        # One after the other, as what an earlier one assigns may be part of a later one.
        names = [self._temporary() for _ in target.elts]
        taken: list[Any] = [ast.Name(name, ast.Store()) for name in names]
        for position, part in enumerate(target.elts):
            if isinstance(part, ast.Starred):
                taken[position] = ast.Starred(taken[position], ast.Store())
        out: list[Any] = [ast.Assign([ast.Tuple(taken, ast.Store())], unpacked)]
        for temporary, part in zip(names, target.elts, strict=True):
            out += [*self._store(_starred(part), ast.Name(temporary, ast.Load())), _forgotten(temporary)]
        return out

    def visit_AugAssign(self, node: ast.AugAssign) -> Any:
        operation = ast.Constant("i" + _BINARY[type(node.op)].rstrip("_"))
        target = node.target
        if isinstance(target, ast.Name):
            old: Any = ast.Name(target.id, ast.Load())
            new = self._call("inplace", node, operation, old, self.visit(node.value))
            return ast.Assign([target], new)
        owner = self._temporary()
        out: list[Any] = [ast.Assign([ast.Name(owner, ast.Store())], self.visit(target.value))]
        owner_value = ast.Name(owner, ast.Load())
        used = [owner]
        if isinstance(target, ast.Attribute):
            place: Any = ast.Constant(self._mangled(target.attr))
            get, put = "attribute", "set_attribute"
        else:
            key = self._temporary()
            used.append(key)
            out.append(ast.Assign([ast.Name(key, ast.Store())], self._key(target.slice)))
            place = ast.Name(key, ast.Load())
            get, put = "item", "set_item"
        old = self._call(get, target, owner_value, place)
        new = self._call("inplace", node, operation, old, self.visit(node.value))
        return [*out, ast.Expr(self._call(put, node, new, owner_value, place)), *map(_forgotten, used)]

    def visit_Delete(self, node: ast.Delete) -> Any:
        out: list[Any] = []
        targets: list[Any] = node.targets
        for target in targets:
            if isinstance(target, ast.Name):
                dropped = self._call("dropping", target, ast.Name(target.id, ast.Load()), text=f"del {target.id}")
                out += [ast.Expr(dropped), ast.Delete([target])]
            elif isinstance(target, ast.Subscript):
                key = self._key(target.slice)
                deleted = self._call("delete_item", target, self.visit(target.value), key, text=self._statement)
                out.append(ast.Expr(deleted))
            elif isinstance(target, ast.Attribute):
                name = ast.Constant(self._mangled(target.attr))
                deleted = self._call("delete_attribute", target, self.visit(target.value), name, text=self._statement)
                out.append(ast.Expr(deleted))
            else:
                out += self.visit_Delete(ast.Delete(target.elts))
        return out

    def visit_For(self, node: ast.For) -> Any:
        iterated = self.visit(node.iter)
        number, outer = self._enter_loop(node, f"for {_shown(node.target)} in {_shown(node.iter)}")
        iterated = self._call("iterate", node.iter, ast.Constant(number), iterated, text=self._statement)
        target, head = self._loop_target(node.target)
        body = [*head, *self._block(node.body)]
        self._loop = outer
        return ast.For(target, iterated, body, self._block(node.orelse))

    def visit_While(self, node: ast.While) -> Any:
        number, outer = self._enter_loop(node, f"while {_shown(node.test)}")
        again = self._call("again", node.test, ast.Constant(number))
        test = ast.BoolOp(ast.And(), [again, self._truth(node.test)])
        body = self._block(node.body)
        self._loop = outer
        no_more = ast.copy_location(ast.Expr(self._call("no_more", node.test, ast.Constant(number))), node.test)
        return ast.While(test, body, [no_more, *self._block(node.orelse)])

    def _enter_loop(self, node: Any, text: str) -> tuple[int, int]:
        self.loops.append(Loop(getattr(node, "lineno", 0), text, self._loop))
        outer, self._loop = self._loop, len(self.loops) - 1
        return self._loop, outer

    def _loop_target(self, target: Any) -> tuple[Any, list[Any]]:
        if isinstance(target, ast.Name):
            return target, []
        name = self._temporary()
        stored = self._store(target, ast.Name(name, ast.Load()))
        for statement in stored:
            ast.copy_location(statement, target)
        return ast.Name(name, ast.Store()), [*stored, ast.copy_location(_forgotten(name), target)]

    def visit_If(self, node: ast.If) -> Any:
        return ast.If(self._truth(node.test), self._block(node.body), self._block(node.orelse))

    def visit_With(self, node: ast.With) -> Any:
        item, *others = node.items
        body: Any = node.body
        if others:
            inner = ast.copy_location(ast.With(others, node.body), node)
            body = [inner]
        manager = self._temporary()
        entered = ast.Assign([ast.Name(manager, ast.Store())], self.visit(item.context_expr))
        guarded = self._call("entering", item.context_expr, ast.Name(manager, ast.Load()))
        target: Any = None
        head: list[Any] = []
        if item.optional_vars is not None:
            target, head = self._loop_target(item.optional_vars)
        text = f"the end of with {_shown(item.context_expr)}"
        leaving = ast.Expr(self._call("leaving", item.context_expr, ast.Name(manager, ast.Load()), text=text))
        tried = ast.Try([*head, *self._block(body)], [], [], [leaving])
        return [entered, ast.With([ast.withitem(guarded, target)], [ast.copy_location(tried, node)]), _forgotten(manager)]

    def visit_Try(self, node: ast.Try) -> Any:
        return ast.Try(
            self._block(node.body), self._handlers(node.handlers), self._block(node.orelse), self._block(node.finalbody)
        )

    def visit_Raise(self, node: ast.Raise) -> Any:
        if node.exc is None:
            return node
        exception = self.visit(node.exc)
        if node.cause is None:
            return ast.Raise(self._call("raised", node, exception), None)
        # Both are evaluated before a class is called.
        return ast.Raise(exception, self._call("unknown", node, self.visit(node.cause)))

    def visit_TryStar(self, node: Any) -> Any:
        # Groups are split by a method of theirs, before each handler, and what is left is put together behind the last.
        def splitting() -> ast.Expr:
            return self._use_of_everything(node, "except*")

        failed = ast.ExceptHandler(None, None, [splitting(), ast.Raise()])
        body: list[ast.stmt] = [ast.Try(self._block(node.body), [failed], [], [])]
        handlers = self._handlers(node.handlers)
        for handler in handlers:
            handler.body = [ast.Try(handler.body, [], [], [splitting()])]
        return ast.TryStar(body, handlers, self._block(node.orelse), self._block(node.finalbody))

    def _handlers(self, handlers: Sequence[ast.ExceptHandler]) -> list[ast.ExceptHandler]:
        out = []
        for handler in handlers:
            kind = None if handler.type is None else self.visit(handler.type)
            done = ast.ExceptHandler(kind, handler.name, self._block(handler.body))
            out.append(ast.copy_location(done, handler))
        return out

    def visit_Assert(self, node: ast.Assert) -> Any:
        return ast.Assert(self._truth(node.test), None if node.msg is None else self.visit(node.msg))

    def visit_Match(self, node: ast.Match) -> Any:
        subject = self._call("unknown", node.subject, self.visit(node.subject), text=f"match {_shown(node.subject)}")
        cases = []
        for case in node.cases:
            guard = None
            if case.guard is not None:
                if _calls(case.guard):
                    raise NotRewritable(f"line {case.guard.lineno}: a call in the guard of a case")
                guard = self._truth(case.guard)
            cases.append(ast.match_case(case.pattern, guard, self._block(case.body)))
        return ast.Match(subject, cases)

    def visit_Import(self, node: ast.Import) -> Any:
        return [self._use_of_everything(node), node]

    def visit_ImportFrom(self, node: ast.ImportFrom) -> Any:
        return [self._use_of_everything(node), node]

    def visit_FunctionDef(self, node: ast.FunctionDef) -> Any:
        return [self._use_of_everything(node, f"def {node.name}"), node] if _runs_code(node) else node

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> Any:
        return [self._use_of_everything(node, f"def {node.name}"), node] if _runs_code(node) else node

    def visit_ClassDef(self, node: ast.ClassDef) -> Any:
        return [self._use_of_everything(node, f"class {node.name}"), node]

    def visit_AsyncFor(self, node: ast.AsyncFor) -> Any:
        raise NotRewritable(f"line {node.lineno}: async for")

    def visit_AsyncWith(self, node: ast.AsyncWith) -> Any:
        raise NotRewritable(f"line {node.lineno}: async with")

    def _use_of_everything(self, node: Any, text: str | None = None) -> ast.Expr:
        return ast.Expr(self._call("unknown", node, ast.Constant(None), text=text))

    # Expressions

    def _truth(self, node: Any) -> Any:
        """An expression of which only the truth counts: each part is tested once, where it decides."""
        if isinstance(node, ast.BoolOp):
            return ast.copy_location(ast.BoolOp(node.op, [self._truth(value) for value in node.values]), node)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            return ast.copy_location(ast.UnaryOp(ast.Not(), self._truth(node.operand)), node)
        if isinstance(node, ast.IfExp):
            parts = self._truth(node.test), self._truth(node.body), self._truth(node.orelse)
            return ast.copy_location(ast.IfExp(*parts), node)
        if isinstance(node, ast.Compare) and len(node.ops) > 1:
            return self.visit(node)
        return self._call("truth", node, self.visit(node))

    def visit_BinOp(self, node: ast.BinOp) -> Any:
        operation = ast.Constant(_BINARY[type(node.op)])
        return self._call("binary", node, operation, self.visit(node.left), self.visit(node.right))

    def visit_UnaryOp(self, node: ast.UnaryOp) -> Any:
        if isinstance(node.op, ast.Not):
            return ast.UnaryOp(ast.Not(), self._truth(node.operand))
        if isinstance(node.operand, ast.Constant):
            return node
        return self._call("unary", node, ast.Constant(_UNARY[type(node.op)]), self.visit(node.operand))

    def visit_BoolOp(self, node: ast.BoolOp) -> Any:
        *tested, last = node.values
        return ast.BoolOp(node.op, [*[self._truth(value) for value in tested], self.visit(last)])

    def visit_IfExp(self, node: ast.IfExp) -> Any:
        return ast.IfExp(self._truth(node.test), self.visit(node.body), self.visit(node.orelse))

    def visit_Compare(self, node: ast.Compare) -> Any:
        if all(isinstance(op, ast.Is | ast.IsNot) for op in node.ops):
            return ast.Compare(self.visit(node.left), node.ops, [self.visit(c) for c in node.comparators])
        if len(node.ops) == 1:
            left, right = self.visit(node.left), self.visit(node.comparators[0])
            op = node.ops[0]
            if isinstance(op, ast.In | ast.NotIn):
                found = self._call("contains", node, left, right)
                return found if isinstance(op, ast.In) else ast.UnaryOp(ast.Not(), found)
            return self._call("compare", node, ast.Constant(_COMPARE[type(op)]), left, right)
        # Operands are looked at as they are evaluated, so nothing that can launch may come in between.
        for operand in node.comparators:
            if _calls(operand):
                raise NotRewritable(f"line {node.lineno}: a call in a chain of comparisons ({_shown(node)})")
        operands: list[Any] = [self._call("operand", node, self.visit(o)) for o in (node.left, *node.comparators)]
        return ast.Compare(operands[0], node.ops, operands[1:])

    def visit_Call(self, node: ast.Call) -> Any:
        if isinstance(node.func, ast.Name) and node.func.id in _FRAMES:
            arguments = [*node.args, *(k.value for k in node.keywords)]
            if any(_calls(a) for a in arguments):
                raise NotRewritable(f"line {node.lineno}: a call in the arguments of {node.func.id}()")
            args, keywords = self._arguments(node)
            looked = ast.Call(self._call("unknown", node, node.func), args, keywords)
            return looked if arguments else ast.Call(_guard("visible"), [looked], [])
        function = self.visit(node.func)
        args, keywords = self._arguments(node)
        call = self._call("called" if self._iterated else "call", node, function, *args)
        call.keywords = keywords
        if self._iterated:
            return call  # no assignment may stand here
        # What is to be called and its arguments come back in a list that this empties. So it is the user's function that
        # calls: warnings, records of logs and others that look at their caller find it.
        taken = ast.NamedExpr(ast.Name(_CALL, ast.Store()), call)
        first, second, third = (
            ast.Call(ast.Attribute(of, "pop", ast.Load()), [], [])
            for of in (taken, ast.Name(_CALL, ast.Load()), ast.Name(_CALL, ast.Load()))
        )
        return ast.Call(first, [ast.Starred(second, ast.Load())], [ast.keyword(None, third)])

    def _arguments(self, node: ast.Call) -> tuple[list[Any], list[ast.keyword]]:
        args = [self.visit(a) for a in node.args]
        keywords = [
            ast.keyword(k.arg, self.visit(k.value) if k.arg else self._call("mapping", k.value, self.visit(k.value)))
            for k in node.keywords
        ]
        return args, keywords

    def visit_Attribute(self, node: ast.Attribute) -> Any:
        owner = self._call("owner", node, self.visit(node.value), ast.Constant(self._mangled(node.attr)))
        return ast.Attribute(owner, node.attr, ast.Load())

    def visit_Subscript(self, node: ast.Subscript) -> Any:
        return self._call("item", node, self.visit(node.value), self._key(node.slice))

    def _key(self, node: Any) -> Any:
        """What stands in brackets, as a value."""
        if isinstance(node, ast.Slice):
            parts = [ast.Constant(None) if p is None else self.visit(p) for p in (node.lower, node.upper, node.step)]
            return ast.Call(_guard("slice"), parts, [])
        if isinstance(node, ast.Tuple):
            return ast.Tuple([self._key(e) for e in node.elts], ast.Load())
        return self.visit(node)

    def visit_Starred(self, node: ast.Starred) -> Any:
        return ast.Starred(self._call("iterable", node.value, self.visit(node.value)), node.ctx)

    def visit_Set(self, node: ast.Set) -> Any:
        return ast.Set([self.visit(e) if isinstance(e, ast.Starred) else self._hashed(e) for e in node.elts])

    def _hashed(self, node: Any) -> Any:
        if _calls(node):
            raise NotRewritable(f"line {node.lineno}: a call among the keys of a display ({_shown(node)})")
        return self._call("hashable", node, self.visit(node))

    def visit_Dict(self, node: ast.Dict) -> Any:
        # All keys and values are evaluated before any key is hashed.
        if any(_calls(value) for value in node.values):
            values: list[Any] = []
            for key, value in zip(node.keys, node.values, strict=True):
                if key is not None and not isinstance(key, ast.Constant):
                    raise NotRewritable(f"line {node.lineno}: calls in a dict display whose keys are no constants")
                values.append(self._call("mapping", value, self.visit(value)) if key is None else self.visit(value))
            return ast.Dict(node.keys, values)
        keys = [None if k is None else self._hashed(k) for k in node.keys]
        done = [
            self._call("mapping", v, self.visit(v)) if k is None else self.visit(v)
            for k, v in zip(node.keys, node.values, strict=True)
        ]
        return ast.Dict(keys, done)

    def visit_FormattedValue(self, node: ast.FormattedValue) -> Any:
        spec = None if node.format_spec is None else self.visit(node.format_spec)
        if node.format_spec is not None and _calls(node.format_spec):
            made = self._call("formatted", node.value, self.visit(node.value), ast.Constant(node.conversion), spec)
            return ast.FormattedValue(made, -1, None)
        return ast.FormattedValue(self._call("shown", node.value, self.visit(node.value)), node.conversion, spec)

    def visit_JoinedStr(self, node: ast.JoinedStr) -> Any:
        return ast.JoinedStr([self.visit(v) for v in node.values])

    def visit_NamedExpr(self, node: ast.NamedExpr) -> Any:
        return ast.NamedExpr(node.target, self.visit(node.value))

    def visit_Lambda(self, node: ast.Lambda) -> Any:
        if any(_calls(d) for d in (*node.args.defaults, *(d for d in node.args.kw_defaults if d))):
            raise NotRewritable(f"line {node.lineno}: a call in a lambda's defaults")
        return node

    def visit_Yield(self, node: ast.Yield) -> Any:
        value = ast.Constant(None) if node.value is None else self.visit(node.value)
        return ast.Yield(self._call("unknown", node, value))

    def visit_YieldFrom(self, node: ast.YieldFrom) -> Any:
        return ast.YieldFrom(self._call("unknown", node, self.visit(node.value)))

    def visit_Await(self, node: ast.Await) -> Any:
        return ast.Await(self._call("unknown", node, self.visit(node.value)))

    # Comprehensions run in place; generator expressions run when somebody asks them to.

    def visit_ListComp(self, node: ast.ListComp) -> Any:
        generators, outer = self._generators(node)
        element = self.visit(node.elt)
        self._loop = outer
        return ast.ListComp(element, generators)

    def visit_SetComp(self, node: ast.SetComp) -> Any:
        generators, outer = self._generators(node)
        element = self._call("another_key", node.elt, self.visit(node.elt))
        self._loop = outer
        return ast.SetComp(element, generators)

    def visit_DictComp(self, node: ast.DictComp) -> Any:
        if _calls(node.value):
            raise NotRewritable(f"line {node.lineno}: a call in the values of a dict comprehension")
        generators, outer = self._generators(node)
        key, value = self._call("another_key", node.key, self.visit(node.key)), self.visit(node.value)
        self._loop = outer
        return ast.DictComp(key, value, generators)

    def visit_GeneratorExp(self, node: ast.GeneratorExp) -> Any:
        first, *others = node.generators
        if first.is_async:
            raise NotRewritable(f"line {node.lineno}: an asynchronous comprehension")
        iterated = self._call("iterable", first.iter, self._iterable_of(first))
        changed = ast.comprehension(first.target, iterated, first.ifs, first.is_async)
        return ast.GeneratorExp(node.elt, [changed, *others])

    def _iterable_of(self, generator: ast.comprehension) -> Any:
        before, self._iterated = self._iterated, True
        iterated = self.visit(generator.iter)
        self._iterated = before
        return iterated

    def _generators(self, node: Any) -> tuple[list[ast.comprehension], int]:
        outer, out = self._loop, []
        for generator in node.generators:
            if generator.is_async:
                raise NotRewritable(f"line {node.lineno}: an asynchronous comprehension")
            iterated = self._iterable_of(generator)
            number, _ = self._enter_loop(node, f"for {_shown(generator.target)} in {_shown(generator.iter)}")
            guard = "iterate" if isinstance(generator.target, ast.Name) else "iterate_unpacked"
            if not isinstance(generator.target, ast.Name) and not _plain_pattern(generator.target):
                raise NotRewritable(f"line {node.lineno}: a comprehension that assigns to {_shown(generator.target)}")
            call = self._call(guard, generator.iter, ast.Constant(number), iterated)
            tests = [self._truth(test) for test in generator.ifs]
            out.append(ast.comprehension(generator.target, call, tests, 0))
        return out, outer


def bare(node: Any) -> Any:
    """A definition without decorators and annotations, and with defaults only counted: a function keeps its own."""
    out = copy.copy(node)
    out.decorator_list, out.returns = [], None
    out.args = arguments = copy.deepcopy(node.args)
    for parameter in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg):
        if parameter is not None:
            parameter.annotation = None
    arguments.defaults = [ast.Constant(None) for _ in arguments.defaults]
    arguments.kw_defaults = [None if d is None else ast.Constant(None) for d in arguments.kw_defaults]
    return out


def _guard(name: str) -> ast.Attribute:
    return ast.Attribute(ast.Name(GUARD, ast.Load()), name, ast.Load())


def _starred(node: Any) -> Any:
    return node.value if isinstance(node, ast.Starred) else node


def _forgotten(name: str) -> ast.Delete:
    """A temporary keeps nothing alive."""
    return ast.Delete([ast.Name(name, ast.Del())])


def _argument(node: Any) -> str:
    """An argument as the user would call it: of a Region or an accumulator, its array."""
    if isinstance(node, ast.Call) and node.args and ast.unparse(node.func).split(".")[-1] in ("Region", "Accumulator"):
        return _shown(node.args[0])
    return _shown(node)


def _calls(node: Any) -> bool:
    """Whether evaluating an expression may run a launch: a call, or code of others that runs meanwhile."""
    kinds = ast.Call | ast.Yield | ast.YieldFrom | ast.Await
    return any(isinstance(inner, kinds) for inner in ast.walk(node))


def _runs_code(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Whether a definition itself runs more than constants and names."""
    arguments = node.args
    parameters = (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg)
    expressions = [
        *node.decorator_list,
        *arguments.defaults,
        *(d for d in arguments.kw_defaults if d is not None),
        *(p.annotation for p in parameters if p is not None and p.annotation is not None),
        *([node.returns] if node.returns is not None else []),
    ]
    return bool(node.decorator_list) or not all(isinstance(e, ast.Constant | ast.Name) for e in expressions)


def _plain_pattern(target: Any) -> bool:
    """Whether a pattern is one flat tuple of names."""
    parts = target.elts if isinstance(target, ast.Tuple | ast.List) else []
    return bool(parts) and all(isinstance(p.value if isinstance(p, ast.Starred) else p, ast.Name) for p in parts)


def _last_line(node: Any) -> int:
    return node.end_lineno or node.lineno


def _headline(statement: Any) -> str:
    """A statement, or the head of one that has a body."""
    if isinstance(statement, ast.Expr):
        return _shown(statement.value)
    text = ast.unparse(statement).split("\n", 1)[0].rstrip(":") if hasattr(statement, "body") else _shown(statement)
    return text if len(text) <= _TEXT else text[: _TEXT - 3] + "..."


def _shown(node: Any) -> str:
    text = " ".join(ast.unparse(node).split())
    if isinstance(node, ast.Yield | ast.YieldFrom | ast.Await | ast.NamedExpr):
        text = text.removeprefix("(").removesuffix(")")  # which unparse always puts there
    return text if len(text) <= _TEXT else text[: _TEXT - 3] + "..."
