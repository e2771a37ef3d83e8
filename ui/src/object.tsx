// One object: its state, what it waits for, its history, and why handlers were not called.

import { useState } from "preact/hooks";
import { Actions } from "./actions";
import { kubectl, manifestCommand, patchCommand } from "./commands";
import { At, Card, Chip, Command, Copy, Diff, Empty, Trouble } from "./parts";
import { query, usePoll } from "./server";
import type { Chronicle, ClusterEvent, Entry, Kind, Node, ObjectPage, Overview, OwnerReference, Place, ProgressRecord } from "./types";
import { age, clock, milliseconds, objectLink, placeName, plural, until, yaml } from "./words";

export function ObjectView({ place, overview, now }: { place: Place; overview: Overview; now: number }) {
  const parameters = { resource: place.resource, namespace: place.namespace, name: place.name };
  const { data, error, again } = usePoll<ObjectPage>(query("/api/object", parameters), 1000);
  const children = usePoll<Node[]>(query("/api/children", parameters), 3000);
  const isWatched = place.resource in overview.phases;
  const up = isWatched ? `#/objects/${place.resource}` : `#/cluster/${place.resource}`;
  if (!data) {
    return (
      <>
        <nav class="crumbs" aria-label="Path"><a href={up} data-up>{place.resource}</a></nav>
        <h1>{placeName(place)}</h1>
        {error ? <Trouble error={error} /> : <p class="loading">Loading…</p>}
      </>
    );
  }
  const chronicle = data.chronicle;
  return (
    <>
      <nav class="crumbs" aria-label="Path"><a href={up} data-up>{place.resource}</a></nav>
      <div class="title">
        <h1>{place.namespace && <span class="note">{place.namespace}/</span>}{place.name}</h1>
        {data.state && isWatched ? <Chip state={data.state} now={now} /> : !isWatched && data.object ? null : <span class="chip">{data.object ? "Unknown" : "Gone"}</span>}
        <Actions place={place} page={data} overview={overview} done={again} />
      </div>
      <Owners page={data} />
      {(isWatched || !data.object) && <Now page={data} now={now} />}
      <div class="columns">
        <div class="wide">
          {chronicle && <Timeline chronicle={chronicle} page={data} place={place} overview={overview} now={now} />}
          {!chronicle && isWatched && <Card title="Timeline"><Empty>{noChronicle(data)}</Empty></Card>}
          <Manifest page={data} isFirst={!isWatched} />
        </div>
        <div class="side">
          {isWatched && <NotCalled page={data} />}
          {isWatched && <Persisted page={data} now={now} />}
          <Children nodes={children.data} chronicle={chronicle} now={now} />
          <Events events={data.events} now={now} />
          <Commands page={data} place={place} overview={overview} />
        </div>
      </div>
    </>
  );
}

// The owners of the object.
function Owners({ page }: { page: ObjectPage }) {
  const metadata = page.object?.metadata as { ownerReferences?: OwnerReference[]; namespace?: string } | undefined;
  const owners = metadata?.ownerReferences ?? [];
  const kinds = usePoll<Kind[]>(owners.length ? "/api/cluster/kinds" : null, 60_000);
  if (owners.length === 0) return null;
  return (
    <p class="owners">Belongs to {owners.map((owner, index) => {
      const group = owner.apiVersion.includes("/") ? owner.apiVersion.split("/")[0] : "";
      const kind = kinds.data?.find((it) => it.kind === owner.kind && it.group === group);
      const words = `${owner.kind} ${owner.name}`;
      const namespace = kind?.namespaced ? (metadata?.namespace ?? null) : null;
      return (
        <>{index > 0 && ", "}{kind ? <a href={objectLink({ resource: kind.resource, namespace, name: owner.name })}>{words}</a> : words}</>
      );
    })}</p>
  );
}

function noChronicle(page: ObjectPage): string {
  if (page.operator_error) return `The operator does not answer: ${page.operator_error}.`;
  if (!page.unknown?.watched) return "The operator does not watch this kind in this namespace.";
  if (page.unknown.labels) return `The operator watches only objects with the labels ${page.unknown.labels}.`;
  if (page.unknown.fields) return `The operator watches only objects with the fields ${page.unknown.fields}.`;
  return "Nothing has happened to this object since the operator started, or it was too long ago to be remembered.";
}

// What the object waits for, and when that changes.
function Now({ page, now }: { page: ObjectPage; now: number }) {
  const lines: [string, any][] = [];
  const state = page.state;
  const situation = page.chronicle?.situation;
  if (!page.object) lines.push(["State", "The object no longer exists in the cluster."]);
  const isQuiet = state?.phase === "settled";
  if (isQuiet) lines.push(["Now", "Everything is handled. The operator is waiting for the next change."]);
  else if (state?.text) lines.push(["Why", state.text]);
  for (const call of page.chronicle?.running ?? []) {
    lines.push(["Running", <><code>{call.handler}</code>, attempt {call.number}, for {age(call.since, now)}</>]);
  }
  for (const record of page.records ?? []) {
    if (!record.success && !record.failure && record.delayed) {
      lines.push(["Waiting for", <>the next attempt of <code>{record.id}</code> <strong>{until(zoned(record.delayed), now)}</strong>, at {clock(zoned(record.delayed))}, after {plural(record.retries, "attempt")}</>]);
    }
  }
  for (const child of situation?.children ?? []) {
    if (child.refused) lines.push(["Child", <>{child.child} was rejected: {child.refused}{child.next_at && <>; next attempt {until(child.next_at, now)}</>}</>]);
    else if (child.waiting && state?.text !== `${child.child}: ${child.waiting}`) lines.push(["Waiting for", <>{child.child}: {child.waiting}</>]);
  }
  if (situation?.wake_at) lines.push(["Wakes up at", <At at={situation.wake_at} now={now} />]);
  if (situation?.background.length) lines.push(["Background", situation.background.join(", ")]);
  if (state?.phase === "deleting" && state.since) lines.push(["Deleting", <>since <At at={state.since} now={now} /></>]);
  if (lines.length === 0) lines.push(["Now", "The operator does not know this object."]);
  return (
    <section class={`now card ${state?.phase ?? ""}`} aria-label="Now">
      <dl>{lines.map(([term, words], index) => <div key={index}><dt>{term}</dt><dd>{words}</dd></div>)}</dl>
    </section>
  );
}

// Like Kopf, records store UTC times without a zone.
function zoned(at: string): string {
  return /(Z|[+-]\d\d:?\d\d)$/.test(at) ? at : `${at}Z`;
}

// Groups entries by cause.
function groups(entries: Entry[]): Entry[][] {
  const found: Entry[][] = [];
  for (const entry of entries) {
    if (entry.what === "cause" || found.length === 0) found.push([]);
    found[found.length - 1].push(entry);
  }
  return found.reverse();
}

// If there are more attempts with the same error, only the first and the last are shown.
const REPEATS_MAX = 3;

function isBookkeeping(entry: Entry): boolean {
  return entry.what === "write" && entry.changes.every((change) => change.field.startsWith("metadata.annotations"));
}

// Folds repeated attempts with the same error, keeping the first and the last.
function folded(entries: Entry[]): (Entry | { hidden: Entry[] })[] {
  const steps: (Entry | { hidden: Entry[] })[] = [];
  let at = 0;
  while (at < entries.length) {
    const first = entries[at];
    let end = at + 1;
    const attempts = [at];
    if (first.what === "attempt" && first.ending === "retry") {
      for (; end < entries.length; end += 1) {
        const entry = entries[end];
        const isSame = entry.what === "attempt" && entry.handler === first.handler && entry.ending === "retry" && entry.error === first.error;
        if (isSame) attempts.push(end);
        else if (!isBookkeeping(entry)) break;
      }
    }
    if (attempts.length > REPEATS_MAX) {
      const last = attempts[attempts.length - 1];
      steps.push(first, { hidden: entries.slice(at + 1, last) }, ...entries.slice(last, end));
    } else {
      steps.push(...entries.slice(at, end));
    }
    at = end;
  }
  return steps;
}

function Fold({ hidden, ...context }: { hidden: Entry[] } & Context) {
  const [isOpen, setOpen] = useState(false);
  if (isOpen) return <>{hidden.map((entry, at) => <Step key={at} entry={entry} {...context} />)}</>;
  const count = hidden.filter((entry) => entry.what === "attempt").length;
  return (
    <li class="fold">
      <span class="sign" aria-hidden="true">⋮</span>
      <div><button type="button" class="link" onClick={() => setOpen(true)}>{plural(count, "more attempt")} with the same error</button></div>
    </li>
  );
}

const REASONS: Record<string, string> = {
  create: "Created: the object is new to the operator",
  update: "Changed since it was last handled",
  delete: "Deletion was requested",
  resume: "Seen again after the operator started",
};

interface Context { page: ObjectPage; place: Place; overview: Overview; now: number }

function Timeline(props: { chronicle: Chronicle } & Context) {
  const all = groups(props.chronicle.entries);
  return (
    <Card title="Timeline" note="newest cause first">
      {all.length === 0 && <Empty>The operator has seen the object and found nothing to do.</Empty>}
      {all.map((entries, index) => (
        <ol class="timeline" key={`${entries[0].at}-${index}`}>
          {folded(entries).map((step, at) => ("what" in step
            ? <Step key={at} entry={step} {...props} />
            : <Fold key={at} hidden={step.hidden} {...props} />))}
          {index === 0 && props.chronicle.running.map((call) => (
            <li class="running" key={call.handler}>
              <span class="sign running" aria-hidden="true">▶</span>
              <div><strong><code>{call.handler}</code> is running</strong>, attempt {call.number}, for {age(call.since, props.now)}</div>
            </li>
          ))}
        </ol>
      ))}
    </Card>
  );
}

function Step({ entry, page, place, overview }: { entry: Entry } & Context) {
  const time = <time dateTime={entry.at} title={entry.at}>{clock(entry.at)}</time>;
  switch (entry.what) {
    case "cause": {
      const command = patchCommand(entry.changes, entry.more, page, place, overview);
      return (
        <li class="cause">
          <span class="sign cause" aria-hidden="true">◆</span>
          <div>
            <div class="line"><strong>{REASONS[entry.reason] ?? entry.reason}</strong> {time}</div>
            <div class="note">
              {entry.selected.length > 0 ? <>handlers: {entry.selected.map((id, index) => <>{index > 0 && ", "}<code>{id}</code></>)}</> : "no handler matches"}
            </div>
            {entry.reason !== "create" && entry.changes.length > 0 && <Diff changes={entry.changes} more={entry.more} />}
            {entry.filtered.length > 0 && (
              <details><summary>{plural(entry.filtered.length, "handler")} not called</summary>
                <ul class="whys">{entry.filtered.map((it) => <li key={it.handler}><code>{it.handler}</code>: {it.why}</li>)}</ul>
              </details>
            )}
            {entry.reason === "update" && command && <details><summary>Reproduce with kubectl</summary><Command text={command} /></details>}
          </div>
        </li>
      );
    }
    case "attempt": {
      const signs = { success: ["settled", "✓", "succeeded"], retry: ["retrying", "↻", "failed and will be retried"], failure: ["failed", "✕", "failed permanently"] };
      const [name, sign, words] = signs[entry.ending];
      return (
        <li class={name}>
          <span class={`sign ${name}`} aria-hidden="true">{sign}</span>
          <div>
            <div class="line">
              <span><strong><code>{entry.handler}</code></strong> {words} <span class="note">attempt {entry.number}, {entry.milliseconds === 0 ? "< 1 ms" : milliseconds(entry.milliseconds)}</span></span> {time}
            </div>
            {entry.error && <div class="text error">{entry.error}</div>}
            {entry.next_at && <div class="note">next attempt at {clock(entry.next_at)}</div>}
          </div>
        </li>
      );
    }
    case "write": {
      const visible = entry.changes.filter((change) => !change.field.startsWith("metadata.annotations"));
      const isProgress = visible.length === 0;
      // Functions change lists, and their changes are not recorded.
      const progress = entry.changes.length > 0 ? "Stored progress" : "Changed lists, such as finalizers";
      return (
        <li class="write">
          <span class="sign write" aria-hidden="true">✎</span>
          <div>
            <div class="line"><span>{isProgress ? <span class="note">{progress}</span> : <strong>Wrote {plural(visible.length, "field")}</strong>}</span> {time}</div>
            {!isProgress && <Diff changes={visible} more={entry.more} />}
            {entry.changes.length > 0 && <details><summary>{isProgress ? "What was written" : "Everything written"}</summary><Diff changes={entry.changes} more={entry.more} /></details>}
          </div>
        </li>
      );
    }
    case "trouble":
      return (
        <li class="failed">
          <span class="sign failed" aria-hidden="true">✕</span>
          <div><div class="line"><strong>Could not be handled</strong> {time}</div><div class="text error">{entry.error}</div></div>
        </li>
      );
    case "gone":
      return <li class="gone"><span class="sign" aria-hidden="true">∅</span><div class="line"><strong>Removed from the cluster</strong> {time}</div></li>;
  }
}

function NotCalled({ page }: { page: ObjectPage }) {
  const situation = page.chronicle?.situation;
  if (!situation) return null;
  return (
    <Card title="Handlers that are not called" note={situation.filtered.length || "none"}>
      {situation.filtered.length === 0 && <Empty>No handler's conditions exclude this object.</Empty>}
      <ul class="whys">{situation.filtered.map((it) => (
        <li key={it.handler}><a href={`#/handlers/${encodeURIComponent(it.handler)}`}><code>{it.handler}</code></a><div>{it.why}</div></li>
      ))}</ul>
    </Card>
  );
}

const HANDLED: Record<string, string> = {
  unknown: "The last-handled state is in a storage that the web UI cannot read.",
  never: "There is no last-handled state.",
  same: "The object has not changed since it was last handled.",
  changed: "The object differs from its last-handled state:",
};

function Persisted({ page, now }: { page: ObjectPage; now: number }) {
  if (!page.handled) return null;
  return (
    <Card title="Persisted state" note={page.held ? "has our finalizer" : undefined}>
      <p>{HANDLED[page.handled]}</p>
      {page.handled === "changed" && page.differences && (
        <Diff more={0} changes={page.differences.map((it) => ({
          field: it.field, old: it.old === null ? null : JSON.stringify(it.old), new: it.new === null ? null : JSON.stringify(it.new),
        }))} />
      )}
      {page.records?.map((record) => <RecordLine key={record.id} record={record} now={now} />)}
    </Card>
  );
}

function RecordLine({ record, now }: { record: ProgressRecord; now: number }) {
  const words = record.success ? "succeeded" : record.failure ? "failed permanently"
    : record.delayed && Date.parse(zoned(record.delayed)) > now ? `next attempt ${until(zoned(record.delayed), now)}` : "due";
  return (
    <div class="record">
      <div><code>{record.id}</code> <span class="note">{record.purpose}</span></div>
      <div>{plural(record.retries, "attempt")}, {words}</div>
      {record.message && record.message !== "None" && <div class="text error">{record.message}</div>}
    </div>
  );
}

function Children({ nodes, chronicle, now }: { nodes: Node[] | null; chronicle: Chronicle | null; now: number }) {
  const refused = chronicle?.situation.children.filter((child) => child.refused) ?? [];
  if (!nodes || (nodes.length === 0 && refused.length === 0)) return null;
  return (
    <Card title="Children" note={plural(nodes.length, "child").replace("childs", "children")}>
      <Tree nodes={nodes} />
      {refused.map((child) => (
        <p class="text error" key={child.child}>{child.child}: {child.refused}{child.next_at && ` (next attempt ${until(child.next_at, now)})`}</p>
      ))}
    </Card>
  );
}

function Tree({ nodes }: { nodes: Node[] }) {
  return (
    <ul class="tree">
      {nodes.map((node) => (
        <li key={`${node.kind}/${node.name}`}>
          <span class={`sign ${node.waiting ? "waiting" : "settled"}`} aria-hidden="true">{node.waiting ? "⋯" : "✓"}</span>
          <span class="note">{node.kind}</span> <a href={objectLink(node)}>{node.name}</a>{" "}
          <span class={node.waiting ? "text warning" : "note"}>{node.waiting ?? "ready"}</span>
          {node.changed_by.length > 0 && <span class="text warning"> drift: also written by {node.changed_by.join(", ")}</span>}
          {node.children.length > 0 && <Tree nodes={node.children} />}
        </li>
      ))}
    </ul>
  );
}

export function Events({ events, now }: { events: ClusterEvent[]; now: number }) {
  if (events.length === 0) return null;
  return (
    <Card title="Events" note={String(events.length)}>
      <ul class="events">
        {events.slice(0, 30).map((event, index) => (
          <li key={index}>
            <div class="line"><strong class={event.type === "Warning" ? "text warning" : ""}>{event.type === "Warning" ? "! " : ""}{event.reason}</strong>
              <span class="note">{age(event.at, now)} ago{event.count > 1 && `, ${event.count} times`}</span></div>
            <div>{event.message}</div>
          </li>
        ))}
      </ul>
    </Card>
  );
}

function Commands({ page, place, overview }: { page: ObjectPage; place: Place; overview: Overview }) {
  const base = kubectl(page, place, overview);
  return (
    <Card title="Commands">
      <Command label="Show it" text={`${base.prefix} get ${base.kind} ${place.name}${base.namespace} -o yaml`} />
      <Command label="Explain it in a terminal" text={`${base.explain} ${base.kind}/${place.name}${base.namespace}`} />
      {page.object && <div class="command"><span class="note">Create the same object elsewhere</span><Copy text={manifestCommand(page.object, base.prefix)} label="Copy kubectl apply" /></div>}
    </Card>
  );
}

function Manifest({ page, isFirst }: { page: ObjectPage; isFirst: boolean }) {
  const [isOpen, setOpen] = useState(isFirst);
  if (!page.object) return null;
  return (
    <section class="card">
      <details open={isOpen} onToggle={(event) => setOpen(event.currentTarget.open)}>
        <summary><h2>Manifest</h2></summary>
        {isOpen && <pre class="manifest" tabIndex={0}><code>{yaml(page.object)}</code></pre>}
      </details>
    </section>
  );
}
