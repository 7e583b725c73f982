// Differences of two trials: line by line, side by side.

const EFFORT = 2000;
const CONTEXT = 3;
const DRAWN = 3000;

// Pairs of equal lines of two lists, by the greedy algorithm of Myers. Null when the lists differ too much for it.
function commonLines(a, b) {
  const most = Math.min(a.length + b.length, EFFORT);
  const history = [];
  let reach = new Int32Array(2 * most + 3);
  for (let d = 0; d <= most; d++) {
    history.push(reach.slice(most - d, most + d + 3));
    for (let k = -d; k <= d; k += 2) {
      const down = k === -d || (k !== d && reach[most + k] < reach[most + k + 2]);
      let x = down ? reach[most + k + 2] : reach[most + k] + 1;
      let y = x - k;
      while (x < a.length && y < b.length && a[x] === b[y]) { x++; y++; }
      reach[most + k + 1] = x;
      if (x >= a.length && y >= b.length) return walkBack(a, b, history, d);
    }
  }
  return null;
}

function walkBack(a, b, history, last) {
  const pairs = [];
  let [x, y] = [a.length, b.length];
  for (let d = last; d >= 0; d--) {
    const at = (k) => history[d][k + d + 1];
    const k = x - y;
    const down = k === -d || (k !== d && at(k - 1) < at(k + 1));
    const from = down ? k + 1 : k - 1;
    const fromX = d ? at(from) : 0;
    const fromY = d ? fromX - from : 0;
    while (x > fromX && y > fromY && x > 0 && y > 0 && a[x - 1] === b[y - 1]) pairs.push([--x, --y]);
    [x, y] = [fromX, fromY];
  }
  return pairs.reverse();
}

// Rows [left, right]; null where a side has no line.
function alignLines(a, b) {
  let head = 0;
  while (head < a.length && head < b.length && a[head] === b[head]) head++;
  let tail = 0;
  while (tail < a.length - head && tail < b.length - head && a[a.length - 1 - tail] === b[b.length - 1 - tail]) tail++;
  const pairs = commonLines(a.slice(head, a.length - tail), b.slice(head, b.length - tail)) || [];
  const equal = [
    ...Array.from({ length: head }, (_, n) => [n, n]),
    ...pairs.map(([x, y]) => [x + head, y + head]),
    ...Array.from({ length: tail }, (_, n) => [a.length - tail + n, b.length - tail + n]),
    [a.length, b.length],
  ];
  const rows = [];
  let [x, y] = [0, 0];
  for (const [nextX, nextY] of equal) {
    for (; x < nextX || y < nextY; ) rows.push([x < nextX ? a[x++] : null, y < nextY ? b[y++] : null]);
    if (nextX < a.length) rows.push([a[x++], b[y++], true]);
  }
  return rows;
}

// The part of a line in which it differs from its partner.
function changedPart(line, other) {
  if (other === null) return [line];
  let head = 0;
  while (head < line.length && line[head] === other[head]) head++;
  let tail = 0;
  while (tail < Math.min(line.length, other.length) - head && line[line.length - 1 - tail] === other[other.length - 1 - tail]) tail++;
  return [line.slice(0, head), h("em", null, line.slice(head, line.length - tail)), line.slice(line.length - tail)];
}

function diffRow([left, right, equal]) {
  const side = (line, other, sign, name) => (line === null ? h("div.gone") : h(`div${equal ? "" : name}`, null, h("span.sign", null, equal ? " " : sign), equal ? line : changedPart(line, other)));
  return [side(left, right, "−", ".removed"), side(right, left, "+", ".added")];
}

function diffView(leftText, rightText) {
  const lines = (text) => visible(text).split("\n");
  const rows = alignLines(lines(leftText), lines(rightText));
  const grid = h("div.diff");
  if (rows.every((row) => row[2])) return h("p.hint", null, "No difference.");
  let drawn = 0;
  const add = (parts) => {
    if (drawn++ < DRAWN) grid.append(...diffRow(parts));
  };
  for (let at = 0; at < rows.length; ) {
    let end = at;
    while (end < rows.length && rows[end][2]) end++;
    const keepHead = at === 0 ? 0 : CONTEXT;
    const keepTail = end === rows.length ? 0 : CONTEXT;
    if (end - at > keepHead + keepTail + 2) {
      rows.slice(at, at + keepHead).forEach(add);
      const hidden = rows.slice(at + keepHead, end - keepTail);
      const button = h("button.more", { type: "button", click: () => button.replaceWith(...hidden.flatMap(diffRow)) }, `⋯ ${plural(hidden.length, "equal line")}`);
      if (drawn < DRAWN) grid.append(button);
      rows.slice(end - keepTail, end).forEach(add);
    } else rows.slice(at, end).forEach(add);
    for (at = end; at < rows.length && !rows[at][2]; at++) add(rows[at]);
  }
  return [grid, drawn > DRAWN && h("p.hint", null, `${count(drawn - DRAWN)} further lines are not shown.`)];
}

// A trace as lines: what was said and done, without times.
function traceText(entries) {
  return entries.map((entry) => {
    const exit = known(entry.exit_code) ? ` · exit ${entry.exit_code}` : "";
    const parts = [entry.reasoning && `[reasoning]\n${entry.reasoning}`, entry.text, entry.arguments, entry.stdout, entry.stderr && `[stderr]\n${entry.stderr}`];
    return `── turn ${entry.step} · ${entry.role.replace("_", " ")}${entry.tool ? ` · ${entry.tool}` : ""}${exit}\n${parts.filter(Boolean).join("\n")}`;
  }).join("\n");
}

function fieldDiff(report, a, b) {
  const [left, right] = [fieldsOf(report, a), fieldsOf(report, b)];
  const names = [...new Set([...left, ...right].map((field) => field.name))];
  if (!names.length) return h("p.hint", null, "Neither trial has fields.");
  const sameTask = report.trials.task[a] === report.trials.task[b];
  const cells = (field) => (field ? [scoreCell(field), h("td.data.value", null, field.got || "–")] : [h("td.n", null, "–"), h("td", null, "–")]);
  return h("div.scroll", null, h("table.summary.fields", null,
    h("thead", null, h("tr", null, ["field", sameTask && "expected", "A score", "A got", "B score", "B got"].filter(Boolean).map((head) => h(head.endsWith("score") ? "th.n" : "th", null, head)))),
    h("tbody", null, names.map((name) => {
      const [x, y] = [left, right].map((fields) => fields.find((field) => field.name === name));
      const differs = !x || !y || x.got !== y.got || x.score !== y.score;
      return h(differs ? "tr.differs" : "tr", null, h("td.data", null, name), sameTask && h("td.data.value", null, (x || y).expected || "–"), cells(x), cells(y));
    }))));
}

function diffPage(report, a, b, actions) {
  const facts = [trialFacts(report, a), trialFacts(report, b)];
  const rows = facts[0].map(([name, left], n) => [name, left, facts[1][n][1]]).filter(([name, left, right]) => !name.endsWith(" id") && (left !== "–" || right !== "–"));
  const later = h("div", null, h("p.hint", null, "Unpacking …"));
  Promise.all([traceOf(report, a), traceOf(report, b)]).then((traces) => {
    const missing = traces.map((trace, n) => trace ? null : missingTrace(report, [a, b][n], "AB"[n])).filter(Boolean);
    const [left, right] = traces;
    later.replaceChildren();
    append(later, missing.length ? [h("h2", null, "Answer and trace"), missing] : [
      h("h2", null, "Answer"), known(left.answer) || known(right.answer) ? diffView(left.answer || "", right.answer || "") : h("p.hint", null, "Neither trace has the answer."),
      h("h2", null, "Trace"), diffView(traceText(left.entries), traceText(right.entries)),
    ]);
  });
  const head = (i, name) => h("th", null, `${name} `, h("a", { href: actions.link(i), title: visible(report.keys[i]) }, report.shortKeys[i]));
  return h("div.page", null, h("div.tools", null, h("h2", null, "Difference of two trials"), h("span.gap"), h("button", { type: "button", click: () => actions.diff(b, a) }, "Swap"), h("button", { type: "button", click: actions.unmark }, "Unmark both")),
    h("table.summary.facts", null, h("thead", null, h("tr", null, h("th"), head(a, "A"), head(b, "B"))),
      h("tbody", null, rows.map(([name, left, right]) => h(left === right ? "tr" : "tr.differs", null, h("th", { scope: "row" }, name), h("td.data", null, left), h("td.data", null, right))))),
    h("h2", null, "Fields"), fieldDiff(report, a, b), later);
}
