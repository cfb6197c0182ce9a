"""What strategies and element maps share: parameters that identify them, value equality, no later change.

A compiler turns such an object into a type. Its constants are part of that type, its run-time parameters and
index arrays are passed at launch. So an object says which attribute is which, and is sealed once constructed.
"""

from __future__ import annotations

from abc import ABCMeta
from collections.abc import Iterator
from typing import Any

from partitioning.checks import Runtime, integer
from partitioning.index_array import IndexArray, index_array

_BOOKKEEPING = {"_names", "runtime_parameters", "__dict__", "__weakref__"}


class _SealedType(ABCMeta):
    """Seals an instance once its constructor, whoever wrote it, is done. An ABCMeta: users mix in ABCs."""

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        made = super().__call__(*args, **kwargs)
        if isinstance(made, Parametrised) and not made._sealed():
            made._seal()
        return made


class Parametrised(metaclass=_SealedType):
    """An object that is its class plus its parameters.

    Every instance attribute is a parameter: an int, bool, float, another Parametrised, or an index array
    named in `index_arrays`. An int named in `runtime_parameters` of the class, or given as `Runtime(value)`,
    is passed at launch; the other attributes are constants of the compiled type.
    """

    __slots__ = ("__weakref__", "_names")

    runtime_parameters: tuple[str, ...] = ()
    index_arrays: tuple[str, ...] = ()

    _names: tuple[str, ...]

    def _sealed(self) -> bool:
        return hasattr(self, "_names")

    def _seal(self) -> None:
        cls = type(self)
        restore_identity(cls)
        runtime = []
        for name, value in list(self._attributes()):
            label = f"{cls.__name__}.{name}"
            if name in self.index_arrays:
                object.__setattr__(self, name, index_array(value, label))
                continue
            if isinstance(value, Parametrised | bool | float):
                if name in self.runtime_parameters:
                    raise TypeError(f"{label} is a run-time parameter and must be an integer, not {value!r}")
                continue
            if not hasattr(value, "__index__"):
                raise TypeError(
                    f"{label} is {value!r} ({type(value).__name__}); an attribute of a strategy or element"
                    f" map must be an int, bool, float, a strategy or an element map (one attribute per"
                    f" number), or be named in index_arrays"
                )
            number = integer(value, label)
            if isinstance(number, Runtime) or name in self.runtime_parameters:
                runtime.append(name)
            object.__setattr__(self, name, int(number))
        missing = (set(self.runtime_parameters) | set(self.index_arrays)) - {
            name for name, _ in self._attributes()
        }
        if missing:
            raise TypeError(f"{cls.__name__} declares {sorted(missing)} but its constructor did not set them")
        if tuple(runtime) != cls.runtime_parameters:
            object.__setattr__(self, "runtime_parameters", tuple(runtime))
        object.__setattr__(self, "_names", tuple(name for name, _ in self._attributes()))

    def __getstate__(self) -> dict[str, Any]:
        return {**dict(self._attributes()), "runtime_parameters": self.runtime_parameters}

    def __setstate__(self, state: dict[str, Any]) -> None:
        # Past __setattr__, a frozen dataclass's too: the copy is sealed at once.
        restore_identity(type(self))
        for name, value in state.items():
            if name != "runtime_parameters" or value != type(self).runtime_parameters:
                object.__setattr__(self, name, value)
        object.__setattr__(self, "_names", tuple(name for name in state if name != "runtime_parameters"))

    def _attributes(self) -> Iterator[tuple[str, Any]]:
        if self._sealed():
            # Not vars(): a cached property may have added to it.
            yield from ((name, getattr(self, name)) for name in self._names)
            return
        for base in type(self).__mro__:
            slots = base.__dict__.get("__slots__", ())
            for name in (slots,) if isinstance(slots, str) else slots:
                if name not in _BOOKKEEPING and hasattr(self, name):
                    yield name, getattr(self, name)
        for name, value in list(getattr(self, "__dict__", {}).items()):
            if name not in _BOOKKEEPING:
                yield name, value

    def __setattr__(self, name: str, value: Any) -> None:
        self._refuse_change()
        object.__setattr__(self, name, value)

    def __delattr__(self, name: str) -> None:
        self._refuse_change()
        object.__delattr__(self, name)

    def _refuse_change(self) -> None:
        if self._sealed():
            raise AttributeError(
                f"{self!r} cannot be changed: kernels were compiled for it; construct a new one"
            )

    def parameters(self) -> dict[str, Any]:
        """The constants of the compiled type by name: ints, bools, floats, strategies and element maps."""
        passed = (*self.runtime_parameters, *self.index_arrays)
        return {name: value for name, value in self._attributes() if name not in passed}

    def runtime_values(self) -> tuple[tuple[str, int], ...]:
        """What launches pass, of this object and then of those nested in it: ("k", 8), ("inner.k", 8) ..."""
        own = [(name, getattr(self, name)) for name in self.runtime_parameters]
        return tuple(
            own + [leaf for name, part in self._parts() for leaf in _under(name, part.runtime_values())]
        )

    def index_values(self) -> tuple[tuple[str, IndexArray], ...]:
        """The index arrays, of this object and of those nested in it, named as in `runtime_values`."""
        own = [(name, getattr(self, name)) for name in self.index_arrays]
        return tuple(
            own + [leaf for name, part in self._parts() for leaf in _under(name, part.index_values())]
        )

    def _parts(self) -> list[tuple[str, Parametrised]]:
        return [(name, value) for name, value in self.parameters().items() if isinstance(value, Parametrised)]

    def type_key(self) -> tuple[Any, ...]:
        """Equal for two objects that may share a compiled kernel: class and constants, not what is passed."""
        constants = tuple(
            (name, *_fingerprint(value, nested="type")) for name, value in self.parameters().items()
        )
        return (type(self), constants, tuple(self.runtime_parameters), tuple(self.index_arrays))

    def identity(self) -> tuple[Any, ...]:
        """Equal for two objects that map every thread alike: type key, run-time values and index arrays."""
        constants = tuple(
            (name, *_fingerprint(value, nested="whole")) for name, value in self.parameters().items()
        )
        passed = tuple((name, getattr(self, name)) for name in (*self.runtime_parameters, *self.index_arrays))
        return (type(self), constants, passed, len(self.runtime_parameters))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Parametrised):
            return NotImplemented
        return self is other or self.identity() == other.identity()

    def __hash__(self) -> int:
        return hash(self.identity())

    def __repr__(self) -> str:
        shown = []
        for name, value in self._attributes():
            if name in self.index_arrays:
                shown.append(f"{name}=<{len(value)} integers>")
            elif name in self.runtime_parameters and name not in type(self).runtime_parameters:
                shown.append(f"{name}=Runtime({value})")
            else:
                shown.append(f"{name}={value!r}")
        return f"{type(self).__name__}({', '.join(shown)})"


def restore_identity(cls: type) -> None:
    """Undo the `__eq__`, `__hash__` and `__repr__` that @dataclass wrote: they know nothing of `Runtime`."""
    for base in cls.__mro__:
        options = base.__dict__.get("__dataclass_params__")
        if options is not None and options.eq and base.__dict__.get("__eq__") is not Parametrised.__eq__:
            base.__eq__ = Parametrised.__eq__  # type: ignore
            base.__hash__ = Parametrised.__hash__  # type: ignore
            if options.repr:
                base.__repr__ = Parametrised.__repr__  # type: ignore


def _under(name: str, leaves: tuple[tuple[str, Any], ...]) -> list[tuple[str, Any]]:
    return [(f"{name}.{path}", value) for path, value in leaves]


def _fingerprint(value: Any, nested: str) -> tuple[str, Any]:
    """Kind and value, so that 1, 1.0 and True are three constants and a NaN equals itself."""
    if isinstance(value, Parametrised):
        return "part", value.type_key() if nested == "type" else value.identity()
    if isinstance(value, float):
        return "float", float(value).hex()
    return type(value).__name__, value
