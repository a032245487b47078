"""What an answer may not give back."""


class BadResult(TypeError):
    """What a function returned is no number, no array and nothing that can be made one; the text says what it is."""
