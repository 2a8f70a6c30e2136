"""One command under a time limit: asked to stop a little before it, killed with all its children at it."""
import ctypes
import os
import signal
import subprocess
import time
import uuid

MARK = "ROOFGEN_VISIT_TASK"  # in the environment of everything a task starts, so that none of it is left behind
STDERR_KEPT = 256 << 10
STDOUT_KEPT = 64 << 20


class Outcome:
    def __init__(self):
        self.exit_code = None  # None: it could not be started
        self.stdout = ""
        self.stderr = ""
        self.seconds = 0.0
        self.cut = False  # it was stopped, by its limit or by the user
        self.leftovers = 0  # processes that had to be killed after it ended


def _die_with_parent():
    ctypes.CDLL(None, use_errno=True).prctl(1, signal.SIGKILL, 0, 0, 0)  # PR_SET_PDEATHSIG


def _text(path, kept):
    """A file's text; of a longer one the beginning and the end, with a word between them."""
    size = os.path.getsize(path)
    with open(path, "rb") as file:
        if size <= kept:
            return file.read().decode(errors="replace")
        head = file.read(kept // 2)
        file.seek(size - kept // 2)
        tail = file.read()
    return f"{head.decode(errors='replace')}\n... {size - kept} bytes left out ...\n{tail.decode(errors='replace')}"


def _marked(mark):
    """Processes whose mark begins so."""
    wanted = f"{MARK}={mark}".encode()
    for name in os.listdir("/proc"):
        if not name.isdigit() or int(name) == os.getpid():
            continue
        try:
            with open(f"/proc/{name}/environ", "rb") as file:
                if any(part.startswith(wanted) for part in file.read().split(b"\0")):
                    yield int(name)
        except OSError:
            continue


def kill_marked(mark):
    """Kills what a task started and left, wherever it moved; a dead parent's children are found all the same."""
    killed, empty = set(), 0
    for _ in range(5):
        found = [pid for pid in _marked(mark) if pid not in killed]
        if not found:
            # A process in the middle of an exec shows no environment for a moment: look once more.
            empty += 1
            if empty == 2:
                break
            time.sleep(0.03)
            continue
        for pid in found:
            killed.add(pid)
            try:
                os.kill(pid, signal.SIGKILL)
            except OSError:
                pass
    return len(killed)


def folder_mark(folder):
    """What the marks of all commands begin with that are run in this folder."""
    return f"{os.path.abspath(folder)}:"


def run(command, limit_s, grace_s, folder, environment, stop):
    """Runs `command`. `limit_s` holds for all of it: at limit - grace it gets SIGINT (roofgen then keeps what it has),
    at the limit SIGKILL. `stop` is a function that says whether the visit itself is to end."""
    outcome = Outcome()
    os.makedirs(folder, exist_ok=True)
    out, err = os.path.join(folder, "stdout"), os.path.join(folder, "stderr")
    mark = f"{folder_mark(folder)}{uuid.uuid4().hex}"
    start = time.monotonic()
    try:
        with open(out, "wb") as stdout, open(err, "wb") as stderr:
            child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=stdout, stderr=stderr, start_new_session=True,
                                     env={**environment, MARK: mark}, preexec_fn=_die_with_parent)
    except OSError as error:
        outcome.stderr = f"{command[0]}: {error.strerror}\n"
        return outcome
    asked_at = None
    nap = 0.005
    while child.poll() is None:
        elapsed = time.monotonic() - start
        if asked_at is None and (elapsed >= limit_s - grace_s or stop()):
            asked_at = elapsed
            outcome.cut = True
            child.send_signal(signal.SIGINT)
        if asked_at is not None and (elapsed >= limit_s or elapsed >= asked_at + grace_s):
            try:
                os.killpg(child.pid, signal.SIGKILL)
            except OSError:
                child.kill()
            child.wait()
            break
        time.sleep(nap)
        nap = min(nap * 1.5, 0.1, max(0.005, limit_s - elapsed))
    outcome.seconds = time.monotonic() - start
    outcome.exit_code = child.returncode if child.returncode >= 0 else 128 - child.returncode
    outcome.leftovers = kill_marked(mark)
    outcome.stdout = _text(out, STDOUT_KEPT)
    outcome.stderr = _text(err, STDERR_KEPT)
    os.unlink(out)
    os.unlink(err)
    return outcome
