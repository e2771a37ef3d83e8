"""A script with a command of its own: handlers in it, and Kopf's command at its end."""

import argparse
import sys

import kopf
import kopf.cli

parser = argparse.ArgumentParser()
parser.add_argument("--greeting", default="hello")


@kopf.on.startup()
def configure(settings, memo, **_):
    settings.posting.enabled = False
    memo.greeting = OPTIONS.greeting


@kopf.on.create("example.dev", "v1", "volumes")
def create(memo, name, **_):
    return f"{memo.greeting} {name}"


if __name__ == "__main__":
    OPTIONS, rest = parser.parse_known_args()
    sys.argv[1:] = rest
    sys.argv.insert(1, "run")
    sys.exit(kopf.cli.main(prog_name="kopf"))
