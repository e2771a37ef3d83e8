// Small components that several views share.

import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import type { Change, ObjectState, Phase } from "./types";
import { age, clock, PHASE_SIGNS, PHASE_WORDS, short, stateWords, until } from "./words";

export function Chip({ state, now }: { state: ObjectState; now: number }) {
  return (
    <span class={`chip ${state.phase}`}>
      <Sign phase={state.phase} />
      {stateWords(state, now)}
    </span>
  );
}

export function Sign({ phase }: { phase: Phase }) {
  return <span class={`sign ${phase}`} aria-hidden="true">{PHASE_SIGNS[phase]}</span>;
}

export function PhaseCount({ phase, count }: { phase: Phase; count: number }) {
  return (
    <span class={`count ${phase}`} title={`${count} ${PHASE_WORDS[phase].toLowerCase()}`}>
      <Sign phase={phase} />
      {count.toLocaleString("en")}
      <span class="hidden"> {PHASE_WORDS[phase]}</span>
    </span>
  );
}

export function Card(props: { title: string; note?: ComponentChildren; class?: string; id?: string; children: ComponentChildren }) {
  return (
    <section class={`card ${props.class ?? ""}`} id={props.id}>
      <header>
        <h2>{props.title}</h2>
        {props.note !== undefined && <span class="note">{props.note}</span>}
      </header>
      {props.children}
    </section>
  );
}

export function At({ at, now }: { at: string; now: number }) {
  const isFuture = Date.parse(at) > now;
  return (
    <time dateTime={at} title={at}>
      {clock(at)} <span class="note">{isFuture ? until(at, now) : `${age(at, now)} ago`}</span>
    </time>
  );
}

export function Empty({ children }: { children: ComponentChildren }) {
  return <p class="empty">{children}</p>;
}

export function Trouble({ error }: { error: Error }) {
  return <p class="trouble" role="alert">{error.message}</p>;
}

export function Copy({ text, label }: { text: string; label?: string }) {
  const [done, setDone] = useState(false);
  const copy = async () => {
    await navigator.clipboard.writeText(text);
    setDone(true);
    window.setTimeout(() => setDone(false), 1500);
  };
  return (
    <button type="button" class="small" onClick={() => void copy()} title="Copy to the clipboard">
      {done ? "Copied" : (label ?? "Copy")}
    </button>
  );
}

export function Command({ text, label }: { text: string; label?: string }) {
  return (
    <div class="command">
      {label && <span class="note">{label}</span>}
      <pre tabIndex={0}><code>{text}</code></pre>
      <Copy text={text} />
    </div>
  );
}

// The old and new values of fields, line by line.
export function Diff({ changes, more }: { changes: Change[]; more: number }) {
  return (
    <div class="diff" role="table" aria-label="Changed fields">
      {changes.map((change) => (
        <div class="field" role="row" key={change.field}>
          <div class="path" role="rowheader">{change.field}</div>
          {compared(change.old, change.new).map((line, index) => (
            <div class={line.kind} role="cell" key={index}>
              {line.kind !== "same" && <b aria-label={line.kind === "old" ? "was" : "is"}>{line.kind === "old" ? "−" : "+"}</b>}
              {line.text}
            </div>
          ))}
          {change.old === null && change.new === null && <div class="old" role="cell"><b>−</b>removed</div>}
        </div>
      ))}
      {more > 0 && <div class="note">and {more} more</div>}
    </div>
  );
}

interface DiffLine {
  kind: "old" | "new" | "same";
  text: string;
}

// Longer values are compared as a whole.
const LINES_MAX = 200;

function compared(before: string | null, after: string | null): DiffLine[] {
  const [old, young] = [before, after].map((text) => (text === null ? [] : pretty(text).split("\n")));
  const whole = (kind: DiffLine["kind"], lines: string[]) => (lines.length ? [{ kind, text: lines.join("\n") }] : []);
  const isLong = old.length > LINES_MAX || young.length > LINES_MAX;
  if (old.length < 2 || young.length < 2 || isLong) return [...whole("old", old), ...whole("new", young)];
  // The number of common lines from here on.
  const common = old.map(() => new Array<number>(young.length + 1).fill(0));
  common.push(new Array<number>(young.length + 1).fill(0));
  for (let i = old.length - 1; i >= 0; i -= 1) {
    for (let j = young.length - 1; j >= 0; j -= 1) {
      common[i][j] = old[i] === young[j] ? common[i + 1][j + 1] + 1 : Math.max(common[i + 1][j], common[i][j + 1]);
    }
  }
  const lines: DiffLine[] = [];
  let [i, j] = [0, 0];
  while (i < old.length || j < young.length) {
    if (i < old.length && j < young.length && old[i] === young[j]) {
      lines.push({ kind: "same", text: old[i] });
      [i, j] = [i + 1, j + 1];
    } else if (i < old.length && (j === young.length || common[i + 1][j] >= common[i][j + 1])) {
      lines.push({ kind: "old", text: old[i] });
      i += 1;
    } else {
      lines.push({ kind: "new", text: young[j] });
      j += 1;
    }
  }
  return lines;
}

function pretty(text: string): string {
  try {
    const value = JSON.parse(text);
    return typeof value === "object" && value !== null ? JSON.stringify(value, null, 2) : text;
  } catch {
    return text;
  }
}

export interface Line {
  points: (number | null)[];
  class?: string;
}

const WIDTH = 240;
const HEIGHT = 56;

// A chart of the last minutes; the text next to it has the same information.
export function Chart(props: { title: string; value: string; note?: string; scale?: number; times: number[]; lines: Line[]; alert?: boolean }) {
  const all = props.lines.flatMap((line) => line.points).filter((value): value is number => value !== null);
  const top = Math.max(1e-9, ...all);
  const end = props.times[props.times.length - 1] ?? 0;
  // The known time span; at least a minute, so that the first moments do not look dramatic.
  const span = Math.max(60_000, end - (props.times[0] ?? end));
  const x = (at: number) => WIDTH - ((end - at) / span) * WIDTH;
  const y = (value: number) => HEIGHT - 3 - (value / top) * (HEIGHT - 8);
  const path = (line: Line) => {
    let text = "";
    let isPen = false;
    line.points.forEach((value, index) => {
      if (value === null) {
        isPen = false;
        return;
      }
      text += `${isPen ? "L" : "M"}${x(props.times[index]).toFixed(1)} ${y(value).toFixed(1)}`;
      isPen = true;
    });
    return text;
  };
  // Each run of known points has its own area, so that gaps stay empty.
  const area = (line: Line) => {
    let text = "";
    let from = -1;
    for (let index = 0; index <= line.points.length; index += 1) {
      const isKnown = index < line.points.length && line.points[index] !== null;
      if (isKnown && from < 0) from = index;
      if (isKnown || from < 0) continue;
      const run = line.points.slice(from, index).map((value, step) =>
        `L${x(props.times[from + step]).toFixed(1)} ${y(value as number).toFixed(1)}`);
      text += `M${x(props.times[from]).toFixed(1)} ${HEIGHT}${run.join("")}L${x(props.times[index - 1]).toFixed(1)} ${HEIGHT}Z`;
      from = -1;
    }
    return text;
  };
  return (
    <figure class={`chart ${props.alert ? "alert" : ""}`}>
      <figcaption>
        <span>{props.title}</span>
        <strong>{props.value}</strong>
        <span class="note">{props.note}</span>
        <span class="note peak">peak {short(top < 1e-6 ? 0 : top * (props.scale ?? 1))}</span>
      </figcaption>
      <svg viewBox={`0 0 ${WIDTH} ${HEIGHT}`} preserveAspectRatio="none" role="img"
        aria-label={`${props.title}: ${props.value}; highest in ten minutes: ${top < 1e-6 ? 0 : top.toFixed(1)}`}>
        <path class="base" d={`M0 ${HEIGHT - 1}H${WIDTH}`} />
        {props.lines.map((line, index) => (
          <g class={line.class ?? "main"} key={index}>
            <path class="area" d={area(line)} />
            <path class="line" d={path(line)} vector-effect="non-scaling-stroke" />
          </g>
        ))}
      </svg>
    </figure>
  );
}
