// The rendered book in a real browser: pages, pictures, hidden lines and the search. Run by `cargo xtask ui --test`.

import assert from "node:assert/strict";
import { readdir, readFile } from "node:fs/promises";
import { createServer } from "node:http";
import path from "node:path";
import { openBrowser, until } from "./world.mjs";

const BOOK = process.env.BOOK ?? path.resolve("../target/book");
const TYPES = { ".css": "text/css", ".html": "text/html", ".js": "text/javascript", ".json": "application/json", ".png": "image/png", ".svg": "image/svg+xml" };

// Pages load their search index by a request, so they cannot be opened as files.
const server = createServer(async (request, response) => {
  const { pathname } = new URL(request.url, "http://book");
  try {
    const bytes = await readFile(path.join(BOOK, path.normalize(decodeURIComponent(pathname))));
    response.writeHead(200, { "content-type": TYPES[path.extname(pathname)] ?? "application/octet-stream" }).end(bytes);
  } catch {
    response.writeHead(404).end();
  }
});
await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
const origin = `http://127.0.0.1:${server.address().port}`;

const files = (await readdir(BOOK, { recursive: true })).filter((file) => file.endsWith(".html") && !/^(404|print|toc)\.html$/.test(file));
assert.ok(files.length > 40, `only ${files.length} pages`);
const browser = await openBrowser();
try {
  const page = await browser.newPage({ viewport: { width: 1280, height: 900 } });
  const problems = [];
  page.on("pageerror", (error) => problems.push(`${page.url()}: ${error}`));
  page.on("response", (response) => response.status() >= 400 && problems.push(`${page.url()}: ${response.url()} is missing`));
  page.on("request", (request) => new URL(request.url()).origin !== origin && !request.url().startsWith("data:")
    && problems.push(`${page.url()}: asks ${request.url()}`));
  for (const file of files.sort()) {
    await page.goto(`${origin}/${file}`);
    const found = await page.evaluate(() => ({
      heading: document.querySelector("main h1")?.innerText ?? "",
      broken: [...document.images].filter((it) => it.complete && it.naturalWidth === 0 && getComputedStyle(it).display !== "none").map((it) => it.src),
      hidden: [...document.querySelectorAll("main pre .boring")].filter((it) => it.offsetHeight > 0).length,
      unfilled: document.querySelector("main").innerText.includes("{{#"),
      beyond: document.documentElement.scrollWidth - document.documentElement.clientWidth,
    }));
    if (!found.heading) problems.push(`${file} has no heading`);
    for (const source of found.broken) problems.push(`${file}: the picture ${source} is broken`);
    if (found.hidden > 0) problems.push(`${file}: ${found.hidden} hidden lines are visible`);
    if (found.unfilled) problems.push(`${file} includes a file that was not found`);
    if (found.beyond > 0) problems.push(`${file} is ${found.beyond} pixels too wide`);
  }
  assert.deepEqual(problems, []);
  console.log(`ok      ${files.length} pages have headings, pictures and no visible hidden lines`);
  await page.goto(`${origin}/index.html`);
  await page.keyboard.press("s");
  // The search reacts to keys.
  await page.locator("#mdbook-searchbar").pressSequentially("generate a secret once");
  await until("the recipe is found", async () => (await page.locator("#mdbook-searchresults a").allInnerTexts())
    .some((text) => text.includes("Generate a Secret once")));
  console.log("ok      the search finds a recipe");
} finally {
  await browser.close();
  server.close();
}
