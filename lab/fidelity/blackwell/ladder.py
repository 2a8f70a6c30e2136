"""The GEMMs of gau-nernst/learn-cuda, 02e_matmul_sm100, as `roofgen profile` can run them: sources, shapes, tiles.

Published at 9324ef1 of that repository: a B200 (Modal), CUDA 13.0, PyTorch 2.10, bf16, 4096 x 4096 x 4096, TFLOP/s.
The kernels stay in a checkout outside this repository; a copy without the host code goes to the folder of work.
"""
import json
import subprocess
from pathlib import Path

SIZE = 4096
# Name: TFLOP/s, file, kernel, grid, threads, bytes of shared memory, rows of B's tile, box of A and B.
ROWS = 128
MAP_16B, MAP_128B, MAP_3D_16B = "16 bytes", "128 bytes", "16 bytes, 3D"
STEPS = (
    ("v0, mma.sync", 409.06, "v0", "matmul_v0_kernel<128,128,64,2,2,3>", 1024, 128, 98304, 0, ""),
    ("v1a, tcgen05, copies of 16-byte rows", 255.73, "v1", "matmul_v1_kernel<256,256,false>", 512, 128, 196608, 256,
     MAP_16B),
    ("v1b, the same in one copy", 254.37, "v1", "matmul_v1_kernel<256,256,true>", 512, 128, 196608, 256, MAP_3D_16B),
    ("v2a, rows of 128 bytes", 699.39, "v2", "matmul_v2_kernel<256,256,false>", 512, 128, 196608, 256, MAP_128B),
    ("v2b, the same in one copy", 721.02, "v2", "matmul_v2_kernel<256,256,true>", 512, 128, 196608, 256, 256),
    ("v3, a pipeline", 914.42, "v3", "matmul_v3_kernel<256,128,2>", 512, 128, 196608, 256, 128),
    ("v4, warps of their own", 1053.61, "v4", "matmul_v4_kernel<128,64,7>", 1024, 128, 229376, 128, 64),
    ("v5, pairs of CTAs", 1169.65, "v5", "matmul_v5_kernel<256,64,2,7,false>", 512, 128, 229376, 128, 64),
    ("v6, persistent", 1273.32, "v6", "matmul_v6_kernel<256,64,2,7,false>", 148, 192, 229376, 128, 64),
    ("v7a, details", 1293.38, "v7", "matmul_v7_kernel_cutlass<256,2,7,false,false>", 148, 192, 229524, 128, 64),
    ("v7b, 128 CTAs", 1316.16, "v7", "matmul_v7_kernel_cutlass<256,2,7,false,false>", 128, 192, 229524, 128, 64),
    ("v7c, stores that leave L1", 1326.11, "v7", "matmul_v7_kernel_cutlass<256,2,7,true,false>", 128, 192, 229524, 128,
     64),
)
HEAD = """#include <cuda_bf16.h>
#include <cstdint>
struct alignas(64) CUtensorMap { unsigned long long opaque[16]; };
struct Two { int first, second; };
namespace std {
template <class...> using tuple = Two;
template <class T> __host__ __device__ constexpr T max(T a, T b) { return a < b ? b : a; }
}
"""


def device_code(text):
    """Without includes, and without host functions, which come last in each file."""
    for end in ("\ninline\nvoid check_cu(", "_launch(", "\nvoid matmul_v0("):
        at = text.find(end)
        if at >= 0:
            text = text[:text.rindex("\n\n", 0, at + 1)]
    return "\n".join(line for line in text.splitlines() if not line.startswith("#include"))


def source(checkout, file):
    folder = checkout / "02e_matmul_sm100"
    parts = [device_code((folder / "common.h").read_text())]
    if file in ("v5", "v6", "v7"):
        parts.append(device_code((folder / "profiler.h").read_text()))
    return HEAD + "\n".join(parts + [device_code((folder / f"matmul_{file}.cu").read_text())])


def tensor_map(rows, kind):
    if kind == MAP_16B:
        return {"dims": [SIZE, SIZE], "box": [8, rows]}
    if kind == MAP_128B:
        return {"dims": [SIZE, SIZE], "box": [64, rows], "swizzle": 128}
    if kind == MAP_3D_16B:
        return {"dims": [8, SIZE, SIZE // 8], "strides": [2 * SIZE, 16], "box": [8, rows, 32]}
    return {"dims": [64, SIZE, SIZE // 64], "strides": [2 * SIZE, 128], "box": [64, rows, kind // 64], "swizzle": 128}


def arguments(step):
    _, _, file, _, _, _, _, b_rows, kind = step
    out = [{"name": name, "type": "bf16", "size": SIZE * SIZE} for name in "abc"]
    if b_rows:
        out[0]["map"], out[1]["map"] = tensor_map(ROWS, kind), tensor_map(b_rows, kind)
    out += [{"name": name, "type": "i32", "value": SIZE} for name in ("m", "n", "k")]
    if file in ("v5", "v6", "v7"):
        out += [{"name": "log", "type": "i64", "size": 1}, {"name": "entries", "type": "i32", "value": 0}]
    return out


def profile(roofgen, checkout, work, step):
    """The report of one step; its failure as text."""
    name, _, file, kernel, grid, threads, smem, _, _ = step
    work.mkdir(parents=True, exist_ok=True)
    text, args = work / f"{file}.cu", work / f"{name.split(',')[0]}.json"
    text.write_text(source(checkout, file))
    args.write_text(json.dumps(arguments(step)))
    done = subprocess.run([str(roofgen), "profile", str(text), "--kernel", kernel, "--grid", str(grid), "--block",
                           str(threads), "--smem", str(smem), "--args", str(args), "--device", "b200", "--top", "0",
                           "--json"], capture_output=True, text=True, check=False)
    return json.loads(done.stdout) if done.returncode == 0 else (done.stderr.strip().splitlines() or ["no message"])[0]


def modelled(roofgen, checkout, work):
    """(step, microseconds published, report or failure) of each step."""
    for step in STEPS:
        yield step, 2e-6 * SIZE ** 3 / step[1], profile(Path(roofgen), Path(checkout), Path(work), step)
