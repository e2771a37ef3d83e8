// Tests of the pages with a real operator in a real browser. Run by `cargo xtask ui --test`.

import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { request } from "node:http";
import path from "node:path";
import { create, patch } from "./kube.mjs";
import { ask, go, openWorld, start, stop, until } from "./world.mjs";

const KOPF = process.env.KOPF ?? path.resolve("../target/debug/kopf");
const DATABASES = "/apis/shop.dev/v1/namespaces/default/databases";
const tests = [];
const test = (name, run) => tests.push([name, run]);

// Waits until a text is visible.
const sees = (page, text, within = "main") => until(`${text} is on the screen`, async () => (await page.locator(within).innerText()).includes(text));

// Waits until all assertions about the texts of an element hold at once; states change while a test looks.
const reads = (locator, ...patterns) => until(`the text matches ${patterns.join(" and ")}`, async () => {
  const text = await locator.innerText();
  for (const pattern of patterns) assert.match(text, pattern);
  return true;
});

const row = (page, name) => page.locator(".grid .whole .row", { has: page.locator(`[title="default/${name}"]`) });

const card = (page, title) => page.locator(".card", { has: page.getByRole("heading", { name: title, exact: true }) });

test("the overview lists problems first", async ({ page }) => {
  await go(page, "#/");
  const problems = page.locator(".problems");
  await reads(problems, /databases default\/sessions/, /databases default\/reports/, /Failed permanently/, /there is no engine dbase/,
    /900 GB do not fit/, /next attempt (in \d+ s|now)/);
  // Errors come before warnings.
  await reads(problems.locator("li").first(), /✕ Error/);
  assert.ok(!(await problems.innerText()).includes("default/orders"), "settled objects are not problems");
});

test("the overview shows watches, charts and kinds", async ({ page }) => {
  await go(page, "#/");
  await sees(page, "databases.v1.shop.dev");
  await sees(page, "✓ watching");
  await until("charts have lines", async () => (await page.locator(".chart path.line").first().getAttribute("d")).includes("L"));
  await reads(page.locator(".charts"), /Queue/, /Handler calls/, /Latency/, /API requests/, /Memory/, /\d MB/);
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

test("the table can be searched and filtered", async ({ page }) => {
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

test("everything can be reached with the keyboard", async ({ page }) => {
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

test("the chosen row stays chosen when rows move", async ({ page, world }) => {
  await go(page, "#/objects/databases.shop.dev");
  await page.locator(".grid .whole .row").first().waitFor();
  await page.keyboard.press("j");
  await page.keyboard.press("End");
  const chosen = page.locator(".grid .chosen .name");
  await reads(chosen, /orders/);
  await create(world, DATABASES, {
    apiVersion: "shop.dev/v1", kind: "Database", metadata: { name: "accounts" }, spec: { size: 1, engine: "redis" },
  });
  await until("it is settled", async () => (await row(page, "accounts").innerText()).includes("Settled"));
  await reads(chosen, /orders/);
  await page.keyboard.press("Enter");
  await reads(page.locator("h1"), /orders$/);
});

test("a retried object shows its attempts, its error and its next attempt", async ({ page }) => {
  await go(page, "#/object/databases.shop.dev/default/reports");
  await sees(page, "Created: the object is new to the operator");
  await sees(page, "failed and will be retried");
  await reads(page.locator(".now"), /900 GB do not fit: 500 GB are free/, /the next attempt of provision (in \d+ s|now)/, /Wakes up at/);
  await reads(card(page, "Persisted state"), /provision create/, /\d+ attempts?, (next attempt|due)/);
});

test("the filter that excludes a handler is shown", async ({ page }) => {
  await go(page, "#/object/databases.shop.dev/default/customers");
  await reads(card(page, "Handlers that are not called"), /page_on_call\s+the label tier is missing/);
});

test("a running handler is shown while it runs", async ({ page }) => {
  await go(page, "#/object/databases.shop.dev/default/archive");
  await sees(page, "is running");
  await reads(page.locator(".now"), /restore.*, attempt 1, for \d+/s);
});

test("a change is shown as a diff with the command to reproduce it", async ({ page, world }) => {
  await change(world, "orders", { spec: { size: 25 } });
  await go(page, "#/object/databases.shop.dev/default/orders");
  await sees(page, "Changed since it was last handled");
  await reads(page.locator(".timeline .diff").first(), /spec\.size\s+−\s*10\s+\+\s*25/);
  await sees(page, "resize");
  await page.getByText("Reproduce with kubectl").first().click();
  await sees(page, `patch databases.shop.dev orders -n default --type merge -p '{"spec":{"size":25}}'`);
  await sees(page, "status.resize");
});

test("children are a tree with their readiness", async ({ page }) => {
  await go(page, "#/object/websites.shop.dev/default/preview");
  const children = card(page, "Children");
  await reads(children, /Deployment\s+preview/, /ReplicaSet/, /Pod/);
  await until("Pods are below ReplicaSets below Deployments", async () => (await children.locator(".tree .tree .tree").count()) > 0);
  await reads(page.locator(".title"), /Waiting for children/);
});

test("a stuck deletion shows what holds it", async ({ page, world }) => {
  await ask(world.url, "/api/do/delete", { method: "POST", body: JSON.stringify({ resource: "databases.shop.dev", namespace: "default", name: "legacy" }) });
  await go(page, "#/objects/databases.shop.dev");
  await until("it is being deleted", async () => (await row(page, "legacy").innerText()).includes("Deleting"));
  await go(page, "#/object/databases.shop.dev/default/legacy");
  await until("it says why", async () => /held by drop_database: 2 connections are open/.test(await page.locator(".now").innerText()));
});

test("handlers show their conditions, rights, latencies and errors", async ({ page }) => {
  await go(page, "#/handlers");
  const provision = card(page, "provision");
  await reads(provision, /\d+ calls/, /Creates the database/, /async fn provision\(spec: &Spec, name: Name\) -> Result<String>/,
    /list, watch, patch/, /Errors by class: .*permanent/s);
  assert.equal(await provision.locator(".bucket").count(), 9);
  await reads(card(page, "page_on_call"), /label tier is `live`/);
});

test("pods of the embedded cluster can crash and recover", async ({ page }) => {
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

test("a snapshot is saved and restored", async ({ page, world }) => {
  page.on("dialog", (dialog) => dialog.accept());
  await go(page, "#/cluster/configmaps");
  await page.getByLabel("Name of the snapshot").fill("before");
  await page.getByRole("button", { name: "Save a snapshot" }).click();
  await sees(page, "Snapshot saved.");
  await ask(world.url, "/api/do/delete", { method: "POST", body: JSON.stringify({ resource: "databases.shop.dev", namespace: "default", name: "customers" }) });
  await until("customers are gone", async () => !(await rows(world)).includes("customers"));
  await page.locator(".snapshots li", { hasText: "before" }).getByRole("button", { name: "Restore" }).click();
  await sees(page, "restored.");
  await until("customers are back", async () => (await rows(world)).includes("customers"));
});

test("objects can be run again, paused and resumed", async ({ page, world }) => {
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

test("all failing objects of a kind can be retried at once", async ({ page, world }) => {
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

test("requests without a token, with GET or for another host are rejected", async ({ world }) => {
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
  const page = await world.openPage();
  await page.goto(new URL(world.url).origin);
  await sees(page, "The token is missing", "body");
  await page.context().close();
});

// The contrast of two colours as WCAG defines it; 4.5 is enough for text.
function contrast(one, other) {
  const luminance = (colour) => {
    const channels = colour.match(/[\d.]+/g).slice(0, 3).map((it) => Number(it) / 255);
    const [red, green, blue] = channels.map((it) => (it <= 0.03928 ? it / 12.92 : ((it + 0.055) / 1.055) ** 2.4));
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
  };
  const [dark, light] = [luminance(one), luminance(other)].sort((a, b) => a - b);
  return (light + 0.05) / (dark + 0.05);
}

test("both themes have enough contrast, and the choice is kept", async ({ page }) => {
  await go(page, "#/objects/databases.shop.dev");
  await page.locator(".grid .chip").first().waitFor();
  const colours = () => page.locator("main h1, .grid .chip, .grid .details, .side-nav a").evaluateAll((elements) => elements.map((element) => {
    let behind = element;
    const colour = (it) => getComputedStyle(it).backgroundColor;
    while (/^rgba\(.*, 0\)$|^transparent$/.test(colour(behind))) behind = behind.parentElement;
    return [element.textContent, getComputedStyle(element).color, colour(behind)];
  }));
  const backgrounds = [];
  for (const theme of ["light", "dark"]) {
    await page.locator("header.top select").selectOption(theme);
    await until(`it is ${theme}`, () => page.evaluate((theme) => document.documentElement.dataset.theme === theme, theme));
    backgrounds.push(await page.evaluate(() => getComputedStyle(document.body).backgroundColor));
    for (const [text, front, back] of await colours()) {
      assert.ok(contrast(front, back) >= 4.5, `${theme}: "${text}" is ${front} on ${back}`);
    }
  }
  assert.ok(contrast(...backgrounds) > 10, "one is light, the other is dark");
  await page.reload();
  await page.locator("h1").waitFor();
  assert.equal(await page.evaluate(() => getComputedStyle(document.body).backgroundColor), backgrounds[1]);
  await page.locator("header.top select").selectOption("auto");
});

test("every state has a sign and a word of its own", async ({ page }) => {
  const seen = new Map();
  for (const kind of ["databases.shop.dev", "websites.shop.dev"]) {
    await go(page, `#/objects/${kind}`);
    await page.locator(".grid .chip").first().waitFor();
    for (const text of await page.locator(".grid .chip").allInnerTexts()) {
      const [, sign, word] = /^(\S+)\s+(\w+)/.exec(text);
      assert.equal(seen.get(sign) ?? word, word, `${sign} means ${seen.get(sign)} and ${word}`);
      seen.set(sign, word);
    }
  }
  assert.ok(seen.size >= 4, [...seen.values()].join(", "));
});

test("narrow windows need no horizontal scrolling", async ({ page }) => {
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
  const served = await start(KOPF, ["ui", "--no-open"], /The web UI is at (\S+)\s/, { env: { ...process.env, KUBECONFIG: world.kubeconfig } });
  try {
    const page = await world.openPage();
    await page.goto(served.found);
    await sees(page, "databases default/reports");
    assert.equal(await page.locator(".side-nav").getByText("Embedded cluster").count(), 0, "it controls no cluster");
    await page.context().close();
  } finally {
    await stop(served.child);
  }
});

test("ten thousand rows scroll smoothly", async ({ world }) => {
  await manyObjects(world, 10_000);
  const page = await world.openPage();
  await page.goto(world.url);
  await go(page, "#/objects/orders.shop.dev");
  await until("all rows are known", async () => /All 10,001/.test(await page.locator(".phases").innerText()));
  const drawn = await page.locator(".grid .whole .row").count();
  assert.ok(drawn < 100, `only what is visible is drawn, not ${drawn} rows`);
  // Measured and printed, not asserted: it depends on the machine.
  const frames = await page.locator(".frame").evaluate(async (frame) => {
    const step = frame.scrollHeight / 200;
    const times = [];
    const next = () => new Promise((resolve) => requestAnimationFrame(resolve));
    let before = await next();
    for (let index = 0; index < 200; index += 1) {
      frame.scrollTop = index * step;
      const now = await next();
      times.push(now - before);
      before = now;
    }
    return times.sort((one, other) => one - other);
  });
  console.log(`        scrolling from the first to the last row: ${frames.length} frames, median ${frames[100].toFixed(1)} ms, longest ${frames[199].toFixed(1)} ms`);
  await page.locator(".frame").evaluate((frame) => { frame.scrollTop = frame.scrollHeight; });
  await until("the last rows are drawn", async () => {
    const indexes = await page.locator(".grid .whole .row").evaluateAll((rows) => rows.map((row) => Number(row.getAttribute("aria-rowindex"))));
    return Math.max(...indexes) === 10_002;
  });
  await page.locator("[data-search]").fill("many-9999");
  await until("one is found", async () => (await page.locator(".grid .whole .row").count()) === 1);
  await page.context().close();
});

test("an operator that has not answered yet is not called healthy", async ({ page }) => {
  await page.route("**/api/overview*", async (route) => {
    const response = await route.fetch();
    const body = await response.json();
    const operator = { ...body.operator, failure: "no connection", answered_at: null };
    await route.fulfill({ response, json: { ...body, operator, status: null, problems: [], problem_count: 0 } });
  });
  await page.reload();
  await sees(page, "The operator does not answer");
  await sees(page, "They will be listed as soon as the operator answers.");
  assert.ok(!(await page.locator("main").innerText()).includes("Nothing is failing"));
  // A request that is being answered would fail when the page closes.
  await page.unrouteAll({ behavior: "ignoreErrors" });
});

test("a lost operator is reported, and the last known state stays", async ({ page, world }) => {
  await go(page, "#/");
  await sees(page, "databases default/reports");
  const before = page.url();
  await stop(world.operator);
  await until("it is reported", async () => (await page.locator("body").innerText()).includes("Connection lost"));
  await sees(page, "databases default/reports");
  assert.equal(page.url(), before);
});

async function rows(world) {
  const { body } = await ask(world.url, "/api/objects?resource=databases.shop.dev&since=0");
  return body.rows.map((row) => row.name);
}

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
  const context = (await world.openPage()).context();
  const requested = new Set();
  const complaints = [];
  for (const [name, run] of tests) {
    if (only && !name.includes(only)) continue;
    const page = await context.newPage();
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
    console.log(`FAILED  the pages send no requests elsewhere: ${origins}`);
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
