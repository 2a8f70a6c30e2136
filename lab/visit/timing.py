"""Contenders timed in turns: order statistics and rounds. The rules of the statistics are those of
runtime/measure/statistics.h."""
import dataclasses
import gc
import math
import statistics

# Ends of a program, as roofgen's.
OK, FAILED, USAGE, UNAVAILABLE, INTERRUPTED = 0, 1, 2, 3, 130


class Stop(Exception):
    """Ends the program with an exit code and one line."""

    def __init__(self, code, message):
        super().__init__(message)
        self.code = code


class Unfit(Exception):
    """An implementation does not support this problem."""


class Lost(Exception):
    """The GPU is lost."""


def first_line(error):
    """The type and the first line of an exception."""
    return ": ".join([type(error).__name__, *str(error).strip().splitlines()[:1]])[:300]


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
    """Median, quartiles, least, and the interval of the median of samples in any order, in nanoseconds."""
    ordered = sorted(times_ns)
    q1, median, q3 = statistics.quantiles(ordered, n=4, method="inclusive") if len(ordered) > 1 else ordered * 3
    low, high = median_interval(ordered)
    return {"median_ns": median, "q1_ns": q1, "q3_ns": q3, "min_ns": ordered[0], "low_ns": low, "high_ns": high,
            "samples": len(ordered)}


def paired_ratio(times, base):
    """Median and 95 % interval of times[i] / base[i] over the rounds that have both; None without such rounds."""
    ratios = sorted(t / b for t, b in zip(times, base) if t is not None and b)
    low, high = median_interval(ratios) if ratios else (0, 0)
    return {"median": statistics.median(ratios), "low": low, "high": high, "pairs": len(ratios)} if ratios else None


def medians(states):
    """The median of each reading over the rounds that have it."""
    names = sorted({name for state in states for name in state})
    return {name: statistics.median(state[name] for state in states if name in state) for name in names}


# ---- Rounds ----------------------------------------------------------------------------------------------------------

@dataclasses.dataclass
class Protocol:
    """Contenders take turns, one sample each a round, with L2 cold and hot apart, at the clock of a busy GPU."""
    seconds: float
    warmup_s: float = 0.4
    ways: tuple = ("cold", "hot")
    most_rounds: int = 300
    least_rounds: int = 10
    settled: float = 0.005  # half the interval over the median at which a contender needs no more samples


@dataclasses.dataclass
class Taken:
    times: dict  # by way and contender one sample a round, in ns; None once the contender failed
    states: list = dataclasses.field(default_factory=list)
    failed: dict = dataclasses.field(default_factory=dict)  # reasons by contender
    stopped: str = ""
    rounds: int = 0


def take(gpu, contenders, sets, protocol, now):
    """Runs the rounds. A contender that raises drops out. Ctrl-C or the loss of the GPU keep the finished rounds."""
    taken = Taken({way: {c.name: [] for c in contenders} for way in protocol.ways})
    gc.collect()
    gc.disable()  # the collector may pause the host for milliseconds while it queues a sample
    try:
        taken.stopped = play(gpu, contenders, sets, protocol, now, taken)
    except KeyboardInterrupt:
        taken.stopped = "interrupted"
    except Lost:
        taken.stopped = "GPU lost"
    finally:
        gc.enable()
    for row in (row for by in taken.times.values() for row in by.values()):
        del row[taken.rounds:]
    return taken


def play(gpu, contenders, sets, protocol, now, taken):
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
    for r in range(protocol.most_rounds):
        first = r % len(contenders)
        for way in protocol.ways:
            for c in contenders[first:] + contenders[:first]:  # A B C, B C A, C A B
                taken.times[way][c.name].append(sample(c, r % sets, way == "cold"))
        taken.states.append(gpu.state())
        taken.rounds += 1
        if len(taken.failed) == len(contenders):
            return "nobody left"
        rows = [row for by in taken.times.values() for name, row in by.items() if name not in taken.failed]
        if taken.rounds >= protocol.least_rounds and all(map(settled, rows)):
            return "settled"
        if now() >= deadline:
            return "out of time"
    return "most rounds"
