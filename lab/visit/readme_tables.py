#!/usr/bin/env python3
"""Writes measured results into the pages below, between <!-- results:begin NAME --> and <!-- results:end NAME -->.

    readme_tables.py [--check] [--results DIR] [--page FILE ...]

Reads the results of visits (archives.py): for each problem and GPU the newest good one; lab/results/README.md has all.
--check writes nothing and exits 1 if a page differs from the results. Other exit codes: 0 ok, 1 failed, 2 usage.
"""
import argparse
import difflib
import json
import os
import re
import statistics
import sys
import textwrap
from pathlib import Path

import archives
from files import FAILED, USAGE, Bad

ROOT = Path(__file__).resolve().parents[2]
TARGETS = ROOT / "lab/visit/targets.json"
PAGES = [ROOT / name for name in ("README.md", "docs/evidence/ceilings.md", "docs/evidence/measured.md",
                                  "docs/evidence/peers.md", "docs/internals/model.md", "lab/results/README.md")]
# README.md shows the first command, a problem with a published figure, the lowest score, a decode step and a GEMM.
HEADLINE = ("attention bf16 L=2048 d=64 batch=8 heads=32",
            "attention bf16 L=4096 d=128 batch=1 heads=64 kv_heads=8 causal",
            "attention fp8 L=4096 d=128 batch=4 heads=16",
            "attention bf16 L=1 kv_len=8192 d=128 batch=32 heads=64 kv_heads=8",
            "gemm bf16 M=4096 N=4096 K=4096")
VISIT = "lab/visit/package.py DIR && DIR/visit.py 560"


def guarded(name, main):
    """Runs main and turns bad input into one line and an exit code."""
    try:
        return main(sys.argv[1:]) or 0
    except (Bad, OSError) as error:
        print(f"{name}: {error}", file=sys.stderr)
        return getattr(error, "code", FAILED)
    except (KeyError, TypeError, StopIteration) as error:
        print(f"{name}: a result is not of the form expected: {error!r}", file=sys.stderr)
        return FAILED


def results_of(parser, arguments):
    """(options, results, rows): adds --results to the parser and loads every result of a command, and every row of a
    package, oldest first; each has the path of its visit."""
    parser.add_argument("--results", metavar="DIR", help="the results of visits [lab/results]")
    options = parser.parse_args(arguments)
    if options.results is not None and not os.path.isdir(options.results):
        raise Bad(f"--results {options.results}: no such folder", USAGE)
    folder = Path(options.results or archives.RESULTS)
    found, rows = [], []
    for path, contents in archives.visits(folder):
        visit = str(path.relative_to(folder))
        for _, document in archives.documents(path, contents):
            if document.get("schema") == "roofgen.visit-result.1":
                found.append({**document, "visit": visit})
            elif document.get("schema") == "roofgen.visit-row.1" and document["origin"] == "measured":
                rows.append({**document, "visit": visit, "gpu": json.loads(contents["visit.json"])["gpu"]})
    found.sort(key=lambda each: (each["ended"], each["step"], each["task"]))
    return options, found, sorted(rows, key=lambda row: (row["started"], row["case"]))


def good(results):
    return [each for each in results if each["status"] == "ok"]


def newest(results, key):
    """One result of each key."""
    return {key(each): each for each in results}.values()


def plain(text):
    """In one line, and nothing of it is markup."""
    return re.sub(r"\s+", " ", str(text)).replace("<", "&lt;").strip()


def table(head, rows):
    lines = [head, ["---"] * len(head), *rows] if rows else []
    return "".join(f"| {' | '.join(plain(text).replace('|', '/') or '-' for text in line)} |\n" for line in lines)


def listing(lines):
    """Points of a list, each of a heading and its facts; empty facts are left out."""
    texts = (plain(f"- {head}: " + ", ".join(fact for fact in facts if fact)) for head, facts in lines)
    fill = textwrap.TextWrapper(120, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False).fill
    return "".join(fill(text) + "\n" for text in texts)


def columns(rows):
    """Indented text, aligned; the first column to the left."""
    widths = [max(map(len, column)) for column in zip(*rows)]
    return "".join("    " + "  ".join(cell.rjust(width) if i else cell.ljust(width)
                                      for i, (cell, width) in enumerate(zip(row, widths))) + "\n" for row in rows)


def by_place(lines, write):
    """Lines that begin with a GPU and a date, under a heading for each place; `write` has the rest of the lines."""
    groups = {}
    for place, line in lines:
        groups.setdefault(place, []).append(line)
    return "\n".join(f"{plain(place)}:\n\n{write(group)}" for place, group in groups.items())


def interval(timing):
    """The median and its 95 % interval in one unit."""
    scale, unit = (1e3, "ms") if timing["median_us"] >= 1000 else (1, "us")
    digits = 3 if scale > 1 or timing["median_us"] < 10 else 2 if timing["median_us"] < 100 else 1
    low, median, high = (f"{timing[name] / scale:.{digits}f}" for name in ("low_us", "median_us", "high_us"))
    return f"{median} {unit} [{low}, {high}]"


def attention_flops(p):
    """Two matrix products at 2 FLOPs for each multiply-add, without the masked pairs."""
    rows, keys = p["L"], p["kv_len"]
    pairs = sum(max(0, min(keys, i + keys - rows + 1)) for i in range(rows)) if p.get("causal") else rows * keys
    return 4 * p["batch"] * p["heads"] * pairs * p["d"]


OTHER_SIZES = ("M", "N", "K", "experts", "rows", "cols")
FLAGS = ("causal", "lse", "residual")
TEXTS = ("sizes", "gated", "quant")


def problem_key(p):
    """Equal for documents of `roofgen tune` and of peers on the same problem; the latter nest the sizes."""
    flat = {**p, **p.get("dims", {}), **p.get("flags", {})}
    names = ("op", "dtype", "L", "kv_len", "d", "batch", "heads", "kv_heads", "page", *OTHER_SIZES)
    sizes = tuple(flat.get(name) for name in names)
    return sizes + tuple(bool(flat.get(name)) for name in FLAGS) + tuple(flat.get(name) or "" for name in TEXTS)


def problem_text(p):
    hidden = {name for name, same in (("kv_len", "L"), ("kv_heads", "heads")) if p.get(name) == p.get(same)}
    sizes = [name for name in ("L", "kv_len", "d", "batch", "heads", "kv_heads", "page", *OTHER_SIZES) if name in p]
    texts = [f"{name}={p[name]}" for name in TEXTS if p.get(name)]
    texts += [p["epilogue"]] if p.get("epilogue", "acc") != "acc" else []
    return " ".join([p["op"], p["dtype"], *(f"{name}={p[name]}" for name in sizes if name not in hidden),
                     *(name for name in FLAGS if p.get(name)), *texts])


def where(each):
    return f"{each['gpu']['name']}, driver {each['gpu']['driver']}, {each['started'][:10]}"


def clock(figures):
    return f"{figures['sm_mhz']:.0f} MHz" if figures.get("sm_mhz") else ""


def peer_ratios(results):
    """By GPU and problem: the time of each peer over ours in the same rounds."""
    found = {}
    for each in results:
        document = each["result"]
        if each["step"] != "peers" or document.get("origin") != "measured":
            continue
        ratios = []
        for peer in document["peers"]:
            modes = peer.get("timings", {})
            ratio = (modes.get("steady") or modes.get("burst") or {}).get("cold", {}).get("ratio")
            if ratio:
                text = f"{peer['name']} {ratio['median']:.2f} [{ratio['low']:.2f}, {ratio['high']:.2f}]"
                ratios.append((ratio["median"], text))
        key = each["gpu"]["name"], problem_key({"op": document["op"], **document["problem"]})
        found[key] = "; ".join(text for _, text in sorted(ratios))
    return found


def rate(problem, time_us, match):
    """In the unit of the published figure."""
    if problem["op"] in ("gemm", "grouped_gemm"):
        return f"{2 * problem['M'] * problem['N'] * problem['K'] / time_us / 1e6:.0f} TFLOP/s"
    if problem["op"] != "attention":
        return ""
    if "gb_s" in match or problem["L"] == 1:
        element = 1 if problem["dtype"] == "fp8" else 2
        kv_bytes = 2 * element * problem["batch"] * problem["kv_heads"] * problem["kv_len"] * problem["d"]
        return f"{kv_bytes / time_us / 1e3:.0f} GB/s"
    return f"{attention_flops(problem) / time_us / 1e6:.0f} TFLOP/s"


def published(match):
    if not match:
        return ""
    figure = f"{match['gb_s']:g} GB/s" if "gb_s" in match else f"{match['tflop_s']:g} TFLOP/s"
    return f"{figure}: {match['by']}, {match['gpu']}"


def tuned(results):
    """(problem in words, result, its best variant, how it was timed), the newest of each GPU and problem."""
    def key(each):
        return each["gpu"]["name"], problem_key(each["result"]["problem"])

    found = []
    measured_here = [each for each in results
                     if each["step"] == "tune" and each["result"]["device"]["origin"] == "measured"]
    for each in newest(measured_here, key):
        document, problem = each["result"], each["result"]["problem"]
        best = next(v for v in document["variants"] if v["name"] == document["best_variant"])
        timing = best.get("measurement") or best["kernels"][0]["measurement"]
        order = [each["gpu"]["name"], each["started"][:10], problem["op"], problem["dtype"]]
        order += [problem.get(name, 0) for name in ("d", "causal", "L", "kv_len", "batch", "heads", "kv_heads")]
        found.append((order, problem_text(problem), each, best["name"], timing))
    return [each[1:] for each in sorted(found, key=lambda each: each[0])]


def headline(results, rows):
    """Five problems: our time, rate and score, on the GPU that measured them last."""
    last = {text: (each, timing) for text, each, _, timing in
            sorted(tuned(results), key=lambda found: found[1]["started"])}
    lines = []
    for text in HEADLINE:
        if text in last:
            each, measurement = last[text]
            timing = measurement.get("cold") or measurement["hot"]
            lines.append((where(each), [text, interval(timing).partition(" [")[0],
                                        rate(each["result"]["problem"], timing["median_us"], {}),
                                        f"{each['result']['score']:.2f}"]))
    return by_place(lines, lambda group: columns([["problem", "time", "rate", "score"], *group]))


def measured(results, rows):
    """The targets: our time, rate and score, the published figure, and the peers."""
    peers, lines = peer_ratios(results), []
    matches = {target["name"]: target["match"] for target in json.loads(TARGETS.read_bytes())["problems"]}
    for text, each, variant, measurement in tuned(results):
        document, problem = each["result"], each["result"]["problem"]
        timing = measurement.get("cold") or measurement["hot"]
        match = each["about"].get("match", matches.get(each["task"], {}))
        others = peers.get((each["gpu"]["name"], problem_key(problem)))
        lines.append((where(each), (text, [
            variant, interval(timing), rate(problem, timing["median_us"], match),
            f"score {document['score']:.2f} (datasheet {document['score_datasheet']:.2f})", clock(measurement),
            match and f"published {published(match)}", others and f"their time / ours: {others}"])))
    return by_place(lines, listing)


def microseconds(timing):
    return {name.replace("_ns", "_us"): value / 1e3 for name, value in timing.items() if name.endswith("_ns")}


def peers(results, rows):
    """Ours and other implementations in the same rounds, with L2 cold; and the prediction."""
    lines = []
    for row in newest(rows, lambda row: (row["gpu"]["name"], row["case"])):
        ours = [entry for entry in row["entries"] if entry["ours"] and entry["timings"].get("cold")]
        if not ours:
            continue
        best = min(ours, key=lambda entry: entry["timings"]["cold"]["median_ns"])
        timing = microseconds(best["timings"]["cold"])
        problem = row["problem"]
        flat = {**problem, **problem["dims"], **problem["flags"], **problem.get("texts", {})}
        others = []
        for other in (entry for entry in row["entries"] if not entry["ours"]):
            time = microseconds(other["timings"].get("cold", {})).get("median_us")
            timed = time and other["state"] == "timed"
            others.append(f"{other['name']} {time / timing['median_us']:.2f}" if timed else
                          f"{other['name']} {other['state']}")
        lines.append((where(row), (problem_text(flat), [
            best["schedule"]["variant"], interval(timing), rate(flat, timing["median_us"], {}),
            f"roof / time {row['floor_us'] / timing['median_us']:.2f}",
            f"predicted / measured {best['predicted_us'] / timing['median_us']:.2f}", clock(row["clock"]),
            others and f"their time / ours: {'; '.join(others)}"])))
    return by_place(lines, listing)


def predicted(results, rows):
    """The error of the model's times, by GPU, kind of kernel and use."""
    groups = {}
    for row in newest(rows, lambda row: (row["gpu"]["name"], row["case"])):
        problem = row["problem"]
        decodes = problem["op"] == "attention" and problem["dims"]["L"] == 1
        kind = f"{'decode' if decodes else problem['op']} {problem['dtype']}"
        for entry in row["entries"]:
            if entry["ours"] and entry["state"] == "timed" and entry["timings"].get("cold"):
                time = microseconds(entry["timings"]["cold"])["median_us"]
                groups.setdefault((row["gpu"]["name"], kind, row["use"]), []).append(
                    (entry["predicted_us"] / time - 1, row["case"]))
    lines = []
    for (gpu, kind, use), errors in sorted(groups.items()):
        worst, case = max(errors, key=lambda each: abs(each[0]))
        lines.append([gpu, kind, use, len(errors), f"{100 * statistics.median(error for error, _ in errors):+.1f} %",
                      f"{100 * statistics.median(abs(error) for error, _ in errors):.1f} %",
                      f"{100 * worst:+.1f} % {case}"])
    head = ["GPU", "kernels", "use", "times", "median error", "median absolute error", "largest error"]
    return table(head, lines)


def ceilings(results, rows):
    """The measured roofs of all GPUs side by side, each with its share of the stated value."""
    found = list(newest([r for r in results if r["step"] == "ceilings"], lambda r: r["gpu"]["name"]))
    measured = [{c["what"]: c for c in each["result"]["ceilings"] if c.get("origin") == "measured"} for each in found]
    if not any(measured):
        return ""

    def cells(c):
        if not c:
            return ["", ""]
        chip, stated = c.get("chip"), c.get("stated")
        value = f"{c['value']:.5g} {c['unit']}" + (f", {chip['value']:.5g} {chip['unit']}" if chip else "")
        return [value, f"{100 * c['value'] / stated['value']:.0f} %" if stated else ""]

    head = ["ceiling"]
    for each in found:
        head += [each["gpu"]["name"], "of stated"]
    names = dict.fromkeys(name for of_gpu in measured for name in of_gpu)
    widest = max(max(c["high"] - c["value"], c["value"] - c["low"]) / c["value"] for each in measured
                 for c in each.values())
    visits = "".join(f"- {where(each)}\n" for each in found)
    return (f"{visits}\nMedians; 95 % intervals within {100 * widest:.1f} %.\n\n" +
            table(head, [[name, *(cell for of_gpu in measured for cell in cells(of_gpu.get(name)))] for name in names]))


def median_us(timings):
    """Of times with L2 cold where there are any, else hot."""
    timing = timings.get("cold") or timings.get("hot") or {}
    return timing.get("median_us") or timing.get("median_ns", 0) / 1e3


def lines_of_tune(document):
    """(variant, its time, the predicted time); each kernel of a variant that was not timed as a whole."""
    for variant in document["variants"]:
        kernels = variant["kernels"]
        if variant.get("measurement"):
            parts = [kernel.get("model_time_us") for kernel in kernels]
            yield variant["name"], median_us(variant["measurement"]), sum(parts) if parts and all(parts) else 0
            continue
        for kernel in kernels:
            if kernel.get("measurement"):
                yield (f"{variant['name']}, {kernel['name']}", median_us(kernel["measurement"]),
                       kernel.get("model_time_us") or 0)


def lines_of_peers(document):
    """(problem, our time, the peer, its time)"""
    times = {}
    for peer in document["peers"]:
        modes = peer.get("timings", {})
        times[peer["name"]] = median_us(modes.get("steady") or modes.get("burst") or {})
    ours = next((time for name, time in times.items() if name.startswith("roofgen")), 0)
    for name, time in times.items():
        if time and not name.startswith("roofgen"):
            yield document["problem"].get("name", ""), ours, name, time


def cells(case, kernel, ours=0, peer="", peer_us=0, predicted=0):
    """The cells of a measured kernel: times in us, and ratios to ours."""
    def number(value):
        return (f"{value:.1f}" if value >= 100 else f"{value:.2f}") if value else ""

    def ratio(value):
        return f"{value / ours:.2f}" if value and ours else ""

    return [case, kernel, number(ours), f"{peer} {number(peer_us)}".strip(), ratio(peer_us), number(predicted),
            ratio(predicted)]


def every(results, rows):
    """A line for each measured kernel, under the GPU and the date of its visit."""
    lines = []

    def add(each, *of_kernel, **times):
        lines.append((f"{where(each)} ({each['visit']})", cells(*of_kernel, **times)))

    for each in results:
        result = each["result"] or {}
        case = f"{each['step']}.{each['task']}" + ("" if each["status"] == "ok" else f" ({each['status']})")
        for document in result.get("documents", [result]):
            if document.get("schema") == "roofgen.tune.1" and document["device"]["origin"] == "measured":
                for kernel, ours, predicted in lines_of_tune(document):
                    add(each, case, kernel, ours, predicted=predicted)
            elif document.get("schema") == "roofgen.peers.1" and document["origin"] == "measured":
                for problem, ours, peer, time in lines_of_peers(document):
                    add(each, f"{case} {problem}".strip(), "", ours, peer, time)
    for row in rows:
        others = [(median_us(entry["timings"]), entry["name"]) for entry in row["entries"]
                  if not entry["ours"] and entry["state"] == "timed"]
        time, peer = min(others, default=(0, ""))
        for entry in (entry for entry in row["entries"] if entry["ours"] and entry["state"] == "timed"):
            kernel = f"{entry['schedule']['variant']} ({entry['name'].split(':')[1]})"
            add(row, f"{row['step']}.{row['case']}", kernel, median_us(entry["timings"]), peer, time,
                entry["predicted_us"])
    head = ["case", "kernel", "ours us", "peer us", "peer / ours", "predicted us", "predicted / ours"]
    return by_place(sorted(lines), lambda group: table(head, group))


NONE = (f"No kernel has been measured on a GPU yet. `{VISIT}`\n"
        "measures the list in lab/visit/targets.json (docs/evidence/visit.md).\n")
BLOCKS = {
    "headline": (headline, NONE),
    "measured": (measured, NONE),
    "peers": (peers, f"Not measured yet: `{VISIT}` fills this table (docs/evidence/visit.md).\n"),
    "predicted": (predicted, f"Not measured yet: `{VISIT}` fills this table (docs/evidence/visit.md).\n"),
    "ceilings": (ceilings, "No ceilings have been measured yet; the same command does (docs/evidence/visit.md).\n"),
    "every": (every, NONE),
}


def rewrite(pages, results, rows):
    """The texts with their blocks written anew. Raises Bad where the markers are wrong."""
    seen = []

    def block(match):
        begin, name, content, end, end_name = match.groups()
        if end_name != name or "results:begin" in content:
            raise Bad(f"the block {name} is not closed", FAILED)
        if name not in BLOCKS:
            raise Bad(f"there is no block {name}; blocks: {', '.join(BLOCKS)}", FAILED)
        seen.append(name)
        write, nothing = BLOCKS[name]
        return begin + (write(results if name == "every" else good(results), rows) or nothing) + end

    pattern = r"(<!-- results:begin (\S+) -->\n)(.*?)(<!-- results:end (\S+) -->)"
    written = [re.sub(pattern, block, text, flags=re.DOTALL) for text in pages]
    for name in BLOCKS:
        if seen.count(name) != 1:
            raise Bad(f"the block {name} is there {seen.count(name)} times, not once", FAILED)
    return written


def main(arguments):
    parser = argparse.ArgumentParser(prog="readme_tables.py", description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 if a page differs")
    parser.add_argument("--page", nargs="+", default=PAGES, type=Path, metavar="FILE")
    options, results, rows = results_of(parser, arguments)
    before = [page.read_text(encoding="utf-8") for page in options.page]
    for page, old, new in zip(options.page, before, rewrite(before, results, rows)):
        if options.check and new != old:
            sys.stderr.writelines(difflib.unified_diff(old.splitlines(True), new.splitlines(True), page.name,
                                                       "as it should be"))
            raise Bad(f"{page.name} is not what the results say; lab/visit/readme_tables.py writes it", FAILED)
        if new != old:
            part = Path(f"{page}.part")
            part.write_text(new, encoding="utf-8")
            part.replace(page)


if __name__ == "__main__":
    sys.exit(guarded("readme_tables", main))
