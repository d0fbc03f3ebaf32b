"""The files that commands read: job files, network files, statistics files, and paths to checkpoints and results.

Begin with `job`, which reads the YAML file of `braid run`. `network` reads that of `braid site` and `braid deploy`, and
`statistics` the file that `--statistics` names. All use `located_yaml`, whose values know their line in the file, so
that errors can name it. `paths` handles local paths and paths on other file systems.
"""
