"""The comparison of implementations on one GPU (docs/peers.md): preparation and checks, turns, order statistics, the
document roofgen.peers.1 and its text. The rules of the statistics are those of runtime/measure/statistics.h.

`gpu` is a cuda.Gpu. `work` is one problem on it: `problem`, `flops` and `flop_convention`; `sets`, the copies of its
tensors; `error(peer, set)`, the peer's error over the tolerance there and the number of checked rows; `versions()`;
`protocol` and `notes` of the document."""
import argparse
import contextlib
import dataclasses
import datetime
import gc
import importlib
import json
import math
import os
import shlex
import signal
import statistics
import sys
import time
from pathlib import Path
from typing import Callable

OK, FAILED, USAGE, UNAVAILABLE, INTERRUPTED = 0, 1, 2, 3, 130


class Stop(Exception):
    """Ends the program with an exit code and one line."""

    def __init__(self, code, message):
        super().__init__(message)
        self.code = code


class Unfit(Exception):
    """The peer does not support this problem."""


class Lost(Exception):
    """The GPU is lost."""


def first_line(error):
    """The type and the first line of an exception."""
    return ": ".join([type(error).__name__, *str(error).strip().splitlines()[:1]])[:300]


@dataclasses.dataclass
class Peer:
    """An implementation, and what became of it: an entry of the document's `peers`."""
    name: str
    what: str
    build: Callable  # (work) -> run; may raise Unfit
    module: str = ""  # the package it needs besides torch
    rounds_scores: bool = False  # stores scores in 16 bits
    run: Callable = None  # of a set's index: queues the work, returns the output
    state: str = "timed"  # or wrong, failed, missing, with a reason
    reason: str = ""
    error: float = 0.0  # over the tolerance; infinite when the answer has NaNs
    rows_checked: int = 0
    timings: dict = dataclasses.field(default_factory=dict)

    @property
    def ours(self):
        return self.name.startswith("roofgen:")

    def drop(self, state, reason):
        self.state, self.reason = state, reason

    def missing(self):
        """The reason why its package cannot be used, or ""."""
        try:
            if self.module:
                importlib.import_module(self.module)
            return ""
        except Exception as error:  # packages with native parts fail in many ways
            return f"{self.module} cannot be imported: {first_line(error)}"

    def document(self):
        error = self.error if self.rows_checked and math.isfinite(self.error) else None
        entry = {"name": self.name, "what": self.what, "state": self.state, "reason": self.reason,
                 "error_over_tolerance": error, "rows_checked": self.rows_checked}
        return {**entry, "timings": self.timings} if self.state == "timed" else entry


# ---- Statistics ------------------------------------------------------------------------------------------------------

def median_interval(ordered):
    """The 95 % interval of the median of sorted values: the k-th from each end, with the largest k that the binomial
    distribution allows. Fewer than six values have no such interval: least and greatest."""
    n, k, below = len(ordered), 0, 0
    while 40 * (below + math.comb(n, k)) <= 2**n:  # at most k values below the median: at most 2.5 %
        below += math.comb(n, k)
        k += 1
    return ordered[max(k, 1) - 1], ordered[n - max(k, 1)]


def summarize(times_ns):
    """A timing of docs/peers.md from the samples in any order."""
    ordered = sorted(times_ns)
    q1, median, q3 = statistics.quantiles(ordered, n=4, method="inclusive") if len(ordered) > 1 else ordered * 3
    low, high = median_interval(ordered)
    return {"median_ns": median, "q1_ns": q1, "q3_ns": q3, "min_ns": ordered[0], "low_ns": low, "high_ns": high,
            "samples": len(ordered), "times_ns": list(times_ns)}


def paired_ratio(times, base):
    """Median and 95 % interval of times[i] / base[i] over the rounds that have both; None without such rounds."""
    ratios = sorted(t / b for t, b in zip(times, base) if t is not None and b)
    low, high = median_interval(ratios) if ratios else (0, 0)
    return {"median": statistics.median(ratios), "low": low, "high": high, "pairs": len(ratios)} if ratios else None


# ---- Turns -----------------------------------------------------------------------------------------------------------

@dataclasses.dataclass
class Protocol:
    """Contenders take turns, one sample each a round, cold and hot apart. steady: the clock of a busy GPU. burst: few
    rounds with rests, the clock of a cool GPU."""
    mode: str = "steady"
    ways: tuple = ("cold", "hot")
    rounds: int = 300
    seconds: float = 60.0
    warmup_s: float = 3.0
    rest_s: float = 0.0
    min_rounds: int = 10
    settled: float = 0.005

    @staticmethod
    def of(mode, args):
        if mode == "burst":
            return Protocol(mode, rounds=min(args.rounds or 10, 10), seconds=args.seconds, warmup_s=0, rest_s=args.rest)
        return Protocol(mode, rounds=args.rounds or 300, seconds=args.seconds, warmup_s=args.warmup)


@dataclasses.dataclass
class Taken:
    times: dict  # by way and contender one sample a round; None once the contender failed
    states: list = dataclasses.field(default_factory=list)
    failed: dict = dataclasses.field(default_factory=dict)  # reasons by contender
    stopped: str = ""
    rounds: int = 0


def take(gpu, contenders, sets, protocol, now, sleep):
    """Runs the rounds. A contender that raises drops out. Ctrl-C or the loss of the GPU keep the finished rounds."""
    taken = Taken({way: {c.name: [] for c in contenders} for way in protocol.ways})
    gc.collect()
    gc.disable()  # the collector may pause the host for milliseconds while it queues a sample
    try:
        taken.stopped = play(gpu, contenders, sets, protocol, now, sleep, taken)
    except KeyboardInterrupt:
        taken.stopped = "interrupted"
    except Lost:
        taken.stopped = "GPU lost"
    finally:
        gc.enable()
    for row in (row for by in taken.times.values() for row in by.values()):
        del row[taken.rounds:]
    return taken


def play(gpu, contenders, sets, protocol, now, sleep, taken):
    """Fills in `taken`; returns the reason of the end."""
    def sample(c, set_index, cold):
        if c.name in taken.failed:
            return None
        try:
            return gpu.time(c, set_index, cold)
        except Exception as error:  # a peer's own code: its failure affects only that peer
            taken.failed[c.name] = first_line(error)
            if gpu.lost:
                raise Lost from error

    def settled(times):
        low, high = median_interval(sorted(times))
        return (high - low) / 2 <= protocol.settled * statistics.median(times)

    warm_until = now() + protocol.warmup_s
    while now() < warm_until and len(taken.failed) < len(contenders):
        for c in contenders:
            sample(c, 0, False)
    deadline = now() + protocol.seconds
    for r in range(protocol.rounds):
        sleep(protocol.rest_s)
        first = r % len(contenders)
        for way in protocol.ways:
            for c in contenders[first:] + contenders[:first]:  # A B C, B C A, C A B
                taken.times[way][c.name].append(sample(c, r % sets, way == "cold"))
        taken.states.append(gpu.state())
        taken.rounds += 1
        if len(taken.failed) == len(contenders):
            return "nobody left"
        rows = [row for by in taken.times.values() for name, row in by.items() if name not in taken.failed]
        if taken.rounds >= protocol.min_rounds and all(map(settled, rows)):
            return "settled"
        if now() >= deadline:
            return "out of time"
    return "most rounds"


# ---- The comparison --------------------------------------------------------------------------------------------------

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


def examine(gpu, work, p, seconds=0.0, when=""):
    """Builds a peer, within `seconds` if it is not ours, and checks its answers on the first and the last set. Later,
    `when`, only checks them again: a kernel may be wrong only under load."""
    before = f"; {p.error:.3g} before" if when else ""
    try:
        with contextlib.nullcontext() if p.ours or when else at_most(seconds):
            p.run = p.run or p.build(work)
            found = [work.error(p, i) for i in sorted({0, work.sets - 1})]
        p.error, p.rows_checked = max(error for error, _ in found), sum(rows for _, rows in found)
        if not p.error <= 1:
            p.drop("wrong", f"{when}its error is {p.error:.3g} times the tolerance{before}")
    except Unfit as unfit:
        p.drop("missing", str(unfit))
    except Exception as error:
        p.drop("failed", f"{when}{first_line(error)}")
        gpu.settle()


def timing(taken, way, name, base, flops):
    """The timing of one peer in one way, {} without samples."""
    row = taken.times[way][name]
    samples = [t for t in row if t is not None]
    if not samples:
        return {}
    t = summarize(samples)
    base = taken.times[way].get(base) if name != base else None
    rate = flops / t["median_ns"] / 1e3 if t["median_ns"] else 0.0  # 0: shorter than the clock of the events
    return {**t, "tflops": rate, "ratio": paired_ratio(row, base) if base else None}


def medians(states):
    names = sorted({name for state in states for name in state})
    return {name: statistics.median(state[name] for state in states if name in state) for name in names}


def compare(gpu, work, peers, args, now=time.monotonic, sleep=time.sleep):
    """The document of one problem. Ratios are against the first peer if it is roofgen's."""
    modes, interrupted = [], False
    base = peers[0].name if peers and peers[0].ours else None

    def timed():
        return [p for p in peers if p.state == "timed"]

    until = time.monotonic() + args.prepare
    for p in peers:
        missing = p.missing()
        if missing:
            p.drop("missing", missing)
        elif gpu.lost:
            p.drop("failed", "the GPU was lost before its turn")
        else:
            examine(gpu, work, p, until - time.monotonic())
    for mode in ("burst", "steady") if args.mode == "both" else (args.mode,):
        if not timed() or gpu.lost or interrupted:
            break
        taken = take(gpu, timed(), work.sets, Protocol.of(mode, args), now, sleep)
        modes.append({"mode": mode, "ways": list(taken.times), "rounds": taken.rounds, "stopped": taken.stopped,
                      "state": medians(taken.states)})
        for p in timed():
            by = {way: timing(taken, way, p.name, base, work.flops) for way in taken.times}
            p.timings[mode] = {way: t for way, t in by.items() if t}
            if p.name in taken.failed:
                p.drop("failed", taken.failed[p.name])
        interrupted = taken.stopped == "interrupted"
    try:
        for p in [] if interrupted else timed():
            examine(gpu, work, p, when="after timing ")
    except KeyboardInterrupt:
        interrupted = True
    for p in timed():
        if not any(p.timings.values()):
            p.drop("failed", "no sample was taken")
    notes = [*work.notes, *(text for happened, text in (
        (interrupted, "interrupted: the finished rounds stand; not all answers were checked again after them"),
        (gpu.lost, "the GPU was lost; the finished rounds stand")) if happened)]
    return {
        "schema": "roofgen.peers.1", "origin": "measured",
        "time": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
        "command": shlex.join([os.path.basename(sys.argv[0]), *args.argv]), "op": work.problem["op"],
        "problem": work.problem, "flop_convention": work.flop_convention, "flops": work.flops, "baseline": base,
        "gpu": gpu.describe(), "versions": {**work.versions(), "driver_cuda": gpu.cuda_version},
        "protocol": {"flush_bytes": gpu.flush_bytes, "buffer_sets": work.sets, "inputs": "N(0,1)", "seed": args.seed,
                     "warmup_s": args.warmup, "rest_s": args.rest, **work.protocol},
        "bundles": [b.describe() for b in args.bundles], "modes": modes, "peers": [p.document() for p in peers],
        "notes": notes, "interrupted": interrupted,
    }


# ---- Text and the command line ---------------------------------------------------------------------------------------

def columns(rows, left=1):
    """Aligned text; so many columns to the left, the others to the right."""
    width = [max(map(len, column)) for column in zip(*rows)]
    aligned = [[f"{cell:{'<' if i < left else '>'}{width[i]}}" for i, cell in enumerate(row)] for row in rows]
    return "".join("  ".join(row).rstrip() + "\n" for row in aligned)


def time_text(ns):
    return f"{ns / 1e6:.3f} ms" if ns >= 1e6 else f"{ns / 1e3:.2f} us"


def ratio_text(ratio):
    if not ratio:
        return "-"
    mark = " ~" if ratio["low"] <= 1 <= ratio["high"] else ""
    return f"{ratio['median']:.3f} [{ratio['low']:.3f}, {ratio['high']:.3f}]{mark}"


def problem_text(problem):
    dims = [f"{name}={size}" for name, size in sorted(problem["dims"].items())]
    flags = [name for name, on in sorted(problem["flags"].items()) if on]
    return problem.get("name") or " ".join([problem["dtype"], *dims, *flags])


def table(doc):
    out = [f"{doc['op']} on {doc['gpu']['name']}, {problem_text(doc['problem'])}\n",
           f"FLOPs: {doc['flop_convention']}; times: {doc['origin']}, median [95 % interval of the median]\n"]
    for mode in doc["modes"]:
        state = mode["state"]
        facts = [f"{mode['rounds']} rounds, {mode['stopped']}"]
        facts += [f"{state[name]:.0f} {unit}" for name, unit in (("sm_mhz", "MHz"), ("power_w", "W")) if name in state]
        for way in mode["ways"]:
            rows = [["peer", "time", "95 %", "IQR", "TFLOP/s", "time / ours", "err/tol"]]
            for p in doc["peers"]:
                t = p.get("timings", {}).get(mode["mode"], {}).get(way)
                if t:
                    low, median, high = (time_text(t[name]) for name in ("low_ns", "median_ns", "high_ns"))
                    rows.append([p["name"], median, f"[{low}, {high}]", time_text(t["q3_ns"] - t["q1_ns"]),
                                 f"{t['tflops']:.1f}", ratio_text(t["ratio"]), f"{p['error_over_tolerance']:.2f}"])
            out.append(f"\n{mode['mode']}, {way} ({', '.join(facts)})\n" + columns(rows))
    others = [f"{p['name']}: {p['state']}: {p['reason']}\n" for p in doc["peers"] if p["state"] != "timed"]
    return "".join([*out, *(["\n"] if others else []), *others, *(f"note: {note}\n" for note in doc["notes"])])


def positive(text):
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{text}: a number from 1 was expected")
    return value


def add_options(parser):
    """The options of every comparison."""
    p = parser.add_argument
    p("--bundle", action="append", default=[], metavar="DIR",
      help="a replay bundle or an output folder of `roofgen emit`; ratios are against the first")
    p("--mode", choices=("steady", "burst", "both"), default="both",
      help="the clock of a busy GPU, of a cool GPU, or both [both]")
    p("--rounds", type=positive, help="the most rounds [steady 300, burst 10]")
    p("--seconds", type=positive, default=60, help="the most time for each problem and mode [60]")
    p("--warmup", type=float, default=3, metavar="S", help="work before the steady rounds [3]")
    p("--rest", type=float, default=1, metavar="S", help="rest before each burst round [1]")
    p("--prepare", type=positive, default=90, metavar="S",
      help="time to compile and check all peers; the others are left out and named [90]")
    p("--gpu", type=int, default=0)
    p("--seed", type=int, default=0)
    p("--json", metavar="FILE",
      help="write the result as roofgen.peers.1 (of several problems a list); - for standard output")


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


def finish(documents, path):
    """Prints each document's table or writes all as JSON. Returns the exit code."""
    docs, interrupted = [], False
    try:
        with nothing_on_stdout() if path == "-" else contextlib.nullcontext():
            for doc in documents:
                docs.append(doc)
                if path != "-":
                    print(table(doc), flush=True)
                if doc["interrupted"]:
                    raise KeyboardInterrupt
    except KeyboardInterrupt:
        if not docs:
            raise
        interrupted = True
    text = json.dumps(docs[0] if len(docs) == 1 else docs, indent=2, allow_nan=False) + "\n"
    if path == "-":
        sys.stdout.write(text)
    elif path:
        Path(path).write_text(text, encoding="utf-8")
    if interrupted:
        return INTERRUPTED
    peers = [p for doc in docs for p in doc["peers"]]
    ours_failed = any(p["name"].startswith("roofgen:") and p["state"] != "timed" for p in peers)
    return FAILED if ours_failed or all(p["state"] != "timed" for p in peers) else OK


def guarded(run, argv):
    """Runs a program; every fault becomes one line and an exit code."""
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
