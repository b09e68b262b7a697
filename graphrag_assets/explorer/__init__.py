"""The explorer: one self-contained HTML page of a published index, for looking at it without a server.

`content` reads what the page shows, `page` writes it. The page itself is made in `web/`; its bundle is in `static/`.
"""
