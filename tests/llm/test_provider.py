"""litellm's public functions as this package calls them."""

import shutil
import ssl
import subprocess
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from graphrag_assets.llm.model_errors import CircuitOpen
from tests.llm.conftest import Lab, ask, run


@pytest.mark.skipif(shutil.which("openssl") is None, reason="makes the certificate")
def test_a_certificate_that_is_not_trusted_is_named_with_the_remedy(lab: Lab, tmp_path: Path) -> None:
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    made = f"openssl req -x509 -newkey rsa:2048 -nodes -keyout {key} -out {certificate} -days 1 -subj /CN=localhost"
    subprocess.run(made.split(), check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    with HTTPServer(("localhost", 0), BaseHTTPRequestHandler) as server:
        server.socket = context.wrap_socket(server.socket, server_side=True)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        with pytest.raises(CircuitOpen, match=r"certificate.*Set SSL_CERT_FILE"):
            run(lab.chat(base_url=f"https://localhost:{server.server_port}/v1").complete(ask()))
        server.shutdown()
