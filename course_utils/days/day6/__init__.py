"""What belongs to day 6. Its notebooks have these three from here."""

from course_utils.days.day6.given.triton_emulation import launch as launch
from course_utils.days.day6.given.triton_emulation import launch_rows as launch_rows
from course_utils.days.day6.given.triton_emulation import load_triton as load_triton
