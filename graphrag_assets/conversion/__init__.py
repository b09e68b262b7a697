"""Reads office documents, web pages and Parquet files in a process of its own with limits on time and memory.

What belongs here: what runs the converters of the package markitdown, and polars for Parquet. A file of a few
kilobytes can expand to gigabytes or take hours, and some libraries crash the interpreter; a process can be ended
without harm to the batch.
"""
