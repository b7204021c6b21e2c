"""Classifies handwritten digits: python3 digits.py digits.pte images.f32.bin, files of testdata/digits of a checkout."""

from __future__ import annotations

import sys

import numpy as np

import etrun


def main(model: str, pictures: str) -> None:
    images = np.fromfile(pictures, np.float32).reshape(-1, 1, 1, 8, 8)

    # Three ways to the same scores: those of this package, of executorch.runtime and of onnxruntime.
    classify = etrun.load(model, threads=1)
    method = etrun.Runtime.get().load_program(model).load_method("forward")
    session = etrun.InferenceSession(model, providers=["CPUExecutionProvider"])
    name = session.get_inputs()[0].name
    for image in images[:5]:
        ways = [classify(image), method.execute([image])[0], session.run(None, {name: image})[0]]
        print(*(int(np.asarray(scores).argmax()) for scores in ways))


if __name__ == "__main__":
    main(*sys.argv[1:])
