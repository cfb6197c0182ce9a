"""What a processor can do, in LLVM's words: which features code for it may use, and whether this machine has them.

LLVM has no interface that tells the features of a processor. But it inlines a function only into callers whose features
include the function's own: one function for each feature is called by one for the processor, and what is inlined tells.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import llvmlite.binding as ll

from numba_offload.errors import TargetError
from numba_offload.targets.codegen import Machine, optimise

_X86 = "x86_64"
_BASES = {_X86: "x86-64"}
"""The processor that all of a family are at least."""

_SYSTEM = {
    _X86: (
        "amx-tile", "cldemote", "clflushopt", "clwb", "clzero", "enqcmd", "fsgsbase", "hreset", "invpcid", "kl", "lwp",
        "movdir64b", "movdiri", "mwaitx", "pconfig", "pku", "prefetchi", "ptwrite", "rdpid", "rdpru", "rdrnd", "rdseed", "rtm",
        "serialize", "sgx", "shstk", "tsxldtrk", "uintr", "usermsr", "waitpkg", "wbnoinvd",
    )
}  # fmt: skip
"""Features that only system code uses. Virtual machines often lack them, so code is made not to use them."""

FEATURE = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.+-]*")
"""What a feature's name looks like."""

# In a process of its own: LLVM prints what it knows, and only to stderr, and ends the process if it is to make code for a
# processor that cannot run this kind of code (64-bit code for a 32-bit one).
_ASK = """
import sys
import llvmlite.binding as ll
ll.initialize_all_targets()
ll.initialize_all_asmprinters()
triple, processor = sys.argv[1:]
machine = ll.Target.from_triple(triple).create_target_machine(cpu=processor)
if processor != "help":
    machine.emit_object(ll.parse_assembly(f'target triple = "{triple}"\\ndefine void @f() {{\\n ret void\\n}}'))
"""


@dataclass(frozen=True)
class Known:
    """The names of a family's processors, and of features that one or the other has."""

    processors: tuple[str, ...]
    features: tuple[str, ...]


@cache
def known_to_llvm(triple: str) -> Known:
    """What LLVM knows of the family of a triple. Raises TargetError where it does not say."""
    done = _ask(triple, "help")
    processors, _, features = done.stderr.partition("Available features for this target:")
    named = r"^  (\S+) +- "
    # Some "features" are how to tune code for a processor.
    found = Known(
        tuple(re.findall(named, processors, re.MULTILINE)),
        tuple(re.findall(named + r"(?!.*\bprocessors\b)", features, re.MULTILINE)),
    )
    if done.returncode or not (found.processors and found.features):
        raise TargetError(f"LLVM does not say which processors of {triple} it knows: {done.stderr.strip()[-300:]}")
    return found


def _ask(triple: str, processor: str) -> subprocess.CompletedProcess[str]:
    # -P: what lies in the working directory is not imported in place of Python's own modules.
    return subprocess.run([sys.executable, "-P", "-c", _ASK, triple, processor], capture_output=True, text=True, check=False)


@cache
def named_machine(triple: str, processor: str) -> Machine:
    """What LLVM generates code for, given the name of a processor. Raises TargetError for one that it does not know."""
    known = known_to_llvm(triple).processors
    family = _family(triple)
    if processor not in known:
        raise TargetError(f"unknown processor {processor!r} of the family {family}; known: {', '.join(known)}")
    tried = _ask(triple, processor)
    if tried.returncode:
        raise TargetError(f"LLVM makes no {family} code for the processor {processor!r}: {tried.stderr.strip()[-300:]}")
    return Machine(triple, processor, ",".join(f"-{name}" for name in _SYSTEM.get(family, ())), jit=True)


def features_of(machine: Machine) -> tuple[str, ...]:
    """The features that code for a machine may use, beyond what every processor of its family has."""
    family = _family(machine.triple)
    if family == _X86 == _family(ll.get_process_triple()):
        names = tuple(ll.get_host_cpu_features())  # all, with whether they are there; LLVM's list has matters of tuning too
    else:
        names = known_to_llvm(machine.triple).features
    everywhere = set(_probe(Machine(machine.triple, _BASES.get(family, "generic")), names))
    return tuple(sorted(name for name in _probe(machine, names) if name not in everywhere))


@cache
def missing_here(features: tuple[str, ...]) -> tuple[str, ...]:
    """Those of some features that this machine does not have."""
    told = ll.get_host_cpu_features()
    missing = [name for name in features if not told.get(name, True)]
    untold = [name for name in features if name not in told]
    if untold and _family(ll.get_process_triple()) != _X86:
        # Elsewhere than on x86, LLVM knows most of a processor's features by the processor's name only.
        host = Machine(ll.get_process_triple(), ll.get_host_cpu_name(), told.flatten())
        present = set(_probe(host, untold))
        untold = [name for name in untold if name not in present]
    return (*missing, *untold)


def same_system(one: str, other: str) -> bool:
    """Whether two triples stand for one family of processors under one operating system."""
    return _system(one) == _system(other)


def _family(triple: str) -> str:
    return triple.partition("-")[0]


def _system(triple: str) -> tuple[str, ...]:
    family, _, *system = triple.split("-")[:4] if triple.count("-") else (triple, "")
    return family, *(re.sub(r"[0-9.]+$", "", part) for part in system)


def _probe(machine: Machine, names: Sequence[str]) -> list[str]:
    """Those of some features that a machine has."""
    own = f'"target-cpu"="{machine.cpu}" "target-features"="{machine.features}'
    more = "," if machine.features else ""
    lines = [f'target triple = "{machine.triple}"', "declare void @kept(i32)"]
    for k in range(len(names)):
        lines.append(f"define internal void @f{k}(i32 %x) #{k + 1} {{\n call void @kept(i32 {k})\n ret void\n}}")
    calls = "\n".join(f" call void @f{k}(i32 %x)" for k in range(len(names)))
    lines += [f"define void @caller(i32 %x) #0 {{\n{calls}\n ret void\n}}", f'attributes #0 = {{ {own}" }}']
    lines += [f'attributes #{k + 1} = {{ {own}{more}+{name}" }}' for k, name in enumerate(names)]
    module = ll.parse_assembly("\n".join(lines))
    optimise(module, machine, 2)
    left = {function.name for function in module.functions}
    return [name for k, name in enumerate(names) if f"f{k}" not in left]
