// The official JavaScript client's informer on the cluster of KUBECONFIG: it must tell every change
// of a ConfigMap, once, and go on after its watch has ended.
import * as k8s from '@kubernetes/client-node';

const NAMESPACE = 'default';
const SECONDS_MAX = 120;

const config = new k8s.KubeConfig();
config.loadFromDefault();
const core = config.makeApiClient(k8s.CoreV1Api);

const path = `/api/v1/namespaces/${NAMESPACE}/configmaps`;
const selector = 'client=javascript';
const list = () => core.listNamespacedConfigMap({ namespace: NAMESPACE, labelSelector: selector });
const informer = k8s.makeInformer(config, path, list, selector);

const seen = [];
let wake = () => {};
for (const kind of ['add', 'update', 'delete']) {
  informer.on(kind, (object) => {
    seen.push(`${kind} ${object.metadata.name} ${object.data?.value}`);
    wake();
  });
}
informer.on('error', (error) => {
  // Watches end; informers have to be started again.
  console.error(`the watch ended: ${error}`);
  setTimeout(() => informer.start(), 100);
});

/** Resolves when the informer has told this, and nothing else since the last time. */
async function expect(...events) {
  const deadline = Date.now() + SECONDS_MAX * 1000;
  while (seen.length < events.length) {
    if (Date.now() > deadline) {
      throw new Error(`expected ${JSON.stringify(events)}, got ${JSON.stringify(seen)}`);
    }
    await new Promise((resolve) => {
      wake = resolve;
      setTimeout(resolve, 1000);
    });
  }
  const told = seen.splice(0);
  if (JSON.stringify(told) !== JSON.stringify(events)) {
    throw new Error(`expected ${JSON.stringify(events)}, got ${JSON.stringify(told)}`);
  }
  console.log(`told: ${told.join(', ')}`);
}

function configMap(name, value) {
  return { metadata: { name, labels: { client: 'javascript' } }, data: { value } };
}

const create = (name, value) =>
  core.createNamespacedConfigMap({ namespace: NAMESPACE, body: configMap(name, value) });

await create('before', '1');
await informer.start();
await expect('add before 1');

await create('later', '2');
await expect('add later 2');

const later = await core.readNamespacedConfigMap({ name: 'later', namespace: NAMESPACE });
later.data.value = '3';
await core.replaceNamespacedConfigMap({ name: 'later', namespace: NAMESPACE, body: later });
await expect('update later 3');

await core.patchNamespacedConfigMap(
  { name: 'later', namespace: NAMESPACE, body: { data: { value: '4' } } },
  k8s.setHeaderOptions('Content-Type', k8s.PatchStrategy.MergePatch),
);
await expect('update later 4');
if (informer.get('later', NAMESPACE).data.value !== '4') {
  throw new Error('the cache of the informer is out of date');
}

for (const name of ['before', 'later']) {
  await core.deleteNamespacedConfigMap({ name, namespace: NAMESPACE });
}
await expect('delete before 1', 'delete later 4');
await informer.stop();
console.log('6 passed, 0 failed');
process.exit(0);
