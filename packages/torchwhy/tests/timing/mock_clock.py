"""A clock that only the functions under test advance."""


class MockClock:
    def __init__(self):
        self.now_s = 0.0
        self.calls = []

    def __call__(self):
        return self.now_s

    def taking(self, durations_s, name="f", result=None):
        """Return a function whose n-th call takes the n-th duration, the last one from then on."""
        durations_s = list(durations_s)

        def function():
            taken = sum(called == name for called in self.calls)
            self.calls.append(name)
            self.now_s += durations_s[min(taken, len(durations_s) - 1)]
            return result

        return function
