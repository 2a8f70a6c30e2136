#!/usr/bin/env python3
"""One visit of a GPU machine; docs/visit.md. Started by bench/gpu_visit.sh."""
import argparse
import hashlib
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import files
import folder
import judge
import machine
import plan
import process
from files import FAILED, INTERRUPTED, OK, UNAVAILABLE, Bad

ROOT = Path(__file__).resolve().parents[2]


def say(text):
    print(f"gpu_visit: {text}", file=sys.stderr, flush=True)


def parse(arguments):
    parser = argparse.ArgumentParser(
        prog="gpu_visit.sh", description="Measures what the plan lists, most important first. docs/visit.md")
    parser.add_argument("seconds", type=float, help="time for the whole visit")
    parser.add_argument("--only", action="append", metavar="STEP", help="run only these steps, separated by commas")
    parser.add_argument("--results", default=ROOT / "results", metavar="DIR", help="folder of the results [results]")
    parser.add_argument("--again", action="store_true", help="repeat finished tasks too")
    parser.add_argument("--new", action="store_true", help="begin a new folder, do not continue this GPU's newest")
    parser.add_argument("--archive", metavar="FILE", help="pack the folder into this .tar.gz after each command")
    parser.add_argument("--roofgen", default=os.environ.get("ROOFGEN", ""), metavar="PATH",
                        help="the program [ROOFGEN, or build-portable's]")
    parser.add_argument("--gpu", type=int, default=0, metavar="N", help="number of the GPU [0]")
    parser.add_argument("--plan", default=Path(__file__).with_name("plan.json"), metavar="FILE", help="another plan")
    parser.add_argument("--dry-run", action="store_true", help="print the plan with its time slices and run nothing")
    options = parser.parse_args(arguments)
    options.only = options.only and [name for part in options.only for name in part.split(",") if name]
    for wrong, text in ((not 0 < options.seconds < 1e6, f"SECONDS must be positive, not {options.seconds:g}"),
                        (options.gpu < 0, "--gpu must be 0 or more"), (options.only == [], "--only names no step")):
        if wrong:
            parser.error(text)
    return options


def check_archive(name):
    """Raises Bad when the archive cannot be written."""
    if not name.endswith(".tar.gz"):
        raise Bad(f"--archive {name}: not the name of a .tar.gz")
    try:
        with open(f"{name}.part", "wb"):
            os.unlink(f"{name}.part")
    except OSError as error:
        raise Bad(f"--archive {name}: {error.strerror}") from error


def chosen_steps(options):
    steps = plan.load(options.plan)
    names = [step.name for step in steps]
    for name in sorted(set(options.only or []) - set(names)):
        raise Bad(f"there is no step {name}; steps: {', '.join(names)}")
    return [step for step in steps if not options.only or step.name in options.only]


class Visit:
    def __init__(self, options, steps):
        self.options, self.steps = options, steps
        self.start = time.monotonic()
        # Leaves time to write the results and the archive.
        self.end = self.start + options.seconds - min(3.0, 0.05 * options.seconds)
        self.stopped, self.holder, self.folder = False, None, None
        self.environment = {**os.environ, "NO_COLOR": "1", "LC_ALL": "C.UTF-8"}
        self.environment.pop("CUDA_LAUNCH_BLOCKING", None)  # it would lengthen every time
        self.program = machine.program(options.roofgen, ROOT)
        self.mark = f"visit {os.getpid()}"  # until the folder is known

    def left(self):
        return self.end - time.monotonic()

    def stop(self, *_):
        self.stopped = True

    def command(self, words, limit_s, grace_s):
        words = [{"roofgen": self.program, "python3": sys.executable}.get(words[0], words[0]), *words[1:]]
        return process.run(words, limit_s, grace_s, self.mark, self.environment, lambda: self.stopped)

    def prepare(self):
        """Identifies the GPU and opens its folder. Raises Bad: there is nothing to measure on, or only a substitute."""
        def refuse(text):
            raise Bad(text, UNAVAILABLE)

        number = self.options.gpu
        if not os.access(self.program, os.X_OK):
            refuse(f"no program at {self.program}: bench/portable.sh builds it, ROOFGEN=PATH names another")
        doctor = self.doctor()
        if not doctor["nvrtc"]["found"] and machine.nvrtc_of_wheels():
            self.environment["ROOFGEN_NVRTC"] = machine.nvrtc_of_wheels()
            doctor = self.doctor()
        if number >= len(doctor["gpus"]):
            refuse(f"there is no GPU {number}: {doctor['gpu']['reason'] or 'the driver has %d' % len(doctor['gpus'])}")
        gpu = doctor["gpus"][number]
        if not gpu["usable"]:
            refuse(f"GPU {number} cannot be used: {gpu['reason']}")
        if gpu["simulated"]:
            refuse("the CUDA driver is simulated (docs/shim.md): its times are not measurements")
        gpu = machine.facts(gpu)
        try:
            self.folder = folder.Folder(self.options.results, gpu, ROOT, self.options.new)
        except OSError as error:
            raise Bad(f"results cannot be written in {self.options.results}: {error.strerror}") from error
        work = self.folder.work
        self.environment.update(XDG_CACHE_HOME=str(work / "cache"), XDG_DATA_HOME=str(work / "data"))
        self.mark = f"{work}:"
        process.kill_marked(self.mark)  # remains of a killed visit would share the GPU
        digest = hashlib.sha256(Path(self.program).read_bytes()).hexdigest()
        self.versions = {"roofgen": doctor["version"], "roofgen_sha256": digest, "nvrtc": doctor["nvrtc"]["version"],
                         **machine.versions()}
        self.folder.begin_visit(self.options.seconds, doctor=doctor, versions=self.versions, host=machine.host())
        if gpu.get("persistence") == "Disabled":
            say("persistence mode is off: an idle nvidia-smi keeps the GPU from being shut down between commands")
            command = ["nvidia-smi", f"--id={gpu['uuid']}", "--query-gpu=uuid", "--format=csv", "--loop=3600"]
            self.holder = subprocess.Popen(command, stdout=subprocess.DEVNULL, preexec_fn=process.die_with_parent)
        self.pack()

    def doctor(self):
        outcome = self.command(["roofgen", "doctor", "--json"], max(0.2, min(60.0, self.left())), 0.1)
        try:
            return files.parse_json(outcome.stdout)
        except Bad as error:
            words = f"(exit {outcome.exit_code}): {judge.last_words(outcome.stderr) or 'it printed nothing'}"
            raise Bad(f"{self.program} doctor --json failed {words}", UNAVAILABLE) from error

    def run(self, task, limit_s):
        """Runs one task and keeps its result."""
        record = self.folder.work / f"{task.id}.t4"  # roofgen writes a folder of files
        shutil.rmtree(record, ignore_errors=True)  # files of an earlier attempt are not results of this one
        values = {"record": record, "bundle": self.folder.work / "bundles" / task.id, "winner": self.winner(task),
                  "time": max(1, int(limit_s * 0.6)), "roofgen": ROOT}
        gpu = ["--gpu", str(self.options.gpu)] if self.options.gpu else []
        first, command = ([*plan.fill(words, values), *gpu] if words else [] for words in (task.first, task.command))
        say(f"{task.id} (at most {limit_s:.0f} s)")
        self.folder.record(task, "cut", "the visit ended before it did")  # if the visit is killed
        uuid, grace_s, started = self.folder.gpu["uuid"], min(10.0, 0.2 * limit_s), folder.utc()
        before = machine.ask(uuid, machine.STATE)
        outcome = self.command(first or command, limit_s, grace_s)
        if first and outcome.exit_code == 0 and not outcome.cut:
            outcome = self.command(command, max(0.1, limit_s - outcome.seconds), grace_s).after(outcome)
        elif first:
            outcome.stdout = ""
        document, fault = judge.judge(outcome, task, uuid)
        attachments = {}
        if "{record}" in task.command:
            missing = judge.nothing_timed(document) or self.attach(task, record, attachments)
            fault = fault or missing
        status = "cut" if outcome.cut else "failed" if fault else "ok"
        if outcome.cut:
            fault = "the visit was interrupted" if self.stopped else f"it was stopped at its limit of {limit_s:.1f} s"
        fault = self.folder.scrub(fault)
        self.folder.keep(task, {
            "schema": "roofgen.visit-result.1", "step": task.step, "task": task.name, "status": status,
            "message": fault, "about": task.about, "command": command, "first_command": first,
            "command_digest": task.digest, "started": started, "ended": folder.utc(),
            "seconds": round(outcome.seconds, 3), "limit_s": round(limit_s, 3), "exit_code": outcome.exit_code,
            "leftover_processes": outcome.leftovers, "gpu": self.folder.gpu, "versions": self.versions,
            "state_before": before, "state_after": machine.ask(uuid, machine.STATE),
            "attachments": sorted(attachments), "result": document,
        }, outcome.stderr, attachments)
        say(f"{task.id}: {status}, {outcome.seconds:.1f} s{': ' + fault if fault else ''}")
        self.pack()

    def pack(self):
        """Writes the archive after each command: the visit may be killed. Returns its size, 0 without one."""
        try:
            return files.archive(self.folder.path, self.options.archive) if self.options.archive else 0
        except OSError as error:
            say(f"no archive was written: {error}")
            return 0

    def winner(self, task):
        """Flags that fix the schedule found by the step tune for the same problem. Several kernels of a variant use the
        same parameter names: such a variant is searched again."""
        try:
            result = files.read_json(self.folder.path / f"tune.{task.name}.json")
            document = result["result"] if result["status"] == "ok" else {}
            best = next(each for each in document["variants"] if each["name"] == document["best_variant"])
            kernel, = best["kernels"]
        except (Bad, KeyError, StopIteration, ValueError):  # not tuned, failed, or several kernels
            return []
        params = {name: str(value).lower() if isinstance(value, bool) else value
                  for name, value in kernel["schedule"]["params"].items()}
        pins = ",".join(f"{name}={value}" for name, value in params.items())
        return ["--variant", best["name"], "--set", pins, "--evals", "1"]

    def attach(self, task, record, attachments):
        """Collects the tuning spaces that a command recorded, also one that was cut. Returns a fault or ""."""
        for path in sorted(record.glob("*.json")):
            try:
                if not files.read_json(path)["results"]:
                    return f"{path.name}: the record holds no results"
            except (Bad, KeyError, TypeError) as error:
                return f"a record that cannot be read: {error}"
            stem = path.name.removesuffix(".json").removesuffix(".t4")
            attachments[f"{task.id}.{stem}.t4.json.gz"] = path.read_bytes()
        return "" if attachments else "no tuning space was recorded"

    def todo(self, step):
        """The tasks of a step that are not done: never tried before cut before failed."""
        order = {"": 0, "cut": 1, "failed": 2}
        tasks = [task for task in step.tasks if self.folder.state(task) in order]
        return step.tasks if self.options.again else sorted(tasks, key=lambda task: order[self.folder.state(task)])

    def go(self):
        todo = {step.name: self.todo(step) for step in self.steps}
        steps = [step for step in self.steps if todo[step.name]]
        if not steps:
            say("everything is done already; --again repeats it, --new begins a new folder")
        began, later = time.monotonic(), []
        for step, end in plan.slices(steps, self.left()):
            for task in todo[step.name]:
                left = min(began + end, self.end) - time.monotonic()
                if self.stopped or left < task.least_s:
                    later.append(task)
                    continue
                self.run(task, min(task.limit_s, left))
                if left < task.limit_s and self.folder.state(task) == "cut":
                    later.append(task)
        for task in later:  # in the time that the steps left
            if not self.stopped and self.left() >= task.least_s:
                self.run(task, min(task.limit_s, self.left()))

    def finish(self, why):
        """Ends the visit and prints its summary. Returns the number of failed tasks."""
        if self.holder:
            self.holder.kill()
            self.holder.wait()
        self.folder.end_visit(why)
        tasks = [task for step in self.steps for task in step.tasks]
        states = [self.folder.state(task) for task in tasks]
        print(self.folder.path)
        print("{} done, {} failed, {} cut off, {} not begun".format(*map(states.count, ("ok", "failed", "cut", ""))))
        for task, state in zip(tasks, states):
            if state == "failed":
                print(f"failed: {task.id}: {self.folder.summary['tasks'][task.id]['message']}")
        size = self.pack()
        if size:
            print(f"{self.options.archive}: {size / 2**20:.1f} MiB")
        if size > 16 << 20:
            say("the archive is over 16 MiB, more than some machines hand back as one file")
        return states.count("failed")


def main(arguments):
    options = parse(arguments)
    visit, why, code = None, "done", OK
    try:
        if options.archive is not None:
            check_archive(options.archive)
        steps = chosen_steps(options)
        if options.dry_run:
            print(plan.describe(steps, options.seconds) + machine.describe(options.roofgen, ROOT), end="")
            return OK
        visit = Visit(options, steps)
        signal.signal(signal.SIGINT, visit.stop)
        signal.signal(signal.SIGTERM, visit.stop)
        visit.prepare()
        visit.go()
    except (Bad, OSError) as error:  # a wrong option, no GPU, a second visit, a full disk
        code = getattr(error, "code", FAILED)
        if code != UNAVAILABLE:
            say(error)
            return code
        why = "refused"
        if visit.folder or not visit.stopped:
            say(f"refused: {error}")
    if visit.stopped and (code == OK or not visit.folder):
        why, code = "interrupted", INTERRUPTED
    failed = visit.finish(why) if visit.folder else 0
    return code or (FAILED if failed else OK)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
