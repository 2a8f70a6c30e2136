#!/usr/bin/env python3
"""The rows of one step of a visit package, on the GPU: each case is checked against its expected elements, then ours
and the peers are timed in the same rounds. Writes one JSON object a line: {"begin": case} before a case, the row after
it. A case that the file already has is left out, so that a new process goes on after one that was killed.

  rows.py PACKAGE STEP --out FILE --seconds S [--gpu N] [--rehearse] [--once CASE]

Exit codes: 0 all cases have a row, 2 usage, 3 no GPU, 130 interrupted. docs/evidence/visit.md has the members of a
row."""
import argparse
import concurrent.futures
import datetime
import json
import math
import struct
import subprocess
import sys
import time
from pathlib import Path

import cublaslt
import cuda
import files
import timing
import torch_peers
from timing import OK, UNAVAILABLE, USAGE, Lost, Stop, Unfit, first_line

MOST_SETS, POISON = 8, 0xff  # copies of the tensors; a NaN in every float format


# ---- Elements --------------------------------------------------------------------------------------------------------

def fp8(bits):
    """The value of an e4m3 byte."""
    sign, exponent, mantissa = -1.0 if bits & 128 else 1.0, bits >> 3 & 15, bits & 7
    if bits & 127 == 127:
        return math.nan
    return sign * (math.ldexp(8 + mantissa, exponent - 10) if exponent else math.ldexp(mantissa, -9))


FP8 = [fp8(bits) for bits in range(256)]
ELEMENT_BYTES = {"bf16": 2, "fp16": 2, "fp32": 4, "tf32": 4, "fp8": 1, "int8": 1, "int32": 4}
CODES = {"fp16": "e", "fp32": "f", "tf32": "f", "int8": "b", "int32": "i"}


def decode(dtype, data):
    """The values of elements that lie one after the other."""
    if dtype == "bf16":
        halves = struct.unpack(f"<{len(data) // 2}H", data)
        return struct.unpack(f"<{len(halves)}f", struct.pack(f"<{len(halves)}I", *(each << 16 for each in halves)))
    if dtype == "fp8":
        return [FP8[each] for each in data]
    return struct.unpack(f"<{len(data) // ELEMENT_BYTES[dtype]}{CODES[dtype]}", data)


def error_over_tolerance(got, expected, tolerance):
    """Infinite for a NaN or infinity that was not expected, and for an inexact value of the tolerance 0."""
    if got == expected or (math.isnan(got) and math.isnan(expected)):
        return 0.0
    error = abs(got - expected)
    return error / tolerance if tolerance and math.isfinite(error) else math.inf


# ---- One case on the GPU ---------------------------------------------------------------------------------------------

class Contender:
    """An implementation, and what became of it. `run(i)` queues the work on copy i of the tensors; `place(buffer, i)`
    is the address of an output, contiguous in roofgen's layout, or None where it does not have the output."""

    def __init__(self, name, build, **facts):
        self.name, self.build, self.facts = name, build, facts
        self.run = self.place = None
        self.state, self.reason, self.error, self.checked, self.timings = "timed", "", 0.0, 0, {}

    def drop(self, state, reason):
        self.state, self.reason = state, reason

    def document(self):
        error = self.error if self.checked and math.isfinite(self.error) else None
        return {"name": self.name, **self.facts, "state": self.state, "reason": self.reason,
                "error_over_tolerance": error, "elements_checked": self.checked, "timings": self.timings}


class Case:
    """The tensors of a case on the GPU, in several copies that together are at least three times L2."""

    def __init__(self, package, document, gpu, contents):
        self.gpu, self.document, self.problem = gpu, document, document["problem"]
        self.entries = [json.loads((package / entry["folder"] / "replay.json").read_text())
                        for entry in document["entries"]]
        self.folders = [package / entry["folder"] for entry in document["entries"]]
        self.buffers = {each["name"]: each for replay in self.entries for each in replay["buffers"]}
        self.expected = [json.loads((package / entry["expected"]).read_text()) for entry in document["entries"]]
        shared = {name: each for name, each in self.buffers.items() if each["role"] != "temporary"}
        size = sum(each["bytes"] for each in shared.values())
        self.sets = min(MOST_SETS, max(2, math.ceil(3 * gpu.l2_bytes / size)))
        self.allocated, self.copies = [], []
        for _ in range(self.sets):
            copy = {name: self.allocate(each["bytes"], name) for name, each in shared.items()}
            for name, data in contents.items():
                if self.copies:
                    gpu.copy(copy[name], self.copies[0][name], len(data))
                else:
                    gpu.write(copy[name], data)
            self.copies.append(copy)
        self.contents = contents
        gpu.wait("filling the inputs")

    def allocate(self, size, purpose):
        self.allocated.append(self.gpu.allocate(size, purpose))
        return self.allocated[-1]

    def free(self):
        for address in self.allocated:
            self.gpu.free(address)

    def restore(self, i):
        """Outputs become NaN; what a kernel updates gets its first contents again."""
        for name, each in self.buffers.items():
            if each["role"] == "output":
                self.gpu.fill(self.copies[i][name], POISON, each["bytes"])
            elif each["role"] == "updated":
                self.gpu.write(self.copies[i][name], self.contents[name])

    def ours(self, number):
        """build() of an entry of the package."""
        def build(contender):
            replay, places = self.entries[number], [dict(copy) for copy in self.copies]
            for each in (each for each in replay["buffers"] if each["role"] == "temporary"):
                address = self.allocate(each["bytes"], each["name"])  # one for all copies, as in a launch
                self.gpu.fill(address, 0 if each.get("zeroed") else POISON, each["bytes"])
                for copy in places:
                    copy[each["name"]] = address
            kernels = []
            for each in replay["kernels"]:
                binaries = {kind: path.read_bytes() if (path := self.folders[number] / each[kind]).exists() else b""
                            for kind in ("cubin", "ptx")}
                kernels.append(cuda.Kernel(self.gpu.driver, {**each, **binaries}))
            launches = [[kernel.bind(copy) for kernel in kernels] for copy in places]

            def run(i):
                for launch in launches[i]:
                    launch(self.gpu.stream)
            contender.run, contender.place = run, lambda buffer, i: self.copies[i][buffer]
        return build

    def examine(self, contender, expected):
        """(error over the tolerance, number of checked elements) on the first and the last copy."""
        worst, checked = 0.0, 0
        for i in sorted({0, self.sets - 1}):
            self.restore(i)
            contender.run(i)
            self.gpu.wait(f"running {contender.name}")
            for name, runs in expected.items():
                address = contender.place(name, i)
                if address is None:
                    continue
                dtype = self.buffers[name]["dtype"]
                size = ELEMENT_BYTES[dtype]
                for run in runs:
                    data = self.gpu.download(address + size * run["first"], size * len(run["expected"]))
                    for got, want, tolerance in zip(decode(dtype, data), run["expected"], run["tolerance"]):
                        worst = max(worst, error_over_tolerance(got, float(want), float(tolerance)))
                    checked += len(run["expected"])
        return worst, checked


def contenders_of(case, package_case, peers):
    """Ours first, in the package's order, then the peers. The first is the base of all ratios."""
    out = []
    for number, entry in enumerate(package_case["entries"]):
        facts = {name: entry[name] for name in ("schedule", "why", "predicted_us", "counts") if name in entry}
        out.append((Contender(entry["name"], case.ours(number), ours=True, **facts), case.expected[number]))
    widest = case.expected[0]
    for name in package_case.get("peers", []):
        module = cublaslt if name.startswith("cublaslt") else torch_peers
        out.append((Contender(name, lambda contender, m=module: m.build(peers, case, contender), ours=False), widest))
    return out


def examine(case, contender, expected, when=""):
    """Builds a contender and checks it, or after the timing checks it again."""
    try:
        if not contender.run:
            contender.build(contender)
        contender.error, contender.checked = case.examine(contender, expected)
        if not contender.error <= 1:
            contender.drop("wrong", f"{when}its error is {contender.error:.3g} times the tolerance")
        elif not contender.checked:
            contender.drop("failed", "none of its outputs is expected")
    except Unfit as unfit:
        contender.drop("missing", str(unfit))
    except Exception as error:  # a peer's own code, or a kernel that faults
        contender.drop("failed", f"{when}{first_line(error)}")
        case.gpu.settle()


def measure(case, package_case, peers, seconds, now=time.monotonic):
    """The row of a case."""
    pairs = contenders_of(case, package_case, peers)
    for contender, expected in pairs:
        if case.gpu.lost:
            contender.drop("failed", "the GPU was lost before its turn")
        else:
            examine(case, contender, expected)
    timed = [contender for contender, _ in pairs if contender.state == "timed"]
    row = {"rounds": 0, "stopped": "nothing to time", "clock": {}}
    if timed and not case.gpu.lost:
        taken = timing.take(case.gpu, timed, case.sets, timing.Protocol(seconds), now)
        row = {"rounds": taken.rounds, "stopped": taken.stopped, "clock": timing.medians(taken.states)}
        base = timed[0].name
        for contender in timed:
            for way, by in taken.times.items():
                samples = [each for each in by[contender.name] if each is not None]
                if samples:
                    contender.timings[way] = {**timing.summarize(samples),
                                              "ratio": timing.paired_ratio(by[contender.name], by[base])}
            if contender.name in taken.failed:
                contender.drop("failed", taken.failed[contender.name])
        for contender, expected in pairs:
            if contender.state == "timed" and not case.gpu.lost:
                examine(case, contender, expected, "after timing ")
    row["entries"] = [contender.document() for contender, _ in pairs]
    ours = [contender for contender, _ in pairs if contender.facts["ours"]]
    bad = next((c for c in ours if c.state != "timed"), None)
    row["status"] = bad.state if bad else "ok"
    row["message"] = f"{bad.name}: {bad.reason}" if bad else ""
    return row


# ---- The step --------------------------------------------------------------------------------------------------------

def input_bytes(program, folder, name):
    done = subprocess.run([program, "__replay", folder, "--input", name], capture_output=True)
    if done.returncode:
        raise Stop(UNAVAILABLE, f"{program}: {done.stderr.decode(errors='replace').strip()}")
    return done.stdout


def contents(package, program, document):
    """The inputs of a case by buffer, as the operator fills them."""
    folder = package / document["entries"][0]["folder"]
    replay = json.loads((folder / "replay.json").read_text())
    return {each["name"]: input_bytes(program, folder, each["name"]) for each in replay["buffers"]
            if each["role"] in ("input", "updated")}


def parse(argv):
    parser = argparse.ArgumentParser(prog="rows.py", description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("package", type=Path)
    parser.add_argument("step")
    parser.add_argument("--out", type=Path, default=Path("rows.jsonl"))
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--gpu", type=int, default=0)
    parser.add_argument("--program", default="", help="the roofgen that fills the inputs [the package's]")
    parser.add_argument("--rehearse", action="store_true", help="also on a simulated driver; its times mean nothing")
    parser.add_argument("--once", metavar="CASE", help="launch the first entry of this case once, for a profiler")
    return parser.parse_args(argv)


def run(argv):
    options, began = parse(argv), time.monotonic()
    document = json.loads((options.package / "package.json").read_text())
    program = options.program or str(options.package / "roofgen")
    cases = [each for each in document["cases"] if options.once in (None, each["name"]) and
             (options.once or each["step"] == options.step)]
    if not cases:
        raise Stop(USAGE, f"the package has no case of the step {options.step}")
    gpu = cuda.Gpu(options.gpu, options.rehearse)
    if options.once:
        case = Case(options.package, cases[0], gpu, contents(options.package, program, cases[0]))
        contender = Contender("once", case.ours(0))
        contender.build(contender)
        contender.run(0)
        gpu.wait("running")
        return OK
    done = {line.get("begin") or line.get("case") for line in files.lines(options.out)}
    cases = [each for each in cases if each["name"] not in done]
    peers = torch_peers.Torch(gpu) if any(each.get("peers") for each in cases) else None
    with open(options.out, "a", encoding="utf-8") as out, concurrent.futures.ThreadPoolExecutor(1) as ahead:
        def write(line):
            out.write(json.dumps(line, allow_nan=False) + "\n")
            out.flush()
        # The inputs of the next case are made while this one runs.
        waiting = [ahead.submit(contents, options.package, program, cases[0])] if cases else []
        for number, each in enumerate(cases):
            write({"begin": each["name"]})
            filled = waiting.pop().result()
            if number + 1 < len(cases):
                waiting.append(ahead.submit(contents, options.package, program, cases[number + 1]))
            left = options.seconds - (time.monotonic() - began)
            started = datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds")
            case = Case(options.package, each, gpu, filled)
            # Half of a case's share: the other half makes the tensors and checks.
            row = measure(case, each, peers, max(0.2, 0.5 * left / (len(cases) - number)))
            case.free()
            write({"schema": "roofgen.visit-row.1", "case": each["name"], "step": options.step,
                   "origin": "rehearsal" if gpu.driver.simulated else "measured", "started": started,
                   "problem": each["problem"], "use": each["use"], "flops": each["flops"],
                   "dram_bytes": each["dram_bytes"], "floor_us": each["floor_us"], "gpu": gpu.facts["name"], **row})
            if gpu.lost:
                raise Lost("the GPU was lost")
    return OK


if __name__ == "__main__":
    try:
        sys.exit(run(sys.argv[1:]))
    except Stop as stop:
        print(f"rows: {stop}", file=sys.stderr)
        sys.exit(stop.code)
    except KeyboardInterrupt:
        sys.exit(timing.INTERRUPTED)
    except Exception as error:  # one line without a trace
        print(f"rows: {first_line(error)}", file=sys.stderr)
        sys.exit(timing.FAILED)
