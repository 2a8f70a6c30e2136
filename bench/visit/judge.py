"""Whether what a command printed is a result: measured, complete, and of kernels that are right."""
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
        said = [line for line in outcome.stderr.splitlines() if line.strip()]
        fault = said[-1].strip() if said else fault or "it said nothing"
        fault = f"exit {outcome.exit_code}: {fault}" if outcome.exit_code is not None else fault
    elif document is not None:
        other = _other_gpu(document, uuid)
        fault = f"it was measured on another GPU, {other}" if other else JUDGES[task.judge](document, task)
    return document, fault
