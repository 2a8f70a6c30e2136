"""The result of a comparison: one document, from which the table is printed. Schema roofgen.peers.1, docs/peers.md."""

import math

from stats import median, paired_ratio, summarize

SCHEMA = "roofgen.peers.1"
STATES = ("timed", "wrong", "failed", "missing")


def timing(taken, way, name, ours, flops):
    """What one contender's samples of one way say; None when there are none."""
    row = taken.times[way].get(name, [])
    samples = [t for t in row if t is not None]
    if not samples:
        return None
    out = summarize(samples)
    out["tflops"] = flops / out["median_ns"] / 1e3 if flops else None
    out["ratio"] = paired_ratio(row, taken.times[way][ours]) if ours and ours in taken.times[way] and name != ours else None
    return out


def state_medians(states):
    """Medians of what was known of the GPU's state."""
    keys = sorted({k for s in states for k, v in s.items() if isinstance(v, (int, float))})
    return {k: median([s[k] for s in states if isinstance(s.get(k), (int, float))]) for k in keys}


def time_text(ns):
    if ns is None or math.isnan(ns):
        return "-"
    return f"{ns / 1e6:.3f} ms" if ns >= 1e6 else f"{ns / 1e3:.2f} us"


def ratio_text(ratio):
    if not ratio:
        return "-"
    mark = " ~" if ratio["low"] <= 1 <= ratio["high"] else ""
    return f"{ratio['median']:.3f} [{ratio['low']:.3f}, {ratio['high']:.3f}]{mark}"


def columns(rows):
    """Aligned text; the first column to the left, the others to the right."""
    width = [max(len(r[i]) for r in rows) for i in range(len(rows[0]))]
    lines = []
    for r in rows:
        cells = [c.ljust(w) if i == 0 else c.rjust(w) for i, (c, w) in enumerate(zip(r, width))]
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines) + "\n"


def table(doc):
    out = [f"{doc['op']} on {doc['gpu'].get('name', 'an unknown GPU')}, {problem_text(doc['problem'])}\n"]
    out.append(f"FLOPs: {doc['flop_convention']}; times: {doc['origin']}, median [95 % interval of the median]\n")
    for mode in doc["modes"]:
        for way in mode["ways"]:
            rows = [["peer", "time", "95 %", "IQR", "TFLOP/s", "time / ours", "err/tol"]]
            for p in doc["peers"]:
                t = p.get("timings", {}).get(mode["mode"], {}).get(way)
                if not t:
                    continue
                rows.append([
                    p["name"], time_text(t["median_ns"]), f"[{time_text(t['low_ns'])}, {time_text(t['high_ns'])}]",
                    time_text(t["q3_ns"] - t["q1_ns"]), f"{t['tflops']:.1f}" if t.get("tflops") else "-", ratio_text(t.get("ratio")),
                    f"{p['error_over_tolerance']:.2f}" if p.get("error_over_tolerance") is not None else "-",
                ])
            clock = mode["state"].get("sm_mhz")
            power = mode["state"].get("power_w")
            facts = [f"{mode['rounds']} rounds, {mode['stopped']}"]
            facts += [f"{clock:.0f} MHz"] if clock else []
            facts += [f"{power:.0f} W"] if power else []
            out.append(f"\n{mode['mode']}, {way} ({', '.join(facts)})\n" + columns(rows))
    others = [p for p in doc["peers"] if p["state"] != "timed"]
    if others:
        out.append("\n")
    for p in others:
        out.append(f"{p['name']}: {p['state']}: {p['reason']}\n")
    for note in doc["notes"]:
        out.append(f"note: {note}\n")
    return "".join(out)


def problem_text(problem):
    dims = " ".join(f"{k}={v}" for k, v in sorted(problem.get("dims", {}).items()))
    flags = " ".join(k for k, v in sorted(problem.get("flags", {}).items()) if v)
    return " ".join(part for part in (problem.get("dtype", ""), dims, flags) if part)


def faults(doc):
    """What is wrong with a document; empty when it is one of roofgen.peers.1."""
    found = []

    def need(where, obj, key, kind):
        if not isinstance(obj, dict) or key not in obj:
            found.append(f"{where}: no {key}")
        elif not isinstance(obj[key], kind):
            found.append(f"{where}.{key}: wrong type")

    for key, kind in (("schema", str), ("origin", str), ("time", str), ("command", str), ("op", str), ("problem", dict), ("flop_convention", str),
                      ("gpu", dict), ("versions", dict), ("modes", list), ("peers", list), ("notes", list)):
        need("document", doc, key, kind)
    if found:
        return found
    if doc["schema"] != SCHEMA:
        found.append(f"schema: {doc['schema']}")
    for i, mode in enumerate(doc["modes"]):
        for key, kind in (("mode", str), ("ways", list), ("rounds", int), ("stopped", str), ("state", dict)):
            need(f"modes[{i}]", mode, key, kind)
    names = set()
    for i, p in enumerate(doc["peers"]):
        where = f"peers[{i}]"
        need(where, p, "name", str)
        need(where, p, "state", str)
        if p.get("name") in names:
            found.append(f"{where}: {p['name']} is there twice")
        names.add(p.get("name"))
        if p.get("state") not in STATES:
            found.append(f"{where}.state: {p.get('state')}")
        elif p["state"] == "timed":
            need(where, p, "timings", dict)
            for mode, ways in p.get("timings", {}).items():
                for way, t in ways.items():
                    for key in ("median_ns", "q1_ns", "q3_ns", "low_ns", "high_ns", "samples", "times_ns"):
                        if key not in t:
                            found.append(f"{where}.timings.{mode}.{way}: no {key}")
        else:
            need(where, p, "reason", str)
            if p.get("timings"):
                found.append(f"{where}: {p['state']}, and yet timed")
    return found
