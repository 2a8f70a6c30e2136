"""The forms of the documents of visits, and their check."""


class Wrong(Exception):
    """A document is not of its form."""


# A form is a type, {member: form} ("...": others too), [form of the items], or (values or forms).
NUMBER = (int, float)
GPU = {"name": str, "uuid": str, "cuda": str, "driver": str, "ordinal": int, "...": object}
VERSIONS = {**dict.fromkeys(("roofgen", "roofgen_sha256", "nvrtc", "torch", "triton", "ncu"), str), "...": object}
DONE = {"task": str, "status": str, "seconds": NUMBER}
SCHEMAS = {
    "roofgen.visit-result.1": {
        **dict.fromkeys(("schema", "step", "task", "message", "command_digest", "started", "ended"), str),
        "status": ("ok", "failed", "cut"), "about": dict, "command": [str], "first_command": [str], "seconds": NUMBER,
        "limit_s": NUMBER, "exit_code": (int, None), "leftover_processes": int, "gpu": GPU, "versions": VERSIONS,
        "state_before": dict, "state_after": dict, "attachments": [str], "result": (dict, None)},
    "roofgen.visit.1": {
        "schema": str, "gpu": GPU, "versions": dict, "host": dict, "doctor": (dict, None), "tasks": dict,
        "visits": [{"started": str, "ended": str, "budget_s": NUMBER, "done": [DONE],
                    "stopped": ("running", "done", "interrupted", "refused")}]},
    "roofgen.probe.1": {
        "schema": str, "device": {"name": str, "...": NUMBER}, "...": (str, dict)},
}


def check(value, form, where="document"):
    """Raises Wrong where the value is not of the form."""
    if isinstance(form, dict) and isinstance(value, dict):
        for name in [each for each in form if each != "..." and each not in value]:
            raise Wrong(f"{where}: {name} is missing")
        for name, part in value.items():
            if name not in form and "..." not in form:
                raise Wrong(f"{where}: {name} is unknown")
            check(part, form.get(name, form.get("...")), f"{where}.{name}")
    elif isinstance(form, list) and isinstance(value, list):
        for index, part in enumerate(value):
            check(part, form[0], f"{where}[{index}]")
    else:
        choices = form if isinstance(form, tuple) else (form,)
        if not any(isinstance(value, each) if isinstance(each, type) else value == each for each in choices):
            raise Wrong(f"{where}: {value!r} is not of the form {form}")
