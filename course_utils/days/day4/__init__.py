"""What belongs to day 4. An example that a check shows makes its model or its block by these names."""

from course_utils.days.day4.given.ladders import filled_block as filled_block
from course_utils.days.day4.given.ladders import table_model as table_model
