"""Order statistics of times: nothing is assumed about how they are distributed. The same rules as
runtime/measure/statistics.h."""

import math


def quantile(ordered, p):
    """The p-quantile (0 to 1) of sorted values, linear between neighbours. NaN of nothing."""
    if not ordered:
        return math.nan
    at = p * (len(ordered) - 1)
    low = int(math.floor(at))
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (at - low)


def median(values):
    return quantile(sorted(values), 0.5)


def median_interval(ordered):
    """Interval that holds the true median with at least 95 %: the k-th value from either end, k as large as
    the binomial distribution allows. Fewer than six values give no such interval: least and greatest."""
    n = len(ordered)
    if n == 0:
        return math.nan, math.nan
    if n < 6:
        return ordered[0], ordered[-1]
    below, tail, k = 0.0, 0.5**n if n < 1000 else 0.0, 0
    if n >= 1000:  # 0.5^n leaves double precision: the normal approximation of the binomial is exact enough
        k = max(1, int(math.floor((n - 1.959964 * math.sqrt(n)) / 2)))
        return ordered[k - 1], ordered[n - k]
    # tail: P(exactly k below the median); below: P(at most k - 1).
    while below + tail <= 0.025:
        below += tail
        tail *= (n - k) / (k + 1)
        k += 1
    return ordered[k - 1], ordered[n - k]


def summarize(times_ns):
    """What the report says of one contender's samples, in any order."""
    ordered = sorted(times_ns)
    low, high = median_interval(ordered)
    return {
        "median_ns": quantile(ordered, 0.5),
        "q1_ns": quantile(ordered, 0.25),
        "q3_ns": quantile(ordered, 0.75),
        "min_ns": ordered[0] if ordered else math.nan,
        "low_ns": low,
        "high_ns": high,
        "samples": len(ordered),
        "times_ns": list(times_ns),
    }


def paired_ratio(times, base):
    """Median and 95 % interval of times[i] / base[i] over the rounds that have both; None when there are none."""
    ratios = sorted(t / b for t, b in zip(times, base) if t is not None and b is not None and b > 0)
    if not ratios:
        return None
    low, high = median_interval(ratios)
    return {"median": quantile(ratios, 0.5), "low": low, "high": high, "pairs": len(ratios)}


def rotated(items, by):
    """A B C, B C A, C A B, ...: nobody always follows the same neighbour's heat alone in first place."""
    if not items:
        return []
    by %= len(items)
    return list(items[by:]) + list(items[:by])
