"""Exceptions, one for each error class of the library. They are those of executorch.runtime, too: a
RuntimeError, and a KeyError or TypeError where it raises one."""

from __future__ import annotations

import functools
import os
from typing import Any, Sequence

__all__ = [
    "Error",
    "FileError",
    "ModelError",
    "MissingError",
    "InputError",
    "InputTypeError",
    "MethodNameError",
    "DeviceError",
    "CancelledError",
    "MemoryLimitError",
    "BusyError",
    "ClosedError",
    "PanicError",
]


class Error(RuntimeError):
    """A failure of the library, and the base of all its exceptions."""


class FileError(OSError, Error):
    """A file cannot be read or written: a FileNotFoundError, PermissionError and so on, where Python has one."""


class ModelError(Error):
    """The model or the tokenizer is invalid or unsafe."""


class MissingError(Error):
    """An operator, backend or external data is missing, or not supported."""


class InputError(Error, ValueError):
    """An argument, an input, or a request for an output does not match."""


class InputTypeError(InputError, TypeError):
    """An input is of a type that has no elements."""


class MethodNameError(InputError, KeyError):
    """The program has no method of that name."""

    __str__ = Error.__str__  # that of KeyError adds quotes


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


def file_error(error: FileError, paths: Sequence[Any]) -> FileError:
    """Returns the error with errno and filename: those of the first path that cannot be opened."""
    for path in paths:
        try:
            open(path, "rb").close()
        except OSError as e:
            kind = FileError if type(e) is OSError else _both(type(e))
            return kind(e.errno, e.strerror, os.fspath(path))
    return error


@functools.lru_cache(maxsize=None)
def _both(kind: type[OSError]) -> type[FileError]:
    return type(kind.__name__, (FileError, kind), {"__module__": "etrun", "__doc__": kind.__doc__})
