#!/usr/bin/env python3
"""Runs kernels of the package tirx-kernels on a simulated Blackwell GPU, and tells what roofgen finds in them.

  tirx.py --python PYTHON [--roofgen PROGRAM] [--only TEXT] [--seconds N] [--dump FOLDER]
  tirx.py --one MODULE [NAME=VALUE ...]      by itself: one kernel, in a process of `roofgen run`

PYTHON has apache-tvm, tirx-kernels, torch and pytest (docs/evidence/check-suites.md names the versions); it needs no
GPU. Each kernel is emitted as CUDA for sm_100a and compiled to PTX by nvcc. TVM launches it through the simulated
driver with the first configuration of its module, reduced as KERNELS says. The module's own test compares the outputs
with its reference in torch, on the CPU. A kernel is: right or wrong (its outputs), or failed (no comparison was made),
beside the verdict of `roofgen run` about its launches. Prints a line for each kernel, the findings, the counts."""
import argparse
import ast
import ctypes
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ARCH = "sm_100a"
KERNELS = {
    "gemm.fp16_bf16_gemm": "K=256",
    "gemm.nvfp4_gemm": "M=256 N=256 K=512",
    "norm.rmsnorm": "batch_size=16",
    "ported.cudnn.swiglu.dense_gemm_persistent_swiglu": "",
    "ported.cudnn.swiglu.dense_blockscaled_gemm_persistent_swiglu_interleaved_quant": "",
    "ported.cudnn.amax.dense_blockscaled_gemm_persistent_amax": "",
    "ported.cudnn.dsrelu.dense_blockscaled_gemm_persistent_dsrelu_quant": "",
    "ported.cudnn.srelu.dense_blockscaled_gemm_persistent_srelu_quant": "",
    "ported.cudnn.dglu.moe_blockscaled_grouped_gemm_dglu_dbias": "",
    "ported.cudnn.dglu.moe_grouped_gemm_dglu_dbias": "",
    "ported.cudnn.proj_rope_mxfp8.gemm_proj_rope_mxfp8_mxfp8in": "",
    "ported.cudnn.proj_rope_mxfp8.gemm_proj_rope_mxfp8_bf16in": "",
    "ported.cudnn.flex_attention.flex_attention_backward_sm100": "",
    "ported.cudnn.flex_attention.forward_hd256_sm100": "",
    "ported.cudnn.bsa.block_sparse_attention_forward_sm100_blk128": "",
    "ported.cudnn.bsa.block_sparse_attention_forward_sm100_blk64": "",
    "ported.cudnn.bsa.block_sparse_attention_backward_sm100_blk64": "",
    "ported.cudnn.bsa.block_sparse_attention_backward_sm100_blk128": "",
    "ported.cudnn.bsa.block_sparse_attention_forward_combine_sm100_blk64": "",
    "ported.cudnn.csa.compressor_fwd_sm100": "seq_lens=(256,)",
    "ported.cudnn.linear_attention.gdn_prefill_f16": "",
    "ported.cudnn.linear_attention.gdn_recompute_f16": "",
    "ported.cudnn.linear_attention.gdn_bprop_f16": "",
    "ported.cudnn.linear_attention.gdn2_prefill_f16": "",
    "ported.cudnn.linear_attention.gdn2_recompute_f16": "",
    "ported.cudnn.linear_attention.gdn2_bprop_f16": "",
    "ported.cudnn.linear_attention.kda_bprop_f16": "",
    "ported.deepgemm.fp8_gemm_1d1d": "M=256 N=256 K=512",
    "ported.deepgemm.fp8_bmm": "H=2 R=512 D=256",
    "ported.deepgemm.m_grouped_fp8_gemm_contiguous": "num_groups=2 expected_m_per_group=128 N=256 K=512",
    "ported.deepgemm.m_grouped_fp8_gemm_masked": "num_groups=2 expected_m_per_group=64 N=256 K=512",
    "ported.deepgemm.k_grouped_fp8_gemm_contiguous": "num_groups=2 M=256 N=256",
    "ported.deepgemm.tf32_hc_prenorm_gemm": "k=2048 num_splits=8",
    "ported.fastcu.nvfp4_gemm_gb300": "",
    "ported.flashattention.flash_attention4": "batch_size=1 seq_len_q=256 seq_len_kv=256 num_qo_heads=2 num_kv_heads=2",
    "ported.flashattention.flash_attention_backward": "seq_len=256 num_heads=2",
    "ported.flashmla.sparse_prefill_head64_phase1": "s_q=2 s_kv=1024",
    "ported.flashmla.sparse_prefill_head128_phase1": "s_q=2 s_kv=2048",
    "ported.flashinfer.kda.recurrent_kda_decode_one_warp": "",
    "ported.flashinfer.kda.recurrent_kda_decode_grouped": "",
    "ported.flashinfer.gdn_decode.gdn_decode_bf16_ilp4": "",
    "ported.flashinfer.gdn_decode.gdn_decode_bf16_wide_vec_mtp": "",
    "ported.flashinfer.gdn_decode.gdn_decode_fp32_mtp_warp": "",
    "ported.flashinfer.mamba.selective_state_update_stp_simple": "batch=2 nheads=8",
    "ported.flashinfer.mamba.selective_state_update_mtp_simple": "batch=2 nheads=8",
    "ported.flashinfer.cascade.merge_state": "",
    "ported.flashinfer.activation.act_and_mul": "d=256 num_tokens=8",
    "ported.flashinfer.norm.rmsnorm": "",
    "ported.flashinfer.norm.layernorm": "",
    "ported.flashinfer.norm.fused_add_rmsnorm": "",
    "ported.flashinfer.quantization.mxfp8_quantize": "",
    "ported.flashinfer.quantization.nvfp4_quantize": "",
    "ported.msa.sparse_atten_fwd_combine": "seqlen_q=64 seqlen_k=64",
    "kda.kda_decode_multishape": "",
}


# ---- One kernel, in the simulated process ------------------------------------------------------

def one(module, changes):
    os.environ["TIRX_PREPARE_CUDA_ARCH"] = ARCH
    os.environ["TVM_FFI_DISABLE_TORCH_C_DLPACK"] = "1"
    import importlib
    import torch
    import tvm
    import tvm_ffi
    from tvm.support import nvcc

    @tvm_ffi.register_global_func("tvm_callback_cuda_compile", override=True)
    def compile_to_ptx(code):
        if os.environ.get("TIRX_DUMP"):
            Path(os.environ["TIRX_DUMP"], module + ".cu").write_text(code)
        # nvcc makes PTX with both .reqntid and .maxntid of these two, and ptxas refuses that.
        if "__block_size__" in code:
            code = re.sub(r"__launch_bounds__\(\d+, 1\) ", "", code)
        return nvcc.compile_cuda(code, target_format="ptx", arch=ARCH, compiler="nvcc")

    device_is_host(torch)
    tvm.cuda(0).sync()  # some tests encode tensor maps before anything is on the device
    import tirx_kernels.runner as runner
    compiled = runner.compile_kernel
    runner.compile_kernel = lambda *args, **kwargs: Executable(compiled(*args, **kwargs), torch, tvm)
    kernel = importlib.import_module("tirx_kernels." + module)
    config = {key: value for key, value in kernel.CONFIGS[0].items() if key != "label"}
    config |= {key: ast.literal_eval(value) for key, value in (change.split("=") for change in changes)}
    kernel.run_test(**config)
    print("right", config)


def device_is_host(torch):
    """Tensors "on the GPU" stay on the host, where the references run."""
    from types import SimpleNamespace
    from torch.overrides import TorchFunctionMode

    def host(value):
        return "cpu" if isinstance(value, (str, torch.device)) and str(value).startswith("cuda") else value

    class OnHost(TorchFunctionMode):
        def __torch_function__(self, function, types, args=(), kwargs=None):
            kwargs = kwargs or {}
            moves = getattr(function, "__name__", "") == "cuda"
            on_device = moves or any(host(value) is not value for value in (*args, *kwargs.values()))
            result = args[0] if moves else function(*map(host, args), **{k: host(v) for k, v in kwargs.items()})
            if on_device and isinstance(result, torch.Tensor):
                lock(result)
            return result

    generator = torch.Generator
    torch.Generator = lambda device="cpu": generator(device=host(device))
    cuda = torch.cuda
    cuda.is_available = lambda: True
    cuda.device_count = lambda: 1
    cuda.current_device = lambda: 0
    cuda.get_device_capability = lambda *_: (10, 0)
    cuda.get_device_properties = lambda *_: SimpleNamespace(multi_processor_count=148, major=10, minor=0,
                                                            name="NVIDIA B200", total_memory=180 << 30)
    cuda.current_stream = lambda *_: SimpleNamespace(cuda_stream=0, synchronize=lambda: None)
    for name in ("synchronize", "manual_seed", "manual_seed_all", "empty_cache", "set_device"):
        setattr(cuda, name, lambda *_: None)
    OnHost().__enter__()


class Executable:
    """A compiled module that takes tensors of the host for tensors of the device."""
    def __init__(self, module, torch, tvm):
        self.module, self.torch, self.tvm = module, torch, tvm

    def __getitem__(self, name):
        return Executable(self.module[name], self.torch, self.tvm)

    def __call__(self, *args):
        result = self.module(*(self.on_device(a) if isinstance(a, self.torch.Tensor) else a for a in args))
        self.tvm.cuda(0).sync()
        return result

    def on_device(self, tensor):
        lock(tensor)
        capsule = tensor.detach().__dlpack__()
        ctypes.pythonapi.PyCapsule_GetPointer.restype = ctypes.POINTER(DLTensor)
        ctypes.pythonapi.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
        ctypes.pythonapi.PyCapsule_GetPointer(capsule, b"dltensor").contents.device_type = DEVICE_CUDA
        return self.tvm.runtime.from_dlpack(Capsule(capsule))


LOCKED = {}  # by address: the tensors, which stay


def lock(tensor):
    """The simulated driver lets kernels use page-locked memory by its host address."""
    storage = tensor.untyped_storage()
    if storage.nbytes() == 0 or storage.data_ptr() in LOCKED:
        return
    LOCKED[storage.data_ptr()] = tensor
    status = ctypes.CDLL("libcuda.so.1").cuMemHostRegister_v2(ctypes.c_void_p(storage.data_ptr()),
                                                              ctypes.c_size_t(storage.nbytes()), 0)
    if status:
        raise RuntimeError(f"cuMemHostRegister: error {status}")


DEVICE_CUDA = 2  # kDLCUDA of DLPack


class DLTensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32)]


class Capsule:
    def __init__(self, capsule):
        self.capsule = capsule

    def __dlpack__(self, **_):
        return self.capsule

    def __dlpack_device__(self):
        return (DEVICE_CUDA, 0)


# ---- All kernels -------------------------------------------------------------------------------

# Page-locked memory has to begin at a multiple of 128 bytes; torch asks for 64.
ALIGNED = """#include <stdlib.h>
int posix_memalign(void** out, size_t alignment, size_t bytes) {
  *out = aligned_alloc(alignment < 256 ? 256 : alignment, (bytes + 255) / 256 * 256);
  return *out ? 0 : 12;
}
"""


def run(options, module, changes):
    with tempfile.TemporaryDirectory() as folder:
        report, aligned = Path(folder, "report.json"), Path(folder, "aligned.so")
        subprocess.run(["cc", "-shared", "-fPIC", "-o", aligned, "-x", "c", "-"], input=ALIGNED, text=True, check=True)
        command = [options.roofgen, "run", "--device", "b200", "--keep-going", "--output", report, "--", options.python,
                   __file__, "--one", module, *changes.split()]
        environment = dict(os.environ, OMP_NUM_THREADS="1", LD_PRELOAD=str(aligned))
        if options.dump:
            environment["TIRX_DUMP"] = options.dump
        begin = time.monotonic()
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=options.seconds, env=environment)
        except subprocess.TimeoutExpired:
            return {"outputs": "slow", "verdict": "-", "seconds": options.seconds, "why": ""}
        text = done.stdout + done.stderr
        out = json.loads(report.read_text()) if report.exists() else {}
        if "\nright {" in "\n" + text:
            outputs = "right"
        else:
            outputs = "wrong" if "AssertionError" in text else "failed"
        return {"outputs": outputs, "verdict": out.get("verdict", "-"), "seconds": time.monotonic() - begin,
                "why": "" if outputs == "right" else reason(text), "report": out}


def reason(text):
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    errors = [line for line in lines if "Error" in line or "unknown" in line or "not modelled" in line]
    return (errors or lines or [""])[-1][:200]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--one", nargs="+", metavar="MODULE")
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--roofgen", default="build/cli/roofgen")
    parser.add_argument("--only", default="")
    parser.add_argument("--seconds", type=float, default=300)
    parser.add_argument("--dump", help="folder for the CUDA sources")
    options = parser.parse_args()
    if options.one:
        return one(options.one[0], options.one[1:])
    counts = {}
    for module, changes in KERNELS.items():
        if options.only not in module:
            continue
        result = run(options, module, changes)
        key = (result["outputs"], result["verdict"])
        counts[key] = counts.get(key, 0) + 1
        print(f"{module:75} {result['outputs']:7} {result['verdict']:11} {result['seconds']:5.0f} s  {result['why']}",
              flush=True)
        for finding in result.get("report", {}).get("findings", []):
            print(f"    {finding['kind']}: {finding['message']}", flush=True)
    for (outputs, verdict), count in sorted(counts.items()):
        print(f"{count:4} {outputs}, {verdict}")


if __name__ == "__main__":
    main()
