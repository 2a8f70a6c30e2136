#!/usr/bin/env python3
"""Writes what was measured into README.md, between <!-- results:begin NAME --> and <!-- results:end NAME -->.

    readme_tables.py [--check] [--results DIR] [--readme FILE]

Reads the results of visits (docs/visit.md); of several of one problem on one GPU the newest good one counts. --check
writes nothing and exits 1 where README.md is not what this would write. Other exit codes: 0 ok, 1 failed, 2 usage.
"""
import argparse
import difflib
import json
import os
import re
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
VISIT = "bench/portable.sh && bench/gpu_visit.sh 1500"


class Bad(Exception):
    pass


def add_results(parser):
    parser.add_argument("--results", metavar="DIR", help="the results of visits [results]")


def results_there(parser, options):
    """Sets the default, which need not be there: nothing was measured yet. A folder that was named must."""
    if options.results is not None and not os.path.isdir(options.results):
        print(f"{parser.prog.removesuffix('.py')}: --results {options.results}: no such folder", file=sys.stderr)
        return False
    options.results = options.results or os.path.join(ROOT, "results")
    return True


def load(folder):
    """Every good result of a visit below `folder`, oldest first."""
    found = []
    for root, folders, names in os.walk(folder):
        folders[:] = sorted(each for each in folders if not each.startswith("."))
        for name in sorted(names):
            path = os.path.join(root, name)
            if not name.endswith(".json"):
                continue
            try:
                with open(path, encoding="utf-8") as file:
                    document = json.load(file)
            except (OSError, ValueError) as error:
                raise Bad(f"{path}: {error}") from error
            if isinstance(document, dict) and document.get("schema") == "roofgen.visit-result.1" and document["status"] == "ok":
                found.append(document)
    return sorted(found, key=lambda each: (each["ended"], each["step"], each["task"]))


def cell(text):
    """Fit for a table of Markdown."""
    return re.sub(r"\s+", " ", str(text)).replace("|", "/").replace("<", "&lt;").strip() or "-"


def table(head, rows):
    lines = [head, ["---"] * len(head)] + rows
    return "".join(f"| {' | '.join(map(cell, line))} |\n" for line in lines)


def interval(timing):
    """The median and the 95 % interval around it, in one unit."""
    scale, unit = (1e3, "ms") if timing["median_us"] >= 1000 else (1, "us")
    digits = 3 if scale > 1 or timing["median_us"] < 10 else 2 if timing["median_us"] < 100 else 1
    low, median, high = (f"{timing[name] / scale:.{digits}f}" for name in ("low_us", "median_us", "high_us"))
    return f"{median} {unit} [{low}, {high}]"


# ---- Problems --------------------------------------------------------------------------------------------------------


def attention_flops(p):
    """What the problem requires: two products, 2 FLOPs a multiplication and addition, masked pairs left out."""
    rows, keys = p["L"], p["kv_len"]
    pairs = rows * keys
    if p.get("causal"):
        pairs = sum(max(0, min(keys, i + keys - rows + 1)) for i in range(rows))
    return 4 * p["batch"] * p["heads"] * pairs * p["d"]


FLOPS = {"attention": attention_flops}


def problem_key(p):
    """The same for two documents on the same problem, whether or not they nest its sizes."""
    flat = {**p, **p.get("dims", {}), **p.get("flags", {})}
    names = ("op", "dtype", "L", "kv_len", "d", "batch", "heads", "kv_heads")
    return tuple(flat.get(name) for name in names) + tuple(bool(flat.get(name)) for name in ("causal", "lse"))


def problem_text(p):
    words = [p["op"], p["dtype"]]
    words += [f"{name}={p[name]}" for name in ("L", "kv_len", "d", "batch", "heads", "kv_heads", "M", "N", "K") if name in p]
    if p.get("kv_len") == p.get("L"):
        words = [word for word in words if not word.startswith("kv_len=")]
    if p.get("kv_heads") == p.get("heads"):
        words = [word for word in words if not word.startswith("kv_heads=")]
    return " ".join(words + [name for name in ("causal", "lse") if p.get(name)])


# ---- Tables ----------------------------------------------------------------------------------------------------------


def newest(results, key):
    """One of each key; results come oldest first."""
    last = {}
    for each in results:
        last[key(each)] = each
    return list(last.values())


def peers_of(results):
    """By GPU and problem: what the peers' own comparison says, the time of each over ours in the same rounds."""
    found = {}
    for each in results:
        document = each["result"]
        if each["step"] != "peers" or document.get("schema") != "roofgen.peers.1" or document.get("origin") != "measured":
            continue
        ratios = []
        for peer in document["peers"]:
            timings = peer.get("timings") or {}
            timing = (timings.get("steady") or timings.get("burst") or {}).get("cold")
            if timing and timing.get("ratio"):
                ratio = timing["ratio"]
                ratios.append((ratio["median"], f"{peer['name']} {ratio['median']:.2f} [{ratio['low']:.2f}, {ratio['high']:.2f}]"))
        found[each["gpu"]["uuid"], problem_key({"op": document["op"], **document["problem"]})] = [text for _, text in sorted(ratios)]
    return found


def measured(results):
    """The kernels of the targets: our time, rate and score, whom they are held against, and what else ran beside them."""
    peers = peers_of(results)
    rows = []
    tuned = [each for each in results if each["step"] == "tune" and each["result"]["device"]["origin"] == "measured"]
    for each in newest(tuned, lambda r: (r["gpu"]["uuid"], problem_key(r["result"]["problem"]))):
        document = each["result"]
        best = next(v for v in document["variants"] if v["name"] == document["best_variant"])
        measurement = best.get("measurement") or best["kernels"][0]["measurement"]
        timing = measurement.get("cold") or measurement["hot"]
        problem = document["problem"]
        flops = FLOPS[problem["op"]](problem) if problem["op"] in FLOPS else 0
        match = each["about"].get("match", {})
        order = [each["gpu"]["name"], problem["op"], problem["dtype"]] + [problem.get(name, 0) for name in ("d", "causal", "L", "kv_len", "batch", "heads", "kv_heads")]
        rows.append((order, [
            each["started"][:10], f"{each['gpu']['name']}, driver {each['gpu']['driver']}",
            f"{measurement['sm_mhz']:.0f} MHz" if measurement.get("sm_mhz") else "", problem_text(problem), best["name"], interval(timing),
            f"{flops / timing['median_us'] / 1e6:.0f} TFLOP/s" if flops else "",
            f"{document['score']:.2f}, {document['score_datasheet']:.2f}",
            f"{match['tflop_s']:g} TFLOP/s: {match['by']}, {match['gpu']}" if "tflop_s" in match else "",
            "; ".join(peers.get((each["gpu"]["uuid"], problem_key(problem)), [])),
        ]))
    head = ["date", "GPU", "SM clock", "problem", "variant", "median time [95 % interval]", "rate", "score, by the datasheet", "published",
            "peers: their time / ours"]
    return table(head, [row for _, row in sorted(rows, key=lambda each: each[0])]) if rows else ""


def rate(figure):
    return f"{figure['value']:.5g} {figure['unit']}" if figure else ""


def ceilings(results):
    """What the GPU itself was found to do, beside its datasheet."""
    rows = []
    for each in newest([r for r in results if r["step"] == "ceilings"], lambda r: r["gpu"]["uuid"]):
        for c in each["result"]["ceilings"]:
            if c.get("origin") != "measured":
                continue
            stated, chip = c.get("stated", {}), c.get("chip", {})
            rows.append([each["started"][:10], f"{each['gpu']['name']}, driver {each['gpu']['driver']}", c["what"],
                         f"{c['value']:.5g} {c['unit']} [{c['low']:.5g}, {c['high']:.5g}]", rate(chip), rate({"unit": c["unit"], **stated} if stated else {}),
                         f"{100 * c['value'] / stated['value']:.0f} %" if stated else "", f"{c['sm_mhz']:.0f} MHz" if c.get("sm_mhz") else ""])
    return table(["date", "GPU", "ceiling", "measured [95 % interval]", "whole chip", "stated", "of it", "SM clock"], rows) if rows else ""


BLOCKS = {
    "measured": (measured, f"No kernel has been measured on a GPU yet. `{VISIT}` on a machine with one measures the list in"
                           " bench/targets.json (docs/visit.md)."),
    "ceilings": (ceilings, "No GPU's ceilings have been measured yet; the same command does (docs/visit.md)."),
}
_MARKED = re.compile(r"(<!-- results:begin (\S+) -->\n)(.*?)(<!-- results:end (\S+) -->)", re.DOTALL)


def rewrite(text, results):
    """README.md with its blocks as they should be. Raises Bad where the markers are wrong."""
    seen = []

    def block(match):
        name = match[2]
        if match[5] != name or "results:begin" in match[3]:
            raise Bad(f"the block {name} is not closed")
        if name not in BLOCKS:
            raise Bad(f"there is no block {name}; blocks: {', '.join(BLOCKS)}")
        seen.append(name)
        write, nothing = BLOCKS[name]
        return f"{match[1]}{write(results) or nothing + chr(10)}{match[4]}"

    written = _MARKED.sub(block, text)
    for name in BLOCKS:
        if seen.count(name) != 1:
            raise Bad(f"the block {name} is there {seen.count(name)} times, not once")
    return written


def main(arguments):
    parser = argparse.ArgumentParser(prog="readme_tables.py", description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 where README.md differs")
    add_results(parser)
    parser.add_argument("--readme", default=os.path.join(ROOT, "README.md"), metavar="FILE")
    options = parser.parse_args(arguments)
    if not results_there(parser, options):
        return 2
    try:
        with open(options.readme, encoding="utf-8") as file:
            before = file.read()
        after = rewrite(before, load(options.results))
    except (OSError, Bad) as error:
        print(f"readme_tables: {error}", file=sys.stderr)
        return 1
    except (KeyError, TypeError, StopIteration) as error:
        print(f"readme_tables: a result is not of the form expected: {error!r}", file=sys.stderr)
        return 1
    if after == before:
        return 0
    if options.check:
        sys.stderr.writelines(difflib.unified_diff(before.splitlines(True), after.splitlines(True), "README.md", "as it should be"))
        print("readme_tables: README.md is not what the results say; bench/readme_tables.py writes it", file=sys.stderr)
        return 1
    with open(f"{options.readme}.part", "w", encoding="utf-8") as file:
        file.write(after)
    os.replace(f"{options.readme}.part", options.readme)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
