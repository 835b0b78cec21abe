"""A copy in the original's place: the Open Inference Protocol V2 over HTTP, counted, and compared with the original.

`tensors` and `reading` turn a request into rows, `model` rows into an answer; `routes` knows the paths, `connection`
and `server` the network; `counters` are what /metrics shows, `shadow` asks the original too.
"""
