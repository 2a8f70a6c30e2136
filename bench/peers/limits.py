"""What a peer may take while it gets ready: time, and standard output."""

import contextlib
import os
import signal
import sys


@contextlib.contextmanager
def at_most(seconds):
    """Raises TimeoutError in what takes longer: peers that compile may take minutes."""

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
def nothing_on_stdout(wanted):
    """While the result goes to standard output nothing else may: compilers of peers like to talk."""
    if not wanted:
        yield
        return
    sys.stdout.flush()
    kept = os.dup(1)
    os.dup2(2, 1)
    try:
        with contextlib.redirect_stdout(sys.stderr):
            yield
    finally:
        os.dup2(kept, 1)
        os.close(kept)
