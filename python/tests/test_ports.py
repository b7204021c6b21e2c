"""Scripts that were written for executorch.runtime and onnxruntime, of which only the import changes."""

from __future__ import annotations

import copy
import io
import os
import pathlib
import pickle
import subprocess
import sys
import tempfile
import unittest
import warnings
from typing import Any, Callable

import numpy as np

import etrun

DATA = pathlib.Path(__file__).parents[2] / "testdata"
DIGITS = DATA / "digits" / "xnnpack.pte"
IMAGE = np.fromfile(DATA / "digits" / "images.f32.bin", np.float32)[:64].reshape(1, 1, 8, 8)
INFO = "TensorInfo(sizes=[1, 1, 8, 8], dtype=Float, is_memory_planned=True, nbytes=256)"
SCORES = "TensorInfo(sizes=[1, 10], dtype=Float, is_memory_planned=True, nbytes=40)"


class Foreign:
    """A tensor of another library, with DLPack."""

    def __dlpack__(self, **options: Any) -> Any:
        return IMAGE.__dlpack__(**options)

    def __dlpack_device__(self) -> Any:
        return IMAGE.__dlpack_device__()


class ExecuTorchTest(unittest.TestCase):
    def steps(self, cases: list[tuple[Callable[[], Any], Any]]) -> None:
        """Runs steps: each has a result, or raises an exception of exactly such a class."""
        for i, (step, want) in enumerate(cases):
            with self.subTest(step=i):
                if isinstance(want, type) and issubclass(want, BaseException):
                    self.assertRaises(want, step)
                elif callable(want):
                    self.assertTrue(want(step()), step())
                else:
                    self.assertEqual(step(), want)

    def test_steps(self) -> None:
        from etrun import BackendRegistry, Method, MethodMeta, OperatorRegistry, Program, Runtime, Verification

        runtime = Runtime.get()
        program = runtime.load_program(DIGITS)
        method = program.load_method("forward")
        want = np.asarray(method.execute((IMAGE,))[0])
        same = lambda outputs: isinstance(outputs, list) and np.array_equal(np.asarray(outputs[0]), want)  # noqa: E731
        loads = lambda p: same(p.load_method("forward").execute([IMAGE]))  # noqa: E731
        meta = method.metadata
        content = DIGITS.read_bytes()
        self.steps(
            [
                (lambda: Runtime.get() is runtime, True),
                (lambda: isinstance(program, Program) and isinstance(method, Method), True),
                (lambda: isinstance(runtime.backend_registry, BackendRegistry), True),
                (lambda: isinstance(runtime.operator_registry, OperatorRegistry), True),
                (lambda: runtime.load_program(str(DIGITS)), loads),
                (lambda: runtime.load_program(pathlib.Path(DIGITS), verification=Verification.Minimal), loads),
                (lambda: runtime.load_program(content, verification=Verification.InternalConsistency), loads),
                (lambda: runtime.load_program(bytearray(content)), loads),
                (lambda: runtime.load_program(io.BytesIO(content)), loads),
                (lambda: runtime.load_program(content, enable_etdump=True, debug_buffer_size=1 << 20), loads),
                (lambda: runtime.load_program(42), TypeError),
                (lambda: runtime.load_program(content, verification=None), TypeError),
                (lambda: runtime.load_program(content, debug_buffer_size=-1), TypeError),
                (lambda: runtime.load_program("/no/such.pte"), RuntimeError),
                (lambda: runtime.load_program(b"no program"), RuntimeError),
                (lambda: runtime.load_program(content, data_path="/no/such.ptd"), RuntimeError),
                (lambda: (int(Verification.Minimal), Verification.InternalConsistency.name), (0, "InternalConsistency")),
                (lambda: program.method_names, {"forward"}),
                (lambda: program.load_method("forward") is method, True),
                (lambda: program.load_method("absent"), KeyError),
                (lambda: program.metadata("absent"), RuntimeError),
                (lambda: method.execute([IMAGE]), same),
                (lambda: method.execute(IMAGE), same),
                (lambda: method.execute([Foreign()]), same),
                (lambda: method.execute([]), RuntimeError),
                (lambda: method.execute([IMAGE, IMAGE]), RuntimeError),
                (lambda: method.execute([None]), RuntimeError),
                (lambda: method.execute([IMAGE.astype(np.float64)]), RuntimeError),
                (lambda: method.execute([IMAGE.ravel()]), RuntimeError),
                (lambda: method.execute([[IMAGE]]), RuntimeError),
                (lambda: method.execute(["image"]), RuntimeError),
                (lambda: method.execute(7), TypeError),
                (lambda: isinstance(meta, MethodMeta) and str(program.metadata("forward")) == str(meta), True),
                (lambda: (meta.name(), meta.num_inputs(), meta.num_outputs(), meta.num_attributes()), ("forward", 1, 1, 0)),
                (lambda: meta.input_tensor_meta(0).sizes(), (1, 1, 8, 8)),
                (lambda: (meta.input_tensor_meta(0).dtype(), str(meta.input_tensor_meta(0).dtype())), (6, "6")),
                (lambda: (meta.output_tensor_meta(0).nbytes(), meta.output_tensor_meta(0).is_memory_planned()), (40, True)),
                (lambda: (repr(meta.input_tensor_meta(0)), str(meta.output_tensor_meta(0))), (INFO, SCORES)),
                (
                    lambda: repr(meta),
                    f"MethodMeta(name='forward', num_inputs=1, input_tensor_meta=['{INFO}'], num_outputs=1, output_tensor_meta=['{SCORES}'])",
                ),
                (lambda: meta.input_tensor_meta(1), IndexError),
                (lambda: meta.input_tensor_meta(-1), TypeError),
                (lambda: meta.output_tensor_meta(9), IndexError),
                (lambda: meta.attribute_tensor_meta(0), IndexError),
                (lambda: program.write_etdump_result_to_file("/tmp/none", "/tmp/none"), RuntimeError),
                (lambda: runtime.backend_registry.is_available("XnnpackBackend"), True),
                (lambda: runtime.backend_registry.is_available("CoreMLBackend"), False),
                (lambda: runtime.backend_registry.is_available(1), TypeError),
                (lambda: "XnnpackBackend" in runtime.backend_registry.registered_backend_names, True),
                (lambda: {"aten::add.out", "aten::convolution.out"} <= runtime.operator_registry.operator_names, True),
            ]
        )

    def test_portable_lib(self) -> None:
        module = etrun.portable_lib._load_for_executorch(str(DIGITS))
        want = np.asarray(module.forward((IMAGE,))[0])
        program = etrun._load_program_from_buffer(DIGITS.read_bytes())
        method = program.load_method("forward")
        method.set_inputs([IMAGE])
        method.execute()
        same = lambda outputs: np.array_equal(np.asarray(outputs[0]), want)  # noqa: E731
        self.steps(
            [
                (lambda: module(IMAGE), same),
                (lambda: module.run_method("forward", [IMAGE]), same),
                (lambda: module.plan_execute("forward"), same),
                (lambda: module.method_names(), ["forward"]),
                (lambda: module.method_meta("forward").num_inputs(), 1),
                (lambda: module.has_etdump(), False),
                (lambda: module.run_method("absent", [IMAGE]), RuntimeError),
                (lambda: module.write_etdump_result_to_file("/tmp/none"), RuntimeError),
                (lambda: etrun._load_for_executorch_from_buffer(DIGITS.read_bytes()).forward([IMAGE]), same),
                (lambda: (program.num_methods(), program.get_method_name(0)), (1, "forward")),
                (lambda: program.get_method_name(1), RuntimeError),
                (lambda: program.load_method("absent"), RuntimeError),
                (lambda: method.get_outputs(), same),
                (lambda: method([IMAGE]), same),
                (lambda: method.call(IMAGE), same),
                (lambda: method.method_meta().name(), "forward"),
                (lambda: etrun._is_available("XnnpackBackend"), True),
                (lambda: "aten::add.out" in etrun._get_operator_names(), True),
            ]
        )

    def test_etdump(self) -> None:
        for data in (DIGITS, DIGITS.read_bytes()):
            program = etrun.Runtime.get().load_program(data, enable_etdump=True, debug_buffer_size=10_000_000)
            program.load_method("forward").execute([IMAGE])
            with tempfile.TemporaryDirectory() as folder:
                dump, values = os.path.join(folder, "a.etdp"), os.path.join(folder, "a.bin")
                program.write_etdump_result_to_file(dump, values)
                content = pathlib.Path(dump).read_bytes()
                self.assertEqual(content[8:12], b"ED00")
                self.assertIn(b"Method::execute", content)
                self.assertIn(np.asarray(program.load_method().execute([IMAGE])[0]).tobytes(), pathlib.Path(values).read_bytes())
                with self.assertRaises(OSError):
                    program.write_etdump_result_to_file(folder, values)
        few = etrun.Runtime.get().load_program(DIGITS, enable_etdump=True)
        few.load_method().execute([IMAGE])
        with tempfile.TemporaryDirectory() as folder:
            few.write_etdump_result_to_file(os.path.join(folder, "a"), os.path.join(folder, "b"))
            self.assertEqual(os.listdir(folder), ["a"])

    def test_data_path(self) -> None:
        files = DATA / "pte"
        results = []
        for data_path in (files / "external_weights.ptd", str(files / "external_weights.ptd")):
            method = etrun.Runtime.get().load_program(files / "external_weights.pte", data_path=data_path).load_method("forward")
            x = np.ones(method.metadata.input_tensor_meta(0).sizes(), np.float32)
            results.append(np.asarray(method.execute([x])[0]))
        np.testing.assert_array_equal(*results)

    def test_attributes(self) -> None:
        meta = etrun.Runtime.get().load_program(DATA / "pte" / "external_weights.pte", data_path=DATA / "pte" / "external_weights.ptd").metadata()
        self.assertEqual(meta.num_attributes(), len(meta.attributes))
        self.assertTrue(all(a.name for a in meta.attributes) and meta.attributes)
        self.assertEqual(meta.attribute_tensor_meta(0).sizes(), meta.attributes[0].sizes())
        numbers = etrun.Runtime.get().load_program(DATA / "pte" / "scalar_inputs.pte").metadata()
        with self.assertRaisesRegex(IndexError, "input 1 is int64 scalar, not a tensor"):
            numbers.input_tensor_meta(1)
        self.assertIn("'Int', 'Double', 'Bool'", repr(numbers))

    def test_copies_are_refused(self) -> None:
        program = etrun.Runtime.get().load_program(DIGITS)
        for value in (program, program.load_method()):
            for function in (pickle.dumps, copy.copy, copy.deepcopy):
                with self.subTest(value=value, function=function), self.assertRaisesRegex(TypeError, "cannot be pickled or copied"):
                    function(value)
        self.assertEqual(str(pickle.loads(pickle.dumps(program.metadata()))), str(program.metadata()))

    def test_instances(self) -> None:
        program = etrun.Runtime.get().load_program(DIGITS)
        kept = program.load_method()
        self.assertIsNot(program.new_method(), kept)
        kept.close()
        self.assertIsNot(program.load_method(), kept)
        self.assertEqual(len(program.load_method().execute([IMAGE])), 1)

    def test_errno(self) -> None:
        for load in (lambda p: etrun.load(p), lambda p: etrun.Runtime.get().load_program(p), etrun.InferenceSession):
            with self.assertRaises(FileNotFoundError) as caught:
                load("/no/such.pte")
            self.assertEqual((caught.exception.errno, caught.exception.filename), (2, "/no/such.pte"))
            self.assertIsInstance(caught.exception, etrun.FileError)


class OnnxruntimeTest(unittest.TestCase):
    def test_script(self) -> None:
        import etrun as ort

        options = ort.SessionOptions()
        options.intra_op_num_threads = 1
        options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_ALL
        session = ort.InferenceSession(str(DIGITS), sess_options=options, providers=["CPUExecutionProvider"])
        (x,), (y,) = session.get_inputs(), session.get_outputs()
        self.assertEqual((x.name, x.type, x.shape), ("input_0", "tensor(float)", [1, 1, 8, 8]))
        self.assertEqual((y.name, y.type, y.shape), ("output_0", "tensor(float)", [1, 10]))
        (scores,) = session.run(None, {x.name: IMAGE})
        self.assertIsInstance(scores, np.ndarray)
        np.testing.assert_array_equal(scores, etrun.load(DIGITS)(IMAGE))
        np.testing.assert_array_equal(session.run([y.name], {x.name: IMAGE})[0], scores)
        self.assertIn("CPUExecutionProvider", session.get_providers())
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            ort.InferenceSession(DIGITS.read_bytes(), providers=[("CUDAExecutionProvider", {}), "CPUExecutionProvider"])
        self.assertIn("CUDAExecutionProvider", str(caught[0].message))

    def test_mistakes(self) -> None:
        session = etrun.InferenceSession(DIGITS)
        cases: list[tuple[type[BaseException], str, Any, Any]] = [
            (ValueError, r"Required inputs \(\['input_0'\]\) are missing from input feed \(\['x'\]\)", None, {"x": IMAGE}),
            (ValueError, "Invalid input name: y", None, {"input_0": IMAGE, "y": IMAGE}),
            (ValueError, "Invalid output name: z", ["z"], {"input_0": IMAGE}),
            (ValueError, "Got invalid dimensions for input: input_0.*index: 2 Got: 7 Expected: 8", None, {"input_0": IMAGE[:, :, 1:]}),
            (ValueError, "Invalid rank for input: input_0 Got: 1 Expected: 4", None, {"input_0": IMAGE.ravel()}),
            (ValueError, r"Actual: \(tensor\(double\)\), expected: \(tensor\(float\)\)", None, {"input_0": IMAGE.astype(np.float64)}),
            (TypeError, "input_feed: got list, want a dict", None, [IMAGE]),
            (TypeError, "input 0: got list", None, {"input_0": IMAGE.tolist()}),
        ]
        for error, text, names, feed in cases:
            with self.subTest(text), self.assertRaisesRegex(error, text):
                session.run(names, feed)
        for data, error in (("/no/such.pte", FileNotFoundError), (b"no program", etrun.ModelError)):
            self.assertRaises(error, etrun.InferenceSession, data)

    def test_fixed_inputs(self) -> None:
        session = etrun.InferenceSession(DATA / "pte" / "scalar_inputs.pte")
        first = session.get_inputs()[0]
        feed = {first.name: np.ones(first.shape, np.float32)}
        whole = {a.name: v for a, v in zip(session.get_inputs()[1:4], (3, 0.5, True))}
        for left, right in zip(session.run(None, feed), session.run(None, {**feed, **whole})):
            np.testing.assert_array_equal(left, right)


# What the package uses of PyTorch, for machines without it.
TORCH = '''
import sys, types
import numpy as np
class Dtype(str):
    pass
class Tensor:
    def __init__(self, array, kind="float32", device="cpu"):
        self.array, self.dtype, self.layout = array, Dtype("torch." + kind), "torch.strided"
        self.device, self.requires_grad = types.SimpleNamespace(type=device), True
    shape = property(lambda self: self.array.shape)
    numel = lambda self: self.array.size
    data_ptr = lambda self: self.array.ctypes.data
    detach = resolve_conj = resolve_neg = lambda self: self
    contiguous = lambda self: Tensor(np.ascontiguousarray(self.array), self.dtype.partition(".")[2])
    numpy = lambda self: self.array
    __dlpack__ = None
def empty(shape, dtype):
    return Tensor(np.empty(shape, {"bfloat16": "uint16"}.get(dtype, dtype)), dtype)
torch = types.SimpleNamespace(float32="float32", bfloat16="bfloat16", empty=empty, __spec__=None)
from_numpy = Tensor
'''
WITH_TORCH = '''
import etrun
x = np.fromfile(sys.argv[2], np.float32)[:64].reshape(1, 1, 8, 8)
image = from_numpy(x)
method = etrun.Runtime.get().load_program(sys.argv[1]).load_method("forward")
want = etrun.load(sys.argv[1])(x)
assert isinstance(want, np.ndarray), type(want)
for inputs in ((image,), [image], image, [x], (from_numpy(np.asfortranarray(x)),)):
    (scores,) = method.execute(inputs)
    assert type(scores) is type(image), type(scores)
    assert np.array_equal(scores.numpy(), want)
first = method.execute((image,))[0]
method.execute((from_numpy(-x),))
assert np.array_equal(first.numpy(), want), "a later run changed an output"
assert np.array_equal(etrun.load(sys.argv[1])(image), want)
print("torch")
'''


class TorchTest(unittest.TestCase):
    def test_tensors(self) -> None:
        """Runs a script with PyTorch, or what stands for it where it is not installed."""
        try:
            import torch  # noqa: F401  # pyright: ignore[reportMissingImports]

            begin = "import sys, torch\nimport numpy as np\nfrom torch import from_numpy\n"
        except ImportError:
            begin = TORCH + "sys.modules['torch'] = torch\n"
        for script in (begin, TORCH + "sys.modules['torch'] = torch\n"):
            arguments = [sys.executable, "-c", script + WITH_TORCH, str(DIGITS), str(DATA / "digits" / "images.f32.bin")]
            done = subprocess.run(arguments, capture_output=True, text=True, check=False)
            self.assertEqual(done.stdout, "torch\n", done.stderr)


if __name__ == "__main__":
    unittest.main()
