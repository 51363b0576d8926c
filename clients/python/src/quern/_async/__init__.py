"""The client for asyncio, written by hand. tools/sync.py makes the package _sync from it."""
