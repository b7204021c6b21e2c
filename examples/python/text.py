"""Generates text: python3 text.py model.pte tokenizer.json PROMPT..."""

from __future__ import annotations

import sys

import etrun


def main(path: str, tokenizer: str, *prompts: str) -> None:
    model = etrun.load_text(path, tokenizer, threads=1)
    last = None
    for last in model.generate(prompts[0], max_tokens=20, temperature=0.8, seed=7):
        print(last, end="", flush=True)
    print(f"\n{last.finish if last else None}")

    # Texts that decode together, and a text that is JSON by a schema.
    print(model.generate_all(prompts, max_tokens=8))
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"], "additionalProperties": False}
    print(*model.generate(prompts[0], max_tokens=30, schema=schema), sep="")


if __name__ == "__main__":
    main(*sys.argv[1:])
