"""The course as pages, built of the committed notebooks and a few texts of `sources`."""
