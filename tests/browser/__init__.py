import pytest

pytest.register_assert_rewrite(f"{__name__}.alone_pages")  # so that its asserts say what they compared
