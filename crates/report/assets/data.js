// Reads the packed data of the page.

async function unpack(id) {
  const packed = atob(document.getElementById(id).textContent);
  const bytes = new Uint8Array(packed.length);
  for (let i = 0; i < packed.length; i++) bytes[i] = packed.charCodeAt(i);
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(stream).json();
}

// A place of 0 is the next text of the list, n is text n from 1.
function unpackTexts(column) {
  let next = 0;
  return column.p.map((place) => column.t[place === 0 ? next++ : place - 1]);
}

function unpackColumns(table) {
  const columns = {};
  for (const [name, column] of Object.entries(table)) columns[name] = Array.isArray(column) ? column : unpackTexts(column);
  return columns;
}

// Agents may share a name; their labels do not.
function agentLabels(agents) {
  const seen = new Map();
  const labels = agents.map((a) => (agents.filter((b) => b.name === a.name).length > 1 ? `${a.name} · ${a.model || a.harness}` : a.name));
  return labels.map((label) => {
    const times = (seen.get(label) || 0) + 1;
    seen.set(label, times);
    return times > 1 ? `${label} (${times})` : label;
  });
}

const DIFFICULTIES = ["trivial", "easy", "medium", "hard", "expert"];

function byDifficulty(a, b) {
  const rank = (name) => (DIFFICULTIES.indexOf(name) + 100) % 100;
  return rank(a) - rank(b) || (a < b ? -1 : a > b ? 1 : 0);
}

async function readReport() {
  const [raw, index] = await Promise.all([unpack("data-table"), unpack("data-index")]);
  const report = { ...raw, trials: unpackColumns(raw.trials), fields: unpackColumns(raw.fields) };
  const t = report.trials;
  report.size = t.id.length;
  report.labels = agentLabels(report.agents);
  // The name of an attempt, as the files of the ledger have it.
  const attempt = (id, i) => (t.attempt[i] > 1 ? `${id}.${t.attempt[i]}` : id);
  report.keys = t.id.map(attempt);
  // Its label, and those of families; tasks have theirs.
  report.shortKeys = t.id.map((id, i) => attempt(id.slice(0, t.label[i]), i));
  report.families = new Map(report.tasks.map((task) => [task.family, task.family_label || task.family]));
  report.byKey = new Map(report.keys.map((key, i) => [key, i]));
  report.results = t.id.map((_, i) => {
    if (t.outcome[i] !== "scored" || !known(t.reward[i])) return "fault";
    return t.reward[i] >= report.pass_reward ? "pass" : t.reward[i] <= 0 ? "fail" : "partial";
  });
  let at = 0;
  report.firstField = report.fields.count.map((n) => (at += n) - n);
  report.chunkOf = new Map(index.flatMap((trials, chunk) => trials.map((trial) => [trial, chunk])));
  report.chunks = new Map();
  return report;
}

function fieldsOf(report, i) {
  const f = report.fields;
  return Array.from({ length: f.count[i] }, (_, n) => {
    const at = report.firstField[i] + n;
    return {
      name: f.name[at], score: f.score[at], status: f.status[at],
      expected: f.expected[at], got: f.got[at], message: f.message[at],
    };
  });
}

// The trace of a trial, or null when the page does not have it.
async function traceOf(report, i) {
  const chunk = report.chunkOf.get(i);
  if (chunk === undefined) return null;
  if (!report.chunks.has(chunk)) report.chunks.set(chunk, unpack(`data-traces-${chunk}`));
  const { texts, traces } = await report.chunks.get(chunk);
  const prompt = report.tasks[report.trials.task[i]].prompt;
  const text = (place) => (known(place) ? (place < 0 ? prompt : texts[place]) : null);
  const { answer, entries } = traces.find((trace) => trace.trial === i);
  return {
    answer: text(answer),
    entries: entries.map(([role, step, parts, exit, ms, offset]) => {
      const [said, reasoning, tool, args, stdout, stderr] = parts.map(text);
      return { role: text(role), step, text: said, reasoning, tool, arguments: args, stdout, stderr, exit_code: exit, duration_ms: ms, offset_ms: offset };
    }),
  };
}

// Where the project has the trace of a trial.
function tracePath(report, i) {
  return `jobs/${report.experiments[report.trials.experiment[i]].id}/${report.keys[i]}/workspace/trajectory.jsonl`;
}
