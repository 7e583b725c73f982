// Routes, pages and keys.

const STATUS = document.getElementById("status");

function say(text) {
  STATUS.textContent = text;
  STATUS.hidden = !text;
}

function trialFacts(report, i) {
  const t = report.trials;
  const task = report.tasks[t.task[i]];
  const agent = report.agents[t.agent[i]];
  const or = (text) => text || "–";
  return [
    ["trial id", report.keys[i]], ["task", task.label], ["task id", task.label === task.id ? "–" : task.id], ["revision", or(task.revision)], ["discipline", or(task.discipline)], ["difficulty", or(task.difficulty)], ["family", or(report.families.get(task.family))],
    ["agent", report.labels[t.agent[i]]], ["harness", or(agent.harness)], ["model", or(agent.model)], ["experiment", report.experiments[t.experiment[i]].id],
    ["repetition", count(t.repetition[i])], ["attempt", count(t.attempt[i])],
    ["outcome", t.outcome[i]], ["reward", decimals(t.reward[i], 4)], ["rescaled", decimals(t.rescaled[i], 4)],
    ["fault", or([t.fault_kind[i], t.fault_message[i]].filter(Boolean).join(": "))], ["stop", or(t.stop[i])],
    ["turns", count(t.turns[i])], ["tool calls", count(t.tool_calls[i])], ["tool errors", count(t.tool_errors[i])],
    ["submitted", known(t.submitted[i]) ? (t.submitted[i] ? "yes" : "no") : "–"], ["answer from", or(t.output_source[i])],
    ["tokens in", count(t.tokens_in[i])], ["tokens out", count(t.tokens_out[i])], ["cost", dollars(t.cost[i])], ["seconds", decimals(t.seconds[i], 3)],
  ];
}

function scoreCell(field) {
  const sign = !known(field.score) ? "" : field.score >= 1 ? "✓ " : field.score <= 0 ? "✗ " : "◐ ";
  return h(`td.n.r-${!known(field.score) ? "fault" : field.score >= 1 ? "pass" : field.score <= 0 ? "fail" : "partial"}`, null, sign + decimals(field.score, 2));
}

function fieldTable(report, i) {
  const fields = fieldsOf(report, i);
  if (!fields.length) return h("p.hint", null, "The verifier said nothing about parts of the answer.");
  const heads = ["field", "score", "status", "expected", "got", fields.some((field) => field.message) && "message"].filter(Boolean);
  return h("div.scroll", null, h("table.summary.fields", null,
    h("thead", null, h("tr", null, heads.map((head) => h(head === "score" ? "th.n" : "th", null, head)))),
    h("tbody", null, fields.map((field) => h("tr", null, h("td.data", null, field.name), scoreCell(field), h("td", null, field.status), h("td.data.value", null, field.expected), h("td.data.value", null, field.got), heads.length > 5 && h("td", null, field.message))))));
}

function missingTrace(report, i, name) {
  const which = name ? `The trace of ${name}` : "The trace of this trial";
  if (!report.trials.trace[i]) return h("p.note", null, `${which} was not recorded.`);
  return h("p.note", null, `${which} is left out of this file to keep it small. `, h("code", null, "aec-bench web"), " shows it; the project has it as ", h("code", null, tracePath(report, i)), ".");
}

function trialPage(report, state, i, actions) {
  const task = report.tasks[report.trials.task[i]];
  const rows = state.rows && state.rows.includes(i) ? state.rows : report.keys.map((_, n) => n);
  const at = rows.indexOf(i);
  const neighbour = (by, label, key) => {
    const other = rows[at + by];
    return h("button", { type: "button", disabled: other === undefined, title: `Key ${key}`, click: () => actions.open(other) }, label);
  };
  const marked = state.marks.includes(i);
  const facts = trialFacts(report, i).filter(([, value]) => value !== "–");
  const later = h("div", null, h("p.hint", null, "Unpacking …"));
  traceOf(report, i).then((trace) => {
    later.replaceChildren();
    if (!trace) return append(later, [missingTrace(report, i)]);
    append(later, [known(trace.answer) && folded("Answer as it was judged", () => foldedText(trace.answer)), traceReader(trace.entries)]);
  });
  return h("div.page", null,
    h("div.tools", null, h("h2", null, "Trial ", h("code.data", { title: visible(report.keys[i]) }, report.shortKeys[i])), h(`span.badge.r-${report.results[i]}`, null, `${report.results[i]} ${decimals(report.trials.reward[i], 3)}`), h("span.gap"),
      h("button", { type: "button", "aria-pressed": String(marked), title: "Key m", click: () => { actions.mark(i); actions.show(); } }, marked ? "Marked for diff" : "Mark for diff"),
      neighbour(-1, "‹ Previous", "["), h("output", null, `${count(at + 1)} of ${count(rows.length)}`), neighbour(1, "Next ›", "]")),
    h("dl.facts", null, facts.map(([name, value]) => h(value.length > 34 ? "div.long" : "div", null, h("dt", null, name), h("dd.data", null, value)))),
    h("h2", null, "Fields"), fieldTable(report, i),
    h("h2", null, "Prompt"), task.prompt ? folded(firstLine(task.prompt, 100), () => foldedText(task.prompt)) : h("p.hint", null, "This file does not have the prompt."),
    h("h2", null, "Trace"), later);
}

const KEYS = [["/", "search"], ["t", "trials"], ["o", "overview"], ["↑ ↓ Page Home End", "move in the table"], ["Enter", "open the trial"], ["Space or m", "mark for comparison"], ["d", "compare the two marked trials"], ["[ and ]", "previous and next trial"], ["e", "next error in the trace"], ["Escape", "back"]];

function start(report) {
  const state = { rows: null, marks: [], opened: -1, query: {}, table: null };
  const view = document.getElementById("view");
  const overview = document.getElementById("overview");
  const nav = document.getElementById("nav");

  const link = (i) => `#trial=${encodeURIComponent(report.keys[i])}`;
  const trialsLink = (query) => `#trials${Object.entries(query).filter(([, value]) => value).map(([name, value]) => `&${name}=${encodeURIComponent(value)}`).join("")}`;
  const actions = {
    link,
    open: (i) => { location.hash = link(i); },
    go: (query) => { location.hash = trialsLink(query); },
    diff: (a, b) => { location.hash = `#diff=${encodeURIComponent(report.keys[a])}&with=${encodeURIComponent(report.keys[b])}`; },
    unmark: () => { state.marks = []; actions.go(state.query); },
    mark: (i) => {
      state.marks = state.marks.includes(i) ? state.marks.filter((other) => other !== i) : [...state.marks, i].slice(-2);
      drawNav();
    },
    // The address follows the filters, but typing a search does not fill the history.
    remember: (query) => {
      state.query = query;
      try { history.replaceState(null, "", trialsLink(query)); } catch { /* some browsers forbid it for files */ }
    },
    show,
  };

  function theme() {
    const dark = (document.documentElement.dataset.theme || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")) === "dark";
    document.documentElement.dataset.theme = dark ? "light" : "dark";
    try { localStorage.setItem("aec-theme", document.documentElement.dataset.theme); } catch { /* nothing is kept then */ }
  }

  function drawNav() {
    const route = parameters();
    const here = (name) => ({ "aria-current": (name === "overview" ? ![...route.keys()].length : route.has(name)) ? "page" : null });
    const [a, b] = state.marks;
    nav.replaceChildren(
      h("a", { href: "#", ...here("overview") }, "Overview"),
      h("a", { href: trialsLink(state.query), ...here("trials") }, `Trials ${count(report.size)}`),
      state.marks.length === 2 ? h("a", { href: `#diff=${encodeURIComponent(report.keys[a])}&with=${encodeURIComponent(report.keys[b])}`, ...here("diff") }, "Diff of 2") : h("span.quiet", { title: "Mark two trials to compare them" }, `Diff: ${state.marks.length} of 2 marked`),
      h("button", { type: "button", id: "theme", click: theme }, "Light / dark"));
  }

  const parameters = () => new URLSearchParams(location.hash.slice(1));

  function show() {
    const route = parameters();
    const trial = route.get("trial");
    state.table = null;
    say("");
    let page = null;
    let title = report.title;
    const named = (key) => report.byKey.get(key);
    if (route.has("trials")) {
      state.query = Object.fromEntries([...route].filter(([name]) => name !== "trials"));
      state.table = trialTable(report, state, state.query, actions);
      page = state.table.element;
      title = `Trials · ${title}`;
    } else if (trial !== null && named(trial) !== undefined) {
      state.opened = named(trial);
      page = trialPage(report, state, state.opened, actions);
      title = `${report.shortKeys[state.opened]} · ${title}`;
    } else if (route.has("diff") && named(route.get("diff")) !== undefined && named(route.get("with")) !== undefined) {
      state.marks = [named(route.get("diff")), named(route.get("with"))];
      page = diffPage(report, state.marks[0], state.marks[1], actions);
      title = `Difference · ${title}`;
    } else if ([...route.keys()].length) say("This report has no such page. The overview is shown instead.");
    document.title = visible(title);
    overview.hidden = page !== null;
    view.hidden = page === null;
    document.body.classList.toggle("tall", state.table !== null);
    view.replaceChildren(...(page ? [page] : []));
    drawNav();
    if (state.table) {
      state.table.shown();
      state.table.focus();
    } else scrollTo(0, 0);
  }

  function onKey(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const typing = event.target.closest("input[type=search], select, textarea");
    if (event.key === "Escape") {
      if (typing) typing.blur();
      else if (parameters().has("trial") || parameters().has("diff")) actions.go(state.query);
      else if (state.table) location.hash = "";
      return;
    }
    if (typing) return;
    const press = (label) => [...view.querySelectorAll("button")].find((button) => button.textContent.includes(label) && !button.disabled)?.click();
    const keys = {
      "/": () => (view.querySelector("input[type=search]") || { focus: () => actions.go(state.query) }).focus(),
      t: () => actions.go(state.query),
      o: () => { location.hash = ""; },
      d: () => state.marks.length === 2 && actions.diff(...state.marks),
      "[": () => press("Previous"),
      "]": () => press("Next ›"),
      m: () => parameters().has("trial") && press("for diff"),
      e: () => view.querySelector(".trace")?.dispatchEvent(new Event("next-error")),
    };
    if (!(event.key in keys) || event.defaultPrevented) return;
    keys[event.key]();
    event.preventDefault();
  }

  const help = document.getElementById("keys");
  help.hidden = false;
  append(help, [h("dl.keys", null, KEYS.map(([key, what]) => h("div", null, h("dt", null, h("kbd", null, key)), h("dd", null, what))))]);
  append(document.getElementById("charts"), drawCharts(report, (agent, task) => actions.go({ agent: report.labels[agent], task: report.tasks[task].id })));
  addEventListener("hashchange", show);
  addEventListener("keydown", onKey);
  addEventListener("resize", () => state.table && state.table.resize());
  addEventListener("beforeprint", () => state.table && state.table.print(true));
  addEventListener("afterprint", () => state.table && state.table.print(false));
  show();
  document.documentElement.dataset.ready = "yes";
}

try {
  const kept = localStorage.getItem("aec-theme");
  if (kept === "light" || kept === "dark") document.documentElement.dataset.theme = kept;
} catch { /* the system decides */ }

if (typeof DecompressionStream === "undefined") {
  say("This browser cannot unpack the data of the report (it lacks DecompressionStream). The summary below is complete. Trials and traces need Chrome 80, Firefox 113, Safari 16.4 or later, or aec-bench web.");
} else {
  readReport().then(start).catch((error) => say(`The data of this report cannot be read: ${error.message}. The file may be damaged.`));
}
