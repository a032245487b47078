"""Everything else stands in pyproject.toml. This mends one thing: an editable install forgets the data files.

Setuptools (84.2.1) asks the distribution `has_data()` there, and has only `has_data_files()`.
"""

from setuptools import Distribution, setup


class WithDataFiles(Distribution):
    """A distribution whose data files are installed by `pip install -e .` too."""

    has_data = Distribution.has_data_files


setup(distclass=WithDataFiles)
