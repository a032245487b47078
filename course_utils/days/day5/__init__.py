"""What belongs to day 5. Its exercises have the model from here."""

from course_utils.days.day5.given.ladders import TinyModel as TinyModel
