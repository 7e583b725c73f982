// The table of all trials. Only the rows in sight are in the page.

const ROW = 26;
const SPARE = 16;
const PRINTED = 2000;

function trialColumns(report) {
  const t = report.trials;
  const task = (i) => report.tasks[t.task[i]];
  // Labels differ only as a whole, so they get the room that they need.
  const room = (labels, letter, least, most) => Math.min(Math.max(labels.reduce((width, label) => Math.max(width, label.length * letter + 16), 0), least), most);
  const text = (id, label, width, get) => ({ id, label, width, get, show: (i) => get(i) || "–" });
  const number = (id, label, width, column, show) => ({ id, label, width, number: true, get: (i) => column[i], show: (i) => show(column[i]) });
  // What is looked at most comes first; on a narrow screen the rest is reached by scrolling.
  const columns = [
    { ...text("trial", "trial", room(report.shortKeys, 7.3, 88, 260), (i) => report.keys[i]), show: (i) => report.shortKeys[i] },
    { ...text("task", "task", room(report.tasks.map((t) => t.label), 6.5, 200, 440), (i) => task(i).id), show: (i) => task(i).label },
    text("agent", "agent", 120, (i) => report.labels[t.agent[i]]),
    text("difficulty", "difficulty", 74, (i) => task(i).difficulty || ""),
    text("outcome", "outcome", 92, (i) => t.outcome[i]),
    number("reward", "reward", 68, t.reward, (value) => decimals(value, 3)),
    number("rescaled", "rescaled", 74, t.rescaled, (value) => decimals(value, 3)),
    number("turns", "turns", 58, t.turns, count),
    number("errors", "errors", 60, t.tool_errors, count),
    number("cost", "cost", 70, t.cost, dollars),
    number("seconds", "seconds", 76, t.seconds, (value) => decimals(value, 1)),
    number("in", "tokens in", 82, t.tokens_in, count),
    number("out", "tokens out", 88, t.tokens_out, count),
    { id: "trace", label: "trace", width: 66, get: (i) => (report.chunkOf.has(i) ? 2 : t.trace[i]), show: (i) => ["–", "left out", "here"][report.chunkOf.has(i) ? 2 : t.trace[i]] },
    number("calls", "calls", 54, t.tool_calls, count),
    text("stop", "stop", 88, (i) => t.stop[i]),
    text("fault", "fault", 130, (i) => t.fault_kind[i]),
    text("discipline", "discipline", 100, (i) => task(i).discipline),
    { ...text("family", "family", 190, (i) => task(i).family), show: (i) => report.families.get(task(i).family) || "–" },
    text("experiment", "experiment", 130, (i) => report.experiments[t.experiment[i]].id),
    number("repetition", "rep.", 48, t.repetition, count),
    number("attempt", "try", 44, t.attempt, count),
  ];
  // A column that says nothing, or the same for all, only takes room.
  const all = t.id.map((_, i) => i);
  const dull = { experiment: report.experiments.length < 2, attempt: all.every((i) => t.attempt[i] === 1), repetition: all.every((i) => t.repetition[i] === 1) };
  // That no trial has a price is news.
  return columns.map((column) => ({ ...column, hidden: dull[column.id] || (column.id !== "cost" && !all.some((i) => known(column.get(i)) && column.get(i) !== "")) }));
}

// A spreadsheet must not take a text for a formula.
function csvCell(value, isNumber) {
  if (!known(value)) return "";
  if (isNumber) return String(value);
  const text = /^\s*[=+\-@\t\r＝＋－＠]/.test(value) ? `'${value}` : String(value);
  return /[",\n\r]/.test(text) ? `"${text.replace(/"/g, '""')}"` : text;
}

function csv(columns, rows) {
  const lines = [columns.map((column) => csvCell(column.label))];
  for (const i of rows) lines.push(columns.map((column) => csvCell(column.get(i), column.number)));
  return lines.map((line) => line.join(",")).join("\r\n") + "\r\n";
}

const FILTERS = ["agent", "outcome", "result", "difficulty", "discipline", "experiment", "task"];

// The trials that a query such as { agent, outcome, q, sort } names, in its order.
function selectTrials(report, columns, query) {
  const get = {};
  for (const name of FILTERS) get[name] = name === "result" ? (i) => report.results[i] : columns.find((column) => column.id === name).get;
  const wanted = FILTERS.filter((name) => query[name]);
  const words = (query.q || "").toLowerCase().split(/\s+/).filter(Boolean);
  if (words.length && !report.haystack) {
    const texts = ["trial", "task", "agent", "experiment", "difficulty", "discipline", "family", "outcome", "fault", "stop"];
    const readers = texts.map((id) => columns.find((column) => column.id === id).get);
    const label = (i) => report.tasks[report.trials.task[i]].label;
    report.haystack = report.keys.map((_, i) => `${readers.map((read) => read(i)).join("\n")}\n${label(i)}\n${report.trials.fault_message[i]}`.toLowerCase());
  }
  const rows = [];
  for (let i = 0; i < report.size; i++) {
    if (wanted.every((name) => get[name](i) === query[name]) && words.every((word) => report.haystack[i].includes(word))) rows.push(i);
  }
  const down = (query.sort || "").startsWith("-");
  const column = columns.find((candidate) => candidate.id === (query.sort || "").replace(/^-/, ""));
  if (column) {
    const keys = new Map(rows.map((i) => [i, column.get(i)]));
    const missing = (key) => !known(key) || key === "";
    rows.sort((a, b) => {
      const [x, y] = [keys.get(a), keys.get(b)];
      // What is not known comes last in both directions.
      if (missing(x) || missing(y)) return missing(x) - missing(y) || a - b;
      return (x < y ? -1 : x > y ? 1 : 0) * (down ? -1 : 1) || a - b;
    });
  }
  return rows;
}

// A path whose beginning gives way when there is no room.
function path(text) {
  const at = text.lastIndexOf("/") + 1;
  return h("div.path", null, h("span", null, text.slice(0, at)), h("span", null, text.slice(at)));
}

function trialTable(report, state, query, actions) {
  const columns = trialColumns(report);
  const shown = columns.filter((column) => !column.hidden);
  let rows = [];
  let active = 0;
  let range = [0, -1];

  const body = h("tbody");
  const heads = shown.map((column) => h("th", { scope: "col", class: `c-${column.id}${column.number ? " n" : ""}` },
    h("button", { type: "button", click: () => sortBy(column.id) }, column.label)));
  const table = h("table.trials", { role: "grid", tabindex: "0", "aria-label": "Trials", keydown: onKey },
    h("thead", null, h("tr", { "aria-rowindex": 1 }, h("th.c-mark", { scope: "col" }, h("span", { title: "Mark two trials to compare them" }, "±")), heads)), body);
  shown.forEach((column, n) => { if (column.id !== "task") heads[n].style.width = `${column.width}px`; });
  table.style.minWidth = `${shown.reduce((sum, column) => sum + column.width, 30)}px`;
  const scroller = h("div.grid", { scroll: () => requestAnimationFrame(() => draw()), tabindex: "-1" }, table);
  const total = h("output", { "aria-live": "polite" });
  const search = h("input", { type: "search", placeholder: "Search task, agent, fault …", "aria-label": "Search trials", value: query.q, input: () => update("q", search.value) });
  const pickers = FILTERS.filter((name) => name !== "task").map(picker).filter(Boolean);
  const bar = h("div.tools", { role: "search" }, search, pickers, query.task && chip(),
    h("button", { type: "button", click: () => actions.go({}) }, "Clear"), total, h("span.gap"),
    h("button", { type: "button", click: save, title: "Save these rows as CSV" }, "CSV"));

  function picker(name) {
    const read = name === "result" ? (i) => report.results[i] : columns.find((column) => column.id === name).get;
    const counts = new Map();
    for (let i = 0; i < report.size; i++) counts.set(read(i), (counts.get(read(i)) || 0) + 1);
    if (counts.size < 2 && !query[name]) return null;
    const values = [...counts.keys()].filter(Boolean).sort(name === "difficulty" ? byDifficulty : undefined);
    const select = h("select", { "aria-label": name, change: () => update(name, select.value) },
      h("option", { value: "" }, `${name}: all`),
      values.map((value) => h("option", { value, selected: query[name] === value }, `${shorten(value, 32)} (${count(counts.get(value))})`)));
    return select;
  }

  function chip() {
    return h("button.chip", { type: "button", click: () => actions.go({ ...query, task: "" }), "aria-label": "Show all tasks", title: visible(query.task) }, `task ${shorten(report.tasks.find((task) => task.id === query.task)?.label || query.task, 60)} ×`);
  }

  function update(name, value) {
    query = { ...query, [name]: value };
    actions.remember(query);
    refresh();
  }

  function sortBy(id) {
    const column = columns.find((candidate) => candidate.id === id);
    const first = column.number ? `-${id}` : id;
    update("sort", query.sort === first ? (column.number ? id : `-${id}`) : first);
  }

  function refresh() {
    rows = selectTrials(report, columns, query);
    state.rows = rows;
    active = Math.max(0, rows.indexOf(state.opened));
    total.textContent = `${count(rows.length)} of ${plural(report.size, "trial")}`;
    const [, down, sorted] = /^(-?)(.*)$/.exec(query.sort || "");
    shown.forEach((column, n) => heads[n].setAttribute("aria-sort", column.id !== sorted ? "none" : down ? "descending" : "ascending"));
    table.setAttribute("aria-rowcount", rows.length + 1);
    range = [0, -1];
    scroller.scrollTop = Math.max(0, active * ROW - scroller.clientHeight / 2);
    draw();
  }

  function row(at) {
    const i = rows[at];
    const box = h("input", { type: "checkbox", tabindex: "-1", "aria-label": "Mark for comparison", click: (event) => { event.stopPropagation(); actions.mark(i); redraw(); } });
    box.checked = state.marks.includes(i);
    const cells = shown.map((column) => {
      const value = column.show(i);
      const mood = column.id === "outcome" || column.id === "reward" ? ` r-${report.results[i]}` : "";
      return h("td", { class: `c-${column.id}${column.number ? " n" : ""}${mood}`, title: column.number ? null : visible(column.get(i)) },
        column.id === "trial" ? h("a", { href: actions.link(i), tabindex: "-1" }, value) : column.id === "task" ? path(value) : value);
    });
    return h("tr", { id: `row-${at}`, "aria-rowindex": at + 2, "aria-selected": "false", click: (event) => { if (!event.target.closest("a, input")) actions.open(i); } },
      h("td.c-mark", null, box), cells);
  }

  const spacer = () => h("tr.spacer", { "aria-hidden": "true" }, h("td", { colspan: shown.length + 1 }));
  const message = (text) => h("tr", null, h("td.empty", { colspan: shown.length + 1 }, text));
  const above = spacer();
  const below = spacer();

  function draw(everything) {
    const seen = [Math.floor(scroller.scrollTop / ROW), Math.min(rows.length, Math.ceil((scroller.scrollTop + (scroller.clientHeight || 600)) / ROW))];
    if (!everything && range[0] <= seen[0] && range[1] >= seen[1]) return;
    const first = everything ? 0 : Math.max(0, seen[0] - SPARE);
    const end = everything ? Math.min(rows.length, PRINTED) : Math.min(rows.length, seen[1] + SPARE);
    // Rows that stay are kept.
    const old = new Map(Array.from({ length: Math.max(0, range[1] - range[0]) }, (_, n) => [range[0] + n, body.children[n + 1]]));
    const fresh = Array.from({ length: end - first }, (_, n) => old.get(first + n) || row(first + n));
    range = [first, end];
    above.firstChild.style.height = `${first * ROW}px`;
    below.firstChild.style.height = `${everything ? 0 : (rows.length - end) * ROW}px`;
    if (!rows.length) fresh.push(message("No trial fits. Clear the filters to see all."));
    if (everything && rows.length > end) fresh.push(message(`${count(rows.length - end)} more rows are not printed.`));
    body.replaceChildren(above, ...fresh, below);
    activate(true);
  }

  function redraw() {
    range = [0, -1];
    draw();
  }

  function activate(on) {
    const element = body.querySelector(`#row-${active}`);
    if (!element) return;
    element.classList.toggle("active", on);
    element.setAttribute("aria-selected", String(on));
    table.setAttribute("aria-activedescendant", element.id);
  }

  function move(to) {
    activate(false);
    active = Math.max(0, Math.min(rows.length - 1, to));
    const top = active * ROW;
    const head = table.tHead.offsetHeight;
    if (top < scroller.scrollTop) scroller.scrollTop = top;
    else if (top + ROW + head > scroller.scrollTop + scroller.clientHeight) scroller.scrollTop = top + ROW + head - scroller.clientHeight;
    draw();
    activate(true);
  }

  function onKey(event) {
    if (event.target !== table || event.ctrlKey || event.metaKey || event.altKey || !rows.length) return;
    const page = Math.max(1, Math.floor(scroller.clientHeight / ROW) - 2);
    const steps = { ArrowDown: active + 1, ArrowUp: active - 1, PageDown: active + page, PageUp: active - page, Home: 0, End: rows.length - 1 };
    if (event.key in steps) move(steps[event.key]);
    else if (event.key === "Enter") actions.open(rows[active]);
    else if (event.key === " " || event.key === "m") { actions.mark(rows[active]); redraw(); }
    else return;
    event.preventDefault();
  }

  function save() {
    const url = URL.createObjectURL(new Blob([csv(columns, rows)], { type: "text/csv" }));
    h("a", { href: url, download: "trials.csv" }).click();
    setTimeout(() => URL.revokeObjectURL(url), 10000);
  }

  return { element: h("div.trials-view", null, bar, scroller), shown: refresh, search, focus: () => table.focus(), print: (on) => (on ? draw(true) : redraw()), resize: redraw };
}
