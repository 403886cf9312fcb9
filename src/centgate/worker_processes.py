"""Several server processes behind one port: forks of a process that has loaded what all of them need."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
from importlib import import_module
from multiprocessing.connection import wait
from multiprocessing.process import BaseProcess
from multiprocessing.util import get_temp_dir
from typing import TYPE_CHECKING, Any

from uvicorn import _subprocess  # its `spawn` is the only place where the way of starting can be chosen
from uvicorn.config import STARTUP_FAILURE
from uvicorn.supervisors import Multiprocess
from uvicorn.supervisors.multiprocess import SIGNALS

from centgate.garbage_collection import resume_garbage_collection

if TYPE_CHECKING:
    from multiprocessing.context import ForkProcess
elif sys.platform == "linux":
    ForkProcess = multiprocessing.get_context("fork").Process
else:
    ForkProcess = object


class WorkerSupervisor(Multiprocess):
    """Starts the processes, replaces those that end, and closes the port when they are stopped.

    The first processes are forks, which share the memory of loaded modules and start in a moment. A process
    that replaces one is started anew, since this process may have threads by then, whose locks a fork would
    find held for ever.
    """

    def start_processes(self, modules: tuple[str, ...]) -> None:
        """Start the processes, once, before this one has threads; `modules` are imported before."""
        # the workers use it too, and this process removes it; a signal ends them before they could remove
        # folders of their own
        get_temp_dir()
        is_forking = sys.platform == "linux" and threading.active_count() == 1
        for name in modules if is_forking else ():
            import_module(name)
        resume_garbage_collection()  # or the collectors of all processes would write to the shared memory
        if not is_forking:
            super().init_processes()
            return
        spawn: Any = _subprocess.spawn
        stop_signals = set(SIGNALS)
        # a signal that arrives before a process has its own handlers must not be lost in one of this process
        signal.pthread_sigmask(signal.SIG_BLOCK, stop_signals)
        try:
            _subprocess.spawn = _ForkContext  # pyright: ignore[reportAttributeAccessIssue]
            super().init_processes()
        finally:
            _subprocess.spawn = spawn
            signal.pthread_sigmask(signal.SIG_UNBLOCK, stop_signals)

    def process_ids(self) -> list[int]:
        """Return the ids of the processes."""
        return [each.pid or 0 for each in self.processes]

    @property
    def has_failed(self) -> bool:
        """True if a process could not start, which ends all of them."""
        return any(each.exitcode == STARTUP_FAILURE for each in self.processes)

    def stop(self) -> None:
        """Stop the processes and wait for them."""
        self.terminate_all()
        self.join_all()

    def init_processes(self) -> None:
        """Start the processes unless they are started."""
        if not self.processes:
            super().init_processes()

    def terminate_all(self) -> None:
        """Close this process's sockets, or new connections would wait forever; then stop the processes."""
        for listener in self.sockets:
            listener.close()
        super().terminate_all()


def stop_with_supervisor() -> None:
    """Stop this process when its supervisor has ended, however that ends; without one, do nothing.

    Otherwise it would keep the ports, where nothing could be started any more. A fork has copies of what
    was open before it, so that the other processes and the console notice the end one after the other.
    """
    if multiprocessing.parent_process() is not None:
        threading.Thread(target=_wait_for_supervisor, daemon=True).start()


def _wait_for_supervisor() -> None:
    supervisor = multiprocessing.parent_process()
    if supervisor is not None:
        wait([supervisor.sentinel])
        os.kill(os.getpid(), signal.SIGTERM)


class _ForkedWorker(ForkProcess):
    """Fork with the signal handlers of a new process."""

    def run(self) -> None:
        """Run the server."""
        for number in SIGNALS:
            signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, set(SIGNALS))
        super().run()


class _ForkContext:
    """The part of a multiprocessing context that uvicorn uses."""

    Process: type[BaseProcess] = _ForkedWorker
