// Tests of the pages with a real operator in a real browser. Run by `cargo xtask ui --test`.

import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { request } from "node:http";
import path from "node:path";
import { create, patch } from "./kube.mjs";
import { ask, openWorld, start, stop, until } from "./world.mjs";

const KOPF = process.env.KOPF ?? path.resolve("../target/debug/kopf");
const PATIENCE = Number(process.env.PATIENCE ?? 120_000);
const tests = [];
const test = (name, run) => tests.push([name, run]);

// Waits until a text is visible.
const sees = (page, text, within = "main") => until(`${text} is on the screen`, async () => (await page.locator(within).innerText()).includes(text));

const go = async (page, hash) => {
  await page.evaluate((hash) => { location.hash = hash; }, hash);
};

const row = (page, name) => page.locator(".grid .whole .row", { has: page.locator(`[title="default/${name}"]`) });

const card = (page, title) => page.locator(".card", { has: page.getByRole("heading", { name: title, exact: true }) });

test("the overview puts problems first and names them", async ({ page }) => {
  await go(page, "#/");
  const problems = page.locator(".problems");
  await until("all problems are told", async () => {
    const text = await problems.innerText();
    return text.includes("databases default/sessions") && text.includes("databases default/reports");
  });
  const first = await page.locator(".problems li").first().innerText();
  assert.match(first, /✕ Error/, "errors come before warnings");
  const text = await problems.innerText();
  assert.match(text, /Failed permanently/);
  assert.match(text, /there is no engine dbase/);
  assert.match(text, /900 GB do not fit/);
  assert.match(text, /next attempt (in \d+ s|now)/);
  assert.ok(!text.includes("default/orders"), "what is settled is no problem");
});

test("the overview shows watches, charts and kinds", async ({ page }) => {
  await go(page, "#/");
  await sees(page, "databases.v1.shop.dev");
  await sees(page, "✓ watching");
  await until("charts have lines", async () => (await page.locator(".chart path.line").first().getAttribute("d")).includes("L"));
  const charts = await page.locator(".charts").innerText();
  for (const title of ["Queue", "Handler calls", "Latency", "API requests", "Memory"]) assert.ok(charts.includes(title), title);
  assert.match(charts, /\d MB/);
  await sees(page, "✓ ready", "header.top");
  await sees(page, "Operator shop at", "header.top");
});

test("the table has a readable state for every object", async ({ page }) => {
  await go(page, "#/objects/databases.shop.dev");
  for (const [name, state] of [
    ["orders", "Settled"], ["customers", "Settled"], ["sessions", "Failed"], ["reports", /Retrying (in \d+ s|now)/], ["archive", "Running"],
  ]) {
    await until(`${name} is ${state}`, async () => {
      const text = await row(page, name).innerText();
      return typeof state === "string" ? text.includes(state) : state.test(text);
    });
  }
  await go(page, "#/objects/websites.shop.dev");
  await until("the preview waits", async () => (await row(page, "preview").innerText()).includes("Waiting for children"));
  await until("the storefront is settled", async () => (await row(page, "storefront").innerText()).includes("Settled"));
});

test("the table is searched and filtered", async ({ page }) => {
  await go(page, "#/objects/databases.shop.dev");
  await page.locator(".grid .whole .row").first().waitFor();
  await page.keyboard.press("/");
  await page.keyboard.type("dbase");
  await until("one row is left", async () => (await page.locator(".grid .whole .row").count()) === 1);
  await sees(page, "sessions", ".grid");
  await page.locator("[data-search]").fill("");
  await page.getByRole("button", { name: /Settled/ }).click();
  await until("only settled ones are left", async () => {
    const texts = await page.locator(".grid .whole .row").allInnerTexts();
    return texts.length > 0 && texts.every((text) => text.includes("Settled"));
  });
});

test("the keyboard is enough", async ({ page }) => {
  await go(page, "#/");
  await page.keyboard.press("g");
  await page.keyboard.press("h");
  await until("the handlers are open", async () => (await page.locator("h1").innerText()) === "Handlers");
  await page.keyboard.press("g");
  await page.keyboard.press("b");
  await page.locator(".grid .whole .row").first().waitFor();
  await page.keyboard.press("j");
  await page.keyboard.press("j");
  const chosen = (await page.locator(".grid .chosen .name").innerText()).split("/").pop();
  await page.keyboard.press("Enter");
  await until("the object is open", async () => (await page.locator("h1").innerText()).endsWith(chosen));
  await page.keyboard.press("Escape");
  await page.locator(".grid").waitFor();
  await page.keyboard.press("?");
  await page.getByRole("dialog").waitFor();
  await page.keyboard.press("Escape");
  await until("the help is gone", async () => (await page.getByRole("dialog").count()) === 0);
});

test("a retried object tells its attempts, its error and when it wakes up", async ({ page }) => {
  await go(page, "#/object/databases.shop.dev/default/reports");
  await sees(page, "Created: the object is new to the operator");
  await sees(page, "failed and will be retried");
  const now = await page.locator(".now").innerText();
  assert.match(now, /900 GB do not fit: 500 GB are free/);
  assert.match(now, /the next attempt of provision (in \d+ s|now)/);
  assert.match(now, /Wakes up at/);
  const persisted = await card(page, "Persisted state").innerText();
  assert.match(persisted, /provision create/);
  assert.match(persisted, /\d+ attempts?, (next attempt|due)/);
});

test("it is told which filter kept a handler from being called", async ({ page }) => {
  await go(page, "#/object/databases.shop.dev/default/customers");
  const whys = card(page, "Handlers that are not called");
  await until("the reason is told", async () => /page_on_call\s+the label tier is missing/.test(await whys.innerText()));
});

test("a running handler is told while it runs", async ({ page }) => {
  await go(page, "#/object/databases.shop.dev/default/archive");
  await sees(page, "is running");
  assert.match(await page.locator(".now").innerText(), /restore.*, attempt 1, for \d+/s);
});

test("a change is told as a diff with the command to reproduce it", async ({ page, world }) => {
  await change(world, "orders", { spec: { size: 25 } });
  await go(page, "#/object/databases.shop.dev/default/orders");
  await sees(page, "Changed since it was last handled");
  const diff = page.locator(".timeline .diff").first();
  assert.match(await diff.innerText(), /spec\.size\s+−\s*10\s+\+\s*25/);
  await sees(page, "resize");
  await page.getByText("Reproduce with kubectl").first().click();
  await sees(page, `patch databases.shop.dev orders -n default --type merge -p '{"spec":{"size":25}}'`);
  await sees(page, "status.resize");
});

test("children are a tree with their readiness", async ({ page }) => {
  await go(page, "#/object/websites.shop.dev/default/preview");
  const children = card(page, "Children");
  await until("the tree is there", async () => {
    const text = await children.innerText();
    return /Deployment\s+preview/.test(text) && /ReplicaSet/.test(text) && /Pod/.test(text);
  });
  assert.ok((await children.locator(".tree .tree .tree").count()) > 0, "Pods are below ReplicaSets below Deployments");
  assert.match(await page.locator(".title").innerText(), /Waiting for children/);
});

test("a deletion that hangs says who holds it", async ({ page, world }) => {
  await ask(world.url, "/api/do/delete", { method: "POST", body: JSON.stringify({ resource: "databases.shop.dev", namespace: "default", name: "legacy" }) });
  await go(page, "#/objects/databases.shop.dev");
  await until("it is being deleted", async () => (await row(page, "legacy").innerText()).includes("Deleting"));
  await go(page, "#/object/databases.shop.dev/default/legacy");
  await until("it says why", async () => /held by drop_database: 2 connections are open/.test(await page.locator(".now").innerText()));
});

test("handlers tell their conditions, rights, latencies and errors", async ({ page }) => {
  await go(page, "#/handlers");
  const provision = card(page, "provision");
  await until("it was called", async () => /\d+ calls/.test(await provision.innerText()));
  const text = await provision.innerText();
  assert.match(text, /Creates the database/);
  assert.match(text, /async fn provision\(spec: &Spec, name: Name\) -> Result<String>/);
  assert.match(text, /list, watch, patch/);
  assert.match(text, /Errors by class: .*permanent/s);
  assert.ok((await provision.locator(".bucket").count()) === 9);
  const filtered = card(page, "page_on_call");
  assert.match(await filtered.innerText(), /label tier is `live`/);
});

test("pods of the embedded cluster are made to crash and to recover", async ({ page }) => {
  await go(page, "#/cluster/pods");
  const pod = page.locator("tbody tr", { hasText: "storefront" }).first();
  await until("it runs", async () => (await pod.innerText()).includes("Running"));
  await pod.getByLabel("Simulate").selectOption("Crash");
  await until("it crashes", async () => /CrashLoopBackOff|Error/.test(await pod.innerText()));
  await pod.getByLabel("Simulate").selectOption("Ready");
  await until("it runs again", async () => /1\/1\s+Running/.test(await pod.innerText()));
});

test("events and any resource of the cluster can be read", async ({ page }) => {
  await go(page, "#/cluster/events");
  await sees(page, "failed permanently: there is no engine");
  await go(page, "#/cluster/deployments.apps");
  await sees(page, "storefront");
  await page.locator("tbody a", { hasText: "storefront" }).click();
  await sees(page, "apiVersion: apps/v1");
  assert.ok(!(await page.locator("main").innerText()).includes("Not handled yet"), "the operator does not handle Deployments");
  await page.locator(".owners a", { hasText: "Website storefront" }).click();
  await until("its owner is open", async () => (await page.locator(".title").innerText()).includes("Settled"));
});

test("a world is saved and brought back", async ({ page, world }) => {
  page.on("dialog", (dialog) => dialog.accept());
  await go(page, "#/cluster/configmaps");
  await page.getByLabel("Name of the snapshot").fill("before");
  await page.getByRole("button", { name: "Save a snapshot" }).click();
  await sees(page, "Snapshot saved.");
  await ask(world.url, "/api/do/delete", { method: "POST", body: JSON.stringify({ resource: "databases.shop.dev", namespace: "default", name: "customers" }) });
  await until("customers are gone", async () => !(await rows(world)).includes("customers"));
  await page.locator(".worlds li", { hasText: "before" }).getByRole("button", { name: "Restore" }).click();
  await sees(page, "restored.");
  await until("customers are back", async () => (await rows(world)).includes("customers"));
});

test("an object that failed is retried, one is paused and resumed", async ({ page, world }) => {
  await change(world, "sessions", { spec: { engine: "redis" } });
  await go(page, "#/object/databases.shop.dev/default/sessions");
  await page.getByRole("button", { name: "Run again" }).waitFor();
  page.on("dialog", (dialog) => dialog.accept());
  await page.getByRole("button", { name: "Run again" }).click();
  await until("it is settled", async () => (await page.locator(".title").innerText()).includes("Settled"));
  await go(page, "#/object/databases.shop.dev/default/carts");
  await page.getByRole("button", { name: "Pause" }).click();
  await until("it is paused", async () => (await page.locator(".title").innerText()).includes("Paused"));
  await change(world, "carts", { spec: { size: 3 } });
  await until("the change is seen", async () => (await card(page, "Persisted state").innerText()).includes("differs"));
  await page.getByRole("button", { name: "Resume" }).click();
  await sees(page, "status.resize");
  await until("it is settled", async () => (await page.locator(".title").innerText()).includes("Settled"));
});

test("all failing objects of a kind are retried at once", async ({ page, world }) => {
  const attempts = async () => {
    const { body } = await ask(world.url, "/api/objects?resource=databases.shop.dev&since=0");
    return body.rows.find((row) => row.name === "reports").attempts ?? 0;
  };
  const before = await attempts();
  page.on("dialog", (dialog) => dialog.accept());
  await go(page, "#/objects/databases.shop.dev");
  await page.getByRole("button", { name: /Retry \d+ failing objects?/ }).click();
  await sees(page, "Retried");
  // The handler asks for 20 s between attempts.
  await until("it was tried again", async () => (await attempts()) > before);
});

test("who has no token gets nothing, and no question changes anything", async ({ world }) => {
  const none = await ask(world.url, "/api/overview", { headers: { authorization: "" } });
  assert.equal(none.status, 401);
  const wrong = await ask(world.url, "/api/overview", { headers: { authorization: "Bearer x" } });
  assert.equal(wrong.status, 401);
  const changed = await ask(world.url, "/api/do/pause?resource=databases.shop.dev&namespace=default&name=orders");
  assert.equal(changed.status, 405);
  const { hostname, port } = new URL(world.url);
  const rebound = await new Promise((resolve, reject) => {
    request({ hostname, port, path: "/", headers: { host: "evil.example" } }, (response) => resolve(response.statusCode)).on("error", reject).end();
  });
  assert.equal(rebound, 421);
  const answered = await ask(world.url, "/api/overview");
  assert.match(answered.headers.get("content-security-policy"), /default-src 'none'/);
});

test("without the token the page says what to do", async ({ world }) => {
  const context = await world.browser.newContext();
  const page = await context.newPage();
  await page.goto(new URL(world.url).origin);
  await sees(page, "The token is missing", "body");
  await context.close();
});

test("narrow windows need no sideways scrolling", async ({ page }) => {
  await page.setViewportSize({ width: 380, height: 800 });
  for (const hash of ["#/", "#/objects/databases.shop.dev", "#/object/databases.shop.dev/default/reports", "#/handlers", "#/cluster/pods", "#/object/deployments.apps/default/storefront"]) {
    await go(page, hash);
    await page.locator("h1").waitFor();
    if (hash.includes("deployments")) await sees(page, "apiVersion: apps/v1");
    const beyond = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
    assert.ok(beyond <= 0, `${hash} is ${beyond} pixels too wide`);
  }
  await page.setViewportSize({ width: 1280, height: 800 });
});

test("kopf ui shows the same for an operator that runs elsewhere", async ({ world }) => {
  const served = await start(KOPF, ["ui", "--no-open"], /The web UI is at (\S+)/, { env: { ...process.env, KUBECONFIG: world.kubeconfig } });
  try {
    const context = await world.browser.newContext();
    const page = await context.newPage();
    await page.goto(served.found);
    await sees(page, "databases default/reports");
    assert.equal(await page.locator(".side-nav").getByText("Embedded cluster").count(), 0, "it controls no cluster");
    await context.close();
  } finally {
    await stop(served.child);
  }
});

test("ten thousand rows scroll smoothly", async ({ world }) => {
  await manyObjects(world, 10_000);
  const context = await world.browser.newContext();
  const page = await context.newPage();
  await page.goto(world.url);
  await go(page, "#/objects/orders.shop.dev");
  await until("all rows are known", async () => /All 10,001/.test(await page.locator(".phases").innerText()));
  const drawn = await page.locator(".grid .whole .row").count();
  assert.ok(drawn < 100, `only what is visible is drawn, not ${drawn} rows`);
  await page.locator(".frame").evaluate((frame) => { frame.scrollTop = frame.scrollHeight; });
  await until("the last rows are drawn", async () => {
    const indexes = await page.locator(".grid .whole .row").evaluateAll((rows) => rows.map((row) => Number(row.getAttribute("aria-rowindex"))));
    return Math.max(...indexes) === 10_002;
  });
  await page.locator("[data-search]").fill("many-9999");
  await until("one is found", async () => (await page.locator(".grid .whole .row").count()) === 1);
  await context.close();
});

test("an operator that is gone is told, and what was known stays", async ({ page, world }) => {
  await go(page, "#/");
  await sees(page, "databases default/reports");
  const before = page.url();
  await stop(world.operator);
  await until("it is told", async () => (await page.locator("body").innerText()).includes("Connection lost"));
  await sees(page, "databases default/reports");
  assert.equal(page.url(), before);
});

async function rows(world) {
  const { body } = await ask(world.url, "/api/objects?resource=databases.shop.dev&since=0");
  return body.rows.map((row) => row.name);
}

const DATABASES = "/apis/shop.dev/v1/namespaces/default/databases";

const change = (world, name, content) => patch(world, `${DATABASES}/${name}`, content);

async function manyObjects(world, count) {
  const one = (index) => create(world, "/apis/shop.dev/v1/namespaces/default/orders", {
    apiVersion: "shop.dev/v1", kind: "Order", metadata: { name: `many-${index}` }, spec: { item: "a book" },
  });
  for (let first = 0; first < count; first += 50) {
    await Promise.all(Array.from({ length: 50 }, (_, offset) => one(first + offset)));
  }
}

const only = process.argv[2];
const world = await openWorld();
let failed = 0;
try {
  const context = await world.browser.newContext({ viewport: { width: 1280, height: 800 } });
  const requested = new Set();
  const complaints = [];
  for (const [name, run] of tests) {
    if (only && !name.includes(only)) continue;
    const page = await context.newPage();
    page.setDefaultTimeout(PATIENCE);
    page.on("request", (it) => requested.add(new URL(it.url()).origin));
    page.on("pageerror", (error) => complaints.push(String(error)));
    page.on("console", (message) => message.type() === "error" && /Content Security|Refused to/.test(message.text()) && complaints.push(message.text()));
    await page.goto(world.url);
    try {
      await run({ page, world });
      console.log(`ok      ${name}`);
    } catch (error) {
      failed += 1;
      console.log(`FAILED  ${name}\n${error.stack}`);
      if (process.env.FAILURES && !page.isClosed()) await page.screenshot({ path: path.join(process.env.FAILURES, `${name.replaceAll(/\W+/g, "-")}.png`) });
    }
    await page.close();
  }
  const origins = [...requested];
  if (origins.some((origin) => origin !== new URL(world.url).origin)) {
    failed += 1;
    console.log(`FAILED  the pages ask nobody else: ${origins}`);
  }
  if (complaints.length > 0) {
    failed += 1;
    console.log(`FAILED  no errors in the pages: ${complaints.join("\n")}`);
  }
  if (failed > 0) await writeFile(path.join(process.env.FAILURES ?? "/dev", process.env.FAILURES ? "operator.log" : "null"), world.said());
} finally {
  await world.close();
}
console.log(failed === 0 ? "All browser tests passed." : `${failed} failed.`);
process.exit(failed === 0 ? 0 : 1);
