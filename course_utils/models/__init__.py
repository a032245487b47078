"""Small models to look into, to train and to generate from, on the layers of `course_utils.attention`.

`decoder` is a causal decoder with caches and generation. Import the module you want; importing this package loads none.
"""
