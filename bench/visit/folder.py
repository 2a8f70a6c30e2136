"""The folder of one GPU under one driver, results/<gpu>/<date>-<uuid>/. It records which tasks are done, so that later
visits continue there."""
import datetime
import fcntl
import gzip
import itertools
import os
import re
from pathlib import Path

import files


def utc():
    return datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


class Folder:
    """Opens the newest folder of this GPU and driver below `base`, or begins one."""

    def __init__(self, base, gpu, root, fresh=False):
        short = gpu["uuid"].removeprefix("GPU-")[:8]
        device = Path(os.path.abspath(base), re.sub(r"[^a-z0-9]+", "-", gpu["name"].lower()).strip("-") or "gpu")
        self.gpu, self.summary = gpu, None
        for path in [] if fresh else sorted(device.glob(f"*-{short}*/visit.json"), reverse=True):
            try:
                summary = files.read_json(path)
                same = [summary["gpu"][name] == gpu[name] for name in ("uuid", "driver")]
            except (files.Bad, KeyError, TypeError):  # not a visit's
                continue
            if all(same):
                self.path, self.summary = path.parent, summary
                break
        if not self.summary:
            numbers = itertools.chain([""], map("-{}".format, itertools.count(2)))
            paths = (device / f"{utc()[:10]}-{short}{number}" for number in numbers)
            self.path = next(path for path in paths if not path.exists())
            self.summary = {"schema": "roofgen.visit.1", "gpu": gpu, "versions": {}, "host": {}, "doctor": None,
                            "visits": [], "tasks": {}}
        self.work = self.path / ".work"
        self.work.mkdir(parents=True, exist_ok=True)
        # Results must mean the same on every machine and must not tell about the users of this one.
        self._names = {str(self.path): "{results}", str(root): "{roofgen}", str(root.parent): "{roofgen}/..",
                       os.path.expanduser("~"): "{home}"}
        self._lock = open(self.work / "lock", "w", encoding="utf-8")
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise files.Bad(f"another visit is running in {self.path}", files.FAILED) from error

    def scrub(self, text):
        """The text with paths of this machine replaced by names."""
        for path, name in self._names.items():
            text = re.sub(re.escape(path) + r"(?![\w.-])", name, text)
        return text

    def _write(self, name, document):
        files.write(self.path / name, self.scrub(files.to_json(document)))

    def state(self, task):
        """"ok", "failed" or "cut"; "" if these commands were never run."""
        known = self.summary["tasks"].get(task.id, {})
        return known["status"] if known.get("command_digest") == task.digest else ""

    def begin_visit(self, budget_s, **about):
        self.summary.update(gpu=self.gpu, **about)
        self.summary["visits"].append(
            {"started": utc(), "ended": "", "budget_s": budget_s, "stopped": "running", "done": []})
        self._write("visit.json", self.summary)

    def end_visit(self, why):
        self.summary["visits"][-1].update(ended=utc(), stopped=why)
        self._write("visit.json", self.summary)

    def record(self, task, status, message):
        self.summary["tasks"][task.id] = {"status": status, "command_digest": task.digest, "message": message}
        self._write("visit.json", self.summary)

    def keep(self, task, result, stderr, attachments):
        """Writes a task's result, then records it. A failure never replaces a good result of the same commands."""
        if stderr.strip():
            files.write(self.path / "logs" / f"{task.id}.txt", self.scrub(stderr))
        try:
            before = files.read_json(self.path / f"{task.id}.json")
        except files.Bad:
            before = {}
        if result["status"] == "ok" or (before.get("status"), before.get("command_digest")) != ("ok", task.digest):
            for name, data in attachments.items():
                files.write(self.path / name, gzip.compress(data, mtime=0))
            self._write(f"{task.id}.json", result)
        self.summary["visits"][-1]["done"].append(
            {"task": task.id, "status": result["status"], "seconds": result["seconds"]})
        self.record(task, result["status"], result["message"])
