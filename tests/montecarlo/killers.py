"""Jobs that kill their worker, in a module that imports next to nothing: a new worker has to import it first."""

import contextlib
import os
import signal
import time
from pathlib import Path


def killer(flag: str, at: int, job: int) -> int:
    """The square of a job; the first worker that comes to job `at` is killed in the middle of it."""
    time.sleep(0.02)
    if job == at:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(flag)
            os.kill(os.getpid(), signal.SIGKILL)
    return job * job


def counted(folder: str, flag: str, job: int) -> int:
    """`killer`, leaving a file for each time that a job is done."""
    found = killer(flag, 12, job)
    Path(folder, f"{job}.{time.time_ns()}").touch()
    return found


def always(job: int) -> int:
    """Kills whoever works on job 5."""
    if job == 5:
        os.kill(os.getpid(), signal.SIGKILL)
    return job
