"""One command under a time limit: SIGINT shortly before the limit, SIGKILL for everything it started at the limit."""
import ctypes
import dataclasses
import os
import signal
import subprocess
import tempfile
import time
import uuid
from pathlib import Path

MARK = "ROOFGEN_VISIT_TASK"  # environment variable that every process of a task inherits and is found by
STDERR_KEPT = 256 << 10


@dataclasses.dataclass
class Outcome:
    exit_code: int = None  # None: the command could not be started
    stdout: str = ""
    stderr: str = ""
    seconds: float = 0.0
    cut: bool = False  # stopped by its limit or by the user
    leftovers: int = 0  # processes that had to be killed after it ended


def die_with_parent():
    ctypes.CDLL(None).prctl(1, signal.SIGKILL, 0, 0, 0)  # PR_SET_PDEATHSIG


def _read(file, kept=None):
    """The text of a file; of one longer than `kept` bytes the beginning and the end."""
    file.seek(0)
    data = file.read()
    if kept and len(data) > kept:
        left_out = f"\n... {len(data) - kept} bytes left out ...\n".encode()
        data = data[:kept // 2] + left_out + data[-(kept // 2):]
    return data.decode(errors="replace")


def kill_marked(mark):
    """Kills the processes whose mark begins with `mark`, in any session, and returns their number."""
    wanted, killed, empty_scans = f"{MARK}={mark}".encode(), set(), 0
    while empty_scans < 2:  # a process inside exec shows no environment for a moment
        before = len(killed)
        for environment in Path("/proc").glob("[0-9]*/environ"):
            pid = int(environment.parent.name)
            try:
                if pid not in killed and any(part.startswith(wanted) for part in environment.read_bytes().split(b"\0")):
                    os.kill(pid, signal.SIGKILL)
                    killed.add(pid)
            except OSError:  # it ended meanwhile, or is another user's
                pass
        if len(killed) == before:
            empty_scans += 1
            time.sleep(0.03)
    return len(killed)


def run(command, limit_s, grace_s, mark, environment, stop):
    """Runs `command` for at most `limit_s`: SIGINT at limit - grace, upon which roofgen writes its result, SIGKILL at
    the limit. `stop()` becomes true when the visit itself is to end. `mark` identifies the visit's processes."""
    mark = f"{mark}:{uuid.uuid4().hex}"
    start = time.monotonic()
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        try:
            child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=err, start_new_session=True,
                                     env={**environment, MARK: mark}, preexec_fn=die_with_parent)
        except OSError as error:
            return Outcome(stderr=f"{command[0]}: {error.strerror}\n")
        interrupt_at, kill_at, cut = limit_s - grace_s, limit_s, False
        while True:
            elapsed = time.monotonic() - start
            if not cut and (elapsed >= interrupt_at or stop()):
                cut, kill_at = True, min(limit_s, elapsed + grace_s)
                child.send_signal(signal.SIGINT)
            if cut and elapsed >= kill_at:
                os.killpg(child.pid, signal.SIGKILL)
            try:
                child.wait(min(0.25, max(0.01, (kill_at if cut else interrupt_at) - elapsed)))
                break
            except subprocess.TimeoutExpired:
                pass
        exit_code = child.returncode if child.returncode >= 0 else 128 - child.returncode
        seconds, leftovers = time.monotonic() - start, kill_marked(mark)
        return Outcome(exit_code, _read(out), _read(err, STDERR_KEPT), seconds, cut, leftovers)
