"""A gRPC client that gives replies as HTTP has them, so that attempts, limits and errors are the same for both."""

from __future__ import annotations

import weakref
from collections.abc import Mapping
from importlib.util import find_spec
from urllib.parse import urlsplit

import httpx2

from ectype.errors import SettingError
from ectype.original.http.client import MOST_BYTES, Reply, TooLargeError
from ectype.original.http.tls import Certificates
from ectype.original.protocols.v2_messages import SERVICE

# What a gRPC code is called in HTTP; all others are 500.
STATUS = {
    "INVALID_ARGUMENT": 400,
    "FAILED_PRECONDITION": 400,
    "OUT_OF_RANGE": 400,
    "UNAUTHENTICATED": 401,
    "PERMISSION_DENIED": 403,
    "NOT_FOUND": 404,
    "UNIMPLEMENTED": 405,
    "RESOURCE_EXHAUSTED": 429,
}
# What means nothing in gRPC, or is written by the library.
_HTTP_ALONE = ("content-type", "accept", "user-agent")


def refuse_missing() -> None:
    """An error unless grpcio is installed."""
    if find_spec("grpc") is None:
        raise SettingError("original", "the library grpcio", "none", 'install it: pip install "ectype[grpc]"')


class GrpcClient:
    """A channel to the host of a URL; any thread may send."""

    def __init__(self, url: str, headers: Mapping[str, str], timeout: float, certificates: Certificates):
        import grpc

        parts, named = urlsplit(url), {name.lower(): value for name, value in headers.items()}
        options = [
            ("grpc.max_receive_message_length", MOST_BYTES),
            ("grpc.max_send_message_length", -1),
            ("grpc.enable_retries", 0),  # who calls here counts attempts
            ("grpc.primary_user_agent", named.get("user-agent", "")),
        ]
        if parts.scheme == "grpcs":
            channel = grpc.secure_channel(parts.netloc, grpc.ssl_channel_credentials(*certificates.pem()), options)
        else:
            channel = grpc.insecure_channel(parts.netloc, options)
        self._infer = channel.unary_unary(f"/{SERVICE}/ModelInfer")
        self._metadata = [(name, value) for name, value in named.items() if name not in _HTTP_ALONE]
        self._timeout, self._error = timeout, grpc.RpcError
        weakref.finalize(self, channel.close)

    def send(self, method: str, url: str, body: bytes) -> Reply:
        """Send a message and wait for the reply, up to the deadline."""
        try:
            return Reply(200, {}, self._infer(body, timeout=self._timeout, metadata=self._metadata))
        except self._error as error:
            code, details = error.code().name, str(error.details())
        if code == "DEADLINE_EXCEEDED":
            raise TimeoutError
        if code == "UNAVAILABLE":
            raise httpx2.NetworkError(details)
        if code == "RESOURCE_EXHAUSTED" and "larger than max" in details:
            raise TooLargeError(f"an answer of more than {MOST_BYTES} bytes")
        return Reply(STATUS.get(code, 500), {}, f"{code}: {details}".encode())
