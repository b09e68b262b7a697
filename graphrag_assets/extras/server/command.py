"""`serve`: questions over HTTP, MCP and OpenAI's protocol, and a page to ask at."""

import logging
from pathlib import Path

import anyio
import click

from graphrag_assets.cli.terminal import INDEX, Console
from graphrag_assets.errors import SettingsError
from graphrag_assets.query import GraphRAG
from graphrag_assets.settings import Settings, variable


@click.command()
@INDEX
@click.option("--host", default="127.0.0.1", show_default=True, help="Address; another one needs tokens.")
@click.option("--port", type=click.IntRange(0, 65535), default=8321, show_default=True, help="Port.")
@click.option(
    "--public-url",
    "public_urls",
    multiple=True,
    help="Address at which clients reach the server; the first one is in links. Default: host and port.",
)
@click.option("--timeout", type=click.FloatRange(min=1), default=120, show_default=True, help="Seconds of a search.")
@click.option("--stdio", is_flag=True, help="Serve MCP on standard input and output instead of HTTP.")
def serve(path: Path | None, host: str, port: int, public_urls: tuple[str, ...], timeout: float, stdio: bool) -> None:
    """Answer questions over HTTP: a page to ask at, OpenAI's protocol (/v1) and MCP (/mcp).

    GRAPHRAG_SERVER_TOKENS has the tokens of clients, each with a filter.
    """
    try:
        import uvicorn

        from graphrag_assets.extras.server.access import Access, clients_of
        from graphrag_assets.extras.server.app import make_app
        from graphrag_assets.extras.server.http import GRACE_SECONDS
        from graphrag_assets.extras.server.searches import Searches
        from graphrag_assets.extras.server.tools import mcp_server
    except ImportError as error:
        raise SettingsError(f"{error.name} is missing. Install the server: pip install -e '.[server]'") from None
    clients = [] if stdio else clients_of(variable("GRAPHRAG_SERVER_TOKENS"))
    urls = [url.rstrip("/") for url in public_urls]
    address = urls[0] if urls else f"http://{f'[{host}]' if ':' in host else host}:{port}"
    with GraphRAG(path, settings=Settings.load()) as rag:
        searches = Searches(rag, Access(clients, "" if stdio else address), timeout)
        if stdio:
            logging.disable(logging.INFO)
            anyio.run(mcp_server(searches).run_stdio_async)
            return
        app = make_app(searches, host, port, urls)
        console = Console()
        for name, place in {"page": "/", "OpenAI": "/v1", "MCP": "/mcp"}.items():
            console.say(f"{name}: {address}{place}")
        if clients:
            console.say(f"tokens: {', '.join(client.name for client in clients)}")
        grace = round(2 * GRACE_SECONDS)
        uvicorn.run(app, host=host, port=port, log_level="warning", access_log=False, timeout_graceful_shutdown=grace)
