// Small parts that several views share.

import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import type { Change, Phase, Standing } from "./types";
import { age, clock, PHASE_SIGNS, PHASE_WORDS, stateWords, until } from "./words";

export function Chip({ standing, now }: { standing: Standing; now: number }) {
  return (
    <span class={`chip ${standing.phase}`}>
      <Sign phase={standing.phase} />
      {stateWords(standing, now)}
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

// What fields were and are, line by line.
export function Diff({ changes, more }: { changes: Change[]; more: number }) {
  return (
    <div class="diff" role="table" aria-label="Changed fields">
      {changes.map((change) => (
        <div class="field" role="row" key={change.field}>
          <div class="path" role="rowheader">{change.field}</div>
          {change.old !== null && <div class="old" role="cell"><b aria-label="was">−</b>{pretty(change.old)}</div>}
          {change.new !== null && <div class="new" role="cell"><b aria-label="is">+</b>{pretty(change.new)}</div>}
          {change.old === null && change.new === null && <div class="old" role="cell"><b>−</b>removed</div>}
        </div>
      ))}
      {more > 0 && <div class="note">and {more} more</div>}
    </div>
  );
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

// A chart of the last minutes; the words beside it say the same.
export function Chart(props: { title: string; value: string; note?: string; times: number[]; lines: Line[]; alert?: boolean }) {
  const all = props.lines.flatMap((line) => line.points).filter((value): value is number => value !== null);
  const top = Math.max(1e-9, ...all);
  const end = props.times[props.times.length - 1] ?? 0;
  // As much as is known; not less than a minute, lest the first moments look dramatic.
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
  const area = (line: Line) => {
    const first = line.points.findIndex((value) => value !== null);
    if (first < 0) return "";
    const last = props.times.length - 1;
    return `${path(line)}L${x(props.times[last]).toFixed(1)} ${HEIGHT}L${x(props.times[first]).toFixed(1)} ${HEIGHT}Z`;
  };
  return (
    <figure class={`chart ${props.alert ? "alert" : ""}`}>
      <figcaption>
        <span>{props.title}</span>
        <strong>{props.value}</strong>
        {props.note && <span class="note">{props.note}</span>}
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
