"""Eight prompts in four slots: how many steps the course's scheduler takes for them, and where a run is cut off."""

from course_utils.answers.day7.exercises import BatchScheduler, WaitsForTheBatch
from course_utils.serving.eight_prompts import MAX_STEPS, N_SLOTS, PROMPTS, LibraryBatches, count_steps


def test_the_library_takes_as_many_steps_as_the_exercise_asks_for():
    assert count_steps() == count_steps(LibraryBatches) == count_steps(BatchScheduler)
    assert sum(PROMPTS.values()) / N_SLOTS <= count_steps() < sum(PROMPTS.values())


def test_static_batches_take_the_longest_of_each_four():
    news = list(PROMPTS.values())
    assert count_steps(WaitsForTheBatch) == max(news[:4]) + max(news[4:]) > count_steps()


def test_a_scheduler_that_plans_nothing_is_cut_off():
    class Still(BatchScheduler):
        def step(self):
            return {}

    assert count_steps(Still) == MAX_STEPS
