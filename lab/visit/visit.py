#!/usr/bin/env python3
"""One visit of a GPU machine with a package that lab/visit/package.py made; docs/evidence/visit.md.

  visit.py SECONDS [--out DIR] [--only STEP[,STEP]] [--archive FILE.tar.gz] [--gpu N] [--dry-run] [--rehearse]

Runs the steps of the package in the order of their value. Nothing is searched, compiled or referenced here: a row is
copied, launched, compared and timed. Each row is on the disk as soon as it is measured. A step that hangs or crashes
loses one row. Exit codes: 0 done, 1 something was wrong or failed, 2 usage, 3 no GPU, 130 interrupted."""
import argparse
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import files
import machine
import process
from files import FAILED, INTERRUPTED, OK, UNAVAILABLE, USAGE, Bad

HERE = Path(__file__).resolve().parent  # the package


def say(text):
    print(f"visit: {text}", file=sys.stderr, flush=True)


def parse(argv):
    parser = argparse.ArgumentParser(prog="visit.py", description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("seconds", type=float, help="time for the whole visit")
    parser.add_argument("--out", type=Path, default=Path("visit-results"), metavar="DIR",
                        help="folder of the results; a second visit goes on in it [visit-results]")
    parser.add_argument("--only", metavar="STEPS", help="only these steps, separated by commas")
    parser.add_argument("--archive", metavar="FILE", help="pack the results into this .tar.gz after each step")
    parser.add_argument("--gpu", type=int, default=0, metavar="N", help="number of the GPU [0]")
    parser.add_argument("--package", type=Path, default=HERE, help="the package [the folder of this file]")
    parser.add_argument("--dry-run", action="store_true", help="print the steps with their seconds and run nothing")
    parser.add_argument("--rehearse", action="store_true", help="on a simulated driver: its times mean nothing")
    options = parser.parse_args(argv)
    if not 0 < options.seconds < 1e6:
        parser.error(f"SECONDS must be positive, not {options.seconds:g}")
    return options


def chosen(package, only):
    """The steps of the package, or those of --only."""
    names = [step["name"] for step in package["steps"]]
    wanted = [name for name in (only or ",".join(names)).split(",") if name]
    for name in wanted:
        if name not in names:
            raise Bad(f"there is no step {name}; steps: {', '.join(names)}")
    return [step for step in package["steps"] if step["name"] in wanted]


def cases_of(package, step):
    return [case["name"] for case in package["cases"] if case["step"] == step["name"]]


def describe(package, steps, seconds):
    """The steps with their seconds and comparisons."""
    total, out = sum(step["seconds"] for step in steps), []
    for step in steps:
        cases = [case for case in package["cases"] if case["step"] == step["name"]]
        out.append(f"{step['name']:9} {step['seconds'] * seconds / total:5.0f} s  {step['about']}")
        for case in cases:
            entries = case["entries"]
            times = ", ".join(f"{entry['predicted_us']:.1f}" for entry in entries)
            beside = f" beside {', '.join(case['peers'])}" if case.get("peers") else ""
            out.append(f"    {case['name']:32} {len(entries)} of ours, predicted {times} us{beside}")
    return "\n".join(out) + "\n"


class Visit:
    def __init__(self, options, package, steps):
        self.options, self.package, self.steps = options, package, steps
        self.end = time.monotonic() + options.seconds - min(5.0, 0.05 * options.seconds)
        self.stopped, self.faults = False, []
        self.environment = {**os.environ, "NO_COLOR": "1", "LC_ALL": "C.UTF-8", "PYTHONDONTWRITEBYTECODE": "1",
                            "XDG_CACHE_HOME": str(options.out / ".work/cache"),
                            "XDG_DATA_HOME": str(options.out / ".work/data")}
        self.environment.pop("CUDA_LAUNCH_BLOCKING", None)  # it would lengthen every time
        self.mark = f"visit {os.getpid()}"

    def left(self):
        return self.end - time.monotonic()

    def stop(self, *_):
        self.stopped = True

    def command(self, words, limit_s, stop=lambda: False):
        return process.run(words, limit_s, min(5.0, 0.2 * limit_s), self.mark, self.environment,
                           lambda: self.stopped or stop())

    def rows(self, step, seconds):
        """The cases of a step, in one process; in a new one after a case that hung or crashed."""
        out, end = self.options.out / f"{step['name']}.jsonl", time.monotonic() + seconds
        names, errors = cases_of(self.package, step), ""
        while not self.stopped:
            seen, left = len(files.lines(out)), min(end, self.end) - time.monotonic()
            if left < 1 or {case_of(line) for line in files.lines(out)} >= set(names):
                break
            watch = Watch(out, step["row_s"])
            outcome = self.command([
                sys.executable, str(HERE / "rows.py"), str(self.options.package), step["name"], "--out", str(out),
                "--seconds", f"{left:.1f}", "--gpu", str(self.options.gpu),
                *(["--rehearse"] if self.options.rehearse else [])], left, watch.hangs)
            errors += outcome.stderr
            if outcome.exit_code == UNAVAILABLE:
                raise Bad(last_line(outcome.stderr) or "there is no GPU", UNAVAILABLE)
            if outcome.exit_code != OK and len(files.lines(out)) == seen:
                self.faults.append(f"{step['name']}: {last_line(outcome.stderr) or f'exit {outcome.exit_code}'}")
                break  # no case was begun: a new process would end the same way
        found = files.lines(out)
        rows = [line for line in found if "case" in line]
        done, begun = {row["case"] for row in rows}, {line["begin"] for line in found if "begin" in line}
        for row in rows:
            if row["status"] != "ok":
                self.faults.append(f"{step['name']}.{row['case']}: {row['status']}: {row['message']}")
        for name in [name for name in names if name in begun - done]:
            self.faults.append(f"{step['name']}.{name}: cut: it hung, crashed, or the time was over")
        return {"rows": len(done), "cut": len(begun - done), "not_begun": len(set(names) - begun)}, errors

    def program(self, step, seconds):
        """A step that is one command, with JSON or text on its standard output."""
        values = {"package": self.options.package, "python": sys.executable, "gpu": self.options.gpu}
        words = [word.format(**values) for word in step["command"]]
        path = self.options.out / f"{step['name']}.json"
        if path.exists() and files.read_json(path)["status"] == "ok":
            return {"status": "ok"}, ""
        outcome = self.command(words, min(seconds, self.left()))
        status, message, result = "ok", "", outcome.stdout
        if step.get("prints") != "text":
            try:
                result = files.parse_json(outcome.stdout)
            except Bad as error:
                status, message, result = "failed", str(error), None
        if outcome.cut or (isinstance(result, dict) and result.get("interrupted")):
            status, message = "cut", "it reached its limit: what it found stands"
        elif outcome.exit_code != 0:
            status, message = "failed", f"exit {outcome.exit_code}: {last_line(outcome.stderr)}"
        files.write(path, self.scrub(files.to_json({
            "schema": "roofgen.visit-command.1", "step": step["name"], "status": status, "message": message,
            "command": words, "seconds": round(outcome.seconds, 3), "result": result})))
        if status == "failed":
            self.faults.append(f"{step['name']}: {message}")
        return {"status": status}, outcome.stderr

    def scrub(self, text):
        """The text without this machine's paths."""
        for path, name in ((str(self.options.out), "{results}"), (str(self.options.package), "{package}"),
                           (os.path.expanduser("~"), "{home}")):
            text = re.sub(re.escape(path) + r"(?![\w.-])", name, text)
        return text

    def go(self):
        total, summary = sum(step["seconds"] for step in self.steps), {}
        budget = self.left()
        for step in self.steps:
            if self.stopped or self.left() < 2:
                break
            seconds = min(self.left(), step["seconds"] * budget / total)
            say(f"{step['name']}, {seconds:.0f} s: {step['about']}")
            began = time.monotonic()
            found, errors = (self.program if "command" in step else self.rows)(step, seconds)
            summary[step["name"]] = {**found, "seconds": round(time.monotonic() - began, 1)}
            say(f"{step['name']}: {', '.join(f'{name} {value}' for name, value in summary[step['name']].items())}")
            if errors.strip():
                files.write(self.options.out / "logs" / f"{step['name']}.txt", self.scrub(errors))
            self.write(summary)
        for step in self.steps:  # the time that the others left
            if "command" not in step and not self.stopped and self.left() > 5 and summary.get(step["name"]):
                if summary[step["name"]]["not_begun"]:
                    summary[step["name"]] = self.rows(step, self.left())[0]
                    self.write(summary)
        return summary

    def write(self, summary):
        files.write(self.options.out / "visit.json", self.scrub(files.to_json({
            "schema": "roofgen.visit.2", "package": self.package["made"], "gpu": self.facts, "host": machine.host(),
            "versions": machine.versions(), "rehearsal": self.options.rehearse,
            "steps": {**self.before, **summary},
            "faults": sorted(set(self.faults))})))
        if self.options.archive:
            files.archive(self.options.out, self.options.archive)

    def prepare(self):
        """Identifies the GPU."""
        self.facts, self.holder = machine.gpu(self.options.gpu) or {}, None
        if not self.facts and not self.options.rehearse:
            raise Bad("nvidia-smi finds no GPU", UNAVAILABLE)
        if self.facts.get("persistence") == "Disabled":
            # The driver shuts an idle GPU down, and each step would pay seconds for its start.
            command = ["nvidia-smi", f"--id={self.facts['uuid']}", "--query-gpu=uuid", "--format=csv", "--loop=3600"]
            self.holder = subprocess.Popen(command, stdout=subprocess.DEVNULL, preexec_fn=process.die_with_parent)
        path = self.options.out / "visit.json"
        self.before = files.read_json(path)["steps"] if path.exists() else {}  # of an earlier visit that this continues
        self.write({})
        same = [path for path in self.options.out.glob("*.jsonl") if path.stat().st_size]
        if same:
            say(f"goes on in {self.options.out}: rows that it has are not measured again")


class Watch:
    """Whether a file has not grown for so many seconds."""

    def __init__(self, path, seconds):
        self.path, self.seconds, self.size, self.since = path, seconds, -1, time.monotonic()

    def hangs(self):
        size = self.path.stat().st_size if self.path.exists() else 0
        if size != self.size:
            self.size, self.since = size, time.monotonic()
        return time.monotonic() - self.since > self.seconds


def case_of(line):
    return line.get("begin") or line.get("case")


def last_line(text):
    return next((line.strip()[:300] for line in reversed(text.splitlines()) if line.strip()), "")


def main(argv):
    options = parse(argv)
    try:
        package = files.read_json(options.package / "package.json")
        steps = chosen(package, options.only)
        if options.dry_run:
            print(describe(package, steps, options.seconds), end="")
            return OK
        if options.archive and not options.archive.endswith(".tar.gz"):
            raise Bad(f"--archive {options.archive}: not the name of a .tar.gz")
        options.out = options.out.absolute()
        visit = Visit(options, package, steps)
        signal.signal(signal.SIGINT, visit.stop)
        signal.signal(signal.SIGTERM, visit.stop)
        visit.prepare()
        try:
            visit.go()
        finally:
            if visit.holder:
                visit.holder.kill()
    except (Bad, OSError) as error:
        say(error)
        return getattr(error, "code", USAGE if isinstance(error, Bad) else FAILED)
    for fault in sorted(set(visit.faults)):
        print(fault)
    print(options.out)
    return INTERRUPTED if visit.stopped else FAILED if visit.faults else OK


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
