// The frame around all views: navigation, keys, themes, and shared state.

import "./app.css";
import { render } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { ClusterView } from "./cluster";
import { HandlersView } from "./handlers";
import { ObjectView } from "./object";
import { ObjectsView } from "./objects";
import { OverviewView, Silent, useSamples } from "./overview";
import { PhaseCount, Trouble } from "./parts";
import { query, Refused, setServerTime, useNow, usePoll } from "./server";
import type { Overview } from "./types";
import { PHASES } from "./words";

function useRoute(): string[] {
  const read = () => location.hash.replace(/^#\/?/, "").split("/").filter(Boolean).map(decodeURIComponent);
  const [route, setRoute] = useState(read);
  // Layout effects run before the page handles another event; ordinary ones run later and could miss it.
  useLayoutEffect(() => {
    const change = () => {
      setRoute(read());
      window.scrollTo(0, 0);
    };
    window.addEventListener("hashchange", change);
    return () => window.removeEventListener("hashchange", change);
  }, []);
  return route;
}

type Theme = "auto" | "light" | "dark";

function useTheme(): [Theme, (theme: Theme) => void] {
  const [theme, setTheme] = useState<Theme>((localStorage.getItem("kopf-theme") as Theme | null) ?? "auto");
  useLayoutEffect(() => {
    localStorage.setItem("kopf-theme", theme);
    document.documentElement.dataset.theme = theme;
  }, [theme]);
  return [theme, setTheme];
}

const PLACES: Record<string, string> = { o: "#/", b: "#/objects", h: "#/handlers", c: "#/cluster" };

// `g` and a letter go to a view, `/` searches, `j` and `k` go to the rows, Escape goes up.
function useKeys(showHelp: (isOpen: boolean) => void) {
  useLayoutEffect(() => {
    let isGoing = false;
    const press = (event: KeyboardEvent) => {
      const target = event.target as HTMLElement;
      const isTyping = target.matches("input, textarea, select");
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      if (event.key === "Escape") {
        if (isTyping) return target.blur();
        showHelp(false);
        const up = document.querySelector<HTMLAnchorElement>("[data-up]");
        if (up) location.hash = up.getAttribute("href")!;
        return;
      }
      if (isTyping) return;
      if (isGoing && event.key in PLACES) location.hash = PLACES[event.key];
      isGoing = event.key === "g";
      if (event.key === "?") showHelp(true);
      if (event.key === "/") {
        event.preventDefault();
        document.querySelector<HTMLInputElement>("[data-search]")?.focus();
      }
      if ((event.key === "j" || event.key === "k") && !target.closest("[data-rows]")) {
        document.querySelector<HTMLElement>("[data-rows]")?.focus();
      }
    };
    window.addEventListener("keydown", press);
    return () => window.removeEventListener("keydown", press);
  }, []);
}

function App() {
  const route = useRoute();
  const now = useNow();
  const [theme, setTheme] = useTheme();
  const [isHelp, setHelp] = useState(false);
  useKeys(setHelp);
  const after = useRef(0);
  const [path, setPath] = useState("/api/overview");
  const { data, error } = usePoll<Overview>(path, 1000);
  const kept = useRef<Overview | null>(null);
  if (data) kept.current = data;
  const overview = kept.current;
  const samples = useSamples(data);
  useEffect(() => {
    if (!data) return;
    setServerTime(data.now);
    const last = data.samples[data.samples.length - 1]?.at;
    // The path changes rarely: every change of it triggers a request at once.
    if (last && last - after.current > 20_000) {
      after.current = last;
      setPath(query("/api/overview", { after: last - 5000 }));
    }
  }, [data]);
  const failing = overview?.problems.filter((problem) => problem.severity === "error").length ?? 0;
  useEffect(() => {
    const name = overview?.operator.name ? `${overview.operator.name} – Kopf` : "Kopf";
    document.title = failing > 0 ? `(${failing}) ${name}` : name;
  }, [failing, overview?.operator.name]);
  if (error instanceof Refused && error.status === 401) return <NoToken />;
  if (!overview) return error ? <Trouble error={error} /> : <p class="loading">Loading…</p>;
  const status = overview.status;
  const state = overview.operator.failure ? ["failed", "✕ no answer"]
    : !status ? ["pending", "○ connecting"]
    : status.paused ? ["paused", "❚❚ paused"]
    : status.ready ? ["settled", "✓ ready"] : ["pending", "○ starting"];
  return (
    <div class="shell">
      <a class="skip" href="#main" onClick={(event) => { event.preventDefault(); document.getElementById("main")?.focus(); }}>Skip to content</a>
      <Navigation overview={overview} route={route} failing={failing} />
      <header class="top">
        <span class="operator">Operator {overview.operator.name && <strong>{overview.operator.name}</strong>} at <code>{overview.operator.address}</code></span>
        <span class={`word ${state[0]}`} data-operator-state>{state[1]}</span>
        <span class="grow" />
        {error && <span class="text error">Connection lost: {error.message}</span>}
        <label class="theme"><span class="hidden">Theme</span>
          <select value={theme} onChange={(event) => setTheme(event.currentTarget.value as Theme)}>
            <option value="auto">Auto</option><option value="light">Light</option><option value="dark">Dark</option>
          </select>
        </label>
        <button type="button" class="small" onClick={() => setHelp(true)} aria-label="Keyboard shortcuts" title="Keyboard shortcuts">?</button>
      </header>
      <main id="main" tabIndex={-1} data-route={route.join("/")}>
        {overview.operator.failure && <Silent overview={overview} now={now} />}
        <View route={route} overview={overview} samples={samples} now={now} />
      </main>
      {isHelp && <Help close={() => setHelp(false)} />}
    </div>
  );
}

function View({ route, overview, samples, now }: { route: string[]; overview: Overview; samples: ReturnType<typeof useSamples>; now: number }) {
  const [view, ...rest] = route;
  switch (view) {
    case "objects": {
      const resource = rest[0] ?? Object.keys(overview.phases)[0];
      return resource ? <ObjectsView key={resource} resource={resource} overview={overview} now={now} />
        : <><h1>Objects</h1><p class="empty">The operator does not watch any kind for its handlers yet.</p></>;
    }
    case "object":
      return <ObjectView key={rest.join("/")} place={{ resource: rest[0], namespace: rest[1] === "-" ? null : rest[1], name: rest[2] }} overview={overview} now={now} />;
    case "handlers":
      return <HandlersView chosen={rest.length ? rest.join("/") : null} />;
    case "cluster":
      return <ClusterView resource={rest[0] ?? "pods"} overview={overview} now={now} />;
    default:
      return <OverviewView overview={overview} samples={samples} now={now} />;
  }
}

function Navigation({ overview, route, failing }: { overview: Overview; route: string[]; failing: number }) {
  const view = route[0] ?? "overview";
  const current = (is: boolean) => (is ? "page" : undefined) as "page" | undefined;
  return (
    <nav class="side-nav" aria-label="Views">
      <a class="brand" href="#/"><img src="/icon.svg" alt="" width="24" height="24" /> <span class="roomy">Kopf</span></a>
      <a href="#/" aria-current={current(view === "overview")}>Overview {failing > 0 && <span class="alarm" title={`${failing} errors`}>✕ {failing}</span>}</a>
      <a href="#/objects" aria-current={current(view === "objects" && !route[1])}>Objects</a>
      <div class="sub">
        {Object.entries(overview.phases).map(([resource, counts]) => (
          <a key={resource} href={`#/objects/${resource}`} aria-current={current((view === "objects" || view === "object") && route[1] === resource)}>
            <span class="resource" title={resource}>{resource.split(".")[0]}</span>
            {PHASES.filter((phase) => counts[phase] && ["failed", "retrying", "deleting"].includes(phase)).map((phase) => (
              <PhaseCount key={phase} phase={phase} count={counts[phase]!} />
            ))}
          </a>
        ))}
      </div>
      <a href="#/handlers" aria-current={current(view === "handlers")}>Handlers</a>
      <a href="#/cluster" aria-current={current(view === "cluster")}>{overview.embedded ? <><span class="roomy">Embedded cluster</span><span class="tight" aria-hidden="true">Cluster</span></> : "Cluster"}</a>
    </nav>
  );
}

function Help({ close }: { close: () => void }) {
  const keys = [
    ["g o", "Overview"], ["g b", "Objects"], ["g h", "Handlers"], ["g c", "Cluster"], ["/", "Search"],
    ["j  k", "Next and previous row"], ["Enter", "Open the row"], ["Esc", "Back"], ["?", "This list"],
  ];
  const button = useRef<HTMLButtonElement>(null);
  useLayoutEffect(() => button.current?.focus(), []);
  return (
    <div class="overlay" onClick={close}>
      <div class="dialog card" role="dialog" aria-modal="true" aria-label="Keyboard shortcuts" onClick={(event) => event.stopPropagation()}>
        <h2>Keyboard shortcuts</h2>
        <dl>{keys.map(([key, words]) => <div key={key}><dt><kbd>{key}</kbd></dt><dd>{words}</dd></div>)}</dl>
        <button type="button" ref={button} onClick={close}>Close</button>
      </div>
    </div>
  );
}

function NoToken() {
  return (
    <main class="alone">
      <h1>The token is missing</h1>
      <p>Open the address that <code>kopf dev</code>, <code>kopf ui</code> or <code>run --embedded</code> has printed, including everything after the <code>#</code>. Every start has a new token.</p>
    </main>
  );
}

render(<App />, document.getElementById("app")!);
