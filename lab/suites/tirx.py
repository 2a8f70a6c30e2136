#!/usr/bin/env python3
"""Runs the labelled kernels for Blackwell of TIRx on a simulated GPU, and tells what roofgen finds in them.

  tirx.py --python PYTHON --corpus FOLDER [--roofgen PROGRAM] [--only TEXT] [--jobs N] [--seconds N] [--dump FOLDER]
          [--csv FILE] [--mutants N]
  tirx.py --one FOLDER NAME [CALL]      by itself: one kernel, in a process of `roofgen run`; CALL makes another case of
                                        it: 'gemm.prepare_nvfp4_case(1024, 1024, 1024)'

PYTHON has apache-tvm, tirx-kernels and torch, FOLDER is the unpacked source archive of tirx-harness
(docs/evidence/check-suites.md names the versions). No GPU is needed. The corpus gives each kernel small inputs, a
reference in NumPy, the tolerance, and a label: clean, or a review of reads of unwritten values, or of order that the
corpus's own checkers do not decide. TVM emits CUDA, nvcc makes PTX, and TVM launches the kernel through the simulated
driver. Outputs are right, wrong, or not compared (failed, slow), beside the verdict of `roofgen run` about the
launches. Prints a line for each kernel, the findings, the counts."""
import argparse
import csv
import ctypes
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
import types
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

DEVICES = {"sm_100a": "b200", "sm_103a": "b300"}


# ---- One kernel, in the simulated process ------------------------------------------------------

class Lazy:
    """Stands for what `load` loads, when something of it is used; of a `family`, when a function of it is called."""
    def __init__(self, load, family=False):
        self.__dict__.update(load=load, family=family)

    def __setattr__(self, name, value):  # cases patch modules
        setattr(self.load(), name, value)

    def __delattr__(self, name):
        delattr(self.load(), name)

    def __getattr__(self, name):
        if not self.family:
            return getattr(self.load(), name)
        if name.startswith("__"):
            raise AttributeError(name)
        return lambda *args, **kwargs: getattr(self.load(), name)(*args, **kwargs)


def corpus(folder):
    """The cases of the corpus by name, without the simulator of tirx-harness, and without kernels that nobody asks
    for: the corpus imports all, which takes longer than most runs."""
    import importlib
    root = Path(folder, "tirx_harness")
    sys.path[:0] = [str(root), str(root / "src")]
    for name in ("tirx_harness", "tirx_harness.numsim"):
        sys.modules[name] = types.ModuleType(name)
        sys.modules[name].__path__ = [str(root / "src" / name.replace(".", "/"))]
    kernels = importlib.import_module("tests.numsim.support._tirx_kernels")
    load = kernels.load_tirx_kernel
    kernels.load_tirx_kernel = lambda name: Lazy(lambda: load(name))
    families = {}
    for file in (root / "tests/numsim/corpus/kernels").glob("*.py"):
        if file.stem != "__init__":
            families["tests.numsim.corpus.kernels." + file.stem] = file.stem
    for name in families:
        sys.modules[name] = Lazy(lambda name=name: load_family(importlib, families, name), family=True)
    cases = importlib.import_module("tests.numsim.corpus.canonical_cases").CANONICAL_KERNEL_CASES
    return {case.name: case for case in cases}


def load_family(importlib, families, name):
    if isinstance(sys.modules[name], Lazy):
        for other in families:  # families use functions of each other while they are imported
            if isinstance(sys.modules[other], Lazy):
                del sys.modules[other]
        importlib.import_module(name)
    return sys.modules[name]


def archs(name):
    from tirx_kernels.registry import kernel_index
    return kernel_index(strict=True)[name].runtime_cuda_archs


def arch_of(name):
    """The first architecture of the kernel that a simulated device has."""
    return next((arch for arch in DEVICES if arch in archs(name)), None)


def label(case):
    """Whether all checkers of the corpus say clean."""
    verdicts = {case.expected_verdict, case.racecheck_expected_verdict, *case.synccheck_phase_expected_verdicts,
                *case.racecheck_phase_expected_verdicts}
    return "clean" if verdicts <= {"clean", None} else "review"


def one(folder, name, call=""):
    arch = arch_of(name)
    os.environ["TIRX_PREPARE_CUDA_ARCH"] = arch
    import tvm
    import tvm_ffi
    from tvm.support import nvcc

    @tvm_ffi.register_global_func("tvm_callback_cuda_compile", override=True)
    def compile_to_ptx(code):
        # nvcc makes PTX with both .reqntid and .maxntid of these two, and ptxas refuses that.
        if "__block_size__" in code:
            code = re.sub(r"__launch_bounds__\(\d+, 1\) ", "", code)
        return kept(code, name, lambda: nvcc.compile_cuda(code, target_format="ptx", arch=arch, compiler="nvcc"))

    case, (family, _, rest) = corpus(folder)[name], call.partition(".")
    family = sys.modules.get("tests.numsim.corpus.kernels." + family)
    case = eval(rest, {}, {f: getattr(family, f) for f in [rest.partition("(")[0]]}) if family else case.prepare()
    kernels = case.kernel if isinstance(case.kernel, (list, tuple)) else [case.kernel]
    target = tvm.target.Target({"kind": "cuda", "arch": arch})
    with target:
        programs = [tvm.compile(tvm.IRModule({"main": kernel}), target=target, tir_pipeline="tirx")
                    for kernel in kernels]
    memory = Memory(tvm, case.args)
    begin = time.monotonic()
    for i, (kernel, program) in enumerate(zip(kernels, programs)):
        bound = [f"k{i}:{p.name}" if f"k{i}:{p.name}" in case.args else p.name for p in kernel.params]
        program(*(memory.argument(b, p.ty) for b, p in zip(bound, kernel.params)))
    tvm.cuda(0).sync()
    seconds = time.monotonic() - begin
    outputs = case.outputs if isinstance(case.outputs, dict) else {output: output for output in case.outputs}
    expected = case.reference()
    for output, bound in outputs.items():
        if output in expected:
            compare(output, memory.output(bound), expected[output], case.comparisons.get(output))
    print(f"right: outputs {', '.join(expected)}; {seconds:.2f} s from the first launch to the end")


def kept(code, name, compile_code):
    """The PTX of the same code from the folder for dumps, else of the compiler."""
    folder = os.environ.get("TIRX_DUMP")
    if not folder:
        return compile_code()
    for i in range(99):
        source, ptx = Path(folder, f"{name}.{i}.cu"), Path(folder, f"{name}.{i}.ptx")
        if ptx.exists() and source.read_text() == code:
            return ptx.read_bytes()
        if not source.exists():
            break
    made = compile_code()
    source.write_text(code)
    ptx.write_bytes(made)
    return made


class Memory:
    """Arrays of a case in the device's memory. The corpus describes tensor maps by bytes of its own, in arguments or
    inside arrays."""
    def __init__(self, tvm, arguments):
        import numpy
        from tirx_harness.numsim import bindings
        self.tvm, self.numpy, self.bindings, self.arguments = tvm, numpy, bindings, arguments
        arrays = {name: value for name, value in arguments.items() if isinstance(value, numpy.ndarray)}
        maps = {name for name, value in arrays.items()
                if value.shape == (128,) and len(bindings._decode_tensor_maps(value)) == 1}
        self.bound = bindings.prepare_bindings(arrays, expected_tensor_map_names=maps)
        self.device = [tvm.runtime.empty((max(a.byte_len, 1),), "uint8", tvm.cuda(0)) for a in self.bound.allocations]
        self.host = [numpy.frombuffer(a.snapshot(), numpy.uint8).copy() for a in self.bound.allocations]
        self.maps = []  # aligned, while kernels use them
        for name, buffer in self.bound.buffers.items():
            array = numpy.asarray(arguments[name])
            for found in bindings._decode_tensor_maps(array):
                at = buffer.data_offset + found.byte_offset
                self.host[buffer.allocation][at:at + 128] = numpy.frombuffer(self.encoded(found), numpy.uint8)
        for host, device in zip(self.host, self.device):
            if host.size:
                device.copyfrom(host)

    def place(self, address, size):
        """The device's address of bytes that lie in an array of the host."""
        for allocation, device in zip(self.bound.allocations, self.device):
            offset = address - allocation.host_address
            if 0 <= offset and offset + size <= allocation.byte_len:
                return device.data_ptr() + offset
        raise ValueError("a tensor map of memory that is no argument")

    def encoded(self, m):
        types = {"uint8": 0, "uint16": 1, "uint32": 2, "int32": 3, "uint64": 4, "int64": 5, "float16": 6, "float32": 7,
                 "float64": 8, "bfloat16": 9, "float32_ftz": 10, "tf32": 11, "tf32_ftz": 12, "float4_e2m1fn": 13,
                 "float8_e4m3fn": 0, "float8_e8m0fnu": 0, "int8": 0}
        number = types[m.dtype] + (m.fp4_shared_layout == "align16_padded")
        swizzle = {None: 0, "32B": 1, "64B": 2, "128B": 3, "128B_ATOM_32B": 4, "128B_ATOM_32B_FLIP_8B": 5,
                   "128B_ATOM_64B": 6}[m.swizzle]
        if m.im2col or m.interleave_bytes:
            raise ValueError("im2col, interleaved layouts: not supported")
        storage = ctypes.create_string_buffer(192)
        at = (ctypes.addressof(storage) + 63) // 64 * 64
        rank = len(m.global_shape)
        wide, narrow = ctypes.c_uint64 * rank, ctypes.c_uint32 * rank
        status = ctypes.CDLL("libcuda.so.1").cuTensorMapEncodeTiled(
            ctypes.c_void_p(at), number, rank, ctypes.c_void_p(self.place(m.address, m.required_byte_len)),
            wide(*m.global_shape), wide(*m.global_strides), narrow(*m.box_shape), narrow(*m.element_strides), 0,
            swizzle, 0, int(m.fill_mode == "nan"))
        if status:
            raise ValueError(f"cuTensorMapEncodeTiled: error {status}")
        return ctypes.string_at(at, 128)

    def argument(self, name, kind):
        value = self.arguments[name]
        if not isinstance(value, self.numpy.ndarray):
            return value.item() if isinstance(value, self.numpy.generic) else value
        buffer = self.bound.buffers[name]
        if isinstance(kind, self.tvm.ir.PointerType) and type(kind.element_type).__name__ == "TensorMapType":
            storage = ctypes.create_string_buffer(192)
            at = (ctypes.addressof(storage) + 63) // 64 * 64
            ctypes.memmove(at, self.host[buffer.allocation][buffer.data_offset:].ctypes.data, 128)
            self.maps.append(storage)
            return ctypes.c_void_p(at)
        dtype = str(getattr(kind, "dtype", value.dtype))
        shape = value.shape
        if self.tvm.DataType(dtype).bits * self.tvm.DataType(dtype).lanes != 8 * value.itemsize:
            shape = [int(side) for side in kind.shape]
        return self.device[buffer.allocation]._create_view(shape, dtype, buffer.data_offset)

    def output(self, name):
        buffer, numpy = self.bound.buffers[name], self.numpy
        mapped = self.bound.tensor_map_outputs.get(name)
        data = self.device[(mapped or buffer).allocation].numpy()
        if mapped:
            return self.bindings._tensor_map_array_from_buffer(
                data, data_offset=mapped.data_offset, global_shape=mapped.global_shape,
                global_strides=mapped.global_strides, dtype=mapped.dtype)
        return numpy.ndarray(buffer.shape, self.arguments[name].dtype, data, buffer.data_offset, buffer.byte_strides)


def compare(name, actual, expected, rule):
    """As the corpus compares: by the rule's tolerance and regions, exactly without a rule."""
    import numpy
    expected = numpy.asarray(expected)
    if rule and rule.actual_encoding == "bfloat16":
        actual = (numpy.ascontiguousarray(actual).view(numpy.uint16).astype(numpy.uint32) << 16).view(numpy.float32)
    for region in (rule.regions if rule else ()) or [None]:
        a = actual[region.actual] if region else actual
        e = expected[region.expected if region.expected is not None else region.actual] if region else expected
        if a.shape != e.shape:
            raise AssertionError(f"{name} has shape {a.shape}, and the reference {e.shape}")
        as_float = [x.astype(numpy.float32) if x.dtype.name == "bfloat16" else x for x in (a, e)]
        close = numpy.isclose(*as_float, rtol=rule.rtol, atol=rule.atol, equal_nan=rule.equal_nan) if rule else a == e
        if not close.all():
            first = tuple(int(i) for i in numpy.argwhere(~close)[0])
            raise AssertionError(f"{name}{list(first)} is {a[first]}, expected {e[first]}; {int((~close).sum())} of "
                                 f"{close.size} differ")


def names(folder):
    print(json.dumps([{"name": name, "arch": arch_of(name), "label": label(case)}
                      for name, case in corpus(folder).items()]))


# ---- All kernels -------------------------------------------------------------------------------

def run(options, kernel):
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder, "report.json")
        command = [options.roofgen, "run", "--device", DEVICES[kernel["arch"]], "--keep-going", "--output", report,
                   "--", options.python, __file__, "--one", options.corpus, kernel["name"]]
        environment = dict(os.environ, OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")
        if options.dump:
            environment["TIRX_DUMP"] = options.dump
        begin = time.monotonic()
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=options.seconds, env=environment)
        except subprocess.TimeoutExpired:
            return {**kernel, "outputs": "slow", "verdict": "-", "seconds": options.seconds, "why": "", "report": {}}
        text = done.stdout + done.stderr
        out = json.loads(report.read_text()) if report.exists() else {}
        if "\nright: " in "\n" + text:
            outputs = "right"
        else:
            outputs = "wrong" if "AssertionError" in text else "failed"
        verdict = out.get("verdict", "-")
        if verdict == "findings" and all(f["kind"] == "unfenced" for f in out["findings"]):
            verdict = "unfenced"
        return {**kernel, "outputs": outputs, "verdict": verdict, "seconds": time.monotonic() - begin,
                "why": "" if outputs == "right" else reason(text, out), "report": out}


def reason(text, report):
    for call in report.get("failed_calls", []):
        return f"{call['call']}: {call['message']}"
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    errors = [line for line in lines if "Error" in line or "unknown" in line or "not modelled" in line]
    return (errors or lines or [""])[-1][:200]


# What orders accesses: an instruction that a mutant lacks. A loop of waits without its branch looks once.
ORDER = re.compile(r"(bar\.(warp\.)?(sync|arrive)|fence\.proxy|tcgen05\.(wait|commit)|mbarrier\.arrive|"
                   r"cp\.async\.bulk\.wait_group|bra\.uni +LAB_WAIT)")


def mutants(options, kernel):
    """Runs the kernel with one of these instructions left out. Found: findings that the right run lacks, of a kind at a
    line, other outputs, or no end."""
    def findings(result):
        return {(f["kind"], f["kernel"], (f["ptx"] or {}).get("line")) for f in result["report"].get("findings", [])}

    right = run(options, kernel)
    if right["outputs"] != "right":
        return []
    places = [(file, i) for file in sorted(Path(options.dump).glob(kernel["name"] + ".*.ptx"))
              for i, line in enumerate(file.read_text().split("\n")) if ORDER.search(line)]
    out = []
    for file, i in random.Random(1).sample(places, min(options.mutants, len(places))):
        with tempfile.TemporaryDirectory() as folder:
            for other in Path(options.dump).glob(kernel["name"] + ".*"):
                shutil.copy(other, folder)
            lines = file.read_text().split("\n")
            lines[i], gone = "", lines[i].strip()
            Path(folder, file.name).write_text("\n".join(lines))
            result = run(types.SimpleNamespace(**(vars(options) | {"dump": folder})), kernel)
        new = {kind for kind, *_ in findings(result) - findings(right)}
        found = " ".join(sorted(new)) or ("" if result["outputs"] == "right" else result["outputs"])
        print(f"{kernel['name']}: {file.name}:{i + 1}: {gone[:60]}: {found or 'not found'}", flush=True)
        out.append(bool(found))
    return out


def write_table(path, rows):
    with open(path, "w", newline="") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(["kernel", "arch", "label", "outputs", "verdict", "findings", "warp_instructions", "seconds"])
        table.writerows(rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--one", nargs="+", metavar="FOLDER NAME CALL")
    parser.add_argument("--names", metavar="FOLDER", help="print the cases as JSON")
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--corpus", help="the unpacked archive of tirx-harness")
    parser.add_argument("--roofgen", default="build/cli/roofgen")
    parser.add_argument("--only", default="", help="kernels with this in their names; several: divided by commas")
    parser.add_argument("--seconds", type=float, default=300)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--dump", help="folder for CUDA sources and PTX, which are used again")
    parser.add_argument("--mutants", type=int, default=0, metavar="N",
                        help="N mutants of each kernel, whose PTX is in the folder of --dump, that lack what orders")
    parser.add_argument("--csv", help="file for the table; rows of kernels that are not chosen stay")
    options = parser.parse_args()
    if options.one:
        return one(*options.one)
    if options.names:
        return names(options.names)
    if not options.corpus:
        parser.error("--corpus FOLDER is missing: the unpacked source archive of tirx-harness")
    kernels = json.loads(subprocess.run([options.python, __file__, "--names", options.corpus], text=True, check=True,
                                        stdout=subprocess.PIPE).stdout)
    chosen = [k for k in kernels if k["arch"] and any(text in k["name"] for text in options.only.split(","))]
    if options.mutants:
        if not options.dump or not any(Path(options.dump).glob("*.ptx")):
            parser.error("--mutants needs --dump FOLDER of an earlier run: the PTX that is changed")
        with ThreadPoolExecutor(options.jobs) as pool:
            found = sum(pool.map(lambda kernel: mutants(options, kernel), chosen), [])
        return print(f"{sum(found)} of {len(found)} mutants found")
    counts, rows = {}, {k["name"]: [k["name"], k["arch"] or "other", k["label"]] + ["-"] * 5 for k in kernels}
    if options.csv and Path(options.csv).exists():
        with open(options.csv, newline="") as file:
            rows |= {row[0]: row for row in list(csv.reader(file))[1:] if row[0] in rows}
    with ThreadPoolExecutor(options.jobs) as pool:
        for result in pool.map(lambda kernel: run(options, kernel), chosen):
            key = (result["label"], result["outputs"], result["verdict"])
            counts[key] = counts.get(key, 0) + 1
            print(f"{result['name']:70} {result['label']:6} {result['outputs']:6} {result['verdict']:10} "
                  f"{result['seconds']:4.0f} s  {result['why']}", flush=True)
            findings = result["report"].get("findings", [])
            of_kind = {kind: [f for f in findings if f["kind"] == kind] for kind in {f["kind"] for f in findings}}
            for kind, found in sorted(of_kind.items()):
                print(f"    {kind}, {len(found)} lines, first {found[0]['ptx']['file']}:{found[0]['ptx']['line']}: "
                      f"{found[0]['message']}", flush=True)
            launches = result["report"].get("kernels", [])
            rows[result["name"]] = [
                result["name"], result["arch"], result["label"], result["outputs"], result["verdict"],
                " ".join(sorted(of_kind)) or "-",
                sum(k["counts"]["warp_instructions"] for k in launches if "counts" in k), f"{result['seconds']:.0f}"]
            if options.csv:
                write_table(options.csv, rows.values())
    print(f"{len(kernels) - len([k for k in kernels if k['arch']])} for other GPUs")
    for (labelled, outputs, verdict), count in sorted(counts.items()):
        print(f"{count:4} labelled {labelled}: {outputs}, {verdict}")


if __name__ == "__main__":
    main()
