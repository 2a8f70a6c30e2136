"""Tensors of any library as pointer, type, sides and strides: torch, DLPack, __cuda_array_interface__."""
from __future__ import annotations

import ctypes
import sys
from typing import Any, NamedTuple, Optional, Tuple


class Layout(NamedTuple):
    dtype: str  # of roofgen ("bf16"), or the foreign name of another one
    shape: Tuple[int, ...]
    strides: Tuple[int, ...]  # elements
    itemsize: int
    readonly: bool = False


class Tensor(NamedTuple):
    address: int
    layout: Layout
    device: Optional[int] = None  # None: unknown
    stream: Optional[int] = None  # on which its data is being made; None: any
    owner: Any = None  # keeps it alive


class NoTensor(Exception):
    """Why an object is no tensor on a CUDA device: "is on the CPU"."""


# Interfaces without bf16 or fp8 have them as unsigned integers or as opaque bytes of their size.
_TORCH = {"bfloat16": "bf16", "float16": "fp16", "float32": "fp32", "float8_e4m3fn": "fp8", "uint8": "fp8",
          "int8": "int8", "int32": "int32"}
_ARRAY_INTERFACE = {"f2": "fp16", "f4": "fp32", "i1": "int8", "i4": "int32", "V2": "bf16", "u2": "bf16", "V1": "fp8",
                    "u1": "fp8"}
# Code and bits of dlpack.h 1.1: int 0, uint 1, float 2, bfloat 4, float8_e4m3fn 10.
_DLPACK = {(2, 16): "fp16", (2, 32): "fp32", (0, 8): "int8", (0, 32): "int32", (4, 16): "bf16", (1, 16): "bf16",
           (10, 8): "fp8", (1, 8): "fp8"}
_CUDA_DEVICES = {2, 13}  # kDLCUDA, kDLCUDAManaged


class _DLTensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32),
                ("ndim", ctypes.c_int32), ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8),
                ("lanes", ctypes.c_uint16), ("shape", ctypes.POINTER(ctypes.c_int64)),
                ("strides", ctypes.POINTER(ctypes.c_int64)), ("byte_offset", ctypes.c_uint64)]


_capsule_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_capsule_pointer.restype, _capsule_pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]


def contiguous(shape: Tuple[int, ...]) -> Tuple[int, ...]:
    strides, pitch = [], 1
    for side in reversed(shape):
        strides.append(pitch)
        pitch *= side
    return tuple(reversed(strides))


def is_torch(value: Any) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


def read(value: Any, stream: int) -> Tensor:
    """Raises NoTensor. `stream` is that of the launch: DLPack's producers make their data ready for it."""
    if is_torch(value):
        return _from_torch(value)
    if hasattr(value, "__cuda_array_interface__"):
        return _from_array_interface(value)
    if hasattr(value, "__dlpack__"):
        return _from_dlpack(value, stream)
    raise NoTensor(f"is of type {type(value).__name__}; a tensor with __dlpack__ or __cuda_array_interface__, or an "
                   "address as an integer, was expected")


def _from_torch(value: Any) -> Tensor:
    if value.device.type != "cuda":
        raise NoTensor(f"is on the device {value.device}; a CUDA device was expected")
    dtype = str(value.dtype).rpartition(".")[2]
    layout = Layout(_TORCH.get(dtype, dtype), tuple(value.shape), tuple(value.stride()), value.element_size())
    return Tensor(value.data_ptr(), layout, value.device.index)


def _from_array_interface(value: Any) -> Tensor:
    """Version 2 or 3 (numba.readthedocs.io/en/stable/cuda/cuda_array_interface.html)."""
    interface = value.__cuda_array_interface__
    if interface.get("mask") is not None:
        raise NoTensor("has a mask, which no kernel takes")
    shape, typestr, (address, readonly) = tuple(interface["shape"]), interface["typestr"], interface["data"]
    size = int(typestr[2:])
    strides = interface.get("strides")
    if strides is None:
        strides = contiguous(shape)
    elif any(stride % size for stride in strides):
        raise NoTensor(f"has strides of {tuple(strides)} bytes, which are no multiples of its {size}")
    else:
        strides = tuple(stride // size for stride in strides)
    dtype = typestr if typestr[0] == ">" else _ARRAY_INTERFACE.get(typestr[1:], typestr)
    return Tensor(address or 0, Layout(dtype, shape, strides, size, bool(readonly)), None, interface.get("stream"))


def _from_dlpack(value: Any, stream: int) -> Tensor:
    """dmlc.github.io/dlpack/latest/python_spec.html. The capsule keeps its name, so it frees what it has by itself."""
    kind = int(value.__dlpack_device__()[0])
    if kind not in _CUDA_DEVICES:
        raise NoTensor(f"is on a device of DLPack's type {kind}; CUDA (2 or 13) was expected")
    capsule = value.__dlpack__(stream=stream or 1)  # 1: the default stream
    tensor = _DLTensor.from_address(_capsule_pointer(capsule, b"dltensor"))
    shape = tuple(tensor.shape[:tensor.ndim])
    strides = tuple(tensor.strides[:tensor.ndim]) if tensor.strides else contiguous(shape)
    dtype = _DLPACK.get((tensor.code, tensor.bits)) if tensor.lanes == 1 else None
    layout = Layout(dtype or f"DLPack's type {tensor.code}, {tensor.bits} bits", shape, strides,
                    tensor.bits * tensor.lanes // 8)
    return Tensor((tensor.data or 0) + tensor.byte_offset, layout, tensor.device_id, owner=capsule)
