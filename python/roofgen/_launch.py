"""Launches of a pipeline's kernels: arguments by name, sizes and strides from the tensors."""
from __future__ import annotations

import json
import math
import numbers
import re
import sys
import weakref
from ctypes import byref, c_uint64, c_void_p
from typing import Any, Mapping, NamedTuple

from . import _tensors
from ._native import ADDRESS, INTEGER, REAL, UNAVAILABLE, USAGE, Argument, Error, driver, last_error, library


class _Formula:
    """A side or a stride of a tensor in elements: a number, a parameter, or C of sizes, which are positive."""

    def __init__(self, text: str):
        self.text = text
        self._code = compile(text.replace("/", "//"), text, "eval")
        plain = re.fullmatch(r"([A-Za-z_]\w*)(?: \+ (\d+))?", text)
        self.name, self.more = (plain[1], int(plain[2] or 0)) if plain else ("", 0)  # "batch + 1"

    def value(self, sizes: Mapping[str, int]) -> int:
        return eval(self._code, {"__builtins__": {}, "roofgen_ceil_div": lambda a, b: -(-a // b)}, sizes)


class _TensorParameter:
    def __init__(self, described: Mapping[str, Any]):
        self.name: str = described["name"]
        self.dtype: str = {"tf32": "fp32"}.get(described["dtype"], described["dtype"])
        self.writes: bool = described["role"] != "input"
        self.sides = [_Formula(text) for text in described["formulas"]["shape"]]
        self.strides = [_Formula(text) for text in described["formulas"]["strides"]]

    def fitted(self, layout: _tensors.Layout) -> _tensors.Layout:
        """The layout; packed sequences may lack the first side, which is 1."""
        if not self.sides or self.sides[0].text != "1" or len(layout.shape) + 1 != len(self.sides):
            return layout
        whole = layout.shape[0] * layout.strides[0] if layout.shape else 1
        return layout._replace(shape=(1, *layout.shape), strides=(whole, *layout.strides))

    def check(self, layout: _tensors.Layout) -> None:
        if layout.dtype != self.dtype:
            raise Error(USAGE, f"{self.name} has elements of {layout.dtype}; {self.dtype} was expected")
        if self.sides and len(layout.shape) != len(self.sides):
            sides = ", ".join(side.text for side in self.sides)
            raise Error(USAGE, f"{self.name} has {len(layout.shape)} dimensions; "
                               f"{len(self.sides)} were expected: {sides}")
        if self.writes and layout.readonly:
            raise Error(USAGE, f"{self.name} is an output, but its tensor is read-only")


class _Plan(NamedTuple):
    """The arguments of roofgen_launch but for addresses."""
    type: Any
    image: bytes
    names: list  # to which the image points
    workspace: int  # bytes


_MEMBERS = {ADDRESS: "pointer", INTEGER: "integer", REAL: "real"}
_MOST_PLANS = 4096  # some megabytes


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
        self._plans: dict[tuple, _Plan] = {}  # by all of a call but addresses
        self._tensors = {name: _TensorParameter(described) for name, described in of_kind["tensor"].items()}

    def __call__(self, arguments: Mapping[str, Any] = {}, /, *, stream: Any = None, workspace: Any = None,
                 **more: Any) -> None:
        """Raises Error: of status USAGE for a wrong argument, UNAVAILABLE where the kernels are not for these sizes or
        strides.

        `stream`: of torch, of CuPy, with `__cuda_stream__`, or an address; None: torch's current stream if a tensor is
        torch's, else the default stream. `workspace`: device memory of `workspace_bytes(...)`, as a tensor or an
        address, that no other launch uses at the time; None: torch's allocator, if a tensor is torch's and `stream` is
        None, since it reuses memory in the order of its current stream."""
        arguments = {**arguments, **more}
        torch_tensor = next((value for value in arguments.values() if _tensors.is_torch(value)), None)
        queue = _stream(stream, torch_tensor)
        plan, addresses, owners = self._bind(arguments, queue)
        size, at = plan.workspace, 0
        if size and workspace is None and stream is None and torch_tensor is not None:
            torch = sys.modules["torch"]
            workspace = torch.empty(size, dtype=torch.uint8, device=torch_tensor.device)
        if isinstance(workspace, int):
            at = _address("workspace", workspace)
        elif workspace is not None:
            tensor = self._read("workspace", workspace, queue)
            layout = tensor.layout
            _check_strides("workspace", layout, _tensors.contiguous(layout.shape))
            size, at = layout.itemsize * math.prod(layout.shape), tensor.address
        bound = plan.type.from_buffer_copy(plan.image)
        for argument, address in zip(bound, addresses):
            argument.value.pointer = address
        status = library.launch(self._handle, c_void_p(queue), bound, len(bound), at, size)
        owners.clear()  # until here, because a producer may have exported a copy
        if status:
            raise last_error(status)

    def workspace_bytes(self, arguments: Mapping[str, Any] = {}, /, **more: Any) -> int:
        """Bytes of the workspace of a launch with these arguments, of which tensors may be missing."""
        return self._bind({**arguments, **more}, 0)[0].workspace

    def close(self) -> None:
        """Unloads the kernels; no launch may run. Without it they are unloaded when the object is no longer used."""
        self._free()

    def _bind(self, arguments: Mapping[str, Any], queue: int) -> tuple[_Plan, list[int], list[Any]]:
        """Also the addresses, which are the first arguments of the plan, and the objects that keep them valid."""
        if not self._free.alive:
            raise Error(USAGE, "the pipeline is closed")
        addresses, owners, tensors, others = [], [], [], []
        for name, value in arguments.items():
            if name not in self._tensors:
                others.append((name, *_number(name, value)))
            elif isinstance(value, int):
                addresses.append(_address(name, value))
                tensors.append((name, None))
            else:
                tensor = self._read(name, value, queue)
                addresses.append(tensor.address)
                owners.append(tensor.owner)
                tensors.append((name, tensor.layout))
        key = tuple(tensors), tuple(others)
        plan = self._plans.get(key)
        if plan is None:
            plan = self._plan(*key)
            if len(self._plans) >= _MOST_PLANS:
                self._plans.clear()
            self._plans[key] = plan
        return plan, addresses, owners

    def _plan(self, tensors: tuple, others: tuple) -> _Plan:
        """Checks the tensors, and takes sizes and strides from them."""
        known: dict[str, tuple[int, str]] = {}  # and where they come from

        def take(name: str, number: int, origin: str) -> None:
            other, first = known.setdefault(name, (number, origin))
            if other != number:
                raise Error(USAGE, f"{origin} is {number}, but {first} is {other}")

        for name, kind, number in others:
            if kind == INTEGER and (name in self._sizes or name in self._strides):
                take(name, number, name)
        with_layout = [(self._tensors[name], self._tensors[name].fitted(layout)) for name, layout in tensors if layout]
        for parameter, layout in with_layout:
            parameter.check(layout)
            for i, side in enumerate(parameter.sides):
                if side.name in self._sizes:
                    less = f" less {side.more}" if side.more else ""
                    take(side.name, layout.shape[i] - side.more, f"{parameter.name}.shape[{i}]{less}")
        sizes = {**self._sizes, **{name: number for name, (number, _) in known.items()}}
        for parameter, layout in with_layout:
            for i, side in enumerate(parameter.sides):
                if layout.shape[i] != side.value(sizes):
                    status = UNAVAILABLE if side.text.isdigit() else USAGE  # a constant of the kernels
                    raise Error(status, f"{parameter.name}.shape[{i}] is {layout.shape[i]}; "
                                        f"{side.value(sizes)} was expected")
            strides = list(_tensors.contiguous(layout.shape))
            for i, stride in enumerate(parameter.strides if parameter.sides else ()):
                if stride.text not in self._strides:
                    strides[i] = stride.value(sizes)
                elif layout.shape[i] > 1:
                    take(stride.text, layout.strides[i], f"{parameter.name}'s stride of side {i}")
                    strides[i] = layout.strides[i]
            _check_strides(parameter.name, layout, tuple(strides))
        given = {name for name, *_ in others}
        all_arguments = [(name, ADDRESS, 0) for name, _ in tensors]
        all_arguments += others
        all_arguments += [(name, INTEGER, number) for name, (number, _) in known.items() if name not in given]
        names = [name.encode() for name, *_ in all_arguments]
        bound = (Argument * len(names))()
        for argument, name, (_, kind, number) in zip(bound, names, all_arguments):
            argument.name, argument.kind = name, kind
            setattr(argument.value, _MEMBERS[kind], number)
        needed = c_uint64()
        status = library.workspace_bytes(self._handle, bound, len(bound), byref(needed))
        if status:
            raise last_error(status)
        return _Plan(type(bound), bytes(bound), names, needed.value)

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


def _check_strides(name: str, layout: _tensors.Layout, expected: tuple) -> None:
    """The stride of a side of one element matters to nobody, and no stride of a tensor without elements."""
    if 0 not in layout.shape and any(side > 1 and a != b for side, a, b in zip(layout.shape, layout.strides, expected)):
        raise Error(USAGE, f"{name} has the strides {layout.strides}; {expected} elements were expected")


def _address(name: str, value: int) -> int:
    if not 0 <= value < 2**64:  # ctypes would cut it off
        raise Error(USAGE, f"{name} is {value}, which is no address")
    return value


def _number(name: str, value: Any) -> tuple[int, Any]:
    if isinstance(value, numbers.Integral):
        if not -2**63 <= value < 2**63:
            raise Error(USAGE, f"{name} is {value}, which has no 64 bits")
        return INTEGER, int(value)
    if isinstance(value, numbers.Real):
        return REAL, float(value)
    return ADDRESS, 0  # the library says that this is no tensor, or that it does not know the name


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
