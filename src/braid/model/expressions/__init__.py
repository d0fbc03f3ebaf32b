"""The expressions of the language and their types.

Begin with `expression` (the four kinds of expressions), then `typing.type_of` and the table of functions in
`functions`. The typing rules of the functions are in `rules`, `number_rules` and `text_rules`; `types` says how Arrow
types combine. The engine computes values in `braid.engine.kernels`.
"""
