"""Tests of an operator with ``KopfRunner``, as in Kopf's documentation; the operator is this file."""

import logging
import sys
import time

import kopf
import kopf.testing


@kopf.on.create("volumes")
def create(spec, logger, **_):
    logger.info(f"note: created with {spec.get('size')}")
    return "done"


@kopf.on.startup()
def startup(memo, **_):
    logging.getLogger("own").info("note: started")


if __name__ == "__main__":
    path, seconds = sys.argv[1], float(sys.argv[2])
    args = ["run", "-A", "--standalone", "--verbose", path]
    settings = kopf.OperatorSettings()
    settings.watching.server_timeout = 10
    with kopf.testing.KopfRunner(args, timeout=60, settings=settings) as runner:
        time.sleep(seconds)
    assert runner.exit_code == 0, runner.output
    assert runner.exception is None
    assert "note: created with 1Gi" in runner.output, runner.output
    assert "note: started" in runner.output
    try:
        with kopf.testing.KopfRunner(["run", "/nonexistent.py"], reraise=False) as failed:
            pass
    except BaseException as e:
        print(f"raised {type(e).__name__}")
    else:
        print(f"failed with {failed.exit_code}, {type(failed.exception).__name__}")
    print("the runner has passed", flush=True)
