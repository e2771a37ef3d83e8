// The cluster: any resource as kubectl lists it, events, and saved states of an embedded cluster.

import { useState } from "preact/hooks";
import { StageMenu } from "./actions";
import { Card, Empty, Trouble } from "./parts";
import { act, query, usePoll } from "./server";
import type { ClusterEvent, Kind, Listing, Overview, Snapshot } from "./types";
import { age, clock, objectLink, plural } from "./words";

export function ClusterView({ resource, overview, now }: { resource: string; overview: Overview; now: number }) {
  const kinds = usePoll<Kind[]>("/api/cluster/kinds", 10000);
  const [text, setText] = useState("");
  const shown = (kinds.data ?? []).filter((kind) => `${kind.resource} ${kind.kind}`.toLowerCase().includes(text.toLowerCase()));
  const ours = new Set(Object.keys(overview.phases));
  const groups = new Map<string, Kind[]>();
  for (const kind of shown) {
    const group = ours.has(kind.resource) ? "this operator" : kind.group || "core";
    groups.set(group, [...(groups.get(group) ?? []), kind]);
  }
  const rank = (group: string) => ["this operator", "core", "apps", "batch"].indexOf(group) + 1 || 9;
  const sorted = [...groups].sort(([one], [other]) => rank(one) - rank(other) || one.localeCompare(other));
  return (
    <>
      <h1>{overview.embedded ? "Embedded cluster" : "Cluster"}</h1>
      {overview.embedded && <Snapshots now={now} />}
      <div class="browser">
        <nav class="list" aria-label="Resources">
          <input type="search" data-search placeholder="Search kinds  ( / )" aria-label="Search kinds" value={text}
            onInput={(event) => setText(event.currentTarget.value)} />
          <a href="#/cluster/events" aria-current={resource === "events" ? "page" : undefined}>Events</a>
          {sorted.map(([group, kinds]) => (
            <div key={group}>
              <div class="group">{group}</div>
              {kinds.filter((kind) => kind.kind !== "Event").map((kind) => (
                <a key={kind.resource} href={`#/cluster/${kind.resource}`} aria-current={kind.resource === resource ? "page" : undefined}>{kind.kind}</a>
              ))}
            </div>
          ))}
        </nav>
        <div class="content">
          {kinds.error && <Trouble error={kinds.error} />}
          {resource === "events" ? <EventList now={now} /> : <ResourceList resource={resource} overview={overview} />}
        </div>
      </div>
    </>
  );
}

function ResourceList({ resource, overview }: { resource: string; overview: Overview }) {
  const { data, error, again } = usePoll<Listing>(query("/api/cluster/list", { resource }), 1500);
  const [failure, setFailure] = useState<string | null>(null);
  if (!data) return error ? <Trouble error={error} /> : <p class="loading">Loading…</p>;
  const isPods = resource === "pods" && overview.embedded;
  const stage = async (row: { namespace: string | null; name: string }, stage: string) => {
    try {
      await act("/api/do/stage", { namespace: row.namespace, name: row.name, stage });
      setFailure(null);
      again();
    } catch (caught) {
      setFailure((caught as Error).message);
    }
  };
  return (
    <Card title={data.kind} note={plural(data.rows.length, "object") + (data.more ? `, ${data.more} more` : "")}>
      {failure && <p class="text error" role="alert">{failure}</p>}
      {data.rows.length === 0 ? <Empty>There are no objects of this kind.</Empty> : (
        <div class="scroll">
          <table>
            <thead><tr>
              {data.namespaced && <th>Namespace</th>}
              {data.columns.map((column) => <th key={column}>{column}</th>)}
              {isPods && <th>Simulate</th>}
            </tr></thead>
            <tbody>
              {data.rows.map((row) => (
                <tr key={`${row.namespace}/${row.name}`}>
                  {data.namespaced && <td class="note">{row.namespace}</td>}
                  {row.cells.map((cell, index) => (
                    <td key={index}>{index === 0 ? <a href={objectLink({ resource, ...row })}>{String(cell)}</a> : cell === null ? "" : String(cell)}</td>
                  ))}
                  {isPods && <td><StageMenu name={row.name} run={(it) => void stage(row, it)} /></td>}
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
    </Card>
  );
}

function EventList({ now }: { now: number }) {
  const { data, error } = usePoll<ClusterEvent[]>("/api/cluster/events", 2000);
  const [isWarnings, setWarnings] = useState(false);
  if (!data) return error ? <Trouble error={error} /> : <p class="loading">Loading…</p>;
  const shown = data.filter((event) => !isWarnings || event.type === "Warning");
  return (
    <Card title="Events" note={<label><input type="checkbox" checked={isWarnings} onChange={(event) => setWarnings(event.currentTarget.checked)} /> warnings only</label>}>
      {shown.length === 0 ? <Empty>{isWarnings ? "There are no warnings." : "There are no events."}</Empty> : (
        <div class="scroll">
          <table>
            <thead><tr><th>Last seen</th><th>Type</th><th>Reason</th><th>Object</th><th>Message</th></tr></thead>
            <tbody>
              {shown.slice(0, 300).map((event, index) => (
                <tr key={index}>
                  <td class="note tightly">{age(event.at, now)}{event.count > 1 && ` (×${event.count})`}</td>
                  <td class="tightly"><span class={`word ${event.type === "Warning" ? "retrying" : ""}`}>{event.type === "Warning" ? "! Warning" : event.type}</span></td>
                  <td class="tightly">{event.reason}</td>
                  <td>{event.kind} {event.namespace ? `${event.namespace}/` : ""}{event.name}</td>
                  <td class="message">{event.message}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
    </Card>
  );
}

function Snapshots({ now }: { now: number }) {
  const { data, again } = usePoll<Snapshot[]>("/api/cluster/snapshots", 5000);
  const [name, setName] = useState("");
  const [message, setMessage] = useState<{ text: string; isError: boolean } | null>(null);
  const run = async (path: string, body: object, words: (answer: any) => string) => {
    try {
      const answer = await act(path, body);
      setMessage({ text: words(answer), isError: false });
      setName("");
    } catch (caught) {
      setMessage({ text: (caught as Error).message, isError: true });
    }
    again();
  };
  return (
    <Card title="Snapshots" note="kept in memory while the cluster runs">
      <form class="save" onSubmit={(event) => {
        event.preventDefault();
        void run("/api/do/save", { name }, () => "Snapshot saved.");
      }}>
        <input type="text" placeholder="Name (optional)" aria-label="Name of the snapshot" value={name} onInput={(event) => setName(event.currentTarget.value)} />
        <button type="submit" class="primary">Save a snapshot</button>
        {message && <span class={message.isError ? "text error" : "note"} role="status">{message.text}</span>}
      </form>
      {data && data.length > 0 && (
        <ul class="snapshots">
          {data.map((snapshot) => (
            <li key={snapshot.id}>
              <strong>{snapshot.name}</strong> <span class="note">{plural(snapshot.objects, "object")}, {clock(snapshot.at)}, {age(snapshot.at, now)} ago</span>
              <button type="button" class="small" onClick={() => {
                if (window.confirm(`Restore "${snapshot.name}"? Everything that was created since then is removed.`)) {
                  void run("/api/do/restore", { id: snapshot.id }, (answer) => `${plural(answer.objects, "object")} restored.`);
                }
              }}>Restore</button>
            </li>
          ))}
        </ul>
      )}
    </Card>
  );
}
