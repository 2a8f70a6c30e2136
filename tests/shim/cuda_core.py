#!/usr/bin/env python3
"""cuda.core on the libcuda.so.1 that the loader finds: compiles for the device, launches, compares with numpy.

Exit status as in cuda_python.py: 0, 1, or 77 when a requirement is missing (the last line gives the reason).
"""
import sys

try:
    import numpy
    from cuda.bindings import driver
    from cuda.core import Device, LaunchConfig, Program, ProgramOptions, launch
except ImportError as error:
    print(f"skipped: {error}; `./roofgen test` installs cuda-core, cuda-bindings and numpy into build/python")
    sys.exit(77)

SOURCE = r"""
template <class T>
__global__ void saxpy(T s, const T* x, T* y, size_t n) {
  for (size_t i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) y[i] = s * x[i] + y[i];
}
"""


def call(result):
    status, *values = result
    assert int(status) == 0, status
    return values[0] if values else None


def main():
    device = Device()
    device.set_current()
    print("device", device.name, "sm_" + device.arch)
    stream = device.create_stream()
    program = Program(SOURCE, code_type="c++", options=ProgramOptions(std="c++17", arch=f"sm_{device.arch}"))
    names = ("saxpy<float>", "saxpy<double>")
    module = program.compile("ptx", name_expressions=names)
    for name, dtype in zip(names, (numpy.float32, numpy.float64)):
        kernel = module.get_kernel(name)
        x, y = numpy.arange(5000, dtype=dtype), numpy.ones(5000, dtype)
        on_device = [device.allocate(a.nbytes, stream=stream) for a in (x, y)]
        for buffer, array in zip(on_device, (x, y)):
            call(driver.cuMemcpyHtoDAsync(int(buffer.handle), array.ctypes.data, array.nbytes, stream.handle))
        launch(stream, LaunchConfig(grid=8, block=256), kernel, dtype(2), *on_device, numpy.uint64(x.size))
        out = numpy.empty_like(y)
        call(driver.cuMemcpyDtoHAsync(out.ctypes.data, int(on_device[1].handle), out.nbytes, stream.handle))
        stream.sync()
        for buffer in on_device:
            buffer.close(stream)
        good = numpy.array_equal(out, 2 * x + 1)
        print("ok" if good else "FAILED", name)
        if not good:
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
