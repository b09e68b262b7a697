"""Import of indexes that others made, and export in the formats that others read.

`source` reads GraphRAG's output of any generation, and plain graphs, into frames of one shape; `repair` mends what
is broken in them; `facts` and `hierarchy` turn them into the rows of this index; `importing` writes these and has
the ordinary stages complete them. `exporting` goes the other way.
"""
