// The responses of the server; the names are those of `crates/kopf-ui` and `kopf-engine::debug`.

export type Phase =
  | "failed" | "retrying" | "deleting" | "running" | "waiting" | "pending" | "paused" | "settled";

export interface ObjectState {
  phase: Phase;
  text: string;
  handler?: string;
  next_at?: string;
  since?: string;
  attempts?: number;
}

export interface Row extends ObjectState {
  namespace: string | null;
  name: string;
  created: string | null;
}

export interface Changes {
  revision: number;
  complete: boolean;
  rows: Row[];
  removed: [string | null, string][];
  left_out: number;
  problem: string | null;
}

export interface Watch {
  purpose: string;
  resource: string;
  namespace: string | null;
  labels: string | null;
  fields: string | null;
  listed: boolean;
  age: number;
  restarts: number;
  objects: number;
  failing: string | null;
}

export interface Counts {
  calls: number;
  successes: number;
  retries: number;
  failures: number;
  seconds: number;
  buckets: number[];
  errors: Record<string, number>;
}

export interface Status {
  ready: boolean;
  paused: boolean;
  waiting_for: string[];
  watches: Watch[];
  queued: number;
  queue_age: number;
  delayed: number;
  running: number;
  background: number;
  blocking: number;
  blocking_waiting: number;
  objects: number;
  memory_bytes: number | null;
  handlers: Record<string, Counts>;
  requests: { method: string; code: number; count: number }[];
  writes: number;
  writes_max: number;
}

export interface Sample {
  at: number;
  queued: number;
  queue_age: number;
  delayed: number;
  running: number;
  objects: number;
  memory: number | null;
  calls: number;
  failed: number;
  seconds: number;
  requests: number;
  throttled: number;
  refused: number;
}

export interface Place {
  resource: string;
  namespace: string | null;
  name: string;
}

export interface Problem {
  severity: "error" | "warning";
  title: string;
  text: string;
  object?: Place;
  since?: string;
  next_at?: string;
}

export interface Overview {
  now: string;
  operator: {
    address: string;
    name: string | null;
    failure: string | null;
    answered_at: string | null;
    version: string | null;
    handlers: number | null;
  };
  status: Status | null;
  samples: Sample[];
  problems: Problem[];
  problem_count: number;
  phases: Record<string, Partial<Record<Phase, number>>>;
  watch_errors: Record<string, string>;
  embedded: boolean;
  actions: boolean;
  kubeconfig: string | null;
}

export interface Change {
  field: string;
  old: string | null;
  new: string | null;
}

export interface Filtered {
  handler: string;
  why: string;
}

export type Entry = { at: string } & (
  | { what: "cause"; reason: string; changes: Change[]; more: number; selected: string[]; filtered: Filtered[] }
  | {
      what: "attempt"; handler: string; number: number; milliseconds: number;
      ending: "success" | "retry" | "failure"; error: string | null; next_at: string | null; routine: boolean;
    }
  | { what: "write"; fields: string[]; more: number; changes: Change[] }
  | { what: "trouble"; error: string }
  | { what: "gone" }
);

export interface Chronicle {
  entries: Entry[];
  running: { handler: string; number: number; since: string }[];
  situation: {
    wake_at: string | null;
    error: string | null;
    gone: boolean;
    deleting: boolean;
    held: boolean;
    filtered: Filtered[];
    background: string[];
    children: { child: string; waiting: string | null; refused: string | null; next_at: string | null }[];
    desired_failures: Record<string, string>;
  };
}

export interface ProgressRecord {
  id: string;
  started?: string;
  stopped?: string;
  delayed?: string;
  purpose?: string;
  retries: number;
  success: boolean;
  failure: boolean;
  message?: string;
}

export interface ClusterEvent {
  at: string;
  type: string;
  reason: string;
  message: string;
  count: number;
  source: string | null;
  kind: string;
  namespace: string | null;
  name: string;
}

export type Json = null | boolean | number | string | Json[] | { [key: string]: Json };

export interface ObjectPage {
  now: string;
  kind: string;
  plural: string;
  group: string;
  version: string;
  state: ObjectState | null;
  handled: "unknown" | "never" | "same" | "changed" | null;
  held: boolean | null;
  records: ProgressRecord[] | null;
  differences: { field: string; operation: string; old: Json; new: Json }[] | null;
  object: { [key: string]: Json } | null;
  chronicle: Chronicle | null;
  unknown: { watched: boolean; labels: string | null; fields: string | null } | null;
  operator_error: string | null;
  events: ClusterEvent[];
}

export interface OwnerReference {
  apiVersion: string;
  kind: string;
  name: string;
}

export interface Node extends Place {
  kind: string;
  waiting: string | null;
  handler: string | null;
  changed_by: string[];
  children: Node[];
}

export interface Handler {
  id: string;
  kind: string;
  resources: string | null;
  description: string | null;
  signature: string | null;
  options: [string, string][];
  conditions: string[];
  children: string[];
  rights: string[];
}

export interface HandlersPage {
  handlers: Handler[] | null;
  bounds: number[] | null;
  counts: Record<string, Counts> | null;
}

export interface Kind {
  resource: string;
  kind: string;
  group: string;
  version: string;
  namespaced: boolean;
}

export interface Listing {
  kind: string;
  namespaced: boolean;
  columns: string[];
  rows: { namespace: string | null; name: string; cells: Json[] }[];
  more: number | null;
}

export interface Snapshot {
  id: number;
  name: string;
  at: string;
  objects: number;
  bytes: number;
}
