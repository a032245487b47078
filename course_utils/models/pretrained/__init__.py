"""A language model that others trained, on the course's own layers: SmolLM2-135M-Instruct, or another GGUF file.

`fetch` brings the file, `gguf_file` reads it, `store` keeps it converted, `tokenizer` cuts texts, `real` runs it.
"""
