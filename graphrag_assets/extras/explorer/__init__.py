"""The explorer: one self-contained HTML page of a publication, which needs no server.

`content` reads the page's content, `page` writes the page. Its source is in `web/`, its bundle in `static/`.
"""
