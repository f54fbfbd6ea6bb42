"""One file per graph format; `lograb.graphs.files` chooses among them.

Every reader takes the bytes of a file and returns the same `RawGraph`; `simple.py` turns that into a
`Graph`, so all formats follow the same rules.
"""
