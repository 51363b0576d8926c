"""What asyncio and threads do differently. Written by hand; all other modules of this package are generated."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from threading import Event, Lock
from typing import TypeVar

T = TypeVar("T")
U = TypeVar("U")

sleep = time.sleep


def in_thread(work: Callable[[], T]) -> T:
    """Run what blocks."""
    return work()


def for_each(items: Iterable[U], work: Callable[[U], None], at_once: int) -> None:
    """Call work with every item, several at once. After the first fault no other item begins."""
    queue, taking, failed = iter(items), Lock(), Event()

    def take() -> list[U]:
        with taking:
            return [] if failed.is_set() else list(islice(queue, 1))

    def worker() -> None:
        try:
            while taken := take():
                work(taken[0])
        except BaseException:
            failed.set()
            raise

    with ThreadPoolExecutor(at_once) as pool:
        workers = [pool.submit(worker) for _ in range(at_once)]
        try:
            for one in workers:
                one.result()
        except BaseException:  # also an interrupt from the keyboard
            failed.set()
            raise
