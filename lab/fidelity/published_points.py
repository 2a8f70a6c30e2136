"""Published times of single kernels: what was measured, where it stands, and which kernel is compared with it.

All are facts to compare with: no constant of the model may be set by them. Rates become times by the count of
operations or bytes that the source uses: attention 4 L^2 d for each head and sequence, half of it with a causal mask;
GEMM 2 M N K; norms one read and one write of the tensor.
"""
from dataclasses import dataclass

TENSOR, MEMORY = "tensor", "memory"
# How close the kernel that is modelled is to the one that was measured.
SAME, IMITATED, OTHER = "same source", "same tiles, other source", "other kernel"


@dataclass(frozen=True)
class Group:
    """Points that one source measured on one device. counted: in the figures of its class. device_time: the source
    measured by a profiler, so that the launch is not in its times."""
    name: str
    kind: str
    match: str
    device: str
    source: str
    counted: bool = True
    device_time: bool = False


@dataclass(frozen=True)
class Point:
    """One published time. schedules: what `recipe` of published_kernels.py makes kernels of; the fastest is compared.
    problem: points of a group with the same problem are choices that a tuner would compare."""
    group: Group
    label: str
    recipe: str
    schedules: tuple
    time_us: float
    problem: str


FLASH = Group("FlashAttention-2 on an H100", TENSOR, IMITATED, "h100-sxm",
              "Dao-AILab/flash-attention, assets/flash3_fp16_fwd.png: H100 80 GB SXM5, CUDA 12.3, fp16, bars read off "
              "to about 1 %; clock not stated")
GEMM_A100 = Group("learn-cuda GEMM on an A100", TENSOR, SAME, "a100-sxm-40",
                  "gau-nernst/learn-cuda at 1454f8b, 02b_matmul_sm80: A100 SXM4 40 GB, CUDA 13.0, bf16; clock not "
                  "stated")
GEMM_5090 = Group("learn-cuda GEMM on an RTX 5090", TENSOR, SAME, "rtx-5090-400w",
                  "the same file: RTX 5090 at 400 W, CUDA 13.0, bf16; clock not stated")
ATTENTION_5090 = Group("learn-cuda attention on an RTX 5090", TENSOR, SAME, "rtx-5090-400w",
                       "gau-nernst/learn-cuda at 5d2897a, 07_attention: RTX 5090 at 400 W, CUDA 12.9, bf16; batch 4 "
                       "(1454f8b says 1, and its program's default is 4), 8 heads, 4096 queries, 8192 keys, d 128; "
                       "clock not stated")
CUDNN = Group("norms on an H200, cuDNN", MEMORY, OTHER, "h200-sxm",
              "NVIDIA/cudnn-frontend, benchmark/norms/results/h200 (20260227): bf16, cold L2, device time by a "
              "profiler",
              device_time=True)
FASTEST = Group("norms on an H200, fastest published", MEMORY, OTHER, "h200-sxm",
                "the same file: the faster one of cuDNN and torch.compile", counted=False, device_time=True)
COPY = Group("copy on an H200", MEMORY, OTHER, "h200-sxm",
             "device-to-device copy of 8.6 GB, read and written, on one H200 SXM; the catalogue's sustained bandwidth "
             "is this number")

LENGTHS = (512, 1024, 2048, 4096, 8192, 16384)
TOKENS, WIDTH = 16384, 2048  # batch x L and heads x d of every point
# TFLOP/s by d and causal mask, for LENGTHS.
FLASH_RATES = {
    (64, False): (282, 306, 318, 321, 322, 324), (64, True): (180, 229, 262, 284, 295, 299),
    (128, False): (309, 350, 362, 368, 370, 370), (128, True): (191, 260, 298, 319, 333, 335),
    (256, False): (275, 313, 321, 323, 324, 326), (256, True): (208, 251, 278, 293, 297, 298)}
# Tiles by d that FlashAttention-2 takes on an H100: rows, keys; four warps, Q in shared memory, one tile of K and of V
# (csrc/flash_attn/src/flash_fwd_launch_template.h at 01afd16).
FLASH_TILES = {64: (128, 128), 128: (128, 64), 256: (64, 64)}

# TFLOP/s at 4096^3 on the A100 and the RTX 5090.
LEARN_CUDA_GEMM = {"v1": (59.92, 140.66), "v2": (64.94, 152.91), "v3": (166.78, 160.47), "v4": (190.94, 177.42),
                   "v5": (160.42, 177.60), "v6": (220.77, 177.66), "v6b": (220.66, 177.40)}
# The same at other sizes (the second and third table of the source).
LEARN_CUDA_SIZES = {("v6", 2048): (170.64, 155.02), ("v6b", 2048): (168.09, 152.33),
                    ("v6", 8192): (224.79, 165.28), ("v6b", 8192): (240.05, 178.37)}
LEARN_CUDA_ATTENTION = {"v1": 142.87, "v2": 181.11, "v3": 189.84, "v4": 194.33, "v5": 197.74}

# op, rows, columns: GB/s of cuDNN and of torch.compile.
NORMS = (("rmsnorm", 16384, 4096, 3708, 3523), ("rmsnorm", 8192, 8192, 3771, 4176),
         ("rmsnorm", 4096, 16384, 3845, 4007), ("rmsnorm", 8192, 5120, 3762, 3575),
         ("rmsnorm", 8192, 4096, 3790, 3400), ("rmsnorm", 4096, 8192, 3311, 4038),
         ("rmsnorm", 4096, 6144, 3462, 3746), ("rmsnorm", 2048, 4096, 3352, 2783),
         ("rmsnorm", 131072, 128, 3203, 3892), ("rmsnorm", 8192, 128, 1436, 1738),
         ("layernorm", 1024, 12288, 3227, 2552))

COPY_GB_S = 4300
COPY_BYTES = 4_000_000_000  # read and written; `roofgen profile` takes at most 4 GiB of buffers


def schedule(**values):
    return tuple(values.items())


def flash_points():
    for (d, causal), rates in FLASH_RATES.items():
        rows, keys = FLASH_TILES[d]
        for length, rate in zip(LENGTHS, rates):
            operations = 4.0 * TOKENS * length * WIDTH / (2 if causal else 1)
            yield Point(FLASH, f"d {d} {'causal' if causal else 'full'} {length}", "flash",
                        (schedule(d=d, length=length, causal=causal, rows=rows, keys=keys),),
                        operations / rate / 1e6, f"{d} {causal} {length}")


def learn_cuda_points():
    rates_of = {**{(name, 4096): rates for name, rates in LEARN_CUDA_GEMM.items()}, **LEARN_CUDA_SIZES}
    for column, group in enumerate((GEMM_A100, GEMM_5090)):
        for (name, size), rates in rates_of.items():
            yield Point(group, f"{name} {size}", "learn-cuda-gemm", (schedule(name=name, size=size),),
                        2.0 * size ** 3 / rates[column] / 1e6, str(size))
    for name, rate in LEARN_CUDA_ATTENTION.items():
        yield Point(ATTENTION_5090, name, "learn-cuda-attention", (schedule(name=name),),
                    4.0 * 4 * 8 * 4096 * 8192 * 128 / rate / 1e6, "all")


def norm_schedules(op, rows, cols):
    """Threads of a row, threads of a CTA, rows of a thread: around the space's default."""
    shapes = (((8, 128, 1), (16, 128, 1), (16, 256, 2)) if cols <= 256 else
              ((128, 128, 1), (256, 256, 1), (512, 512, 1)))
    return tuple(schedule(op=op, rows=rows, cols=cols, row_threads=of_row, threads=threads, rows_each=each)
                 for of_row, threads, each in shapes)


def memory_points():
    for group in (CUDNN, FASTEST):
        for op, rows, cols, cudnn, compiled in NORMS:
            rate = cudnn if group is CUDNN else max(cudnn, compiled)
            yield Point(group, f"{op} {rows} x {cols}", "norm", norm_schedules(op, rows, cols),
                        2 * 2 * rows * cols / rate / 1e3, f"{op} {rows} {cols}")
    yield Point(COPY, "4 GB", "copy", (schedule(),), COPY_BYTES / COPY_GB_S / 1e3, "all")


def all_points():
    return [*flash_points(), *learn_cuda_points(), *memory_points()]


@dataclass(frozen=True)
class Step:
    """A step of the ladder: a schedule of our GEMM template, and what a published step of the same kind gained.
    before, after: TFLOP/s in fast.cu's ladder (H100, bf16, 4096^3, wgmma; a second-hand table) or in learn-cuda's."""
    label: str
    schedule: tuple
    counterpart: str = ""
    before: float = 0
    after: float = 0


def ladder():
    """Each step keeps what the steps before it set."""
    values = {"BM": 64, "BN": 64, "BK": 32, "stages": 2, "warps_m": 2, "warps_n": 2, "group": 1, "store": "direct"}
    steps = [("64 x 64 x 32, 2 stages", {}, "", 0, 0),
             ("tiles of 128 x 128", {"BM": 128, "BN": 128}, "fast.cu, 64 x 64 to 128 x 128", 317, 423),
             ("64 of k a tile", {"BK": 64}, "", 0, 0),
             ("4 stages", {"stages": 4}, "fast.cu, a producer and 5 stages", 423, 498),
             ("tiles of 128 x 256, 8 warps", {"BN": 256, "warps_n": 4, "stages": 3},
              "fast.cu, 128 x 256 by two consumers", 498, 610),
             ("rows of tiles in groups of 8", {"group": 8}, "fast.cu, L2 groups with a persistent kernel", 610, 660),
             ("output staged in shared memory", {"store": "staged"}, "fast.cu, asynchronous stores of C", 747, 758)]
    for label, change, counterpart, before, after in steps:
        values.update(change)
        yield Step(label, schedule(size=4096, **values), counterpart, before, after)
