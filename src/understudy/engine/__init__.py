"""The native engine: trains networks and answers with them, in one small C library without dependencies.

`kernel.c` and `lanes.h` are its source, compiled when the package is built; `library` loads it, `training` and
`answers` are what Python calls. The same parameters, rows and seed give the same bits on every processor with fused
multiply-add.
"""
