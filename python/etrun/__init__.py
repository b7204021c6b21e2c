"""Runs ExecuTorch programs (.pte) with libetrun.

The names are those of executorch.runtime:

>>> import etrun
>>> program = etrun.Runtime.get().load_program("model.pte")
>>> outputs = program.load_method("forward").execute([pixels])

A short way to the same:

>>> scores = etrun.load("model.pte")(pixels)

With the names of onnxruntime:

>>> scores = etrun.InferenceSession("model.pte").run(None, {"input_0": pixels})
"""

from . import dtypes, errors, portable_lib, runtime, session, speech, text
from ._library import lib as _lib
from .dtypes import *
from .errors import *
from .portable_lib import *
from .runtime import *
from .session import *
from .speech import *
from .text import *

__version__: str = _lib.etrun_version().decode()

__all__: list[str] = []
__all__ += dtypes.__all__
__all__ += errors.__all__
__all__ += portable_lib.__all__
__all__ += runtime.__all__
__all__ += session.__all__
__all__ += speech.__all__
__all__ += text.__all__
