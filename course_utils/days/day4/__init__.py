"""What belongs to day 4. An example that a check shows makes its model by this name."""

from course_utils.days.day4.given.ladders import table_model as table_model
