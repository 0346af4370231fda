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

PR_SET_CHILD_SUBREAPER = 36
# Orphans that go on after the command ended are given so long.
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
    with os.fdopen(receive, "rb") as pipe:
        told = pipe.read()
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
    with open(log, "wb") as output:
        try:
            # A session of its own, so that a failed tree can be ended as one.
            child = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                cwd=folder,
                env=env,
                start_new_session=True,
            )
        except OSError as error:
            return {"failed": str(error), "cpu_s": None}
        try:
            code = child.wait(timeout=limit_s)
            if code != 0:
                failed = f"exit code {code}"
        except subprocess.TimeoutExpired:
            failed = f"not done after {limit_s} s"
    if failed:
        _kill(child.pid)
    if not _reaped(GRACE_S):
        _kill(child.pid)
        if not _reaped(GRACE_S):
            failed = failed or "a process of it does not end"
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return {"failed": failed, "cpu_s": used.ru_utime + used.ru_stime}


def _kill(session):
    try:
        os.killpg(session, signal.SIGKILL)
    except ProcessLookupError:
        pass


def _reaped(within_s):
    """Whether no child is left, waiting for them so long."""
    end = time.monotonic() + within_s
    while time.monotonic() < end:
        try:
            pid, _ = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return True
        if pid == 0:
            time.sleep(0.05)
    return False
