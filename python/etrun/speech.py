"""Recordings: what is said in them, where somebody speaks, and who speaks when."""

from __future__ import annotations

import ctypes
import json
import os
import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Optional, Union

from ._library import Bytes, Closable, Handle, SpeechOptions, Transcription, byref, c_block, c_file, c_path, c_text, call, owned_text
from .errors import FileError, file_error
from .runtime import Content, Options, Path, Program, Source, _int

if TYPE_CHECKING:
    from typing_extensions import Unpack

__all__ = ["Segment", "Speech", "Transcript", "Word", "load_speech"]


@dataclass(frozen=True)
class Segment:
    """A part of a recording, in seconds. speaker is -1 if it is not known."""

    start: float
    end: float
    text: str
    speaker: int


@dataclass(frozen=True)
class Word:
    """A word and its times in seconds."""

    word: str
    start: float
    end: float


@dataclass(frozen=True)
class Transcript:
    """What was found in a recording. language is empty if the model has one, probabilities are those of a voice detector's frames."""

    text: str
    language: str
    duration: float
    segments: list[Segment]
    words: list[Word]
    tokens: list[int]
    probabilities: list[float]


def _samples(samples: Any, rate: int) -> bytes:
    """Returns the content of a WAVE file of floats."""
    data = memoryview(samples)
    if data.format != "f" or data.ndim != 1 or not data.c_contiguous:
        raise TypeError(f"samples: got a buffer of {data.format!r} with {data.ndim} dimensions, want float32 with one")
    body = data.tobytes()
    head = struct.pack("<4sI8sIHHIIHH4sI", b"RIFF", 36 + len(body), b"WAVEfmt ", 16, 3, 1, rate, 4 * rate, 4, 32, b"data", len(body))
    return head + body


class Speech(Closable):
    """A model of speech. Threads may share it."""

    def __init__(self, program: Program, files: Optional[Path] = None, *, instances: int = 1) -> None:
        """Opens a model. files is the folder of its tokenizer, vocab.json and the like, or the tokenizer. instances
        recordings are computed at the same time."""
        options = SpeechOptions(files=None if files is None else c_path(files, "files"), instances=_int(instances, 32, "instances"))
        number = ctypes.c_uint64()
        try:
            call("etrun_speech_open", program.handle, byref(options), byref(number))
        except FileError as e:
            raise file_error(e, [] if files is None else [files]) from None
        self._handle = Handle("etrun_speech_close", number.value)
        self._program = program
        self._description = program._description

    def transcribe(
        self,
        sound: Union[Content, Any],
        *,
        rate: Optional[int] = None,
        language: Optional[str] = None,
        prompt: Optional[str] = None,
        translate: bool = False,
        times: bool = False,
        fallback: bool = False,
        temperature: float = 0.0,
        threshold: float = 0.0,
        max_tokens: int = 0,
        seed: int = 0,
    ) -> Transcript:
        """Transcribes a WAVE or FLAC file: its path or content; or with rate samples, a buffer of float32.

        >>> etrun.load_speech("whisper/model.pte").transcribe("talk.wav", language="en").text
        """
        if rate is not None:
            content = _samples(sound, _int(rate, 32, "rate"))
        else:
            content = c_file(sound, "sound")
        options = Transcription(
            language=c_text(language, "language"),
            prompt=c_text(prompt, "prompt"),
            temperature=temperature,
            threshold=threshold,
            seed=seed,
            translate=int(translate),
            times=int(times),
            fallback=int(fallback),
            max_tokens=_int(max_tokens, 32, "max_tokens"),
        )
        text = ctypes.c_void_p()
        block: Bytes = c_block(content)
        call("etrun_transcribe", self.handle, byref(block), byref(options), byref(text))
        found = json.loads(owned_text(text))
        return Transcript(
            found["text"],
            found.get("language", ""),
            found["duration"],
            [Segment(**s) for s in found["segments"]],
            [Word(**w) for w in found["words"]],
            found["tokens"],
            found.get("probabilities", []),
        )


def load_speech(data: Source, files: Optional[Path] = None, *, instances: int = 1, **options: Unpack[Options]) -> Speech:
    """Opens a model of speech. Without files its files are those in the folder of the program, if that is a path.

    >>> for s in etrun.load_speech("model.pte").transcribe("talk.wav", times=True).segments:
    ...     print(s.start, s.text)
    """
    if files is None and isinstance(data, (str, os.PathLike)):
        files = os.path.dirname(os.path.abspath(data))
    return Speech(Program(data, **options), files, instances=instances)
