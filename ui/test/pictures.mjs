// The pictures of the README and the book. Run by `cargo xtask ui --pictures`.

import { mkdir } from "node:fs/promises";
import { patch } from "./kube.mjs";
import { ask, go, openWorld, until } from "./world.mjs";

const OUT = process.env.PICTURES ?? "../docs/src/img";

const VIEWS = [
  ["overview", "#/", { width: 1280, height: 900 }],
  ["objects", "#/objects/databases.shop.dev", { width: 1280, height: 640 }],
  ["object", "#/object/databases.shop.dev/default/reports", { width: 1280, height: 900 }],
  ["change", "#/object/databases.shop.dev/default/orders", { width: 1280, height: 900 }],
  ["children", "#/object/websites.shop.dev/default/preview", { width: 1280, height: 900 }],
  ["handlers", "#/handlers", { width: 1280, height: 900 }],
  ["cluster", "#/cluster/pods", { width: 1280, height: 720 }],
  ["narrow", "#/object/databases.shop.dev/default/reports", { width: 400, height: 860 }],
];

await mkdir(OUT, { recursive: true });
const world = await openWorld();
try {
  const post = (path, body) => ask(world.url, path, { method: "POST", body: JSON.stringify(body) });
  await until("the operator is ready", async () => (await ask(world.url, "/api/overview")).body?.status?.ready);
  await until("objects are settled", async () => {
    const { body } = await ask(world.url, "/api/objects?resource=databases.shop.dev&since=0");
    return body.rows?.some((row) => row.name === "orders" && row.phase === "settled");
  });
  await post("/api/do/delete", { resource: "databases.shop.dev", namespace: "default", name: "legacy" });
  await patch(world, "/apis/shop.dev/v1/namespaces/default/databases/orders", { spec: { size: 25 } });
  await post("/api/do/save", { name: "before the migration" });
  // Charts need a few minutes to show something.
  const seconds = Number(process.env.SECONDS_BEFORE ?? 90);
  for (let round = 0; round < seconds; round += 10) {
    await patch(world, "/apis/shop.dev/v1/namespaces/default/databases/customers", { spec: { size: 5 + round } });
    await new Promise((resolve) => setTimeout(resolve, 10_000));
    await ask(world.url, "/api/overview");
  }
  for (const theme of ["light", "dark"]) {
    const page = await world.openPage({ colorScheme: theme, deviceScaleFactor: 1.5 });
    await page.goto(world.url);
    for (const [name, hash, size] of VIEWS) {
      await page.setViewportSize(size);
      await go(page, hash);
      await page.waitForTimeout(name === "children" ? 3500 : 1800);
      await page.screenshot({ path: `${OUT}/ui-${name}-${theme}.png` });
      console.log(`ui-${name}-${theme}.png`);
    }
    await page.context().close();
  }
} finally {
  await world.close();
}
