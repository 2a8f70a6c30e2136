#!/usr/bin/env python3
"""Compares what commands cost, in counts that no clock changes, with the limits in limits.txt.

    budget.py headline PROGRAM     the command of README.md, with empty stores
    budget.py suite COSTS          all processes of a run of the tests: the file that ROOFGEN_COSTS named
    budget.py lines BUILD          lines of the program's sources after the preprocessor

A count above its limit fails. Where a change is worth its cost, raise the limit with the reason in the commit; where a
change lowers a count, lower the limit. Options: --limits FILE, --record (writes the counts as the new "was").
"""
import argparse
import collections
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "recorded"))
import recorded  # noqa: E402


def by_command(path):
    """The counts of each command in a file of costs: one line of JSON for each process."""
    out = collections.defaultdict(collections.Counter)
    for line in pathlib.Path(path).read_text().splitlines():
        counts = json.loads(line)
        out[counts.pop("command", "")].update(counts)
    return out


def total(path):
    out = collections.Counter()
    for counts in by_command(path).values():
        out.update(counts)
    return dict(out)


def headline(program):
    """Its output is one of those that are recorded."""
    arguments = next(arguments for name, _, arguments, _ in recorded.commands() if name == "tune-headline")
    with tempfile.TemporaryDirectory() as home:
        compared = not recorded.why_not_compared(program, home)
        counts = []
        for name in "cold", "again":
            costs = os.environ["ROOFGEN_COSTS"] = os.path.join(home, name)
            _, got = recorded.run(program, arguments, home)
            diff = recorded.difference("tune-headline", arguments, got)
            if compared and name == "cold" and diff:
                sys.exit(diff)
            counts.append(total(costs))
        return {**counts[0], **{f"again.{name}": count for name, count in counts[1].items()}}


def lines(build):
    script = HERE.parents[1] / "bench" / "preprocessed_lines.py"
    told = subprocess.run([sys.executable, script, build], stdout=subprocess.PIPE, text=True, check=True).stdout
    return {"preprocessed": int(told.split()[0])}  # "4923124  58 objects"


MEASURES = {"headline": headline, "suite": total, "lines": lines}


def compare(measure, counts, limits):
    """The table of was, is and limit, and whether each count is within its limit."""
    rows, within = [], True
    for name, (was, limit) in limits.items():
        if not name.startswith(measure + "."):
            continue
        count = counts[name.removeprefix(measure + ".")]
        verdict = "" if count <= limit else f"  above the limit by {100 * (count - limit) / max(limit, 1):.1f} %"
        within = within and not verdict
        rows.append(f"{name:<28}{was:>16,}{count:>16,}{limit:>16,}{verdict}")
    return "\n".join([f"{'count':<28}{'was':>16}{'is':>16}{'limit':>16}", *rows]), within


def read_limits(path):
    out = {}
    for line in path.read_text().splitlines():
        if line and not line.startswith("#"):
            name, was, limit = line.split()
            out[name] = (int(was), int(limit))
    return out


def record(path, measure, counts):
    def renewed(match):
        count = counts.get(match["name"].removeprefix(measure + "."))
        if not match["name"].startswith(measure + ".") or count is None:
            return match[0]
        return f"{match['name']:<28}{count:>14} {match['limit']:>14}"

    path.write_text(re.sub(r"^(?P<name>[\w.]+) +\d+ +(?P<limit>\d+)$", renewed, path.read_text(), flags=re.M))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("measure", choices=MEASURES)
    parser.add_argument("subject")
    parser.add_argument("--limits", type=pathlib.Path, default=HERE / "limits.txt")
    parser.add_argument("--record", action="store_true")
    options = parser.parse_args()
    counts = MEASURES[options.measure](options.subject)
    if options.record:
        record(options.limits, options.measure, counts)
    table, within = compare(options.measure, counts, read_limits(options.limits))
    print(table)
    if options.measure == "suite" and not within:
        spent = by_command(options.subject)
        for name in sorted({name for counts in spent.values() for name in counts}):
            most = sorted(spent, key=lambda command: -spent[command][name])[:5]
            print(f"most {name}:", *(f"  {spent[command][name]:>9,} {command[:90]}" for command in most), sep="\n")
    sys.exit(0 if within else 1)


if __name__ == "__main__":
    main()
