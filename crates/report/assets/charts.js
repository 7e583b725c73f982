// Charts as SVG. Every chart shows its numbers too, as labels or as a table.

const WIDTH = 600;
const NAMES = 150;
const NUMBERS = 152;

function shorten(text, length) {
  const characters = [...visible(text)];
  return characters.length > length ? characters.slice(0, length - 1).join("") + "…" : characters.join("");
}

// Seven colours that people with colour blindness can tell apart, and four shapes for more agents.
function marker(series, x, y, hollow) {
  const name = `path.mark.s${series % 7}${hollow ? ".hollow" : ""}`;
  const shape = Math.floor(series / 7) % 4;
  const d = [
    `M${x - 3.8},${y}a3.8,3.8 0 1,0 7.6,0a3.8,3.8 0 1,0 -7.6,0`,
    `M${x - 3.5},${y - 3.5}h7v7h-7z`,
    `M${x},${y - 5}l5,9h-10z`,
    `M${x},${y - 5.5}l5.5,5.5l-5.5,5.5l-5.5,-5.5z`,
  ][shape];
  return svg(name, { d });
}

function ticks(low, high, wanted) {
  const span = high - low || 1;
  const raw = span / wanted;
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((n) => n * power).find((n) => n >= raw);
  const first = Math.ceil(low / step - 1e-9);
  return Array.from({ length: Math.floor(high / step + 1e-9) - first + 1 }, (_, n) => (first + n) * step);
}

const tick = (value) => String(Number(value.toPrecision(6)));

function scale(low, high, from, to) {
  const factor = (to - from) / (high - low || 1);
  return (value) => from + (value - low) * factor;
}

// Rewards lie between 0 and 1 unless the numbers say otherwise.
function rewardRange(values) {
  const finite = values.filter(known);
  return [Math.min(0, ...finite), Math.max(1, ...finite)];
}

function figure(title, drawing, ...rest) {
  return h("figure", null, h("figcaption", null, title), drawing, rest);
}

function numberTable(heads, rows) {
  const table = h("table.summary", null,
    h("thead", null, h("tr", null, heads.map((head, n) => h(n ? "th.n" : "th", null, head)))),
    h("tbody", null, rows.map((row) => h("tr", null, row.map((cell, n) => h(n ? "td.n" : "td.data", null, cell))))));
  return h("details", null, h("summary", null, "Numbers"), h("div.scroll", null, table));
}

// Rows of a dot with its interval; a row without a mean is a heading.
function intervalChart(title, rows, range, note) {
  const right = WIDTH - NUMBERS;
  const x = scale(range[0], range[1], NAMES, right - 12);
  const bottom = rows.length * 20 + 4;
  const drawing = svg("svg", { viewBox: `0 0 ${WIDTH} ${bottom + 18}`, role: "img", "aria-label": title });
  for (const value of ticks(range[0], range[1], 5)) {
    drawing.append(svg(value === 0 ? "line.axis" : "line.rule", { x1: x(value), x2: x(value), y1: 0, y2: bottom }));
    drawing.append(svg("text.tick", { x: x(value), y: bottom + 13, "text-anchor": "middle" }, tick(value)));
  }
  rows.forEach((row, n) => {
    const y = n * 20 + 12;
    const label = shorten(row.label, row.heading ? 60 : 21);
    drawing.append(svg(row.heading ? "text.heading" : "text", { x: row.heading ? 0 : row.indent ? 12 : 0, y: y + 4 }, svg("title", null, row.whole || row.label), label));
    if (row.heading) return;
    if (known(row.low) && known(row.high)) {
      const path = `M${x(row.low)},${y}H${x(row.high)}M${x(row.low)},${y - 5}v10M${x(row.high)},${y - 5}v10`;
      drawing.append(svg(`path.whisker.s${row.series % 7}`, { d: path }));
    }
    if (known(row.mean)) drawing.append(marker(row.series, x(row.mean), y));
    const numbers = known(row.mean) ? `${row.mean.toFixed(3)}${row.mark || ""}  ${known(row.low) ? `[${row.low.toFixed(3)}, ${row.high.toFixed(3)}]` : ""}` : "no reward";
    drawing.append(svg("text.number", { x: right, y: y + 4 }, svg("title", null, plural(row.n, "trial")), numbers));
  });
  return figure(title, drawing, note && h("p.hint", null, note));
}

function agentChart(report) {
  const rows = report.agents.map((a, n) => ({ label: report.labels[n], series: n, mean: a.mean, mark: a.unknown ? "*" : "", low: a.low, high: a.high, n: a.trials }));
  return intervalChart("Mean reward with 95 % interval", rows, rewardRange(rows.flatMap((row) => [row.low, row.high, row.mean])));
}

// A family may be named after a task.
const groupLabel = (report, kind, name) => (kind === "family" && report.families.get(name)) || name;

function groupChart(report, kind, title) {
  const groups = report.groups.filter((group) => group.kind === kind);
  const names = [...new Set(groups.map((group) => group.name))];
  names.sort(kind === "difficulty" ? byDifficulty : undefined);
  if (!names.length) return null;
  if (names.length > 12) return groupTable(report, kind, groups, names, title);
  const rows = [];
  for (const name of names) {
    const members = groups.filter((group) => group.name === name);
    const byAgent = members.filter((group) => known(group.agent));
    const shown = byAgent.length ? byAgent : members;
    rows.push({ label: `${groupLabel(report, kind, name)} · ${plural(shown.reduce((sum, group) => sum + group.trials, 0), "trial")}`, whole: name, heading: true });
    for (const g of shown) rows.push({ label: known(g.agent) ? report.labels[g.agent] : "all agents", indent: true, series: g.agent || 0, mean: g.mean, low: g.low, high: g.high, n: g.trials });
  }
  return intervalChart(title, rows, rewardRange(rows.flatMap((row) => [row.low, row.high, row.mean])));
}

// Too many groups for a chart.
function groupTable(report, kind, groups, names, title) {
  const cell = (g) => (g ? `${decimals(g.mean, 3)} [${interval(g.low, g.high)}] n=${count(g.trials)}` : "–");
  const found = new Map(groups.map((g) => [`${g.agent ?? ""}/${g.name}`, g]));
  const agents = ["", ...report.labels.keys()].filter((agent) => groups.some((g) => (g.agent ?? "") === agent));
  const rows = names.map((name) => [labelled(groupLabel(report, kind, name), name), ...agents.map((agent) => cell(found.get(`${agent}/${name}`)))]);
  return figure(title, numberTable([plural(names.length, "group"), ...agents.map((agent) => (agent === "" ? "all agents" : report.labels[agent]))], rows));
}

function outcomeChart(report) {
  const results = ["pass", "partial", "fail", "fault"];
  const counts = report.agents.map(() => [0, 0, 0, 0]);
  report.results.forEach((result, i) => counts[report.trials.agent[i]][results.indexOf(result)]++);
  const right = WIDTH - NUMBERS;
  const drawing = svg("svg", { viewBox: `0 0 ${WIDTH} ${counts.length * 20 + 22}`, role: "img", "aria-label": "Results by agent" });
  results.forEach((result, n) => {
    drawing.append(svg(`rect.r-${result}`, { x: NAMES + n * 72, y: 2, width: 10, height: 10 }), svg("text.tick", { x: NAMES + 14 + n * 72, y: 11 }, result));
  });
  counts.forEach((row, n) => {
    const total = row.reduce((a, b) => a + b, 0);
    const y = n * 20 + 20;
    drawing.append(svg("text", { x: 0, y: y + 13 }, svg("title", null, report.labels[n]), shorten(report.labels[n], 21)));
    let x = NAMES;
    row.forEach((value, r) => {
      const width = ((right - 12 - NAMES) * value) / (total || 1);
      if (!value) return;
      drawing.append(svg(`rect.r-${results[r]}`, { x, y: y + 2, width: Math.max(width - 1, 0.5), height: 14 }, svg("title", null, `${results[r]}: ${count(value)}`)));
      x += width;
    });
    drawing.append(svg("text.number", { x: right, y: y + 13 }, row.map(count).join(" / ")));
  });
  return figure("Results: pass / partial / fail / fault", drawing);
}

function costChart(report) {
  const points = report.agents
    .map((a, n) => ({ n, x: known(a.cost) && !a.unpriced && a.trials ? a.cost / a.trials : null, y: a.mean }))
    .filter((p) => known(p.x) && known(p.y));
  if (!points.some((p) => p.x > 0)) return null;
  const best = (p) => !points.some((q) => q.x <= p.x && q.y >= p.y && (q.x < p.x || q.y > p.y));
  const front = points.filter(best).sort((a, b) => a.x - b.x || a.y - b.y);
  const costs = points.map((p) => p.x);
  const logarithmic = Math.min(...costs) > 0 && Math.max(...costs) / Math.min(...costs) > 10;
  const place = logarithmic ? Math.log10 : (value) => value;
  const [low, high] = logarithmic ? [Math.floor(place(Math.min(...costs)) - 0.05), Math.ceil(place(Math.max(...costs)) + 0.05)] : [0, Math.max(...costs) * 1.08];
  const range = rewardRange(points.map((p) => p.y));
  const height = 210;
  const x = scale(low, high, 40, WIDTH - 20);
  const y = scale(range[0], range[1], height - 34, 10);
  const title = "Cost per trial against mean reward";
  const drawing = svg("svg", { viewBox: `0 0 ${WIDTH} ${height}`, role: "img", "aria-label": title });
  for (const value of ticks(range[0], range[1], 5)) {
    drawing.append(svg("line.rule", { x1: 40, x2: WIDTH - 20, y1: y(value), y2: y(value) }), svg("text.tick", { x: 34, y: y(value) + 4, "text-anchor": "end" }, tick(value)));
  }
  const marks = logarithmic ? Array.from({ length: high - low + 1 }, (_, n) => low + n) : ticks(low, high, 6);
  for (const value of marks) {
    drawing.append(svg("line.rule", { x1: x(value), x2: x(value), y1: 10, y2: height - 34 }), svg("text.tick", { x: x(value), y: height - 20, "text-anchor": "middle" }, `$${tick(logarithmic ? 10 ** value : value)}`));
  }
  drawing.append(svg("text.tick", { x: WIDTH - 20, y: height - 4, "text-anchor": "end" }, `dollars per trial${logarithmic ? ", logarithmic" : ""}`));
  const steps = front.map((p, n) => (n ? `H${x(place(p.x))}V${y(p.y)}` : `M${x(place(p.x))},${y(p.y)}`)).join("");
  drawing.append(svg("path.front", { d: steps }));
  const taken = [];
  for (const p of [...points].sort((a, b) => b.y - a.y)) {
    const [px, py] = [x(place(p.x)), y(p.y)];
    drawing.append(marker(p.n, px, py, !front.includes(p)));
    let ty = Math.max(py - 7, 12);
    while (taken.some(([ox, oy]) => Math.abs(ox - px) < 120 && Math.abs(oy - ty) < 12)) ty += 12;
    taken.push([px, ty]);
    const left = px > WIDTH - 170;
    drawing.append(svg("text.halo", { x: px + (left ? -7 : 7), y: ty, "text-anchor": left ? "end" : "start" }, shorten(report.labels[p.n], 24)));
  }
  const rows = points.map((p) => [report.labels[p.n], dollars(p.x), decimals(p.y, 3), front.includes(p) ? "yes" : "no"]);
  return figure(title, drawing, h("p.hint", null, "Filled marks on the line: no other agent is both cheaper and better. Hollow marks: some agent is."),
    numberTable(["agent", "cost per trial", "mean reward", "on the front"], rows));
}

// One column for each task, hardest first; several tasks share a column when there are many.
function taskChart(report, open) {
  const { task, agent, reward } = report.trials;
  const sums = report.agents.map(() => report.tasks.map(() => [0, 0]));
  const all = report.tasks.map(() => [0, 0]);
  reward.forEach((value, i) => {
    if (!known(value)) return;
    for (const cell of [sums[agent[i]][task[i]], all[task[i]]]) {
      cell[0] += value;
      cell[1]++;
    }
  });
  const mean = ([sum, n]) => (n ? sum / n : null);
  const order = report.tasks.map((_, n) => n).filter((n) => all[n][1]);
  if (!order.length) return null;
  order.sort((a, b) => mean(all[a]) - mean(all[b]) || a - b);
  const share = Math.ceil(order.length / 240);
  const columns = Array.from({ length: Math.ceil(order.length / share) }, (_, n) => order.slice(n * share, (n + 1) * share));
  const total = 1216;
  const width = Math.min((total - NAMES - 66) / columns.length, 24);
  const drawing = svg("svg.wide", { viewBox: `0 0 ${total} ${report.agents.length * 20 + 20}`, role: "img", "aria-label": "Mean reward by agent and task" });
  report.agents.forEach((a, row) => {
    const y = row * 20;
    drawing.append(svg("text", { x: 0, y: y + 14 }, svg("title", null, report.labels[row]), shorten(report.labels[row], 21)));
    columns.forEach((tasks, n) => {
      const cell = mean(tasks.reduce(([sum, k], t) => [sum + sums[row][t][0], k + sums[row][t][1]], [0, 0]));
      const box = { x: NAMES + n * width, y: y + 1, width: Math.max(width - (width > 4 ? 1 : 0), 0.5), height: 17 };
      const first = report.tasks[tasks[0]];
      const title = svg("title", null, `${report.labels[row]} · ${tasks.length > 1 ? `${tasks.length} tasks, from ` : ""}${first.label}: ${decimals(cell, 3)}${first.label === first.id ? "" : `\n${first.id}`}`);
      const go = tasks.length === 1 ? { click: () => open(row, tasks[0]) } : {};
      drawing.append(svg(known(cell) ? "rect.heat" : "rect.none", { ...box, ...go, "fill-opacity": known(cell) ? 0.07 + 0.93 * Math.min(1, Math.max(0, cell)) : 1 }, title));
    });
    drawing.append(svg("text.number", { x: NAMES + columns.length * width + 8, y: y + 14 }, decimals(a.mean, 3) + (a.unknown ? "*" : "")));
  });
  drawing.append(svg("text.tick", { x: NAMES, y: report.agents.length * 20 + 14 }, `← lower mean over all agents · ${plural(order.length, "task")}${share > 1 ? `, ${share} to a column` : ""} · higher →   stronger colour: more reward · outlined: none`));
  const shown = order.slice(0, 300);
  const rows = shown.map((t) => [labelled(report.tasks[t].label, report.tasks[t].id), report.tasks[t].difficulty || "–", ...report.agents.map((_, a) => decimals(mean(sums[a][t]), 3))]);
  const table = numberTable(["task", "difficulty", ...report.labels], rows);
  if (shown.length < order.length) table.append(h("p.hint", null, `The ${shown.length} tasks with the lowest means of ${count(order.length)}.`));
  return figure("Reward by task", drawing, table);
}

function curveChart(metric, curves) {
  const points = curves.flatMap((curve) => curve.points).filter(([a, b]) => known(a) && known(b));
  if (!points.length) return null;
  const extent = (n) => points.reduce(([low, high], p) => [Math.min(low, p[n]), Math.max(high, p[n])], [Infinity, -Infinity]);
  const [steps, values] = [extent(0), extent(1)];
  if (values[0] > 0 && values[0] < values[1] / 3) values[0] = 0;
  const height = 200;
  const x = scale(steps[0], steps[1], 48, WIDTH - 110);
  const y = scale(values[0], values[1], height - 30, 10);
  const title = `${metric} by step`;
  const drawing = svg("svg", { viewBox: `0 0 ${WIDTH} ${height}`, role: "img", "aria-label": title });
  for (const value of ticks(values[0], values[1], 5)) drawing.append(svg("line.rule", { x1: 48, x2: WIDTH - 110, y1: y(value), y2: y(value) }), svg("text.tick", { x: 42, y: y(value) + 4, "text-anchor": "end" }, tick(value)));
  for (const value of ticks(steps[0], steps[1], 6)) drawing.append(svg("text.tick", { x: x(value), y: height - 14, "text-anchor": "middle" }, tick(value)));
  drawing.append(svg("text.tick", { x: WIDTH - 110, y: height - 2, "text-anchor": "end" }, "step"));
  let last = -Infinity;
  const ends = [];
  curves.forEach((curve, n) => {
    const shown = curve.points.filter(([a, b]) => known(a) && known(b));
    if (!shown.length) return;
    drawing.append(svg(`path.curve.s${n % 7}.d${Math.floor(n / 7) % 3}`, { d: shown.map(([a, b], k) => `${k ? "L" : "M"}${x(a)},${y(b)}`).join("") }));
    const end = shown[shown.length - 1];
    ends.push([y(end[1]), curve.name, end[1]]);
  });
  for (const [at, name, value] of ends.sort((a, b) => a[0] - b[0])) {
    last = Math.max(at + 4, last + 12);
    drawing.append(svg("text.tick", { x: WIDTH - 104, y: last }, svg("title", null, `${name}: ${value}`), shorten(`${name} ${value.toPrecision(3)}`, 18)));
  }
  const rows = curves.map((curve) => {
    const shown = curve.points.filter((p) => known(p[1]));
    const best = shown.reduce((a, b) => (b[1] > a[1] ? b : a), shown[0]);
    return shown.length ? [curve.name, count(shown.length), shown[0][1].toPrecision(4), shown[shown.length - 1][1].toPrecision(4), `${best[1].toPrecision(4)} at ${tick(best[0])}`] : [curve.name, "0", "–", "–", "–"];
  });
  return figure(title, drawing, numberTable(["run", "points", "first", "last", "highest"], rows));
}

function comparisonTable(comparison) {
  const heads = ["candidate", "baseline", "pairs", "difference", "95 % interval", "p", "conclusion"];
  const text = (n) => n < 2 || n === 6;
  return h("section", null, h("h2", null, comparison.title),
    h("div.scroll", null, h("table.summary", null,
      h("thead", null, h("tr", null, heads.map((head, n) => h(text(n) ? "th" : "th.n", null, head)))),
      h("tbody", null, comparison.rows.map((row) => {
        const sign = known(row.difference) && row.difference > 0 ? "+" : "";
        const cells = [row.candidate, row.baseline, count(row.pairs), sign + decimals(row.difference, 3), interval(row.low, row.high), decimals(row.p_value, 4), row.verdict];
        return h("tr", null, cells.map((cell, n) => h(text(n) ? "td.data" : "td.n", null, cell)));
      })))),
    comparison.notes.map((note) => h("p.hint", null, note)));
}

function drawCharts(report, open) {
  const metrics = [...new Set(report.curves.map((curve) => curve.metric))];
  const charts = [
    agentChart(report),
    outcomeChart(report),
    groupChart(report, "difficulty", "Mean reward by difficulty"),
    groupChart(report, "discipline", "Mean reward by discipline"),
    groupChart(report, "family", "Mean reward by family"),
    costChart(report),
    ...metrics.map((metric) => curveChart(metric, report.curves.filter((curve) => curve.metric === metric))),
  ].filter(Boolean);
  // Each chart goes below the shorter of two columns.
  const columns = [h("div"), h("div")];
  const heights = [0, 0];
  for (const chart of charts) {
    const shorter = heights[1] < heights[0] ? 1 : 0;
    columns[shorter].append(chart);
    heights[shorter] += (chart.querySelector("svg")?.viewBox.baseVal.height || 0) + 60;
  }
  return [report.comparison && comparisonTable(report.comparison), h("div.figures", null, columns), taskChart(report, open)];
}
