"""What asyncio and threads do differently. The twin in _sync is written by hand; all other modules there are generated."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import TypeVar

T = TypeVar("T")
U = TypeVar("U")

sleep = asyncio.sleep


async def in_thread(work: Callable[[], T]) -> T:
    """Run what blocks without stopping the event loop."""
    return await asyncio.to_thread(work)


async def for_each(items: Iterable[U], work: Callable[[U], Awaitable[None]], at_once: int) -> None:
    """Call work with every item, several at once. The first fault ends the others."""
    queue = iter(items)

    async def worker() -> None:
        for item in queue:
            await work(item)

    tasks = [asyncio.ensure_future(worker()) for _ in range(at_once)]
    try:
        await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
