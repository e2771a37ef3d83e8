"""For operators on Kopf itself: the last handled state of objects whose copy does not fit into annotations.

Reads what an operator on the Rust engine has left there, compressed or with digests in place of large
values, and writes the same forms; all that fits is Kopf's own form. Needs `zstandard` from PyPI:

    settings.persistence.diffbase_storage = CompactDiffBaseStorage()
"""

import base64
import hashlib
import json

import kopf
import zstandard

COMPACT, DIGEST = "kopf.dev/compact", "kopf.dev/digest"
ANNOTATIONS_SIZE_MAX = 256 * 1024  # The server's limit for all annotations of an object.
RESERVED_SIZE = 24 * 1024  # For the progress of handlers and for other writers.
OBJECT_SIZE_MAX = 1400 * 1024  # What the database takes of one object, with some room for metadata.
STATE_SIZE_MIN = 16 * 1024  # What a state may take of it in any case.
DIGESTED_FROM = (4096, 512, 96, 0)  # Smaller and smaller values are digested until the rest fits.


class CompactDiffBaseStorage(kopf.AnnotationsDiffBaseStorage):

    def fetch(self, *, body):
        stored = super().fetch(body=body)
        if not stored or COMPACT not in stored:
            return stored
        packed = base64.b64decode(stored[COMPACT]["data"])
        essence = json.loads(zstandard.ZstdDecompressor().decompress(packed))
        # Fields such as the status are in the essence only where handlers ask for them.
        return restore(essence, {**body, **self.build(body=body)})

    def store(self, *, body, patch, essence):
        keys = list(self.make_keys(self.key, body=body))
        others = {**body.metadata.annotations, **{key: "" for key in keys}}
        taken = sum(len(text.encode()) for pair in others.items() for text in pair)
        budget = max(0, ANNOTATIONS_SIZE_MAX - RESERVED_SIZE - taken) // len(keys)
        super().store(body=body, patch=patch, essence=essence)
        plain = patch.metadata.annotations[keys[0]]
        if len(plain) > budget:
            text = fit(essence, plain, budget)
            patch.metadata.annotations.update({key: text for key in keys})


def fit(essence, plain, budget):
    """The first of the smaller forms that fits, or the smallest one."""
    budget = min(budget, max(OBJECT_SIZE_MAX - len(plain), STATE_SIZE_MIN))
    text = compress(plain)
    for larger_than in DIGESTED_FROM:
        if len(text) <= budget:
            break
        text = compress(json.dumps(digested(essence, larger_than), separators=(",", ":")))
    return text


def compress(plain):
    packed = base64.b64encode(zstandard.ZstdCompressor().compress(plain.encode())).decode()
    return json.dumps({COMPACT: {"form": "zstd", "data": packed}}, separators=(",", ":")) + "\n"


def as_text(value):
    return json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"))


def digest(value):
    hashed = hashlib.blake2b(as_text(value).encode(), digest_size=16).digest()
    return {DIGEST: base64.b64encode(hashed).decode()}


def digested(value, larger_than):
    """A copy with digests in place of large values; with the limit zero, of all at the top."""
    if isinstance(value, dict):
        part = digested if larger_than else lambda value, _: digest(value)
        return {key: part(value, larger_than) for key, value in value.items()}
    return digest(value) if len(as_text(value).encode()) > larger_than else value


def restore(old, new):
    """Puts the present values in place of the digests that they still have."""
    if not isinstance(old, dict):
        return old
    if set(old) == {DIGEST}:
        return new if digest(new) == old else old
    parts = new if isinstance(new, dict) else {}
    return {key: restore(value, parts.get(key)) for key, value in old.items()}
