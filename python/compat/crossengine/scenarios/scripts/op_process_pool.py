"""A pool of processes as the executor: handlers are picklable functions of the module."""

import concurrent.futures
import multiprocessing
import os

from crosslib import note

import kopf

STEPS = [("create", "one", {"spec": {"n": 20}}), ("patch", "one", {"spec": {"n": 21}})]


def fibonacci(n):
    return n if n < 2 else fibonacci(n - 1) + fibonacci(n - 2)


@kopf.on.startup()
def configure(memo, settings, **_):
    context = multiprocessing.get_context("spawn")
    memo.pool = concurrent.futures.ProcessPoolExecutor(max_workers=1, mp_context=context)
    note("workers", settings.execution.executor._max_workers is not None)
    settings.execution.executor = concurrent.futures.ThreadPoolExecutor(max_workers=3)
    note("workers", settings.execution.executor._max_workers)


@kopf.on.cleanup()
def stop(memo, **_):
    memo.pool.shutdown()


@kopf.on.create("kopfexamples")
@kopf.on.update("kopfexamples")
def compute(memo, spec, **_):
    other = memo.pool.submit(os.getpid).result()
    found = memo.pool.submit(pow, 2, spec["n"]).result()
    note("computed", found, other != os.getpid())
    return {"power": found, "fibonacci": fibonacci(5)}
