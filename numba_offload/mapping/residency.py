"""Arrays that stay on a device between the launches of one host function, and what of them the host has yet to see.

A resident's device copy is always current. It is *clean* while the host's copy is too, and *dirty* from the first launch
that wrote it until it is brought back. Before the host reads an array its dirty residents are brought back; before the host
writes one its residents are given up: brought back if dirty, and freed. Nothing here decides when that is so: see
``numba_offload.optimizer``.

A resident lives no longer than the memory that it is a copy of: what nobody can reach any more is not brought back. Where
the memory may be another object's than the one that an array has for its base, that is kept as long as the resident.

A copy back that fails leaves its resident dirty, and is made again when the array is used next, or at the end of the host
function. What fails there too is lost, and the error says so. Nothing of a host function stays on a device after its end.
"""

from __future__ import annotations

import re
import weakref
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from numba_offload.errors import DeviceMemoryError, TargetError
from numba_offload.mapping.alias import shares_elements
from numba_offload.mapping.layout import Layout, address, raw_view
from numba_offload.mapping.plan import ArrayUse, BufferPlan, MappedArray
from numba_offload.mapping.transfers import Transfers, copy_failure
from numba_offload.mapping.undo import Undo

if TYPE_CHECKING:
    from numba_offload.mapping.state import DeviceState


MEMORY_OWNERS: set[type] = set()
"""Classes of ours, each of whose objects is the only one that keeps its memory."""
_PARAMETER = re.compile(r"^[^.\[]+")


@dataclass(frozen=True, slots=True)
class Moved:
    """A transfer that a residency made. ``kind`` is "h2d" or "d2h"; ``begin`` and ``end`` bound the host's bytes."""

    kind: str
    label: str
    nbytes: int
    begin: int
    end: int
    elsewhere: bool = False
    """For a launch or a preload of another function, in another thread."""


class Resident:
    """One buffer that stays. Its fields are changed with the present table's lock held."""

    __slots__ = (
        "_owners", "address", "arrays", "busy", "dead", "dirty", "early", "label", "owner", "plan", "told", "used",
        "users", "writer",
    )  # fmt: skip

    def __init__(self, owner: Residency, uses: Sequence[ArrayUse], plan: BufferPlan, address: int) -> None:
        self.owner = owner
        self.plan = plan
        self.address = address
        self.dirty: tuple[int, int] | None = None
        """The host's bytes that differ from the device's, first and behind the last."""
        self.label = plan.label
        self.writer = ""
        self.users = 0
        """Launches that use it now."""
        self.busy = False
        self.early = False
        """It is busy with a copy that nobody waits for yet."""
        self.dead = False
        self.told = False
        """Its next copy back has been noted already."""
        self.used = 0
        """When it was last used, counted in launches."""
        self.arrays: list[Any] = []
        self._owners: dict[int, Any] = {}
        for use in uses:
            self.keep(use.array)

    def keep(self, array: Any) -> None:
        """Note an array that lies here, for questions of elements and of lifetime."""
        root = _memory_owner(array)
        if id(root) not in self._owners:
            if _goes_with_its_memory(root):
                self._owners[id(root)] = weakref.ref(root, self._lost)
            else:
                self._owners[id(root)] = lambda root=root: root
        if len(self.arrays) < 8:
            self.arrays.append(_described(array))

    def _lost(self, _: Any) -> None:
        # Called by whatever drops the last reference, under any lock. The memory may be another array's at once.
        self.dead = all(owner() is None for owner in self._owners.values())

    def owners(self) -> list[Any]:
        """What owns the host's memory, to keep it while it is used; nothing where it is gone."""
        return [owner for owner in (reference() for reference in self._owners.values()) if owner is not None]

    def let_go(self) -> None:
        """Refer to no array any more. Call it when this is in no table: NumPy resizes no array that has a weak reference."""
        self._owners.clear()

    @property
    def keeps_memory(self) -> bool:
        """Whether the host's memory cannot go while this object is there."""
        return not all(isinstance(owner, weakref.ref) for owner in self._owners.values())

    def place(self, layout: Layout) -> MappedArray | None:
        """Where an array lies on the device, or None where it is not inside."""
        found = self.plan.place(layout)
        return None if found is None else MappedArray(self.address + found.pointer, found.strides)

    def meets(self, begin: int, end: int) -> bool:
        """Whether the byte ranges meet."""
        return begin < self.plan.end and self.plan.begin < end

    def shares(self, array: Any) -> bool:
        """Whether an array may have an element here."""
        return self.plan.packed is None or any(shares_elements(array, own) is not False for own in self.arrays)

    def span(self, layout: Layout) -> tuple[int, int]:
        """The host's bytes that are dirty once this part was written."""
        return (layout.begin, layout.end) if self.plan.packed is None else (self.plan.begin, self.plan.end)

    def wrote(self, layout: Layout, kernel: str) -> None:
        """A launch that ended without error wrote this part."""
        begin, end = self.span(layout)
        if self.dirty is not None:
            begin, end = min(begin, self.dirty[0]), max(end, self.dirty[1])
        self.dirty = begin, end
        self.writer = kernel

    def dirty_part(self) -> tuple[BufferPlan, int]:
        """What is to be brought back, and where it is."""
        assert self.dirty is not None
        begin, end = self.dirty
        if self.plan.packed is not None or (begin, end) == (self.plan.begin, self.plan.end):
            return self.plan, self.address
        part = replace(self.plan, begin=begin, end=end, nbytes=end - begin)
        return part, self.address + begin - self.plan.begin


class Residency:
    """The residents of one host function on one device. One thread launches; others may make it give residents up."""

    def __init__(
        self,
        device: DeviceState,
        moved: Callable[[Moved], None] | None = None,
        limit: int | None = None,
        guard: Callable[[str, str, int, str, str, bool], None] | None = None,
    ) -> None:
        self.device = device
        self.limit = limit
        """The most bytes that stay; None: the device's memory."""
        self.names: dict[str, str] = {}
        """What the arguments of the launch at hand are called in the host function, by parameter."""
        self.epoch = 0
        """Changes whenever a resident goes: what was found in the table before may not be there any more."""
        self.launching = False
        """A launch is being made that the table has no claim of: others leave the residents alone meanwhile."""
        self.busy = 0
        """Residents that are being copied. Changed with the table's lock held."""
        self.on_eviction: Callable[[Resident], None] | None = None
        """Told of a resident that has to go because memory is short."""
        self._moved = moved
        self._guard = guard
        self._launches = 0
        self._table = device.present
        self.undo = Undo(self)

    # Before the host uses arrays

    def bring_back(self, begin: int | None = None, end: int | None = None) -> None:
        """Before the host reads bytes (None: any): copy back what of them it has not seen."""
        self._settle(lambda r: r.dirty is not None and _met(r, begin, end), forget=False)

    def give_up(self, begin: int | None = None, end: int | None = None) -> None:
        """Before the host may write bytes (None: any): bring back, and forget."""
        self._settle(lambda r: _met(r, begin, end), forget=True)

    def give_up_all(self) -> None:
        """Before code that cannot be seen. A copy that fails does not keep the others from coming back."""
        self.undo.drop()
        self.give_up()

    def close(self, why: str = "the host function has ended") -> None:
        """Everything comes back, and nothing stays, whatever fails. Raises TargetError that says what is lost, and ``why``."""
        failed: BaseException | None = None
        for _ in range(2):  # an interrupt does not keep results from the host
            try:
                self.give_up_all()
                break
            except Exception as error:
                failed = failed or error
                break
            except BaseException as error:
                failed = failed or error
        lost = self._table.forget(lambda r: r.owner is self)
        if failed is None:
            return
        if not lost:
            raise failed
        message = f"{failed}. As {why}, what was computed in {_named(lost)} is lost"
        if isinstance(failed, Exception):
            raise TargetError(message) from failed
        failed.add_note(message)
        raise failed

    def launch_failed(self, written: Sequence[tuple[Resident, Layout]], kernel: str) -> None:
        """A launch that was to write these did not end well: they are as they were before it.

        Where no thread can report an error, it may also have run to its end, and what the device has counts. Raises
        TargetError where residents cannot be taken back.
        """
        if self.undo.active:
            self.undo.roll_back([resident for resident, _ in written], kernel)
        else:
            for resident, layout in written:
                resident.wrote(layout, kernel)

    def lose(self, residents: Sequence[Resident], kernel: str, error: BaseException) -> None:
        """Forget residents that hold no array's content any more. Raises TargetError if the host's is not as recent."""
        lost = self._table.forget(lambda r: r in residents)
        if lost:
            raise TargetError(
                f"launching {kernel} failed, and {_named(lost)} could not be taken back to before that launch: {error}. On the "
                f"host it is as it was before the launches of {_writers(lost)}; what they computed is lost"
            ) from error

    def dirty_in(self, begin: int, end: int) -> list[Resident]:
        """The residents with something there that the host has not seen."""
        return [r for r in self._mine() if r.dirty is not None and not r.busy and r.meets(begin, end)]

    def bring_back_one(self, resident: Resident) -> None:
        """Copy a resident back, to have it on the host."""
        self._settle(lambda r: r is resident, forget=False)

    @property
    def empty(self) -> bool:
        return not self._mine()

    # For launches

    def begin_undoable(self, written: Sequence[Resident], may_fail: bool) -> bool:
        """Before a launch that writes these: see to it that it can be undone. Call it with them marked as used.

        Returns whether other threads now leave all residents alone, for as long as ``launching`` is set.
        """
        while True:
            self.undo.before(written, may_fail)
            if not self.undo.active:
                return False
            self._table.keep_from_others(self)
            if self.undo.holds:
                return True
            self.launching = False  # another thread was faster

    def find(self, layout: Layout) -> Resident | None:
        """The resident that an array lies in."""
        for resident in self._mine():
            if resident.meets(layout.begin, layout.end) and resident.place(layout) is not None:
                return resident
        return None

    def begin_launch(self, residents: Iterable[Resident]) -> None:
        """These are in use until ``end_launch``."""
        self._launches += 1
        for resident in residents:
            resident.users += 1
            resident.used = self._launches

    def end_launch(self, residents: Iterable[Resident]) -> None:
        for resident in residents:
            resident.users -= 1

    def allocate(self, nbytes: int, label: str, owner: str = "", stream: Any = None) -> int:
        """A buffer; where memory is short, residents that no launch uses go, the longest unused first."""
        while not self.has_room(nbytes) and self._give_up_longest_unused():
            pass
        while True:
            try:
                return self.device.pool.allocate(nbytes, label, owner, stream)
            except DeviceMemoryError:
                if self.undo.active:
                    self.undo.drop()  # its copies aside may be what is missing
                elif not self._give_up_longest_unused():
                    raise

    def has_room(self, nbytes: int) -> bool:
        """Whether so many bytes more are within the limit."""
        return self.limit is None or sum(r.plan.nbytes for r in self._mine()) + nbytes <= self.limit

    def _give_up_longest_unused(self) -> bool:
        """Make room; returns whether there was anything that no launch uses."""
        idle = [r for r in self._mine() if not r.users]
        if not idle:
            return False
        victim = min(idle, key=lambda r: r.used)
        if self.on_eviction is not None:
            self.on_eviction(victim)
        self._settle(lambda r: r is victim, forget=True)
        return True

    def begin_copy(self, resident: Resident) -> bool:
        """Make a resident busy, if it is there and nobody else does something with it."""
        return self._table.begin_copy(resident)

    def end_copy(self, resident: Resident, forget: bool = False) -> None:
        """A resident is busy no more."""
        self._table.end_copy(resident, forget)

    def meets(self, begin: int, end: int) -> bool:
        """Whether a resident has any of these bytes."""
        return bool(self.residents_in(begin, end))

    def add(self, uses: Sequence[ArrayUse], plan: BufferPlan, address: int, busy: bool = False) -> Resident:
        """Keep a buffer that an error-free launch has used, or (``busy``) that is being filled."""
        resident = Resident(self, uses, plan, address)
        resident.busy = resident.early = busy
        self.busy += busy
        resident.label = self._label(plan)
        resident.used = self._launches
        self._table.add_resident(resident)
        return resident

    def note(self, kind: str, plan: BufferPlan, label: str | None = None, elsewhere: bool = False) -> None:
        """A transfer was made."""
        if self._moved is not None:
            self._moved(Moved(kind, label or self._label(plan), plan.nbytes, plan.begin, plan.end, elsewhere))

    def check_over(self, plan: BufferPlan, kernel: str, label: str | None = None) -> None:
        """A buffer is going to be filled. Raises TransferError where the transfer guard refuses."""
        if self._guard is not None:
            self._guard("h2d", label or self._label(plan), plan.nbytes, kernel, self.device.name, plan.download)

    def check_back(self, resident: Resident) -> None:
        """A dirty resident is going to be brought back. Raises TransferError where the transfer guard refuses."""
        if self._guard is not None:
            part, _ = resident.dirty_part()
            self._guard("d2h", resident.label, part.nbytes, resident.writer, self.device.name, True)

    def _label(self, plan: BufferPlan) -> str:
        """A buffer's arguments as the host function calls them."""
        found = [_PARAMETER.sub(lambda m: self.names.get(m[0], m[0]), name, count=1) for name in plan.names]
        return ", ".join(dict.fromkeys(found))

    def copies(self, kernel: str = "", stream: Any = None) -> Transfers:
        return Transfers(self.device.memory, stream, kernel, self.device.name)

    def residents_in(self, begin: int, end: int) -> list[Resident]:
        """The residents that have any of these bytes."""
        return [r for r in self._mine() if r.meets(begin, end)]

    def _mine(self) -> list[Resident]:
        return [r for r in self._table.residents if r.owner is self and not r.dead]

    def _settle(self, wanted: Callable[[Resident], bool], forget: bool) -> None:
        self._table.settle(lambda r: r.owner is self and wanted(r), forget, self)


def bring_back_all(residents: Sequence[Resident], stream: Any = None, residency: Residency | None = None) -> None:
    """Copy dirty residents back, on a stream whose work they follow. ``residency``: whose function needs it, if one does.

    Called without the table's lock, on residents that are marked busy.
    A copy that fails is made once more. Raises TargetError with the arrays whose copies failed again, after the others were
    tried; what came back is clean.
    """
    failed: BaseException | None = None
    left: list[Resident] = []
    reasons: dict[str, None] = {}
    partly: list[Resident] = []
    cause: BaseException | None = None
    by_writer: dict[tuple[int, str], list[Resident]] = {}
    for resident in residents:
        if resident.dirty is not None and not resident.dead:
            by_writer.setdefault((id(resident.owner), resident.writer), []).append(resident)
    for group in by_writer.values():
        try:
            _bring_back(group, stream, residency)
            continue
        except BaseException as error:
            if copy_failure(error) is None:
                failed = failed or error
        # Copies made together come back together or not at all. Once more, each by itself: the others are not kept from the
        # host, and an interrupt keeps none.
        for resident in group:
            try:
                _bring_back([resident], stream, residency)
            except BaseException as error:
                why = copy_failure(error)
                if why is None:
                    failed = failed or error
                    continue
                reasons[why[0]] = None
                left.append(resident)
                partly += [resident] * why[1]
                cause = error.__cause__
    if left:
        message = (
            f"copying {_named(left)}, written by {_writers(left)}, back from the device failed: {'; '.join(reasons)}. On the "
            f"host {'it is' if len(left) == 1 else 'they are'} as before that"
            + (f", but {_named(partly)} partly written" if partly else "")
        )
        if failed is None:
            raise TargetError(message) from cause
        failed.add_note(message)
    if failed is not None:
        raise failed


def _bring_back(group: Sequence[Resident], stream: Any, residency: Residency | None) -> None:
    """Copy residents of one function and one writer back: all of them, or none where a copy fails."""
    alive = [(r, r.owners()) for r in group if r.dirty is not None]
    chosen = [r for r, owners in alive if owners]
    if not chosen:
        return
    owner = chosen[0].owner
    owner.copies(chosen[0].writer, stream).download([r.dirty_part() for r in chosen])
    for resident in chosen:
        if resident.told:
            resident.told = False
        else:
            owner.note("d2h", resident.dirty_part()[0], resident.label, elsewhere=owner is not residency)
        owner.undo.came_back(resident)
        resident.dirty = None
    del alive


def _named(residents: Sequence[Resident]) -> str:
    """Arrays as the host function calls them, with their bytes."""
    return " and ".join(f"'{r.label}' ({r.plan.nbytes} bytes)" for r in residents)


def _writers(residents: Sequence[Resident]) -> str:
    """The kernels that wrote them last."""
    return " and ".join(dict.fromkeys(r.writer for r in residents))


def _met(resident: Resident, begin: int | None, end: int | None) -> bool:
    return begin is None or end is None or resident.meets(begin, end)


def _memory_owner(array: Any) -> Any:
    """The object that keeps an array's memory."""
    base = array
    while isinstance(base, np.ndarray) and base.base is not None:
        base = base.base
    return base


def _goes_with_its_memory(root: Any) -> bool:
    """Whether the memory goes when this object does.

    Not so of what only refers to another's memory: memoryviews, ``as_strided``, ctypes, objects with an array interface. The
    arrays over those may go, and what a kernel wrote through them is to be seen in the arrays that are left.
    """
    return root.flags.owndata if isinstance(root, np.ndarray) else type(root) in MEMORY_OWNERS


def _described(array: Any) -> Any:
    """An array's elements, without keeping its memory: only addresses are compared."""
    return raw_view(address(array), array.shape, array.strides, array.dtype.itemsize)
