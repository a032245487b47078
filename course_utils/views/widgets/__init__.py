"""The thirteen widgets: a Python file each, with the JavaScript and CSS of its name beside it."""
