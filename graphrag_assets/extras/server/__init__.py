"""`serve`: the index at HTTP, for a chat page, OpenAI's protocol, MCP and programs (docs/exchange.md)."""
