"""How clients that others wrote ask a served copy; run by clients.py where such a client is installed.

    python asking.py CLIENT EXPECTED.json

Each case gives labels, which are compared with the copy's own. What is printed is one JSON document: the client's
version, and for each case "ok" or what went wrong.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

About = dict[str, Any]
"""What clients.py says: addresses, names of models, rows, and the labels and scores that are expected."""
Cases = dict[str, Callable[[About], Any]]


def words(values: Any) -> list[Any]:
    """Labels as a list of strings, whatever a client makes of them."""
    return [value.decode() if isinstance(value, bytes) else str(value) for value in values]


def matrix(about: About) -> Any:
    """The rows of the copy of arrays."""
    import numpy as np

    return np.array(about["array"]["rows"])


def frame_arrays(about: About) -> dict[str, tuple[str, Any]]:
    """The columns of the data frame: a datatype and an array each."""
    import numpy as np

    types = {"FP64": np.float64, "INT64": np.int64, "BOOL": np.bool_, "BYTES": np.object_}
    columns = about["frame"]["columns"]
    return {k: (c["datatype"], np.array(c["values"], types[c["datatype"]]).reshape(-1, 1)) for k, c in columns.items()}


# --- tritonclient -----------------------------------------------------------------------------------------------------


def triton(kind: str) -> Cases:
    """The cases of one of its four clients: http, http.aio, grpc or grpc.aio."""
    from importlib import import_module

    module = import_module(f"tritonclient.{kind}")
    http = kind.startswith("http")

    def inputs(about: About, model: str, **how: bool) -> list[Any]:
        columns = {"inputs": ("FP64", matrix(about))} if model == "array" else frame_arrays(about)
        made = []
        for name, (datatype, values) in columns.items():
            made.append(module.InferInput(name, values.shape, datatype))
            made[-1].set_data_from_numpy(values, **how)
        return made

    async def answered(about: About, work: Callable[[Any], Any]) -> Any:
        client = module.InferenceServerClient(about["http" if http else "grpc"].partition("://")[2])
        try:
            found = work(client)
            return await found if kind.endswith("aio") else found
        finally:
            closed = client.close()
            if kind.endswith("aio"):
                await closed

    def asked(model: str, how: dict[str, bool], **options: Any) -> Callable[[About], Any]:
        def ask(about: About) -> Any:
            name = about[model]["name"]
            tensors = inputs(about, model, **how)
            result = asyncio.run(answered(about, lambda client: client.infer(name, tensors, **options)))
            return model, words(result.as_numpy("predict"))

        return ask

    def healthy(about: About) -> Any:
        for method in ("is_server_live", "is_server_ready"):
            assert asyncio.run(answered(about, lambda client, method=method: getattr(client, method)()))
        name = about["array"]["name"]
        assert asyncio.run(answered(about, lambda client: client.is_model_ready(name)))
        assert asyncio.run(answered(about, lambda client: client.get_server_metadata()))
        assert asyncio.run(answered(about, lambda client: client.get_model_metadata(name)))

    def scores(about: About) -> Any:
        wanted = [module.InferRequestedOutput("predict"), module.InferRequestedOutput("predict_proba")]
        work = lambda client: client.infer(about["array"]["name"], inputs(about, "array"), outputs=wanted)  # noqa: E731
        result = asyncio.run(answered(about, work))
        assert result.as_numpy("predict_proba").tolist() == about["array"]["scores"]
        return "array", words(result.as_numpy("predict"))

    cases: Cases = {"health, metadata": healthy, "defaults": asked("array", {}), "both outputs": scores}
    cases["columns of a frame"] = asked("frame", {})
    if http:
        wanted = [module.InferRequestedOutput("predict", binary_data=False)]
        cases["JSON"] = asked("array", {"binary_data": False}, outputs=wanted)
        cases["JSON in, binary out"] = asked("frame", {"binary_data": False})
        for how in ("gzip", "deflate"):
            packed = {"request_compression_algorithm": how, "response_compression_algorithm": how}
            cases[how] = asked("array", {}, **packed)
    else:
        cases["gzip"] = asked("array", {}, compression_algorithm="gzip")
    return {f"{kind}: {name}": case for name, case in cases.items()}


def all_triton() -> Cases:
    """The cases of tritonclient."""
    return {name: case for kind in ("http", "http.aio", "grpc", "grpc.aio") for name, case in triton(kind).items()}


# --- KServe -----------------------------------------------------------------------------------------------------------


def kserve() -> Cases:
    """The cases of KServe's clients."""

    from kserve import InferenceGRPCClient, InferenceRESTClient, InferInput, InferRequest, RESTConfig
    from kserve.protocol.infer_type import RequestedOutput

    def request(about: About, binary: bool, **options: Any) -> Any:
        rows = matrix(about)
        tensor = InferInput("inputs", list(rows.shape), "FP64")
        tensor.set_data_from_numpy(rows, binary_data=binary)
        return InferRequest(about["array"]["name"], [tensor], request_id="k", **options)

    def rest(protocol: str, work: Callable[[Any, About], Any]) -> Callable[[About], Any]:
        async def ask(about: About) -> Any:
            async with InferenceRESTClient(RESTConfig(protocol=protocol)) as client:
                return await work(client, about)

        return lambda about: asyncio.run(ask(about))

    async def v1(client: Any, about: About) -> Any:
        assert await client.is_server_live(about["http"])
        assert await client.is_model_ready(about["http"], about["array"]["name"])
        rows = {"instances": about["array"]["rows"]}
        found = await client.infer(about["http"], rows, about["array"]["name"])
        return "array", words(found["predictions"])

    def v2(binary: bool, **options: Any) -> Callable[[Any, About], Any]:
        async def ask(client: Any, about: About) -> Any:
            name = about["array"]["name"]
            assert await client.is_server_live(about["http"])
            assert await client.is_server_ready(about["http"])
            assert await client.is_model_ready(about["http"], name)
            found = await client.infer(about["http"], request(about, binary, **options), name)
            return "array", words(found.outputs[0].as_numpy())

        return ask

    async def grpc(about: About) -> Any:
        client = InferenceGRPCClient(about["grpc"].partition("://")[2])
        assert await client.is_server_live()
        assert await client.is_server_ready()
        assert await client.is_model_ready(about["array"]["name"])
        found = await client.infer(request(about, True))
        await client.close()
        return "array", words(found.outputs[0].as_numpy())

    wanted = [RequestedOutput("predict", {"binary_data": True})]
    return {
        "REST V1": rest("v1", v1),
        "REST V2, JSON": rest("v2", v2(False)),
        "REST V2, binary": rest("v2", v2(True)),
        "REST V2, binary both ways": rest("v2", v2(True, request_outputs=wanted)),
        "gRPC": lambda about: asyncio.run(grpc(about)),
    }


# --- MLServer ---------------------------------------------------------------------------------------------------------


def mlserver() -> Cases:
    """The cases of MLServer's command and codec."""

    def infer(*options: str) -> Callable[[About], Any]:
        def ask(about: About) -> Any:
            program = str(Path(sys.executable).parent / "mlserver")
            rows = about["array"]["rows"]
            lines = [{"inputs": [{"name": "inputs", "shape": [1, 4], "datatype": "FP64", "data": row}]} for row in rows]
            with tempfile.TemporaryDirectory() as folder:
                source, target = Path(folder) / "in.txt", Path(folder) / "out.txt"
                source.write_text("".join(json.dumps(line) + "\n" for line in lines))
                files = ["-i", str(source), "-o", str(target)]
                where = ["-u", about["http"].partition("://")[2], "-m", about["array"]["name"]]
                subprocess.run(
                    [program, "infer", *where, *files, *options], check=True, capture_output=True, timeout=120
                )
                answers = [json.loads(line) for line in target.read_text().splitlines()]
            answers.sort(key=lambda answer: answer["parameters"]["batch_index"])
            return "array", words(answer["outputs"][0]["data"][0] for answer in answers)

        return ask

    def pandas(about: About) -> Any:
        import httpx
        import pandas as pd
        from mlserver.codecs import PandasCodec, StringCodec
        from mlserver.types import InferenceResponse

        columns = about["frame"]["columns"]
        frame = pd.DataFrame({name: column["values"] for name, column in columns.items()})
        body = PandasCodec.encode_request(frame).model_dump_json()
        answer = httpx.post(f"{about['http_frame']}/v2/models/{about['frame']['name']}/infer", content=body)
        answer.raise_for_status()
        return "frame", StringCodec.decode_output(InferenceResponse.model_validate(answer.json()).outputs[0])

    batched = ("-s", "10", "-w", "3")
    return {"infer": infer(), "infer, batches": infer(*batched), "infer, binary": infer("-b"), "codec": pandas}


# --- the protocol's own -----------------------------------------------------------------------------------------------


def open_inference() -> Cases:
    """The cases of the protocol's own clients."""

    def rest(about: About) -> Any:
        from open_inference.openapi.client import OpenInferenceClient
        from open_inference.openapi.types import InferenceRequest, RequestInput, TensorData

        client, name = OpenInferenceClient(base_url=about["http"]), about["array"]["name"]
        client.check_server_liveness()
        client.check_server_readiness()
        client.check_model_readiness(name)
        client.check_model_version_readiness(name, "1")
        assert client.read_model_metadata(name).name == name
        assert client.read_server_metadata().name == "ectype"
        rows = about["array"]["rows"]
        data = TensorData(__root__=[value for row in rows for value in row])
        tensor = RequestInput(name="inputs", shape=[len(rows), 4], datatype="FP64", data=data)
        found = client.model_infer(name, request=InferenceRequest(inputs=[tensor]))
        return "array", words(found.outputs[0].data.__root__)

    def grpc(about: About) -> Any:
        import grpc as library
        from open_inference.grpc import protocol
        from open_inference.grpc.service import GRPCInferenceServiceStub

        rows, name = about["array"]["rows"], about["array"]["name"]
        with library.insecure_channel(about["grpc"].partition("://")[2]) as channel:
            stub = GRPCInferenceServiceStub(channel)
            assert stub.ServerLive(protocol.ServerLiveRequest()).live
            assert stub.ModelReady(protocol.ModelReadyRequest(name=name)).ready
            assert stub.ModelMetadata(protocol.ModelMetadataRequest(name=name)).name == name
            contents = {"fp64_contents": [value for row in rows for value in row]}
            tensor = {"name": "inputs", "shape": [len(rows), 4], "datatype": "FP64", "contents": contents}
            found = stub.ModelInfer(protocol.ModelInferRequest(model_name=name, inputs=[tensor]))
        return "array", words(found.outputs[0].contents.bytes_contents)

    return {"REST": rest, "gRPC": grpc}


# --- curl -------------------------------------------------------------------------------------------------------------


def curl() -> Cases:
    """The cases of curl."""

    def asked(
        path: str, *options: str, body: Callable[[About], str] | None = None, **base: str
    ) -> Callable[[About], Any]:
        def ask(about: About) -> Any:
            text = json.dumps(about["array"]["rows"]) if body is None else body(about)
            url = about[base.get("base", "http")] + path.replace("NAME", about["array"]["name"])
            command = ["curl", "-sS", "--fail-with-body", *(part.format(**about) for part in options), url]
            done = subprocess.run(command, input=text.encode(), capture_output=True, timeout=60)
            assert done.returncode == 0, (done.stdout + done.stderr).decode()
            content = json.loads(done.stdout)
            return "array", words(content["predictions"] if "predictions" in content else content["outputs"][0]["data"])

        return ask

    def v2(about: About) -> str:
        rows = about["array"]["rows"]
        return json.dumps({"inputs": [{"name": "x", "shape": [len(rows), 4], "datatype": "FP64", "data": rows}]})

    def v1(about: About) -> str:
        return json.dumps({"instances": about["array"]["rows"]})

    def table(about: About) -> str:
        return "".join(",".join(map(repr, row)) + "\n" for row in about["array"]["rows"])

    infer, sent = "/v2/models/NAME/infer", "--data-binary"
    octets = ("-H", "Content-Type: application/octet-stream")
    secure = ("--cacert", "{certificate}", "-H", "Authorization: Bearer {token}")
    return {
        "V2, no headers": asked(infer, "-d", "@-", body=v2),
        "V2, no type": asked(infer, sent, "@-", "-H", "Content-Type:", body=v2),
        "V2, octet-stream": asked(infer, sent, "@-", *octets, body=v2),
        "V2, chunked": asked(infer, sent, "@-", "-H", "Transfer-Encoding: chunked", body=v2),
        "V2, HTTP/1.0": asked(infer, "--http1.0", sent, "@-", body=v2),
        "V2, --compressed": asked(infer, "--compressed", sent, "@-", body=v2),
        "V1, no headers": asked("/v1/models/NAME:predict", "-d", "@-", body=v1),
        "rows, no headers": asked("/predict", "-d", "@-"),
        "CSV": asked("/predict", sent, "@-", "-H", "Content-Type: text/csv", body=table),
        "CSV, no headers": asked("/predict", sent, "@-", body=table),
        "TLS and token": asked("/predict", "-d", "@-", *secure, base="https"),
    }


CLIENTS: dict[str, tuple[str | None, Callable[[], Cases]]] = {
    "tritonclient": ("tritonclient", all_triton),
    "kserve": ("kserve", kserve),
    "mlserver": ("mlserver", mlserver),
    "open-inference": ("open-inference-openapi", open_inference),
    "curl": (None, curl),
}


def outcome(case: Callable[[About], Any], about: About) -> str:
    """Ask, and compare."""
    try:
        found = case(about)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    if found is None:
        return "ok"
    model, labels = found
    return "ok" if words(labels) == about[model]["labels"] else f"other labels: {labels[:5]}"


def main() -> None:
    """Ask in every way, and print the outcomes."""
    client, path = sys.argv[1:]
    about = json.loads(Path(path).read_text())
    package, made = CLIENTS[client]
    known = (
        version(package)
        if package
        else subprocess.run(["curl", "-V"], capture_output=True, text=True).stdout.split()[1]
    )
    found = {name: outcome(case, {**about, **about["of"].get(_served(name), {})}) for name, case in made().items()}
    print(json.dumps({"version": known, "cases": found}))


def _served(case: str) -> str:
    """Which of the two servers a case asks."""
    return "frame" if "frame" in case or "JSON in" in case else "array"


if __name__ == "__main__":
    main()
