"""Ask a served copy whatever its description allows, and whatever it does not: schemathesis, as installed from PyPI.

It is run on our own description, /openapi.json, and on one of the Open Inference Protocol V2 over REST, written here
from what the protocol publishes: its paths, its objects with the fields that they must have, and the statuses that it
names. An answer of 5xx fails, and so does one with a status, type or body that the description does not name.

    python compat/schemas.py [--folder DIR] [--examples N] [--json]

One check of schemathesis is left out, that all that a description allows is accepted: how a tensor's shape, datatype
and data belong together cannot be said in JSON Schema.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from clients import copies, environment, served
from servers import surroundings

CLIENT = "schemathesis"
Json = dict[str, Any]


def protocol(name: str, version: str) -> Json:
    """The facts of V2 over REST, for one model and version."""
    text, whole, anything = {"type": "string"}, {"type": "integer"}, {"type": "object"}
    error = _answer(_object([], error=text))
    tensor = {"name": text, "shape": _list(whole), "datatype": text}
    data: Json = {"type": "array", "items": {"type": ["array", "number", "string", "boolean"]}}
    about = _object(list(tensor), **tensor)
    asked = _object([*tensor, "data"], **tensor, parameters=anything, data=data)
    wanted = _object(["name"], name=text, parameters=anything)
    request = _object(["inputs"], id=text, parameters=anything, inputs=_list(asked), outputs=_list(wanted))
    answer = _object(["model_name", "outputs"], model_name=text, model_version=text, id=text, outputs=_list(asked))
    server = _object(["name", "version", "extensions"], name=text, version=text, extensions=_list(text))
    model = _object(
        ["name", "platform"], name=text, versions=_list(text), platform=text, inputs=_list(about), outputs=_list(about)
    )
    paths: Json = {
        "/v2/health/live": {"get": {"responses": {"200": {"description": "live"}}}},
        "/v2/health/ready": {"get": {"responses": {"200": {"description": "ready"}}}},
        "/v2/": {"get": {"responses": {"200": _answer(server), "400": error}}},
    }
    for start in (f"/v2/models/{name}", f"/v2/models/{name}/versions/{version}"):
        paths[start] = {"get": {"responses": {"200": _answer(model)}}}
        paths[f"{start}/ready"] = {"get": {"responses": {"200": {"description": "ready"}}}}
        body = {"required": True, "content": {"application/json": {"schema": request}}}
        paths[f"{start}/infer"] = {"post": {"requestBody": body, "responses": {"200": _answer(answer), "400": error}}}
    return {"openapi": "3.1.0", "info": {"title": "V2", "version": "2"}, "paths": paths}


def _object(required: list[str], **properties: Json) -> Json:
    return {"type": "object", "properties": properties, "required": required}


def _list(items: Json) -> Json:
    return {"type": "array", "items": items}


def _answer(schema: Json) -> Json:
    return {"description": "an answer", "content": {"application/json": {"schema": schema}}}


def checked(python: Path, url: str, description: str, examples: int) -> Json:
    """Run schemathesis on a description; a row of the table."""
    program = str(python.parent / "schemathesis")
    options = ["--max-examples", str(examples), "--seed", "1", "--exclude-checks", "positive_data_acceptance"]
    command = [program, "--no-color", "run", description, "--url", url, *options]
    done = subprocess.run(command, capture_output=True, text=True, timeout=1800, env=surroundings(python))
    tested, cases = (re.search(pattern, done.stdout) for pattern in (r"Tested: (\d+)", r"(\d+) generated"))
    return {
        "operations": tested and int(tested[1]),
        "requests": cases and int(cases[1]),
        "outcome": "ok" if done.returncode == 0 else f"exit code {done.returncode}",
        "said": "" if done.returncode == 0 else (done.stdout + done.stderr)[-6000:],
    }


def main() -> int:
    """Check both descriptions; 0 only if both hold."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--folder", type=Path, help="keep the virtual environment here, and use the one that is here")
    parser.add_argument("--examples", type=int, default=100, help="examples for each operation")
    parser.add_argument("--json", action="store_true", help="print one JSON document instead of the table")
    options = parser.parse_args()
    with contextlib.ExitStack() as stack:
        room = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="ectype-schemas-")))
        python = environment(CLIENT, (options.folder or room).resolve(), [CLIENT])
        copies(room)
        rows = []
        for model in ("numbers", "people"):
            url = stack.enter_context(served(str(room / model)))["url"].partition("/v2")[0]
            facts = room / f"{model}.json"
            facts.write_text(json.dumps(protocol(model, "1")))
            for name, description in (("ours", f"{url}/openapi.json"), ("V2", str(facts))):
                found = checked(python, url, description, options.examples)
                rows.append({"description": name, "model": model, **found})
        version = subprocess.run([str(python.parent / CLIENT), "--version"], capture_output=True, text=True).stdout
    if options.json:
        print(json.dumps(rows))
    else:
        print(f"{'description':13}{'model':9}{'operations':12}{'requests':10}outcome")
        for row in rows:
            print("{description:13}{model:9}{operations!s:12}{requests!s:10}{outcome}".format(**row))
        print(f"\n{version.strip()}", *(row["said"] for row in rows if row["said"]), sep="\n")
    return 0 if all(row["outcome"] == "ok" for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
