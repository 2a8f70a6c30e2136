"""A stand-in for torch on a simulated driver: only what lab/visit/torch_peers.py calls, computed in Python.
FAKE_TORCH=hang, crash or wrong makes scaled_dot_product_attention behave so."""
import ctypes
import itertools
import math
import os
import struct
import types

_driver = ctypes.CDLL(os.environ["ROOFGEN_LIBCUDA"])
bfloat16, float16, float32, float8_e4m3fn, uint8 = "bf16", "fp16", "fp32", "fp8", "u8"


def _strides(shape):
    return tuple(math.prod(shape[i + 1:]) for i in range(len(shape)))


class Tensor:
    def __init__(self, address, kind, shape, strides=None):
        self.address, self.kind, self.shape, self.strides = address, kind, tuple(shape), strides or _strides(shape)

    def view(self, *how):
        if isinstance(how[0], str):
            size = {"bf16": 2, "fp16": 2, "fp32": 4, "fp8": 1}[how[0]]
            return Tensor(self.address, how[0], (math.prod(self.shape) // size,))
        assert math.prod(how) == math.prod(self.shape)
        return Tensor(self.address, self.kind, how)

    def transpose(self, i, j):
        shape, strides = list(self.shape), list(self.strides)
        shape[i], shape[j], strides[i], strides[j] = shape[j], shape[i], strides[j], strides[i]
        return Tensor(self.address, self.kind, shape, tuple(strides))

    def data_ptr(self):
        return self.address

    def values(self):
        """The elements by index."""
        assert self.kind == "bf16"
        span = sum((n - 1) * stride for n, stride in zip(self.shape, self.strides)) + 1
        data = ctypes.create_string_buffer(2 * span)
        _driver.cuMemcpyDtoH_v2(data, ctypes.c_uint64(self.address), ctypes.c_size_t(2 * span))
        flat = [struct.unpack("<f", b"\0\0" + data.raw[2 * i:2 * i + 2])[0] for i in range(span)]
        return {index: flat[sum(map(int.__mul__, index, self.strides))]
                for index in itertools.product(*map(range, self.shape))}

    def contiguous(self):
        return self if self.strides == _strides(self.shape) else made(self.values(), self.shape)


def made(values, shape):
    """A new tensor in bf16."""
    bits = []
    for index in itertools.product(*map(range, shape)):
        word, = struct.unpack("<I", struct.pack("<f", values[index]))
        bits.append((word + 0x7fff + (word >> 16 & 1)) >> 16 & 0xffff)
    data, address = struct.pack(f"<{len(bits)}H", *bits), ctypes.c_uint64()
    _driver.cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(len(data)))
    _driver.cuMemcpyHtoD_v2(address, data, ctypes.c_size_t(len(data)))
    return Tensor(address.value, "bf16", shape)


def as_tensor(memory, device):
    about = memory.__cuda_array_interface__
    return Tensor(about["data"][0], "u8", about["shape"])


cuda = types.SimpleNamespace(is_available=lambda: True,
                             current_stream=lambda: types.SimpleNamespace(cuda_stream=None))
