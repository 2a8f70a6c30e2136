"""The protocol: contenders take turns, one sample each a round, cold and hot apart. `gpu` has
  time(contender, set_index, cold) -> ns, or raises;
  state() -> dict of clock and power; lost: true after a fatal fault;
  buffer_sets: the number of copies of the inputs to rotate through."""
import contextlib
import dataclasses
import gc
import statistics

from stats import median_interval


@dataclasses.dataclass
class Protocol:
    mode: str = "steady"
    ways: tuple = ("cold", "hot")
    rounds: int = 300
    seconds: float = 60.0
    warmup_s: float = 3.0
    rest_s: float = 0.0
    min_rounds: int = 10
    settled: float = 0.005

    @staticmethod
    def of(mode, rounds=None, seconds=60.0):
        """steady: the clock of a busy GPU. burst: few rounds with rests, the clock of a cool GPU."""
        if mode == "burst":
            return Protocol(mode, rounds=min(rounds or 10, 10), seconds=seconds, warmup_s=0.0, rest_s=1.0)
        return Protocol(mode, rounds=rounds or 300, seconds=seconds)


@dataclasses.dataclass
class Taken:
    times: dict  # by way and contender one sample a round; None once the contender failed
    states: list = dataclasses.field(default_factory=list)
    failed: dict = dataclasses.field(default_factory=dict)  # reasons by contender
    stopped: str = ""
    rounds: int = 0


class Lost(Exception):
    """The GPU is lost."""


def take(gpu, contenders, protocol, now, sleep):
    """Runs the rounds. A contender that raises drops out. Ctrl-C or the loss of the GPU keep the finished rounds."""
    taken = Taken({way: {c.name: [] for c in contenders} for way in protocol.ways})
    try:
        with no_garbage_collection():
            taken.stopped = play(gpu, contenders, protocol, now, sleep, taken)
    except KeyboardInterrupt:
        taken.stopped = "interrupted"
    except Lost:
        taken.stopped = "GPU lost"
    for row in (row for by in taken.times.values() for row in by.values()):
        del row[taken.rounds:]
    return taken


@contextlib.contextmanager
def no_garbage_collection():
    """Python's collector may pause the host for milliseconds while it queues a sample."""
    gc.collect()
    gc.freeze()
    gc.disable()
    try:
        yield
    finally:
        gc.unfreeze()
        gc.enable()


def play(gpu, contenders, protocol, now, sleep, taken):
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
                taken.times[way][c.name].append(sample(c, r % gpu.buffer_sets, way == "cold"))
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


def first_line(error):
    """The type and the first line of an exception."""
    return ": ".join([type(error).__name__, *str(error).strip().splitlines()[:1]])[:300]
