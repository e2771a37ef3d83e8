// All objects of one kind: a table that renders only visible rows, with filters and a search.

import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { Chip, Empty, Sign, Trouble } from "./parts";
import { act, ask, query } from "./server";
import type { Changes, Overview, Phase, Row } from "./types";
import { age, objectLink, PHASE_WORDS, PHASES, placeName, plural } from "./words";

const ROW = 40;
const EVERY = 1000;
const BEYOND = 10;

type Order = "state" | "name" | "age";

// The rows of a resource: all at first, then only changed ones.
function useRows(resource: string) {
  const [state, setState] = useState<{ rows: Map<string, Row>; problem: string | null; leftOut: number } | null>(null);
  const [error, setError] = useState<Error | null>(null);
  useEffect(() => {
    let stopped = false;
    let timer = 0;
    let revision = 0;
    let rows = new Map<string, Row>();
    const run = async () => {
      if (document.visibilityState === "visible") {
        try {
          const changes: Changes = await ask(query("/api/objects", { resource, since: revision }));
          if (stopped) return;
          const isNews = changes.complete || changes.rows.length > 0 || changes.removed.length > 0;
          if (isNews || revision === 0) {
            rows = changes.complete ? new Map() : new Map(rows);
            for (const row of changes.rows) rows.set(placeName(row), row);
            for (const [namespace, name] of changes.removed) rows.delete(placeName({ namespace, name }));
            setState({ rows, problem: changes.problem, leftOut: changes.left_out });
          }
          revision = changes.revision;
          setError(null);
        } catch (caught) {
          if (stopped) return;
          setError(caught as Error);
        }
      }
      timer = window.setTimeout(run, EVERY);
    };
    void run();
    return () => {
      stopped = true;
      window.clearTimeout(timer);
    };
  }, [resource]);
  return { state, error };
}

export function ObjectsView({ resource, overview, now }: { resource: string; overview: Overview; now: number }) {
  const { state, error } = useRows(resource);
  const [text, setText] = useState("");
  const [phase, setPhase] = useState<Phase | null>(null);
  const [order, setOrder] = useState<Order>("state");
  const search = useRef<HTMLInputElement>(null);
  const all = useMemo(() => [...(state?.rows.values() ?? [])], [state]);
  const found = useMemo(() => {
    const words = text.toLowerCase().split(/\s+/).filter(Boolean);
    const isFound = (row: Row) => {
      const content = `${placeName(row)} ${row.text} ${PHASE_WORDS[row.phase]}`.toLowerCase();
      return words.every((word) => content.includes(word));
    };
    return all.filter(isFound);
  }, [all, text]);
  const rows = useMemo(() => {
    const shown = found.filter((row) => phase === null || row.phase === phase);
    const byName = (one: Row, other: Row) => placeName(one).localeCompare(placeName(other), "en", { numeric: true });
    const orders: Record<Order, (one: Row, other: Row) => number> = {
      name: byName,
      state: (one, other) => PHASES.indexOf(one.phase) - PHASES.indexOf(other.phase) || byName(one, other),
      age: (one, other) => (other.created ?? "").localeCompare(one.created ?? "") || byName(one, other),
    };
    return shown.sort(orders[order]);
  }, [found, phase, order]);
  const counts = useMemo(() => {
    const counts = new Map<Phase, number>();
    for (const row of found) counts.set(row.phase, (counts.get(row.phase) ?? 0) + 1);
    return counts;
  }, [found]);
  const resources = Object.keys(overview.phases);
  const problem = state?.problem ?? overview.watch_errors[resource];
  return (
    <>
      <div class="title">
        <h1>{resource}</h1>
        {overview.actions && <RetryFailed resource={resource} rows={all} />}
      </div>
      {resources.length > 1 && (
        <nav class="tabs" aria-label="Kinds">
          {resources.map((other) => (
            <a key={other} href={`#/objects/${other}`} aria-current={other === resource ? "page" : undefined}>{other}</a>
          ))}
        </nav>
      )}
      <div class="filters">
        <input ref={search} type="search" data-search placeholder="Search names and errors  ( / )" aria-label="Search names and errors"
          value={text} onInput={(event) => setText(event.currentTarget.value)} />
        <div class="phases" role="group" aria-label="States">
          <button type="button" aria-pressed={phase === null} onClick={() => setPhase(null)}>All {found.length.toLocaleString("en")}</button>
          {PHASES.filter((it) => counts.has(it) || it === phase).map((it) => (
            <button type="button" key={it} aria-pressed={phase === it} class={it} onClick={() => setPhase(phase === it ? null : it)}>
              <Sign phase={it} /> {PHASE_WORDS[it]} {(counts.get(it) ?? 0).toLocaleString("en")}
            </button>
          ))}
        </div>
      </div>
      {problem && <p class="trouble">Objects cannot be watched from here: {problem}</p>}
      {error && !state && <Trouble error={error} />}
      {state && rows.length === 0 && <Empty>{all.length === 0 ? "There are no objects of this kind." : "No object matches."}</Empty>}
      {rows.length > 0 && <Table rows={rows} resource={resource} now={now} order={order} setOrder={setOrder} />}
      {state && state.leftOut > 0 && <p class="note">{plural(state.leftOut, "more object")} not shown, because there are too many.</p>}
    </>
  );
}

// Retries everything that has failed or waits for its next attempt.
function RetryFailed({ resource, rows }: { resource: string; rows: Row[] }) {
  const [message, setMessage] = useState<{ text: string; isError: boolean } | null>(null);
  const [busy, setBusy] = useState(false);
  const failing = rows.filter((row) => row.phase === "failed" || row.phase === "retrying");
  if (failing.length === 0 && !message) return null;
  const run = async () => {
    if (!window.confirm(`Retry ${plural(failing.length, "object")} now? Objects that failed permanently are handled as if they were new.`)) return;
    setBusy(true);
    try {
      const { retried, left, error } = await act("/api/do/retry-failed", { resource });
      const rest = left > 0 ? `; ${left.toLocaleString("en")} are left` : "";
      setMessage({ text: `Retried ${plural(retried, "object")}${rest}${error ? `. ${error}` : ""}.`, isError: error !== null });
    } catch (caught) {
      setMessage({ text: (caught as Error).message, isError: true });
    }
    setBusy(false);
  };
  return (
    <div class="actions">
      {message && <span class={message.isError ? "text error" : "note"} role="status">{message.text}</span>}
      {failing.length > 0 && (
        <button type="button" disabled={busy} onClick={() => void run()}>↻ Retry {plural(failing.length, "failing object")}</button>
      )}
    </div>
  );
}

function Table(props: { rows: Row[]; resource: string; now: number; order: Order; setOrder: (order: Order) => void }) {
  const { rows, resource, now } = props;
  const frame = useRef<HTMLDivElement>(null);
  const [top, setTop] = useState(0);
  const [height, setHeight] = useState(600);
  // The name of the chosen row, because rows move when their states change.
  const [chosen, setChosen] = useState<string | null>(null);
  useEffect(() => {
    const element = frame.current;
    if (!element) return;
    const measure = () => setHeight(element.clientHeight);
    measure();
    const observer = new ResizeObserver(measure);
    observer.observe(element);
    return () => observer.disconnect();
  }, []);
  const at = useMemo(() => Math.max(0, rows.findIndex((row) => placeName(row) === chosen)), [rows, chosen]);
  const choose = (index: number) => {
    const next = Math.max(0, Math.min(rows.length - 1, index));
    setChosen(placeName(rows[next]));
    const element = frame.current;
    if (!element) return;
    if (next * ROW < element.scrollTop) element.scrollTop = next * ROW;
    const bottom = (next + 1) * ROW - element.clientHeight;
    if (bottom > element.scrollTop) element.scrollTop = bottom;
  };
  const open = (index: number) => {
    location.hash = objectLink({ resource, ...rows[index] });
  };
  const press = (event: KeyboardEvent) => {
    const page = Math.floor(height / ROW) - 1;
    const steps: Record<string, number> = {
      ArrowDown: at + 1, j: at + 1, ArrowUp: at - 1, k: at - 1, PageDown: at + page, PageUp: at - page, Home: 0, End: rows.length - 1,
    };
    if (event.key in steps) {
      event.preventDefault();
      choose(steps[event.key]);
    } else if (event.key === "Enter") {
      open(at);
    }
  };
  const first = Math.max(0, Math.floor(top / ROW) - BEYOND);
  const end = Math.min(rows.length, Math.ceil((top + height) / ROW) + BEYOND);
  const head = (order: Order, words: string) => (
    <span role="columnheader" aria-sort={props.order === order ? "ascending" : "none"}>
      <button type="button" class="plain" onClick={() => props.setOrder(order)}>{words}{props.order === order ? " ↓" : ""}</button>
    </span>
  );
  return (
    <div class="grid" role="grid" aria-rowcount={rows.length + 1} aria-label={resource}>
      <div class="row head" role="row">
        {head("name", "Name")}
        {head("state", "State")}
        <span role="columnheader">Details</span>
        {head("age", "Age")}
      </div>
      <div class="frame" ref={frame} tabIndex={0} data-rows onKeyDown={press}
        aria-activedescendant={`row-${at}`} onScroll={(event) => setTop(event.currentTarget.scrollTop)}>
        <div class="whole" style={{ height: `${rows.length * ROW}px` }}>
          {rows.slice(first, end).map((row, offset) => {
            const index = first + offset;
            return (
              <div class={`row ${index === at ? "chosen" : ""}`} id={`row-${index}`} role="row" aria-rowindex={index + 2}
                key={placeName(row)} style={{ top: `${index * ROW}px` }} onClick={() => open(index)}>
                <span role="gridcell" class="name" title={placeName(row)}>
                  <a href={objectLink({ resource, ...row })} tabIndex={-1}>{row.namespace && <span class="note">{row.namespace}/</span>}{row.name}</a>
                </span>
                <span role="gridcell"><Chip state={row} now={now} /></span>
                <span role="gridcell" class="details" title={row.text}>{row.text}</span>
                <span role="gridcell" class="note">{age(row.created, now)}</span>
              </div>
            );
          })}
        </div>
      </div>
    </div>
  );
}
