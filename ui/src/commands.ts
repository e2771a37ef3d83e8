// The kubectl commands that show an object, or repeat a change to it.

import type { Change, Json, ObjectPage, Overview, Place } from "./types";
import { quote, yaml } from "./words";

export function kubectl(page: ObjectPage, place: Place, overview: Overview) {
  const config = overview.kubeconfig;
  return {
    prefix: config ? `kubectl --kubeconfig ${quote(config)}` : "kubectl",
    explain: config ? `KUBECONFIG=${quote(config)} kopf explain` : "kopf explain",
    kind: page.group ? `${page.plural}.${page.group}` : page.plural,
    namespace: place.namespace ? ` -n ${place.namespace}` : "",
  };
}

// The patch that makes the same change; null if values were truncated or are inside lists.
export function patchCommand(changes: Change[], more: number, page: ObjectPage, place: Place, overview: Overview): string | null {
  const patch: { [key: string]: Json } = {};
  for (const change of changes) {
    const keys = change.field.split(".");
    const isCut = (change.new ?? "").endsWith("…");
    if (isCut || keys.some((key) => key === "" || /["'\[\]]/.test(key))) return null;
    let at = patch;
    for (const key of keys.slice(0, -1)) at = (at[key] ??= {}) as { [key: string]: Json };
    try {
      at[keys[keys.length - 1]] = change.new === null ? null : JSON.parse(change.new);
    } catch {
      return null;
    }
  }
  if (more > 0 || changes.length === 0) return null;
  const base = kubectl(page, place, overview);
  return `${base.prefix} patch ${base.kind} ${place.name}${base.namespace} --type merge -p ${quote(JSON.stringify(patch))}`;
}

// The manifest without fields that the server and operators add.
export function manifestCommand(object: { [key: string]: Json }, prefix: string): string {
  const metadata = (object.metadata ?? {}) as { [key: string]: Json };
  const annotations = Object.entries((metadata.annotations ?? {}) as { [key: string]: Json })
    .filter(([key]) => !/^(kopf\.|kubectl\.kubernetes\.io\/)/.test(key));
  const clean: { [key: string]: Json } = { name: metadata.name };
  if (metadata.namespace) clean.namespace = metadata.namespace;
  if (metadata.labels) clean.labels = metadata.labels;
  if (annotations.length) clean.annotations = Object.fromEntries(annotations);
  const { status: _status, metadata: _metadata, apiVersion, kind, ...rest } = object;
  return `${prefix} apply -f - <<'EOF'\n${yaml({ apiVersion, kind, metadata: clean, ...rest })}\nEOF`;
}
