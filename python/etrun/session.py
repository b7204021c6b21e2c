"""InferenceSession: programs with the names of onnxruntime."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, Mapping, Optional, Sequence, Union

from .dtypes import Array, DType
from .errors import InputError
from .runtime import Kind, Method, Path, Program, TensorInfo

__all__ = [
    "ExecutionMode",
    "GraphOptimizationLevel",
    "InferenceSession",
    "NodeArg",
    "RunOptions",
    "SessionOptions",
    "get_available_providers",
    "get_device",
]


class GraphOptimizationLevel(IntEnum):
    """Optimizations at load: off, or those of the option lowering."""

    ORT_DISABLE_ALL = 0
    ORT_ENABLE_BASIC = 1
    ORT_ENABLE_EXTENDED = 2
    ORT_ENABLE_ALL = 99


class ExecutionMode(IntEnum):
    """For programs written for onnxruntime: without effect."""

    ORT_SEQUENTIAL = 0
    ORT_PARALLEL = 1


@dataclass
class SessionOptions:
    """Options of a session. Threads and the level have an effect; others may be set."""

    intra_op_num_threads: int = 0
    inter_op_num_threads: int = 0
    graph_optimization_level: GraphOptimizationLevel = GraphOptimizationLevel.ORT_ENABLE_ALL
    execution_mode: ExecutionMode = ExecutionMode.ORT_SEQUENTIAL
    log_severity_level: int = -1
    enable_mem_pattern: bool = True
    enable_cpu_mem_arena: bool = True

    def add_session_config_entry(self, key: str, value: str) -> None:
        """For programs written for onnxruntime: without effect."""


@dataclass
class RunOptions:
    """For programs written for onnxruntime: without effect."""

    log_severity_level: int = -1
    logid: str = ""


_PROVIDERS = ("XnnpackExecutionProvider", "CPUExecutionProvider")


def get_available_providers() -> list[str]:
    """The names of the providers that have an effect: all mean this library."""
    return list(_PROVIDERS)


def get_device() -> str:
    """The device."""
    return "CPU"


_TYPES = {DType.FLOAT32: "float", DType.FLOAT64: "double"}


@dataclass(frozen=True)
class NodeArg:
    """An input or output: its name in the file, else input_0, output_0 and so on; a type such as
    tensor(float); and its shape, whose sizes are upper bounds if they vary."""

    name: str
    type: str
    shape: list[int]

    @classmethod
    def list_of(cls, infos: Sequence[TensorInfo], what: str) -> list[NodeArg]:
        """Describes inputs or outputs."""
        found: list[NodeArg] = []
        for i, info in enumerate(infos):
            dtype, taken = info.dtype(), {a.name for a in found}
            name = info.name if info.name and info.name not in taken else f"{what}_{i}"
            kind = "string" if info.kind == Kind.STRING else "none" if dtype is None else _TYPES.get(dtype, dtype.name.lower())
            found.append(cls(name, f"tensor({kind})", list(info.sizes())))
        return found


class InferenceSession:
    """A program with the calls of onnxruntime.InferenceSession. Threads may share it."""

    def __init__(
        self,
        path_or_bytes: Union[Path, bytes],
        sess_options: Optional[SessionOptions] = None,
        providers: Optional[Sequence[Any]] = None,
        provider_options: Optional[Sequence[Any]] = None,
        *,
        data_files: Any = (),
        **kwargs: Any,
    ) -> None:
        """Opens the method forward, or the only one. Providers other than those of get_available_providers
        are a warning. data_files are those of etrun.load."""
        if kwargs:
            raise TypeError(f"no argument {min(kwargs)!r}")
        for provider in providers or ():
            name = provider[0] if isinstance(provider, tuple) else provider
            if name not in _PROVIDERS:
                warnings.warn(f"the provider {name!r} is not available, which are {', '.join(_PROVIDERS)}", stacklevel=2)
        o = sess_options or SessionOptions()
        lowering = "off" if o.graph_optimization_level == GraphOptimizationLevel.ORT_DISABLE_ALL else "auto"
        with Program(path_or_bytes, threads=o.intra_op_num_threads, lowering=lowering, data_files=data_files) as program:
            names = program.method_names
            self._method: Method = program.new_method(names.pop() if len(names) == 1 else "forward")
        self._options = o
        meta = self._method.metadata
        self._inputs = NodeArg.list_of(meta.inputs, "input")
        self._outputs = NodeArg.list_of(meta.outputs, "output")
        self._fixed = [info.value for info in meta.inputs]

    def get_inputs(self) -> list[NodeArg]:
        """The inputs."""
        return list(self._inputs)

    def get_outputs(self) -> list[NodeArg]:
        """The outputs."""
        return list(self._outputs)

    def get_providers(self) -> list[str]:
        """The names of the providers."""
        return get_available_providers()

    def get_session_options(self) -> SessionOptions:
        """The options."""
        return self._options

    def run(
        self, output_names: Optional[Sequence[str]], input_feed: Mapping[str, Any], run_options: Optional[RunOptions] = None
    ) -> list[Array]:
        """Runs the program. input_feed has a value for each name; numbers and bools that the exporter fixed
        may be left out. Returns the outputs named, all for None."""
        if not hasattr(input_feed, "keys"):
            raise TypeError(f"input_feed: got {type(input_feed).__name__}, want a dict of names and values")
        names = [a.name for a in self._inputs]
        missing = [n for n, value in zip(names, self._fixed) if n not in input_feed and value is None]
        if missing:
            raise InputError(f"Required inputs ({missing}) are missing from input feed ({list(input_feed)})")
        for name in input_feed:
            if name not in names:
                raise InputError(f"Invalid input name: {name}; the inputs are {names}")
        values = [input_feed.get(a.name, value) for a, value in zip(self._inputs, self._fixed)]
        for a, value in zip(self._inputs, values):
            self._check(a, value)
        wanted = [self._index(name) for name in output_names or ()]
        outputs = self._method.execute(values)
        return [outputs[i] for i in wanted] if output_names else outputs

    def _check(self, a: NodeArg, value: Any) -> None:
        """Names the input whose array has another type or rank, in the words of onnxruntime."""
        kind = getattr(getattr(value, "dtype", None), "name", None)
        if kind is None or a.type == "tensor(none)" or kind.upper() not in DType.__members__:
            return
        got = f"tensor({_TYPES.get(DType[kind.upper()], kind)})"
        want = self._method.metadata.inputs[self._inputs.index(a)]
        dtype = want.dtype()
        if dtype is not None and got != a.type and (dtype.bits is None or dtype.bits.name.lower() != kind):
            raise InputError(f"Unexpected input data type for input: {a.name} Actual: ({got}), expected: ({a.type})")
        got_shape, want_shape = list(value.shape), a.shape
        if len(got_shape) != len(want_shape):
            raise InputError(f"Invalid rank for input: {a.name} Got: {len(got_shape)} Expected: {len(want_shape)}, shape {want_shape}")
        wrong = [f"index: {d} Got: {g} Expected: {w}" for d, (g, w) in enumerate(zip(got_shape, want_shape)) if g != w]
        if wrong and not want.dynamic:
            raise InputError(f"Got invalid dimensions for input: {a.name} for the following indices: {'; '.join(wrong)}")

    def _index(self, name: str) -> int:
        names = [a.name for a in self._outputs]
        if name not in names:
            raise InputError(f"Invalid output name: {name}; the outputs are {names}")
        return names.index(name)
