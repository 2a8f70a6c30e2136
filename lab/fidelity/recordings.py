"""Recorded spaces with the predictions of a model, for `roofgen replay`: T4 1.0.0 with a measurement `predicted`."""
import gzip
import json


def t4(space, rows, model):
    """A document of the points drawn. A point that the model could not time has the slowest prediction: a search by the
    predictions comes to it last."""
    slowest = max(row.predicted_us(model) for row in rows if row.profile)
    results = []
    for row in rows:
        predicted = row.predicted_us(model) if row.profile else slowest
        results.append({"configuration": row.point.config, "objectives": ["time"], "invalidity": "correct",
                        "correctness": 1,
                        "measurements": [{"name": "time", "value": row.point.time_us, "unit": "us"},
                                         {"name": "predicted", "value": predicted, "unit": "us"}]})
    versions = {row.profile["model_version"] for row in rows if row.profile}
    metadata = {"timeunit": "microseconds", "device": space.device, "kernel": space.recipe, "model": model,
                "model_version": ", ".join(sorted(versions))}
    return {"schema_version": "1.0.0", "metadata": metadata, "results": results}


def write(path, document):
    """Equal documents give equal bytes."""
    path.write_bytes(gzip.compress(json.dumps(document, indent=1).encode(), mtime=0))
