"""The functions and structures of etrun.h."""

from __future__ import annotations

import ctypes
import os
from ctypes import POINTER, byref, c_char_p, c_double, c_float, c_int, c_int32, c_int64, c_size_t, c_uint64, c_void_p
from pathlib import Path
from typing import Any, Callable, NoReturn, Optional, TypeVar

from .errors import CLASSES, ClosedError, Error, InputError

ABI = 2
MAX_RANK = 16
NAME = f"libetrun.so.{ABI}"


class Bytes(ctypes.Structure):
    """etrun_bytes"""

    _fields_ = [("data", c_void_p), ("bytes", c_size_t)]


class Options(ctypes.Structure):
    """etrun_options"""

    _fields_ = [
        ("data_files", POINTER(c_char_p)),
        ("n_data_files", c_size_t),
        ("data_bytes", POINTER(Bytes)),
        ("n_data_bytes", c_size_t),
        ("threads", c_int32),
        ("map", c_int32),
        ("max_memory", c_int64),
        ("seed", c_uint64),
        ("lowering", c_char_p),
        ("xnnpack", c_char_p),
        ("xnnpack_library", c_char_p),
        ("weights_cache", c_char_p),
        ("device", c_char_p),
        ("delegates", c_char_p),
        ("repair", c_char_p),
        ("etdump", c_int32),
        ("reserved_1", c_int32),
        ("debug_buffer", c_int64),
        ("reserved", c_uint64 * 6),
    ]


class Info(ctypes.Structure):
    """etrun_info"""

    _fields_ = [
        ("kind", c_int32),
        ("dtype", c_int32),
        ("rank", c_int32),
        ("dynamic", c_int32),
        ("shape", c_int64 * MAX_RANK),
        ("bytes", c_uint64),
        ("name", c_char_p),
        ("int_value", c_int64),
        ("double_value", c_double),
        ("planned", c_int32),
        ("reserved_1", c_int32),
        ("reserved", c_uint64 * 3),
    ]

    def sizes(self) -> tuple[int, ...]:
        """The shape."""
        return tuple(self.shape[: self.rank])


class Value(ctypes.Structure):
    """etrun_value"""

    _fields_ = [
        ("kind", c_int32),
        ("dtype", c_int32),
        ("rank", c_int32),
        ("copied", c_int32),
        ("shape", c_int64 * MAX_RANK),
        ("data", c_void_p),
        ("bytes", c_size_t),
    ]

    def describe(self, dtype: int, sizes: tuple[int, ...]) -> None:
        """Sets the type and the shape."""
        if len(sizes) > MAX_RANK:
            raise InputError(f"got {len(sizes)} dimensions, at most {MAX_RANK}")
        self.dtype, self.rank = dtype, len(sizes)
        self.shape[: len(sizes)] = sizes


class TextOptions(ctypes.Structure):
    """etrun_text_options"""

    _fields_ = [
        ("tokenizer", c_char_p),
        ("tokenizer_data", Bytes),
        ("method", c_char_p),
        ("chat_template", c_char_p),
        ("context", c_int32),
        ("has_bos", c_int32),
        ("bos", c_int32),
        ("reserved_1", c_int32),
        ("eos", POINTER(c_int32)),
        ("n_eos", c_size_t),
        ("batch", c_int32),
        ("reserved_2", c_int32),
        ("processor", Bytes),
        ("reserved", c_uint64 * 5),
    ]


class Medium(ctypes.Structure):
    """etrun_medium"""

    content: bytes  # which file refers to
    _fields_ = [("kind", c_int32), ("reserved", c_int32), ("file", Bytes)]


class Sampling(ctypes.Structure):
    """etrun_sampling"""

    _fields_ = [
        ("temperature", c_double),
        ("top_p", c_double),
        ("min_p", c_double),
        ("repetition_penalty", c_double),
        ("presence_penalty", c_double),
        ("frequency_penalty", c_double),
        ("seed", c_uint64),
        ("top_k", c_int32),
        ("penalty_window", c_int32),
        ("max_tokens", c_int32),
        ("ignore_eos", c_int32),
        ("lookup", c_int32),
        ("log_probs", c_int32),
        ("stop", POINTER(c_char_p)),
        ("n_stop", c_size_t),
        ("schema", c_char_p),
        ("grammar", c_char_p),
        ("pattern", c_char_p),
        ("reserved", c_uint64 * 5),
    ]


class EmbedderOptions(ctypes.Structure):
    """etrun_embedder_options"""

    _fields_ = [
        ("tokenizer", c_char_p),
        ("tokenizer_data", Bytes),
        ("method", c_char_p),
        ("pooling", c_char_p),
        ("prompt", c_char_p),
        ("context", c_int32),
        ("normalize", c_int32),
        ("reserved", c_uint64 * 8),
    ]


class SpeechOptions(ctypes.Structure):
    """etrun_speech_options"""

    _fields_ = [("files", c_char_p), ("instances", c_int32), ("reserved_1", c_int32), ("reserved", c_uint64 * 8)]


class Transcription(ctypes.Structure):
    """etrun_transcription"""

    _fields_ = [
        ("language", c_char_p),
        ("prompt", c_char_p),
        ("temperature", c_double),
        ("threshold", c_double),
        ("seed", c_uint64),
        ("translate", c_int32),
        ("times", c_int32),
        ("fallback", c_int32),
        ("max_tokens", c_int32),
        ("reserved", c_uint64 * 8),
    ]


class Piece(ctypes.Structure):
    """etrun_piece"""

    _fields_ = [
        ("text", c_void_p),
        ("bytes", c_size_t),
        ("tokens", POINTER(c_int32)),
        ("log_probs", POINTER(c_float)),
        ("n_tokens", c_size_t),
        ("finish", c_int32),
        ("reserved_1", c_int32),
        ("prompt_tokens", c_uint64),
        ("reused_tokens", c_uint64),
        ("generated_tokens", c_uint64),
        ("prefill_seconds", c_double),
        ("decode_seconds", c_double),
        ("reserved", c_uint64 * 4),
    ]


_handle, _int64s, _int32s = c_uint64, POINTER(c_int64), POINTER(c_int32)

# Parameters of the functions that return an error class, without the last one, the message.
_CALLS: dict[str, list[Any]] = {
    "etrun_open": [c_char_p, POINTER(Options), POINTER(_handle)],
    "etrun_open_memory": [c_void_p, c_size_t, POINTER(Options), POINTER(_handle)],
    "etrun_close": [_handle],
    "etrun_method_name": [_handle, c_size_t, POINTER(c_char_p)],
    "etrun_declared_counts": [_handle, c_char_p, POINTER(c_size_t), POINTER(c_size_t)],
    "etrun_declared_input": [_handle, c_char_p, c_size_t, POINTER(Info)],
    "etrun_declared_output": [_handle, c_char_p, c_size_t, POINTER(Info)],
    "etrun_declared_attribute": [_handle, c_char_p, c_size_t, POINTER(Info)],
    "etrun_write_etdump": [_handle, c_char_p, c_char_p],
    "etrun_warning": [_handle, c_size_t, POINTER(c_void_p)],
    "etrun_load": [_handle, c_char_p, POINTER(_handle)],
    "etrun_unload": [_handle],
    "etrun_invoke": [_handle, c_void_p, c_size_t, c_void_p, c_size_t, c_int64],
    "etrun_input_memory": [_handle, c_size_t, c_int32, _int64s, c_size_t, POINTER(c_void_p), POINTER(c_size_t)],
    "etrun_get": [_handle, c_size_t, c_int32, _int64s, c_size_t, c_void_p, c_size_t],
    "etrun_reset": [_handle],
    "etrun_text_open": [_handle, POINTER(TextOptions), POINTER(_handle)],
    "etrun_text_close": [_handle],
    "etrun_text_prompt": [_handle, c_char_p, c_size_t, POINTER(Sampling)],
    "etrun_text_tokens": [_handle, _int32s, c_size_t, POINTER(Sampling)],
    "etrun_text_conversation": [_handle, c_char_p, c_size_t, POINTER(Sampling)],
    "etrun_text_media": [_handle, POINTER(Medium), c_size_t],
    "etrun_text_fork": [_handle, POINTER(_handle)],
    "etrun_text_next": [_handle, POINTER(Piece)],
    "etrun_text_cancel": [_handle],
    "etrun_embedder_open": [_handle, POINTER(EmbedderOptions), POINTER(_handle), POINTER(c_size_t)],
    "etrun_embed": [_handle, POINTER(Bytes), c_size_t, c_void_p, c_size_t],
    "etrun_embedder_close": [_handle],
    "etrun_speech_open": [_handle, POINTER(SpeechOptions), POINTER(_handle)],
    "etrun_transcribe": [_handle, POINTER(Bytes), POINTER(Transcription), POINTER(c_void_p)],
    "etrun_speech_close": [_handle],
}


_WHERE = "wheels contain libetrun; in a checkout, make libetrun builds it, and ETRUN_LIBRARY=bin/libetrun.so.2 names it"


def _open() -> ctypes.CDLL:
    """Opens the library: of ETRUN_LIBRARY, of the package, or of the system."""
    path = os.environ.get("ETRUN_LIBRARY")
    if not path:
        own = Path(__file__).parent / NAME
        path = str(own) if own.exists() else NAME
    try:
        library = ctypes.CDLL(path)
        library.etrun_abi.restype = c_int32
    except (OSError, AttributeError) as e:
        raise ImportError(f"{e} ({_WHERE})") from e
    if library.etrun_abi() != ABI:
        raise ImportError(f"{path}: interface {library.etrun_abi()} of libetrun, want {ABI}")
    for name, parameters in _CALLS.items():
        function = getattr(library, name)
        function.argtypes, function.restype = [*parameters, POINTER(c_void_p)], c_int
    library.etrun_version.restype = c_char_p
    for function in (library.etrun_backend_name, library.etrun_operator_name):
        function.argtypes, function.restype = [c_size_t], c_char_p
    library.etrun_free.argtypes, library.etrun_free.restype = [c_void_p], None
    return library


lib = _open()


def owned_text(pointer: c_void_p) -> str:
    """Returns a string of the library, and frees it."""
    try:
        return ctypes.string_at(pointer).decode(errors="replace") if pointer else ""
    finally:
        lib.etrun_free(pointer)


def call(name: str, *arguments: Any) -> None:
    """Calls a function and raises its error."""
    message = c_void_p()
    number = getattr(lib, name)(*arguments, byref(message))
    if number != 0:
        raise CLASSES.get(number, Error)(owned_text(message))


def names(function: Callable[[int], Optional[bytes]]) -> list[str]:
    """Returns the names that a function lists."""
    found: list[str] = []
    while (name := function(len(found))) is not None:
        found.append(name.decode(errors="replace"))
    return found


def c_text(text: Optional[str], what: str) -> Optional[bytes]:
    """Returns a string of C, None for None."""
    if text is None:
        return None
    if not isinstance(text, str):
        raise TypeError(f"{what}: got {type(text).__name__}, want str")
    data = text.encode()
    if b"\0" in data:
        raise ValueError(f"{what}: embedded null character")
    return data


def c_path(path: Any, what: str) -> bytes:
    """Returns a path as a string of C."""
    data = os.fsencode(path)
    if b"\0" in data:
        raise ValueError(f"{what}: embedded null character")
    return data


def c_content(data: Any, what: str) -> bytes:
    """Returns the bytes of a file's content. bytes(data) alone would make zeros of a number."""
    try:
        return bytes(memoryview(data))
    except TypeError:
        raise TypeError(f"{what}: got {type(data).__name__}, want a path, or the content of a file as bytes") from None


def c_file(file: Any, what: str) -> bytes:
    """Returns the content of a file: of its path, or as it is."""
    if isinstance(file, (str, os.PathLike)):
        with open(file, "rb") as f:
            return f.read()
    return c_content(file, what)


def c_block(data: Any) -> Bytes:
    """Returns bytes as a structure of C, valid as long as they."""
    return Bytes(ctypes.cast(data, c_void_p), len(data))


ONE = (str, bytes, bytearray, memoryview, os.PathLike)  # not a sequence of its characters


def items(values: Any, what: str) -> list[Any]:
    """Returns the items of a sequence."""
    if isinstance(values, ONE):
        raise TypeError(f"{what}: got {type(values).__name__}, want a list")
    return list(values)


def c_list(kind: Any, items: list[Any]) -> Any:
    """Returns an array of C, None for an empty one."""
    return (kind * len(items))(*items) if items else None


class Handle:
    """A handle of the library, closed when this object is no longer used."""

    def __init__(self, close: str, number: int) -> None:
        self.number = number
        self._close: Callable[..., int] = getattr(lib, close)

    def __del__(self) -> None:
        if self._close is not None:
            self._close(self.number, None)


_Self = TypeVar("_Self")


class Closable:
    """What has a handle: a context manager, whose close method may be called repeatedly."""

    _handle: Optional[Handle] = None
    _program: Any = None  # that must stay open as long
    _description = ""  # for repr

    @property
    def handle(self) -> int:
        """The number of the handle."""
        if self._handle is None:
            raise ClosedError(f"the {type(self).__name__} is closed")
        return self._handle.number

    def close(self) -> None:
        """Frees the object. Later calls of other methods raise ClosedError."""
        self._handle = self._program = None

    def __repr__(self) -> str:
        closed = " (closed)" if self._handle is None else ""
        return f"<etrun.{type(self).__name__} {self._description}{closed}>"

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        what = f"etrun.{type(self).__name__}"
        raise TypeError(f"{what} cannot be pickled or copied: it refers to memory of this process; load the program again, from its file")

    def __enter__(self: _Self) -> _Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
