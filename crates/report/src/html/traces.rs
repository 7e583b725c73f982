//! Traces in chunks: each chunk is packed separately, so the page unpacks only what it shows.

use std::panic::resume_unwind;
use std::thread;

use indexmap::IndexSet;
use serde::Serialize;

use super::HtmlError;
use super::document::{Document, Trace, TraceEntry};
use super::pack::{Number, pack_json};
use super::text::clip;

/// A chunk is closed when its JSON is this long. Longer chunks compress better, shorter ones open faster.
const CHUNK: usize = 256 * 1024;

/// Chunks that are packed concurrently. Fixed, so that the result does not depend on the machine.
const WAVE: usize = 4;

/// Size of a chunk besides its data: its element in the page and its entries in the index.
const OVERHEAD: usize = 80;

/// Largest size of a trace in the index, packed.
const INDEX_ENTRY: usize = 6;

/// Represents a text that equals the prompt of the task.
const PROMPT: i64 = -1;

#[derive(Debug)]
pub(super) struct Chunk {
    pub(super) trials: Vec<usize>,
    /// How many of their texts were shortened.
    pub(super) shortened: usize,
    /// Their data in the page's encoding.
    pub(super) data: String,
}

/// A trace in JSON; texts are indices into the chunk's list.
#[derive(Serialize)]
struct PackedTrace {
    trial: usize,
    answer: Option<i64>,
    entries: Vec<PackedEntry>,
}

/// Role, step, text, reasoning, tool, arguments, stdout, stderr, exit code, milliseconds, offset.
type PackedEntry = (i64, u32, [Option<i64>; 6], Option<i32>, Number, Number);

#[derive(Serialize)]
struct PackedChunk<'a> {
    texts: &'a IndexSet<String>,
    traces: Vec<PackedTrace>,
}

struct Builder<'a> {
    limit: usize,
    prompt: Option<&'a str>,
    texts: IndexSet<String>,
    length: usize,
    shortened: usize,
}

impl Builder<'_> {
    #[expect(clippy::cast_possible_wrap, reason = "a chunk has fewer texts than that")]
    fn place(&mut self, text: &str) -> i64 {
        if self.prompt == Some(text) {
            return PROMPT;
        }
        let shown = clip(text, self.limit);
        if let Some(place) = self.texts.get_index_of(shown.as_ref()) {
            return place as i64;
        }
        self.shortened += usize::from(shown.len() != text.len());
        self.length += shown.len();
        self.texts.insert_full(shown.into_owned()).0 as i64
    }

    fn optional(&mut self, text: Option<&String>) -> Option<i64> {
        text.filter(|text| !text.is_empty()).map(|text| self.place(text))
    }

    fn entry(&mut self, entry: &TraceEntry) -> PackedEntry {
        self.length += 40;
        let texts =
            [&entry.text, &entry.reasoning, &entry.tool, &entry.arguments, &entry.stdout, &entry.stderr];
        let texts = texts.map(|text| self.optional(text.as_ref()));
        let (duration, offset) = (Number::count(entry.duration_ms), Number::count(entry.offset_ms));
        (self.place(&entry.role), entry.step, texts, entry.exit_code, duration, offset)
    }
}

struct Open<'a> {
    traces: Vec<&'a Trace>,
    shortened: usize,
    json: Vec<u8>,
}

impl Open<'_> {
    fn close(&self) -> Result<Chunk, HtmlError> {
        let trials = self.traces.iter().map(|trace| trace.trial).collect();
        Ok(Chunk { trials, shortened: self.shortened, data: pack_json(&self.json)? })
    }
}

/// The total length of the texts in a trace.
pub(super) fn text_length(trace: &Trace) -> u64 {
    let entries = trace
        .entries
        .iter()
        .flat_map(|entry| [&entry.text, &entry.reasoning, &entry.arguments, &entry.stdout, &entry.stderr]);
    let texts = entries.chain([&trace.answer]).flatten();
    texts.map(|text| text.len() as u64).sum()
}

pub(super) struct Packer<'a> {
    pub(super) document: &'a Document,
    pub(super) text: usize,
    /// Whether the page has the prompts, so that traces need not repeat them.
    pub(super) prompts: bool,
}

impl<'a> Packer<'a> {
    /// Packs traces in this order until `room` bytes are used.
    pub(super) fn pack(&self, order: &[&'a Trace], room: usize) -> Result<Vec<Chunk>, HtmlError> {
        let mut chunks = Vec::new();
        let mut left = room;
        let mut rest = order;
        while !rest.is_empty() {
            let mut wave = Vec::with_capacity(WAVE);
            while wave.len() < WAVE && !rest.is_empty() {
                let open = self.open(rest, CHUNK)?;
                rest = &rest[open.traces.len()..];
                wave.push(open);
            }
            for (open, packed) in wave.iter().zip(close_all(&wave)) {
                let packed = packed?;
                if let Some(after) = left.checked_sub(cost(&packed)) {
                    left = after;
                    chunks.push(packed);
                } else if open.traces.len() > 1 {
                    chunks.extend(self.first_part(&open.traces, left)?);
                    return Ok(chunks);
                }
                // A single trace that does not fit is skipped; shorter ones after it may fit.
            }
        }
        Ok(chunks)
    }

    /// As many of the first traces as fit, by halving their number.
    fn first_part(&self, traces: &[&'a Trace], room: usize) -> Result<Option<Chunk>, HtmlError> {
        let mut count = traces.len() / 2;
        while count > 0 {
            let chunk = self.open(&traces[..count], usize::MAX)?.close()?;
            if cost(&chunk) <= room {
                return Ok(Some(chunk));
            }
            count /= 2;
        }
        Ok(None)
    }

    /// The first traces, until their JSON is about as long as `limit`.
    fn open(&self, traces: &[&'a Trace], limit: usize) -> Result<Open<'a>, HtmlError> {
        let texts = IndexSet::new();
        let mut builder = Builder { limit: self.text, prompt: None, texts, length: 0, shortened: 0 };
        let mut taken = Vec::new();
        let mut packed = Vec::new();
        for trace in traces {
            // A long trace gets its own chunk, so that only it is left out if it does not fit.
            if !taken.is_empty() && text_length(trace) >= limit as u64 {
                break;
            }
            let task = &self.document.tasks[self.document.trials[trace.trial].task];
            builder.prompt = task.prompt.as_deref().filter(|_| self.prompts);
            packed.push(PackedTrace {
                trial: trace.trial,
                answer: builder.optional(trace.answer.as_ref()),
                entries: trace.entries.iter().map(|entry| builder.entry(entry)).collect(),
            });
            taken.push(*trace);
            if builder.length >= limit {
                break;
            }
        }
        let chunk = PackedChunk { texts: &builder.texts, traces: packed };
        let json = serde_json::to_vec(&chunk).map_err(HtmlError::Json)?;
        Ok(Open { traces: taken, shortened: builder.shortened, json })
    }
}

fn cost(chunk: &Chunk) -> usize {
    chunk.data.len() + OVERHEAD + chunk.trials.len() * INDEX_ENTRY
}

fn close_all(wave: &[Open<'_>]) -> Vec<Result<Chunk, HtmlError>> {
    thread::scope(|scope| {
        let workers: Vec<_> = wave.iter().map(|open| scope.spawn(|| open.close())).collect();
        workers.into_iter().map(|worker| worker.join().unwrap_or_else(|panic| resume_unwind(panic))).collect()
    })
}
