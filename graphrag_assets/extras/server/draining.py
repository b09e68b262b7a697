"""The end of the server: answers in progress have a few seconds, then their clients read why there is none."""

import asyncio
import socket

import uvicorn

from graphrag_assets.query import GraphRAG

GRACE_SECONDS = 3.0


class DrainingServer(uvicorn.Server):
    """Closes the `GraphRAG` a few seconds after it is told to end, which ends the searches in progress."""

    def __init__(self, config: uvicorn.Config, rag: GraphRAG) -> None:
        super().__init__(config)
        self._rag = rag

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        loop = asyncio.get_running_loop()
        closing = loop.call_later(GRACE_SECONDS, lambda: loop.create_task(self._rag.aclose()))
        await super().shutdown(sockets)
        closing.cancel()
