"""Order statistics of times; they assume no distribution. The same rules as runtime/measure/statistics.h."""
import math
import statistics


def median_interval(ordered):
    """The 95 % interval of the median of sorted values: the k-th from each end, with the largest k that the binomial
    distribution allows. Fewer than six values have no such interval: least and greatest."""
    n, k, below = len(ordered), 0, 0
    while 40 * (below + math.comb(n, k)) <= 2**n:  # at most k values below the median: at most 2.5 %
        below += math.comb(n, k)
        k += 1
    return ordered[max(k, 1) - 1], ordered[n - max(k, 1)]


def summarize(times_ns):
    """A timing of docs/peers.md from the samples in any order."""
    ordered = sorted(times_ns)
    q1, median, q3 = statistics.quantiles(ordered, n=4, method="inclusive") if len(ordered) > 1 else ordered * 3
    low, high = median_interval(ordered)
    return {"median_ns": median, "q1_ns": q1, "q3_ns": q3, "min_ns": ordered[0], "low_ns": low, "high_ns": high,
            "samples": len(ordered), "times_ns": list(times_ns)}


def paired_ratio(times, base):
    """Median and 95 % interval of times[i] / base[i] over the rounds that have both; None without such rounds."""
    ratios = sorted(t / b for t, b in zip(times, base) if t is not None and b)
    if not ratios:
        return None
    low, high = median_interval(ratios)
    return {"median": statistics.median(ratios), "low": low, "high": high, "pairs": len(ratios)}
