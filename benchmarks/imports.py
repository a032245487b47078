"""The time of `import course_utils` and of `course --help`, each in a fresh process; the target is under 0.2 s."""

import subprocess
import sys
import time


def seconds(*arguments: str) -> float:
    """Wall time of a Python process less that of an empty one, the best of five."""
    return max(0.0, best(*arguments) - best("-c", "pass"))


def best(*arguments: str) -> float:
    def once() -> float:
        begin = time.perf_counter()
        subprocess.run([sys.executable, *arguments], check=True, stdout=subprocess.DEVNULL)
        return time.perf_counter() - begin

    return min(once() for _ in range(5))


if __name__ == "__main__":
    print(f"import course_utils   {seconds('-c', 'import course_utils'):.3f} s   (target: under 0.2)")
    print(f"course --help         {seconds('-m', 'course_utils', '--help'):.3f} s")
