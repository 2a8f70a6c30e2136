#!/usr/bin/env python3
"""Compares the time models of `roofgen profile` with published times of single kernels.

    published.py --roofgen build/cli/roofgen --learn-cuda DIR [--write docs/evidence/fidelity-kernels.md]
        [--csv docs/evidence/fidelity-kernels.csv]

Needs no GPU. --learn-cuda: a checkout of gau-nernst/learn-cuda, whose kernels are modelled as published; the others are
made from our templates (published_kernels.py). published_points.py lists the points. Each kernel is profiled once:
results are kept in --work, and a killed run goes on. Exit codes: 0 ok, 1 failed, 2 usage.
"""
import argparse
import csv
import itertools
import json
import math
import sys
from dataclasses import dataclass
from pathlib import Path

import fidelity
import kernels
import profiles
import published_kernels
import published_points
import report
import results
import spaces
import stats
from kernels import Bad

BEGIN, END = "<!-- results:begin published -->", "<!-- results:end published -->"
LADDER_DEVICE = "h100-sxm"
DEVICES = Path(__file__).resolve().parent / "data"  # beside those of the catalogue


def parser():
    made = argparse.ArgumentParser(prog="published.py", description=__doc__.split("\n\n", maxsplit=1)[0])
    made.add_argument("--roofgen", type=Path, required=True, metavar="FILE")
    made.add_argument("--learn-cuda", type=Path, metavar="DIR", help="checkout of gau-nernst/learn-cuda")
    made.add_argument("--only", action="append", default=[], metavar="WORD",
                      help="points whose group has this word in its name; repeatable")
    made.add_argument("--no-ladder", action="store_true", help="leave out the ladder of GEMM schedules")
    made.add_argument("--last-first", action="store_true",
                      help="attention: CTAs in our order, last rows first, not in FlashAttention-2's")
    made.add_argument("--jobs", type=fidelity.positive, default=1, metavar="N", help="calls of roofgen at a time [1]")
    made.add_argument("--timeout", type=fidelity.positive, default=600, metavar="S",
                      help="seconds for one kernel [600]")
    made.add_argument("--work", type=Path, default=Path("published-work"), metavar="DIR",
                      help="where results are kept [published-work]")
    made.add_argument("--model-version", default="", metavar="V", help="use the results kept for this version, and run "
                      "roofgen only for those that are missing")
    made.add_argument("--kept", action="store_true", help="tables of the kernels whose results are kept for "
                      "--model-version; run none")
    made.add_argument("--extra", action="append", default=[], metavar="ARG", help="argument for roofgen; repeatable")
    made.add_argument("--write", type=Path, metavar="FILE", help="Markdown file whose tables are replaced [print]")
    made.add_argument("--json", type=Path, metavar="FILE", help="write all figures")
    made.add_argument("--csv", type=Path, metavar="FILE", help="write a line for each kernel")
    return made


@dataclass
class Kernels(profiles.Profiler):
    """Profiles schedules instead of points of a space."""
    maker: published_kernels.Maker = None
    kept: bool = False  # run none

    def launch(self, space, point):
        return self.maker.launch(space.recipe, space.device, tuple(point.config.items()))

    def schedules(self, name, recipe, device, chosen):
        """schedule -> row, without those that the search space does not have."""
        space = spaces.Space(name, recipe, device, spaces.REPORT, "published")
        points = {}
        for schedule in chosen:
            try:
                self.maker.launch(recipe, device, schedule)
            except published_kernels.Illegal:
                continue
            points[schedule] = spaces.Point(dict(schedule), 0.0)
        if self.kept:
            found = {schedule: profiles.stored(self.place(space, point)) for schedule, point in points.items()}
            return {schedule: profiles.Row(points[schedule], kept["profile"])
                    for schedule, kept in found.items() if kept}
        if not points:
            raise Bad(f"{name}: the search space has none of the schedules", 1)
        return dict(zip(points, self.rows(space, list(points.values()))))


def launch_us(device):
    """What the models add for the launch."""
    path = published_kernels.ROOT / "roofline/devices" / f"{device}.json"
    cells = json.loads(path.read_text())["cells"]
    return cells["launch_us"]["value"] if "launch_us" in cells else 0.0


@dataclass
class Compared:
    """A point with the times of all models; or a failure. schedule: the fastest by the first model."""
    point: published_points.Point
    times: dict
    schedule: tuple = ()
    profile: dict = None
    failure: str = ""

    @property
    def trusted(self):
        return self.profile["confidence"] == "high"


def compared(point, rows):
    good = {schedule: rows[schedule] for schedule in point.schedules if schedule in rows and rows[schedule].profile}
    if not good:
        reasons = [rows[schedule].failure for schedule in point.schedules if schedule in rows]
        return Compared(point, {}, failure=reasons[0] if reasons else "the search space has none of the schedules")
    models = results.models_of(list(good.values()))
    without = launch_us(point.group.device) if point.group.device_time else 0.0
    times = {model: min(row.predicted_us(model) for row in good.values()) - without for model in models}
    best = min(good, key=lambda schedule: good[schedule].predicted_us(models[0]))
    return Compared(point, times, best, good[best].profile)


def group_points(options):
    """The chosen points by group, in order."""
    groups = {}
    for point in published_points.all_points():
        if not options.only or any(word in point.group.name for word in options.only):
            groups.setdefault(point.group, []).append(point)
    if not groups:
        raise Bad(f"no group has {' or '.join(options.only)} in its name")
    return groups


def compare_all(options, profile):
    """group -> list of Compared. Groups that share kernels (norms) share their results on disk."""
    out = {}
    for group, points in group_points(options).items():
        rows = {}
        for recipe in dict.fromkeys(point.recipe for point in points):
            of_recipe = [point for point in points if point.recipe == recipe]
            chosen = dict.fromkeys(schedule for point in of_recipe for schedule in point.schedules)
            rows.update(profile.schedules(recipe, recipe, group.device, chosen))
        if options.kept:
            points = [point for point in points if any(schedule in rows for schedule in point.schedules)]
        out[group] = [compared(point, rows) for point in points]
        for each in out[group]:
            if each.failure:
                print(f"published: {group.name}, {each.point.label}: {each.failure}", file=sys.stderr)
    return {group: points for group, points in out.items() if points}


# Figures -------------------------------------------------------------------------------------------------------------

def spread(errors):
    """Of log errors: the largest and the 90th percentile."""
    return {"worst": max(errors), "q90": stats.quantile(errors, 0.90)} if errors else {"worst": None, "q90": None}


@dataclass
class Errors:
    """Log errors of one model: raw, after the group's scale, and of ratios of pairs."""
    raw: list
    scaled: list
    pairs: list
    rivals: list  # pairs of the same problem

    def figures(self, scale=None):
        return {"points": len(self.raw), "scale": scale, "raw": spread(self.raw), "scaled": spread(self.scaled),
                "pairs": len(self.pairs), "ratio": spread(self.pairs), "rivals": len(self.rivals),
                "rival_ratio": spread(self.rivals)}


def group_errors(good, model):
    """(errors, scale) of one model over the points of one group."""
    predicted, measured = [each.times[model] for each in good], [each.point.time_us for each in good]
    scale = stats.scale_of(predicted, measured)
    logs = [math.log(p / m) for p, m in zip(predicted, measured)]
    pairs = list(itertools.combinations(range(len(good)), 2))
    rivals = [(i, j) for i, j in pairs if good[i].point.problem == good[j].point.problem]
    return Errors([abs(log) for log in logs], stats.log_errors(predicted, measured, scale),
                  [abs(logs[i] - logs[j]) for i, j in pairs], [abs(logs[i] - logs[j]) for i, j in rivals]), scale


def figures_of(compared_by_group):
    """Lines of the summary: of each group, then of each class over its counted groups and trusted kernels."""
    lines, pools = [], {}
    for group, points in compared_by_group.items():
        good = [each for each in points if each.times]
        if not good:
            continue
        for model in (name for name in results.MODEL_ORDER if all(name in each.times for each in good)):
            errors, scale = group_errors(good, model)
            lines.append({"name": group.name, "match": group.match, "model": model, **errors.figures(scale)})
            trusted = [each for each in good if each.trusted]
            if group.counted and trusted:
                pools.setdefault((group.kind, model), []).append(group_errors(trusted, model)[0])
    for (kind, model), parts in pools.items():
        joined = Errors(*([error for part in parts for error in getattr(part, name)]
                          for name in ("raw", "scaled", "pairs", "rivals")))
        lines.append({"name": f"all {kind}", "match": "", "model": model, **joined.figures()})
    return lines


@dataclass
class Rung:
    """A step of the ladder with its times."""
    step: published_points.Step
    times: dict
    profile: dict


def climb(profile):
    steps = list(published_points.ladder())
    rows = profile.schedules("ladder", "gemm", LADDER_DEVICE, dict.fromkeys(step.schedule for step in steps))
    rungs = []
    for step in steps:
        row = rows.get(step.schedule)
        if row is None or not row.profile:
            reason = row.failure if row else "not kept" if profile.kept else "not in the search space"
            print(f"published: ladder, {step.label}: {reason}", file=sys.stderr)
            continue
        rungs.append(Rung(step, {model: row.predicted_us(model) for model in results.models_of([row])}, row.profile))
    return rungs


# Tables --------------------------------------------------------------------------------------------------------------

def signed(value):
    return f"{100 * value:+.1f} %"


def shown_models(models):
    """The models whose errors the page shows; the others are in --json and --csv."""
    return [name for name in models if name != report.BASELINE]


def extremes(points):
    """The least and the largest error of the best model, with the points that have them."""
    best = next(name for name in results.MODEL_ORDER if any(name in each.times for each in points))
    errors = sorted((each.times[best] / each.point.time_us - 1, each.point.label) for each in points if each.times)
    ends = [errors[0], errors[-1]] if len(errors) > 1 else errors
    return f"{best} model " + " to ".join(f"{signed(error)} ({label})" for error, label in ends)


def group_line(group, points):
    """What is compared, from where, and how far the errors go."""
    title = f"- **{group.name}** ({group.match}). {group.source}."
    if not any(each.times for each in points):
        return report.wrapped(f"{title} None of its {len(points)} kernels was modelled. The first: "
                              f"{points[0].failure}", "  ")
    failed = [each.point.label for each in points if not each.times]
    missing = f" Not modelled: {', '.join(failed)}." if failed else ""
    doubtful = [each.point.label for each in points if each.times and not each.trusted]
    doubt = f" Without high confidence: {', '.join(doubtful)}." if doubtful else ""
    return report.wrapped(f"{title} Errors: {extremes(points)}.{missing}{doubt}", "  ")


def summary_table(lines):
    head = ["points of", "model", "points", "worst raw", "90 % raw", "scale", "90 % scaled", "pairs", "90 % of ratios",
            "of one problem"]
    return report.table(head, [[
        each["name"], each["model"], each["points"], report.band(each["raw"]["worst"]),
        report.band(each["raw"]["q90"]), report.number(each["scale"]), report.band(each["scaled"]["q90"]),
        each["pairs"], report.band(each["ratio"]["q90"]), report.band(each["rival_ratio"]["q90"])]
        for each in lines if each["model"] in shown_models([each["model"]]) and
        (each["model"] == results.GUIDE or each["name"].startswith("all "))])


def ladder_table(rungs):
    models = shown_models([name for name in results.MODEL_ORDER if all(name in rung.times for rung in rungs)])
    head = ["step", *(f"{name} TFLOP/s" for name in models), f"{models[0]} gain", "published gain", "of"]
    rows = []
    for rung, before in zip(rungs, [None, *rungs]):
        size = dict(rung.step.schedule)["size"]
        rates = [f"{2 * size ** 3 / rung.times[name] / 1e6:.0f}" for name in models]
        gain = signed(before.times[models[0]] / rung.times[models[0]] - 1) if before else "-"
        known = signed(rung.step.after / rung.step.before - 1) if rung.step.before else "-"
        rows.append([rung.step.label, *rates, gain, known, rung.step.counterpart or "no counterpart"])
    return report.table(head, rows)


def markdown(compared_by_group, rungs, lines, model_version):
    text = [f"Model {model_version}.\n\n### Errors by group\n\n{summary_table(lines)}\n"]
    text += [group_line(group, points) for group, points in compared_by_group.items()]
    if rungs:
        text.append(f"\n### A ladder of our GEMM on an H100\n\nbf16, 4096 x 4096 x 4096.\n\n{ladder_table(rungs)}")
    return "".join(text)


def csv_table(compared_by_group, rungs):
    yield ["group", "kernel", "schedule", "published_us", *(f"{name}_us" for name in results.MODEL_ORDER), "failure"]
    for group, points in compared_by_group.items():
        for each in points:
            yield [group.name, each.point.label, json.dumps(dict(each.schedule)), f"{each.point.time_us:.6g}",
                   *(f"{each.times[name]:.6g}" if name in each.times else "" for name in results.MODEL_ORDER),
                   each.failure]
    for rung in rungs:
        yield ["ladder", rung.step.label, json.dumps(dict(rung.step.schedule)), "",
               *(f"{rung.times[name]:.6g}" if name in rung.times else "" for name in results.MODEL_ORDER), ""]


def profiler(options):
    for name in ("roofgen", "learn_cuda"):
        path = getattr(options, name)
        if path and not (path.is_file() if name == "roofgen" else path.is_dir()):
            raise Bad(f"--{name.replace('_', '-')} {path}: no such {'file' if name == 'roofgen' else 'folder'}")
    sources = options.work / "sources"
    maker = published_kernels.Maker(roofgen=options.roofgen.resolve(), work=sources, learn_cuda=options.learn_cuda,
                                    last_first=options.last_first)
    checkouts = published_kernels.kernels.Checkouts(hub=None, ktt=None, work=sources)
    return Kernels(roofgen=options.roofgen.resolve(), checkouts=checkouts, work=options.work, nvrtc={},
                   extra=("--data-dir", str(DEVICES), *options.extra), jobs=options.jobs, timeout_s=options.timeout,
                   model_version=options.model_version, maker=maker, kept=options.kept)


def main(arguments):
    options = parser().parse_args(arguments)
    if options.kept and not options.model_version:
        raise Bad("--kept needs --model-version")
    profile = profiler(options)
    compared_by_group = compare_all(options, profile)
    rungs = [] if options.no_ladder else climb(profile)
    lines = figures_of(compared_by_group)
    text = markdown(compared_by_group, rungs, lines, profile.model_version)
    if options.json:
        options.json.write_text(json.dumps({"model_version": profile.model_version, "figures": lines}, indent=1))
    if options.csv:
        with options.csv.open("w", newline="") as out:
            csv.writer(out).writerows(csv_table(compared_by_group, rungs))
    if options.write:
        report.write(options.write, text, BEGIN, END)
    else:
        print(text, end="")
    return 0


if __name__ == "__main__":
    sys.exit(kernels.guarded("published", main, sys.argv[1:]))
