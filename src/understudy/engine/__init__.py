"""The native engine: networks, trees, radial functions and random rows in one small C library without dependencies.

`kernel.c`, `trees.c`, `radial.c` and `rows.c` are its source, compiled when the package is built; `library` loads it.
`sets.h` includes `lanes.h` and `scores.h` once for every instruction set. `training`, `answers`, `pieces`, `trees`,
`radial` and `rows` are what Python calls. The same parameters, rows and seed give the same bits on every processor with
fused multiply-add.
"""
