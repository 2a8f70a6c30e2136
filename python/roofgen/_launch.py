"""Launches of a pipeline's kernels: arguments by name, sizes and strides from the tensors."""
from __future__ import annotations

import json
import math
import numbers
import sys
import weakref
from ctypes import byref, c_uint64, c_void_p
from typing import Any, Mapping

from . import _tensors
from ._native import ADDRESS, INTEGER, REAL, UNAVAILABLE, USAGE, Argument, Error, Value, driver, last_error, library


class _Formula:
    """A side or a stride of a tensor in elements: a number, a parameter, or C of sizes, which are positive."""

    def __init__(self, text: str):
        self.text = text
        self._code = compile(text.replace("/", "//"), text, "eval")

    def value(self, sizes: Mapping[str, int]) -> int:
        return eval(self._code, {"__builtins__": {}, "roofgen_ceil_div": lambda a, b: -(-a // b)}, sizes)


class _TensorParameter:
    def __init__(self, described: Mapping[str, Any]):
        self.name: str = described["name"]
        self.dtype: str = {"tf32": "fp32"}.get(described["dtype"], described["dtype"])
        self.writes: bool = described["role"] != "input"
        self.sides = [_Formula(text) for text in described["formulas"]["shape"]]
        self.strides = [_Formula(text) for text in described["formulas"]["strides"]]


class Pipeline:
    """Kernels in a CUDA context. Calling it queues them on a stream and does not wait:

        kernel(x=x, weight=weight, y=y)
        kernel({"x": x, "weight": weight, "y": y}, stream=stream)

    Tensors are objects of torch, with `__dlpack__` or `__cuda_array_interface__`, or addresses as integers; outputs are
    allocated by the caller. Sizes and strides come from the tensors, those that no tensor has are as in the request;
    numbers such as `eps` may be given. `info` has names, types and shapes. Threads may share a pipeline.
    """

    def __init__(self, handle: int, device: int | None):
        self._handle = handle
        self._device = device
        self._free = weakref.finalize(self, library.pipeline_free, handle)
        self._free.atexit = False  # the context may be gone
        #: roofgen.pipeline.1: problem, variant, kernels, parameters, conditions of other sizes
        self.info: dict = json.loads(library.pipeline_text(handle))
        of_kind: dict[str, dict[str, Any]] = {"tensor": {}, "size": {}, "stride": {}, "real": {}}
        for described in self.info["parameters"]:
            of_kind[described["kind"]][described["name"]] = described
        self._sizes = {name: described["default"] for name, described in of_kind["size"].items()}
        self._strides = set(of_kind["stride"])
        self._tensors = {name: _TensorParameter(described) for name, described in of_kind["tensor"].items()}

    def __call__(self, arguments: Mapping[str, Any] = {}, /, *, stream: Any = None, workspace: Any = None,
                 **more: Any) -> None:
        """Raises Error: of status USAGE for a wrong argument, UNAVAILABLE where the kernels are not for these sizes or
        strides.

        `stream`: of torch, of CuPy, with `__cuda_stream__`, or an address; None: torch's current stream if a tensor is
        torch's, else the default stream. `workspace`: device memory of `workspace_bytes(...)`, as a tensor or an
        address, that no other launch uses at the time; None: torch's allocator, if a tensor is torch's."""
        arguments = {**arguments, **more}
        torch_tensor = next((value for value in arguments.values() if _tensors.is_torch(value)), None)
        queue = _stream(stream, torch_tensor)
        bound = self._bind(arguments, queue)
        needed = self._workspace_bytes(bound)
        if needed and workspace is None and torch_tensor is not None:
            torch = sys.modules["torch"]
            workspace = torch.empty(needed, dtype=torch.uint8, device=torch_tensor.device)
        address, size = 0, needed
        if isinstance(workspace, int):
            address = workspace
        elif workspace is not None:
            tensor = self._read("workspace", workspace, queue)
            self._same_strides("workspace", tensor, _tensors.contiguous(tensor.shape))
            address, size = tensor.pointer, tensor.itemsize * math.prod(tensor.shape)
        status = library.launch(self._handle, c_void_p(queue), bound, len(bound), address, size)
        if status:
            raise last_error(status)

    def workspace_bytes(self, arguments: Mapping[str, Any] = {}, /, **more: Any) -> int:
        """Bytes of the workspace of a launch with these arguments, of which tensors may be missing."""
        return self._workspace_bytes(self._bind({**arguments, **more}, 0))

    def close(self) -> None:
        """Unloads the kernels; no launch may run. Without it they are unloaded when the object is no longer used."""
        self._free()

    def _workspace_bytes(self, bound: Any) -> int:
        needed = c_uint64()
        status = library.workspace_bytes(self._handle, bound, len(bound), byref(needed))
        if status:
            raise last_error(status)
        return needed.value

    def _bind(self, arguments: Mapping[str, Any], queue: int) -> Any:
        """The arguments of roofgen_launch, with the sizes and strides of tensors."""
        if not self._free.alive:
            raise Error(USAGE, "the pipeline is closed")
        values: dict[str, tuple[int, Value]] = {}
        known: dict[str, tuple[int, str]] = {}  # sizes and strides, and where they come from
        tensors: list[tuple[_TensorParameter, _tensors.Tensor]] = []

        def take(name: str, number: int, origin: str) -> None:
            other, first = known.setdefault(name, (number, origin))
            if other != number:
                raise Error(USAGE, f"{origin} is {number}, but {first} is {other}")

        for name, value in arguments.items():
            parameter = self._tensors.get(name)
            if parameter is None:
                values[name] = _number(name, value)
                if values[name][0] == INTEGER and (name in self._sizes or name in self._strides):
                    take(name, int(value), name)
            elif isinstance(value, int):
                values[name] = ADDRESS, Value(pointer=value)
            else:
                tensor = self._read(name, value, queue)
                self._check(parameter, tensor)
                tensors.append((parameter, tensor))
                values[name] = ADDRESS, Value(pointer=tensor.pointer)
        for parameter, tensor in tensors:
            for i, side in enumerate(parameter.sides):
                if side.text in self._sizes:
                    take(side.text, tensor.shape[i], f"{parameter.name}.shape[{i}]")
        sizes = {**self._sizes, **{name: number for name, (number, _) in known.items()}}
        for parameter, tensor in tensors:
            for i, side in enumerate(parameter.sides):
                if tensor.shape[i] != side.value(sizes):
                    status = UNAVAILABLE if side.text.isdigit() else USAGE  # a constant of the kernels
                    raise Error(status, f"{parameter.name}.shape[{i}] is {tensor.shape[i]}; "
                                        f"{side.value(sizes)} was expected")
            strides = list(_tensors.contiguous(tensor.shape))
            for i, stride in enumerate(parameter.strides if parameter.sides else ()):
                if stride.text not in self._strides:
                    strides[i] = stride.value(sizes)
                elif tensor.shape[i] > 1:
                    take(stride.text, tensor.strides[i], f"{parameter.name}'s stride of side {i}")
                    strides[i] = tensor.strides[i]
            self._same_strides(parameter.name, tensor, tuple(strides))
        for name, (number, _) in known.items():
            values.setdefault(name, (INTEGER, Value(integer=number)))
        return (Argument * len(values))(*(Argument(name.encode(), *value) for name, value in values.items()))

    def _read(self, name: str, value: Any, queue: int) -> _tensors.Tensor:
        try:
            tensor = _tensors.read(value, queue)
        except _tensors.NoTensor as error:
            raise Error(USAGE, f"{name} {error}") from None
        if None not in (tensor.device, self._device) and tensor.device != self._device:
            raise Error(USAGE, f"{name} is on the CUDA device {tensor.device}; the kernels are on {self._device}")
        if tensor.stream is not None and tensor.stream != (queue or 1) and not driver.order(tensor.stream, queue):
            raise Error(USAGE, f"{name}: the driver cannot wait for its stream {tensor.stream}")
        return tensor

    @staticmethod
    def _check(parameter: _TensorParameter, tensor: _tensors.Tensor) -> None:
        name = parameter.name
        if tensor.dtype != parameter.dtype:
            raise Error(USAGE, f"{name} has elements of {tensor.dtype}; {parameter.dtype} was expected")
        if parameter.sides and len(tensor.shape) != len(parameter.sides):
            sides = ", ".join(side.text for side in parameter.sides)
            raise Error(USAGE, f"{name} has {len(tensor.shape)} dimensions; {len(parameter.sides)} were expected: {sides}")
        if parameter.writes and tensor.readonly:
            raise Error(USAGE, f"{name} is an output, but its tensor is read-only")

    @staticmethod
    def _same_strides(name: str, tensor: _tensors.Tensor, expected: tuple) -> None:
        """The stride of a side of one element matters to nobody."""
        if any(side > 1 and a != b for side, a, b in zip(tensor.shape, tensor.strides, expected)):
            raise Error(USAGE, f"{name} has the strides {tensor.strides}; {expected} elements were expected")


def _number(name: str, value: Any) -> tuple[int, Value]:
    if isinstance(value, numbers.Integral):
        if not -2**63 <= value < 2**63:
            raise Error(USAGE, f"{name} is {value}, which has no 64 bits")
        return INTEGER, Value(integer=int(value))
    if isinstance(value, numbers.Real):
        return REAL, Value(real=float(value))
    return ADDRESS, Value(pointer=0)  # the library says that this is no tensor, or that it does not know the name


def _stream(stream: Any, torch_tensor: Any) -> int:
    """The address of a CUstream; 0: the default stream."""
    if stream is None:
        if torch_tensor is None or torch_tensor.device.type != "cuda":
            return 0
        return sys.modules["torch"].cuda.current_stream(torch_tensor.device).cuda_stream
    if isinstance(stream, int):
        return stream
    for attribute in ("cuda_stream", "ptr"):  # torch, CuPy
        if hasattr(stream, attribute):
            return getattr(stream, attribute)
    if hasattr(stream, "__cuda_stream__"):  # cuda.core: (version, address)
        return stream.__cuda_stream__()[1]
    raise Error(USAGE, f"stream is of type {type(stream).__name__}; one of torch or CuPy, or an address, was expected")
