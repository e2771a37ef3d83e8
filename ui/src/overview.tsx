// The operator as a whole: problems first, then statistics.

import { useEffect, useRef, useState } from "preact/hooks";
import { At, Card, Chart, Empty, PhaseCount } from "./parts";
import type { Overview, Problem, Sample, Watch } from "./types";
import { age, duration, megabytes, milliseconds, objectLink, PHASES, placeName, plural, short, until } from "./words";

// Keeps the samples of all responses: each response has only the newest.
export function useSamples(overview: Overview | null): Sample[] {
  const kept = useRef<Sample[]>([]);
  const [samples, setSamples] = useState<Sample[]>([]);
  useEffect(() => {
    if (!overview || overview.samples.length === 0) return;
    const last = kept.current[kept.current.length - 1]?.at ?? 0;
    kept.current = [...kept.current, ...overview.samples.filter((sample) => sample.at > last)].slice(-300);
    setSamples(kept.current);
  }, [overview]);
  return samples;
}

export function OverviewView({ overview, samples, now }: { overview: Overview; samples: Sample[]; now: number }) {
  return (
    <>
      <h1>Overview</h1>
      <Problems overview={overview} now={now} />
      <Charts overview={overview} samples={samples} />
      <Kinds overview={overview} />
      {overview.status && <Watches watches={overview.status.watches} />}
    </>
  );
}

function Problems({ overview, now }: { overview: Overview; now: number }) {
  const { problems, problem_count: count } = overview;
  if (count === 0 && !overview.status) {
    return <Card title="Problems" note="unknown"><Empty>They will be listed as soon as the operator answers.</Empty></Card>;
  }
  if (count === 0) {
    return (
      <Card title="Problems" note="none">
        <p class="fine"><span class="sign settled" aria-hidden="true">✓</span> Nothing is failing, nothing has waited too long, and no deletion is stuck.</p>
      </Card>
    );
  }
  return (
    <Card title="Problems" note={plural(count, "problem")} class="problems">
      <ul>
        {problems.map((problem, index) => <ProblemLine key={index} problem={problem} now={now} />)}
      </ul>
      {count > problems.length && <p class="note">and {count - problems.length} more</p>}
    </Card>
  );
}

function ProblemLine({ problem, now }: { problem: Problem; now: number }) {
  return (
    <li class={problem.severity}>
      <span class="severity">{problem.severity === "error" ? "✕ Error" : "! Warning"}</span>
      <div class="what">
        <strong>{problem.title}</strong>{" "}
        {problem.object && <a href={objectLink(problem.object)}>{problem.object.resource.split(".")[0]} {placeName(problem.object)}</a>}
        <div class="text">{problem.text}</div>
      </div>
      <div class="when note">
        {problem.since && <span>for {age(problem.since, now)}</span>}
        {problem.next_at && <span>next attempt {until(problem.next_at, now)}</span>}
      </div>
    </li>
  );
}

// The growth of a counter per second; a counter that decreased was reset.
function rates(samples: Sample[], pick: (sample: Sample) => number): (number | null)[] {
  return samples.map((sample, index) => {
    const former = samples[index - 1];
    if (!former) return null;
    const seconds = (sample.at - former.at) / 1000;
    const grown = pick(sample) - pick(former);
    return seconds > 0 && grown >= 0 ? grown / seconds : null;
  });
}

// The mean latency of the calls in the half minute before each sample; if there were no calls, the
// last known one.
function latencies(samples: Sample[]): (number | null)[] {
  let known: number | null = null;
  let first = 0;
  return samples.map((sample) => {
    while (sample.at - samples[first].at > 30_000) first += 1;
    const former = samples[first];
    const calls = sample.calls - former.calls;
    if (calls > 0) known = Math.max(0, ((sample.seconds - former.seconds) / calls) * 1000);
    return known;
  });
}

function last(points: (number | null)[], over = 5): number {
  const recent = points.slice(-over).filter((value): value is number => value !== null);
  return recent.length ? recent.reduce((sum, value) => sum + value, 0) / recent.length : 0;
}

function Charts({ overview, samples }: { overview: Overview; samples: Sample[] }) {
  const status = overview.status;
  const times = samples.map((sample) => sample.at);
  const calls = rates(samples, (sample) => sample.calls);
  const failed = rates(samples, (sample) => sample.failed);
  const requests = rates(samples, (sample) => sample.requests);
  const throttled = rates(samples, (sample) => sample.throttled);
  const latency = latencies(samples);
  const recent = latency.filter((value): value is number => value !== null);
  const memory = samples.map((sample) => sample.memory);
  return (
    <div class="charts" aria-label="The last ten minutes">
      <Chart title="Queue" value={short(status?.queued ?? 0)} times={times}
        note={(status?.queued ?? 0) > 0 ? `the oldest has waited ${duration(status?.queue_age ?? 0)}` : "nothing is waiting"}
        lines={[{ points: samples.map((sample) => sample.queued) }]} alert={(status?.queue_age ?? 0) > 30} />
      <Chart title="Being handled" value={short(status?.running ?? 0)} times={times}
        note={`${short(status?.delayed ?? 0)} scheduled for later`}
        lines={[{ points: samples.map((sample) => sample.running) }]} />
      <Chart title="Handler calls" value={`${short(last(calls))}/s`} times={times}
        note={`${short(last(failed))}/s failed`} lines={[{ points: calls }, { points: failed, class: "bad" }]}
        alert={last(failed) > 0} />
      <Chart title="Latency" value={recent.length ? milliseconds(recent[recent.length - 1]) : "–"} times={times}
        note="mean per call" lines={[{ points: latency }]} />
      <Chart title="API requests" value={`${short(last(requests))}/s`} times={times}
        note={`${short(samples[samples.length - 1]?.throttled ?? 0)} throttled (429)`}
        lines={[{ points: requests }, { points: throttled, class: "bad" }]} alert={last(throttled) > 0} />
      <Chart title="Memory" value={megabytes(status?.memory_bytes ?? null)} times={times}
        note={plural(status?.objects ?? 0, "object")} scale={1 / 1048576} lines={[{ points: memory }]} />
    </div>
  );
}

function Kinds({ overview }: { overview: Overview }) {
  const kinds = Object.entries(overview.phases);
  return (
    <Card title="Objects" class="kinds">
      {kinds.length === 0 && <Empty>The operator does not watch any kind for its handlers yet.</Empty>}
      {kinds.map(([resource, counts]) => {
        const total = PHASES.reduce((sum, phase) => sum + (counts[phase] ?? 0), 0);
        return (
          <a class="kind" href={`#/objects/${resource}`} key={resource}>
            <strong>{resource}</strong>
            <span class="counts">
              {PHASES.filter((phase) => counts[phase]).map((phase) => <PhaseCount key={phase} phase={phase} count={counts[phase]!} />)}
              {total === 0 && <span class="note">no objects</span>}
            </span>
            <span class="bar" aria-hidden="true">
              {PHASES.filter((phase) => counts[phase]).map((phase) => (
                <i key={phase} class={phase} style={{ flexGrow: counts[phase] }} />
              ))}
            </span>
          </a>
        );
      })}
    </Card>
  );
}

const PURPOSES: Record<string, string> = {
  handlers: "for handlers", discovery: "for discovery", children: "for children", peering: "for peering",
};

function watchState(watch: Watch): [string, string] {
  if (watch.failing) return ["failed", "✕ failing"];
  if (!watch.listed) return ["pending", "○ listing"];
  return ["settled", "✓ watching"];
}

function Watches({ watches }: { watches: Watch[] }) {
  return (
    <Card title="Watches" class="watches" note={plural(watches.length, "watch").replace("watchs", "watches")}>
      <div class="scroll">
        <table>
          <thead><tr><th>Resource</th><th>Namespace</th><th>State</th><th>Last activity</th><th class="number">Objects</th><th class="number">Restarts</th></tr></thead>
          <tbody>
            {watches.map((watch, index) => {
              const [sign, words] = watchState(watch);
              return (
                <tr key={index}>
                  <td><code>{watch.resource}</code> <span class="note">{PURPOSES[watch.purpose]}</span>
                    {watch.failing && <div class="text error">{watch.failing}</div>}</td>
                  <td>{watch.namespace ?? <span class="note">all</span>}</td>
                  <td><span class={`word ${sign}`}>{words}</span></td>
                  <td>{duration(watch.age)} ago</td>
                  <td class="number">{watch.purpose === "handlers" ? watch.objects.toLocaleString("en") : "–"}</td>
                  <td class="number">{watch.restarts}</td>
                </tr>
              );
            })}
          </tbody>
        </table>
      </div>
    </Card>
  );
}

export function Silent({ overview, now }: { overview: Overview; now: number }) {
  const { address, failure, answered_at: answered } = overview.operator;
  return (
    <div class="banner error" role="alert">
      <strong>The operator does not answer</strong> at {address}: {failure}.{" "}
      {answered ? <>Last updated at <At at={answered} now={now} />.</> : "Is it running? This page continues as soon as the operator answers."}
    </div>
  );
}
