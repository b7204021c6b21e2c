"""Tests of the package: python3 -m unittest discover -s python/tests, with ETRUN_LIBRARY and PYTHONPATH."""

from __future__ import annotations

import array
import ctypes
import io
import json
import subprocess
import sys
import threading
import unittest
from pathlib import Path
from unittest import mock

import numpy as np

import etrun
from etrun import DType, _library, dtypes

DATA = Path(__file__).parents[2] / "testdata"
TEXTS = Path(__file__).parents[2] / "text" / "testdata"
DIGITS = DATA / "digits" / "xnnpack.pte"
IMAGES = np.fromfile(DATA / "digits" / "images.f32.bin", np.float32).reshape(-1, 1, 1, 8, 8)
LABELS = np.fromfile(DATA / "digits" / "labels.u8.bin", np.uint8)


class RuntimeTest(unittest.TestCase):
    def test_names_of_executorch(self) -> None:
        runtime = etrun.Runtime.get()
        self.assertIs(runtime, etrun.Runtime.get())
        self.assertTrue(runtime.backend_registry.is_available("XnnpackBackend"))
        program = runtime.load_program(DIGITS, verification=etrun.Verification.Minimal)
        self.assertEqual(program.method_names, {"forward"})
        method = program.load_method("forward")
        meta = method.metadata
        self.assertEqual((meta.name(), meta.num_inputs(), meta.num_outputs()), ("forward", 1, 1))
        info = meta.input_tensor_meta(0)
        self.assertEqual((info.sizes(), info.dtype(), info.nbytes()), ((1, 1, 8, 8), DType.FLOAT32, 256))
        self.assertEqual(repr(method), "<etrun.Method forward(float32 1x1x8x8) -> float32 1x10>")
        self.assertEqual(repr(program), "<etrun.Program forward>")
        (scores,) = method.execute([IMAGES[0]])
        self.assertEqual(np.asarray(scores).shape, (1, 10))
        self.assertIsInstance(program.warnings, list)

    def test_digits(self) -> None:
        model = etrun.load(str(DIGITS), threads=1)
        right = sum(int(model(image).argmax()) == label for image, label in zip(IMAGES, LABELS))
        self.assertGreater(right / len(LABELS), 0.9)

    def test_sources(self) -> None:
        content = DIGITS.read_bytes()
        want = etrun.load(DIGITS)(IMAGES[0])
        for source in (str(DIGITS), content, bytearray(content), memoryview(content), io.BytesIO(content)):
            np.testing.assert_array_equal(etrun.load(source)(IMAGES[0]), want)
        weights = DATA / "pte" / "external_weights.ptd"
        outputs = []
        for data in (weights, [str(weights)], weights.read_bytes()):
            model = etrun.load(DATA / "pte" / "external_weights.pte", data_files=data)
            info = model.metadata.inputs[0]
            outputs.append(model(np.ones(info.sizes(), np.float32)))
        np.testing.assert_array_equal(outputs[0], outputs[1])
        np.testing.assert_array_equal(outputs[0], outputs[2])

    def test_errors(self) -> None:
        cases = [
            (etrun.FileError, "No such file", lambda: etrun.load("/no/such.pte")),
            (FileNotFoundError, "/no/such.ptd", lambda: etrun.load(DIGITS, data_files="/no/such.ptd")),
            (FileNotFoundError, "/no/such.json", lambda: etrun.load_text(TEXTS / "dynamic.pte", "/no/such.json")),
            (IsADirectoryError, "Is a directory", lambda: etrun.load(DATA)),
            (etrun.ModelError, "", lambda: etrun.load(b"not a program, but long enough to be one")),
            (etrun.ModelError, "", lambda: etrun.load(b"")),
            (etrun.MissingError, "option data_files", lambda: etrun.load(DATA / "pte" / "external_weights.pte")),
            (etrun.MissingError, "option delegates", lambda: etrun.load(DIGITS, delegates=[])),
            (etrun.InputError, "options.lowering", lambda: etrun.load(DIGITS, lowering="fast")),
            (etrun.InputError, "options.delegates", lambda: etrun.load(DIGITS, delegates=["CoreML"])),
            (etrun.InputError, "absent", lambda: etrun.load(DIGITS, "absent")),
            (etrun.MemoryLimitError, "", lambda: etrun.load(DIGITS, max_memory=100)),
            (MemoryError, "", lambda: etrun.load(DIGITS, max_memory=100)),
            (TypeError, "speed", lambda: etrun.load(DIGITS, speed=1)),
            *(
                (TypeError, f"data: got {type(data).__name__}, want a path", lambda data=data: etrun.load(data))
                for data in (3, 10**10, None, True, 1.5, [1])
            ),
            (TypeError, "data: got str, want a path", lambda: etrun.load(io.StringIO("a file in text mode"))),
            (TypeError, "data_files: got int, want a path", lambda: etrun.load(DIGITS, data_files=[10**10])),
            (TypeError, "delegates: got str, want a list", lambda: etrun.load(DIGITS, delegates="XnnpackBackend")),
            (TypeError, "method_name: got int, want str", lambda: etrun.load(DIGITS, 3)),
            (TypeError, "tokenizer: got int, want a path", lambda: etrun.load_text(TEXTS / "dynamic.pte", 10**10)),
            (OverflowError, "threads", lambda: etrun.load(DIGITS, threads=1 << 32)),
            (ValueError, "null", lambda: etrun.load("a\0b")),
            (ValueError, "null", lambda: etrun.load(DIGITS, "forward\0")),
            (etrun.MissingError, "", lambda: etrun.load_text(DIGITS)),
        ]
        for error, text, function in cases:
            with self.subTest(text), self.assertRaisesRegex(error, text):
                function()

    def test_closed(self) -> None:
        program = etrun.Runtime.get().load_program(DIGITS)
        with program, program.load_method() as method:
            method(IMAGES[0])
        program.close()
        self.assertEqual(repr(program), "<etrun.Program forward (closed)>")
        self.assertEqual(repr(method), "<etrun.Method forward(float32 1x1x8x8) -> float32 1x10 (closed)>")
        of_method = (lambda: method(IMAGES[0]), method.reset, lambda: method.input_array(0))
        for function in (*of_method, program.load_method, lambda: program.method_names):
            with self.assertRaises(etrun.ClosedError):
                function()
        kept = etrun.load(DIGITS)
        memory = kept.input_array(0)
        kept.close()
        memory[...] = 1  # is still there
        self.assertEqual(memory.sum(), 64)

    def test_threads(self) -> None:
        model = etrun.load(DIGITS)
        want = [model(image) for image in IMAGES[:8]]
        faults = []

        def work() -> None:
            for image, scores in zip(IMAGES, want):
                if not np.array_equal(model(image), scores):
                    faults.append("other scores")

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(faults, [])


class InputTest(unittest.TestCase):
    def setUp(self) -> None:
        self.model = etrun.load(DIGITS)
        self.want = self.model(IMAGES[1])

    def test_kinds_of_arrays(self) -> None:
        image = IMAGES[1]
        wide = np.zeros((1, 1, 8, 16), np.float32)
        wide[..., ::2] = image
        flat = memoryview(array.array("f", image.ravel())).cast("B").cast("f", image.shape)

        class Exchange:  # an array of another library
            def __dlpack__(self, **options: object) -> object:
                return image.__dlpack__(**options)

            def __dlpack_device__(self) -> object:
                return image.__dlpack_device__()

        for value in (image, wide[..., ::2], image.astype(">f4"), flat, flat.toreadonly(), memoryview(image), Exchange()):
            np.testing.assert_array_equal(self.model(value), self.want)
        readonly = image.copy()
        readonly.flags.writeable = False
        np.testing.assert_array_equal(self.model(readonly), self.want)

    def test_refusals(self) -> None:
        cases = [
            (etrun.InputError, "got int32 1x1x8x8, want float32 1x1x8x8", IMAGES[1].astype(np.int32)),
            (etrun.InputError, r"got float64 1x1x8x8, want float32 1x1x8x8.*call .astype\(numpy.float32\)", IMAGES[1].astype(np.float64)),
            (etrun.InputError, r"got float32 64.*call .reshape\(1, 1, 8, 8\)", IMAGES[1].ravel()),
            (etrun.InputError, "got float64 scalar", 1.0),
            (etrun.InputError, "got int64 scalar", 1),
            (etrun.InputError, "got uint8 3", "abc"),
            (etrun.InputError, "got uint8 256", IMAGES[1].tobytes()),
            (etrun.InputError, "None, want float32 1x1x8x8", None),
            (TypeError, "got dict", {}),
            (TypeError, "object", np.array([None])),
            (TypeError, "datetime", np.array(["2020"], "datetime64[s]")),
            (OverflowError, "64 bits", 1 << 64),
        ]
        for error, text, value in cases:
            with self.subTest(text), self.assertRaisesRegex(error, text):
                self.model(value)
        for count, inputs in ((2, [IMAGES[1], IMAGES[1]]), (0, [])):
            with self.assertRaisesRegex(etrun.InputError, f"got {count} inputs, the method has 1"):
                self.model.execute(inputs)
        with self.assertRaisesRegex(TypeError, r"got list.*call numpy.asarray\(value, numpy.float32\)"):
            self.model.execute([IMAGES[1].tolist()])
        np.testing.assert_array_equal(self.model(), self.want)  # no refusal changed the input

    def test_input_array(self) -> None:
        memory = self.model.input_array(0)
        self.assertEqual((memory.shape, memory.dtype), ((1, 1, 8, 8), np.float32))
        for image in IMAGES[:5]:
            memory[...] = image
            scores = self.model.execute([None])[0]
            np.testing.assert_array_equal(scores, etrun.load(DIGITS)(image))
        with self.assertRaisesRegex(etrun.InputError, "1x1x8x8"):
            self.model.input_array(0, (1, 64))
        self.model.reset()
        for again in (self.model, lambda: self.model.execute([None])):
            with self.assertRaises(etrun.InputError):
                again()

    def test_out(self) -> None:
        out = np.zeros((1, 10), np.float32)
        (got,) = self.model.execute([IMAGES[1]], out=[out])
        self.assertIs(got, out)
        np.testing.assert_array_equal(out, self.want)
        buffer = bytearray(40)
        self.model.execute(out=[memoryview(buffer).cast("f", (1, 10))])
        self.assertEqual(buffer, self.want.tobytes())
        refused = [np.zeros((10, 2), np.float32).T, np.zeros((1, 10)), np.zeros(10, np.float32)]
        for error, wrong in zip((ValueError, etrun.InputError, etrun.InputError), refused):
            with self.assertRaises(error):
                self.model.execute(out=[wrong])
            self.assertFalse(wrong.any())

    def test_timeout(self) -> None:
        self.model.execute([IMAGES[0]], timeout=60)
        with self.assertRaises(OverflowError):
            self.model.execute(timeout=1e30)

    def test_scalars(self) -> None:
        model = etrun.load(DATA / "pte" / "scalar_inputs.pte")
        kinds = [(i.kind, i.value) for i in model.metadata.inputs[1:4]]
        self.assertEqual(kinds, [(etrun.Kind.INT, 3), (etrun.Kind.DOUBLE, 0.5), (etrun.Kind.BOOL, True)])
        first = model.metadata.inputs[0]
        x = np.ones(first.sizes(), dtypes.numpy_dtype(first.dtype()))
        a = model.execute([x, 3, 0.5, True])
        for left, right in zip(a, model.execute()):
            np.testing.assert_array_equal(left, right)
        for value in (4, 3.0, "3", True, np.int32(3)):
            with self.assertRaisesRegex(etrun.InputError, "input 1"):
                model.execute([x, value, 0.5, True])

    def test_dynamic(self) -> None:
        model = etrun.load(DATA / "pte" / "dynamic_pair.pte")
        infos = model.metadata.inputs
        self.assertTrue(any(i.dynamic for i in infos))
        for n in (1, 2, 1):
            shapes = [(n, *i.sizes()[1:]) if i.dynamic else i.sizes() for i in infos]
            outputs = model.execute([np.ones(s, dtypes.numpy_dtype(i.dtype())) for s, i in zip(shapes, infos)])
            arrays = [model.input_array(k, s) for k, s in enumerate(shapes)]
            for a in arrays:
                a[...] = 1
            for left, right in zip(outputs, model.execute()):
                np.testing.assert_array_equal(left, right)


class TypeTest(unittest.TestCase):
    def test_all_types(self) -> None:
        for dtype in DType:
            with self.subTest(dtype.name):
                made, address = dtypes.allocator(dtype, False)((2, 3))
                found = dtypes.elements(made, dtype, "input 0")
                self.assertEqual((found.dtype, found.shape, found.nbytes, found.address), (dtype, (2, 3), 6 * dtype.itemsize, address))

    def test_bits(self) -> None:
        bits = np.array([0x3F80, 0x4000], np.uint16)
        self.assertEqual(dtypes.elements(bits, DType.BFLOAT16, "x").dtype, DType.BFLOAT16)
        self.assertEqual(dtypes.elements(bits, DType.FLOAT16, "x").dtype, DType.UINT16)
        self.assertEqual(dtypes.elements(bits, DType.UINT16, "x").dtype, DType.UINT16)
        self.assertEqual(dtypes.elements(bits.view(np.int16), DType.BFLOAT16, "x").dtype, DType.INT16)
        with mock.patch.object(dtypes, "_ml_dtypes", lambda: None):
            self.assertEqual(dtypes.numpy_dtype(DType.BFLOAT16), np.uint16)

    def test_empty(self) -> None:
        self.assertEqual(dtypes.elements(np.zeros((0, 3), np.int8), DType.INT8, "x")[:2], (DType.INT8, (0, 3)))


class TextTest(unittest.TestCase):
    def setUp(self) -> None:
        self.model = etrun.load_text(TEXTS / "dynamic.pte", TEXTS / "bytes.json", chat_template='{"message": "{role}: {text} "}')

    def test_tokens(self) -> None:
        pieces = list(self.model.generate([1, 40, 50], max_tokens=8))
        self.assertEqual([n for p in pieces for n in p.tokens], [105, 5, 84, 203, 119, 112, 155, 141])
        self.assertEqual((pieces[-1].finish, pieces[-1].generated_tokens), ("length", 8))
        (first, *_) = self.model.generate([1, 40, 50], max_tokens=2, log_probs=True)
        self.assertLess(first.log_probs[0], 0)

    def test_strings(self) -> None:
        options = {"max_tokens": 6, "temperature": 0.9, "seed": 5, "stop": ["no"]}
        first = "".join(map(str, self.model.generate("hello", **options)))
        self.assertEqual("".join(map(str, self.model.generate("hello", **options))), first)
        self.assertTrue(list(self.model.chat([{"role": "user", "content": "hi"}], **options)))

    def test_early_end(self) -> None:
        old = self.model.generate([1])
        next(old)
        new = self.model.generate([1, 40, 50], max_tokens=8)
        self.assertEqual(next(new).tokens, [105])
        with self.assertRaisesRegex(etrun.InputError, "another text"):
            next(old)
        self.model.cancel()
        with self.assertRaises(etrun.CancelledError):
            list(new)
        with self.model:
            pass
        with self.assertRaises(etrun.ClosedError):
            self.model.generate([1])

    def test_refusals(self) -> None:
        cases = [
            (etrun.InputError, "1000000", lambda: self.model.generate([1000000])),
            (OverflowError, "tokens", lambda: self.model.generate([1 << 40])),
            (OverflowError, "top_k", lambda: self.model.generate([1], top_k=1 << 40)),
            (TypeError, "speed", lambda: self.model.generate([1], speed=1)),
            (etrun.InputError, "temperature", lambda: list(self.model.generate([1], temperature=-1))),
            (etrun.MissingError, "", lambda: etrun.load_text(TEXTS / "dynamic.pte", b"{}")),
            (etrun.InputError, "absent", lambda: etrun.load_text(TEXTS / "dynamic.pte", TEXTS / "bytes.json", chat_template="absent")),
        ]
        for error, text, function in cases:
            with self.subTest(text), self.assertRaisesRegex(error, text):
                function()


    def test_sessions(self) -> None:
        prompts = ["Once upon a time", [1, 40, 50], "Twice"]
        alone = ["".join(map(str, self.model.generate(p, max_tokens=8))) for p in prompts]
        self.assertEqual(self.model.generate_all(prompts, max_tokens=8), alone)
        first = list(self.model.generate(prompts[0], max_tokens=4))
        with self.model.session() as fork:
            self.model.close()
            (*_, last) = fork.generate(prompts[0], max_tokens=4)
        self.assertEqual(last.text, first[-1].text)
        self.assertGreater(last.reused_tokens, 0)

    def test_forms(self) -> None:
        schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"], "additionalProperties": False}
        text = lambda **o: "".join(map(str, self.model.generate("Once", temperature=1.0, max_tokens=40, seed=3, **o)))  # noqa: E731
        for given in (schema, json.dumps(schema)):
            self.assertIsInstance(json.loads(text(schema=given))["n"], int)
        self.assertIn(text(grammar='root ::= "yes" | "no"'), ("yes", "no"))
        self.assertRegex(text(pattern="[ab]{3}"), "^[ab]{3}$")
        refused = ({"schema": "{"}, {"grammar": "x"}, {"pattern": "("}, {"schema": "{}", "grammar": 'root ::= "a"'})
        for options in refused:
            with self.subTest(options), self.assertRaisesRegex(etrun.InputError, "sampling"):
                text(**options)

    def test_conversations(self) -> None:
        jinja = (
            "{% for t in tools or [] %}{{ t.function.name }};{% endfor %}{{ extra }}"
            "{% for m in messages %}{{ m.content }}{% for c in m.tool_calls or [] %}{{ c.function.arguments.n }}{% endfor %}{% endfor %}"
        )
        model = etrun.load_text(TEXTS / "dynamic.pte", TEXTS / "bytes.json", chat_template=jinja)
        call = {"id": "1", "type": "function", "function": {"name": "count", "arguments": '{"n": 3}'}}
        tool = {"type": "function", "function": {"name": "count", "parameters": {"type": "object"}}}
        messages = [
            {"role": "user", "content": "hi"},
            {"role": "assistant", "content": "", "tool_calls": [call]},
            {"role": "tool", "content": "7", "tool_call_id": "1"},
        ]
        chat = "".join(map(str, model.chat(messages, tools=[tool], template_values={"extra": "!"}, max_tokens=6)))
        want = "".join(map(str, model.generate("count;!hi37", max_tokens=6)))
        self.assertEqual(chat, want)
        for request, text in (([{"content": "hi"}], "role is missing"), ([{"role": "user", "content": 3}], "json: .*content")):
            with self.subTest(text), self.assertRaisesRegex(etrun.InputError, text):
                model.chat(request)

    def test_embedder(self) -> None:
        encoders = TEXTS / "encoders"
        texts = ["hello world", "hello"]
        with etrun.load_embedder(encoders / "bert.pte", encoders / "vocab.txt", pooling="mean", normalize=True) as model:
            vectors = model.embed(texts)
            self.assertEqual((vectors.shape, vectors.dtype), ((2, model.dimensions), np.float32))
            np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, rtol=1e-5)
            np.testing.assert_allclose(model.embed(texts[1]), vectors[1], rtol=1e-4, atol=1e-6)
            self.assertEqual(model.embed([]).shape, (0, model.dimensions))
        with self.assertRaises(etrun.ClosedError):
            model.embed(texts)
        for options in ({"pooling": "sum"}, {"context": -1}):
            with self.subTest(options), self.assertRaises(etrun.Error):
                etrun.load_embedder(encoders / "bert.pte", encoders / "vocab.txt", **options)

    def test_pictures(self) -> None:
        folder = TEXTS.parents[1] / "text" / "testdata" / "pictures"
        cases = {c["id"]: c for c in json.loads((folder / "cases.json").read_text())["cases"]}
        case = cases["8da4w/b.jpg/what"]
        picture, question = folder / case["inputs"]["image"], case["inputs"]["prompt"]
        with etrun.load_text(folder / "model.pte", folder / "tokenizer.json", processor=folder / "preprocessor_config.json") as model:
            for image in (picture, picture.read_bytes()):
                pieces = list(model.chat([{"role": "user", "content": question}], images=[image], max_tokens=4))
                self.assertEqual(pieces[-1].prompt_tokens, case["expect"]["prompt_tokens"])
                self.assertEqual([t for p in pieces for t in p.tokens], case["expect"]["tokens"][:4])
            history = [{"role": "user", "content": "<image>a"}, {"role": "assistant", "content": "b"}, {"role": "user", "content": "c<image>"}]
            list(model.chat(history, images=[picture, folder / "a.png"], max_tokens=1))
            self.assertTrue(list(model.generate("<image> is", images=[picture], max_tokens=1)))
            self.assertTrue(list(model.generate("a", max_tokens=1)))
            for call in (
                lambda: model.generate([1, 2], images=[picture]),
                lambda: model.generate("a", images=[b"GIF89a"]),
                lambda: model.generate("a", audio=[picture]),
                lambda: model.chat([{"role": "system", "content": "a"}], images=[picture]),
            ):
                with self.assertRaises(etrun.Error):
                    list(call())
            with self.assertRaises(TypeError):
                model.generate("a", images=picture)

    def test_speech(self) -> None:
        folder = TEXTS.parents[1] / "speech" / "testdata"
        sound = folder / "speech.wav"
        with etrun.load_speech(folder / "transducer" / "model.pte", instances=2) as model:
            found = model.transcribe(sound)
            self.assertTrue(found.text and found.words and found.segments and found.tokens)
            self.assertEqual(model.transcribe(sound.read_bytes()), found)
            self.assertTrue(all(0 <= w.start <= w.end <= found.duration + 1 for w in found.words))
            samples = np.frombuffer(sound.read_bytes()[44:], np.int16).astype(np.float32) / 32768
            self.assertEqual(model.transcribe(samples, rate=16000), found)
            for content, options in ((b"RIFF", {}), (sound, {"language": "de"}), (sound, {"temperature": 1.0})):
                with self.subTest(options), self.assertRaises(etrun.InputError):
                    model.transcribe(content, **options)
        with self.assertRaises(etrun.ClosedError):
            model.transcribe(sound)
        with self.assertRaises(etrun.Error):
            etrun.load_speech(folder / "whisper" / "model.pte", folder / "ctc")
        voices = etrun.load_speech(folder / "voice" / "model.pte").transcribe(sound)
        self.assertTrue(voices.segments and len(voices.probabilities) > 50 and not voices.text)


WITHOUT_NUMPY = """
import sys
sys.modules["numpy"] = None
import etrun
images = open(sys.argv[2], "rb").read()
model = etrun.load(sys.argv[1])
scores = model(memoryview(images[:256]).cast("f", (1, 1, 8, 8)))
memory = model.input_array(0)
memory.cast("B")[:] = images[:256]
assert model().tolist() == scores.tolist()
print(scores.format, scores.shape, scores.tolist())
"""


class PackageTest(unittest.TestCase):
    def test_without_numpy(self) -> None:
        arguments = [sys.executable, "-c", WITHOUT_NUMPY, str(DIGITS), str(DATA / "digits" / "images.f32.bin")]
        out = subprocess.run(arguments, check=True, capture_output=True, text=True).stdout
        scores = np.array(json.loads(out[out.index("[") :]), np.float32)
        self.assertIn("f (1, 10)", out)
        np.testing.assert_array_equal(scores, etrun.load(DIGITS)(IMAGES[0]))

    def test_library_of_another_interface(self) -> None:
        for path in ("/no/such.so", "libc.so.6"):
            with mock.patch.dict("os.environ", ETRUN_LIBRARY=path):
                done = subprocess.run([sys.executable, "-c", "import etrun"], capture_output=True, text=True, check=False)
            self.assertIn("ImportError", done.stderr)
            self.assertIn("ETRUN_LIBRARY", done.stderr)

    def test_sizes_of_structures(self) -> None:
        """Prints the sizes for the test in Go, which compares them with the header's."""
        names = ("bytes", "options", "info", "value", "text_options", "medium", "sampling", "embedder_options", "piece", "speech_options", "transcription")
        kinds = {n: getattr(_library, "".join(map(str.capitalize, n.split("_")))) for n in names}
        print("sizes", *(f"{n}={ctypes.sizeof(kind)}" for n, kind in kinds.items()), file=sys.stderr)


if __name__ == "__main__":
    unittest.main()
