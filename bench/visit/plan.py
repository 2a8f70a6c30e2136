"""What a visit does: plan.json, and the lists of problems it names, as tasks with commands."""
import hashlib
import json
import os
import re

import files

_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,79}")


class Task:
    """One command of a step, and maybe one that makes ready what it needs. They still have their {placeholders}."""

    def __init__(self, step, name, command, limit_s, least_s, judge, wants, about, first=()):
        self.step, self.name, self.command, self.first = step, name, command, list(first)
        self.limit_s, self.least_s, self.judge = limit_s, least_s, judge
        self.wants = wants  # variants that a check must find verified
        self.about = about  # what is measured: the problem or target of the data file, as it stands there
        self.id = f"{step}.{name}"
        self.digest = hashlib.sha256("\0".join(self.first + command).encode()).hexdigest()[:16]

    def arguments(self, command, values):
        """`command` or `first` with its placeholders filled in; a word that is nothing but one may become several."""
        words = []
        for word in command:
            if isinstance(values.get(word[1:-1]), list):
                words += values[word[1:-1]]
            else:
                words.append(re.sub(r"\{([a-z]+)\}", lambda match: str(values[match[1]]), word))
        return words


class Step:
    def __init__(self, name, about, share, tasks):
        self.name, self.about, self.share, self.tasks = name, about, share, tasks


def _fail(path, message):
    raise files.Bad(f"{path}: {message}")


def _name(path, value):
    if not isinstance(value, str) or not _NAME.fullmatch(value):
        _fail(path, f"{value!r} is no name: lower-case letters, digits, '.', '_' and '-'")
    return value


def problem_words(path, problem):
    """The op and its flags as words of a command line: true is a bare flag, false none."""
    words = [_name(path, problem.get("op"))]
    for flag, value in problem.get("flags", {}).items():
        if value is True:
            words.append(f"--{flag}")
        elif value is not False:
            words += [f"--{flag}", str(value)]
    return words


def _number(path, entry, key, default):
    value = entry.get(key, default)
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value < 1e6:
        _fail(path, f"{key} must be a positive number, not {value!r}")
    return value


def _problems(path, entry):
    """Inline, or those of a file beside the plan; a step without any is one task of its own name."""
    problems = entry.get("problems")
    if problems is None:
        return None
    if isinstance(problems, str):
        path = os.path.normpath(os.path.join(os.path.dirname(path), problems))
        document = files.read_json(path)
        problems = document.get("problems") if isinstance(document, dict) else None
    if not isinstance(problems, list) or not problems or not all(isinstance(each, dict) for each in problems):
        _fail(path, "problems must be a list of objects")
    return problems


def _filled(path, command, problem):
    words = []
    for word in command:
        words += problem_words(path, problem) if word == "{problem}" else [word]
    return words


def _step(path, entry):
    name = _name(path, entry.get("name"))
    command = entry.get("command")
    if not isinstance(command, list) or not command or not all(isinstance(word, str) for word in command):
        _fail(path, f"step {name}: command must be a list of words")
    limit, least = _number(path, entry, "limit_s", 60), _number(path, entry, "least_s", 2)
    judge = entry.get("judge", "json")
    tasks = []
    for problem in _problems(path, entry) or [{"name": name}]:
        words, first = _filled(path, command, problem), _filled(path, entry.get("first", []), problem)
        tasks.append(Task(name, _name(path, problem.get("name")), words, problem.get("limit_s", limit), least, judge,
                          problem.get("variants", entry.get("variants", [])), problem, first))
    names = [task.name for task in tasks]
    for each in names:
        if names.count(each) > 1:
            _fail(path, f"step {name}: {each} is there twice")
    return Step(name, entry.get("about", ""), _number(path, entry, "share", 1), tasks)


def load(path):
    """The steps in order, most important first. Raises files.Bad."""
    document = files.read_json(path)
    if not isinstance(document, dict) or document.get("schema") != "roofgen.visit-plan.1":
        _fail(path, "not a plan of a visit (schema roofgen.visit-plan.1)")
    return [_step(path, entry) for entry in document["steps"]]


def slices(steps, budget_s):
    """(step, end) in order: when each step's time is over, in seconds from the start. A step that ends early leaves
    its time to those after it."""
    total = sum(step.share for step in steps)
    ends, end = [], 0.0
    for step in steps:
        end += budget_s * step.share / total
        ends.append((step, end))
    return ends


def describe(steps, budget_s, digits=0):
    """The plan as text, for --dry-run."""
    lines = [f"{'step':12} {'from':>6} {'to':>6}  tasks  what"]
    start = 0.0
    for step, end in slices(steps, budget_s):
        lines.append(f"{step.name:12} {start:5.{digits}f}s {end:5.{digits}f}s  {len(step.tasks):5}  {step.about}")
        start = end
    for step in steps:
        lines.append("")
        for task in step.tasks:
            commands = " && ".join(" ".join(words) for words in (task.first, task.command) if words)
            lines.append(f"{task.id} (at most {task.limit_s:g} s): {commands}")
    return "\n".join(lines) + "\n"
