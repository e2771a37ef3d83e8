// Formats numbers, times and values for people.

import type { Json, ObjectState, Phase, Place } from "./types";

export const PHASES: Phase[] = ["failed", "retrying", "deleting", "running", "waiting", "pending", "paused", "settled"];

export const PHASE_WORDS: Record<Phase, string> = {
  failed: "Failed",
  retrying: "Retrying",
  deleting: "Deleting",
  running: "Running",
  waiting: "Waiting for children",
  pending: "Not handled yet",
  paused: "Paused",
  settled: "Settled",
};

// A symbol per state, so that the meaning does not depend on colours.
export const PHASE_SIGNS: Record<Phase, string> = {
  failed: "✕",
  retrying: "↻",
  deleting: "⌫",
  running: "▶",
  waiting: "⋯",
  pending: "○",
  paused: "❚❚",
  settled: "✓",
};

export function duration(seconds: number): string {
  const whole = Math.max(0, Math.round(seconds));
  if (whole < 60) return `${whole} s`;
  if (whole < 3600) return `${Math.floor(whole / 60)} min ${whole % 60 ? `${whole % 60} s` : ""}`.trim();
  if (whole < 86400) return `${Math.floor(whole / 3600)} h ${Math.floor((whole % 3600) / 60)} min`;
  return `${Math.floor(whole / 86400)} d ${Math.floor((whole % 86400) / 3600)} h`;
}

export function age(from: string | null | undefined, now: number): string {
  return from ? duration((now - Date.parse(from)) / 1000) : "";
}

export function until(at: string | null | undefined, now: number): string {
  if (!at) return "";
  const seconds = (Date.parse(at) - now) / 1000;
  return seconds > 0 ? `in ${duration(Math.ceil(seconds))}` : "now";
}

export function clock(at: string): string {
  const date = new Date(at);
  const two = (value: number) => String(value).padStart(2, "0");
  const time = `${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`;
  const isToday = date.toDateString() === new Date().toDateString();
  return isToday ? time : `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())} ${time}`;
}

export function stateWords(state: ObjectState, now: number): string {
  const words = PHASE_WORDS[state.phase];
  if (state.phase === "retrying" && state.next_at) return `${words} ${until(state.next_at, now)}`;
  return words;
}

export function milliseconds(value: number): string {
  if (value > 0 && value < 0.1) return "< 0.1 ms";
  if (value < 10) return `${Number(value.toFixed(1))} ms`;
  if (value < 1000) return `${Math.round(value)} ms`;
  return value < 60_000 ? `${(value / 1000).toFixed(1)} s` : duration(value / 1000);
}

export function short(value: number): string {
  if (value >= 1e6) return `${(value / 1e6).toFixed(1)} M`;
  if (value >= 1e4) return `${(value / 1e3).toFixed(1)} k`;
  return Number.isInteger(value) ? String(value) : value.toFixed(value < 10 ? 1 : 0);
}

export function megabytes(bytes: number | null): string {
  return bytes === null ? "–" : `${(bytes / 1048576).toFixed(bytes < 104857600 ? 1 : 0)} MB`;
}

export function plural(count: number, word: string): string {
  return `${count.toLocaleString("en")} ${word}${count === 1 ? "" : "s"}`;
}

export function placeName(place: { namespace: string | null; name: string }): string {
  return place.namespace ? `${place.namespace}/${place.name}` : place.name;
}

export function objectLink(place: Place): string {
  return `#/object/${place.resource}/${place.namespace ?? "-"}/${place.name}`;
}

// Quotes a string for shells.
export function quote(text: string): string {
  return /^[\w./:=@%+,-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}

export function yaml(value: Json, indent = 0): string {
  const pad = "  ".repeat(indent);
  if (Array.isArray(value)) {
    if (value.length === 0) return "[]";
    return value
      .map((item) => {
        const text = yaml(item, indent + 1);
        const isNested = item !== null && typeof item === "object" && text !== "[]" && text !== "{}";
        return isNested ? `${pad}- ${text.slice((indent + 1) * 2)}` : `${pad}- ${text}`;
      })
      .join("\n");
  }
  if (value !== null && typeof value === "object") {
    const pairs = Object.entries(value);
    if (pairs.length === 0) return "{}";
    return pairs
      .map(([key, item]) => {
        const isNested = item !== null && typeof item === "object" && Object.keys(item).length > 0;
        const text = yaml(item, isNested ? indent + 1 : indent);
        return isNested ? `${pad}${plainKey(key)}:\n${text}` : `${pad}${plainKey(key)}: ${text}`;
      })
      .join("\n");
  }
  if (typeof value === "string") {
    if (value.includes("\n")) {
      const lines = value.replace(/\n$/, "").split("\n").map((line) => `${"  ".repeat(indent + 1)}${line}`);
      return `|${value.endsWith("\n") ? "" : "-"}\n${lines.join("\n")}`;
    }
    return scalar(value);
  }
  return String(value);
}

function plainKey(key: string): string {
  return /^[A-Za-z_][\w./-]*$/.test(key) ? key : JSON.stringify(key);
}

function scalar(text: string): string {
  const isPlain = /^[A-Za-z/_][\w ./:@%+()-]*$/.test(text) && !/(: | #|:$|\s$)/.test(text);
  const isWord = /^(true|false|null|yes|no|on|off|~)$/i.test(text);
  return isPlain && !isWord ? text : JSON.stringify(text);
}
