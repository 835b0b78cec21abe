"""Who asks an endpoint, and whom it has to be: headers with secrets, client certificates, authorities."""

import base64
import json
import logging
import ssl
import traceback
from pathlib import Path

import numpy as np
import pytest
import trustme

from commands import run_command
from ectype.errors import OriginalError, OutageError, SettingError
from ectype.original.http.factory import open_http
from ectype.original.http.rate_limit import RetryWaits
from fault_server import FaultyServer

pytestmark = pytest.mark.usefixtures("small_lessons")

FAST = RetryWaits(first=0.001, most=0.004, jitter=0.001)
ROWS = np.array([[1.0, 2.0], [-1.0, 0.5]])
KEY = 'k/e+y"with\\all-of-it=='


def sign(rows):
    return np.where(np.asarray(rows)[:, 0] > 0, "yes", "no")


def opened(url, **options):
    return open_http(url, **{"protocol": "instances", "patience": FAST, "timeout": 5.0, **options})


# --- headers ----------------------------------------------------------------------------------------------------------


def test_any_header_goes_with_every_request(monkeypatch):
    monkeypatch.setenv("VENDOR_KEY", f"{KEY}\n")
    monkeypatch.setenv("LOGIN", "me:pass:word")
    with FaultyServer(sign, share=0) as server:
        said = ["X-Api-Key: env:VENDOR_KEY", "Authorization: Basic env:LOGIN", "X-Model:  big one ", "Accept: text/x"]
        assert opened(server.url, header=said).answer(ROWS).tolist() == ["yes", "no"]
        monkeypatch.setenv("LOGIN", base64.b64encode(b"me:pass:word").decode())
        opened(server.url, header="Authorization: Basic env:LOGIN").answer(ROWS)
        opened(server.url, header=["Authorization: Api-Key env:VENDOR_KEY"]).answer(ROWS)
    sent = server.log[0].headers
    assert (sent["X-Api-Key"], sent["X-Model"], sent["Accept"]) == (KEY, "big one", "text/x")
    encoded = "Basic " + base64.b64encode(b"me:pass:word").decode()
    assert [seen.headers["Authorization"] for seen in server.log] == [encoded, encoded, f"Api-Key {KEY}"]


@pytest.mark.parametrize(
    ("header", "message"),
    [
        ("X-Api-Key", 'header: expected "NAME: VALUE", where a secret VALUE is env:VARIABLE'),
        ("X Api Key: hush", 'header: expected "NAME: VALUE"'),
        (": hush", 'header: expected "NAME: VALUE"'),
        ("X-Model:", "found the header 'X-Model' without a value"),
        (7, 'header: expected "NAME: VALUE"'),
        ("X-Api-Key: hush", "a secret from the environment, found a value on the command line; put it into an envir"),
        ("Authorization: Bearer hush", '"Authorization: env:VARIABLE"'),
        ("Cookie: session=hush", "a secret from the environment"),
        ("X-Api-Key: env:NO_SUCH_VARIABLE", "header X-Api-Key: expected a token in the environment variable NO_SUCH_V"),
        ("X-Api-Key: env:", "the name of an environment variable after env:"),
        ("X-Api-Key: env:hush-hush", "the name of an environment variable after env:"),
        ("X-Api-Key: env:SPLIT", "a token of printable ASCII in SPLIT"),
        ("X-Model: größer", "header X-Model: expected printable ASCII"),
        ("X-Model: a\r\nX-Other: b", "header X-Model: expected printable ASCII"),
        ("Host: a.test", "a header that the client does not write itself"),
        ("content-length: 5", "a header that the client does not write itself"),
        (["X-Model: a", "x-model: b"], "each header once, found x-model 2 times"),
    ],
)
def test_headers_that_cannot_be_sent(header, message, monkeypatch):
    monkeypatch.setenv("SPLIT", "hush\nhush")
    with pytest.raises(SettingError) as caught:
        opened("http://127.0.0.1:1", header=header if isinstance(header, list) else [header])
    assert message in str(caught.value)
    assert "hush\nhush" not in str(caught.value)
    assert ": hush" not in str(caught.value)
    assert caught.value.exit_code == 2


def test_a_token_and_an_authorization_contradict_each_other(monkeypatch):
    monkeypatch.setenv("VENDOR_KEY", KEY)
    with pytest.raises(SettingError, match="token_env: expected one Authorization"):
        opened("http://127.0.0.1:1", header=["authorization: env:VENDOR_KEY"], token_env="VENDOR_KEY")


@pytest.mark.parametrize("fault", ["401 echo", "400 echo", "500 echo", "301 echo", "garbage", "bad head"])
def test_secrets_of_headers_are_never_shown(fault, monkeypatch, caplog):
    caplog.set_level(logging.INFO)
    monkeypatch.setenv("LOGIN", f"me:{KEY}")
    encoded = base64.b64encode(f"me:{KEY}".encode()).decode()
    with FaultyServer(sign, share=0, plan=[fault] * 2) as server:
        original = opened(server.url, header=["Authorization: Basic env:LOGIN"], attempts=2)
        with pytest.raises(OriginalError) as caught:
            original.answer(ROWS)
    assert server.log[0].headers["Authorization"] == f"Basic {encoded}"
    shown = [repr(vars(original)), caplog.text, *(str(vars(record)) for record in caplog.records)]
    error = caught.value
    while error is not None:
        shown += [str(error), repr(error), "".join(traceback.format_exception(error))]
        error = error.__cause__ or error.__context__
    for form in (KEY, KEY[:8], json.dumps(KEY)[1:-1], encoded, encoded[:12]):
        assert form not in "\n".join(shown)
    if fault == "401 echo":
        assert "the token in the environment variable LOGIN was refused" in str(caught.value)


def test_a_run_writes_no_secret_anywhere(tmp_path, monkeypatch):
    monkeypatch.setenv("VENDOR_KEY", "0f6b51d4hush")
    monkeypatch.setenv("LOGIN", "me:0f6b51d4hush")
    asking = ["--protocol", "instances", "--space", "normal:2", "--budget", "60", "--certificate-n", "60", "--json"]
    secrets = ["--header", "X-Api-Key: env:VENDOR_KEY", "--header", "Authorization: Basic env:LOGIN"]
    with FaultyServer(sign, share=0, plan=["500 echo"]) as server:
        out = run_command("copy", server.url, *asking, *secrets, "--out", "run", "--preset", "fast", cwd=tmp_path)
    assert out.returncode == 0, out.stderr
    assert server.log[0].headers["X-Api-Key"] == "0f6b51d4hush"
    forms = [b"0f6b51d4hush", base64.b64encode(b"me:0f6b51d4hush")]
    written = [path.read_bytes() for path in (tmp_path / "run").rglob("*") if path.is_file()]
    assert written
    for text in [*written, out.stdout.encode(), out.stderr.encode()]:
        assert not any(form in text for form in forms)


# --- TLS --------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def authority():
    return trustme.CA()


@pytest.fixture(scope="module")
def pem(authority, tmp_path_factory):
    """Files: the authority, a client with its key in one file and in two, another's key, and an encrypted one."""
    from cryptography.hazmat.primitives import serialization

    folder = tmp_path_factory.mktemp("pem")
    client, other = authority.issue_cert("me@a.test"), authority.issue_cert("you@a.test")
    authority.cert_pem.write_to_path(folder / "ca.pem")
    trustme.CA().cert_pem.write_to_path(folder / "strange.pem")
    client.private_key_and_cert_chain_pem.write_to_path(folder / "client.pem")
    client.cert_chain_pems[0].write_to_path(folder / "cert.pem")
    client.private_key_pem.write_to_path(folder / "key.pem")
    other.private_key_pem.write_to_path(folder / "other.pem")
    key = serialization.load_pem_private_key(client.private_key_pem.bytes(), None)
    kind, form = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
    encrypted = key.private_bytes(kind, form, serialization.BestAvailableEncryption(b"hush"))
    (folder / "encrypted.pem").write_bytes(encrypted)
    (folder / "empty.pem").write_text("")
    return folder


@pytest.fixture
def secured(authority):
    """A server that shows a certificate of the authority, and asks for one."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    authority.configure_trust(context)
    context.verify_mode = ssl.CERT_REQUIRED
    with FaultyServer(sign, share=0, tls=context) as server:
        yield server


@pytest.mark.parametrize("names", [("client.pem", None), ("cert.pem", "key.pem")])
def test_a_client_shows_its_certificate(names, secured, pem):
    cert, key = (None if name is None else str(pem / name) for name in names)
    original = opened(secured.url, ca=str(pem / "ca.pem"), client_cert=cert, client_key=key)
    assert original.answer(ROWS).tolist() == ["yes", "no"]


def test_without_a_certificate_no_answer(secured, pem):
    original = opened(secured.url, ca=str(pem / "ca.pem"), attempts=1)
    # A server that hangs up may do so before its reason is read.
    with pytest.raises(OutageError):
        original.answer(ROWS)
    assert original.failures == {"connection": 1}
    assert secured.log == []


def test_an_authority_that_the_environment_names_is_trusted_while_it_does(authority, pem, monkeypatch):
    """The authorities that everybody trusts are read once; those of another environment are others."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    with FaultyServer(sign, share=0, tls=context) as server:
        for file, trusted in ((None, False), ("ca.pem", True), ("strange.pem", False), ("ca.pem", True), (None, False)):
            with monkeypatch.context() as patch:
                patch.delenv("SSL_CERT_DIR", raising=False)
                patch.delenv("SSL_CERT_FILE", raising=False)
                if file is not None:
                    patch.setenv("SSL_CERT_FILE", str(pem / file))
                original = opened(server.url, attempts=1)
                if trusted:
                    assert original.answer(ROWS).tolist() == ["yes", "no"]
                else:
                    with pytest.raises(OutageError, match="SSLCertVerificationError"):
                        original.answer(ROWS)


def test_an_authority_that_nobody_trusts_is_no_answer_either(secured, pem):
    for ca in (None, str(pem / "strange.pem")):
        original = opened(secured.url, ca=ca, client_cert=str(pem / "client.pem"), attempts=3)
        with pytest.raises(OutageError, match="SSLCertVerificationError"):
            original.answer(ROWS)
        assert original.failures == {"connection": 1}
    assert secured.log == []


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"ca": "none.pem"}, "ca: expected a file that can be read"),
        ({"ca": "empty.pem"}, "ca: expected certificates in PEM format"),
        ({"ca": "."}, "ca: expected a file that can be read"),
        ({"client_cert": "none.pem"}, "client_cert: expected a file that can be read"),
        ({"client_cert": "cert.pem"}, "client_cert: expected a certificate in PEM format and the key"),
        ({"client_cert": "cert.pem", "client_key": "none.pem"}, "client_key: expected a file that can be read"),
        ({"client_cert": "cert.pem", "client_key": "other.pem"}, "and the key that belongs to it"),
        ({"client_cert": "cert.pem", "client_key": "encrypted.pem"}, "a key that is encrypted: decrypt it"),
        ({"client_key": "key.pem"}, "client_key: expected client_cert beside it"),
    ],
)
def test_certificates_are_checked_before_anything_is_sent(options, message, pem):
    given = {option: str(pem / name) for option, name in options.items()}
    with pytest.raises(SettingError) as caught:
        opened("https://127.0.0.1:1", **given)
    assert message in str(caught.value)


def test_certificates_are_of_no_use_without_tls(pem):
    with pytest.raises(SettingError, match="ca: expected an endpoint whose URL begins with https or grpcs, found http"):
        opened("http://127.0.0.1:1", ca=str(pem / "ca.pem"))


@pytest.mark.parametrize(
    "options",
    [
        ["--header", "X-Api-Key"],
        ["--header", "X-Api-Key: env:NO_SUCH_VARIABLE"],
        ["--ca", "none.pem"],
        ["--client-cert", "none.pem"],
        ["--client-key", "none.pem"],
    ],
)
def test_the_command_says_what_is_wrong_and_writes_nothing(options, tmp_path):
    asking = ["--protocol", "instances", "--space", "normal:2", "--out", "run"]
    out = run_command("copy", "https://127.0.0.1:1/x", *asking, *options, cwd=tmp_path)
    assert out.returncode == 2
    assert options[0].lstrip("-").replace("-", "_") in out.stderr
    assert list(Path(tmp_path).iterdir()) == []
