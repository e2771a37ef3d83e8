// Actions on an object, if its operator allows them.

import { useState } from "preact/hooks";
import { act } from "./server";
import type { ObjectPage, Overview, Place } from "./types";

export function Actions({ place, page, overview, done }: { place: Place; page: ObjectPage; overview: Overview; done: () => void }) {
  const [error, setError] = useState<string | null>(null);
  const [busy, setBusy] = useState(false);
  const isWatched = place.resource in overview.phases;
  if (!page.object) return null;
  const run = async (path: string, question: string | null, body: object = {}) => {
    if (question && !window.confirm(question)) return;
    setBusy(true);
    try {
      await act(path, { resource: place.resource, namespace: place.namespace, name: place.name, ...body });
      setError(null);
      done();
    } catch (caught) {
      setError((caught as Error).message);
    }
    setBusy(false);
  };
  const phase = page.state?.phase;
  const isPod = place.resource === "pods";
  return (
    <div class="actions">
      {overview.actions && isWatched && (
        <>
          {(phase === "retrying" || phase === "failed" || phase === "deleting") && (
            <button type="button" class="primary" disabled={busy} onClick={() => void run("/api/do/retry", null)}>Retry now</button>
          )}
          {phase !== "deleting" && (
            <button type="button" disabled={busy} title="Handle the object as if it were new"
              onClick={() => void run("/api/do/again", "Handle this object as if it were new? Its create handlers will run again.")}>Run again</button>
          )}
          {phase === "paused"
            ? <button type="button" disabled={busy} onClick={() => void run("/api/do/resume", null)}>Resume</button>
            : <button type="button" disabled={busy} title="The operator ignores this object until it is resumed" onClick={() => void run("/api/do/pause", null)}>Pause</button>}
        </>
      )}
      {overview.embedded && isPod && <Stages run={(stage) => void run("/api/do/stage", null, { stage })} busy={busy} />}
      {overview.embedded && (
        <button type="button" class="danger" disabled={busy} onClick={() => void run("/api/do/delete", `Delete ${place.name}?`)}>Delete</button>
      )}
      {error && <span class="text error" role="alert">{error}</span>}
    </div>
  );
}

export const STAGES: [string, string][] = [
  ["running", "Ready"],
  ["never-ready", "Not ready"],
  ["crash", "Crash"],
  ["image-pull-error", "Image pull error"],
];

// The same as a menu for tables, where four buttons per row are too many.
export function StageMenu({ run, name }: { run: (stage: string) => void; name: string }) {
  return (
    <select aria-label={`Simulate for ${name}`} value="" onChange={(event) => run(event.currentTarget.value)}>
      <option value="" disabled>Choose…</option>
      {STAGES.map(([stage, words]) => <option key={stage} value={stage}>{words}</option>)}
    </select>
  );
}

export function Stages({ run, busy }: { run: (stage: string) => void; busy: boolean }) {
  return (
    <span class="stages" role="group" aria-label="Simulate">
      {STAGES.map(([stage, words]) => (
        <button type="button" class="small" key={stage} disabled={busy} onClick={() => run(stage)}>{words}</button>
      ))}
    </span>
  );
}
