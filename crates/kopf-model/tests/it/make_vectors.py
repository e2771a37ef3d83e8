"""Asks the real Kopf how it stores things, for `kopf_vectors.json`.

Run with any Python that has kopf installed; the random seed is fixed.
"""
import json
import random
import sys

import kopf
from kopf._cogs.structs import bodies, diffs, patches, references

RANDOM = random.Random(20261115)
KINDS = ['KopfExample', 'ReplicaSet', 'Pod']
ANNOTATIONS = [
    'plain', 'example.com/note', 'kopf.dev/note', 'kopf.zalando.org/other', 'x.kopf.zalando.org/fn',
    'notkopf.zalando.org/fn', 'third.example.com/kopf-managed', 'third.example.com/fn',
    'kubectl.kubernetes.io/last-applied-configuration', 'my.op/kopf-managed', 'my.op/fn',
]
PREFIXES = [
    'kopf.zalando.org', 'my.op', 'a-rather-long-prefix.of-some-operator.example.com',
]
FIELDS = [
    'status.phase', 'metadata.finalizers', 'spec.a', 'status', 'status.none', 'metadata.labels',
]
IGNORED = ['spec.a', 'metadata.annotations', 'metadata.labels.app', 'data', 'spec.none.deep']


def tree(depth=3):
    kind = RANDOM.randrange(7 if depth else 5)
    if kind == 0:
        return None
    if kind == 1:
        # Python takes 0 and 1 for equal to the booleans; JSON does not.
        return RANDOM.randrange(2, 5)
    if kind == 2:
        return RANDOM.choice([True, False])
    if kind == 3:
        return RANDOM.choice(['x', 'ü', '\u007f\n"', '😀'])
    if kind == 4:
        return [1, {'k': 'v'}]
    return {RANDOM.choice('abcd'): tree(depth - 1) for _ in range(RANDOM.randrange(4))}


def some(items):
    return RANDOM.sample(items, RANDOM.randrange(len(items)))


def body():
    metadata = {'name': 'x', 'uid': 'u', 'resourceVersion': '1'}
    if RANDOM.random() < 0.7:
        metadata['labels'] = {key: 'v' for key in some(['app', 'tier'])}
    if RANDOM.random() < 0.8:
        metadata['annotations'] = {key: RANDOM.choice(['v', '{}']) for key in some(ANNOTATIONS)}
    if RANDOM.random() < 0.4:
        metadata['finalizers'] = ['f']
    if RANDOM.random() < 0.4:
        metadata['ownerReferences'] = [{'kind': RANDOM.choice(['Deployment', 'Other'])}]
    result = {'apiVersion': 'v1', 'kind': RANDOM.choice(KINDS), 'metadata': metadata}
    for key in some(['spec', 'status', 'data', 'rules']):
        result[key] = {'a': tree(), 'phase': tree(1)} if RANDOM.random() < 0.8 else {}
    return result


def essence_case():
    source = body()
    extra, ignored = some(FIELDS), some(IGNORED)
    prefix = RANDOM.choice(['kopf.zalando.org', 'my.op', 'fresh.op'])
    storage = kopf.AnnotationsDiffBaseStorage(prefix=prefix, ignored_fields=ignored)
    progress = kopf.SmartProgressStorage(prefix=prefix)
    essence = storage.build(body=bodies.Body(source), extra_fields=extra)
    essence = progress.clear(essence=essence)
    patch = patches.Patch()
    storage.store(body=bodies.Body(source), patch=patch, essence=essence)
    return {
        'body': source, 'extra': extra, 'ignored': ignored, 'prefix': prefix,
        'essence': essence, 'patch': dict(patch),
    }


def progress_case():
    source = body()
    prefix = RANDOM.choice(PREFIXES)
    size = RANDOM.choice([5, 30, 46, 47, 62, 63, 64, 100])
    key = ''.join(RANDOM.choice('abc/<>._-é') for _ in range(size))
    record = {
        'started': '2026-11-15T18:53:43.155912+00:00', 'stopped': None,
        'delayed': RANDOM.choice([None, '2026-11-15T18:53:43.855912+00:00']),
        'purpose': RANDOM.choice(['create', 'update', None]), 'retries': RANDOM.randrange(3),
        'success': False, 'failure': False,
        'message': RANDOM.choice([None, 'not ready ü 😀']),
        'subrefs': RANDOM.choice([None, ['a/b', 'a/c']]),
    }
    storage = kopf.SmartProgressStorage(prefix=prefix)
    patch, touch = patches.Patch(), patches.Patch()
    storage.store(key=key, record=record, body=bodies.Body(source), patch=patch)
    storage.touch(body=bodies.Body(source), patch=touch, value='now')
    return {
        'body': source, 'prefix': prefix, 'key': key, 'record': record,
        'patch': dict(patch), 'touch': dict(touch),
    }


def flat(items):
    return [[item.operation.value, list(item.field), item.old, item.new] for item in items]


def diff_case():
    old, new = tree(4), tree(4)
    path = [RANDOM.choice('abcd') for _ in range(RANDOM.randrange(3))]
    diff = diffs.diff(old, new)
    return {
        'old': old, 'new': new, 'path': path,
        'diff': flat(diff), 'reduced': flat(diffs.reduce(diff, tuple(path))),
        'left': flat(diffs.diff(old, new, scope=diffs.DiffScope.LEFT)),
    }


def selector_case():
    names = ['pods', 'Pod', 'pod', 'po', 'kopfexamples', 'kex', 'events', 'pods.v1', 'pods.v1.',
             'kex.kopf.dev', 'kex.v1.kopf.dev', 'kex.v1alpha1.kopf.dev', 'kex.v1x.kopf.dev']
    groups = ['kopf.dev', 'kopf.dev/v1', 'v1', '', 'x.y/v2beta1', 'events.k8s.io', 'a/b/v1']
    arguments = RANDOM.choice([
        [RANDOM.choice(names)],
        [RANDOM.choice(groups), RANDOM.choice(names)],
        [RANDOM.choice(['', 'kopf.dev']), RANDOM.choice(['v1', 'v2']), RANDOM.choice(names)],
    ])
    everything = RANDOM.random() < 0.2
    given = [*arguments[:-1], kopf.EVERYTHING] if everything else arguments
    selector = references.Selector(*given)
    return {
        'arguments': [*arguments[:-1], '*'] if everything else arguments,
        'matches': [selector.check(resource) for resource in RESOURCES],
        'selected': sorted(RESOURCES.index(resource) for resource in selector.select(RESOURCES)),
        'specific': selector.is_specific,
    }


def resource(group, version, plural, kind, short, preferred):
    return references.Resource(
        group=group, version=version, plural=plural, kind=kind, singular=kind.lower(),
        shortcuts=frozenset([short]), categories=frozenset(['all']), subresources=frozenset(),
        namespaced=True, preferred=preferred, verbs=frozenset())


RESOURCES = [
    resource('', 'v1', 'pods', 'Pod', 'po', True),
    resource('metrics.k8s.io', 'v1', 'pods', 'PodMetrics', 'pm', True),
    resource('kopf.dev', 'v1', 'kopfexamples', 'KopfExample', 'kex', True),
    resource('kopf.dev', 'v1alpha1', 'kopfexamples', 'KopfExample', 'kex', False),
    resource('x.y', 'v1', 'kopfexamples', 'KopfExample', 'kex', True),
    resource('', 'v1', 'events', 'Event', 'ev', True),
    resource('events.k8s.io', 'v1', 'events', 'Event', 'ev', True),
]


def namespace_case():
    globs = ['a*', '!ab*', 'abc', '*', '!*c', '?b', '[a-b]*', '[!a]*', 'x', '!x', 'a.c', '']
    pattern = RANDOM.choice([',', ', ']).join(
        RANDOM.choice(globs) for _ in range(RANDOM.randrange(1, 4)))
    names = ['a', 'ab', 'abc', 'b', 'bb', 'x', 'xc', 'a.c', 'axc']
    return {
        'pattern': pattern,
        'names': {name: references.match_namespace(name, pattern) for name in names},
    }


def main():
    vectors = {
        'kopf': kopf.__version__,
        'essences': [essence_case() for _ in range(150)],
        'progress': [progress_case() for _ in range(60)],
        'diffs': [diff_case() for _ in range(150)],
        'resources': [
            {'group': r.group, 'version': r.version, 'plural': r.plural, 'kind': r.kind,
             'shortcuts': sorted(r.shortcuts), 'preferred': r.preferred} for r in RESOURCES],
        'selectors': [selector_case() for _ in range(200)],
        'namespaces': [namespace_case() for _ in range(100)],
    }
    json.dump(vectors, sys.stdout, indent=None, separators=(',', ':'), ensure_ascii=True)
    sys.stdout.write('\n')


if __name__ == '__main__':
    main()
