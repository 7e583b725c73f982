//! All files of a directory and an index of their calls, small enough for millions of them.

use std::cmp::Reverse;
use std::ops::Range;
use std::path::Path;

use aec_base::document::Shared;
use aec_base::problem::{Problem, Severity};
use indexmap::IndexSet;

use super::FAMILY;
use super::log::file_number;
use super::redact::{could_be, is_marked};
use super::tape::{Tape, Unreadable};
use crate::message::{Request, Tools};

/// The position of a call. There is one for every call, so it is small.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) digest: [u8; 16],
    pub(super) offset: u64,
    pub(super) length: u32,
    pub(super) scope: u32,
    pub(super) occurrence: u32,
    pub(super) file: u32,
    pub(super) messages: u32,
    pub(super) redacted: bool,
}

#[derive(Default)]
pub(super) struct Shelf {
    tapes: Vec<Tape>,
    scopes: IndexSet<Box<str>>,
    /// Scopes whose names contained secrets.
    marked_scopes: Vec<usize>,
    /// Ordered by scope, digest and occurrence.
    pub(super) entries: Vec<Entry>,
    /// Positions of calls that contained secrets, in the same order.
    redacted: Vec<usize>,
}

impl Shelf {
    /// Reads all files of a directory. Damaged lines are skipped with a warning; an unusable file is an error, since
    /// its calls would be missing without a visible reason.
    pub(super) fn open(directory: &Path) -> Result<(Self, Vec<Problem>), Vec<Problem>> {
        let mut names = Vec::new();
        let listed = fs_err::read_dir(directory).and_then(|entries| {
            for entry in entries {
                let name = entry?.file_name();
                names.extend(file_number(&name.to_string_lossy()).map(|number| (number, name)));
            }
            Ok(())
        });
        if let Err(error) = listed {
            let problem = Problem::error(format!("cannot read the directory of cassettes: {error}"))
                .id(FAMILY.id(Shared::Unreadable))
                .fix("give the directory that a run recorded into");
            return Err(vec![problem.in_file(directory)]);
        }
        names.sort_unstable();
        let mut shelf = Self::default();
        let mut problems = Vec::new();
        for (_, name) in names {
            let index = u32::try_from(shelf.tapes.len()).unwrap_or(u32::MAX);
            let scanned = Tape::scan(&directory.join(name), index, &mut shelf.scopes, &mut problems);
            if let Some((tape, mut entries)) = scanned {
                shelf.tapes.push(tape);
                shelf.entries.append(&mut entries);
            }
        }
        if problems.iter().any(|problem| problem.severity == Severity::Error) {
            return Err(problems);
        }
        shelf.sort(&mut problems);
        let places = |found: &mut dyn Iterator<Item = (usize, bool)>| -> Vec<usize> {
            found.filter_map(|(place, wanted)| wanted.then_some(place)).collect()
        };
        shelf.marked_scopes = places(&mut shelf.scopes.iter().map(|name| is_marked(name)).enumerate());
        shelf.redacted = places(&mut shelf.entries.iter().map(|entry| entry.redacted).enumerate());
        Ok((shelf, problems))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.tapes.is_empty()
    }

    /// Sorts the index. Of calls with the same key the one in the newest file is kept: a trial that is recorded again
    /// continues from its new answers, not from those of a recording that may have been interrupted.
    fn sort(&mut self, problems: &mut Vec<Problem>) {
        self.entries.sort_unstable_by_key(|entry| {
            (entry.scope, entry.digest, entry.occurrence, Reverse(entry.file), entry.offset)
        });
        let mut replaced = vec![0_usize; self.tapes.len()];
        let mut repeated = vec![0_usize; self.tapes.len()];
        self.entries.dedup_by(|later, kept| {
            let same =
                (later.scope, later.digest, later.occurrence) == (kept.scope, kept.digest, kept.occurrence);
            if same {
                let counts = if later.file == kept.file { &mut repeated } else { &mut replaced };
                counts[later.file as usize] += 1;
            }
            same
        });
        self.entries.shrink_to_fit();
        for (tape, (replaced, repeated)) in self.tapes.iter().zip(replaced.into_iter().zip(repeated)) {
            if replaced > 0 {
                let what = format!(
                    "calls that a newer file has recorded again, and which are taken from there: {replaced}"
                );
                problems.push(Problem::warning(what).id(FAMILY.number(17)).in_file(tape.path()));
            }
            if repeated > 0 {
                let what =
                    format!("calls that are in the file twice, of which the first is used: {repeated}");
                problems.push(Problem::warning(what).id(FAMILY.number(18)).in_file(tape.path()));
            }
        }
    }

    pub(super) fn tape(&self, entry: &Entry) -> &Tape {
        &self.tapes[entry.file as usize]
    }

    pub(super) fn scope_count(&self) -> usize {
        self.scopes.len()
    }

    pub(super) fn scope_name(&self, entry: &Entry) -> &str {
        self.scopes.get_index(entry.scope as usize).map_or("", |name| name)
    }

    /// The calls of a scope. A scope whose name contained a secret is matched by the rest of its name.
    pub(super) fn scope(&self, name: &str) -> Option<Range<usize>> {
        let index = self.scopes.get_index_of(name).or_else(|| {
            let alike = |index: &&usize| self.scopes.get_index(**index).is_some_and(|it| could_be(it, name));
            self.marked_scopes.iter().find(alike).copied()
        })?;
        let index = u32::try_from(index).ok()?;
        let start = self.entries.partition_point(|entry| entry.scope < index);
        let end = self.entries.partition_point(|entry| entry.scope <= index);
        (start < end).then_some(start..end)
    }

    /// The calls of a scope with this digest.
    pub(super) fn group(&self, scope: &Range<usize>, digest: [u8; 16]) -> Option<Range<usize>> {
        let entries = &self.entries[scope.clone()];
        let start = scope.start + entries.partition_point(|entry| entry.digest < digest);
        let end = scope.start + entries.partition_point(|entry| entry.digest <= digest);
        (start < end).then_some(start..end)
    }

    /// The calls in this range that contained secrets, in the order of recording.
    pub(super) fn redacted(&self, scope: &Range<usize>) -> Vec<&Entry> {
        let start = self.redacted.partition_point(|place| *place < scope.start);
        let end = self.redacted.partition_point(|place| *place < scope.end);
        let mut found: Vec<&Entry> =
            self.redacted[start..end].iter().map(|place| &self.entries[*place]).collect();
        found.sort_unstable_by_key(|entry| (entry.file, entry.offset));
        found
    }

    pub(super) fn request(&self, entry: &Entry) -> Result<(String, Request), Unreadable> {
        let tape = self.tape(entry);
        let call = tape.call(entry)?;
        let mut request = Request {
            messages: Vec::new(),
            tools: Tools::default(),
            tool_choice: call.request.tool_choice,
            sampling: call.request.sampling,
        };
        for number in tape.conversation(call.request.turn) {
            request.messages.push(tape.message(number)?);
        }
        if let Some(number) = call.request.tools {
            request.tools = tape.tools(number)?.into();
        }
        Ok((call.model, request))
    }
}
