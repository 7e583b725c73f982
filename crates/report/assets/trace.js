// The reader of a trace.
//
// An entry has: role, step, text, reasoning, tool, arguments, stdout, stderr, exit_code, duration_ms, offset_ms.
// Whatever is not known is null. Long traces are built piece by piece, and folded parts when they are opened.

const PIECE = 150;
const LINES = 14;
const CHARACTERS = 1800;

const ROLES = ["system", "user", "assistant", "tool_call", "tool_result", "model_call", "note"];

function isError(entry) {
  return known(entry.exit_code) && entry.exit_code !== 0;
}

// Text in a box that shows its beginning until it is asked for more.
function foldedText(text, name) {
  const shown = visible(text);
  const lines = shown.split("\n");
  const box = h(`pre${name || ""}`);
  if (lines.length <= LINES + 4 && shown.length <= CHARACTERS) {
    box.textContent = shown;
    return box;
  }
  box.textContent = lines.slice(0, LINES).join("\n").slice(0, CHARACTERS);
  const more = h("button.more", { type: "button", click: () => { box.textContent = shown; more.remove(); } }, `Show all ${plural(lines.length, "line")}, ${plural(shown.length, "character")}`);
  more.classList.add("unfold");
  return h("div", null, box, more);
}

// A part that is built when it is first opened.
function folded(summary, build, open) {
  const part = h("details", null, h("summary", null, summary));
  const fillIn = () => { if (part.open && part.childElementCount === 1) append(part, [build()]); };
  part.addEventListener("toggle", fillIn);
  if (open) {
    part.open = true;
    fillIn();
  }
  return part;
}

function firstLine(text, length) {
  const line = visible(text || "").split("\n").find((candidate) => candidate.trim()) || "";
  return line.length > length ? `${line.slice(0, length)}…` : line;
}

// The command of a call if it has one, else its arguments in one line.
function callSummary(text) {
  try {
    const value = JSON.parse(text);
    if (value && typeof value.command === "string") return firstLine(value.command, 160);
    return firstLine(JSON.stringify(value), 160);
  } catch {
    return firstLine(text, 160);
  }
}

function prettyArguments(text) {
  let value;
  try {
    value = JSON.parse(text);
  } catch {
    return foldedText(text);
  }
  if (!value || typeof value !== "object" || Array.isArray(value)) return foldedText(text);
  // Line breaks in an argument are easier to read than their escapes.
  return h("dl.arguments", null, Object.entries(value).map(([name, part]) => [h("dt", null, name), h("dd", null, foldedText(typeof part === "string" ? part : JSON.stringify(part, null, 2)))]));
}

function entryBody(entry) {
  const parts = [];
  if (entry.reasoning) parts.push(folded(["reasoning · ", plural(entry.reasoning.length, "character")], () => foldedText(entry.reasoning, ".reasoning")));
  if (entry.text) parts.push(foldedText(entry.text, entry.role === "note" || entry.role === "model_call" ? ".quiet" : ""));
  if (entry.role === "tool_call") {
    const summary = [h("b", null, entry.tool || "tool"), " ", h("code", null, callSummary(entry.arguments || ""))];
    parts.push(entry.arguments ? folded(summary, () => prettyArguments(entry.arguments)) : h("p", null, summary));
  }
  if (entry.role === "tool_result") {
    const facts = [h("b", null, entry.tool || "tool"), known(entry.exit_code) && h(isError(entry) ? "span.exit.bad" : "span.exit", null, `exit ${entry.exit_code}`), h("code", null, firstLine(entry.stderr && isError(entry) ? entry.stderr : entry.stdout || entry.stderr, 120))];
    const out = entry.stdout || "";
    const complaint = entry.stderr || "";
    if (!out && !complaint) parts.push(h("p", null, facts, h("span.quiet", null, "no output")));
    else parts.push(folded(facts, () => [out && foldedText(out), complaint && h("div.stderr", null, h("span.label", null, "stderr"), foldedText(complaint))], isError(entry)));
  }
  return parts;
}

function entryElement(entry, at, turn) {
  const facts = [known(entry.offset_ms) && `+${milliseconds(entry.offset_ms)}`, known(entry.duration_ms) && `took ${milliseconds(entry.duration_ms)}`].filter(Boolean).join(" · ");
  return h("article", { class: `entry role-${ROLES.includes(entry.role) ? entry.role : "other"}${isError(entry) ? " error" : ""}${turn ? " turn" : ""}`, tabindex: "-1", "aria-label": `entry ${at + 1}` },
    h("div.rail", null, turn && h("span.step", null, entry.step ? `turn ${entry.step}` : "start"), h("span.role", null, entry.role.replace("_", " ")), h("span.time", null, facts)),
    h("div.body", null, entryBody(entry)));
}

function markMatches(element, words) {
  const walker = document.createTreeWalker(element, NodeFilter.SHOW_TEXT);
  const texts = [];
  while (walker.nextNode()) texts.push(walker.currentNode);
  for (const text of texts) {
    const lower = text.data.toLowerCase();
    // Lower case may have another length; then positions do not fit.
    if (lower.length !== text.data.length || !lower.includes(words)) continue;
    const parts = [];
    let from = 0;
    for (let at = lower.indexOf(words); at >= 0; at = lower.indexOf(words, from)) {
      parts.push(text.data.slice(from, at), h("mark", null, text.data.slice(at, at + words.length)));
      from = at + words.length;
    }
    parts.push(text.data.slice(from));
    text.replaceWith(...parts);
  }
}

function traceReader(entries) {
  const list = h("div.entries");
  const built = [];
  let errors = [];
  let matches = [];
  let current = -1;
  let error = -1;

  const more = h("button.more", { type: "button", click: () => build(built.length + PIECE) });
  const found = h("output", { "aria-live": "polite" });
  const search = h("input", { type: "search", placeholder: "Search in trace", "aria-label": "Search in trace", input: find, keydown: (event) => { if (event.key === "Enter") { step(event.shiftKey ? -1 : 1); event.preventDefault(); } } });
  const toError = h("button", { type: "button", click: nextError });
  const bar = h("div.tools", null, search,
    h("button", { type: "button", click: () => step(-1), "aria-label": "Previous match" }, "↑"),
    h("button", { type: "button", click: () => step(1), "aria-label": "Next match" }, "↓"), found, h("span.gap"),
    toError,
    h("button", { type: "button", click: () => openAll(true) }, "Open all"),
    h("button", { type: "button", click: () => openAll(false) }, "Fold all"));

  function build(until) {
    const from = built.length;
    for (let at = from; at < Math.min(until, entries.length); at++) {
      const turn = at === 0 || entries[at].step !== entries[at - 1].step;
      built.push(entryElement(entries[at], at, turn));
    }
    list.append(...built.slice(from));
    const left = entries.length - built.length;
    more.hidden = !left;
    more.textContent = `Show ${Math.min(left, PIECE)} more of ${plural(left, "entry").replace(/ys$/, "ies")}`;
  }

  function openParts(element, open) {
    for (const part of element.querySelectorAll("details")) {
      part.open = open;
      part.dispatchEvent(new Event("toggle"));
    }
    if (open) for (const button of element.querySelectorAll("button.unfold")) button.click();
  }

  function openAll(open) {
    for (const element of built) openParts(element, open);
  }

  function reveal(at) {
    build(at + 1);
    for (const other of list.querySelectorAll(".found")) other.classList.remove("found");
    const element = built[at];
    openParts(element, true);
    const words = search.value.toLowerCase();
    if (words && !element.querySelector("mark")) markMatches(element.querySelector(".body"), words);
    element.classList.add("found");
    element.focus({ preventScroll: true });
    (element.querySelector("mark") || element).scrollIntoView({ block: "center" });
  }

  function find() {
    for (const mark of list.querySelectorAll("mark")) mark.replaceWith(mark.textContent);
    list.normalize();
    const words = search.value.toLowerCase();
    const parts = (entry) => [entry.text, entry.reasoning, entry.tool, entry.arguments, entry.stdout, entry.stderr];
    matches = words ? entries.map((entry, at) => (parts(entry).some((part) => part && visible(part).toLowerCase().includes(words)) ? at : -1)).filter((at) => at >= 0) : [];
    current = -1;
    found.textContent = words ? `${plural(matches.length, "entry").replace(/ys$/, "ies")}` : "";
  }

  function step(by) {
    if (!matches.length) return;
    current = (current + by + matches.length) % matches.length;
    found.textContent = `${current + 1} of ${matches.length}`;
    const focused = document.activeElement;
    reveal(matches[current]);
    if (focused === search) search.focus({ preventScroll: true });
  }

  function nextError() {
    if (!errors.length) return;
    error = (error + 1) % errors.length;
    reveal(errors[error]);
  }

  function countErrors() {
    errors = entries.map((entry, at) => (isError(entry) ? at : -1)).filter((at) => at >= 0);
    toError.disabled = !errors.length;
    toError.textContent = errors.length ? `Next error (${errors.length})` : "No errors";
  }

  countErrors();
  build(PIECE);
  const element = h("div.trace", null, bar, entries.length ? list : h("p.hint", null, "The trace is empty."), more);
  element.addEventListener("next-error", nextError);
  // Whoever added to the entries says so.
  element.addEventListener("grow", () => { countErrors(); build(built.length + PIECE); });
  return element;
}
