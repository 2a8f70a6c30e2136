"""The protocol: contenders take turns, one sample each a round, cold and hot apart. Knows no GPU: `gpu` has
  time(contender, set_index, cold) -> ns (or raises), state() -> dict of clock and power, alive() -> bool,
  buffer_sets: how many copies of the inputs there are to rotate through."""

import contextlib
import dataclasses
import gc

from stats import median_interval, quantile, rotated


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
        """steady: the clock of a busy GPU. burst: few runs with rests, the clock of a cool one."""
        if mode == "burst":
            return Protocol(mode, rounds=min(rounds or 10, 10), seconds=seconds, warmup_s=0.0, rest_s=1.0)
        return Protocol(mode, rounds=rounds or 300, seconds=seconds)


@dataclasses.dataclass
class Taken:
    """Samples by way and contender, one place a round: None where a contender was out."""

    times: dict
    states: list
    failed: dict
    stopped: str
    rounds: int


def is_settled(times, limit):
    ordered = sorted(t for t in times if t is not None)
    if len(ordered) < 6:
        return False
    low, high = median_interval(ordered)
    return (high - low) / 2 <= limit * quantile(ordered, 0.5)


def take(gpu, contenders, protocol, now, sleep):
    """Runs the rounds. A contender that raises is out, with its reason; a lost GPU ends them all. So does Ctrl-C, after
    which the rounds that were finished stand."""
    taken = Taken({way: {c.name: [] for c in contenders} for way in protocol.ways}, [], {}, "most rounds", 0)
    try:
        with quiet_collector():
            play(gpu, contenders, protocol, now, sleep, taken)
    except KeyboardInterrupt:
        taken.stopped = "interrupted"
    for by in taken.times.values():
        for row in by.values():
            del row[taken.rounds:]
    return taken


@contextlib.contextmanager
def quiet_collector():
    """Python's collector may stop the host for milliseconds, and so the queueing between two events."""
    was_on = gc.isenabled()
    gc.collect()
    gc.freeze()
    gc.disable()
    try:
        yield
    finally:
        gc.unfreeze()
        if was_on:
            gc.enable()


def play(gpu, contenders, protocol, now, sleep, taken):
    times, states, failed = taken.times, taken.states, taken.failed
    warm_until = now() + protocol.warmup_s
    while now() < warm_until and len(failed) < len(contenders):
        for c in contenders:
            if c.name not in failed:
                one(gpu, c, 0, False, failed)
        if not gpu.alive():
            taken.stopped = "GPU lost"
            return
    deadline = now() + protocol.seconds
    for r in range(protocol.rounds):
        if protocol.rest_s:
            sleep(protocol.rest_s)
        for way in protocol.ways:
            row = {}
            for c in rotated(contenders, r):
                if c.name not in failed:
                    row[c.name] = one(gpu, c, r % gpu.buffer_sets, way == "cold", failed)
                    if not gpu.alive():
                        taken.stopped = "GPU lost"
                        return
            for c in contenders:
                times[way][c.name].append(row.get(c.name))
        states.append(gpu.state())
        taken.rounds += 1
        if len(failed) == len(contenders):
            taken.stopped = "nobody left"
            return
        if taken.rounds >= protocol.min_rounds and all(
            is_settled(t, protocol.settled) for by in times.values() for name, t in by.items() if name not in failed
        ):
            taken.stopped = "settled"
            return
        if now() >= deadline:
            taken.stopped = "out of time"
            return


def one(gpu, contender, set_index, cold, failed):
    try:
        return gpu.time(contender, set_index, cold)
    except Exception as error:  # a peer's own code: whatever it raises costs that peer only
        failed[contender.name] = first_line(error)
        return None


def first_line(error):
    text = str(error).strip()
    line = text.splitlines()[0] if text else ""
    return f"{type(error).__name__}: {line}"[:300] if line else type(error).__name__
