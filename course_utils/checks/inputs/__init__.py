"""The inputs on which exercises are checked, one module a day. No answers."""
