"""libroofgen.so and the CUDA driver by ctypes: the functions of include/roofgen/roofgen.h that the package calls."""
from __future__ import annotations

import ctypes
import os
import sys
from ctypes import POINTER, byref, c_char_p, c_double, c_int, c_int32, c_int64, c_size_t, c_uint32, c_uint64, c_void_p
from pathlib import Path
from typing import Any

OK, FAILED, USAGE, UNAVAILABLE, BELOW_SCORE, INTERRUPTED = 0, 1, 2, 3, 4, 130
ADDRESS, INTEGER, REAL = 0, 1, 2  # kinds of arguments

class Error(Exception):
    """A call failed. `status` is USAGE (a wrong request or argument), UNAVAILABLE (nothing legal to run, a component is
    missing), FAILED, BELOW_SCORE or INTERRUPTED (cancelled by another thread)."""

    def __init__(self, status: int, message: str, line: int = 0, column: int = 0, result: Any = None):
        super().__init__(message)
        self.status, self.message = status, message
        self.line, self.column = line, column  # in the JSON text of the request, from 1; 0: none
        self.result = result  # of a tune that found something nevertheless


WARNING = ctypes.CFUNCTYPE(None, c_void_p, c_char_p)
PROGRESS = ctypes.CFUNCTYPE(None, c_void_p, c_char_p, c_uint64, c_uint64)


class Value(ctypes.Union):
    _fields_ = [("pointer", c_uint64), ("integer", c_int64), ("real", c_double)]


class Argument(ctypes.Structure):
    _fields_ = [("name", c_char_p), ("kind", c_int32), ("value", Value)]


class RawKernel(ctypes.Structure):
    _fields_ = [("struct_bytes", c_size_t), ("schedule", c_char_p), ("entry", c_char_p), ("source", c_char_p),
                ("ptx", c_char_p), ("cubin", c_void_p), ("cubin_bytes", c_size_t), ("arch", c_char_p),
                ("digest", c_char_p), ("registers", c_int32), ("spill_bytes", c_int64), ("grid", c_uint32 * 3),
                ("block", c_uint32 * 3), ("cluster", c_uint32 * 3), ("shared_bytes", c_uint32)]


_CALL = [c_void_p, c_char_p, POINTER(c_void_p)]
_FUNCTIONS = {
    "version": (c_char_p, []),
    "error": (c_char_p, []),
    "error_line": (c_int, []),
    "error_column": (c_int, []),
    "open": (c_int, [POINTER(c_void_p), c_char_p]),
    "close": (None, [c_void_p]),
    "on_warning": (c_int, [c_void_p, WARNING, c_void_p]),
    "on_progress": (c_int, [c_void_p, PROGRESS, c_void_p]),
    "cancel": (c_int, [c_void_p]),
    "tune": (c_int, _CALL),
    "generate": (c_int, _CALL),
    "compile": (c_int, _CALL),
    "emit": (c_int, [c_void_p, c_char_p, c_char_p, POINTER(c_void_p)]),
    "explain": (c_int, _CALL),
    "result_text": (c_char_p, [c_void_p]),
    "result_verdict": (c_char_p, [c_void_p]),
    "result_kernels": (c_size_t, [c_void_p]),
    "result_kernel": (c_int, [c_void_p, c_size_t, POINTER(RawKernel)]),
    "result_free": (None, [c_void_p]),
    "jit": (c_int, _CALL),
    "pipeline_free": (None, [c_void_p]),
    "pipeline_text": (c_char_p, [c_void_p]),
    "workspace_bytes": (c_int, [c_void_p, POINTER(Argument), c_size_t, POINTER(c_uint64)]),
    "launch": (c_int, [c_void_p, c_void_p, POINTER(Argument), c_size_t, c_uint64, c_uint64]),
}


def library_path() -> str:
    """$ROOFGEN_LIBRARY, the library of the wheel, or that of the system's search path."""
    of_wheel = Path(__file__).parent / "lib" / "libroofgen.so.1"
    return os.environ.get("ROOFGEN_LIBRARY") or (str(of_wheel) if of_wheel.exists() else "libroofgen.so.1")


class Library:
    """`library.tune` is roofgen_tune; the GIL is free while it runs."""

    def __init__(self) -> None:
        path = library_path()
        try:
            library = ctypes.CDLL(path)
        except OSError as error:
            raise ImportError(f"{error}; ROOFGEN_LIBRARY=FILE names another libroofgen.so") from None
        for name, (result, arguments) in _FUNCTIONS.items():
            function = getattr(library, "roofgen_" + name)
            function.restype, function.argtypes = result, arguments
            setattr(self, name, function)


class Driver:
    """The CUDA driver, for contexts and the order of streams. Without one, or without a GPU, there is no context, and
    roofgen_jit says why."""

    def __init__(self) -> None:
        try:
            self._cuda = ctypes.CDLL(os.environ.get("ROOFGEN_LIBCUDA") or "libcuda.so.1")  # as the library
        except OSError:
            self._cuda = None

    def _call(self, name: str, *arguments) -> bool:
        return self._cuda is not None and getattr(self._cuda, name)(*arguments) == 0

    def context(self) -> int | None:
        """The current context; if the thread has none, the primary one of torch's device or of the first becomes it."""
        context = c_void_p()
        if self._call("cuCtxGetCurrent", byref(context)) and context.value:
            return context.value
        torch = sys.modules.get("torch")
        ordinal = torch.cuda.current_device() if torch and torch.cuda.is_initialized() else 0
        if self._call("cuInit", 0) and self._call("cuDevicePrimaryCtxRetain", byref(context), ordinal):
            self.enter(context.value)
        return context.value

    def enter(self, context: int | None) -> None:
        if context:
            self._call("cuCtxSetCurrent", c_void_p(context))

    def ordinal(self) -> int | None:
        """The device of the current context."""
        ordinal = c_int()
        return ordinal.value if self._call("cuCtxGetDevice", byref(ordinal)) else None

    def order(self, first: int, then: int) -> bool:
        """What is queued on stream `then` later waits for that queued on stream `first`."""
        event = c_void_p()
        self.context()  # which events need
        without_timing = 2  # CU_EVENT_DISABLE_TIMING
        if not self._call("cuEventCreate", byref(event), without_timing):
            return False
        ordered = (self._call("cuEventRecord", event, c_void_p(first)) and
                   self._call("cuStreamWaitEvent", c_void_p(then), event, 0))
        return self._call("cuEventDestroy_v2", event) and ordered


library = Library()
driver = Driver()


def last_error(status: int) -> Error:
    """Of the last call of this thread."""
    return Error(status, library.error().decode(), library.error_line(), library.error_column())
