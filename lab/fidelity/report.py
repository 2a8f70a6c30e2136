"""The Markdown of docs/evidence/fidelity.md from the figures of results.py, and the lists for debugging."""
import json
import math
import re
import textwrap
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


def shown_models(figures):
    """The models that have goals and bands."""
    return [(model, figures[model]) for model in figures if model != BASELINE]


def spaces_table(figures):
    head = ["space", "role", "device", "compiler", "drawn", "of usable", "failed", "best ms", "worst ms"]
    return table(head, [[each["space"], each["role"], each["device"], each["compiler"] or "default", each["drawn"],
                         each["valid"], each["failed"], milliseconds(each["best_us"]), milliseconds(each["worst_us"])]
                        for each in figures])


def notes_list(figures):
    """What points of a space are used, where not all are."""
    notes = {}
    for each in figures:
        if each["note"]:
            notes.setdefault(each["note"], []).append(each["space"])
    return "".join(wrapped(f"- {', '.join(names)}: {note}.", "  ") for note, names in notes.items())


def wrapped(text, indent=""):
    return textwrap.fill(text, 120, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False) + "\n"


def goal_cell(goals, name, text):
    """A goal that is missed is bold."""
    return text if name not in goals or goals[name]["met"] else f"**{text}**"


def accuracy_table(figures):
    head = ["space", "model", "rho", "tau", "MAPE", "scale", "90 % within", "top-1 regret", "top-5", "top-10"]
    rows = []
    for each in figures:
        for model, f in shown_models(each["models"]):
            goals = each.get("goals", {}).get(model, {})
            cells = {"rho": number(f["rho"]), "tau": number(f["tau"]), "mape": percent(f["mape"]),
                     "scale": number(f["scale"]), "band_90": band(f["band_90"]),
                     **{f"regret_{count}": percent(f[f"regret_{count}"], 2) for count in (1, 5, 10)}}
            rows.append([each["space"], model, *(goal_cell(goals, name, text) for name, text in cells.items())])
    return table(head, rows)


def baseline_line(figures):
    """One line about the roofline alone."""
    found = [each["models"][BASELINE] for each in figures if BASELINE in each["models"]]
    if not found:
        return ""
    rho, mape = ([f[name] for f in found] for name in ("rho", "mape"))
    return wrapped(f"The {BASELINE} alone: rho {number(min(rho), 2)} to {number(max(rho), 2)}, MAPE "
                   f"{percent(min(mape))} to {percent(max(mape))}.")


def evaluations_table(figures):
    head = ["space"]
    for share in results.SHARES:
        head += [f"{share:.0%}: model's order", "error learnt", "random"]
    return table(head, [[each["space"], *(cell for e in each["evaluations"]
                                          for cell in (e["model"], e["learnt"], f"{e['random']:.1f}"))]
                        for each in figures if each.get("evaluations")])


def limits(group):
    if group["low"] == 1 and group["high"] is None:
        return "all"
    return f"{group['low']:g} to {group['high']:g}" if group["high"] else f"above {group['low']:g}"


def order_table(pools):
    """How often the model with the best order decides wrongly, by the predicted ratio."""
    pools = [pool for pool in pools if pool["model"] == results.GUIDE]
    names = list(dict.fromkeys(limits(group) for pool in pools for group in pool["groups"]))
    names.sort(key=lambda name: (name == "all", name.startswith("above"), name))
    rows = []
    for pool in pools:
        wrong = {limits(group): percent(group["wrong_order"]) for group in pool["groups"]}
        rows.append([pool["kind"], pool["role"], *(wrong.get(name, "-") for name in names)])
    return table(["kind", "role", *names], rows)


def bands_table(bands):
    """A line for each kind and model: all spaces of the kind, then those of each role."""
    roles = ("all", *sorted({each["role"] for each in bands} - {"all"}))
    found = {(each["kind"], each["model"], each["role"]): each for each in bands}
    rows = []
    for kind, model in dict.fromkeys((each["kind"], each["model"]) for each in bands):
        if model == BASELINE:
            continue
        of_role = [found.get((kind, model, role)) for role in roles]
        rows.append([kind, model, *(number(each["single_90"], 2) if each else "-" for each in of_role),
                     *(number(each["pair_90"], 2) if each else "-" for each in of_role)])
    head = ["kind", "model", *(f"times, {role}" for role in roles), *(f"ratios, {role}" for role in roles)]
    return table(head, rows)


def differences_table(figures):
    """The best model's errors for random pairs, and for pairs that differ in one parameter. The other models, and the
    groups by ratio, are in --json."""
    rows = []
    for each in figures:
        if not each.get("differences", {}).get(results.GUIDE):
            continue
        cells = []
        for name in ("differences", "neighbours"):
            group = (each.get(name, {}).get(results.GUIDE) or [None])[-1]
            cells += [group["pairs"], band(group["band_90"]), percent(group["wrong_order"])] if group else ["-"] * 3
        rows.append([each["space"], *cells])
    return table(["space", "random pairs", "90 % within", "order wrong", "one parameter: pairs", "90 % within",
                  "order wrong"], rows)


def counters_table(figures):
    head = ["counter", "points", "median difference", "90 % within", "worst"]
    return "".join(f"{each['space']}:\n\n" + table(head, [
        [f"`{name}`", f["points"], percent(f["median"], 2), percent(f["q90"], 2), percent(f["worst"], 1)]
        for name, f in each["counters"].items()]) for each in figures if each.get("counters"))


def compiled_list(figures):
    """The counts of equal values; spaces with equal counts share a line."""
    lines = {}
    for each in figures:
        text = ", ".join(f"{name.replace('_', ' ')} equal at {f['equal']} of {f['points']} points"
                         for name, f in each.get("compiled", {}).items())
        if text:
            lines.setdefault(text, []).append(each["space"])
    return "".join(wrapped(f"- {', '.join(names)}: {text}.", "  ") for text, names in lines.items())


SECTIONS = (
    ("Spaces", spaces_table, ""),
    ("", notes_list, "Points that are used, where not all are, and other notes:"),
    ("Accuracy", accuracy_table,
     "*scale*: the median of measured over predicted, one factor a space. *MAPE* and *90 % within*: after this scale. "
     "*Regret*: how much slower the best of the model's first 1, 5 or 10 choices is than the best point drawn. "
     "**Bold**: a goal that is missed."),
    ("", baseline_line, ""),
    ("Evaluations saved", evaluations_table,
     "Points measured until one reaches 95 % or 99 % of the optimum: in the event model's order; by a search that "
     "learns the model's error from the points measured so far; in random order (exact mean)."),
    ("Error of a ratio", differences_table,
     "Errors of the event model's ratio of two predictions: for random pairs of points, and for all pairs that differ "
     "in one parameter, which have most of their work in common."),
    ("Wrong order by predicted ratio", "pools", "The event model, random pairs of all spaces of a kind."),
    ("Bands", "bands",
     "The factor that 90 % of single times (after one scale a space), and 90 % of ratios of two times (predicted ratio "
     "below 2), are off by at most."),
    ("Counts against counters", counters_table, ""),
    ("Compiled code against the recorded", compiled_list, ""),
)


def markdown(figures, pools, bands, model_version, options):
    points = f"At most {options.points}" if options.points else "All"
    lines = [wrapped(f"Model {model_version}. {points} points of each space, drawn without regard to their times (seed "
                     f"{options.seed}).")]
    of_all = {"pools": lambda: order_table(pools), "bands": lambda: bands_table(bands)}
    for title, make, words in SECTIONS:
        body = of_all[make]() if make in of_all else make(figures)
        if body:
            lines += ["\n", f"### {title}\n\n" if title else "", wrapped(words) + "\n" if words else "", body]
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
