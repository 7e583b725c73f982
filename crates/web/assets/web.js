// Keys, the reader of traces, and runs as they go on. Everything that others wrote becomes text nodes.

const address = (...segments) => `/${segments.map(encodeURIComponent).join("/")}`;

function theme() {
  const root = document.documentElement;
  const dark = (root.dataset.theme || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")) === "dark";
  root.dataset.theme = dark ? "light" : "dark";
  try { localStorage.setItem("aec-theme", root.dataset.theme); } catch { /* nothing is kept then */ }
}

// Events of a stream until it says that it is over. The browser comes back by itself after a break.
function listen(stream, handlers) {
  const source = new EventSource(stream);
  for (const [name, handle] of Object.entries(handlers)) source.addEventListener(name, (event) => handle(JSON.parse(event.data)));
  source.addEventListener("end", () => source.close());
  addEventListener("pagehide", () => source.close());
  // Whoever comes back to a page that the browser kept wants what is new.
  addEventListener("pageshow", (event) => { if (event.persisted) location.reload(); });
}

function liveRun(box) {
  const bar = document.getElementById("live-bar");
  const counts = document.getElementById("live-counts");
  const attempts = document.getElementById("live-attempts");
  const show = (progress) => {
    bar.max = Math.max(1, known(progress.planned) ? progress.planned : progress.recorded);
    bar.value = progress.recorded;
    counts.textContent = visible(progress.counts);
    attempts.replaceChildren(...progress.under_way.map((attempt) => {
      const link = document.createElement("a");
      link.href = address("trial", box.dataset.experiment, attempt.stem);
      link.textContent = visible(attempt.label);
      link.title = visible(attempt.stem);
      const item = document.createElement("li");
      item.append(link);
      if (attempt.silent_seconds >= 30) item.append(` silent for ${attempt.silent_seconds} s`);
      return item;
    }));
    box.dataset.events = String(Number(box.dataset.events || 0) + 1);
  };
  listen(box.dataset.stream, { progress: show, end: () => location.reload() });
}

function liveEvolution(box) {
  const counts = document.getElementById("live-counts");
  const agents = document.getElementById("live-agents");
  const more = document.getElementById("live-more");
  const shown = Number(box.dataset.cycles);
  const show = (progress) => {
    counts.textContent = visible(progress.counts);
    agents.replaceChildren(...progress.agents.map((agent) => {
      const item = document.createElement("li");
      item.textContent = visible(`${agent.name}, cycle ${agent.cycle}: ${agent.doing}`);
      return item;
    }));
    // The page itself stays as somebody reads it until they want another.
    const fresh = progress.cycles - shown;
    if (fresh > 0) more.textContent = `Show ${count(fresh)} new cycle${fresh === 1 ? "" : "s"}`;
    box.dataset.events = String(Number(box.dataset.events || 0) + 1);
  };
  listen(box.dataset.stream, { progress: show, end: () => location.reload() });
}

function reader(box) {
  const entries = JSON.parse(document.getElementById("entries").textContent);
  let element = traceReader(entries);
  box.replaceChildren(element);
  if (!box.dataset.stream) return;
  listen(box.dataset.stream, {
    entries: (more) => {
      const first = !entries.length;
      entries.push(...more);
      if (first) {
        element = traceReader(entries);
        box.replaceChildren(element);
      } else element.dispatchEvent(new Event("grow"));
      box.dataset.events = String(entries.length);
    },
    // The page of the record has everything that this one has, and the verdict.
    end: () => location.reload(),
  });
}

// Rows of the lists of the page, walked with j and k.
let row = -1;

function move(by) {
  const rows = [...document.querySelectorAll("table.list tbody tr")].filter((candidate) => candidate.querySelector("a"));
  if (!rows.length) return;
  rows[row]?.classList.remove("active");
  row = Math.max(0, Math.min(rows.length - 1, row + by));
  rows[row].classList.add("active");
  rows[row].querySelector("a").focus({ preventScroll: true });
  rows[row].scrollIntoView({ block: "nearest" });
}

function onKey(event) {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const typing = event.target.closest("input[type=search], input[type=text], select, textarea");
  if (event.key === "Escape" && typing) typing.blur();
  if (typing) return;
  const follow = (id) => document.getElementById(id)?.click();
  const keys = {
    "/": () => document.getElementById("search").focus(),
    j: () => move(1),
    k: () => move(-1),
    "[": () => follow("previous"),
    "]": () => follow("next"),
    e: () => document.querySelector(".trace")?.dispatchEvent(new Event("next-error")),
  };
  if (!(event.key in keys) || event.defaultPrevented) return;
  keys[event.key]();
  event.preventDefault();
}

document.getElementById("theme").addEventListener("click", theme);
addEventListener("keydown", onKey);
const run = document.getElementById("live-run");
if (run) liveRun(run);
const evolution = document.getElementById("live-evolution");
if (evolution) liveEvolution(evolution);
const trace = document.getElementById("reader");
if (trace) reader(trace);
document.documentElement.dataset.ready = "yes";
