"""roofgen's CUBINs through the CUDA driver with ctypes, in the current context: torch's. The numbers are cuda.h's."""
import ctypes
import math
import os

MAX_DYNAMIC_SMEM, NON_PORTABLE_CLUSTER = 8, 14  # CUfunction_attribute
CLUSTER, OVERLAP = 4, 6  # CUlaunchAttributeID
WRONG_IMAGE = (200, 209)  # CUDA_ERROR_INVALID_IMAGE, CUDA_ERROR_NO_BINARY_FOR_GPU
DATA_TYPE = {"fp16": 6, "fp32": 7, "bf16": 9}  # CUtensorMapDataType
SWIZZLE = {0: 0, 32: 1, 64: 2, 128: 3}
PROMOTION = {0: 0, 64: 1, 128: 2, 256: 3}


class DriverError(Exception):
    pass


class Attribute(ctypes.Structure):
    """CUlaunchAttribute: an id, then a union of 64 bytes at offset 8."""
    _fields_ = [("id", ctypes.c_int), ("pad", ctypes.c_int), ("value", ctypes.c_uint * 16)]


class Config(ctypes.Structure):
    """CUlaunchConfig"""
    _fields_ = [("dims", ctypes.c_uint * 6), ("smem", ctypes.c_uint), ("stream", ctypes.c_void_p),
                ("attributes", ctypes.POINTER(Attribute)), ("count", ctypes.c_uint)]


class Driver:
    def __init__(self):
        self.lib = ctypes.CDLL(os.environ.get("ROOFGEN_LIBCUDA") or "libcuda.so.1")

    def check(self, status, doing):
        if status:
            text = ctypes.c_char_p()
            self.lib.cuGetErrorString(status, ctypes.byref(text))
            raise DriverError(f"{doing}: {(text.value or b'unknown error').decode()} ({status})")

    def version(self):
        v = ctypes.c_int()
        self.lib.cuDriverGetVersion(ctypes.byref(v))
        return f"{v.value // 1000}.{v.value % 1000 // 10}"

    def tensor_map(self, spec, address):
        """A CUtensorMap: 128 bytes, aligned to 128 within a larger buffer that the caller keeps. (buffer, address)"""
        room, rank = ctypes.create_string_buffer(256), len(spec["dims"])
        at = (ctypes.addressof(room) + 127) // 128 * 128
        u64, u32 = ctypes.c_uint64 * rank, ctypes.c_uint32 * rank
        self.check(self.lib.cuTensorMapEncodeTiled(
            ctypes.c_void_p(at), DATA_TYPE[spec["dtype"]], rank, ctypes.c_void_p(address), u64(*spec["dims"]),
            u64(*spec["stride_bytes"]), u32(*spec["box"]), u32(*[1] * rank), 0, SWIZZLE[spec["swizzle_bytes"]],
            PROMOTION[spec["l2_promotion_bytes"]], int(spec["nan_fill"])), "encoding a tensor map")
        return room, at


class Kernel:
    """One kernel of a bundle, loaded into the current context."""

    def __init__(self, driver, kernel):
        self.driver, self.entry, self.launch = driver, kernel["entry"], kernel["launch"]
        lib, check, entry = driver.lib, driver.check, self.entry
        module, self.function = ctypes.c_void_p(), ctypes.c_void_p()
        status = lib.cuModuleLoadDataEx(ctypes.byref(module), kernel["cubin"], 0, None, None)
        self.from_ptx = status in WRONG_IMAGE
        if self.from_ptx:
            status = lib.cuModuleLoadDataEx(ctypes.byref(module), kernel["ptx"] + b"\0", 0, None, None)
        check(status, f"loading {entry} (compiled for {kernel['arch']})")
        check(lib.cuModuleGetFunction(ctypes.byref(self.function), module, entry.encode()), f"finding {entry}")
        check(lib.cuFuncSetAttribute(self.function, MAX_DYNAMIC_SMEM, self.launch["smem_bytes"]),
              f"shared memory of {entry}")
        if math.prod(self.launch["cluster"]) > 8:
            check(lib.cuFuncSetAttribute(self.function, NON_PORTABLE_CLUSTER, 1), f"cluster of {entry}")

    def bind(self, addresses):
        """A function of a stream that launches the kernel on the buffers at these addresses (by name)."""
        launch, keep, pointers = self.launch, [], []
        for argument in launch["args"]:
            if argument.get("map"):
                value, pointer = self.driver.tensor_map(argument["map"], addresses[argument["name"]])
            else:
                bits = addresses[argument["name"]] if argument.get("buffer") else argument["bits"]
                value = (ctypes.c_uint32 if argument["bytes"] == 4 else ctypes.c_uint64)(bits)
                pointer = ctypes.addressof(value)
            keep.append(value)
            pointers.append(pointer)
        array = (ctypes.c_void_p * len(pointers))(*pointers)
        attributes = []
        if launch["cluster"] != [1, 1, 1]:
            attributes.append(Attribute(CLUSTER, 0, (ctypes.c_uint * 16)(*launch["cluster"])))
        if launch["overlap"]:
            attributes.append(Attribute(OVERLAP, 0, (ctypes.c_uint * 16)(1)))
        config = Config((ctypes.c_uint * 6)(*launch["grid"], *launch["block"]), launch["smem_bytes"], None,
                        (Attribute * len(attributes))(*attributes), len(attributes))

        def run(stream):
            config.stream = stream
            status = self.driver.lib.cuLaunchKernelEx(ctypes.byref(config), self.function, array, None)
            self.driver.check(status, f"launching {self.entry}")

        run.keep = keep  # the arguments live as long as the function
        return run
