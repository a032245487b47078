"""Find the smallest input, or the shortest sequence of calls, on which an answer is wrong."""
