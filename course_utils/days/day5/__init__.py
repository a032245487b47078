"""What belongs to day 5. Its exercises have the model and the rotation from here."""

from course_utils.days.day5.given.ladders import TinyModel as TinyModel
from course_utils.days.day5.given.ladders import rotate as rotate
