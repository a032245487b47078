"""What exercises expect, and the mistakes they recognise, one module a day. Never on a grading kernel's path."""
