"""The file itself, and the part of the program it covers."""

from tests.rules.cases import fires, silent
from tests.traces import Story


class Damaged(Story):
    """A story whose file is changed after it was written."""

    def damage(self, text):
        return text

    def text(self):
        return self.damage(super().text())


class CutOff(Damaged):
    def damage(self, text):
        return text[: int(len(text) * 0.8)]


class WithNotANumber(Damaged):
    def damage(self, text):
        return text.replace('"dur": 15', '"dur": 15, "bw": NaN')


class Large(Story):
    """A story whose file is said to be large."""

    size = 600_000_000

    def trace(self, name="story.json"):
        trace = super().trace(name)
        trace.size = self.size
        return trace


class NotSoLarge(Large):
    size = 400_000_000


def loop(kind=Story, steps=4):
    story = kind()
    for at in story.steps(steps, 1000):
        for k in range(10):
            story.op("aten::mm", at + 20 * k, 15)
            story.kernel("sgemm", at + 90 * k + 15, 80, launch_at=at + 20 * k + 5)
    return story


@fires("repaired-file")
def cut_off():
    return loop(CutOff)


@fires("repaired-file")
def not_a_number():
    return loop(WithNotANumber)


@silent("repaired-file", "huge-trace")
def as_it_should_be():
    return loop()


@fires("huge-trace")
def six_hundred_megabytes():
    return loop(Large, steps=8)


@silent("huge-trace")
def four_hundred_megabytes():
    return loop(NotSoLarge)


@fires("steps-missing")
def no_schedule():
    story = Story()
    for k in range(10):
        story.op("aten::mm", 20 * k, 15)
    return story


@fires("steps-missing")
def rounds_of_an_annotation():
    story = Story()
    for k in range(10):
        story.note("train_step", 100 * k, 90)
        story.op("aten::mm", 100 * k + 5, 15)
    return story


@silent("steps-missing", "window-too-short")
def recorded_steps():
    return loop()


@fires("window-too-short")
def one_step():
    return loop(steps=1)
