"""Text of language models, and vectors of texts."""

from __future__ import annotations

import ctypes
import json
import os
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, Iterator, Mapping, Optional, Sequence, TypedDict, Union

from . import dtypes
from ._library import Bytes, Closable, EmbedderOptions, Handle, Medium, Sampling, TextOptions, byref, c_block, c_content, c_file
from ._library import Piece as CPiece
from ._library import c_list, c_path, c_text, call, items
from .dtypes import Array, DType
from .errors import FileError, InputError, file_error
from .runtime import Content, Options, Program, Source, _int

if TYPE_CHECKING:
    from typing_extensions import Unpack

__all__ = ["Embedder", "Generation", "Piece", "TextModel", "load_embedder", "load_text"]

_TOGETHER = 32  # texts that decode together, the default of the library
_FINISHES = {0: None, 1: "stop", 2: "length", 3: "context"}


class Generation(TypedDict, total=False):
    """Options of one text, which are keyword arguments. By default the most likely token is chosen.

    stop has strings before which the text ends. schema is a JSON schema, as a dict or text ({} is any
    JSON), grammar a GBNF grammar and pattern a regular expression: the text has that form; at most one.
    """

    max_tokens: int
    temperature: float
    top_k: int
    top_p: float
    min_p: float
    seed: int
    repetition_penalty: float
    penalty_window: int
    presence_penalty: float
    frequency_penalty: float
    stop: Union[str, Sequence[str]]
    ignore_eos: bool
    lookup: int
    log_probs: bool
    schema: Union[str, Mapping[str, Any]]
    grammar: str
    pattern: str


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


def _open(function: str, program: Program, options: Any, tokenizer: Optional[Content], *results: Any) -> int:
    """Calls a function that opens a handle with a tokenizer, and returns the handle."""
    number, content = ctypes.c_uint64(), b""
    paths = [tokenizer] if isinstance(tokenizer, (str, os.PathLike)) else []
    if paths:
        options.tokenizer = c_path(paths[0], "tokenizer")
    elif tokenizer is not None:
        content = c_content(tokenizer, "tokenizer")
        options.tokenizer_data = c_block(content)
    try:
        call(function, program.handle, byref(options), byref(number), *results)
    except FileError as e:
        raise file_error(e, paths) from None
    del content
    return number.value


class TextModel(Closable):
    """A language model and one text, whose computed tokens are kept for the next prompt.

    One text is generated at a time: a new one ends the one before. session opens further texts.
    """

    def __init__(
        self,
        program: Program,
        tokenizer: Optional[Content] = None,
        *,
        method: Optional[str] = None,
        chat_template: Optional[str] = None,
        context: int = 0,
        bos: Optional[int] = None,
        eos: Sequence[int] = (),
        batch: int = 0,
        processor: Optional[Content] = None,
    ) -> None:
        """Opens a text of a program.

        tokenizer is a path or the content of its file; without one only tokens are accepted and
        returned. method is the one from tokens to logits. chat_template is the name of a built-in
        template, one in JSON or Jinja, or the content of a tokenizer_config.json. context is the maximum
        number of tokens, bos the token that begins texts, -1 for none, and eos those that end them; the
        defaults are those of the program. batch is the number of texts that decode together.
        processor is the path or the content of preprocessor_config.json, for models that see.
        """
        config = b"" if processor is None else c_file(processor, "processor")
        options = TextOptions(
            method=c_text(method, "method"),
            chat_template=c_text(chat_template, "chat_template"),
            context=_int(context, 32, "context"),
            has_bos=int(bos is not None),
            bos=_int(bos or 0, 32, "bos"),
            eos=c_list(ctypes.c_int32, [_int(n, 32, "eos") for n in eos]),
            n_eos=len(eos),
            batch=_int(batch, 32, "batch"),
        )
        if processor is not None:
            options.processor = c_block(config)
        self._set(program, _open("etrun_text_open", program, options, tokenizer), method or program._description)

    def _set(self, program: Program, number: int, description: str) -> None:
        self._handle = Handle("etrun_text_close", number)
        self._program = program
        self._lock = threading.Lock()
        self._started = 0
        self._description = description

    def session(self) -> TextModel:
        """Opens a further text of the same model, which begins with what was computed for this one. Texts
        that several threads generate at the same time decode together. The text in progress ends."""
        number = ctypes.c_uint64()
        with self._lock:
            call("etrun_text_fork", self.handle, byref(number))
        fork = TextModel.__new__(TextModel)
        fork._set(self._program, number.value, self._description)
        return fork

    def generate_all(self, prompts: Sequence[Union[str, Sequence[int]]], **options: Unpack[Generation]) -> list[str]:
        """Continues several texts, which decode together, and returns the continuations."""
        free: SimpleQueue[TextModel] = SimpleQueue()
        n = min(len(prompts), _TOGETHER)
        for _ in range(n):
            free.put(self.session())

        def complete(prompt: Union[str, Sequence[int]]) -> str:
            session = free.get()
            try:
                return "".join(map(str, session.generate(prompt, **options)))
            finally:
                free.put(session)

        with ThreadPoolExecutor(max(n, 1)) as threads:
            return list(threads.map(complete, prompts))

    def generate(
        self, prompt: Union[str, Sequence[int]], *, images: Sequence[Content] = (), audio: Sequence[Content] = (), **options: Unpack[Generation]
    ) -> Iterator[Piece]:
        """Continues a text, a string or tokens, and yields the continuation in pieces.

        The prompt is the complete text from its beginning. images and audio are paths or contents of pictures
        and recordings, in the places of <image> and <audio> in it, or before it.
        """
        media = _media(images, audio)
        if isinstance(prompt, str):
            data = prompt.encode()
            return self._start("etrun_text_prompt", media, options, data, len(data))
        tokens = [_int(n, 32, "tokens") for n in prompt]
        return self._start("etrun_text_tokens", media, options, c_list(ctypes.c_int32, tokens), len(tokens))

    def chat(
        self,
        messages: Sequence[Mapping[str, Any]],
        *,
        images: Sequence[Content] = (),
        audio: Sequence[Content] = (),
        tools: Optional[Sequence[Mapping[str, Any]]] = None,
        template_values: Optional[Mapping[str, Any]] = None,
        **options: Unpack[Generation],
    ) -> Iterator[Piece]:
        """Yields the assistant's reply to messages with "role" and "content", and as in OpenAI's API
        "tool_calls", "tool_call_id", "reasoning_content" and "name".

        images and audio are all pictures and recordings of the user's messages, in the places of <image> and
        <audio> in them; those without a place precede the last message.

        tools are definitions of tools, for templates in Jinja that have a place for them; calls in the reply
        are text in the model's own format. template_values are further variables of such a template.
        """
        request: dict[str, Any] = {"messages": list(messages)}
        if tools:
            request["tools"] = list(tools)
        if template_values:
            request["chat_template_kwargs"] = dict(template_values)
        data = json.dumps(request).encode()
        return self._start("etrun_text_conversation", _media(images, audio), options, data, len(data))

    def cancel(self) -> None:
        """Ends the text in progress, from any thread: its iterator raises CancelledError."""
        call("etrun_text_cancel", self.handle)

    def _start(self, function: str, media: list[Medium], options: Generation, *prompt: Any) -> Iterator[Piece]:
        sampling = _sampling(options)
        with self._lock:
            call("etrun_text_media", self.handle, c_list(Medium, media), len(media))
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


_SAMPLING: dict[str, Any] = {f[0]: f[1] for f in Sampling._fields_ if f[0] not in ("n_stop", "reserved")}


def _sampling(options: Generation) -> Sampling:
    """Returns the options of a text as a structure of C."""
    s = Sampling()
    for name, value in options.items():
        if name not in _SAMPLING:
            raise TypeError(f"no option {name!r}, want one of {', '.join(sorted(_SAMPLING))}")
        given: Any = value
        if name == "stop":
            texts = [given] if isinstance(given, str) else list(given)
            s.stop = c_list(ctypes.c_char_p, [c_text(t, "stop") for t in texts])
            s.n_stop = len(texts)
        elif name == "seed":
            s.seed = given & (1 << 64) - 1
        elif _SAMPLING[name] is ctypes.c_char_p:
            setattr(s, name, c_text(json.dumps(given) if name == "schema" and not isinstance(given, str) else given, name))
        else:
            setattr(s, name, _int(int(given), 32, name) if _SAMPLING[name] is ctypes.c_int32 else given)
    return s


def _media(images: Sequence[Content], audio: Sequence[Content]) -> list[Medium]:
    """Returns pictures and recordings as structures of C."""
    media: list[Medium] = []
    for kind, what, files in ((1, "images", images), (2, "audio", audio)):
        for file in items(files, what):
            medium = Medium(kind=kind)
            medium.content = c_file(file, what)
            medium.file = c_block(medium.content)
            media.append(medium)
    return media


def load_text(
    data: Source,
    tokenizer: Optional[Content] = None,
    *,
    method: Optional[str] = None,
    chat_template: Optional[str] = None,
    context: int = 0,
    bos: Optional[int] = None,
    eos: Sequence[int] = (),
    batch: int = 0,
    processor: Optional[Content] = None,
    **options: Unpack[Options],
) -> TextModel:
    """Opens a language model. The arguments are those of TextModel, options are those of Options.

    >>> model = etrun.load_text("model.pte", "tokenizer.json")
    >>> for piece in model.generate("Once upon a time", max_tokens=100):
    ...     print(piece, end="", flush=True)
    """
    program = Program(data, **options)
    return TextModel(
        program, tokenizer, method=method, chat_template=chat_template, context=context, bos=bos, eos=eos, batch=batch, processor=processor
    )


class Embedder(Closable):
    """A model that computes vectors of texts, such as BERT. Threads may share it."""

    def __init__(
        self,
        program: Program,
        tokenizer: Content,
        *,
        method: Optional[str] = None,
        pooling: Optional[str] = None,
        normalize: bool = False,
        context: int = 0,
        prompt: Optional[str] = None,
    ) -> None:
        """Opens an encoder. pooling is "mean", "cls" or "last" for a program with a vector of each token.
        normalize divides vectors by their length, prompt precedes each text."""
        options = EmbedderOptions(
            method=c_text(method, "method"),
            pooling=c_text(pooling, "pooling"),
            prompt=c_text(prompt, "prompt"),
            context=_int(context, 32, "context"),
            normalize=int(normalize),
        )
        length = ctypes.c_size_t()
        self._handle = Handle("etrun_embedder_close", _open("etrun_embedder_open", program, options, tokenizer, byref(length)))
        self._program = program
        self.dimensions = length.value
        self._description = method or program._description

    def embed(self, texts: Union[str, Sequence[str]]) -> Array:
        """Returns the vectors of texts, an array of float32 with a row for each; of one text its vector."""
        items = [texts.encode()] if isinstance(texts, str) else [t.encode() for t in texts]
        blocks = c_list(Bytes, list(map(c_block, items)))
        shape = (self.dimensions,) if isinstance(texts, str) else (len(items), self.dimensions)
        array, address = dtypes.allocator(DType.FLOAT32, False)(shape)
        call("etrun_embed", self.handle, blocks, len(items), address, len(items) * self.dimensions * 4)
        return array


def load_embedder(
    data: Source,
    tokenizer: Content,
    *,
    method: Optional[str] = None,
    pooling: Optional[str] = None,
    normalize: bool = False,
    context: int = 0,
    prompt: Optional[str] = None,
    **options: Unpack[Options],
) -> Embedder:
    """Opens a model that computes vectors of texts. The arguments are those of Embedder, options are those of Options.

    >>> vectors = etrun.load_embedder("model.pte", "tokenizer.json", pooling="mean").embed(["one", "two"])
    """
    program = Program(data, **options)
    return Embedder(program, tokenizer, method=method, pooling=pooling, normalize=normalize, context=context, prompt=prompt)
