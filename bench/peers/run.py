#!/usr/bin/env python3
"""roofgen's tuned attention and its peers on one GPU: same inputs, interleaved, each checked before it is timed.

  run.py --bundle DIR [--bundle DIR2]      DIR from `roofgen emit attention ... -o DIR`
  run.py --L 4096 --d 128 --causal         the peers alone
  run.py --list                            who can run here, and why not

docs/peers.md says what is compared and how. Exit codes: 0 done, 1 ours failed or nobody could be timed,
2 usage, 3 no torch or no GPU, 130 interrupted (what was finished is written)."""

import argparse
import contextlib
import dataclasses
import datetime
import difflib
import importlib
import json
import math
import os
import platform
import shlex
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import attention  # noqa: E402
import bundle as bundles_  # noqa: E402
import report  # noqa: E402
import rounds as protocol_  # noqa: E402
from limits import at_most, nothing_on_stdout  # noqa: E402

OK, FAILED, USAGE, UNAVAILABLE, INTERRUPTED = 0, 1, 2, 3, 130
VERSIONS = ("torch", "triton", "flash_attn", "flash_attn_interface", "flashinfer", "quack")


class Stop(Exception):
    def __init__(self, code, message):
        super().__init__(message)
        self.code = code


@dataclasses.dataclass
class Env:
    """What was found: torch and the modules of the peers, by name."""

    torch: object
    modules: dict
    driver: object = None
    compile_mode: str = "default"


@dataclasses.dataclass
class Contender:
    name: str
    what: str
    run: object
    error_over_tolerance: float = None
    rows_checked: int = 0


def arguments(argv):
    p = argparse.ArgumentParser(prog="run.py", description=__doc__.split("\n\n")[0])
    p.add_argument("--bundle", action="append", default=[], metavar="DIR", help="a replay bundle, or what `roofgen emit` wrote; the first is what the others are compared with")
    p.add_argument("--list", action="store_true", help="name all peers and whether they can run")
    p.add_argument("--peer", action="append", default=[], metavar="NAME", help="only these peers [all]")
    for name, help_ in (("L", "rows of Q"), ("kv-len", "rows of K and V [L]"), ("d", "head dimension"), ("batch", "[16384 / L]"),
                        ("heads", "[2048 / d]"), ("kv-heads", "[heads]")):
        p.add_argument(f"--{name}", type=positive, help=help_)
    p.add_argument("--causal", action="store_true")
    p.add_argument("--dtype", choices=("bf16", "fp16"), default="bf16")
    p.add_argument("--mode", choices=("steady", "burst", "both"), default="both", help="a busy GPU's clock, a cool one's [both]")
    p.add_argument("--rounds", type=positive, help="at most so many [steady 300, burst 10]")
    p.add_argument("--seconds", type=positive, default=60, help="for each mode, at most [60]")
    p.add_argument("--prepare", type=positive, default=90, metavar="S", help="for compiling and checking all peers; who is not ready by then is left out, and named [90]")
    p.add_argument("--max-autotune", action="store_true", help="torch.compile tries more, and takes minutes")
    p.add_argument("--gpu", type=int, default=0)
    p.add_argument("--seed", type=int, default=0)
    p.add_argument("--json", metavar="FILE", help="write the result there, schema roofgen.peers.1; - for standard output")
    p.add_argument("--libcuda", default=os.environ.get("ROOFGEN_LIBCUDA") or "libcuda.so.1", help=argparse.SUPPRESS)
    return p.parse_args(argv)


def positive(text):
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{text}: a number from 1 was expected")
    return value


def chosen_peers(names):
    known = [p.name for p in attention.PEERS]
    for n in names:
        if n not in known:
            near = difflib.get_close_matches(n, known, 1)
            raise Stop(USAGE, f"unknown peer \"{n}\"" + (f"; did you mean {near[0]}?" if near else f"; known are {', '.join(known)}"))
    return [p for p in attention.PEERS if not names or p.name in names]


def load_torch():
    """torch, or why not."""
    try:
        torch = importlib.import_module("torch")
    except Exception as error:
        raise Stop(UNAVAILABLE, f"torch cannot be imported: {protocol_.first_line(error)}") from None
    return torch


def load_gpu(torch, index):
    try:
        count = torch.cuda.device_count() if torch.cuda.is_available() else 0
    except Exception as error:
        raise Stop(UNAVAILABLE, f"torch finds no GPU: {protocol_.first_line(error)}") from None
    if count == 0:
        raise Stop(UNAVAILABLE, "torch finds no GPU")
    if not 0 <= index < count:
        raise Stop(USAGE, f"there is no GPU {index}; this machine has {count}, counted from 0")


def list_peers(peers):
    try:
        env, blocked = Env(load_torch(), {}), ""
        load_gpu(env.torch, 0)
    except Stop as stop:
        env, blocked = None, str(stop)
    rows = [["peer", "here", "what"]]
    for p in peers:
        reason = blocked or p.missing(env)
        rows.append([p.name, f"no: {reason}" if reason else "yes", p.what])
    width = [max(len(r[i]) for r in rows) for i in range(2)]
    return "".join(f"{r[0]:<{width[0]}}  {r[1]:<{width[1]}}  {r[2]}".rstrip() + "\n" for r in rows)


def the_problem(args, bundles):
    if bundles:
        if any(b.problem != bundles[0].problem for b in bundles):
            raise Stop(USAGE, "the bundles are of different problems")
        if bundles[0].problem["op"] != "attention":
            raise Stop(USAGE, f"no peers for {bundles[0].problem['op']}; attention was expected")
        return bundles[0].problem
    if not args.L or not args.d:
        raise Stop(USAGE, "--bundle DIR, or --L and --d, were expected")
    try:
        return attention.problem_of(args.L, args.d, args.kv_len, args.batch, args.heads, args.kv_heads, args.causal, args.dtype)
    except ValueError as error:
        raise Stop(USAGE, str(error)) from None


def build_ours(env, one, shape, sets):
    """Our kernels on these inputs, through the driver, on torch's stream."""
    torch = env.torch
    kernels = [env.driver.kernel(c, p, k) for c, p, k in zip(one.cubins, one.ptx, one.kernels)]
    bound, outs = [], []
    for x in sets:
        tensors = dict(x)
        for name, b in one.buffers.items():
            if name in tensors:
                if tensors[name].nbytes != b["bytes"]:
                    raise bundles_.BadBundle(f"{name} has {b['bytes']} bytes in the bundle and {tensors[name].nbytes} here")
            elif name == "O":
                tensors[name] = torch.full_like(x["Q"], float("nan"))
            elif b["role"] == "temporary" and bound:
                tensors[name] = shared[name]  # noqa: F821: of the first set
            else:
                tensors[name] = torch.empty(max(b["bytes"], 1), dtype=torch.uint8, device="cuda")
        shared = tensors  # noqa: F841
        addresses = {n: t.data_ptr() for n, t in tensors.items()}
        bound.append(([k.bind(addresses) for k in kernels], tensors))
        outs.append(tensors["O"])
    note = f"{one.variant}: the driver compiled its PTX, the CUBIN is of another architecture" if any(k.from_ptx for k in kernels) else ""

    def run(i):
        stream = torch.cuda.current_stream().cuda_stream
        for launch in bound[i][0]:
            launch(stream)
        return outs[i]

    return run, note


def finite(x):
    """JSON has no infinity: an answer with NaNs has no error that could be stated."""
    return x if math.isfinite(x) else None


def check(env, shape, sets, contender, rounds_scores):
    """Fills in how far its answer is from the reference; raises when it cannot be computed."""
    worst = rows = 0
    for i in (0, len(sets) - 1):
        out = contender.run(i)
        env.torch.cuda.synchronize()
        error, n = attention.error_over_tolerance(env.torch, shape, sets[i], out, rounds_scores)
        worst, rows = max(worst, error), rows + n
    contender.error_over_tolerance, contender.rows_checked = worst, rows


def prepare(env, shape, sets, gpu, bundles, peers, notes, seconds):
    """Everybody who may be timed, and what became of the others."""
    contenders, rounding, entries = [], {}, {}
    until = time.monotonic() + seconds

    def enter(name, what, build, rounds_scores):
        entry = {"name": name, "what": what, "state": "failed", "reason": "", "error_over_tolerance": None, "rows_checked": 0}
        entries[name] = entry
        if not gpu.alive():
            entry["reason"] = "the GPU was lost before its turn"
            return
        try:
            with contextlib.nullcontext() if name.startswith("roofgen:") else at_most(until - time.monotonic()):
                c = Contender(name, what, build())
                check(env, shape, sets, c, rounds_scores)
        except attention.Unfit as unfit:
            entry.update(state="missing", reason=str(unfit))
            return
        except Exception as error:
            entry["reason"] = protocol_.first_line(error)
            try:
                env.torch.cuda.synchronize()
            except Exception:
                gpu.lost = True
            return
        entry.update(error_over_tolerance=finite(c.error_over_tolerance), rows_checked=c.rows_checked)
        if not c.error_over_tolerance <= 1:
            entry.update(state="wrong", reason=f"its error is {c.error_over_tolerance:.3g} times the tolerance")
            return
        entry["state"] = "timed"
        contenders.append(c)
        rounding[name] = rounds_scores

    for b in bundles:
        name = f"roofgen:{b.variant}"
        while name in entries:
            name += "'"

        def ours(b=b):
            run, note = build_ours(env, b, shape, sets)
            notes.extend([note] if note else [])
            return run

        stored = any(x["role"] == "temporary" and x["dtype"] != "fp32" for x in b.buffers.values())
        enter(name, f"{len(b.kernels)} kernel(s) of {b.directory}", ours, stored)
    for p in peers:
        reason = p.missing(env)
        if reason:
            entries[p.name] = {"name": p.name, "what": p.what, "state": "missing", "reason": reason}
            continue
        enter(p.name, p.what, lambda p=p: p.build(env, shape, sets), p.rounds_scores)
    return contenders, rounding, entries


def compare(env, gpu, args, problem, bundles, peers, sets, now=time.monotonic, sleep=time.sleep):
    shape, notes = attention.Shape.of(problem), []
    contenders, rounding, entries = prepare(env, shape, sets, gpu, bundles, peers, notes, args.prepare)
    ours = next((n for n in entries if n.startswith("roofgen:")), None)
    modes, interrupted = [], False
    for mode in ("burst", "steady") if args.mode == "both" else (args.mode,):
        if not contenders or not gpu.alive() or interrupted:
            break
        taken = protocol_.take(gpu, contenders, protocol_.Protocol.of(mode, args.rounds, args.seconds), now, sleep)
        modes.append({"mode": mode, "ways": list(taken.times), "rounds": taken.rounds, "stopped": taken.stopped, "state": report.state_medians(taken.states)})
        for name, reason in taken.failed.items():
            entries[name].update(state="failed", reason=reason)
        for c in contenders:
            by = {way: report.timing(taken, way, c.name, ours, shape.flops()) for way in taken.times}
            entries[c.name].setdefault("timings", {})[mode] = {way: t for way, t in by.items() if t}
        contenders = [c for c in contenders if c.name not in taken.failed]
        interrupted = taken.stopped == "interrupted"
    for c in contenders:
        if interrupted:
            break
        # Once more: a kernel that was right at rest and is wrong after a minute of work was not right.
        try:
            before = c.error_over_tolerance
            check(env, shape, sets, c, rounding[c.name])
            if not c.error_over_tolerance <= 1:
                entries[c.name].update(state="wrong", reason=f"after timing its error is {c.error_over_tolerance:.3g} times the tolerance; {before:.3g} before")
        except KeyboardInterrupt:
            interrupted = True
        except Exception as error:
            entries[c.name].update(state="failed", reason=f"after timing: {protocol_.first_line(error)}")
    for e in entries.values():
        if e["state"] != "timed":
            e.pop("timings", None)
        elif not any(e.get("timings", {}).values()):
            e.pop("timings", None)
            e.update(state="failed", reason="no sample was taken")
    if interrupted:
        notes.append("interrupted: the rounds that were finished stand; answers were checked before them, not all again after")
    if not gpu.alive():
        notes.append("the GPU was lost; what was finished before stands")
    if ours is None:
        notes.append("no bundle of roofgen's was given: the peers alone")
    return {
        "schema": report.SCHEMA, "origin": "measured", "time": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
        "command": shlex.join([os.path.basename(sys.argv[0] or "run.py"), *args.argv]), "op": problem["op"], "problem": problem,
        "flop_convention": attention.FLOP_CONVENTION, "flops": shape.flops(), "baseline": ours, "gpu": gpu.describe(), "versions": versions(env),
        "protocol": {"flush_bytes": getattr(gpu, "flush_bytes", None), "buffer_sets": gpu.buffer_sets, "inputs": "N(0,1)", "seed": args.seed, "compile_mode": env.compile_mode},
        "bundles": [b.describe() for b in bundles], "modes": modes, "peers": list(entries.values()), "notes": notes,
        "interrupted": interrupted,
    }


def versions(env):
    out = {"python": platform.python_version()}
    for name in VERSIONS:
        module = env.torch if name == "torch" else env.modules.get(name)
        if module is not None:
            out[name] = str(getattr(module, "__version__", "unknown"))
    torch = env.torch
    try:
        out["cuda"], out["cudnn"] = str(torch.version.cuda), str(torch.backends.cudnn.version())
    except Exception:
        pass
    if env.driver is not None:
        out["driver_cuda"] = env.driver.version()
    return out


def sets_wanted(torch, l2_bytes, shape):
    """Copies of the inputs: together at least three times L2, at most a quarter of the memory that is free."""
    each = 2 * shape.d * shape.batch * (2 * shape.L * shape.heads + 2 * shape.kv_len * shape.kv_heads)
    return max(1, min(8, max(2, -(-3 * l2_bytes // each)), torch.cuda.mem_get_info()[0] // 4 // each))


def run(argv):
    args = arguments(argv)
    args.argv = argv
    peers = chosen_peers(args.peer)
    if args.list:
        sys.stdout.write(list_peers(peers))
        return OK
    try:
        bundles = [bundles_.read(path) for path in args.bundle]
    except bundles_.BadBundle as error:
        raise Stop(USAGE, str(error)) from None
    problem = the_problem(args, bundles)
    env = Env(load_torch(), {}, compile_mode="max-autotune-no-cudagraphs" if args.max_autotune else "default")
    load_gpu(env.torch, args.gpu)
    import driver
    from gpu import TorchGpu

    gpu = TorchGpu(env.torch, 1, args.gpu)
    if bundles:
        try:
            env.driver = driver.Driver(args.libcuda)
        except OSError as error:
            raise Stop(UNAVAILABLE, f"no CUDA driver: {error}") from None
    shape = attention.Shape.of(problem)
    gpu.buffer_sets = sets_wanted(env.torch, gpu.l2_bytes, shape)
    sets = attention.inputs(env.torch, shape, gpu.buffer_sets, args.seed)
    with nothing_on_stdout(args.json == "-"):
        doc = compare(env, gpu, args, problem, bundles, peers, sets)
    return finish(doc, args)


def finish(doc, args):
    wrong = report.faults(doc)
    if wrong:
        raise Stop(FAILED, f"the result is not of its own schema: {wrong[0]}")
    if args.json:
        text = json.dumps(doc, indent=2, allow_nan=False) + "\n"
        if args.json == "-":
            sys.stdout.write(text)
        else:
            with open(args.json, "w", encoding="utf-8") as f:
                f.write(text)
    if args.json != "-":
        sys.stdout.write(report.table(doc))
    if doc["interrupted"]:
        return INTERRUPTED
    states = {p["name"]: p["state"] for p in doc["peers"]}
    ours_failed = any(n.startswith("roofgen:") and s != "timed" for n, s in states.items())
    return FAILED if ours_failed or "timed" not in states.values() else OK


def main(argv):
    try:
        return run(argv)
    except Stop as stop:
        print(f"peers: {stop}", file=sys.stderr)
        return stop.code
    except KeyboardInterrupt:
        print("peers: interrupted before anything was timed", file=sys.stderr)
        return INTERRUPTED
    except Exception as error:  # out of memory, a full disk: one line, not a trace
        print(f"peers: error: {protocol_.first_line(error)}", file=sys.stderr)
        return FAILED


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
