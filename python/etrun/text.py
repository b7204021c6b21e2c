"""Text of language models."""

from __future__ import annotations

import ctypes
import os
import threading
from dataclasses import dataclass
from typing import Any, Iterator, Mapping, Optional, Sequence, Union

from ._library import Bytes, Closable, Handle, Message, Sampling, byref, c_content, c_list, c_path, c_text, call
from ._library import Piece as CPiece
from ._library import TextOptions
from .errors import InputError
from .runtime import Options, Program, Source, _int

__all__ = ["Piece", "TextModel", "load_text"]

_FINISHES = {0: None, 1: "stop", 2: "length", 3: "context"}


@dataclass(frozen=True)
class Piece:
    """A part of a generated text.

    finish is the reason why the text ended, in the last piece: "stop", "length" (max_tokens) or
    "context" (it is full). The numbers of tokens and the times are those of the last piece.
    """

    text: str
    tokens: list[int]
    log_probs: Optional[list[float]] = None
    finish: Optional[str] = None
    prompt_tokens: int = 0
    reused_tokens: int = 0
    generated_tokens: int = 0
    prefill_seconds: float = 0.0
    decode_seconds: float = 0.0

    @classmethod
    def of(cls, p: CPiece) -> Piece:
        """Copies a piece of the library."""
        text = ctypes.string_at(p.text, p.bytes).decode(errors="replace")
        log_probs = p.log_probs[: p.n_tokens] if p.log_probs else None
        counts = (p.prompt_tokens, p.reused_tokens, p.generated_tokens, p.prefill_seconds, p.decode_seconds)
        return cls(text, p.tokens[: p.n_tokens], log_probs, _FINISHES.get(p.finish), *counts)

    def __str__(self) -> str:
        return self.text


class TextModel(Closable):
    """A language model and one text, whose computed tokens are kept for the next prompt.

    One text is generated at a time: a new one ends the one before.
    """

    def __init__(
        self,
        program: Program,
        tokenizer: Union[str, "os.PathLike[str]", bytes, None] = None,
        *,
        method: Optional[str] = None,
        chat_template: Optional[str] = None,
        context: int = 0,
        bos: Optional[int] = None,
        eos: Sequence[int] = (),
    ) -> None:
        """Opens a text of a program.

        tokenizer is a path or the content of its file; without one only tokens are accepted and
        returned. method is the one from tokens to logits. chat_template is the name of a built-in
        template, or one in JSON. context is the maximum number of tokens, bos the token that begins
        texts, -1 for none, and eos those that end them; the defaults are those of the program.
        """
        options = TextOptions(
            method=c_text(method, "method"),
            chat_template=c_text(chat_template, "chat_template"),
            context=_int(context, 32, "context"),
            has_bos=int(bos is not None),
            bos=_int(bos or 0, 32, "bos"),
            eos=c_list(ctypes.c_int32, [_int(n, 32, "eos") for n in eos]),
            n_eos=len(eos),
        )
        if isinstance(tokenizer, (str, os.PathLike)):
            options.tokenizer = c_path(tokenizer, "tokenizer")
        elif tokenizer is not None:
            content = c_content(tokenizer, "tokenizer")
            options.tokenizer_data = Bytes(ctypes.cast(content, ctypes.c_void_p), len(content))
        number = ctypes.c_uint64()
        call("etrun_text_open", program.handle, byref(options), byref(number))
        self._handle = Handle("etrun_text_close", number.value)
        self._lock = threading.Lock()
        self._started = 0
        self._description = method or program._description

    def generate(self, prompt: Union[str, Sequence[int]], **options: Any) -> Iterator[Piece]:
        """Continues a text, a string or tokens, and yields the continuation in pieces.

        The prompt is the complete text from its beginning. options are max_tokens, temperature, top_k,
        top_p, min_p, seed, repetition_penalty, penalty_window, presence_penalty, frequency_penalty,
        stop (strings), ignore_eos, lookup and log_probs. By default the most likely token is chosen.
        """
        if isinstance(prompt, str):
            data = prompt.encode()
            return self._start("etrun_text_prompt", options, data, len(data))
        tokens = [_int(n, 32, "tokens") for n in prompt]
        return self._start("etrun_text_tokens", options, c_list(ctypes.c_int32, tokens), len(tokens))

    def chat(self, messages: Sequence[Mapping[str, str]], **options: Any) -> Iterator[Piece]:
        """Yields the assistant's reply to messages with "role" and "content". options are those of generate."""
        contents = [m["content"].encode() for m in messages]
        items = [Message(c_text(m["role"], "role"), c, len(c)) for m, c in zip(messages, contents)]
        return self._start("etrun_text_chat", options, c_list(Message, items), len(items))

    def cancel(self) -> None:
        """Ends the text in progress, from any thread: its iterator raises CancelledError."""
        call("etrun_text_cancel", self.handle)

    def _start(self, function: str, options: Mapping[str, Any], *prompt: Any) -> Iterator[Piece]:
        sampling = _sampling(options)
        with self._lock:
            call(function, self.handle, *prompt, byref(sampling))
            self._started += 1
            return self._pieces(self._started)

    def _pieces(self, started: int) -> Iterator[Piece]:
        piece = CPiece()
        while True:
            with self._lock:
                if self._started != started:
                    raise InputError("another text of the same model has been started")
                handle = self._handle  # lives until the end of the call
                call("etrun_text_next", self.handle, byref(piece))
                found = Piece.of(piece)
                del handle
            yield found
            if found.finish is not None:
                return


_SAMPLING = {name: kind for name, kind in Sampling._fields_ if name not in ("stop", "n_stop", "reserved")}


def _sampling(options: Mapping[str, Any]) -> Sampling:
    """Returns the options of a text as a structure of C."""
    s = Sampling()
    for name, value in options.items():
        if name == "stop":
            texts = [value] if isinstance(value, str) else list(value)
            s.stop = c_list(ctypes.c_char_p, [c_text(t, "stop") for t in texts])
            s.n_stop = len(texts)
        elif name == "seed":
            s.seed = value & (1 << 64) - 1
        elif name not in _SAMPLING:
            raise TypeError(f"no option {name!r}, want one of {', '.join(sorted([*_SAMPLING, 'stop']))}")
        else:
            setattr(s, name, _int(int(value), 32, name) if _SAMPLING[name] is ctypes.c_int32 else value)
    return s


def load_text(
    data: Source,
    tokenizer: Union[str, "os.PathLike[str]", bytes, None] = None,
    *,
    method: Optional[str] = None,
    chat_template: Optional[str] = None,
    context: int = 0,
    bos: Optional[int] = None,
    eos: Sequence[int] = (),
    **options: Any,
) -> TextModel:
    """Opens a language model. The arguments are those of TextModel, options are those of Options.

    >>> model = etrun.load_text("model.pte", "tokenizer.json")
    >>> for piece in model.generate("Once upon a time", max_tokens=100):
    ...     print(piece, end="", flush=True)
    """
    with Program(data, Options(**options)) as program:
        return TextModel(program, tokenizer, method=method, chat_template=chat_template, context=context, bos=bos, eos=eos)
