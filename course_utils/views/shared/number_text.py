"""Numbers as text, the same on every platform: a true minus sign, and never −0."""

import math

HAIR = 1e-9  # added before rounding, so that 0.125 is rounded the same way everywhere
SINGLE = 1e-6  # the same, for numbers that were computed in float32


def round_to_two(value: float, hair: float = HAIR) -> float:
    """Return a number rounded to two decimals."""
    return round(float(value) + hair, 2) + 0.0


def short(value: float, hair: float = HAIR) -> str:
    """Return a number as text with two decimals; NaN, ∞ or −∞ where it is not finite.

    Args:
        hair: HAIR, or SINGLE for a number that was computed in float32.
    """
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else "∞" if value > 0 else "−∞"
    return f"{round_to_two(value, hair):.2f}".replace("-", "−")


def three_decimals(value: float) -> str:
    """Return a number for a table: with three decimals, or as `number` does where these are too few or too many."""
    value = float(value)
    if abs(value) < 1e-12:
        return "0.000"
    if 0.0005 <= abs(value) < 1000:
        return f"{value:.3f}".replace("-", "−")
    return number(value)


def number(value: float) -> str:
    """Return a number for people to read: four decimals below 10 and fewer above."""
    value = float(value)
    if math.isnan(value):
        return "nan"
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    size = abs(value)
    if size < 1e-12:
        return "0"
    if size < 5e-5 or size >= 1e5:
        mantissa, exponent = f"{value:.3e}".split("e")
        text = f"{mantissa.rstrip('0').rstrip('.')}e{int(exponent)}"
    else:
        decimals = max(1, 4 - max(0, math.floor(math.log10(size))))
        text = f"{value:.{decimals}f}".rstrip("0").rstrip(".")
    return text.replace("-", "−")


def bracket_negative(text: str) -> str:
    """Return a number to write after a sign: in brackets if it is negative."""
    return f"({text})" if text.startswith("−") else text
