"""What no student's edition and no grading kernel gets: references, known mistakes, implementations that only grading
tries. A folder for each day; `loader` finds them."""
