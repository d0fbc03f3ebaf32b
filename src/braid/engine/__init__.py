"""The engine runs a site program: segments of rows in, result rows out. Read `engine.py` first.

1. `segment.py`: a segment is a batch of rows of one stream, with the watermark of that stream.
2. `input/`: an inlet drops late rows, evaluates selections and keys, and puts rows into the window of its stream.
3. `window/`: a `WindowState` holds the live rows of a stream and their indexes; a `JoinState` holds kept combinations.
4. `join/`: a track takes new rows along the joins of one plan (`join/track.py`); the dataflow is the plan, connected.
   A plan with parts has a dataflow for each part of the keys (`join/lanes.py`).
5. `output/`: emitters turn finished combinations into result rows; outer joins, existence tests and groups come then.
6. `transition/`: the strategies that replace the tracks of one plan by those of another.
7. `keys/`, `arrays/` and `kernels/` are the tools: keys as 64-bit words, columns by row id, SQL expressions on Arrow.
8. `counts.py`: what the engine counts: rows, probes, matches, results.
"""
