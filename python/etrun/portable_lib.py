"""The names of executorch.extension.pybindings.portable_lib, for scripts written for it."""

from __future__ import annotations

from typing import Any, Optional, Sequence, Union

from .runtime import Method, MethodMeta, OperatorRegistry, Path, Program, Runtime, TensorInfo, Verification, _sequence

__all__ = [
    "ExecuTorchMethod",
    "ExecuTorchModule",
    "ExecuTorchProgram",
    "MethodMeta",
    "TensorInfo",
    "Verification",
    "_get_operator_names",
    "_get_registered_backend_names",
    "_is_available",
    "_load_for_executorch",
    "_load_for_executorch_from_buffer",
    "_load_program",
    "_load_program_from_buffer",
]


class ExecuTorchMethod:
    """A loaded method: set_inputs, execute and get_outputs, or a call for all three."""

    def __init__(self, method: Method) -> None:
        self._method = method
        self._inputs: Optional[Sequence[Any]] = None
        self._outputs: list[Any] = []

    def set_inputs(self, inputs: Sequence[Any]) -> None:
        """Sets the inputs of the next execute."""
        self._inputs = inputs

    def execute(self) -> None:
        """Runs the method."""
        self._outputs = self._method.execute(self._inputs)

    def get_outputs(self, clone_outputs: bool = True) -> list[Any]:
        """The outputs of the last run, which are always copies."""
        return self._outputs

    def call(self, inputs: Any = (), clone_outputs: bool = True) -> list[Any]:
        """Runs the method with a sequence of inputs, or one tensor."""
        return self._method.execute(_sequence(inputs))

    __call__ = call

    def method_meta(self) -> MethodMeta:
        """The declaration of the method."""
        return self._method.metadata


class _Described:
    """What a program and a module have in common."""

    def __init__(self, program: Program, etdump: bool) -> None:
        self._program = program
        self._etdump = etdump

    def method_meta(self, method_name: str) -> MethodMeta:
        """The declaration of a method."""
        return self._program.metadata(method_name)

    def has_etdump(self) -> bool:
        """Whether the events of runs are recorded."""
        return self._etdump

    def write_etdump_result_to_file(self, path: Path, debug_buffer_path: Optional[Path] = None) -> None:
        """Writes an ETDump: see Program.write_etdump_result_to_file."""
        self._program.write_etdump_result_to_file(path, debug_buffer_path)


class ExecuTorchProgram(_Described):
    """An open program. Each load_method returns a new instance."""

    def num_methods(self) -> int:
        """The number of methods."""
        return len(self._program.method_names)

    def get_method_name(self, method_index: int) -> str:
        """The name of a method."""
        names = list(self._program._methods)
        if not 0 <= method_index < len(names):
            raise RuntimeError(f"method {method_index}, the program has {len(names)}")
        return names[method_index]

    def load_method(self, method_name: str) -> ExecuTorchMethod:
        """Loads a method."""
        return ExecuTorchMethod(self._program.new_method(method_name))


class ExecuTorchModule(_Described):
    """A program whose methods are loaded when they are called. Each keeps its state."""

    def forward(self, inputs: Any = (), clone_outputs: bool = True) -> list[Any]:
        """Runs the method forward with a sequence of inputs, or one tensor."""
        return self.run_method("forward", inputs)

    __call__ = forward

    def run_method(self, method_name: str, inputs: Any = (), clone_outputs: bool = True) -> list[Any]:
        """Runs a method with a sequence of inputs, or one tensor."""
        return self._program.load_method(method_name).execute(_sequence(inputs))

    def plan_execute(self, method_name: str, clone_outputs: bool = True) -> list[Any]:
        """Runs a method with the inputs of its last run."""
        return self._program.load_method(method_name).execute()

    def method_names(self) -> list[str]:
        """The names of the methods."""
        return sorted(self._program.method_names)


def _open(data: Any, data_path: Any, etdump: bool, debug_buffer_size: int, verification: Verification) -> tuple[Program, bool]:
    data_files = () if data_path is None else data_path
    runtime = Runtime.get()
    program = runtime.load_program(
        data, verification=verification, enable_etdump=etdump, debug_buffer_size=debug_buffer_size, data_files=data_files
    )
    return program, etdump


def _load_for_executorch(
    program_path: Path,
    data_path: Optional[Path] = None,
    enable_etdump: bool = False,
    debug_buffer_size: int = 0,
    program_verification: Verification = Verification.InternalConsistency,
) -> ExecuTorchModule:
    """Opens a file."""
    return ExecuTorchModule(*_open(program_path, data_path, enable_etdump, debug_buffer_size, program_verification))


def _load_for_executorch_from_buffer(
    buffer: bytes,
    data_map_buffer: Optional[bytes] = None,
    enable_etdump: bool = False,
    debug_buffer_size: int = 0,
    program_verification: Verification = Verification.InternalConsistency,
) -> ExecuTorchModule:
    """Opens the content of a file, with the content of a file of external weights."""
    return ExecuTorchModule(*_open(buffer, data_map_buffer, enable_etdump, debug_buffer_size, program_verification))


def _load_program(
    path: Union[Path, bytes],
    enable_etdump: bool = False,
    debug_buffer_size: int = 0,
    program_verification: Verification = Verification.Minimal,
    data_path: Optional[Path] = None,
) -> ExecuTorchProgram:
    """Opens a file, or the content of one."""
    return ExecuTorchProgram(*_open(path, data_path, enable_etdump, debug_buffer_size, program_verification))


_load_program_from_buffer = _load_program


def _get_operator_names() -> list[str]:
    return sorted(OperatorRegistry().operator_names)


def _get_registered_backend_names() -> list[str]:
    return Runtime.get().backend_registry.registered_backend_names


def _is_available(backend_name: str) -> bool:
    return Runtime.get().backend_registry.is_available(backend_name)
