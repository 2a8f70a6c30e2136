"""roofgen's CUBINs through the CUDA driver by ctypes, in whatever context is current: torch's. Numbers are of cuda.h."""

import ctypes

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
    def __init__(self, library="libcuda.so.1"):
        self.lib = ctypes.CDLL(library)
        # Without these a 64-bit address or stream would be cut to an int.
        p, u, i = ctypes.c_void_p, ctypes.c_uint, ctypes.c_int
        self.lib.cuModuleLoadDataEx.argtypes = [p, p, u, p, p]
        self.lib.cuModuleGetFunction.argtypes = [p, p, ctypes.c_char_p]
        self.lib.cuFuncSetAttribute.argtypes = [p, i, i]
        self.lib.cuLaunchKernel.argtypes = [p, u, u, u, u, u, u, u, p, p, p]
        self.lib.cuGetErrorString.argtypes = [i, p]

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
        """A descriptor, 128 bytes at an address that is a multiple of 128."""
        room = ctypes.create_string_buffer(256)
        at = (ctypes.addressof(room) + 127) // 128 * 128
        rank = len(spec["dims"])
        u64, u32 = ctypes.c_uint64 * rank, ctypes.c_uint32 * rank
        strides = (ctypes.c_uint64 * max(rank - 1, 1))(*spec["stride_bytes"])
        self.check(self.lib.cuTensorMapEncodeTiled(
            ctypes.c_void_p(at), DATA_TYPE[spec["dtype"]], ctypes.c_uint32(rank), ctypes.c_void_p(address), u64(*spec["dims"]), strides,
            u32(*spec["box"]), u32(*([1] * rank)), 0, SWIZZLE[spec["swizzle_bytes"]], PROMOTION[spec["l2_promotion_bytes"]],
            int(spec["nan_fill"])), "describing a tensor")
        return room, at

    def kernel(self, cubin, ptx, spec):
        return Kernel(self, cubin, ptx, spec)


class Kernel:
    """One loaded kernel and its launch."""

    def __init__(self, driver, cubin, ptx, spec):
        self.driver, self.spec = driver, spec
        self.from_ptx = False
        module, self.function = ctypes.c_void_p(), ctypes.c_void_p()
        entry, launch = spec["entry"], spec["launch"]
        status = driver.lib.cuModuleLoadDataEx(ctypes.byref(module), cubin, 0, None, None) if cubin else WRONG_IMAGE[0]
        if status in WRONG_IMAGE and ptx:
            self.from_ptx = True
            status = driver.lib.cuModuleLoadDataEx(ctypes.byref(module), ptx + b"\0", 0, None, None)
        driver.check(status, f"loading {entry} (compiled for {spec['arch']})")
        driver.check(driver.lib.cuModuleGetFunction(ctypes.byref(self.function), module, entry.encode()), f"finding {entry}")
        driver.check(driver.lib.cuFuncSetAttribute(self.function, MAX_DYNAMIC_SMEM, launch["smem_bytes"]), f"shared memory of {entry}")
        x, y, z = launch["cluster"]
        if x * y * z > 8:
            driver.check(driver.lib.cuFuncSetAttribute(self.function, NON_PORTABLE_CLUSTER, 1), f"cluster of {entry}")

    def bind(self, addresses):
        """A function of a stream that launches with buffers at these addresses (by name)."""
        launch, keep, pointers = self.spec["launch"], [], []
        for a in launch["args"]:
            if a.get("map"):
                room, at = self.driver.tensor_map(a["map"], addresses[a["name"]])
                keep.append(room)
                pointers.append(at)
                continue
            bits = addresses[a["name"]] if a.get("buffer") else a["bits"]
            value = (ctypes.c_uint32 if a["bytes"] == 4 else ctypes.c_uint64)(bits & ((1 << (8 * a["bytes"])) - 1))
            keep.append(value)
            pointers.append(ctypes.addressof(value))
        array = (ctypes.c_void_p * len(pointers))(*pointers)
        dims = [*launch["grid"], *launch["block"]]
        attributes = []
        if launch["cluster"] != [1, 1, 1]:
            attributes.append(Attribute(CLUSTER, 0, (ctypes.c_uint * 16)(*launch["cluster"])))
        if launch["overlap"]:
            attributes.append(Attribute(OVERLAP, 0, (ctypes.c_uint * 16)(1)))
        entry, driver, function = self.spec["entry"], self.driver, self.function

        if not attributes:
            def run(stream):
                driver.check(driver.lib.cuLaunchKernel(function, *dims, launch["smem_bytes"], stream, array, None), f"launching {entry}")
        else:
            made = (Attribute * len(attributes))(*attributes)
            config = Config((ctypes.c_uint * 6)(*dims), launch["smem_bytes"], None, made, len(attributes))

            def run(stream):
                config.stream = stream
                driver.check(driver.lib.cuLaunchKernelEx(ctypes.byref(config), function, array, None), f"launching {entry}")

        run.keep = (keep, array)  # what the pointers point to lives as long as the function
        return run
