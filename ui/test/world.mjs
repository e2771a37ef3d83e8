// A real operator with an embedded cluster, and a real browser, for tests and pictures.

import { spawn } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { chromium } from "playwright-core";

const OPERATOR = process.env.OPERATOR ?? path.resolve("../target/debug/example-web-ui");
const PATIENCE = Number(process.env.PATIENCE ?? 120_000);

// Without these, Chromium contacts Google's servers at every start.
const FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
  "--disable-component-update", "--disable-sync"];

// Starts a program, and waits until its output matches. Output arrives in pieces, so a pattern ends with what follows the found part.
export function start(program, parameters, pattern, options = {}) {
  const child = spawn(program, parameters, { stdio: ["ignore", "pipe", "pipe"], ...options });
  let said = "";
  return new Promise((resolve, reject) => {
    const give = setTimeout(() => reject(new Error(`no ${pattern} from ${program}:\n${said}`)), PATIENCE);
    const hear = (bytes) => {
      said += bytes;
      const found = pattern.exec(said);
      if (found) {
        clearTimeout(give);
        resolve({ child, found: found[1] ?? found[0], said: () => said });
      }
    };
    child.stdout.on("data", hear);
    child.stderr.on("data", hear);
    child.on("exit", (code) => {
      clearTimeout(give);
      reject(new Error(`${program} ended with ${code}:\n${said}`));
    });
    child.on("error", reject);
  });
}

export async function stop(child) {
  if (child.exitCode !== null) return;
  const ended = new Promise((resolve) => child.once("exit", resolve));
  child.kill("SIGTERM");
  const timer = setTimeout(() => child.kill("SIGKILL"), 15_000);
  await ended;
  clearTimeout(timer);
}

export const openBrowser = () => chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", headless: true, args: FLAGS });

export async function openWorld(load = "../examples/web-ui/objects.yaml", extra = []) {
  const folder = await mkdtemp(path.join(tmpdir(), "kopf-ui-"));
  const kubeconfig = path.join(folder, "kopf.kubeconfig");
  const operator = await start(OPERATOR, ["run", "--embedded", "--load", load, "--kubeconfig", kubeconfig, ...extra],
    /The web UI is at (\S+)\s/);
  const browser = await openBrowser();
  return {
    url: operator.found,
    kubeconfig,
    browser,
    async openPage(options = {}) {
      const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, ...options });
      context.setDefaultTimeout(PATIENCE);
      return context.newPage();
    },
    operator: operator.child,
    said: operator.said,
    async close() {
      await browser.close();
      await stop(operator.child);
      await rm(folder, { recursive: true, force: true });
    },
  };
}

// The server's response to a request outside of the page.
export async function ask(url, pathname, options = {}) {
  const { origin, hash } = new URL(url);
  const token = hash.replace("#token=", "");
  const response = await fetch(origin + pathname, {
    ...options,
    headers: { authorization: `Bearer ${token}`, "content-type": "application/json", ...(options.headers ?? {}) },
  });
  return { status: response.status, headers: response.headers, body: await response.json().catch(() => null) };
}

// Opens a view, and waits until the page shows it instead of the former one.
export async function go(page, hash) {
  const route = hash.replace(/^#\/?/, "");
  await page.evaluate((hash) => { location.hash = hash; }, hash);
  await page.locator(`main[data-route="${route}"]`).waitFor();
}

export async function until(words, check) {
  const end = Date.now() + PATIENCE;
  let last;
  while (Date.now() < end) {
    try {
      last = await check();
      if (last) return last;
    } catch (error) {
      last = error;
    }
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  throw new Error(`timed out waiting until ${words}; last: ${last}`);
}
