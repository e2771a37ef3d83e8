// Builds the pages into the folder that is compiled into the program; `cargo xtask ui` calls it.
import { build } from "esbuild";
import { copyFile, mkdir } from "node:fs/promises";

const out = process.argv[2] ?? "../crates/kopf-ui/assets";
await mkdir(out, { recursive: true });
await build({
  entryPoints: { app: "src/app.tsx" },
  outdir: out,
  bundle: true,
  minify: true,
  format: "iife",
  target: "es2022",
  jsx: "automatic",
  jsxImportSource: "preact",
  legalComments: "none",
  charset: "utf8",
  logLevel: "warning",
});
for (const file of ["index.html", "icon.svg"]) {
  await copyFile(`src/${file}`, `${out}/${file}`);
}
