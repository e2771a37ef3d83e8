"""``python -m kopf`` is the same as the command ``kopf``."""

from kopf import cli

if __name__ == "__main__":
    cli.main(prog_name="kopf")
