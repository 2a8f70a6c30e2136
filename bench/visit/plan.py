"""The plan of a visit: plan.json and the lists of problems it names, as tasks with commands."""
import dataclasses
import hashlib
import re
from itertools import accumulate
from pathlib import Path

import files


@dataclasses.dataclass
class Task:
    """One command of a step, and optionally one that prepares it (`first`). Both still hold their {placeholders}."""
    step: str
    name: str
    command: list
    judge: str = "json"
    first: list = ()
    limit_s: float = 60
    least_s: float = 2
    wants: list = ()  # variants that a check must find verified
    about: dict = dataclasses.field(default_factory=dict)  # the problem or target as the data file has it

    @property
    def id(self):
        return f"{self.step}.{self.name}"

    @property
    def digest(self):
        """Identifies the commands: a result of other commands is another measurement."""
        return hashlib.sha256("\0".join([*self.first, *self.command]).encode()).hexdigest()[:16]


@dataclasses.dataclass
class Step:
    name: str
    about: str
    share: float
    tasks: list


def fill(command, values):
    """The command with these placeholders filled in. A word that is a placeholder for a list becomes several words."""
    words = []
    for word in command:
        value = values.get(word[1:-1])
        one = re.sub(r"\{([a-z]+)\}", lambda match: str(values.get(match[1], match[0])), word)
        words += value if isinstance(value, list) else [one]
    return words


def _problem_words(problem):
    """The op and its flags as words of a command line: true is a flag without a value, false is no flag."""
    words = [problem["op"]] if "op" in problem else []
    for flag, value in problem.get("flags", {}).items():
        words += [] if value is False else [f"--{flag}"] if value is True else [f"--{flag}", str(value)]
    return words


def _step(folder, entry):
    name, problems = entry["name"], entry.get("problems", [{"name": entry["name"]}])
    if isinstance(problems, str):
        problems = files.read_json(folder / problems)["problems"]
    tasks = {}
    for problem in problems:
        both, words = {**entry, **problem}, {"problem": _problem_words(problem)}
        settings = {key: both[key] for key in ("limit_s", "least_s", "judge") if key in both}
        task = Task(name, problem["name"], fill(entry["command"], words), first=fill(entry.get("first", []), words),
                    about=problem, wants=both.get("variants", []), **settings)
        if not re.fullmatch(r"[a-z0-9._-]+", task.id):  # becomes the name of a file
            raise files.Bad(f"{task.id!r}: names consist of lower-case letters, digits, '.', '_' and '-'")
        if tasks.setdefault(task.name, task) is not task:
            raise files.Bad(f"step {name}: {task.name} is there twice")
    return Step(name, entry.get("about", ""), entry.get("share", 1), [*tasks.values()])


def load(path):
    """The steps in order of importance. Raises files.Bad."""
    document = files.read_json(path)
    try:
        if document["schema"] != "roofgen.visit-plan.1":
            raise files.Bad(f"{path}: not a plan of a visit (schema roofgen.visit-plan.1)")
        return [_step(Path(path).parent, entry) for entry in document["steps"]]
    except (AttributeError, KeyError, TypeError) as error:
        raise files.Bad(f"{path}: not of the form of a plan: {error!r}") from error


def slices(steps, budget_s):
    """(step, end) in order: the end of each step's time in seconds from the start. Spare time goes to the next step."""
    total = sum(step.share for step in steps)
    return list(zip(steps, accumulate(budget_s * step.share / total for step in steps)))


def describe(steps, budget_s):
    """The plan as text, for --dry-run."""
    lines, start = [f"{'step':12} {'from':>6} {'to':>6}  tasks  what"], 0.0
    for step, end in slices(steps, budget_s):
        lines.append(f"{step.name:12} {start:5.0f}s {end:5.0f}s  {len(step.tasks):5}  {step.about}")
        start = end
    for step in steps:
        lines.append("")
        for task in step.tasks:
            commands = " && ".join(" ".join(words) for words in (task.first, task.command) if words)
            lines.append(f"{task.id} (at most {task.limit_s:g} s): {commands}")
    return "\n".join(lines) + "\n\n"
