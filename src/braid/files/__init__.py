"""The files that commands read: job files, statistics files, and paths to checkpoints and results.

`job` reads the YAML file of `braid run` and is the place to begin. `statistics` reads the file that `--statistics`
names. Both use `located_yaml`, whose values know their line in the file, so that errors can name it. `paths` handles
local paths and paths on other file systems.
"""
