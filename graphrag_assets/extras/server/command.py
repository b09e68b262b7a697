"""`serve`: questions over HTTP, MCP and OpenAI's protocol, and a page to ask at."""

import contextlib
import logging
from pathlib import Path

import anyio
import click

from graphrag_assets.cli.shared_options import INDEX
from graphrag_assets.cli.terminal import Console
from graphrag_assets.errors import SettingsError
from graphrag_assets.query import GraphRAG
from graphrag_assets.settings import Settings, variable


@click.command()
@INDEX
@click.option("--host", default="127.0.0.1", show_default=True, help="Address; another one needs tokens.")
@click.option("--port", type=int, default=8321, show_default=True, help="Port.")
@click.option(
    "--public-url",
    "public_urls",
    multiple=True,
    help="Address at which clients reach the server; the first one is in links. Default: host and port.",
)
@click.option("--sql", "allow_sql", is_flag=True, help="Allow SELECT statements, for clients without a filter.")
@click.option("--timeout", type=click.FloatRange(min=1), default=120, show_default=True, help="Seconds of a search.")
@click.option("--at-once", type=click.IntRange(1), default=64, show_default=True, help="Searches at the same time.")
@click.option("--stdio", is_flag=True, help="Serve MCP on standard input and output instead of HTTP.")
def serve(
    path: Path | None,
    host: str,
    port: int,
    public_urls: tuple[str, ...],
    allow_sql: bool,
    timeout: float,
    at_once: int,
    stdio: bool,
) -> None:
    """Answer questions over HTTP: a page to ask at, OpenAI's protocol (/v1), MCP (/mcp) and an API (/openapi.json).

    GRAPHRAG_SERVER_TOKENS has the tokens of clients, each with a filter and limits.
    """
    try:
        import uvicorn

        from graphrag_assets.extras.server.access import EVERYONE, clients_of
        from graphrag_assets.extras.server.app import describe_start, make_app, server_searches
        from graphrag_assets.extras.server.draining import DrainingServer
        from graphrag_assets.extras.server.http import DRAIN_SECONDS
        from graphrag_assets.extras.server.sql import SqlQuery
        from graphrag_assets.extras.server.tools import mcp_server
    except ImportError as error:
        raise SettingsError(f"{error.name} is missing. Install the server: pip install -e '.[server]'") from None
    settings = Settings.load()
    clients = [] if stdio else clients_of(variable("GRAPHRAG_SERVER_TOKENS"))
    urls = [url.rstrip("/") for url in public_urls]
    address = urls[0] if urls else f"http://{f'[{host}]' if ':' in host else host}:{port}"
    with GraphRAG(path, settings=settings) as rag:
        searches = server_searches(rag, clients, address, timeout, at_once)
        if stdio:
            logging.disable(logging.INFO)
            anyio.run(mcp_server(searches, lambda _: EVERYONE, SqlQuery() if allow_sql else None).run_stdio_async)
            return
        app = make_app(searches, host, port, urls, allow_sql)
        for name, value in describe_start(address, clients, allow_sql).items():
            Console().say(f"{name}: {value}")
        config = uvicorn.Config(
            app, host, port, log_level="warning", access_log=False, timeout_graceful_shutdown=DRAIN_SECONDS
        )
        with contextlib.suppress(KeyboardInterrupt):  # as in `uvicorn.run`
            DrainingServer(config, rag).run()
