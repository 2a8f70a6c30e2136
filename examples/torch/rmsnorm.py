"""RMSNorm by roofgen as an operator of PyTorch, which torch.compile keeps as one node of its graph:

    python examples/torch/rmsnorm.py [ROWS,...]

Prints the largest error against a reference in fp32. Exit code 77: no torch, or no GPU.
"""
import ctypes
import sys

try:
    import torch
except ImportError as missing:
    print(f"skipped: {missing}", file=sys.stderr)
    sys.exit(77)

import roofgen

EPS = 1e-6
kernels = {}  # by device and columns: a kernel serves many numbers of rows


def launch(x: torch.Tensor, weight: torch.Tensor, y: torch.Tensor) -> None:
    """Launches the first kernels that serve these sizes, or makes some."""
    rows, cols = x.shape
    known = kernels.setdefault((x.device.index, cols), [])
    for kernel in known:
        try:
            return kernel(x=x, weight=weight, y=y, eps=EPS)
        except roofgen.Error as error:
            if error.status != roofgen.UNAVAILABLE:
                raise
    known.append(roofgen.jit("rmsnorm", rows=rows, cols=cols, evals=8))
    print(f"made {known[-1].info['kernels'][0]['schedule']} for {rows} rows")
    known[-1](x=x, weight=weight, y=y, eps=EPS)


@torch.library.custom_op("roofgen::rmsnorm", mutates_args=())
def rmsnorm(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    """x: [..., cols] in bf16, weight: [cols]; y = x / rms(x) * weight."""
    x = x.contiguous()
    y = torch.empty_like(x)
    launch(x.view(-1, x.shape[-1]), weight, y.view(-1, x.shape[-1]))
    return y


@rmsnorm.register_fake
def _(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    """What torch.compile needs to know: sides, type and device of the result."""
    return torch.empty_like(x, memory_format=torch.contiguous_format)


def reference(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    x, weight = x.float(), weight.float()
    return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + EPS) * weight


def is_simulated() -> bool:
    """Whether the driver is roofgen's, which does not run torch's own kernels: torch has no PTX of them."""
    return hasattr(ctypes.CDLL("libcuda.so.1"), "roofgen_simulated_driver")


def is_right(operation, expected, weight: torch.Tensor) -> bool:
    """Compares with the reference on the CPU, for each number of rows."""
    generator = torch.Generator().manual_seed(1)
    for rows in (int(text) for text in (sys.argv[1] if len(sys.argv) > 1 else "16,64,100,64").split(",")):
        x = torch.randn(rows, weight.numel(), dtype=torch.bfloat16, generator=generator)
        y, exact = operation(x.cuda()).cpu().float(), expected(x)
        error = ((y - exact).abs() / (exact.abs() + 1)).max().item()
        print(f"{rows} rows: largest relative error {error:.2g}")
        if not error < 1 / 128:  # half a unit of bf16 is 1/256
            return False
    return True


def main() -> int:
    if not torch.cuda.is_available():
        print("skipped: torch has no CUDA device", file=sys.stderr)
        return 77
    weight = torch.randn(1024, dtype=torch.bfloat16, generator=torch.Generator().manual_seed(2))
    on_device = weight.cuda()
    if not is_right(lambda x: rmsnorm(x, on_device), lambda x: reference(x, weight), weight):
        return 1
    if is_simulated():
        print("torch.compile is left out: the simulated driver does not run torch's own kernels")
        return 0
    torch.library.opcheck(rmsnorm, (torch.randn(2, 8, 1024, device="cuda", dtype=torch.bfloat16), on_device))
    compiled = torch.compile(lambda x: torch.relu(rmsnorm(x, on_device)) * 2)
    return 0 if is_right(compiled, lambda x: torch.relu(reference(x, weight)) * 2, weight) else 1


if __name__ == "__main__":
    sys.exit(main())
