"""Intake of submissions: find them on the disk or in zips, read them safely, and extract the students' answers."""
