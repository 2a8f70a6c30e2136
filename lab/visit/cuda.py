"""One GPU through the CUDA driver and NVML with ctypes: kernels, memory, and the timing of calls on a stream. The
numbers are cuda.h's and nvml.h's."""
import ctypes
import math
import os
import time
import uuid
from pathlib import Path

from timing import UNAVAILABLE, USAGE, Stop

# The gate and the sweep of roofgen's own timer (runtime/cuda/helpers.h): in a package beside this file.
HELPERS = Path(__file__).with_name("helpers.ptx")
if not HELPERS.exists():
    HELPERS = Path(__file__).resolve().parents[2] / "runtime/cuda/helpers.ptx"
MOST_GATE_NS, MOST_ATTEMPTS = 1_000_000_000, 6
SWEEP_THREADS, SWEEP_CTAS_PER_SM = 256, 8
MAX_DYNAMIC_SMEM, NON_PORTABLE_CLUSTER = 8, 14  # CUfunction_attribute
CLUSTER, OVERLAP = 4, 6  # CUlaunchAttributeID
SMS, L2_BYTES, MAJOR, MINOR = 16, 38, 75, 76  # CUdevice_attribute
NON_BLOCKING = 1  # CUstream_flags
WRONG_IMAGE = (200, 209)  # CUDA_ERROR_INVALID_IMAGE, CUDA_ERROR_NO_BINARY_FOR_GPU
NOT_READY = 600
DATA_TYPE = {"fp8": 0, "int8": 0, "int32": 3, "fp16": 6, "fp32": 7, "tf32": 7, "bf16": 9}  # CUtensorMapDataType
SWIZZLE = {0: 0, 32: 1, 64: 2, 128: 3}
PROMOTION = {0: 0, 64: 1, 128: 2, 256: 3}


class DriverError(Exception):
    pass


class Library:
    """A shared library, the first of these that is found. Integers are passed with 64 bits: 64-bit systems ignore the
    upper ones where a function takes fewer."""

    def __init__(self, name, *others):
        try:
            self.lib, self.name = ctypes.CDLL(name), name
        except OSError:
            if not others:
                raise
            Library.__init__(self, *others)

    def status(self, name, *arguments):
        """Calls a function. Raises AttributeError when there is none of the name."""
        wide = (ctypes.c_uint64(each) if isinstance(each, int) else each for each in arguments)
        return getattr(self.lib, name)(*wide)


class Attribute(ctypes.Structure):
    """CUlaunchAttribute: an id, then a union of 64 bytes at offset 8."""
    _fields_ = [("id", ctypes.c_int), ("pad", ctypes.c_int), ("value", ctypes.c_uint * 16)]


class Config(ctypes.Structure):
    """CUlaunchConfig"""
    _fields_ = [("dims", ctypes.c_uint * 6), ("smem", ctypes.c_uint), ("stream", ctypes.c_void_p),
                ("attributes", ctypes.POINTER(Attribute)), ("count", ctypes.c_uint)]


class Driver(Library):
    def __init__(self, rehearsal=False):
        try:
            super().__init__(os.environ.get("ROOFGEN_LIBCUDA") or "libcuda.so.1")
        except OSError as error:
            raise Stop(UNAVAILABLE, f"no CUDA driver: {error}") from None
        self.simulated = hasattr(self.lib, "roofgen_simulated_driver")
        if self.simulated and not rehearsal:
            raise Stop(UNAVAILABLE, "the CUDA driver is simulated (docs/use/shim.md): its times are not measurements")

    def check(self, status, doing):
        if status:
            text = ctypes.c_char_p()
            self.status("cuGetErrorString", status, ctypes.byref(text))
            raise DriverError(f"{doing}: {(text.value or b'unknown error').decode()} ({status})")

    def call(self, doing, name, *arguments):
        self.check(self.status(name, *arguments), doing)

    def get(self, kind, name, *arguments):
        """The value of this ctype that a call stores through its first argument."""
        value = kind()
        self.call(name, name, ctypes.byref(value), *arguments)
        return value

    def tensor_map(self, spec, address):
        """A CUtensorMap: 128 bytes, aligned to 128 within a larger buffer that the caller keeps. (buffer, address)"""
        room, rank = ctypes.create_string_buffer(256), len(spec["dims"])
        at = (ctypes.addressof(room) + 127) // 128 * 128
        u64, u32 = ctypes.c_uint64 * rank, ctypes.c_uint32 * rank
        self.call("encoding a tensor map", "cuTensorMapEncodeTiled", at, DATA_TYPE[spec["dtype"]], rank, address,
                  u64(*spec["dims"]), u64(*spec["stride_bytes"]), u32(*spec["box"]), u32(*[1] * rank), 0,
                  SWIZZLE[spec["swizzle_bytes"]], PROMOTION[spec["l2_promotion_bytes"]], int(spec["nan_fill"]))
        return room, at


class Kernel:
    """One kernel of a replay (docs/use/counters.md), loaded into the current context."""

    def __init__(self, driver, kernel):
        self.driver, self.entry, self.launch = driver, kernel["entry"], kernel["launch"]
        entry, module, self.function = self.entry, ctypes.c_void_p(), ctypes.c_void_p()
        status = driver.status("cuModuleLoadDataEx", ctypes.byref(module), kernel["cubin"], 0, None, None)
        self.from_ptx = status in WRONG_IMAGE
        if self.from_ptx:
            status = driver.status("cuModuleLoadDataEx", ctypes.byref(module), kernel["ptx"], 0, None, None)
        driver.check(status, f"loading {entry} (compiled for {kernel['arch']})")
        driver.call(f"finding {entry}", "cuModuleGetFunction", ctypes.byref(self.function), module, entry.encode())
        driver.call(f"shared memory of {entry}", "cuFuncSetAttribute", self.function, MAX_DYNAMIC_SMEM,
                    self.launch["smem_bytes"])
        if math.prod(self.launch["cluster"]) > 8:
            driver.call(f"cluster of {entry}", "cuFuncSetAttribute", self.function, NON_PORTABLE_CLUSTER, 1)

    def bind(self, addresses):
        """A function of a stream that launches the kernel on the buffers at these addresses (by name)."""
        launch, keep, pointers = self.launch, [], []
        for argument in launch["args"]:
            if argument.get("map"):
                value, pointer = self.driver.tensor_map(argument["map"], addresses[argument["name"]])
            elif "data" in argument:  # a struct
                value = ctypes.create_string_buffer(bytes.fromhex(argument["data"]), argument["bytes"])
                pointer = ctypes.addressof(value)
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
            self.driver.call(f"launching {self.entry}", "cuLaunchKernelEx", ctypes.byref(config), self.function, array,
                             None)

        run.keep = keep  # the arguments live as long as the function
        return run


class Nvml:
    """SM clock, power and temperature through the driver's NVML. Values that NVML does not report are absent."""

    def __init__(self, gpu_uuid):
        self.device = ctypes.c_void_p()
        try:
            self.lib = Library(os.environ.get("ROOFGEN_LIBNVML") or "libnvidia-ml.so.1")
            self.known = (self.lib.status("nvmlInit_v2") == 0 and self.lib.status(
                "nvmlDeviceGetHandleByUUID", gpu_uuid.encode(), ctypes.byref(self.device)) == 0)
        except (OSError, AttributeError):  # no NVML
            self.known = False

    def _numbers(self, calls):
        found, value = {}, ctypes.c_uint()
        for name, (function, *selector, scale) in calls.items() if self.known else ():
            if self.lib.status(function, self.device, *selector, ctypes.byref(value)) == 0:
                found[name] = value.value * scale
        return found

    def state(self):
        return self._numbers({"sm_mhz": ("nvmlDeviceGetClockInfo", 1, 1.0),  # NVML_CLOCK_SM
                              "power_w": ("nvmlDeviceGetPowerUsage", 1e-3),
                              "temperature_c": ("nvmlDeviceGetTemperature", 0, 1.0)})  # NVML_TEMPERATURE_GPU

    def facts(self):
        facts = self._numbers({"max_sm_mhz": ("nvmlDeviceGetMaxClockInfo", 1, 1.0),
                               "power_limit_w": ("nvmlDeviceGetPowerManagementLimit", 1e-3)})
        text = ctypes.create_string_buffer(80)
        if self.known and self.lib.status("nvmlSystemGetDriverVersion", text, len(text)) == 0:
            facts["driver"] = text.value.decode()
        return facts


class Gpu:
    """Times calls of contenders on its stream, which may become torch's. The context is the primary one, which torch
    and cuBLASLt use too. All is freed at the end of the process."""

    def __init__(self, ordinal, rehearsal=False):
        self.driver = Driver(rehearsal)
        get, call = self.driver.get, self.driver.call
        status = self.driver.status("cuInit", 0)
        count = get(ctypes.c_int, "cuDeviceGetCount").value if status == 0 else 0
        if count == 0:
            raise Stop(UNAVAILABLE, f"the CUDA driver finds no GPU ({status})")
        if not 0 <= ordinal < count:
            raise Stop(USAGE, f"there is no GPU {ordinal}; this machine has {count}, counted from 0")
        device = get(ctypes.c_int, "cuDeviceGet", ordinal)
        call("selecting the GPU", "cuCtxSetCurrent", get(ctypes.c_void_p, "cuDevicePrimaryCtxRetain", device))
        self.stream = get(ctypes.c_void_p, "cuStreamCreate", NON_BLOCKING).value
        self.start, self.stop = (get(ctypes.c_void_p, "cuEventCreate", 0) for _ in range(2))
        sms, self.l2_bytes, major, minor = (get(ctypes.c_int, "cuDeviceGetAttribute", number, device).value
                                            for number in (SMS, L2_BYTES, MAJOR, MINOR))
        version = get(ctypes.c_int, "cuDriverGetVersion").value
        self.cuda_version = f"{version // 1000}.{version % 1000 // 10}"
        identity = f"GPU-{uuid.UUID(bytes=bytes(get(ctypes.c_ubyte * 16, 'cuDeviceGetUuid_v2', device)))}"
        self.nvml = Nvml(identity)
        self.state = self.nvml.state
        name = get(ctypes.c_char * 256, "cuDeviceGetName", 255, device).value.decode()
        self.facts = {"name": name, "sms": sms, "l2_bytes": self.l2_bytes, "cc": f"{major}.{minor}",
                      "memory_bytes": get(ctypes.c_size_t, "cuDeviceTotalMem_v2", device).value, "uuid": identity}
        # Two halves of at least twice L2: one as large as L2 leaves parts of the old contents in it. The first is
        # written; reading the second evicts the dirty lines, which the sample would otherwise have to write back.
        half = 2 * max(self.l2_bytes, 32 << 20) if not self.driver.simulated else 1 << 20
        self.flush_bytes, at = 2 * half, self.allocate(2 * half, "emptying L2")
        self.fill(at, 0, 2 * half)
        self.sweeps = [self.helper("roofgen_sweep", sms * SWEEP_CTAS_PER_SM, SWEEP_THREADS, (first, 8), (half // 16, 8),
                                   (write, 4)) for first, write in ((at, 1), (at + half, 0))]
        self.gate = self.helper("roofgen_gate", 1, 1, (0, 8))
        self.wait("starting")
        self.gates, self.lost = {}, False  # gates by contender: nanoseconds

    def helper(self, entry, ctas, threads, *arguments):
        ptx = HELPERS.read_bytes()
        launch = {"grid": [ctas, 1, 1], "block": [threads, 1, 1], "cluster": [1, 1, 1], "smem_bytes": 0,
                  "overlap": False, "args": [{"bits": bits, "bytes": size} for bits, size in arguments]}
        return Kernel(self.driver, {"entry": entry, "arch": "PTX", "cubin": ptx, "ptx": ptx, "launch": launch}).bind({})

    def describe(self):
        return {**self.facts, **self.nvml.facts()}

    def wait(self, doing):
        self.driver.call(doing, "cuStreamSynchronize", self.stream)

    def allocate(self, size, purpose):
        address = ctypes.c_uint64()
        self.driver.call(f"allocating {size} bytes of GPU memory for {purpose}", "cuMemAlloc_v2", ctypes.byref(address),
                         max(size, 1))
        return address.value

    def free(self, address):
        self.driver.call("freeing memory", "cuMemFree_v2", address)

    def fill(self, address, value, size):
        self.driver.call("filling memory", "cuMemsetD8Async", address, value, size, self.stream)

    def write(self, address, data):
        self.driver.call("copying to the GPU", "cuMemcpyHtoDAsync_v2", address, data, len(data), self.stream)

    def copy(self, to, source, size):
        self.driver.call("copying on the GPU", "cuMemcpyDtoDAsync_v2", to, source, size, self.stream)

    def download(self, address, size):
        data = ctypes.create_string_buffer(size)
        self.driver.call("copying from the GPU", "cuMemcpyDtoHAsync_v2", data, address, size, self.stream)
        self.wait("copying from the GPU")
        return data.raw

    def settle(self):
        """After an error: waits, and finds out whether the context is lost."""
        try:
            self.wait("settling")
        except DriverError:
            self.lost = True

    def time(self, contender, set_index, cold):
        """Nanoseconds of one call. A gate holds the stream until all is queued, so that the host's launch rate does not
        show. A sample whose gate opened too early is repeated with a gate twice as long. The next sample begins with
        the old length, or every pause of the host would idle and cool the GPU from then on; two such in a row are no
        pause."""
        try:
            if contender.name not in self.gates:
                self.gates[contender.name] = self.first_gate(contender, set_index)
            gate_ns = self.gates[contender.name]
            for late in range(MOST_ATTEMPTS):
                ns = self.attempt(contender, set_index, cold, min(gate_ns << late, MOST_GATE_NS))
                if ns is not None:
                    self.gates[contender.name] = min(gate_ns << (late > 1), MOST_GATE_NS)
                    return ns
            raise RuntimeError("the host could not queue the launches while the stream was held: it waits for the GPU"
                               " inside the call")
        except Exception:
            self.settle()
            raise

    def attempt(self, contender, set_index, cold, gate_ns):
        """None when the gate opened before everything was queued. A simulated driver has no clock to hold."""
        driver, record = self.driver, ("recording an event", "cuEventRecord")
        if driver.simulated:
            pass
        elif cold:
            for sweep in self.sweeps:
                sweep(self.stream)
        else:
            contender.run(set_index)
        if not driver.simulated:
            self.gate.keep[0].value = gate_ns
            self.gate(self.stream)
        driver.call(*record, self.start, self.stream)
        contender.run(set_index)
        driver.call(*record, self.stop, self.stream)
        held = driver.status("cuEventQuery", self.start)  # nothing has run yet if all was queued in time
        self.wait("running")
        driver.check(held if held != NOT_READY else 0, "asking for an event")
        ms = driver.get(ctypes.c_float, "cuEventElapsedTime", self.start, self.stop).value
        return ms * 1e6 if held == NOT_READY or driver.simulated else None

    def first_gate(self, contender, set_index):
        """Twice the time in which the host queues one call, in nanoseconds."""
        contender.run(set_index)
        self.wait("running")
        began = time.perf_counter_ns()
        contender.run(set_index)
        took = time.perf_counter_ns() - began
        self.wait("running")
        return min(2 * took + 50_000, MOST_GATE_NS)
