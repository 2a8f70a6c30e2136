#!/usr/bin/env python3
"""roofgen's tuned attention and its peers on one GPU: same inputs, timed in turns, each checked before it is timed.

  run.py --bundle DIR [--bundle DIR2]      DIR from `roofgen emit attention ... -o DIR`
  run.py --L 4096 --d 128 --causal         the peers alone
  run.py --list                            the peers, and why some cannot run here

docs/peers.md describes the peers and the protocol. Exit codes: 0 done, 1 ours failed or nothing could be timed,
2 usage, 3 no torch or no GPU, 130 interrupted (the finished rounds are written)."""
import argparse
import contextlib
import dataclasses
import datetime
import importlib
import json
import math
import os
import platform
import shlex
import signal
import statistics
import sys
import time
from pathlib import Path

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import attention  # noqa: E402
import driver  # noqa: E402
import report  # noqa: E402
from bundle import BadBundle, Bundle  # noqa: E402
from gpu import TorchGpu  # noqa: E402
from rounds import Protocol, first_line, take  # noqa: E402
from stats import paired_ratio, summarize  # noqa: E402

OK, FAILED, USAGE, UNAVAILABLE, INTERRUPTED = 0, 1, 2, 3, 130
VERSIONS = ("torch", "triton", "flash_attn", "flash_attn_interface", "flashinfer")


class Stop(Exception):
    def __init__(self, code, message):
        super().__init__(message)
        self.code = code


@dataclasses.dataclass
class Env:
    torch: object
    driver: object = None
    compile_mode: str = "default"


def positive(text):
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{text}: a number from 1 was expected")
    return value


def arguments(argv):
    p = argparse.ArgumentParser(prog="run.py", description=__doc__.split("\n\n", maxsplit=1)[0])
    p.add_argument("--bundle", action="append", default=[], metavar="DIR",
                   help="a replay bundle or an output folder of `roofgen emit`; ratios are against the first")
    p.add_argument("--list", action="store_true", help="list the peers and whether they can run")
    p.add_argument("--peer", action="append", choices=[p.name for p in attention.all_peers()], help="only these [all]")
    for name, text in (("L", "rows of Q"), ("kv-len", "rows of K and V [L]"), ("d", "head dimension"),
                       ("batch", "[16384 / L]"), ("heads", "[2048 / d]"), ("kv-heads", "[heads]")):
        p.add_argument(f"--{name}", type=positive, help=text)
    p.add_argument("--causal", action="store_true")
    p.add_argument("--dtype", choices=("bf16", "fp16"), default="bf16")
    p.add_argument("--mode", choices=("steady", "burst", "both"), default="both",
                   help="the clock of a busy GPU, of a cool GPU, or both [both]")
    p.add_argument("--rounds", type=positive, help="the most rounds [steady 300, burst 10]")
    p.add_argument("--seconds", type=positive, default=60, help="the most time for each mode [60]")
    p.add_argument("--prepare", type=positive, default=90, metavar="S",
                   help="time to compile and check all peers; the others are left out and named [90]")
    p.add_argument("--max-autotune", action="store_true", help="torch.compile tries more and takes minutes")
    p.add_argument("--gpu", type=int, default=0)
    p.add_argument("--seed", type=int, default=0)
    p.add_argument("--json", metavar="FILE", help="write the result as roofgen.peers.1; - for standard output")
    return p.parse_args(argv)


def load_torch(gpu):
    """torch with this GPU. Raises Stop."""
    try:
        torch = importlib.import_module("torch")
    except Exception as error:
        raise Stop(UNAVAILABLE, f"torch cannot be imported: {first_line(error)}") from None
    try:
        count = torch.cuda.device_count() if torch.cuda.is_available() else 0
    except Exception as error:
        raise Stop(UNAVAILABLE, f"torch finds no GPU: {first_line(error)}") from None
    if count == 0:
        raise Stop(UNAVAILABLE, "torch finds no GPU")
    if not 0 <= gpu < count:
        raise Stop(USAGE, f"there is no GPU {gpu}; this machine has {count}, counted from 0")
    return torch


def list_peers(peers, gpu):
    try:
        load_torch(gpu)
        blocked = ""
    except Stop as stop:
        blocked = str(stop)
    rows = [["peer", "here", "what"]]
    for p in peers:
        reason = blocked or p.missing()
        rows.append([p.name, f"no: {reason}" if reason else "yes", p.what])
    return report.columns(rows, left=3)


def the_problem(args, bundles):
    if not bundles:
        if not args.L or not args.d:
            raise Stop(USAGE, "--bundle DIR, or --L and --d, were expected")
        try:
            return attention.problem_of(args.L, args.d, args.kv_len, args.batch, args.heads, args.kv_heads, args.causal,
                                        args.dtype)
        except ValueError as error:
            raise Stop(USAGE, str(error)) from None
    if any(b.problem != bundles[0].problem for b in bundles):
        raise Stop(USAGE, "the bundles are of different problems")
    if bundles[0].problem["op"] != "attention":
        raise Stop(USAGE, f"no peers for {bundles[0].problem['op']}; attention was expected")
    return bundles[0].problem


@contextlib.contextmanager
def at_most(seconds):
    """Raises TimeoutError in code that takes longer: peers may compile for minutes."""
    def late(*_):
        raise TimeoutError("no time was left to prepare it (--prepare)")

    before = signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, max(seconds, 0.001))
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@contextlib.contextmanager
def nothing_on_stdout():
    """Sends standard output to standard error, also that of compilers, while the result will go to standard output."""
    sys.stdout.flush()
    kept = os.dup(1)
    os.dup2(2, 1)
    try:
        with contextlib.redirect_stdout(sys.stderr):
            yield
    finally:
        os.dup2(kept, 1)
        os.close(kept)


def ours(bundle, number, notes):
    """The bundle as a peer: its kernels on torch's tensors and stream, through the driver."""
    def build(env, shape, sets):
        torch, bound, temporaries = env.torch, [], {}
        kernels = [driver.Kernel(env.driver, kernel) for kernel in bundle.kernels]
        if any(kernel.from_ptx for kernel in kernels):
            notes.append(f"{bundle.variant}: the driver compiled its PTX, the CUBIN is of another architecture")
        for x in sets:
            tensors = {**x, "O": torch.full_like(x["Q"], float("nan"))}
            for name, buffer in bundle.buffers.items():
                place = temporaries if buffer["role"] == "temporary" else tensors  # temporaries: one for all sets
                if name not in place:
                    place[name] = torch.empty(buffer["bytes"], dtype=torch.uint8, device="cuda")
                if place[name].nbytes != buffer["bytes"]:
                    raise BadBundle(f"{name}: {buffer['bytes']} bytes in the bundle, {place[name].nbytes} here")
            tensors.update(temporaries)
            addresses = {name: tensor.data_ptr() for name, tensor in tensors.items()}
            bound.append(([kernel.bind(addresses) for kernel in kernels], tensors))

        def run(i):
            launches, tensors = bound[i]
            for launch in launches:
                launch(torch.cuda.current_stream().cuda_stream)
            return tensors["O"]
        return run

    name = f"roofgen:{bundle.variant}" + "'" * number
    what = f"{len(bundle.kernels)} kernel(s) of {bundle.directory}"
    return attention.Peer(name, what, build, rounds_scores=bundle.stores_16_bit_scores())


def check(env, shape, sets, peer):
    """Computes the error of the answers on the first and the last set. False when they are wrong."""
    peer.error = peer.rows_checked = 0
    for i in (0, len(sets) - 1):
        out = peer.run(i)
        env.torch.cuda.synchronize()
        error, rows = attention.error_over_tolerance(env.torch, shape, sets[i], out, peer.rounds_scores)
        peer.error, peer.rows_checked = max(peer.error, error), peer.rows_checked + rows
    return peer.error <= 1


def prepare(env, shape, sets, gpu, peers, seconds):
    """Builds and checks all peers; `seconds` are for those that are not ours."""
    until = time.monotonic() + seconds
    for p in peers:
        missing = p.missing()
        if missing or gpu.lost:
            p.drop(*(("missing", missing) if missing else ("failed", "the GPU was lost before its turn")))
            continue
        try:
            with contextlib.nullcontext() if p.name.startswith("roofgen:") else at_most(until - time.monotonic()):
                p.run = p.build(env, shape, sets)
                if not check(env, shape, sets, p):
                    p.drop("wrong", f"its error is {p.error:.3g} times the tolerance")
        except attention.Unfit as unfit:
            p.drop("missing", str(unfit))
        except Exception as error:
            p.drop("failed", first_line(error))
            gpu.settle()


def check_again(env, shape, sets, peers):
    """After the timing: a kernel may be wrong only under load."""
    for p in peers:
        before = p.error
        try:
            if not check(env, shape, sets, p):
                p.drop("wrong", f"after timing its error is {p.error:.3g} times the tolerance; {before:.3g} before")
        except Exception as error:
            p.drop("failed", f"after timing: {first_line(error)}")


def timing(taken, way, name, base, flops):
    """The timing of one peer in one way, {} without samples."""
    row = taken.times[way][name]
    samples = [t for t in row if t is not None]
    if not samples:
        return {}
    t = summarize(samples)
    base = taken.times[way].get(base) if name != base else None
    return {**t, "tflops": flops / t["median_ns"] / 1e3, "ratio": paired_ratio(row, base) if base else None}


def medians(states):
    names = sorted({name for state in states for name in state})
    return {name: statistics.median(state[name] for state in states if name in state) for name in names}


def compare(env, gpu, args, problem, bundles, peers, sets, now=time.monotonic, sleep=time.sleep):
    shape, notes, modes, interrupted = attention.Shape.of(problem), [], [], False
    variants = [b.variant for b in bundles]
    peers = [*(ours(b, variants[:i].count(b.variant), notes) for i, b in enumerate(bundles)), *peers]
    base = peers[0].name if bundles else None

    def timed():
        return [p for p in peers if p.state == "timed"]

    prepare(env, shape, sets, gpu, peers, args.prepare)
    for mode in ("burst", "steady") if args.mode == "both" else (args.mode,):
        if not timed() or gpu.lost or interrupted:
            break
        taken = take(gpu, timed(), Protocol.of(mode, args.rounds, args.seconds), now, sleep)
        modes.append({"mode": mode, "ways": list(taken.times), "rounds": taken.rounds, "stopped": taken.stopped,
                      "state": medians(taken.states)})
        for p in timed():
            by = {way: timing(taken, way, p.name, base, shape.flops()) for way in taken.times}
            p.timings[mode] = {way: t for way, t in by.items() if t}
            if p.name in taken.failed:
                p.drop("failed", taken.failed[p.name])
        interrupted = taken.stopped == "interrupted"
    try:
        check_again(env, shape, sets, [] if interrupted else timed())
    except KeyboardInterrupt:
        interrupted = True
    for p in timed():
        if not any(p.timings.values()):
            p.drop("failed", "no sample was taken")
    if interrupted:
        notes.append("interrupted: the finished rounds stand; not all answers were checked again after them")
    if gpu.lost:
        notes.append("the GPU was lost; the finished rounds stand")
    if not bundles:
        notes.append("no bundle of roofgen's was given: the peers alone")
    return {
        "schema": "roofgen.peers.1", "origin": "measured",
        "time": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
        "command": shlex.join([os.path.basename(sys.argv[0]), *args.argv]), "op": problem["op"], "problem": problem,
        "flop_convention": attention.FLOP_CONVENTION, "flops": shape.flops(), "baseline": base, "gpu": gpu.describe(),
        "versions": versions(env),
        "protocol": {"flush_bytes": gpu.flush_bytes, "buffer_sets": gpu.buffer_sets, "inputs": "N(0,1)",
                     "seed": args.seed, "compile_mode": env.compile_mode},
        "bundles": [b.describe() for b in bundles], "modes": modes, "peers": [p.document() for p in peers],
        "notes": notes, "interrupted": interrupted,
    }


def versions(env):
    loaded = {name: sys.modules[name] for name in VERSIONS if sys.modules.get(name)}
    return {"python": platform.python_version(), "cuda": str(env.torch.version.cuda),
            "cudnn": str(env.torch.backends.cudnn.version()),
            **{name: str(getattr(module, "__version__", "unknown")) for name, module in loaded.items()},
            **({"driver_cuda": env.driver.version()} if env.driver else {})}


def sets_wanted(torch, l2_bytes, s):
    """Copies of the inputs: two to eight, together at least three times L2 and at most a quarter of the free memory."""
    each = 4 * s.d * s.batch * (s.L * s.heads + s.kv_len * s.kv_heads)
    return max(1, min(8, max(2, math.ceil(3 * l2_bytes / each)), torch.cuda.mem_get_info()[0] // 4 // each))


def run(argv):
    args = arguments(argv)
    args.argv = argv
    peers = [p for p in attention.all_peers() if not args.peer or p.name in args.peer]
    if args.list:
        sys.stdout.write(list_peers(peers, args.gpu))
        return OK
    try:
        bundles = [Bundle(path) for path in args.bundle]
    except BadBundle as error:
        raise Stop(USAGE, str(error)) from None
    problem = the_problem(args, bundles)
    env = Env(load_torch(args.gpu), compile_mode="max-autotune-no-cudagraphs" if args.max_autotune else "default")
    gpu, shape = TorchGpu(env.torch, args.gpu), attention.Shape.of(problem)
    if bundles:
        env.driver = driver.Driver()
    gpu.buffer_sets = sets_wanted(env.torch, gpu.l2_bytes, shape)
    with nothing_on_stdout() if args.json == "-" else contextlib.nullcontext():
        sets = attention.inputs(env.torch, shape, gpu.buffer_sets, args.seed)
        doc = compare(env, gpu, args, problem, bundles, peers, sets)
    return finish(doc, args.json)


def finish(doc, path):
    """Writes the result and returns the exit code."""
    text = json.dumps(doc, indent=2, allow_nan=False) + "\n"
    if path and path != "-":
        Path(path).write_text(text, encoding="utf-8")
    sys.stdout.write(text if path == "-" else report.table(doc))
    if doc["interrupted"]:
        return INTERRUPTED
    states = {p["name"]: p["state"] for p in doc["peers"]}
    ours_failed = any(name.startswith("roofgen:") and state != "timed" for name, state in states.items())
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
    except Exception as error:  # out of memory, a full disk: one line without a trace
        print(f"peers: error: {first_line(error)}", file=sys.stderr)
        return FAILED


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
