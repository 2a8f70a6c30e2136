"""From a schedule of published_points.py to a launch that `roofgen profile` can run.

Kernels of our templates come from `roofgen generate`; learn-cuda's from a checkout of gau-nernst/learn-cuda. Our space
of attention forbids tiles whose accumulators leave no registers for the rest, which is what FlashAttention-2 runs. A
folder of data with that one constraint relaxed comes before the built-in one here, for `generate` alone.
"""
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

import kernels
from kernels import Bad, Launch, buffer, ceil_div, scalar
from published_points import COPY_BYTES, TOKENS, WIDTH

ROOT = Path(__file__).resolve().parents[2]
COPY_SOURCE = Path(__file__).resolve().parent / "copy.cu"
STAGE = "search_spaces/stages/attention_forward.json"
LIMIT, RELAXED = '"accumulators + fragments <= 184"', '"accumulators + fragments <= 224"'
# Our attention starts with the last rows, which take longest with a causal mask; FlashAttention-2 with the first.
LAST_FIRST, FIRST_FIRST = "int row = gridDim.x / kSection - 1 - blockIdx.x / kSection", "int row = blockIdx.x"
# NVRTC has no <algorithm>; learn-cuda's device code uses two functions of it.
STD = """namespace std {
template <class T>
__host__ __device__ constexpr T min(T a, T b) { return b < a ? b : a; }
template <class T>
__host__ __device__ constexpr T max(T a, T b) { return a < b ? b : a; }
}
"""


class Illegal(Bad):
    """The search space has no such schedule."""


def replaced_once(text, old, new, where):
    if text.count(old) != 1:
        raise Bad(f"{where}: {text.count(old)} times {old}, which this program replaces", 1)
    return text.replace(old, new)


@dataclass
class Maker:
    """Makes launches. work: for sources and the folder of data; learn_cuda: a checkout, or None; last_first: keep our
    order of causal CTAs."""
    roofgen: Path
    work: Path
    learn_cuda: Path = None
    last_first: bool = False
    made: dict = field(default_factory=dict)

    def launch(self, recipe, device, schedule):
        key = (recipe, device, schedule)
        if key not in self.made:
            try:
                self.made[key] = RECIPES[recipe](self, device, dict(schedule))
            except Illegal as error:
                self.made[key] = error
        if isinstance(self.made[key], Illegal):
            raise self.made[key]
        return self.made[key]

    def data(self):
        """A folder with the relaxed constraint."""
        text = replaced_once((ROOT / STAGE).read_text(), LIMIT, RELAXED, STAGE)
        place = self.work / "data" / STAGE
        if not place.is_file() or place.read_text() != text:
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(text)
        return self.work / "data"

    def generated(self, op, device, problem, values):
        pinned = ",".join(f"{name}={value}" for name, value in values.items())
        command = [str(self.roofgen), "generate", op, *problem, "--device", device, "--variant", "fused",
                   "--data-dir", str(self.data()), "--set", pinned]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
        except (OSError, subprocess.TimeoutExpired) as error:
            raise Bad(f"--roofgen {self.roofgen}: {error}") from error
        if done.returncode:
            message = (done.stderr.strip() or "no message").splitlines()[0]
            raise (Illegal if "is illegal" in message else Bad)(f"generate {op} {pinned}: {message}", 1)
        return done.stdout

    def published_source(self, name):
        if self.learn_cuda is None:
            raise Bad(f"--learn-cuda is missing: {name} comes from that checkout")
        path = self.learn_cuda / name
        if not path.is_file():
            raise Bad(f"--learn-cuda {self.learn_cuda}: no {name} in it")
        return kernels.keep(self.work, path.name, STD + path.read_text()), path.parent


def flash(maker, device, config):
    """Our fused attention with FlashAttention-2's tiles, pipeline (one tile of K, one of V) and order of the CTAs. It
    rescales in every step, as FlashAttention-2 does; ours does by default only where the maximum grows."""
    length, d, rows, keys = config["length"], config["d"], config["rows"], config["keys"]
    heads, batch, tensor = WIDTH // d, TOKENS // length, TOKENS * WIDTH
    problem = ["--L", str(length), "--d", str(d), "--heads", str(heads), "--batch", str(batch), "--dtype", "fp16",
               "--lse", *(["--causal"] if config["causal"] else [])]
    text = maker.generated("attention", device, problem,
                           {"BM": rows, "BN": keys, "stages": 1, "warps": 4, "q_in": "shared", "rescale": "always",
                            "swizzle": "true", "ctas_per_sm": 1})
    if not maker.last_first:
        text = replaced_once(text, LAST_FIRST, FIRST_FIRST, "attention/launch.cuh")
    arguments = [buffer(name, "f16", tensor, fill="random", seed=seed) for seed, name in enumerate("qkv", 1)]
    arguments += [buffer("o", "f16", tensor), buffer("lse", "f32", batch * heads * length)]
    arguments += [scalar("q_len", "i32", length), scalar("kv_len", "i32", length), scalar("group", "i32", 1)]
    for name in "qkvo":
        arguments += [scalar(f"{name}_{stride}_stride", "i64", value) for stride, value in
                      (("batch", length * WIDTH), ("row", WIDTH), ("head", d))]
    arguments += [scalar("scale_log2", "f32", 1.4426950408889634 / d ** 0.5)]
    return Launch(source=kernels.keep(maker.work, "flash.cu", text), kernel="attention_fused",
                  grid=(ceil_div(length, rows), heads, batch), block=(128, 1, 1), args=arguments,
                  smem=2 * d * (rows + 2 * keys))


def gemm(maker, device, config):
    """Our GEMM template: bf16, A by rows, B by columns."""
    size = config["size"]
    values = {name: value for name, value in config.items() if name != "size"}
    text = maker.generated("gemm", device, ["--M", str(size), "--N", str(size), "--K", str(size)], values)
    rows, cols, depth, group = values["BM"], values["BN"], values["BK"], values["group"]
    arguments = [buffer(name, "bf16", size * size, fill="random", seed=seed) for seed, name in enumerate("AB", 1)]
    arguments += [buffer("C", "bf16", size * size)]
    arguments += [scalar(name, "i32", size) for name in ("M", "N", "K", "k_per_split")]
    arguments += [scalar(name, "i64", value) for name, value in
                  (("a_stride", size), ("b_stride", size), ("a_step", 2 * depth), ("b_step", 2 * depth))]
    staged = 2 * rows * cols if values["store"] == "staged" else 0
    return Launch(source=kernels.keep(maker.work, "gemm.cu", text), kernel="gemm",
                  grid=(group * ceil_div(size, cols) * ceil_div(size, rows, group), 1, 1),
                  block=(32 * values["warps_m"] * values["warps_n"], 1, 1), args=arguments,
                  smem=max(values["stages"] * (rows + cols) * 2 * depth, staged))


def norm(maker, device, config):
    """Our rows template: bf16, the whole row in registers, vectors of 16 bytes."""
    op, rows, cols = config["op"], config["rows"], config["cols"]
    of_row, threads, each = config["row_threads"], config["threads"], config["rows_each"]
    problem = ["--rows", str(rows), "--cols", str(cols), *(["--bias"] if op == "layernorm" else [])]
    text = maker.generated(op, device, problem, {"vec": 8, "row_threads": of_row, "threads": threads, "rows_each": each,
                                                 "residency": "registers"})
    arguments = [buffer("x", "bf16", rows * cols, fill="random", seed=1), buffer("weight", "bf16", cols, fill="random")]
    arguments += [buffer("bias", "bf16", cols, fill="random")] if op == "layernorm" else []
    arguments += [buffer("y", "bf16", rows * cols), scalar("eps", "f32", 1e-5), scalar("rows", "i32", rows),
                  scalar("cols", "i32", cols), scalar("segment", "i32", cols), scalar("segments", "i32", 1),
                  scalar("inv_cols", "f32", 1 / cols)]
    return Launch(source=kernels.keep(maker.work, f"{op}.cu", text), kernel="rows_kernel",
                  grid=(ceil_div(rows, threads // of_row * each), 1, 1), block=(threads, 1, 1), args=arguments)


def copy(_maker, _device, _config):
    """copy.cu: 16 bytes a thread, eight times over."""
    words = COPY_BYTES // 2 // 16
    arguments = [buffer("from", "u32", 4 * words, fill="random"), buffer("to", "u32", 4 * words),
                 scalar("words", "i32", words)]
    return Launch(source=COPY_SOURCE, kernel="copy", grid=(ceil_div(words, 256 * 8), 1, 1), block=(256, 1, 1),
                  args=arguments)


# Template arguments and bytes of shared memory, as the host functions beside the kernels have them.
LEARN_CUDA_GEMM = {"v1": ("v1", "2,2,64,false,false", 32768), "v2": ("v1", "2,2,64,true,false", 32768),
                   "v3": ("v1", "2,2,72,true,false", 36864), "v4": ("v1", "2,2,64,true,true", 32768),
                   "v5": ("v5", "2,2", 32768), "v6": ("v6", "2,2,2,0", 65536), "v6b": ("v6", "2,2,2,8", 65536)}
# Rows of Q, keys of a step, bytes of shared memory.
LEARN_CUDA_ATTENTION = {"v1": (128, 64, 32768), "v2": (64, 64, 32768), "v3": (64, 32, 32768), "v4": (64, 32, 32768),
                        "v5": (64, 64, 49152)}


def learn_cuda_gemm(maker, _device, config):
    """02b_matmul_sm80: tiles of 128 x 128 x 64, four warps."""
    size = config["size"]
    file, template, smem = LEARN_CUDA_GEMM[config["name"]]
    source, folder = maker.published_source(f"02b_matmul_sm80/matmul_{file}.cu")
    arguments = [buffer(name, "bf16", size * size, fill="random", seed=seed) for seed, name in enumerate("AB", 1)]
    arguments += [buffer("C", "bf16", size * size), *(scalar(name, "i32", size) for name in "MNK")]
    return Launch(source=source, kernel=f"matmul_{file}_kernel<128,128,64,{template}>",
                  grid=(ceil_div(size, 128) ** 2, 1, 1), block=(128, 1, 1), args=arguments, includes=[folder],
                  smem=smem)


def learn_cuda_attention(maker, _device, config):
    """07_attention: four sequences, 8 heads, 4096 queries, 8192 keys."""
    name, (rows, keys, smem) = config["name"], LEARN_CUDA_ATTENTION[config["name"]]
    source, folder = maker.published_source(f"07_attention/attention_{name}.cu")
    heads = 4 * 8
    queries, others = heads * 4096 * 128, heads * 8192 * 128
    arguments = [buffer("Q", "bf16", queries, fill="random", seed=1),
                 buffer("K", "bf16", others, fill="random", seed=2),
                 buffer("V", "bf16", others, fill="random", seed=3), buffer("O", "bf16", queries),
                 scalar("bs", "i32", heads), scalar("len_q", "i32", 4096), scalar("len_kv", "i32", 8192)]
    return Launch(source=source, kernel=f"attention_{name}_kernel<{rows},{keys},128,4>",
                  grid=(heads * ceil_div(4096, rows), 1, 1), block=(128, 1, 1), args=arguments, includes=[folder],
                  smem=smem)


RECIPES = {"flash": flash, "gemm": gemm, "norm": norm, "copy": copy, "learn-cuda-gemm": learn_cuda_gemm,
           "learn-cuda-attention": learn_cuda_attention}
