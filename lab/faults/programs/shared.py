"""What the programs share: their name for ps and ss, and a pace."""

import time


def be_called(name):
    """The name of this process, as ps and ss show it: 15 characters at most."""
    with open("/proc/self/comm", "w", encoding="ascii") as comm:
        comm.write(name[:15])


class Pace:
    """At most so many units a second; 0 is no limit."""

    def __init__(self, per_second):
        self.per_second = per_second
        self.next = time.monotonic()

    def take(self, units=1):
        """Waits until the units may be taken. What was not used a second ago is gone."""
        if not self.per_second:
            return
        now = time.monotonic()
        self.next = max(self.next, now - 1)
        if self.next > now:
            time.sleep(self.next - now)
        self.next += units / self.per_second
