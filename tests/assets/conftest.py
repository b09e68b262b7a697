"""A project whose models are those of the test server."""

import pytest

from tests.assets.test_language_models import BATCHES, use
from tests.openai_server import running


@pytest.fixture
def server():
    with running() as server:
        yield server


@pytest.fixture
def modeled(project, server, monkeypatch):
    """A project with documents, a chat model and an embedding model of the test server."""
    use(monkeypatch, server)
    for path, text in BATCHES.items():
        project.write(path, text)
    return project
