"""Asks the real Kopf how handlers progress, for `kopf_states.json`.

Every case is an object that Kopf has handled for a while, and what Kopf makes of it when it
continues, for the same reason or another. Run with any Python that has kopf installed.
"""
import asyncio
import datetime
import json
import random
import sys

import kopf
from kopf._cogs.structs import bodies, patches
from kopf._core.actions import execution, progression

RANDOM = random.Random(20261115)
NOW = datetime.datetime(2026, 11, 15, tzinfo=datetime.timezone.utc)
IDS = ['a', 'b/spec.field', 'c' * 50, 'd.<locals>.fn']
REASONS = ['create', 'update', 'delete', 'resume']


def basetime():
    return NOW - datetime.timedelta(seconds=asyncio.get_running_loop().time())


progression._get_basetime = basetime


def handler(id):
    return execution.Handler(
        id=id, fn=lambda **_: None, param=None,
        errors=None, timeout=None, retries=None, backoff=None)


def outcome(id):
    kind = RANDOM.randrange(5)
    subrefs = [f'{id}/sub'] if RANDOM.random() < 0.3 else []
    if kind == 0:
        return None
    if kind == 1:
        return execution.Outcome(final=True, result={'r': 1}, subrefs=subrefs)
    if kind == 2:
        error = kopf.PermanentError('gave up ü')
        return execution.Outcome(final=True, exception=error, subrefs=subrefs)
    delay = RANDOM.choice([None, 100])
    return execution.Outcome(
        final=False, exception=kopf.TemporaryError('soon'), delay=delay, subrefs=subrefs)


async def case():
    storage = kopf.SmartProgressStorage()
    owned = [handler(id) for id in IDS]
    body = {'metadata': {'name': 'x'}}
    reason = RANDOM.choice(REASONS)
    selected = RANDOM.sample(owned, RANDOM.randrange(1, len(owned) + 1))
    for _ in range(RANDOM.randrange(1, 3)):
        state = progression.State.from_storage(
            body=bodies.Body(body), storage=storage, handlers=owned)
        state = state.with_purpose(reason).with_handlers(selected)
        outcomes = {h.id: outcome(h.id) for h in selected if state[h.id].awakened}
        state = state.with_outcomes({id: o for id, o in outcomes.items() if o is not None})
        patch = patches.Patch()
        state.store(body=bodies.Body(body), patch=patch, storage=storage)
        body['metadata'].setdefault('annotations', {}).update(
            patch.get('metadata', {}).get('annotations', {}))

    then = RANDOM.choice([reason, RANDOM.choice(REASONS)])
    again = RANDOM.sample(owned, RANDOM.randrange(0, len(owned) + 1))
    state = progression.State.from_storage(
        body=bodies.Body(body), storage=storage, handlers=owned)
    state = state.with_purpose(then).with_handlers(again)
    extras = {purpose: list(counters) for purpose, counters in state.extras.items()}
    patch = patches.Patch()
    if extras:
        state = state.with_purpose(purpose=then, handlers=again)
    if state.extras:
        state.purge(body=bodies.Body(body), patch=patch, storage=storage, handlers=owned)
    purge = patches.Patch()
    state.purge(body=bodies.Body(body), patch=purge, storage=storage, handlers=owned)
    return {
        'body': body, 'reason': then, 'selected': [h.id for h in again],
        'extras': extras, 'counts': list(state.counts), 'done': state.done,
        'due': [h.id for h in again if state[h.id].awakened],
        'retries': {h.id: state[h.id].retries for h in again},
        'delays': sorted(round(delay, 1) for delay in state.delays),
        'early': dict(patch), 'purge': dict(purge),
    }


async def main():
    cases = [await case() for _ in range(150)]
    json.dump({'kopf': kopf.__version__, 'ids': IDS, 'cases': cases}, sys.stdout,
              separators=(',', ':'))
    sys.stdout.write('\n')


if __name__ == '__main__':
    asyncio.run(main())
