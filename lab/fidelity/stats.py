"""Statistics of predicted against measured times. Lists of equal length; no dependency; ties handled everywhere."""
import bisect
import math
import random
from statistics import median


def ranks(values):
    """Ranks from 1; ties share their mean rank."""
    order = sorted(range(len(values)), key=values.__getitem__)
    result = [0.0] * len(values)
    start = 0
    while start < len(order):
        end = start
        while end < len(order) and values[order[end]] == values[order[start]]:
            end += 1
        for index in order[start:end]:
            result[index] = (start + end + 1) / 2
        start = end
    return result


def pearson(x, y):
    mean_x, mean_y = sum(x) / len(x), sum(y) / len(y)
    products = sum((a - mean_x) * (b - mean_y) for a, b in zip(x, y))
    squares = sum((a - mean_x) ** 2 for a in x) * sum((b - mean_y) ** 2 for b in y)
    return products / math.sqrt(squares) if squares else math.nan


def spearman(x, y):
    return pearson(ranks(x), ranks(y))


def tied_pairs(values):
    """The number of pairs of equal values; values must be sorted."""
    total, run = 0, 0
    for index, value in enumerate(values):
        run = run + 1 if index and value == values[index - 1] else 0
        total += run
    return total


def kendall(x, y):
    """Kendall's tau-b in n log n (Knight 1966): sort by x, then count the exchanges that sorting by y needs."""
    pairs = sorted(zip(x, y))
    total = len(pairs) * (len(pairs) - 1) // 2
    tied_x, tied_y = tied_pairs(sorted(x)), tied_pairs(sorted(y))
    tied_both = tied_pairs(pairs)
    discordant = exchanges([b for _, b in pairs])[1]
    concordant = total - tied_x - tied_y + tied_both - discordant
    scale = math.sqrt((total - tied_x) * (total - tied_y))
    return (concordant - discordant) / scale if scale else math.nan


def exchanges(values):
    """(values sorted, number of pairs that were strictly out of order)."""
    if len(values) < 2:
        return values, 0
    middle = len(values) // 2
    left, first = exchanges(values[:middle])
    right, second = exchanges(values[middle:])
    merged, count, taken = [], first + second, 0
    for value in right:
        while taken < len(left) and left[taken] <= value:
            merged.append(left[taken])
            taken += 1
        merged.append(value)
        count += len(left) - taken
    return merged + left[taken:], count


def quantile(values, share):
    """The smallest value that is not below `share` of all values."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)] if ordered else math.nan


def scale_of(predicted, measured):
    """The one factor that a space is allowed: the median of measured over predicted."""
    return median(m / p for p, m in zip(predicted, measured))


def mape(predicted, measured, scale=1.0):
    """Mean absolute error relative to the measurement."""
    return sum(abs(scale * p - m) / m for p, m in zip(predicted, measured)) / len(measured)


def log_errors(predicted, measured, scale=1.0):
    return [abs(math.log(scale * p / m)) for p, m in zip(predicted, measured)]


def model_order(predicted):
    return sorted(range(len(predicted)), key=predicted.__getitem__)


def best_of_first(predicted, measured, count):
    """The least time measured among the model's first picks. Equal predictions are taken in the given order."""
    return min(measured[index] for index in model_order(predicted)[:count])


def regret(predicted, measured, count):
    return best_of_first(predicted, measured, count) / min(measured) - 1


def fraction_of_optimum(predicted, measured, count):
    return min(measured) / best_of_first(predicted, measured, count)


def random_fraction(measured, count):
    """The mean of the same fraction over all draws of `count` points: exact, not sampled. The i-th best of n is the
    best of the draw with probability C(n - i, count - 1) / C(n, count)."""
    ordered = sorted(measured)
    total = len(ordered)
    count = min(count, total)
    probability, mean = count / total, 0.0
    for index, time in enumerate(ordered):
        mean += probability * ordered[0] / time
        left = total - index - 1
        if left < count:
            return mean
        probability *= (left - count + 1) / left
    return mean


# Points without an error, in effect, that each parameter value begins with.
LEARNT_PRIOR = 4


def learnt_order(predicted, measured, configurations, count):
    """The first `count` points that a search measures which learns the error of its model: next is the point whose
    prediction is least, times the factor of each of its parameter values. A factor is the mean error of the points
    measured so far with that value, beside the error of all of them, drawn towards none as if LEARNT_PRIOR points had
    no error."""
    order, left = [], set(range(len(predicted)))
    sums = {}  # (parameter, value) -> (sum of errors, number)
    total = 0.0
    while left and len(order) < count:
        mean = total / len(order) if order else 0.0

        def corrected(index):
            factor = 0.0
            for value in configurations[index].items():
                of_value, number = sums.get(value, (0.0, 0))
                factor += (of_value - number * mean) / (number + LEARNT_PRIOR)
            return math.log(predicted[index]) + factor

        best = min(left, key=lambda index: (corrected(index), index))
        left.discard(best)
        order.append(best)
        error = math.log(measured[best] / predicted[best])
        total += error
        for value in configurations[best].items():
            of_value, number = sums.get(value, (0.0, 0))
            sums[value] = (of_value + error, number + 1)
    return order


def evaluations_to(order, measured, share):
    """How many points are measured in this order until one has `share` of the optimum."""
    wanted = min(measured) / share
    return next((place for place, index in enumerate(order, 1) if measured[index] <= wanted), None)


def random_evaluations_to(measured, share):
    """The mean of the same over all orders: m good ones among n points part the others into m + 1 alike parts."""
    good = sum(time <= min(measured) / share for time in measured)
    return (len(measured) + 1) / (good + 1)


# Lower ends of the bins of a predicted ratio of two times.
RATIO_BINS = (1.0, 1.05, 1.2, 1.5, 2.0, 4.0)


def errors_of_pairs(predicted, measured, pairs):
    """(predicted ratio >= 1, |log of predicted ratio over measured ratio|, order is wrong) of pairs of indices."""
    errors = []
    for i, j in pairs:
        if predicted[i] < predicted[j]:
            i, j = j, i
        ratio, truth = predicted[i] / predicted[j], measured[i] / measured[j]
        errors.append((ratio, abs(math.log(ratio / truth)), truth < 1))
    return errors


def random_pairs(points, count, seed):
    draw = random.Random(seed)
    return [tuple(draw.sample(range(points), 2)) for _ in range(count)] if points > 1 else []


def pair_errors(predicted, measured, count, seed):
    """errors_of_pairs() of random pairs."""
    return errors_of_pairs(predicted, measured, random_pairs(len(predicted), count, seed))


def by_ratio(errors):
    """The errors of pairs, grouped by RATIO_BINS: a list of (low, high, errors)."""
    bins = [[] for _ in RATIO_BINS]
    for each in errors:
        bins[bisect.bisect_right(RATIO_BINS, each[0]) - 1].append(each)
    return list(zip(RATIO_BINS, (*RATIO_BINS[1:], math.inf), bins))
