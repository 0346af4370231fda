"""CPU time of a command and of everything that it starts. Linux only.

Load generators are several processes, some of which outlive the first one or are started by helpers
that do not wait for them. So the command runs under a parent of its own that adopts every orphan
below it, and whose children's CPU time is, once all of them ended, that of the whole tree.
"""

import ctypes
import json
import os
import resource
import signal
import subprocess
import time
from pathlib import Path

PR_SET_CHILD_SUBREAPER = 36
# What goes on after the command ended is given so long, then killed.
GRACE_S = 10


class Failed(Exception):
    """The command failed; the words are for the table."""


def measure(command, log, folder, env, limit_s=300):
    """Runs the command in a folder, its output in the file `log`; CPU seconds, user and system."""
    receive, send = os.pipe()
    parent = os.fork()
    if parent == 0:
        # Nothing of the caller's may go on in this copy of it.
        try:
            os.close(receive)
            os.write(send, json.dumps(_under_parent(command, log, folder, env, limit_s)).encode())
        finally:
            os._exit(0)
    os.close(send)
    try:
        with os.fdopen(receive, "rb") as pipe:
            told = pipe.read()
    finally:
        # On Ctrl-C it ends the tree first.
        os.waitpid(parent, 0)
    if not told:
        raise Failed("it could not be measured")
    told = json.loads(told)
    if told["failed"]:
        raise Failed(told["failed"])
    return told["cpu_s"]


def _under_parent(command, log, folder, env, limit_s):
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    failed = None
    grace_s = 0
    try:
        with open(log, "wb") as output:
            child = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                cwd=folder,
                env=env,
            )
        code = child.wait(timeout=limit_s)
        if code == 0:
            grace_s = GRACE_S
        else:
            failed = f"exit code {code}"
    except OSError as error:
        failed = str(error)
    except subprocess.TimeoutExpired:
        failed = f"not done after {limit_s} s"
    finally:
        # Ctrl-C comes by here too.
        _reap(grace_s)
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return {"failed": failed, "cpu_s": used.ru_utime + used.ru_stime}


def _reap(grace_s):
    """Waits for all that is left of the tree, and ends it after the grace."""
    end = time.monotonic() + grace_s
    while True:
        try:
            pid, _ = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if pid != 0:
            continue
        if time.monotonic() >= end:
            # Their own children come next, when they are adopted.
            for child in Path(f"/proc/self/task/{os.getpid()}/children").read_text().split():
                os.kill(int(child), signal.SIGKILL)
        time.sleep(0.05)
