"""Reads office documents, web pages, mails and columnar files in a process of its own with limits on time and memory.

What belongs here: one module per library, from a file's bytes to `Record`s: `pdf` (pypdfium2), `office` (kreuzberg),
`web` (trafilatura) and `mail` (the standard library). A file of a few kilobytes can expand to gigabytes or take hours,
and some libraries crash the interpreter; a process can be ended without harm to the batch.
"""
