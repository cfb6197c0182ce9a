"""What a failing thread reports: small integers that stand for an exception and for a line of the user's source.

The numbers are hashes of what they stand for, so that code compiled in one process means the same in another.
"""

from __future__ import annotations

import threading
import zlib
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class LostException:
    """The class of an exception that code from a file may raise, and that cannot be imported here."""

    module: str
    qualname: str


@dataclass(frozen=True)
class RaiseSite:
    """An exception that code may raise. ``args`` mixes constants with :class:`Payload` slots filled at run time."""

    exception: type[BaseException] | LostException
    args: tuple[Any, ...]


@dataclass(frozen=True)
class Payload:
    """A value that the failing thread recorded in slot ``slot``, read back as the given kind (``i``, ``u``, ``f``, ``b``)."""

    slot: int
    kind: str


@dataclass(frozen=True)
class IndexSite:
    """An index out of range; the index and the size are payload slots 0 and 1."""

    axis: int
    array: str


@dataclass(frozen=True)
class ReadSite:
    """A read of a Region at an element that another thread may write; the index is in the payload slots."""

    array: str
    strategy: str
    axes: int


@dataclass(frozen=True)
class LineSite:
    """A line of the user's source, and the function it is in."""

    filename: str
    line: int
    function: str


Site = RaiseSite | IndexSite | ReadSite | LineSite


class SiteTable:
    """Numbers sites: stable hashes, never zero, distinct within a process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._numbers: dict[tuple[Any, str], int] = {}
        """By what sites look like, as 1, 1.0 and True are equal; and by the class, of which there may be several of one name."""
        self._sites: dict[int, Site] = {}

    def number(self, site: Site) -> int:
        """The number that stands for a site, for code to report."""
        with self._lock:
            shown = repr(site)
            key = (getattr(site, "exception", None), shown)
            known = self._numbers.get(key)
            if known is not None:
                return known
            number = (zlib.crc32(shown.encode("utf-8", "surrogatepass")) & 0x7FFFFFFF) or 1
            while number in self._sites:
                number = number % 0x7FFFFFFF + 1
            self._numbers[key] = number
            self._sites[number] = site
            return number

    def site(self, number: int) -> Site | None:
        """The site that a number stands for, or None."""
        return self._sites.get(number)

    def known(self, number: int) -> Site:
        """The site that a number stands for. Raises KeyError for one that none was given."""
        return self._sites[number]


SITES = SiteTable()
"""Every site of every kernel compiled in this process."""
