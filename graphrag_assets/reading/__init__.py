"""From the bytes of a file to its documents: `formats` tells what a file is and which function reads it.

Text and tables are read where they are asked for. Office documents, PDF, web pages, mails and other formats that a
library parses are read in a process of their own with limits on time and memory (`process`, `worker`). Most of them
become Markdown by one writer of trees, `markdown`.
"""
