"""The folder of one run: results/<device>/<date>-<uuid>/. It remembers what is done, so that a later visit of the same
GPU goes on where this one stopped."""
import datetime
import fcntl
import glob
import os
import re

import files

SUMMARY = "visit.json"
SUMMARY_SCHEMA = "roofgen.visit.1"
RESULT_SCHEMA = "roofgen.visit-result.1"
SCHEMA_FILE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "schema.json")


def utc():
    return datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def slug(name):
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-") or "gpu"


class Folder:
    """Opens the newest run of this GPU under this driver below `base`, or begins one."""

    def __init__(self, base, gpu, root, fresh=False):
        self.gpu = gpu
        self.schemas = files.read_json(SCHEMA_FILE)
        device = os.path.join(base, slug(gpu["name"]))
        short = gpu["uuid"].removeprefix("GPU-")[:8]
        self.summary = None
        if not fresh:
            for path in sorted(glob.glob(os.path.join(device, f"*-{short}*", SUMMARY)), reverse=True):
                try:
                    summary = files.read_json(path)
                    files.check(summary, self.schemas[SUMMARY_SCHEMA])
                except files.Bad:
                    continue
                if summary["gpu"].get("uuid") == gpu["uuid"] and summary["gpu"].get("driver") == gpu.get("driver"):
                    self.path, self.summary = os.path.dirname(path), summary
                    break
        if self.summary is None:
            stem = os.path.join(device, f"{utc()[:10]}-{short}")
            self.path, number = stem, 1
            while os.path.exists(self.path):
                number += 1
                self.path = f"{stem}-{number}"
            self.summary = {"schema": SUMMARY_SCHEMA, "gpu": gpu, "versions": {}, "host": {}, "doctor": None, "visits": [], "tasks": {}}
        self.path = os.path.abspath(self.path)
        self.work = os.path.join(self.path, ".work")
        os.makedirs(self.work, exist_ok=True)
        # What a result says must mean the same elsewhere, and tell nothing of the machine's users.
        home = os.path.expanduser("~")
        self._names = [(self.path, "{results}"), (root, "{roofgen}")] + ([(home, "{home}")] if len(home) > 1 else [])
        self._lock = open(os.path.join(self.work, "lock"), "w", encoding="utf-8")
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise files.Bad(f"another visit is running in {self.path}") from error

    def scrub(self, value):
        """The same with paths of this machine replaced by what they are."""
        if isinstance(value, str):
            for path, name in self._names:
                value = re.sub(re.escape(path) + r"(?![\w.-])", name, value)
            return value
        if isinstance(value, list):
            return [self.scrub(each) for each in value]
        if isinstance(value, dict):
            return {key: self.scrub(each) for key, each in value.items()}
        return value

    def state(self, task):
        """What is known of a task: "", "ok", "failed" or "cut". Of another command nothing is known."""
        known = self.summary["tasks"].get(task.id)
        return known["status"] if known and known["command_digest"] == task.digest else ""

    def begin_visit(self, budget_s, doctor, versions, host):
        self.summary.update(doctor=self.scrub(doctor), versions=versions, host=host, gpu=self.gpu)
        self.summary["visits"].append({"started": utc(), "ended": "", "budget_s": budget_s, "stopped": "running", "done": []})
        self.save()

    def end_visit(self, why):
        self.summary["visits"][-1].update(ended=utc(), stopped=why)
        self.save()

    def save(self):
        files.check(self.summary, self.schemas[SUMMARY_SCHEMA])
        files.write_json(os.path.join(self.path, SUMMARY), self.summary)

    def running(self, task):
        """Before a task starts: if nothing more is heard, it was cut."""
        known = self.summary["tasks"].get(task.id, {})
        self._set(task, "cut", known.get("attempts", 0) + 1, "the visit ended before it did")

    def _set(self, task, status, attempts, message):
        self.summary["tasks"][task.id] = {"status": status, "attempts": attempts, "command_digest": task.digest,
                                          "message": message, "file": f"{task.id}.json"}
        self.save()

    def keep(self, task, result, stderr, attachments):
        """Writes a task's result, then that it is there. A good result gives way to another good one only."""
        result = self.scrub(result)
        files.check(result, self.schemas[RESULT_SCHEMA])
        path = os.path.join(self.path, f"{task.id}.json")
        if stderr.strip():
            files.write(os.path.join(self.path, "logs", f"{task.id}.txt"), self.scrub(stderr))
        if result["status"] == "ok" or not self._is_ok(path, task):
            for name, data in attachments.items():
                files.write_gzip(os.path.join(self.path, name), data)
            files.write_json(path, result)
        attempts = self.summary["tasks"].get(task.id, {}).get("attempts", 1)
        self.summary["visits"][-1]["done"].append({"task": task.id, "status": result["status"], "seconds": result["seconds"]})
        self._set(task, result["status"], attempts, result["message"])

    def _is_ok(self, path, task):
        try:
            before = files.read_json(path)
        except files.Bad:
            return False
        return before.get("status") == "ok" and before.get("command_digest") == task.digest
