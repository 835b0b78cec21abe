"""Copy a model that sits behind an HTTP endpoint, and know before what it will cost.

    python endpoint.py [--budget 1500]

The endpoint is started here, on a free port: it takes {"rows": [{...}, ...]} and answers {"decisions": ["yes", ...]},
if the key is right. Nothing of the model is used but that.
"""

from __future__ import annotations

import argparse
import json
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from tempfile import TemporaryDirectory

import pandas as pd
from loans import LABEL, fitted, table

import ectype as ec

KEY = "for-this-example"
# What a request looks like, and where its answer has the labels.
TEMPLATE = {"request": {"rows": "$rows"}, "rows": "objects", "answer": "decisions"}


@contextmanager
def endpoint(model: object) -> Iterator[tuple[str, list[int]]]:
    """A vendor: its address, and the number of rows of each request so far."""
    asked: list[int] = []

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            if self.headers["X-Api-Key"] != KEY:
                self.send_error(403)
                return
            asked.append(len(body["rows"]))
            answer = json.dumps({"decisions": model.predict(pd.DataFrame(body["rows"])).tolist()}).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/decide", asked
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def main(budget: int) -> None:
    """Copy the endpoint, and say what was asked."""
    os.environ["VENDOR_KEY"] = KEY  # secrets are read from the environment, and written nowhere
    past = table(2000)
    space = ec.Space.from_data(past.drop(columns=LABEL), ordered={"grade": ["D", "C", "B", "A"]})
    with endpoint(fitted(past)) as (url, asked), TemporaryDirectory() as folder:
        template = Path(folder, "template.json")
        template.write_text(json.dumps(TEMPLATE))
        original = ec.open_original(
            url,
            protocol="template",
            template=template,
            header=["X-Api-Key: env:VENDOR_KEY"],
            request_rows=100,
            rate=100,
        )
        result = ec.copy_classifier(original, space, budget=budget, certificate_n=1000, out=Path(folder, "copy"))
        proof = result.certificate
        print(f"{sum(asked)} rows in {len(asked)} requests reached the endpoint")
        print(
            f"the copy agrees on {proof.estimate:.3f} of fresh rows, on at least {proof.lower:.3f} with 95 % confidence"
        )
        for advice in result.advice:
            print(f"advice: {advice.text}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Copy a model behind an endpoint.")
    parser.add_argument("--budget", type=int, default=1500)
    main(parser.parse_args().budget)
