"""What this process may use of its machine: cores, and memory."""

import os
from collections.abc import Iterator
from pathlib import Path

_CONTROL_GROUPS = Path("/sys/fs/cgroup")


def available_cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def available_memory() -> float:
    """The bytes that this process may still fill; of the machine, if the system does not say; else infinite."""
    return min([_free(), *_limits()])


def _free() -> float:
    for line in _lines(Path("/proc/meminfo")):
        name, _, size = line.partition(":")
        if name == "MemAvailable":
            return 1024.0 * int(size.split()[0])
    if not hasattr(os, "sysconf") or "SC_PHYS_PAGES" not in os.sysconf_names:
        return float("inf")
    return float(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))


def _limits() -> Iterator[float]:
    """The limits of the control groups that the process is in, as in a container or a job of a cluster."""
    for line in _lines(Path("/proc/self/cgroup")):
        _, kind, name = line.split(":", 2)
        if kind in ("", "memory"):
            top, limit = (_CONTROL_GROUPS, "memory.max") if not kind else (_CONTROL_GROUPS / kind, _LIMIT_OF_OLD)
            own = top / name.strip("/")
            for group in (own, *own.parents):
                yield from (float(size) for size in _lines(group / limit) if size.isdigit())
                if group == top:
                    break


_LIMIT_OF_OLD = "memory.limit_in_bytes"  # in the first version of control groups


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text().splitlines()
    except OSError:
        return []
