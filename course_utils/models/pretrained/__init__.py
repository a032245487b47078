"""A pretrained language model on the course's own layers: SmolLM2-135M-Instruct, or another GGUF file.

`fetch` downloads the file, `gguf_file` reads it, `store` keeps a converted copy, `tokenizer` turns text into tokens,
and `real` runs the model.
"""
