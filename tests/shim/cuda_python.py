#!/usr/bin/env python3
"""cuda-python's driver and NVRTC bindings on the libcuda.so.1 that the loader finds: vector add, saxpy, a reduction and
a transpose through shared memory, compared with numpy. Run with LD_LIBRARY_PATH on the simulated driver (docs/use/shim.md).

Exit status: 0 success, 1 a failed check, 77 bindings, numpy or NVRTC missing (the last line gives the reason).
"""
import ctypes
import os
import pathlib
import sys

try:
    import numpy
    from cuda.bindings import driver, nvrtc
except ImportError as error:
    print(f"skipped: {error}; `./roofgen test` installs cuda-bindings and numpy into build/python")
    sys.exit(77)

# add, saxpy, reduce and transpose are of the kernels there.
SOURCE = (pathlib.Path(__file__).resolve().parents[1] / "sim/fixtures/throughput.cu").read_text()


def call(result):
    """The results of a call to the bindings; an error ends the program with its name."""
    status, *values = result
    if int(status) != 0:
        name = driver.cuGetErrorName(status)[1] if isinstance(status, driver.CUresult) else status
        sys.exit(f"FAILED: {name}")
    return values[0] if len(values) == 1 else values


def compile_ptx(arch):
    """PTX of SOURCE, by NVRTC."""
    program = call(nvrtc.nvrtcCreateProgram(SOURCE.encode(), b"kernels.cu", 0, [], []))
    options = [f"--gpu-architecture=compute_{arch}".encode()]
    status, = nvrtc.nvrtcCompileProgram(program, len(options), options)
    if int(status) != 0:
        log = b" " * call(nvrtc.nvrtcGetProgramLogSize(program))
        call(nvrtc.nvrtcGetProgramLog(program, log))
        sys.exit(f"FAILED: NVRTC: {log.decode()}")
    ptx = b" " * call(nvrtc.nvrtcGetPTXSize(program))
    call(nvrtc.nvrtcGetPTX(program, ptx))
    call(nvrtc.nvrtcDestroyProgram(program))
    return ptx


class Gpu:
    """A context and the module; arrays live for one launch."""

    def __init__(self):
        call(driver.cuInit(0))
        self.device = call(driver.cuDeviceGet(0))
        attribute = driver.CUdevice_attribute
        major = call(driver.cuDeviceGetAttribute(attribute.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, self.device))
        minor = call(driver.cuDeviceGetAttribute(attribute.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, self.device))
        self.context = call(driver.cuDevicePrimaryCtxRetain(self.device))
        call(driver.cuCtxSetCurrent(self.context))
        self.stream = call(driver.cuStreamCreate(driver.CUstream_flags.CU_STREAM_NON_BLOCKING))
        self.module = call(driver.cuModuleLoadData(numpy.char.array(compile_ptx(10 * major + minor))))

    def launch(self, name, grid, block, arguments, out, smem=0):
        """Runs a kernel. Copies arrays among `arguments` to the device and returns the contents of argument `out` afterwards."""
        function = call(driver.cuModuleGetFunction(self.module, name.encode()))
        values, types, pointers = [], [], {}
        for i, argument in enumerate(arguments):
            if isinstance(argument, numpy.ndarray):
                pointers[i] = call(driver.cuMemAlloc(argument.nbytes))
                call(driver.cuMemcpyHtoDAsync(pointers[i], argument.ctypes.data, argument.nbytes, self.stream))
                values.append(int(pointers[i]))
                types.append(ctypes.c_void_p)
            else:
                values.append(argument)
                types.append(ctypes.c_float if isinstance(argument, float) else ctypes.c_int)
        call(driver.cuLaunchKernel(function, *grid, *block, smem, self.stream, (tuple(values), tuple(types)), 0))
        result = numpy.empty_like(arguments[out])
        call(driver.cuMemcpyDtoHAsync(result.ctypes.data, pointers[out], result.nbytes, self.stream))
        call(driver.cuStreamSynchronize(self.stream))
        for pointer in pointers.values():
            call(driver.cuMemFree(pointer))
        return result

    def close(self):
        call(driver.cuModuleUnload(self.module))
        call(driver.cuStreamDestroy(self.stream))
        call(driver.cuDevicePrimaryCtxRelease(self.device))


def served_by():
    """The CUDA driver mapped into this process, and whether it reports itself as simulated."""
    with open("/proc/self/maps") as maps:
        files = {line.split(maxsplit=5)[5].strip() for line in maps if "libcuda.so" in line}
    if len(files) != 1:
        sys.exit(f"FAILED: {len(files)} files serve libcuda: {sorted(files)}")
    file = files.pop()
    return file, hasattr(ctypes.CDLL(file), "roofgen_simulated_driver")


failures = 0


def check(what, good):
    global failures
    print("ok" if good else "FAILED", what)
    failures += not good


def main():
    try:
        call(nvrtc.nvrtcVersion())
    except Exception as error:  # whatever the bindings raise where they find no library
        print(f"skipped: no NVRTC: {error}".splitlines()[0])
        return 77
    gpu = Gpu()
    random = numpy.random.default_rng(1)
    a, b = (random.standard_normal(10007, dtype=numpy.float32) for _ in range(2))
    n = a.size
    check("vector add", numpy.array_equal(gpu.launch("add", (40, 1, 1), (256, 1, 1), (a, b, numpy.zeros_like(a), n), 2), a + b))
    # The kernel rounds once (fma), numpy's single precision twice; double precision decides.
    y = gpu.launch("saxpy", (8, 1, 1), (128, 1, 1), (2.5, a, b, n), 2)
    check("saxpy", numpy.array_equal(y, (2.5 * a.astype(numpy.float64) + b).astype(numpy.float32)))
    # Whole numbers: every order of summation gives the same sum.
    whole = random.integers(-50, 50, 100003).astype(numpy.float32)
    total = gpu.launch("reduce", (16, 1, 1), (256, 1, 1), (whole, numpy.zeros(1, numpy.float32), whole.size), 1, smem=8 * 4)
    check("reduction", total[0] == whole.sum(dtype=numpy.float64))
    matrix = random.standard_normal((97, 203), dtype=numpy.float32)
    turned = gpu.launch("transpose", (7, 4, 1), (32, 8, 1), (matrix, numpy.zeros((203, 97), numpy.float32), 97, 203), 1)
    check("transpose", numpy.array_equal(turned, matrix.T))
    # Real and simulated drivers must report a wrong pointer; neither may continue silently.
    status, = driver.cuMemcpyHtoD(64, a.ctypes.data, 4)
    check("a copy to nowhere is an error", status == driver.CUresult.CUDA_ERROR_INVALID_VALUE)
    gpu.close()
    file, simulated = served_by()
    print("served by", os.path.realpath(file), "(simulated)" if simulated else "(not simulated)")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
