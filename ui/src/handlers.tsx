// All handlers: what they react to, their conditions, limits and statistics.

import { useState } from "preact/hooks";
import { Card, Empty, Trouble } from "./parts";
import { usePoll } from "./server";
import type { Counts, Handler, HandlersPage } from "./types";
import { milliseconds, plural } from "./words";

export function HandlersView({ chosen }: { chosen: string | null }) {
  const { data, error } = usePoll<HandlersPage>("/api/handlers", 2000);
  const [text, setText] = useState("");
  const words = text.toLowerCase();
  const handlers = (data?.handlers ?? []).filter((handler) => {
    const isChosen = !chosen || handler.id === chosen;
    return isChosen && `${handler.id} ${handler.kind} ${handler.resources} ${handler.description}`.toLowerCase().includes(words);
  });
  // Other handlers declare sub-handlers at run time.
  const known = new Set(data?.handlers?.map((handler) => handler.id));
  const subs = Object.entries(data?.counts ?? {}).filter(([id]) => !known.has(id) && (!chosen || id === chosen) && id.toLowerCase().includes(words));
  return (
    <>
      {chosen && <nav class="crumbs" aria-label="Path"><a href="#/handlers" data-up>All handlers</a></nav>}
      <h1>{chosen ?? "Handlers"}</h1>
      {!chosen && (
        <div class="filters">
          <input type="search" data-search placeholder="Search handlers  ( / )" aria-label="Search handlers" value={text}
            onInput={(event) => setText(event.currentTarget.value)} />
        </div>
      )}
      {error && <Trouble error={error} />}
      {data && handlers.length === 0 && subs.length === 0 && <Empty>{data.handlers ? "No handler matches." : "The operator does not answer."}</Empty>}
      <div class="handlers">
        {handlers.map((handler) => (
          <HandlerCard key={`${handler.kind} ${handler.id}`} handler={handler} counts={data?.counts?.[handler.id]} bounds={data?.bounds ?? []} />
        ))}
        {subs.map(([id, counts]) => (
          <Card key={id} title={id} note="sub-handler"><Doing counts={counts} bounds={data?.bounds ?? []} /></Card>
        ))}
      </div>
    </>
  );
}

function HandlerCard({ handler, counts, bounds }: { handler: Handler; counts?: Counts; bounds: number[] }) {
  const facts: [string, any][] = [];
  if (handler.signature) facts.push(["Signature", <code class="signature">{handler.signature}</code>]);
  if (handler.resources) facts.push(["On", <code>{handler.resources}</code>]);
  if (handler.conditions.length) facts.push(["If", <ul>{handler.conditions.map((it) => <li key={it}>{it}</li>)}</ul>]);
  if (handler.options.length) facts.push(["Options", handler.options.map(([name, value]) => `${name} ${value}`).join(", ")]);
  if (handler.children.length) facts.push(["Children", handler.children.join(", ")]);
  if (handler.rights.length) facts.push(["Rights", <ul>{handler.rights.map((it) => <li key={it}>{it}</li>)}</ul>]);
  return (
    <Card title={handler.id} note={<span class="badge">{handler.kind}</span>} id={handler.id}>
      {handler.description && <p class="description">{handler.description}</p>}
      <dl>{facts.map(([term, value]) => <div key={term}><dt>{term}</dt><dd>{value}</dd></div>)}</dl>
      {counts ? <Doing counts={counts} bounds={bounds} /> : <p class="note">Not called yet.</p>}
    </Card>
  );
}

function Doing({ counts, bounds }: { counts: Counts; bounds: number[] }) {
  const most = Math.max(1, ...counts.buckets);
  const errors = Object.entries(counts.errors);
  return (
    <div class="doing">
      <p>
        <strong>{plural(counts.calls, "call")}</strong>: <span class="word settled">✓ {counts.successes} succeeded</span>
        {counts.retries > 0 && <>, <span class="word retrying">↻ {counts.retries} to be retried</span></>}
        {counts.failures > 0 && <>, <span class="word failed">✕ {counts.failures} failed permanently</span></>}
        {counts.calls > 0 && <span class="note"> mean {milliseconds((counts.seconds / counts.calls) * 1000)}</span>}
      </p>
      <div class="histogram" role="img" aria-label={`Latencies: ${counts.buckets.map((count, index) => `${count} ${label(bounds, index)}`).join(", ")}`}>
        {counts.buckets.map((count, index) => (
          <div class="bucket" key={index}>
            <span class="note">{count || ""}</span>
            <i style={{ height: `${(count / most) * 44}px` }} />
            <span class="note">{label(bounds, index)}</span>
          </div>
        ))}
      </div>
      {errors.length > 0 && (
        <p>Errors by class: {errors.map(([name, count], index) => <>{index > 0 && ", "}<strong>{count}</strong> {name}</>)}</p>
      )}
    </div>
  );
}

function label(bounds: number[], index: number): string {
  const last = bounds[bounds.length - 1] ?? 0;
  const words = (seconds: number) => milliseconds(seconds * 1000).replace(".0 s", " s").replace(" ", "\u2009");
  return index < bounds.length ? `≤${words(bounds[index])}` : `>${words(last)}`;
}
