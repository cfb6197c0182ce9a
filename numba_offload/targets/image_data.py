"""A kernel's image as plain data beside its bytes, for files, and back."""

from __future__ import annotations

import importlib
import re
import struct
import sys
from typing import Any

import numpy as np

from numba_offload.errors import BundleError
from numba_offload.plain_data import Plain, fields, flag, listed, one_of, parts, real, refuse, text, whole
from numba_offload.targets.facts_data import facts_from_data, facts_to_data
from numba_offload.targets.image import KernelImage
from numba_offload.targets.sites import IndexSite, LineSite, LostException, Payload, RaiseSite, ReadSite, Site

FORMAT = 1
"""Raised whenever what is written here changes its meaning: other formats are refused."""

_FIELDS = (
    "format", "kind", "triple", "arch", "entry", "parameters", "may_fail", "positions", "sites", "symbols", "assumed",
)  # fmt: skip
KINDS = ("object", "ptx", "cubin")
_NUMPY_KINDS = "biufcmM"
_NUMPY_NAME = re.compile(rf"[<|>][{_NUMPY_KINDS}][0-9]{{1,2}}(\[[0-9]{{0,9}}[A-Za-z]{{1,2}}\])?")


# ------------------------------------------------------------------------------------------------------------- writing


def image_to_data(image: KernelImage) -> Plain:
    """All of an image but its bytes: what ``image_from_data`` reads."""
    return {
        "format": FORMAT,
        "kind": image.kind,
        "triple": image.triple,
        "arch": image.arch,
        "entry": image.entry,
        "parameters": image.parameters,
        "may_fail": image.may_fail,
        "positions": image.positions,
        "sites": [[number, _site_to_data(site)] for number, site in sorted(image.sites.items())],
        "symbols": list(image.symbols),
        "assumed": facts_to_data(image.assumed),
    }


def _site_to_data(site: Site) -> Plain:
    if isinstance(site, IndexSite):
        return ["index", site.axis, site.array]
    if isinstance(site, ReadSite):
        return ["read", site.array, site.strategy, site.axes]
    if isinstance(site, LineSite):
        return ["line", site.filename, site.line, site.function]
    exception = site.exception
    if isinstance(exception, LostException):
        name = [exception.module, exception.qualname]
    else:
        name = [exception.__module__, exception.__qualname__]
    return ["raise", *name, [_argument(value) for value in site.args]]


def _argument(value: Any) -> Plain:
    if isinstance(value, Payload):
        return ["payload", value.slot, value.kind]
    if type(value) is tuple:
        return ["tuple", [_argument(item) for item in value]]
    if type(value) is float:
        return ["float", value.hex()]
    if type(value) is complex:
        return ["complex", value.real.hex(), value.imag.hex()]
    if isinstance(value, np.generic) and value.dtype.kind in _NUMPY_KINDS:
        return ["numpy", value.dtype.str, value.tobytes().hex()]
    if value is None or type(value) in (bool, int, str):
        return ["plain", value]
    return ["plain", repr(value)]


# ------------------------------------------------------------------------------------------------------------- reading


def image_from_data(data: Plain, code: bytes) -> KernelImage:
    """The image, every part of it checked. Raises BundleError, and nothing else, for data that is none.

    The classes of the exceptions that the code may raise are imported; for one that cannot be, a failure will be told as an
    OffloadError.
    """
    if type(data) is dict and "format" in data:
        one_of(data["format"], "the format of an image", [FORMAT])
    found = fields(data, "an image", _FIELDS)
    sites = listed(found["sites"], "sites", _numbered)
    if len(dict(sites)) != len(sites):
        raise BundleError("sites has a number twice")
    if not code:
        raise BundleError("an image has no code")
    return KernelImage(
        one_of(found["kind"], "kind", KINDS),
        text(found["triple"], "triple"),
        text(found["arch"], "arch"),
        text(found["entry"], "entry"),
        code,
        _format(found["parameters"]),
        flag(found["may_fail"], "may_fail"),
        flag(found["positions"], "positions"),
        dict(sites),
        listed(found["symbols"], "symbols", text),
        facts_from_data(found["assumed"]),
    )


def _format(value: Plain) -> str:
    found = text(value, "parameters")
    try:
        struct.calcsize(found)
    except (struct.error, UnicodeEncodeError):
        refuse("parameters", value, "a format of the struct module")
    return found


def _numbered(value: Plain, what: str) -> tuple[int, Site]:
    number, site = parts(value, what, 2)
    return whole(number, what, 1, 2**31 - 1), _site(site, what)


def _site(value: Plain, what: str) -> Site:
    kind = value[0] if type(value) is list and value else refuse(what, value, "a site")
    if kind == "index":
        _, axis, array = parts(value, what, 3)
        return IndexSite(whole(axis, what, 0), text(array, what))
    if kind == "read":
        _, array, strategy, axes = parts(value, what, 4)
        return ReadSite(text(array, what), text(strategy, what), whole(axes, what, 1, 3))
    if kind == "line":
        _, filename, line, function = parts(value, what, 4)
        return LineSite(text(filename, what), whole(line, what), text(function, what))
    one_of(kind, what, ["raise", "index", "read", "line"])
    _, module, qualname, args = parts(value, what, 4)
    exception = find_exception(text(module, what), text(qualname, what))
    return RaiseSite(exception, listed(args, what, _read_argument))


def _read_argument(value: Plain, what: str, depth: int = 0) -> Any:
    kind = value[0] if type(value) is list and value else refuse(what, value, "an argument of an exception")
    if kind == "payload":
        _, slot, how = parts(value, what, 3)
        return Payload(whole(slot, what, 0, 2), one_of(how, what, ["i", "u", "f", "b"]))
    if kind == "complex":
        _, one, other = parts(value, what, 3)
        return complex(real(one, what), real(other, what))
    if kind == "numpy":
        _, dtype, content = parts(value, what, 3)
        return _numpy_scalar(text(dtype, what), text(content, what), what)
    one_of(kind, what, ["payload", "tuple", "float", "complex", "numpy", "plain"])
    inner = parts(value, what, 2)[1]
    if kind == "tuple":
        if depth > 50:
            refuse(what, value, "tuples that are not so deep")
        return listed(inner, what, lambda v, w: _read_argument(v, w, depth + 1))
    if kind == "float":
        return real(inner, what)
    return inner if inner is None or type(inner) in (bool, int, str) else refuse(what, inner, "a constant")


def _numpy_scalar(name: str, content: str, what: str) -> Any:
    if _NUMPY_NAME.fullmatch(name):
        try:
            (found,) = np.frombuffer(bytes.fromhex(content), np.dtype(name))
            return found
        except (TypeError, ValueError):
            pass
    refuse(what, [name, content], "NumPy's name of a dtype, and the bytes of one number of it")


def find_exception(module: str, qualname: str) -> type[BaseException] | LostException:
    """An exception's class by its name, imported if need be; what stands for it where there is none."""
    try:
        # Not the import system's answer first: the module may be the one that is being imported.
        found: Any = sys.modules.get(module) or importlib.import_module(module)
        for part in qualname.split("."):
            found = getattr(found, part)
    except Exception:  # importing runs code of others
        found = None
    if isinstance(found, type) and issubclass(found, BaseException):
        return found
    return LostException(module, qualname)
