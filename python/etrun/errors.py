"""Exceptions, one for each error class of the library."""

from __future__ import annotations

__all__ = [
    "Error",
    "FileError",
    "ModelError",
    "MissingError",
    "InputError",
    "DeviceError",
    "CancelledError",
    "MemoryLimitError",
    "BusyError",
    "ClosedError",
    "PanicError",
]


class Error(Exception):
    """A failure of the library, and the base of all its exceptions."""


class FileError(Error, OSError):
    """A file cannot be read."""


class ModelError(Error):
    """The model or the tokenizer is invalid or unsafe."""


class MissingError(Error):
    """An operator, backend or external data is missing, or not supported."""


class InputError(Error, ValueError):
    """An argument, an input, or a request for an output does not match."""


class DeviceError(Error):
    """A device failed."""


class CancelledError(Error, TimeoutError):
    """The time limit was reached, or the call was cancelled."""


class MemoryLimitError(Error, MemoryError):
    """The model needs more memory than the limit."""


class BusyError(Error):
    """Another thread is using the method or text."""


class ClosedError(Error):
    """The program, method or text is closed."""


class PanicError(Error):
    """An operator, a backend or the library panicked: a fault of it, not of the model."""


CLASSES: dict[int, type[Error]] = {
    2: FileError,
    3: ModelError,
    4: MissingError,
    5: InputError,
    7: DeviceError,
    8: CancelledError,
    9: MemoryLimitError,
    10: BusyError,
    11: ClosedError,
    12: PanicError,
}
