"""Many requests on one model: pages of keys and values, shared prefixes, schedulers, speculation, and what they cost.

All of it is free of torch, but for `engine`, which runs a model, and `measured`, which measures one.
"""
