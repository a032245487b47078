"""Small models to look into, to train and to generate from, on the layers of `course_utils.attention`.

`decoder` is a causal decoder with caches and generation. `scale_experiment` trains one head with three scales,
`leak_experiment` a model on tokens that nobody can foretell, `characters` two models of text, one of which sees ahead.
`real` is a real language model, `facts` measures what its parts do, and `facts_record` is what was measured.
Import the module you want; importing this package loads none.
"""
