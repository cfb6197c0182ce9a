"""How a kernel's arguments are mapped, and why: what `kernel.mappings` and `kernel.explain` say."""

from __future__ import annotations

from numba_offload.arguments import Arguments
from numba_offload.launch_plan import leaf_map
from numba_offload.record import KernelRecord
from numba_offload.specialisation import Specialisation


def mappings(arguments: Arguments, specialisation: Specialisation) -> dict[str, str]:
    """The map of each leaf: ``none``, ``to``, ``from``, ``tofrom``, or ``literal`` for scalars."""
    maps = {leaf.name: leaf_map(specialisation, leaf) for leaf in arguments.arrays}
    out: dict[str, str] = {}
    for slot in specialisation.record.layout:
        name = slot.name
        if slot.data:
            name = name.removesuffix(".data")
            out[name] = maps[name]
        elif not any(name.startswith((f"{leaf}.", f"{leaf}[")) for leaf in maps):
            scalar = name.removesuffix(".real").removesuffix(".imag")
            out[scalar if scalar != name and _is_complex(specialisation.record, scalar) else name] = "literal"
    return out


def explanation(arguments: Arguments, specialisation: Specialisation) -> str:
    """Why each argument is mapped as it is, with the lines that decide it."""
    record = specialisation.record
    lines = [f"kernel {record.name} ({record.filename})"]
    for leaf in arguments.arrays:
        lines.append(f"  {leaf.name}: {leaf_map(specialisation, leaf)}")
        lines += [f"      {reason}" for reason in record.leaves[leaf.name].reasons]
    for name, how in mappings(arguments, specialisation).items():
        if how == "literal":
            lines.append(f"  {name}: literal\n      passed by value")
    return "\n".join(lines)


def _is_complex(record: KernelRecord, name: str) -> bool:
    return f"{name}.real" in {slot.name for slot in record.layout}
