"""The Markdown of docs/evidence/fidelity.md from the figures of results.py, and the lists for debugging. Only formatting."""
import json
import math
import re
from statistics import median

import results
from kernels import Bad

# The model that the others are compared with: it has no goals and no bands.
BASELINE = "roofline"
BEGIN, END = "<!-- results:begin fidelity -->", "<!-- results:end fidelity -->"


def number(value, digits=3):
    return "-" if value is None or math.isnan(value) else f"{value:.{digits}f}"


def percent(value, digits=1):
    return "-" if value is None or math.isnan(value) else f"{100 * value:.{digits}f} %"


def band(value):
    """The quantile of a log error as a percentage: 0.095 is 10 %."""
    return percent(math.expm1(value)) if value is not None else "-"


def milliseconds(value):
    return f"{value / 1e3:.3f}"


def table(head, rows):
    if not rows:
        return ""
    lines = [head, ["---"] * len(head), *rows]
    return "".join(f"| {' | '.join(str(cell).replace('|', '/') for cell in line)} |\n" for line in lines)


def spaces_table(figures):
    head = ["space", "role", "device", "compiler", "measured", "usable", "drawn", "failed", "best ms", "median ms",
            "worst ms", "points used"]
    return table(head, [[each["space"], each["role"], each["device"], each["compiler"] or "default", each["recorded"],
                         each["valid"], each["drawn"], each["failed"], milliseconds(each["best_us"]),
                         milliseconds(each["median_us"]), milliseconds(each["worst_us"]), each["note"] or "all"]
                        for each in figures])


def accuracy_table(figures):
    head = ["space", "role", "model", "rho", "tau", "MAPE after one scale", "MAPE raw", "scale", "68 % within",
            "90 % within", "90 % within, raw"]
    return table(head, [[each["space"], each["role"], model, number(f["rho"]), number(f["tau"]), percent(f["mape"]),
                         percent(f["mape_raw"]), number(f["scale"]), band(f["band_68"]), band(f["band_90"]),
                         band(f["band_90_raw"])]
                        for each in figures for model, f in each["models"].items()])


def regret_table(figures):
    head = ["space", "role", "model", *(f"top-{count}" for count in results.PICKS)]
    return table(head, [[each["space"], each["role"], model,
                         *(percent(f[f"regret_{count}"], 2) for count in results.PICKS)]
                        for each in figures for model, f in each["models"].items()])


def fraction_table(figures):
    """Fractions of the optimum; the last line of a space is what random draws reach on average."""
    head = ["space", "first measured", *(str(count) for count in results.PICKS)]
    rows = []
    for each in figures:
        lines = [*each["models"].items(), *([("random draws", each["random"])] if each["models"] else [])]
        rows += [[each["space"], name, *(percent(f[f"fraction_{count}"]) for count in results.PICKS)]
                 for name, f in lines]
    return table(head, rows)


def evaluations_table(figures):
    head = ["space", "points", "share of the optimum", "the model's order", "its error learnt", "at random",
            "evaluations saved"]
    return table(head, [[each["space"], str(each["drawn"] - each["failed"]), percent(e["share"], 0), str(e["model"]),
                         str(e["learnt"]), f"{e['random']:.1f}", f"{e['random'] / e['learnt']:.1f} x"]
                        for each in figures for e in each.get("evaluations", [])])


def limits(group):
    if group["low"] == 1 and group["high"] is None:
        return "all"
    return f"{group['low']:g} to {group['high']:g}" if group["high"] else f"above {group['low']:g}"


def group_cells(group):
    return [limits(group), group["pairs"], band(group["band_68"]), band(group["band_90"]),
            percent(group["wrong_order"])]


GROUP_HEAD = ["predicted ratio", "pairs", "68 % within", "90 % within", "order wrong"]


def pooled_table(pools):
    return table(["role", "kind", "model", *GROUP_HEAD],
                 [[pool["role"], pool["kind"], pool["model"], *group_cells(group)]
                  for pool in pools if pool["model"] != BASELINE for group in pool["groups"]])


def bands_table(bands):
    """Roles below all spaces of a kind and model, where there are two."""
    roles = ("all", *dict.fromkeys(each["role"] for each in bands if each["role"] != "all"))
    kinds = list(dict.fromkeys(each["kind"] for each in bands))
    models = sorted({each["model"] for each in bands} - {BASELINE}, key=results.model_rank)
    found = {(each["kind"], each["model"], each["role"]): each for each in bands}
    rows = []
    for key in ((kind, model, role) for kind in kinds for model in models for role in roles):
        if key not in found:
            continue
        each = found[key]
        rows.append([*key, each["spaces"], each["points"], number(each["single_90"], 2), each["pairs"],
                     number(each["pair_90"], 2)])
    return table(["kind", "model", "spaces", "number", "points", "90 % of single times within", "pairs",
                  "90 % of ratios within"], rows)


def differences_table(figures, name="differences"):
    """One line for each space and model: all its pairs. The groups by ratio are in --json."""
    return table(["space", "role", "model", *GROUP_HEAD[1:]],
                 [[each["space"], each["role"], model, *group_cells(groups[-1])[1:]]
                  for each in figures for model, groups in each.get(name, {}).items() if groups])


def neighbours_table(figures):
    return differences_table(figures, "neighbours")


def counters_table(figures):
    head = ["space", "counter", "count", "points", "median difference", "90 % within", "worst"]
    return table(head, [[each["space"], f"`{name}`", f["count"], f["points"], percent(f["median"], 2),
                         percent(f["q90"], 2), percent(f["worst"], 1)]
                        for each in figures for name, f in each.get("counters", {}).items()])


def compiled_table(figures):
    head = ["space", "compiled", "points", "equal"]
    return table(head, [[each["space"], name.replace("_", " "), f["points"], f["equal"]]
                        for each in figures for name, f in each.get("compiled", {}).items()])


GOAL_NAMES = {"rho": "rho", "tau": "tau", "mape": "MAPE", "regret_1": "top-1 regret", "regret_10": "top-10 regret"}


def goal_cell(name, goal):
    """`0.97 (0.95)`; a goal that is missed is bold."""
    shown = number if name in ("rho", "tau") else percent
    text = f"{shown(goal['value'])} ({shown(goal['limit'], 2 if name in ('rho', 'tau') else 0)})"
    return text if goal["met"] else f"**{text}**"


def goals_table(figures):
    head = ["space", "role", "kind", "model", "met", "reached (goal)"]
    rows = []
    for each in figures:
        goals_of = {model: goals for model, goals in each.get("goals", {}).items() if model != BASELINE}
        for model, goals in goals_of.items():
            cells = [f"{GOAL_NAMES[name]} {goal_cell(name, goal)}" for name, goal in goals.items()]
            met = sum(goal["met"] for goal in goals.values())
            rows.append([each["space"], each["role"], each["kind"], model, f"{met} of {len(goals)}", ", ".join(cells)])
    return table(head, rows)


SECTIONS = (
    ("Spaces", spaces_table, ""),
    ("Accuracy", accuracy_table, "Scale: the median of measured over predicted, one factor a space. \"68 % within\": "
                                 "the factor that 68 % of the points are off by at most, as a percentage."),
    ("Regret", regret_table, "How much slower the best of the model's first picks is than the best point drawn."),
    ("Fraction of the optimum", fraction_table, "Best time of the points drawn over the best among those measured "
                                                "first: in the model's order, and for random draws (exact mean)."),
    ("Evaluations saved", evaluations_table,
     "Points measured until one reaches the share of the optimum. First come the event model's picks; a search that "
     "learns the model's error corrects each prediction by the errors of the points measured so far, by parameter value. "
     "Random order: exact mean. Saved: random over learnt."),
    ("Error of a difference", differences_table, "Random pairs of points: error of the ratio of their predictions."),
    ("Error of a difference, one parameter changed", neighbours_table,
     "All pairs of points that differ in one parameter: most of what the two kernels do is the same."),
    ("Error of a difference, by predicted ratio", "pools", "The pairs of all spaces of a kind together."),
    ("Bands", "bands", "The factor that 90 % of single times are off by at most, after one scale a space, and 90 % "
                       "of ratios of two times are off by at most, where the predicted ratio is below 2. All spaces of "
                       "a kind, and those of one role."),
    ("Counts against counters", counters_table, ""),
    ("Compiled code against the recorded", compiled_table, ""),
    ("Goals", goals_table, ""),
)


def markdown(figures, pools, bands, model_version, options):
    points = f"At most {options.points}" if options.points else "All"
    lines = [f"Model {model_version}. {points} points of each space, drawn without regard to their times (seed "
             f"{options.seed}); {options.pairs} pairs.\n"]
    of_all = {"pools": lambda: pooled_table(pools), "bands": lambda: bands_table(bands)}
    for title, make, words in SECTIONS:
        body = of_all[make]() if make in of_all else make(figures)
        if body:
            lines.append(f"\n### {title}\n\n{words + chr(10) + chr(10) if words else ''}{body}")
    return "".join(lines)


def write(path, text, begin=BEGIN, end=END):
    """Replaces what stands between the markers. A file that does not exist becomes one with the markers alone."""
    block = f"{begin}\n{text}{end}\n"
    if path.exists():
        old = path.read_text()
        if old.count(begin) != 1 or old.count(end) != 1 or old.index(begin) > old.index(end):
            raise Bad(f"{path}: needs the lines {begin} and {end} once, in this order")
        block = old[:old.index(begin)] + block + old[old.index(end) + len(end):].removeprefix("\n")
    path.write_text(block)


def short(config, everywhere):
    """The parameters that vary in the space."""
    return " ".join(f"{name}={value}" for name, value in config.items() if name not in everywhere)


def constants(rows):
    first = rows[0].point.config
    return {name for name in first if all(row.point.config.get(name) == first[name] for row in rows)}


def explain(rows, count, model, command):
    """The worst points after one scale, then the mean error of each value of each parameter: what the model misses
    shows as a parameter whose values differ. command: (row) -> the call that reproduces its profile."""
    good = [row for row in rows if row.profile]
    if not good:
        return "no predictions\n"
    fixed = constants(good)
    scale = median(row.point.time_us / row.predicted_us(model) for row in good)
    errors = {id(row): math.log(scale * row.predicted_us(model) / row.point.time_us) for row in good}
    lines = [f"{model}: scale {scale:.4f}; predicted (scaled) over measured, worst first"]
    for row in sorted(good, key=lambda row: (-abs(errors[id(row)]), row.point.key))[:count]:
        lines.append(f"{math.exp(errors[id(row)]):6.3f}  measured {row.point.time_us:10.1f} us, predicted "
                     f"{scale * row.predicted_us(model):10.1f} us, raw {row.predicted_us(model):10.1f} us, "
                     f"{row.profile.get('registers', '?')} registers  {short(row.point.config, fixed)}")
        lines.append(f"        {command(row)}")
    lines.append("\nmean of predicted over measured by value of each parameter (points)")
    for name in (name for name in good[0].point.config if name not in fixed):
        groups = {}
        for row in good:
            groups.setdefault(row.point.config[name], []).append(errors[id(row)])
        cells = (f"{value}: {math.exp(sum(group) / len(group)):.3f} ({len(group)})"
                 for value, group in sorted(groups.items()))
        lines.append(f"{name:>14}  " + "  ".join(cells))
    failures = [row for row in rows if not row.profile]
    lines += [f"failed: {short(row.point.config, fixed)}: {row.failure}" for row in failures[:count]]
    return "\n".join(lines) + "\n"


def failure_lines(space, rows):
    """The different reasons of failures with their numbers."""
    reasons = {}
    for row in rows:
        if row.failure:
            reason = re.sub(r"\d+", "N", row.failure)
            reasons.setdefault(reason, []).append(row)
    return [f"{space.name}: {len(group)} failed: {group[0].failure} (first: {group[0].point.key})"
            for group in reasons.values()]


def csv_table(rows_of):
    """rows_of: a list of (space, rows). One line for each point; the configuration is JSON in one cell."""
    names = {model for _, rows in rows_of for row in rows if row.profile for model in row.profile["models"]}
    models = sorted(names, key=results.model_rank)
    yield ["space", "role", "configuration", "measured_us", *(f"{model}_us" for model in models), "registers",
           "recorded_registers", "failure"]
    for space, rows in rows_of:
        for row in rows:
            profile = row.profile or {"models": {}}
            times = [f"{row.predicted_us(name):.6g}" if name in profile["models"] else "" for name in models]
            yield [space.name, space.role, json.dumps(row.point.config), f"{row.point.time_us:.6g}", *times,
                   profile.get("registers", ""), row.point.compiled.get("registers", ""), row.failure]
