"""What LLVM found out about a kernel's parameters: a second opinion on inferred intents.

LLVM's inference marks a data pointer ``readonly``, ``writeonly`` or ``readnone`` once it has seen every use of it.
"""

from __future__ import annotations

import re

_ATTRIBUTE = re.compile(r"""(?P<name>[a-z][\w.-]*)(?:\((?P<value>[^()]*)\))?(?:\s+(?P<number>\d+))?""")
_NUMBERED = {"align"}


def entry_attributes(llvm_ir: str, entry: str) -> dict[str, frozenset[str]]:
    """Each parameter's attributes by the parameter's name (``x.data``), from the text of optimised LLVM IR.

    Attributes are spelt as LLVM does: ``noalias``, ``readonly``, ``captures(none)``, ``align 8``. Raises KeyError
    where the text does not define the entry.
    """
    return {
        _name(parameter): frozenset(_attributes(parameter))
        for parameter in _split(_parameter_list(llvm_ir, entry))
    }


def access(attributes: frozenset[str]) -> str:
    """``none``, ``read``, ``write``, or ``any`` where LLVM proved nothing."""
    for attribute, meaning in (("readnone", "none"), ("readonly", "read"), ("writeonly", "write")):
        if attribute in attributes:
            return meaning
    return "any"


def _parameter_list(llvm_ir: str, entry: str) -> str:
    """What stands between the parentheses of a function's definition."""
    match = re.search(rf'^define [^@\n]*@"?{re.escape(entry)}"?\(', llvm_ir, re.MULTILINE)
    if match is None:
        raise KeyError(f"the LLVM IR does not define {entry!r}")
    depth, start = 1, match.end()
    for position in range(start, len(llvm_ir)):
        depth += {"(": 1, ")": -1}.get(llvm_ir[position], 0)
        if depth == 0:
            return llvm_ir[start:position]
    raise ValueError(f"the parameters of {entry!r} do not end")


def _split(parameters: str) -> list[str]:
    """At the commas that are not inside parentheses."""
    parts, depth, current = [], 0, ""
    for character in parameters:
        depth += {"(": 1, ")": -1}.get(character, 0)
        if character == "," and depth == 0:
            parts.append(current)
            current = ""
        else:
            current += character
    return [p.strip() for p in (*parts, current) if p.strip()]


def _name(parameter: str) -> str:
    return parameter.rsplit("%", 1)[1].strip().strip('"')


def _attributes(parameter: str) -> list[str]:
    words = parameter.rsplit("%", 1)[0].split(None, 1)
    if len(words) < 2:
        return []
    found = []
    for match in _ATTRIBUTE.finditer(words[1]):
        name = match["name"]
        if match["value"] is not None:
            name += f"({match['value']})"
        elif name in _NUMBERED and match["number"]:
            name += f" {match['number']}"
        found.append(name)
    return found
