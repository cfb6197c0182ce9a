"""The exceptions a user can meet. Each subclasses the builtin that NumPy or Python code would already catch."""

from __future__ import annotations

from numba.core.errors import TypingError


class OffloadError(Exception):
    """Root of every error this package raises by itself."""


class SafetyError(OffloadError, TypingError):
    """A kernel was refused at compile time, because it could race, write what it may not, or use an unsafe operation."""

    def __init__(self, message: str) -> None:
        TypingError.__init__(self, message)
        #: The message without what Numba puts in front of it on the way out.
        self.plain = message


class LaunchError(OffloadError, ValueError):
    """A launch was refused before it began: its configuration does not fit the kernel's Regions or the device."""


class SignatureError(LaunchError, TypeError):
    """A kernel that was compiled beforehand is called with arguments of types that it was not compiled for."""


class AliasError(LaunchError):
    """An argument that the kernel writes shares memory with another argument."""


class BorrowError(OffloadError):
    """An array was used against the rules of the preload that holds it."""


class UnsupportedArrayError(OffloadError, TypeError):
    """An array's kind or dtype cannot be handed to a kernel."""


class TargetError(OffloadError, RuntimeError):
    """A target is unknown, missing a piece it needs, or failed."""


class TransferError(OffloadError, RuntimeError):
    """A copy between host and device was about to be made where ``transfer_guard`` disallows it."""


class DeviceMemoryError(OffloadError, MemoryError):
    """A device has no room for a buffer that a launch needs."""


class BundleError(OffloadError, ValueError):
    """A file of compiled kernels is damaged, does not hold what it is taken for, or cannot be made as asked."""


class CacheWarning(UserWarning):
    """Compiled kernels are not kept on disk, or not taken from there, although ``cache=True`` asks for it."""


class TransferWarning(UserWarning):
    """A host function is left as it is, although ``@optimize_transfers`` asks for its transfers to be optimised."""


class NotPlainError(OffloadError, TypeError):
    """Something that compiled code depends on has no form as plain data, so that the code cannot be kept in a file."""
