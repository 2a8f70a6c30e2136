"""From rows of predictions to the figures of one space: a dictionary of plain numbers, which --json writes."""
import itertools
import math
from statistics import median

import spaces
import stats

# The columns of the tables, best model first; models that are not named here come last.
MODEL_ORDER = ("event", "interval", "closed_form", "roofline")
PICKS = (1, 5, 10, 25)
# Shares of the optimum that a search looks for, and the model whose order and whose learnt error it uses.
SHARES = (0.95, 0.99)
GUIDE = "event"

# NVIDIA's counter -> (our count, factor from the count to the counter). A sector has 32 bytes. The FP32 counter counts
# instructions of threads: a fused multiply-add is one, where `fp32_ops` may count two operations.
COUNTERS = {
    "smsp__inst_executed.sum": ("warp_instructions", 1),
    "smsp__sass_thread_inst_executed_op_fp32_pred_on.sum": ("fp32_thread_instructions", 1),
    "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum": ("shared_load_wavefronts", 1),
    "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st.sum": ("shared_store_wavefronts", 1),
    "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum": ("global_load_requests", 1),
    "l1tex__t_sectors_pipe_lsu_mem_local_op_ld.sum": ("local_load_sectors", 1),
    "l1tex__t_sectors_pipe_lsu_mem_local_op_st.sum": ("local_store_sectors", 1),
    "lts__t_sectors_op_read.sum": ("l2_read_sectors", 1),
    "lts__t_sectors_op_write.sum": ("l2_write_sectors", 1),
    "dram__sectors_read.sum": ("dram_read_bytes", 1 / 32),
    "dram__sectors_write.sum": ("dram_write_bytes", 1 / 32),
    "thread instructions": ("thread_instructions", 1),
}


def model_rank(name):
    return (MODEL_ORDER.index(name) if name in MODEL_ORDER else len(MODEL_ORDER), name)


def models_of(rows):
    """The models that every row has."""
    return sorted(set.intersection(*(set(row.profile["models"]) for row in rows)), key=model_rank)


def model_figures(predicted, measured):
    scale = stats.scale_of(predicted, measured)
    scaled, raw = stats.log_errors(predicted, measured, scale), stats.log_errors(predicted, measured)
    return {"rho": stats.spearman(predicted, measured), "tau": stats.kendall(predicted, measured), "scale": scale,
            "mape": stats.mape(predicted, measured, scale), "mape_raw": stats.mape(predicted, measured),
            "band_68": stats.quantile(scaled, 0.68), "band_90": stats.quantile(scaled, 0.90),
            "band_90_raw": stats.quantile(raw, 0.90),
            **{f"regret_{count}": stats.regret(predicted, measured, count) for count in PICKS},
            **{f"fraction_{count}": stats.fraction_of_optimum(predicted, measured, count) for count in PICKS}}


def evaluations(predicted, measured, configurations):
    """Points measured until one has a share of the optimum: in the order of the model, in the order of a search that
    learns the model's error, and at random (the mean)."""
    orders = {"model": stats.model_order(predicted),
              "learnt": stats.learnt_order(predicted, measured, configurations, len(predicted))}
    return [{"share": share, **{name: stats.evaluations_to(order, measured, share) for name, order in orders.items()},
             "random": stats.random_evaluations_to(measured, share)} for share in SHARES]


def pair_errors(rows, count, seed):
    """model -> errors of the ratio of two predictions, for random pairs of points."""
    good = [row for row in rows if row.profile]
    measured = [row.point.time_us for row in good]
    return {model: stats.pair_errors([row.predicted_us(model) for row in good], measured, count, seed)
            for model in (models_of(good) if good else [])}


def neighbour_errors(rows):
    """model -> errors of the ratio of two predictions, for all pairs of points that differ in one parameter: most of
    what both kernels do is the same."""
    good = [row for row in rows if row.profile]
    groups = {}
    for index, row in enumerate(good):
        for name in row.point.config:
            groups.setdefault((name, spaces.without(row.point.config, name)), []).append(index)
    pairs = sorted({pair for group in groups.values() for pair in itertools.combinations(group, 2)})
    measured = [row.point.time_us for row in good]
    return {model: stats.errors_of_pairs([row.predicted_us(model) for row in good], measured, pairs)
            for model in (models_of(good) if good and pairs else [])}


def difference_figures(errors):
    """The errors by the predicted ratio; the last group is all."""
    groups = [*stats.by_ratio(errors), (1.0, math.inf, errors)]
    return [{"low": low, "high": high if math.isfinite(high) else None, "pairs": len(group),
             "band_68": stats.quantile([each[1] for each in group], 0.68),
             "band_90": stats.quantile([each[1] for each in group], 0.90),
             "wrong_order": sum(each[2] for each in group) / len(group)} for low, high, group in groups if group]


def pooled_differences(errors_of):
    """errors_of: a list of (space, errors by model). All spaces of a role and a kind are one pool."""
    pools = {}
    for space, errors in errors_of:
        for model, group in errors.items():
            pools.setdefault((space.role, space.kind, model), []).extend(group)
    return [{"role": role, "kind": kind, "model": model, "groups": difference_figures(pool)}
            for (role, kind, model), pool in pools.items()]


# Ratios of times that a tuner has to decide about: a larger predicted ratio decides itself.
CLOSE = 2.0


def single_errors(rows):
    """model -> errors of the single times, after the one scale that the space is allowed."""
    good = [row for row in rows if row.profile]
    measured = [row.point.time_us for row in good]
    errors = {}
    for model in (models_of(good) if len(good) > 1 else []):
        predicted = [row.predicted_us(model) for row in good]
        errors[model] = stats.log_errors(predicted, measured, stats.scale_of(predicted, measured))
    return errors


def bands(rows_of, errors_of):
    """How far 90 % of single times, and of ratios of two close times, are off: as factors, by kind of kernel and model.
    All spaces of a kind, then those of one role. rows_of: a list of (space, rows). errors_of: a list of (space, errors
    of pairs by model)."""
    pools = {}
    for (space, rows), (_, pairs) in zip(rows_of, errors_of):
        for model, singles in single_errors(rows).items():
            close = [error for ratio, error, _ in pairs[model] if ratio < CLOSE]
            for role in ("all", space.role):
                pool = pools.setdefault((space.kind, role, model), ([], [], []))
                pool[0].append(space.name)
                pool[1].extend(singles)
                pool[2].extend(close)
    return [{"kind": kind, "role": role, "model": model, "spaces": len(names), "points": len(singles),
             "single_90": math.exp(stats.quantile(singles, 0.90)), "pairs": len(close),
             "pair_90": math.exp(stats.quantile(close, 0.90))}
            for (kind, role, model), (names, singles, close) in pools.items()]


def counter_value(point, name):
    """A counter of the hardware; thread instructions are a product of two."""
    if name == "thread instructions":
        names = ("smsp__inst_executed.sum", "smsp__thread_inst_executed_per_inst_executed.ratio")
        return point.counters[names[0]] * point.counters[names[1]] if all(n in point.counters for n in names) else None
    return point.counters.get(name)


def counter_figures(rows):
    """The relative difference of each count: median and 90 %. Where the hardware counted nothing, any count is an error
    of the whole, and none is right."""
    figures = {}
    for name, (count, factor) in COUNTERS.items():
        errors = []
        for row in rows:
            truth, ours = counter_value(row.point, name), row.profile.get("counts", {}).get(count)
            if truth is None or ours is None:
                continue
            errors.append(abs(factor * ours - truth) / truth if truth else float(ours != 0))
        if errors:
            figures[name] = {"count": count, "points": len(errors), "median": median(errors),
                             "q90": stats.quantile(errors, 0.90), "worst": max(errors)}
    return figures


def compiled_figures(rows):
    """How many points have the recorded registers and static shared memory."""
    figures = {}
    for recorded, ours in (("registers", "registers"), ("shared_bytes", "static_smem_bytes")):
        pairs = [(row.point.compiled[recorded], row.profile[ours]) for row in rows
                 if recorded in row.point.compiled and ours in row.profile]
        if pairs:
            figures[recorded] = {"points": len(pairs), "equal": sum(a == b for a, b in pairs)}
    return figures


def goal_figures(kind, figures):
    """Each goal of the kind: the limit, the figure, and whether it is met."""
    at_least = ("rho", "tau")
    return {name: {"limit": limit, "value": figures[name],
                   "met": figures[name] >= limit if name in at_least else figures[name] <= limit}
            for name, limit in spaces.GOALS[kind].items()}


def space_figures(space, rows, valid, recorded, compiler):
    """rows: of the points drawn; valid: all points that may be drawn; recorded: the number of measured points."""
    good = [row for row in rows if row.profile]
    measured = [row.point.time_us for row in good]
    times = sorted(point.time_us for point in valid)
    result = {"space": space.name, "role": space.role, "kind": space.kind, "device": space.device, "note": space.note,
              "compiler": compiler, "recorded": recorded, "valid": len(valid), "drawn": len(rows),
              "failed": len(rows) - len(good), "best_us": times[0], "median_us": median(times), "worst_us": times[-1]}
    if len(good) < 2:
        return {**result, "models": {}}
    predicted = {model: [row.predicted_us(model) for row in good] for model in models_of(good)}
    result["drawn_best_us"] = min(measured)
    result["models"] = {model: model_figures(values, measured) for model, values in predicted.items()}
    result["random"] = {f"fraction_{count}": stats.random_fraction(measured, count) for count in PICKS}
    if GUIDE in predicted:
        result["evaluations"] = evaluations(predicted[GUIDE], measured, [row.point.config for row in good])
    result["goals"] = {model: goal_figures(space.kind, figures) for model, figures in result["models"].items()}
    result["counters"], result["compiled"] = counter_figures(good), compiled_figures(good)
    return result
