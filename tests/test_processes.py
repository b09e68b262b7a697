"""A value is made once per process, whatever the number of threads, and again after a fork."""

import multiprocessing
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from graphrag_assets.runtime.processes import once_per_process

THREADS = 64


@pytest.fixture(autouse=True)
def frequent_switches() -> Iterator[None]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


def values_of(value: Callable[..., object], *args: object) -> set[int]:
    """What many threads that ask at the same time receive, by identity."""
    ready = threading.Barrier(THREADS)

    def ask(_: int) -> int:
        ready.wait()
        return id(value(*args))

    with ThreadPoolExecutor(THREADS) as pool:
        return set(pool.map(ask, range(THREADS)))


def test_threads_share_one_value() -> None:
    assert len(values_of(once_per_process()(lambda: [threading.Event() for _ in range(100)]))) == 1


def test_forked_process_makes_its_own_value_even_if_the_lock_was_held() -> None:
    begun, go_on = threading.Event(), threading.Event()

    @once_per_process()
    def value() -> str:
        if multiprocessing.parent_process():
            return "of the child"
        begun.set()
        go_on.wait()
        return "of the parent"

    context = multiprocessing.get_context("fork")
    answers = context.SimpleQueue()
    with ThreadPoolExecutor(1) as pool:
        asked = pool.submit(value)
        begun.wait()
        child = context.Process(target=lambda: answers.put(value()))
        child.start()
        child.join(30)
        hangs = child.is_alive()
        child.kill()
        go_on.set()
        assert not hangs
        assert (asked.result(), answers.get()) == ("of the parent", "of the child")
