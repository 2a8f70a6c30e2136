"""Decides whether the output of a command is a result: measured, complete, of this GPU, and of correct kernels."""
import re
import statistics

import files

LINE = 400  # characters kept of a quoted line


def says_simulated(document):
    parts = (document, document.get("device"), document.get("gpu"))
    return any(isinstance(part, dict) and (part.get("origin") == "simulated" or part.get("simulated") is True)
               for part in parts)


def last_words(stderr):
    """The last two lines of stderr that are not warnings or notes; any two if there are no others."""
    lines = [" ".join(line.split()) for line in stderr.splitlines() if line.strip()]
    errors = [line for line in lines if not re.match(r"(\S+: )?(warning|note)\b", line)]
    return "; ".join(line[:LINE] for line in (errors or lines)[-2:])


def why_nothing_passed(document, stderr):
    """For a tune result without a verified kernel the most frequent kind of rejection and the most frequent reason."""
    if document.get("best_variant") or "rejected" not in document:
        return ""
    counts = {stage: count for stage, count in document["rejected"].items() if count}
    # Most points of every space violate a constraint: that explains a failure only without other rejections.
    counts = {stage: count for stage, count in counts.items() if stage != "constraint"} or counts
    most = max(counts, key=counts.get, default="")
    reasons = [each.get("rejected_because") or (each.get("verification") or {}).get("failure")
               for each in document.get("variants", [])]
    said = re.findall(r"^\S+: nothing was verified: (.+)$", stderr, re.MULTILINE)
    reasons = said[:1] or [each for each in reasons if each]
    parts = [f"{counts[most]} candidates rejected: {most}"] if most else []
    return "; ".join(parts + [statistics.mode(reasons)[:LINE]] if reasons else parts)


def nothing_timed(document):
    """A tuning space without any time is not kept."""
    timed = ((document or {}).get("gpu") or {}).get("timed")
    return "no candidate was timed, so no tuning space is kept" if timed == 0 else ""


def _tune(document, task):
    if document["device"].get("origin") != "measured":
        return "the result does not say that it was measured"
    if not document["best_variant"]:
        return "no variant was verified and timed"
    return "the run was interrupted" if document.get("interrupted") else ""


def _check(document, task):
    fault = _tune(document, task)
    if fault:
        return fault
    found, faults = {each["name"]: each for each in document["variants"]}, []
    for name in [name for name in task.wants if not found.get(name, {}).get("available")]:
        reason = found.get(name, {}).get("rejected_because", "it is not in the result")
        faults.append(f"{name} could not be made: {reason}")
    for name, each in found.items():
        verification = each.get("verification") or {}
        error = verification.get("error_over_tolerance")
        if each["available"] and not (each["verified"] or each.get("partly_verified")):
            faults.append(f"{name} is wrong: {verification.get('failure', 'not verified')}")
        elif each["available"] and (error is None or not error <= 1 or not verification["rows_checked"]):
            faults.append(f"{name}: nothing shows that it was verified (error over tolerance {error})")
    for stage in ("verify", "gpu fault", "gpu timeout", "gpu"):  # a wrong kernel; other stages: one that does not fit
        if document["rejected"].get(stage):
            faults.append(f"{document['rejected'][stage]} candidates rejected: {stage}")
    return "; ".join(faults)


def _ceilings(document, task):
    if not any(each.get("origin") == "measured" for each in document.get("ceilings", [])):
        return "the result holds no measured ceiling"
    if document.get("interrupted") or document.get("lost"):
        return f"the run did not end: {document.get('lost') or 'interrupted'}"
    return ""


JUDGES = {"tune": _tune, "check": _check, "ceilings": _ceilings, "json": lambda document, task: ""}


def _other_gpu(document, uuid):
    """The fault that the result names another GPU than this one, or ""."""
    for part in ("gpu", "provenance"):
        said = (document.get(part) or {}).get("uuid")
        if said and said.lower().removeprefix("gpu-") != uuid.lower().removeprefix("gpu-"):
            return f"it was measured on another GPU, {said}"
    return ""


def judge(outcome, task, uuid):
    """(document or None, its fault or ""). Raises Bad for a simulated one, which ends the visit: the driver is none.
    A command that ended before it timed anything has only simulated results too; these are dropped."""
    try:
        document, fault = files.parse_json(outcome.stdout), ""
    except files.Bad as error:
        document, fault = None, str(error) if outcome.stdout.strip() else "it printed nothing"
    if isinstance(document, list):
        document = {"documents": document}
    elif document is not None and not isinstance(document, dict):
        document, fault = None, "not a JSON object"
    try:
        for each in (document or {}).get("documents", [document] if document else []):
            if not says_simulated(each):
                continue
            if outcome.exit_code == 0 and not outcome.cut and (each.get("gpu") or {}).get("timed") != 0:
                raise files.Bad(f"{task.id}: the result says that it is simulated; a visit keeps only measurements",
                                files.UNAVAILABLE)
            document, fault = None, "nothing was timed"
        if outcome.exit_code is None:
            fault = last_words(outcome.stderr)
        elif outcome.exit_code:
            fault = f"exit {outcome.exit_code}: {last_words(outcome.stderr) or fault or 'it said nothing'}"
        elif document is not None:
            fault = _other_gpu(document, uuid) or JUDGES[task.judge](document, task)
        if fault and document is not None:
            why = why_nothing_passed(document, "" if "nothing was verified: " in fault else outcome.stderr)
            fault += f"; {why}" if why else ""
    except (AttributeError, KeyError, TypeError) as error:
        fault = f"the result is not of the expected form: {error!r}"
    return document, fault
