"""compile_bundle: kernels compiled beforehand, for one or more targets, into one file."""

from __future__ import annotations

import contextlib
import os
import secrets
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from numba_offload.bundle.content import as_one, call_types, image_to_bundle, kernel_to_data, versions
from numba_offload.bundle.manifest import Bundle, BundledImage, write_bundle
from numba_offload.bundle.signatures import example_arguments, shown_signature
from numba_offload.errors import BundleError, OffloadError, SafetyError
from numba_offload.kernel import OffloadKernel
from numba_offload.plain_data import Plain
from numba_offload.specialisation import Specialisation, build
from numba_offload.targets.ahead import CodeTarget, code_target

Call = tuple[OffloadKernel, Any]
"""A kernel and the arguments of a call, or a text of their types."""


def compile_bundle(specialisations: Iterable[Call], targets: Iterable[str], path: str | os.PathLike[str]) -> None:
    """Compile kernels for some types of arguments and some targets, and write them to one file for ``load_bundle``.

    No GPU is needed. Other than at a launch, what kernels capture is read now: numbers from around a kernel are frozen,
    and a kernel that captures arrays is refused. The file is an offload binary of LLVM's: ``llvm-objdump --offloading``
    lists it, and ``clang-offload-packager`` extracts from it.

    Parameters
    ----------
    specialisations
        Pairs of a kernel and what it is called with: a tuple of arguments as in a call, of which only the types matter, or
        a text of the types such as ``"f8, f8[::1], Region(f8[::1])"``. In the tuple too, a string stands for the type of one
        argument. A parameter that is left out has its default. See ``numba_offload/bundle/signatures.py`` for all types.
        A kernel may come several times, for several types.
    targets
        ``"cpu"`` (x86-64-v3, or any 64-bit ARM processor: what most machines of this one's family can run), ``"cpu:host"``,
        ``"cpu:PROCESSOR"`` with LLVM's name of one; ``"sm_90"`` (machine code where NVIDIA's assembler ptxas is found: a
        toolkit's, or that of the wheel nvidia-cuda-nvcc; else PTX), ``"compute_90"`` (PTX, for this architecture and all newer
        ones); ``"gfx90a"``, ``"gfx942"`` ...
    path
        The file. It is replaced once everything is compiled; where something fails, it stays as it is.

    Raises
    ------
    BundleError
        A type's text is wrong, a kernel captures arrays, or two kernels have one name.
    TargetError
        A target is unknown, or a tool to compile for it is missing.
    SafetyError
        A kernel is refused for these types.
    TypeError
        ``specialisations`` are no such pairs.
    """
    data = write_bundle(make_bundle(specialisations, targets))
    _replace(Path(path), data)


def make_bundle(specialisations: Iterable[Call], targets: Iterable[str]) -> Bundle:
    """What ``compile_bundle`` writes."""
    calls = _checked(specialisations)
    if isinstance(targets, str):
        raise TypeError(f"targets is a list of names, such as [{targets!r}], not one name")
    wanted = {name: code_target(name) for name in targets}
    if not wanted or not calls:
        raise BundleError("a bundle needs at least one kernel and one target")
    kernels: list[dict[str, Plain]] = []
    images: list[BundledImage] = []
    seen: set[tuple[str, str]] = set()
    for kernel, given in calls:
        with _told(kernel.__name__, ""):
            types, specialisation = _host_pass(kernel, given)
        same = (kernel.__name__, as_one(types))
        if same in seen:
            continue
        seen.add(same)
        for target in wanted.values():
            with _told(kernel.__name__, f" for {target.name}"):
                images += _device_passes(len(kernels), specialisation, target)
        kernels.append(kernel_to_data(specialisation.record, types, shown_signature(types)))
    return Bundle(versions(), kernels, images)


def _checked(specialisations: Iterable[Call]) -> list[Call]:
    calls = []
    named: dict[str, OffloadKernel] = {}
    for item in specialisations:
        if not (isinstance(item, tuple) and len(item) == 2 and isinstance(item[0], OffloadKernel)):
            raise TypeError(
                "compile_bundle takes pairs of a kernel and its arguments or their types, such as "
                f"(saxpy, (2.0, x, Region(y))) or (saxpy, 'f8, f8[::1], Region(f8[::1])'), not {item!r}"
            )
        kernel, given = item
        if not isinstance(given, tuple | str):
            raise TypeError(
                f"kernel {kernel.__name__!r}: its arguments are a tuple, or a text of their types, not a {type(given).__name__}"
            )
        other = named.setdefault(kernel.__name__, kernel)
        if other is not kernel:
            places = " and ".join(f"{k.__module__}.{k.__qualname__}" for k in (other, kernel))
            raise BundleError(
                f"two kernels are called {kernel.__name__!r} ({places}), and a bundle's kernels are found by their names; rename "
                "one, or write two bundles"
            )
        calls.append((kernel, given))
    return calls


def _host_pass(kernel: OffloadKernel, given: Any) -> tuple[list[Plain], Specialisation]:
    names = kernel.py_func.__globals__
    if isinstance(given, str):
        args = example_arguments(given, names)
        try:
            kernel._bind(args, {})
        except TypeError as error:
            raise BundleError(f"signature {given!r}: {error}") from None
    else:
        args = tuple([_example(value, names) for value in given])
    arguments, specialisation = kernel._prepare(args, {})
    captured = specialisation.record.captured
    if captured:
        raise BundleError(
            f"it captures the array {captured[0]!r}, whose content launches of a bundle could not follow; make it an argument"
        )
    return call_types(arguments.key), specialisation


def _example(value: Any, names: dict[str, Any]) -> Any:
    """An argument, with types in place of values."""
    if isinstance(value, str):
        made = example_arguments(value, names)
        if len(made) != 1:
            raise BundleError(f"{value!r} stands for {len(made)} arguments; write one text for each, or one for all")
        return made[0]
    return value


def _device_passes(number: int, specialisation: Specialisation, target: CodeTarget) -> Iterator[BundledImage]:
    """Code that assumes nothing, and code for launches that have settled all that can be."""
    assert specialisation.source is not None
    for settled in dict.fromkeys((frozenset(), specialisation.record.facts)):
        image = build(target, specialisation.source, settled)
        image.check_layout(specialisation.record.name, specialisation.record.layout)
        yield image_to_bundle(number, image, target)


@contextlib.contextmanager
def _told(kernel: str, target: str) -> Iterator[None]:
    """Errors say which kernel was compiled, and for what."""
    doing = f"compiling kernel {kernel!r}{target}: "
    try:
        yield
    except SafetyError as error:
        raise SafetyError(doing + error.plain) from error.__cause__
    except OffloadError as error:
        raise type(error)(doing + str(error)) from error.__cause__
    except Exception as error:
        error.add_note(f"while {doing.removesuffix(': ')}")
        raise


def _replace(path: Path, data: bytes) -> None:
    """Write a file as a whole: whoever reads it finds the old one or the new one."""
    unfinished = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    try:
        with open(unfinished, "xb") as file:
            file.write(data)
        os.replace(unfinished, path)
    except BaseException as error:
        with contextlib.suppress(OSError):
            os.unlink(unfinished)
        if isinstance(error, OSError):
            raise OSError(error.errno, error.strerror, os.fspath(path)) from error
        raise
