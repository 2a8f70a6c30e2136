"""The text of a comparison, from the document of schema roofgen.peers.1 (docs/peers.md)."""


def time_text(ns):
    return f"{ns / 1e6:.3f} ms" if ns >= 1e6 else f"{ns / 1e3:.2f} us"


def ratio_text(ratio):
    if not ratio:
        return "-"
    mark = " ~" if ratio["low"] <= 1 <= ratio["high"] else ""
    return f"{ratio['median']:.3f} [{ratio['low']:.3f}, {ratio['high']:.3f}]{mark}"


def columns(rows, left=1):
    """Aligned text; so many columns to the left, the others to the right."""
    width = [max(map(len, column)) for column in zip(*rows)]
    aligned = [[f"{cell:{'<' if i < left else '>'}{width[i]}}" for i, cell in enumerate(row)] for row in rows]
    return "".join("  ".join(row).rstrip() + "\n" for row in aligned)


def problem_text(problem):
    dims = [f"{name}={size}" for name, size in sorted(problem["dims"].items())]
    return " ".join([problem["dtype"], *dims, *(name for name, on in sorted(problem["flags"].items()) if on)])


def table(doc):
    out = [f"{doc['op']} on {doc['gpu']['name']}, {problem_text(doc['problem'])}\n",
           f"FLOPs: {doc['flop_convention']}; times: {doc['origin']}, median [95 % interval of the median]\n"]
    for mode in doc["modes"]:
        state = mode["state"]
        facts = [f"{mode['rounds']} rounds, {mode['stopped']}"]
        facts += [f"{state[name]:.0f} {unit}" for name, unit in (("sm_mhz", "MHz"), ("power_w", "W")) if name in state]
        for way in mode["ways"]:
            rows = [["peer", "time", "95 %", "IQR", "TFLOP/s", "time / ours", "err/tol"]]
            for p in doc["peers"]:
                t = p.get("timings", {}).get(mode["mode"], {}).get(way)
                if t:
                    low, median, high = (time_text(t[name]) for name in ("low_ns", "median_ns", "high_ns"))
                    rows.append([p["name"], median, f"[{low}, {high}]", time_text(t["q3_ns"] - t["q1_ns"]),
                                 f"{t['tflops']:.1f}", ratio_text(t["ratio"]), f"{p['error_over_tolerance']:.2f}"])
            out.append(f"\n{mode['mode']}, {way} ({', '.join(facts)})\n" + columns(rows))
    others = [f"{p['name']}: {p['state']}: {p['reason']}\n" for p in doc["peers"] if p["state"] != "timed"]
    return "".join([*out, *(["\n"] if others else []), *others, *(f"note: {note}\n" for note in doc["notes"])])
