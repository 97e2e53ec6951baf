"""addition: instances by hand, and sums recomputed digit by digit."""

from __future__ import annotations

from task_cases import Scripted, instances, task


def test_instances_by_hand() -> None:
    made = task("addition").instance(3, Scripted(57, 968))
    assert (made.prompt, made.answer) == ("057+968=", "1025")
    made = task("addition", order="least_first").instance(3, Scripted(57, 968))
    assert (made.prompt, made.answer) == ("750+869=", "5201")
    made = task("addition").instance(2, Scripted(3, 4))
    assert (made.prompt, made.answer) == ("03+04=", "007")


def added(first: str, second: str) -> str:
    """Numbers with the least significant digit first, added as at school."""
    carry, digits = 0, ""
    for a, b in zip(first, second, strict=True):
        carry, digit = divmod(int(a) + int(b) + carry, 10)
        digits += str(digit)
    return digits + str(carry)


def test_sums_are_right_in_both_orders() -> None:
    for made in instances("addition", 12):
        first, second = made.prompt[:-1].split("+")
        assert made.answer == added(first[::-1], second[::-1])[::-1]
    for made in instances("addition", 12, order="least_first"):
        assert made.answer == added(*made.prompt[:-1].split("+"))


def test_without_carries_about_half_of_the_digits_are_right() -> None:
    right = total = whole = 0
    for made in instances("addition", 20, 300):
        first, second = made.prompt[:-1].split("+")
        guess = "0" + "".join(str((int(a) + int(b)) % 10) for a, b in zip(first, second, strict=True))
        right += sum(a == b for a, b in zip(guess, made.answer, strict=True))
        total, whole = total + 21, whole + (guess == made.answer)
    assert abs(right / total - 0.525) < 0.02
    assert whole < 3
