// Polls the server with the token of the address, while the page is visible.

import { useEffect, useRef, useState } from "preact/hooks";

const KEY = "kopf-token";

// The token is behind the `#` and is removed from the address at once.
const given = /^#token=([0-9a-f]+)/.exec(location.hash);
if (given) {
  sessionStorage.setItem(KEY, given[1]);
  history.replaceState(null, "", location.pathname + "#/");
}

export class Refused extends Error {
  constructor(readonly status: number, message: string) {
    super(message);
  }
}

async function send(method: string, path: string, body?: unknown): Promise<any> {
  const token = sessionStorage.getItem(KEY) ?? "";
  const response = await fetch(path, {
    method,
    headers: { authorization: `Bearer ${token}`, ...(body ? { "content-type": "application/json" } : {}) },
    body: body === undefined ? undefined : JSON.stringify(body),
  });
  const answer = await response.json().catch(() => ({}));
  if (!response.ok) throw new Refused(response.status, answer.error ?? response.statusText);
  return answer;
}

export const ask = (path: string) => send("GET", path);
export const act = (path: string, body: unknown) => send("POST", path, body);

export function query(path: string, parameters: Record<string, string | number | null | undefined>) {
  const pairs = Object.entries(parameters).filter(([, value]) => value !== null && value !== undefined && value !== "");
  const text = pairs.map(([key, value]) => `${key}=${encodeURIComponent(String(value))}`).join("&");
  return text ? `${path}?${text}` : path;
}

export interface Polled<T> {
  data: T | null;
  error: Refused | Error | null;
  again: () => void;
}

// Polls at once and then at an interval, unless the page is hidden.
export function usePoll<T>(path: string | null, every: number): Polled<T> {
  const [answer, setAnswer] = useState<{ path: string; data: T } | null>(null);
  const [error, setError] = useState<Error | null>(null);
  const [turn, setTurn] = useState(0);
  useEffect(() => {
    if (path === null) return;
    let stopped = false;
    let timer = 0;
    const run = async () => {
      if (document.visibilityState === "visible") {
        try {
          const data = await ask(path);
          if (stopped) return;
          setAnswer({ path, data });
          setError(null);
        } catch (caught) {
          if (stopped) return;
          setError(caught as Error);
        }
      }
      timer = window.setTimeout(run, every);
    };
    void run();
    return () => {
      stopped = true;
      window.clearTimeout(timer);
    };
  }, [path, every, turn]);
  const data = answer && answer.path === path ? answer.data : null;
  return { data, error, again: () => setTurn((count) => count + 1) };
}

// The time of the server, updated every second, since clocks may differ.
let offset = 0;
export function setServerTime(now: string) {
  offset = Date.parse(now) - Date.now();
}

export function useNow(): number {
  const [now, setNow] = useState(Date.now() + offset);
  const timer = useRef(0);
  useEffect(() => {
    timer.current = window.setInterval(() => setNow(Date.now() + offset), 1000);
    return () => window.clearInterval(timer.current);
  }, []);
  return now;
}
