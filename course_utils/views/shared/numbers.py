"""Numbers as text, the same on every platform: a true minus sign, and never −0."""

import math

HAIR = 1e-9  # is added before rounding, so that 0.125 goes the same way everywhere
SINGLE = 1e-6  # the same for numbers that were computed in float32


def rounded(value: float, hair: float = HAIR) -> float:
    """A number to two decimals, still a number."""
    return round(float(value) + hair, 2) + 0.0


def short(value: float, hair: float = HAIR) -> str:
    """Two decimals, or what is no finite number in a sign or two. hair: HAIR or SINGLE."""
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else "∞" if value > 0 else "−∞"
    return f"{rounded(value, hair):.2f}".replace("-", "−")


def three_decimals(value: float) -> str:
    """A number for a table: three decimals, but where these are too few or too many."""
    value = float(value)
    if abs(value) < 1e-12:
        return "0.000"
    if 0.0005 <= abs(value) < 1000:
        return f"{value:.3f}".replace("-", "−")
    return number(value)


def number(value: float) -> str:
    """A number for people: four decimals below 10 and fewer above."""
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


def bracketed(text: str) -> str:
    """A negative number in brackets, to stand behind a sign."""
    return f"({text})" if text.startswith("−") else text
