"""The native engine: networks, trees and radial functions in one small C library without dependencies.

`kernel.c`, `lanes.h`, `trees.c` and `radial.c` are its source, compiled when the package is built; `library` loads it.
`training`, `answers`, `pieces`, `trees` and `radial` are what Python calls. The same parameters, rows and seed give the
same bits on every processor with fused multiply-add.
"""
