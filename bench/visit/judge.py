"""Whether what a command printed is a result: measured, complete, and of kernels that are right."""
import re

import files


class Simulated(Exception):
    """A result that was not measured; the visit ends."""


def _origins(document):
    """Every place where a document says what the run as a whole is."""
    yield document.get("origin")
    for part in ("device", "gpu"):
        if isinstance(document.get(part), dict):
            yield document[part].get("origin")
            if document[part].get("simulated") is True:
                yield "simulated"


def refuse_simulated(document, task):
    if isinstance(document, dict) and "simulated" in _origins(document):
        raise Simulated(f"{task.id}: the result says that it is simulated; a visit keeps nothing but measurements")


_LINE = 400  # characters of a line that are told


def last_words(stderr):
    """The last two lines that say why a program failed; warnings and notes only where it said nothing else."""
    said = [" ".join(line.split()) for line in stderr.splitlines() if line.strip()]
    meant = [line for line in said if not re.match(r"(\S+: )?(warning|note)\b", line)]
    return "; ".join(line[:_LINE] for line in (meant or said)[-2:])


def _reasons(document):
    """What a result of tune says of variants that are not there."""
    for each in document.get("variants") or []:
        if isinstance(each, dict):
            yield each.get("rejected_because") or (each.get("verification") or {}).get("failure")


def why_nothing_passed(document, stderr):
    """Of a result of tune without a kernel that passed: what most candidates were rejected for, and a reason; or ""."""
    if not isinstance(document, dict) or document.get("best_variant") or not isinstance(document.get("rejected"), dict):
        return ""
    counts = {stage: count for stage, count in document["rejected"].items() if isinstance(count, int) and count > 0}
    # Points that break a constraint are most of every space; they say something only where there is nothing else.
    counts = {stage: count for stage, count in counts.items() if stage != "constraint"} or counts
    most = max(counts, key=counts.get, default="")
    told = re.search(r"^\S+: nothing was verified: (.+)$", stderr, re.MULTILINE)
    reasons = [told[1]] if told else [each for each in _reasons(document) if isinstance(each, str) and each]
    reason = max(reasons, key=reasons.count, default="")[:_LINE]
    parts = [f"{counts[most]} candidates rejected: {most}" if most else "", reason]
    return "; ".join(part for part in parts if part)


def nothing_timed(document):
    """A tuning space without a time is none."""
    gpu = document.get("gpu") if isinstance(document, dict) else None
    return "no candidate was timed, so no tuning space is kept" if isinstance(gpu, dict) and gpu.get("timed") == 0 else ""


def _tune(document, task):
    device = document.get("device")
    if not isinstance(device, dict) or device.get("origin") != "measured":
        return "the result does not say that it was measured"
    if not document.get("best_variant"):
        return "no variant was verified and timed"
    if document.get("interrupted") is True:
        return "the run was interrupted"
    return ""


# Rejections that say a kernel is wrong, rather than that it does not fit.
_WRONG = ("verify", "gpu fault", "gpu timeout", "gpu")


def _check(document, task):
    fault = _tune(document, task)
    if fault:
        return fault
    found = {each.get("name"): each for each in document.get("variants", []) if isinstance(each, dict)}
    faults = []
    for name in task.wants:
        if name not in found or not found[name].get("available"):
            faults.append(f"{name} could not be made: {found.get(name, {}).get('rejected_because', 'it is not in the result')}")
    for name, each in found.items():
        if not each.get("available"):
            continue
        verification = each.get("verification") or {}
        error = verification.get("error_over_tolerance")
        if not each.get("verified"):
            faults.append(f"{name} is wrong: {verification.get('failure', 'not verified')}")
        elif not isinstance(error, (int, float)) or not error <= 1 or not verification.get("rows_checked"):
            faults.append(f"{name}: nothing shows that it was verified (error over tolerance {error})")
    for stage, count in (document.get("rejected") or {}).items():
        if stage in _WRONG and count:
            faults.append(f"{count} candidates rejected: {stage}")
    return "; ".join(faults)


def _ceilings(document, task):
    found = document.get("ceilings")
    if not isinstance(found, list) or not any(isinstance(each, dict) and each.get("origin") == "measured" for each in found):
        return "the result holds no measured ceiling"
    if document.get("interrupted") is True or document.get("lost"):
        return f"the run did not end: {document.get('lost') or 'interrupted'}"
    return ""


def _json(document, task):
    return ""


JUDGES = {"tune": _tune, "check": _check, "ceilings": _ceilings, "json": _json}


def _other_gpu(document, uuid):
    """The GPU that a result says it was measured on, when it is not this one; "" where it does not say."""
    for part in ("gpu", "provenance"):
        said = document.get(part)
        if isinstance(said, dict) and isinstance(said.get("uuid"), str) and said["uuid"]:
            if said["uuid"].lower().removeprefix("gpu-") != uuid.lower().removeprefix("gpu-"):
                return said["uuid"]
    return ""


def judge(outcome, task, uuid):
    """(document or None, what is wrong with it or ""). Raises Simulated."""
    document, fault = None, ""
    if outcome.stdout.strip():
        try:
            document = files.parse_json(outcome.stdout)
        except files.Bad as error:
            fault = str(error)
    elif outcome.exit_code == 0:
        fault = "it printed nothing"
    if isinstance(document, list) and document and all(isinstance(each, dict) for each in document):
        for each in document:
            refuse_simulated(each, task)
        document = {"documents": document}
    elif document is not None and not isinstance(document, dict):
        document, fault = None, "not a JSON object"
    if document is not None:
        refuse_simulated(document, task)
    if outcome.exit_code != 0:
        fault = last_words(outcome.stderr) or fault or "it said nothing"
        fault = f"exit {outcome.exit_code}: {fault}" if outcome.exit_code is not None else fault
    elif document is not None:
        other = _other_gpu(document, uuid)
        fault = f"it was measured on another GPU, {other}" if other else JUDGES[task.judge](document, task)
    why = why_nothing_passed(document, "" if "nothing was verified: " in fault else outcome.stderr) if fault else ""
    return document, f"{fault}; {why}" if why else fault
