"""Processor time and memory of this process and of what it started, by stage."""

from __future__ import annotations

import resource
from dataclasses import dataclass, field


@dataclass
class Usage:
    """A meter of this process; a forked child's processor time begins at zero.

    Attributes:
        cpu_us: processor time by stage, user and system, ended children included.
        peak_bytes: the most memory that was resident until the end of a stage; what a forked
            process shares with its parent counts.
    """

    cpu_us: dict[str, int] = field(default_factory=dict)
    peak_bytes: dict[str, int] = field(default_factory=dict)
    _last_us: int = 0

    def begin(self) -> None:
        """What was used until now counts for no stage."""
        self._last_us = processor_time_us()

    def end(self, name: str) -> None:
        """What was used since `begin` or the last `end` counts for the stage."""
        now_us = processor_time_us()
        self.cpu_us[name] = self.cpu_us.get(name, 0) + now_us - self._last_us
        self.peak_bytes[name] = peak_bytes()
        self._last_us = now_us

    def to_json(self) -> dict[str, object]:
        """Each stage and their sum; imports and what else came before the first are in none."""
        return {
            "cpu_us": sum(self.cpu_us.values()),
            "stages_cpu_us": self.cpu_us,
            "peak_bytes": peak_bytes(),
            "stages_peak_bytes": self.peak_bytes,
        }


def processor_time_us() -> int:
    """Of this process since it began, and of its ended children."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return round(sum(each.ru_utime + each.ru_stime for each in used) * 1e6)


def peak_bytes() -> int:
    """The most resident memory of this process or of its largest ended child."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return max(each.ru_maxrss for each in used) << 10
