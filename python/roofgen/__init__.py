"""roofgen from Python: tune, generate, compile and launch CUDA kernels (docs/use/python.md).

    import roofgen
    result = roofgen.tune("attention", L=2048, d=64, causal=True, evals=24)
    print(result.verdict)
    kernel = roofgen.jit("rmsnorm", rows=4096, cols=1024)
    kernel(x=x, weight=weight, y=y)          # tensors of torch, CuPy, JAX, Numba, ...: DLPack, CUDA array interface

A request is an operator and the flags of `roofgen tune OPERATOR` as keywords, `-` as `_`: `kv_len=8192`. Switches are
`True`, lists are lists, and `set` may be a dict. Functions of the module use one common session.
"""
from __future__ import annotations

import _thread
import collections
import ctypes
import json
import operator
import threading
import warnings
import weakref
from contextlib import contextmanager
from ctypes import byref, c_void_p
from dataclasses import dataclass, field
from typing import Any, Callable, Iterator, Mapping, Sequence

from . import _native
from ._launch import Pipeline
from ._native import BELOW_SCORE, FAILED, INTERRUPTED, UNAVAILABLE, USAGE, Error, driver, last_error, library

__all__ = ["BELOW_SCORE", "Error", "FAILED", "INTERRUPTED", "Kernel", "Pipeline", "Result", "RoofgenWarning", "Session",
           "UNAVAILABLE", "USAGE", "compile", "default_session", "emit", "explain", "generate", "jit", "tune"]

__version__ = library.version().decode()
Error.__module__ = Pipeline.__module__ = __name__


class RoofgenWarning(UserWarning):
    """A warning of the library, by the module `warnings`."""


@dataclass(frozen=True)
class Kernel:
    """One kernel of a result. Without compilation `ptx`, `arch` and `digest` are "", and `cubin` is b""."""
    schedule: str  # "fused BM=128 BN=64 stages=2"
    entry: str  # name in source, PTX and CUBIN
    source: str
    ptx: str
    cubin: bytes = field(repr=False)
    arch: str
    digest: str  # SHA-256 of all inputs of the compilation
    registers: int
    spill_bytes: int
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    cluster: tuple[int, int, int]
    shared_bytes: int  # dynamic


@dataclass(frozen=True)
class Result:
    """What a call gives: `text` as of the C function (docs/use/library.md), of a tuned problem the `verdict` "FUSE: ...",
    and the `kernels` of the best variant in launch order."""
    text: str = field(repr=False)
    verdict: str
    kernels: Sequence[Kernel] = field(repr=False)

    @property
    def report(self) -> dict:
        """The text of `tune` (docs/tune-schema.json) and `explain` (docs/use/explain.md) as a dict."""
        return json.loads(self.text)


def _take_result(handle: c_void_p) -> Result | None:
    if not handle:
        return None
    kernels = []
    for index in range(library.result_kernels(handle)):
        raw = _native.RawKernel(struct_bytes=ctypes.sizeof(_native.RawKernel))
        library.result_kernel(handle, index, byref(raw))
        kernels.append(Kernel(raw.schedule.decode(), raw.entry.decode(), raw.source.decode(), raw.ptx.decode(),
                              ctypes.string_at(raw.cubin, raw.cubin_bytes) if raw.cubin_bytes else b"",
                              raw.arch.decode(), raw.digest.decode(), raw.registers, raw.spill_bytes, tuple(raw.grid),
                              tuple(raw.block), tuple(raw.cluster), raw.shared_bytes))
    result = Result(library.result_text(handle).decode(), library.result_verdict(handle).decode(), tuple(kernels))
    library.result_free(handle)
    return result


def _request(op: str, flags: Mapping[str, Any]) -> bytes:
    """{"op": "attention", "kv-len": 8192}"""
    request = {"op": op}
    for name, value in flags.items():
        if name == "set" and isinstance(value, Mapping):
            value = ",".join(f"{key}={v if isinstance(v, str) else json.dumps(v)}" for key, v in value.items())
        if value is not None:
            request[name.replace("_", "-")] = value
    try:
        return json.dumps(request, default=operator.index).encode()  # integers of NumPy
    except (TypeError, ValueError) as error:
        raise Error(USAGE, f"the request is no JSON: {error}") from None


class Session:
    """Where kernels and evaluations are kept. Threads may share a session; as a context manager it closes itself.

    `cache`: folder of compiled kernels [$ROOFGEN_CACHE_DIR, ~/.cache/roofgen]; "": none.
    `store`: folder of the store of evaluations [$ROOFGEN_DATA_HOME, ~/.local/share/roofgen]; "": none.
    `data_dirs`: folders with templates/, search_spaces/, ... that come before the built-in ones.
    `progress(phase, done, total)` is called during a search, maybe in another thread.

    Calls raise Error. Ctrl-C in one of the main thread cancels the calls of the session, also of its other threads.
    """

    def __init__(self, cache: str | None = None, store: str | None = None, data_dirs: Sequence[str] = (),
                 progress: Callable[[str, int, int], None] | None = None):
        options = {"data_dirs": [str(folder) for folder in data_dirs]}
        for name, folder in (("cache_dir", cache), ("data_home", store)):
            if folder is not None:
                options[name] = str(folder)
        handle = c_void_p()
        status = library.open(byref(handle), json.dumps(options).encode())
        if status:
            raise last_error(status)
        self._handle = handle.value
        self._idle = threading.Condition()
        self._calls, self._closed = 0, False
        self._warnings: collections.deque[str] = collections.deque()
        lines = self._warnings  # the callback must not keep the session alive
        self._callbacks = [_native.WARNING(lambda _, line: lines.append(line.decode()))]
        library.on_warning(self._handle, self._callbacks[0], None)
        if progress:
            self._callbacks.append(_native.PROGRESS(lambda _, phase, done, all: progress(phase.decode(), done, all)))
            library.on_progress(self._handle, self._callbacks[1], None)
        self._close = weakref.finalize(self, library.close, self._handle)
        self._close.atexit = False  # a thread may still run a call

    def tune(self, op: str, **flags: Any) -> Result:
        """Tunes, or takes the result from the store. An Error may have a result: below `min_score`, cancelled, nothing
        verified."""
        return self._result(library.tune, op, flags)

    def generate(self, op: str, **flags: Any) -> Result:
        """One kernel without tuning: of `variant` and `stage` at `set`, or at the default schedule."""
        return self._result(library.generate, op, flags)

    def compile(self, op: str, **flags: Any) -> Result:
        """As `generate`, with PTX, CUBIN and registers."""
        return self._result(library.compile, op, flags)

    def emit(self, op: str, directory: str, **flags: Any) -> Result:
        """Tunes, and writes a bundle into the folder (docs/use/emit.md)."""
        return self._result(library.emit, op, flags, str(directory).encode())

    def explain(self, op: str, **flags: Any) -> Result:
        """Work, roofs and regime by formula."""
        return self._result(library.explain, op, flags)

    def jit(self, op: str, **flags: Any) -> Pipeline:
        """The kernels of a request in the CUDA context that is current: from the cache, the store or a search. A thread
        without a context gets the primary one of torch's current device, else of the first."""
        request = _request(op, flags)
        context = driver.context()
        handle = c_void_p()

        def call() -> Error | None:
            driver.enter(context)
            status = library.jit(self._handle, request, byref(handle))
            return last_error(status) if status else None

        error = self._run(call)
        if error:
            raise error
        return Pipeline(handle.value, driver.ordinal())

    def cancel(self) -> None:
        """The calls that run end soon with an Error of status INTERRUPTED. What is done stays in the store."""
        with self._idle:
            if self._close.alive:
                library.cancel(self._handle)

    def close(self) -> None:
        """Waits for calls that run. Pipelines stay usable."""
        with self._idle:
            self._closed = True
            self._idle.wait_for(lambda: self._calls == 0)
            self._close()

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _result(self, function: Callable, op: str, flags: Mapping[str, Any], *more: bytes) -> Result:
        request = _request(op, flags)

        def call() -> tuple[Error | None, Result | None]:
            handle = c_void_p()
            status = function(self._handle, request, *more, byref(handle))
            error = last_error(status) if status else None
            return error, _take_result(handle)

        error, result = self._run(call)
        if error:
            error.result = result
            raise error
        return result

    def _run(self, call: Callable) -> Any:
        def counted() -> Any:
            with self._running():
                return call()

        outcome = _interruptible(counted, self.cancel)
        while self._warnings:
            try:
                line = self._warnings.popleft()
            except IndexError:  # another thread was faster
                break
            warnings.warn(line, RoofgenWarning, stacklevel=4)
        return outcome

    @contextmanager
    def _running(self) -> Iterator[None]:
        with self._idle:
            if self._closed:
                raise Error(USAGE, "the session is closed")
            self._calls += 1
        try:
            yield
        finally:
            with self._idle:
                self._calls -= 1
                self._idle.notify_all()


def _interruptible(call: Callable, cancel: Callable[[], None]) -> Any:
    """Python handles no signal while its main thread is in a C function: the call runs in another one."""
    if threading.current_thread() is not threading.main_thread():
        return call()
    outcome, failure, begun, ended, stopped = [], [], [], [], []
    done = threading.Lock()  # an interrupt leaves it whole, unlike an Event, which is made in Python
    done.acquire()

    def run() -> None:
        begun.append(True)
        try:
            if not stopped:
                outcome.append(call())
        except BaseException as error:
            failure.append(error)
        finally:
            ended.append(True)
            done.release()

    try:
        _thread.start_new_thread(run, ())  # Thread.start() waits for an Event
        while not done.acquire(timeout=0.1):
            pass  # a signal right before a wait does not end it
    except BaseException:
        stopped.append(True)
        while begun and not ended and not done.acquire(timeout=0.05):  # what has not begun does nothing
            cancel()  # again, since the call may not have begun
        raise
    if failure:
        raise failure[0]
    return outcome[0]


_default_lock = threading.Lock()
_default: Session | None = None


def default_session() -> Session:
    """That of the functions of the module: with the cache and the store of the program."""
    global _default
    with _default_lock:
        if _default is None:
            _default = Session()
        return _default


def tune(op: str, **flags: Any) -> Result:
    """Session.tune of the default session."""
    return default_session().tune(op, **flags)


def generate(op: str, **flags: Any) -> Result:
    """Session.generate of the default session."""
    return default_session().generate(op, **flags)


def compile(op: str, **flags: Any) -> Result:
    """Session.compile of the default session."""
    return default_session().compile(op, **flags)


def emit(op: str, directory: str, **flags: Any) -> Result:
    """Session.emit of the default session."""
    return default_session().emit(op, directory, **flags)


def explain(op: str, **flags: Any) -> Result:
    """Session.explain of the default session."""
    return default_session().explain(op, **flags)


def jit(op: str, **flags: Any) -> Pipeline:
    """Session.jit of the default session."""
    return default_session().jit(op, **flags)
