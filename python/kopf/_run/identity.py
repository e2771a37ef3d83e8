"""The identity of an operator among its peers."""

from __future__ import annotations

import datetime
import getpass
import os
import random
import socket
from typing import NewType, cast

Identity = NewType("Identity", str)

_ALPHABET = "abcdefhijklmnopqrstuvwxyz0123456789"
_USELESS = (".local", ".localdomain")


def detect_own_id(*, manual: bool) -> Identity:
    """Get the id: of the pod if ``$POD_ID`` is set, else of the user, the host and the start."""
    pod = os.environ.get("POD_ID")
    if pod is not None:
        return Identity(pod)
    who = f"{getpass.getuser()}@{get_descriptive_hostname()}"
    if manual:
        return Identity(who)
    now = datetime.datetime.now(datetime.timezone.utc).strftime("%Y%m%d%H%M%S")
    return Identity(f"{who}/{now}/{''.join(random.choices(_ALPHABET, k=3))}")


def _is_address(name: str) -> bool:
    for family in (socket.AF_INET, socket.AF_INET6):
        try:
            socket.inet_pton(family, name.partition("%")[0])
        except OSError:
            continue
        return True
    return False


def _plain(name: str) -> str:
    """Encode a name, if possible: for text, Python loads tables of a megabyte."""
    return cast(str, name.encode()) if name.isascii() else name


def get_descriptive_hostname() -> str:
    """Get a name of this host that says something to people, with a domain if there is one."""
    own = socket.gethostname()
    try:
        name, aliases, addresses = socket.gethostbyaddr(_plain(own))
    except OSError:
        return remove_useless_suffixes(own)
    # Names are text, unless somebody replaced the function by one that returns its argument.
    every = [os.fsdecode(n) for n in (name, *aliases, *addresses)]
    names = [n for n in every if not n.endswith(".arpa") and not _is_address(n)]
    dotted = [n for n in names if "." in n]
    plain = [n for n in names if n != "localhost"]
    return remove_useless_suffixes((dotted or plain or [own])[0])


def remove_useless_suffixes(hostname: str) -> str:
    """Remove ``.local`` and ``.localdomain`` from the end, several times if needed."""
    while hostname.endswith(_USELESS):
        for suffix in _USELESS:
            hostname = hostname.removesuffix(suffix)
    return hostname
