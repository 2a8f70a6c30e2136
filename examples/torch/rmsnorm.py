"""RMSNorm by roofgen as an operator of PyTorch, which torch.compile keeps as one node of its graph:

    python examples/torch/rmsnorm.py [ROWS,...]

Prints the largest error against a reference in fp32. Exit code 77: no torch, or no GPU.
"""
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


def main() -> int:
    if not torch.cuda.is_available():
        print("skipped: torch has no CUDA device", file=sys.stderr)
        return 77
    torch.manual_seed(1)
    weight = torch.randn(1024, device="cuda", dtype=torch.bfloat16)
    torch.library.opcheck(rmsnorm, (torch.randn(2, 8, 1024, device="cuda", dtype=torch.bfloat16), weight))
    model = torch.compile(lambda x: torch.relu(rmsnorm(x, weight)) * 2)
    for rows in (int(text) for text in (sys.argv[1] if len(sys.argv) > 1 else "16,64,100,64").split(",")):
        x = torch.randn(rows, 1024, device="cuda", dtype=torch.bfloat16)
        expected = torch.relu(reference(x, weight)) * 2
        error = ((model(x).float() - expected).abs() / (expected.abs() + 1)).max().item()
        print(f"{rows} rows: largest relative error {error:.2g}")
        if not error < 1 / 128:  # half a unit of bf16 is 1/256
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
