#!/usr/bin/env python3
"""One visit of a GPU machine; docs/visit.md. Started by bench/gpu_visit.sh."""
import argparse
import glob
import os
import shutil
import signal
import sys
import tempfile
import time

import files
import folder
import judge
import machine
import plan
import process

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
OK, FAILED, USAGE, UNAVAILABLE, INTERRUPTED = 0, 1, 2, 3, 130


def say(text):
    print(f"gpu_visit: {text}", file=sys.stderr, flush=True)


class Unwritable(Exception):
    """Results cannot be kept where they are to be kept."""


class Refused(Exception):
    """There is nothing here to measure on, or something that would make it look so."""


def parse(arguments):
    parser = argparse.ArgumentParser(prog="gpu_visit.sh", description="Measures what the plan lists, most important first. docs/visit.md")
    parser.add_argument("seconds", type=float, help="time for all of it")
    parser.add_argument("--only", action="append", default=[], metavar="STEP", help="these steps only; a comma between several")
    parser.add_argument("--results", default=os.path.join(ROOT, "results"), metavar="DIR", help="where results go [results]")
    parser.add_argument("--again", action="store_true", help="also what is done already")
    parser.add_argument("--new", action="store_true", help="begin a new folder instead of going on in the last one of this GPU")
    parser.add_argument("--archive", metavar="FILE", help="pack the run's folder into this .tar.gz, anew after each command")
    parser.add_argument("--roofgen", default=os.environ.get("ROOFGEN", ""), metavar="PATH", help="the program [ROOFGEN, or build-portable's]")
    parser.add_argument("--gpu", type=int, default=0, metavar="N", help="which GPU [0]")
    parser.add_argument("--plan", default=os.path.join(HERE, "plan.json"), metavar="FILE", help="another plan")
    parser.add_argument("--dry-run", action="store_true", help="print the plan with its time slices; nothing is run")
    options = parser.parse_args(arguments)
    if not 0 < options.seconds < 1e6:
        parser.error(f"SECONDS must be positive, not {options.seconds:g}")
    if options.gpu < 0:
        parser.error("--gpu must be 0 or more")
    if options.only and not any(part.strip(",") for part in options.only):
        parser.error("--only names no step")
    fault = places(options)
    if fault:
        parser.exit(USAGE, f"gpu_visit: {fault}\n")
    return options


def places(options):
    """Why nothing can be kept where it is to be kept, or "": found out before any time is spent. Makes no folder."""
    if options.archive is not None:
        into = os.path.dirname(os.path.abspath(options.archive))
        if not options.archive.endswith(".tar.gz"):
            return f"--archive {options.archive}: not the name of a .tar.gz"
        if os.path.isdir(options.archive):
            return f"--archive {options.archive}: is a folder"
        reason = files.unwritable(into)
        if reason:
            return f"--archive {options.archive}: cannot write in {into}: {reason}"
    reason = "" if options.dry_run else files.unwritable(files.first_existing(os.path.abspath(options.results)))
    return f"results cannot be written in {options.results}: {reason}" if reason else ""


def choose(steps, only):
    wanted = [name for part in only for name in part.split(",") if name]
    for name in wanted:
        if name not in [step.name for step in steps]:
            raise files.Bad(f"there is no step {name}; steps: {', '.join(step.name for step in steps)}")
    return [step for step in steps if not wanted or step.name in wanted]


class Visit:
    def __init__(self, options, steps):
        self.options, self.steps = options, steps
        self.start = time.monotonic()
        # The end is for putting things away.
        self.end = self.start + options.seconds - min(3.0, 0.05 * options.seconds)
        self.stopped, self.holder = False, None
        self.environment = dict(os.environ)
        self.environment.pop("CUDA_LAUNCH_BLOCKING", None)  # it would be in every time
        self.environment.update(NO_COLOR="1", LC_ALL="C.UTF-8")

    def left(self):
        return self.end - time.monotonic()

    def stop(self, *_):
        self.stopped = True

    # ---- Before anything is measured ---------------------------------------------------------------------------------

    def prepare(self):
        self.program = machine.program(self.options.roofgen, ROOT)
        self.peer = machine.peer(self.program, ROOT)
        if not os.access(self.program, os.X_OK):
            raise Refused(f"no program at {self.program}: bench/portable.sh builds it, ROOFGEN=PATH names another")
        found = machine.run_probe(self.options.gpu, max(1.0, min(60.0, self.left())))
        if "reason" in found:
            raise Refused(found["reason"])
        doctor = self.doctor()
        if not (doctor.get("nvrtc") or {}).get("found") and machine.nvrtc_of_wheels():
            self.environment["ROOFGEN_NVRTC"] = machine.nvrtc_of_wheels()
            doctor = self.doctor()
        seen = doctor.get("gpu")
        if isinstance(seen, dict) and seen.get("found") is False:
            raise Refused(f"roofgen finds no GPU: {seen.get('reason', 'it does not say why')}")
        gpu = {"name": found["name"], "uuid": found["uuid"], "cuda": found["cuda"], "ordinal": self.options.gpu,
               **machine.facts_of_doctor(doctor, found["uuid"]), **machine.facts(found["uuid"])}
        gpu.setdefault("driver", "")
        try:
            self.folder = folder.Folder(self.options.results, gpu, ROOT, self.options.new)
        except OSError as error:
            raise Unwritable(f"results cannot be written in {self.options.results}: {error.strerror or error}") from error
        self.environment.update(XDG_CACHE_HOME=os.path.join(self.folder.work, "cache"), XDG_DATA_HOME=os.path.join(self.folder.work, "data"))
        self.running = os.path.join(self.folder.work, "running")
        process.kill_marked(process.folder_mark(self.running))  # of a visit that was killed: a GPU must be ours alone
        nvrtc = doctor.get("nvrtc") or {}
        self.versions = {"roofgen": str(doctor.get("version", "")), "roofgen_sha256": files.sha256(self.program),
                         "nvrtc": str(nvrtc.get("version", "")), **machine.versions()}
        self.folder.begin_visit(self.options.seconds, doctor or None, self.versions, machine.host())
        if gpu.get("persistence") == "Disabled":
            self.holder = machine.Holder(gpu["uuid"], self.environment, max(1.0, min(60.0, self.left())))
            said = f"it is held open meanwhile ({self.holder.held})" if self.holder.held else "it could not be held open: each command starts it anew"
            say(f"persistence mode is off, so the driver would let go of the GPU between commands; {said}")
        self.pack()

    def doctor(self):
        """What roofgen says of this machine. A program that cannot say that much would fail at all the rest too."""
        with tempfile.TemporaryDirectory() as running:
            outcome = process.run([self.program, "doctor", "--json"], max(0.2, min(60.0, self.left())), 0.1, running, self.environment,
                                  lambda: self.stopped)
        try:
            document = files.parse_json(outcome.stdout)
        except files.Bad:
            document = None
        if not isinstance(document, dict):
            said = judge.last_words(outcome.stderr) or "it said nothing"
            raise Refused(f"{self.program} doctor --json failed (exit {outcome.exit_code}): {said}")
        judge.refuse_simulated(document, plan.Task("smoke", "doctor", ["doctor"], 60, 0, "json", [], {}))
        return document

    # ---- One task --------------------------------------------------------------------------------------------------------

    def run(self, task, limit_s):
        record = os.path.join(self.folder.work, f"{task.id}.t4")  # a file or a folder of files, as the command likes
        # What is remembered lies in roofgen's store; a record of an earlier attempt must not pass for this one's.
        shutil.rmtree(record, ignore_errors=True)
        if os.path.exists(record):
            os.unlink(record)
        values = {"record": record, "time": max(1, int(limit_s * 0.6)), "bundle": os.path.join(self.folder.work, "bundles", task.id),
                  "winner": self.winner(task)}
        first, command = (self.words(task, words, values) for words in (task.first, task.command))
        say(f"{task.id} (at most {limit_s:.0f} s)")
        self.folder.running(task)
        before, started = machine.state(self.folder.gpu["uuid"]), folder.utc()
        grace = min(10.0, 0.2 * limit_s)
        outcome = process.run(first or command, limit_s, grace, self.running, self.environment, lambda: self.stopped)
        if first and outcome.exit_code == 0 and not outcome.cut:
            before_it = outcome
            outcome = process.run(command, max(0.1, limit_s - before_it.seconds), grace, self.running, self.environment, lambda: self.stopped)
            outcome.seconds += before_it.seconds
            outcome.stderr = before_it.stderr + outcome.stderr
            outcome.leftovers += before_it.leftovers
        elif first:
            outcome.stdout = ""
        document, fault = judge.judge(outcome, task, self.folder.gpu["uuid"])
        attachments = {}
        if "{record}" in task.command:
            missing = judge.nothing_timed(document) or self.attach(task, record, attachments)
            fault = fault or missing
        status = "cut" if outcome.cut else "failed" if fault else "ok"
        if outcome.cut:
            fault = "the visit was interrupted" if self.stopped else f"it was stopped at its limit of {limit_s:.1f} s"
        self.folder.keep(task, {
            "schema": folder.RESULT_SCHEMA, "step": task.step, "task": task.name, "status": status, "message": fault,
            "about": task.about, "command": self.told(command), "first_command": self.told(first),
            "command_digest": task.digest, "started": started, "ended": folder.utc(), "seconds": round(outcome.seconds, 3),
            "limit_s": round(limit_s, 3), "exit_code": outcome.exit_code, "leftover_processes": outcome.leftovers,
            "gpu": self.folder.gpu, "versions": self.versions, "state_before": before,
            "state_after": machine.state(self.folder.gpu["uuid"]), "attachments": sorted(attachments), "result": document,
        }, outcome.stderr, attachments)
        say(f"{task.id}: {status}, {outcome.seconds:.1f} s{': ' + fault if fault else ''}")
        self.pack()

    def pack(self):
        """Anew after each command, for a visit may be killed from outside. Gives the size in bytes, 0 where it failed."""
        if not self.options.archive:
            return 0
        try:
            return files.archive(self.folder.path, self.options.archive)
        except OSError as error:
            say(f"no archive was written: {error}")
            return 0

    def words(self, task, command, values):
        words = task.arguments(command, values)
        if words[:1] == ["roofgen"]:
            words[0] = self.program
            if self.options.gpu and words[1:2] in (["tune"], ["emit"]):
                words += ["--gpu", str(self.options.gpu)]
        elif words[:1] == ["cublaslt_peer"]:  # built beside it
            words[0] = self.peer
            words += ["--gpu", str(self.options.gpu)] if self.options.gpu else []
        elif words[:1] == ["python3"]:
            words = [sys.executable] + [os.path.join(ROOT, word) if word.startswith("bench/") else word for word in words[1:]]
            words += ["--gpu", str(self.options.gpu)] if self.options.gpu else []
        return words

    def told(self, words):
        """A command as it is written down: programs by their names."""
        return [{self.program: "roofgen", self.peer: "cublaslt_peer", sys.executable: "python3"}.get(word, word) for word in words]

    def winner(self, task):
        """Flags that pin what the tuning of the same problem found in this run, so that it is not searched for again.
        Kernels of a variant of several have parameters of the same names: those are searched."""
        try:
            result = files.read_json(os.path.join(self.folder.path, f"tune.{task.name}.json"))
            document = result["result"] if result["status"] == "ok" else {}
            best = next(each for each in document["variants"] if each["name"] == document["best_variant"])
            kernel, = best["kernels"]
            pins = ",".join(f"{name}={str(value).lower() if isinstance(value, bool) else value}" for name, value in kernel["schedule"]["params"].items())
            return ["--variant", best["name"], "--set", pins, "--evals", "1"]
        except (files.Bad, KeyError, TypeError, ValueError, StopIteration):
            return []

    def attach(self, task, record, attachments):
        """The tuning spaces that a command recorded, each checked before it is kept; also those it got to before it was cut."""
        found = [record] if os.path.isfile(record) else sorted(glob.glob(os.path.join(record, "*.json")))
        for path in found:
            try:
                document = files.read_json(path)
            except files.Bad as error:
                return f"a record that cannot be read: {error}"
            if not isinstance(document, dict) or not isinstance(document.get("results"), list) or not document["results"]:
                return f"{os.path.basename(path)}: the record holds no results"
            name = task.id if path == record else f"{task.id}.{os.path.basename(path).removesuffix('.json').removesuffix('.t4')}"
            with open(path, "rb") as file:
                attachments[f"{name}.t4.json.gz"] = file.read()
        return "" if found else "no tuning space was recorded"

    # ---- All of them -----------------------------------------------------------------------------------------------------

    def todo(self, step):
        """What is left of a step: what was never tried, then what was cut, then what failed."""
        order = {"": 0, "cut": 1, "failed": 2}
        if self.options.again:
            return list(step.tasks)
        return sorted((task for task in step.tasks if self.folder.state(task) != "ok"), key=lambda task: order[self.folder.state(task)])

    def go(self):
        steps = [(step, self.todo(step)) for step in self.steps]
        steps = [(step, tasks) for step, tasks in steps if tasks]
        if not steps:
            say("everything is done already; --again does it once more, --new in a new folder")
        began, later = time.monotonic(), []
        ends = plan.slices([step for step, _ in steps], self.end - began) if steps else []
        for (step, end), (_, tasks) in zip(ends, steps):
            for task in tasks:
                left = min(began + end, self.end) - time.monotonic()
                if self.stopped or left < task.least_s:
                    later.append(task)
                    continue
                limit = min(task.limit_s, left)
                self.run(task, limit)
                if limit < task.limit_s and self.folder.state(task) == "cut":
                    later.append(task)
        for task in later:  # what the others left of the time
            if not self.stopped and self.left() >= task.least_s:
                self.run(task, min(task.limit_s, self.left()))

    def counts(self):
        states = [self.folder.state(task) for step in self.steps for task in step.tasks]
        return {name: sum(state == name for state in states) for name in ("ok", "failed", "cut", "")}

    def finish(self, why):
        if self.holder:
            self.holder.close()
        self.folder.end_visit(why)
        counts = self.counts()
        print(f"{self.folder.path}")
        print(f"{counts['ok']} done, {counts['failed']} failed, {counts['cut']} cut off, {counts['']} not begun")
        for step in self.steps:
            for task in step.tasks:
                if self.folder.state(task) == "failed":
                    print(f"failed: {task.id}: {self.folder.summary['tasks'][task.id]['message']}")
        size = self.pack()
        if size:
            print(f"{self.options.archive}: {size / 2**20:.1f} MiB")
            if size > 16 << 20:
                say("the archive is over 16 MiB, more than some machines hand back as one file")
        return counts


def main(arguments):
    options = parse(arguments)
    try:
        steps = choose(plan.load(options.plan), options.only)
    except files.Bad as error:
        say(error)
        return USAGE
    if options.dry_run:
        print(plan.describe(steps, options.seconds), end="")
        print(machine.describe(options.roofgen, ROOT), end="")
        return OK
    visit = Visit(options, steps)
    signal.signal(signal.SIGINT, visit.stop)
    signal.signal(signal.SIGTERM, visit.stop)
    why, code = "done", OK
    try:
        visit.prepare()
        visit.go()
        if visit.stopped:
            why, code = "interrupted", INTERRUPTED
    except (Refused, judge.Simulated) as error:
        if visit.stopped and isinstance(error, Refused):  # asked to end while it was still looking round
            why, code = "interrupted", INTERRUPTED
        else:
            say(f"refused: {error}")
            why, code = "refused", UNAVAILABLE
    except Unwritable as error:
        say(error)
        return USAGE
    except (files.Bad, OSError) as error:  # such as a disk that is full
        say(error)
        return FAILED
    if not getattr(visit, "folder", None) or not visit.folder.summary["visits"]:
        return code
    counts = visit.finish(why)
    return code if code else FAILED if counts["failed"] else OK


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
