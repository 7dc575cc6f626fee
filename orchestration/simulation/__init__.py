"""A whole project played by scripted agents, and an independent judge of what the loop made of it.

`script` writes what will happen, `oracle` what must follow from it; neither knows the engine.
`cast` and `director` play the script through the engine's own services, `records` reads back what
the loop decided, `invariants` and `score` hold that against the oracle.
Source: seed 002 ("EVALUATION"), DESIGN section 10.
"""
