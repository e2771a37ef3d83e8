// Requests to the embedded cluster, with the token of its kubeconfig; no kubectl is needed.

import { readFile } from "node:fs/promises";
import { Agent, request } from "node:https";

const known = new Map();

async function access(kubeconfig) {
  if (!known.has(kubeconfig)) {
    const text = await readFile(kubeconfig, "utf8");
    known.set(kubeconfig, {
      server: /server: (\S+)/.exec(text)[1],
      token: /token: (\S+)/.exec(text)[1],
      agent: new Agent({ keepAlive: true, maxSockets: 16, rejectUnauthorized: false }),
    });
  }
  return known.get(kubeconfig);
}

async function send(world, method, path, body, type) {
  const { server, token, agent } = await access(world.kubeconfig);
  return new Promise((resolve, reject) => {
    const headers = { authorization: `Bearer ${token}`, "content-type": type };
    const sent = request(server + path, { method, agent, headers }, (response) => {
      let text = "";
      response.on("data", (bytes) => { text += bytes; });
      response.on("end", () => {
        if (response.statusCode < 300) resolve(JSON.parse(text));
        else reject(new Error(`${method} ${path}: ${response.statusCode} ${text}`));
      });
    });
    sent.on("error", reject);
    sent.end(JSON.stringify(body));
  });
}

export const create = (world, path, body) => send(world, "POST", path, body, "application/json");
export const patch = (world, path, body) => send(world, "PATCH", path, body, "application/merge-patch+json");
