"""From the bytes of a file to its documents: `formats` tells what a file is and calls the reader of its kind.

Office documents, PDF, web pages, mails and Parquet are read in a process of their own with limits on time and memory, a
module per library: `pdf` (pypdfium2), `office` (kreuzberg), `web` (trafilatura) and `mail` (the standard library). A
file of a few kilobytes can expand to gigabytes or take hours, and some libraries crash the interpreter; a process can
be ended without harm to the batch.
"""
