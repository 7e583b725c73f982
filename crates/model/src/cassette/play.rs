//! Replaying: answers from a directory, never from a model.

use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use aec_base::problem::Problem;

use super::FAMILY;
use super::canonical::{self, request_digest};
use super::format::Outcome;
use super::log::short;
use super::nearest;
use super::redact::could_be;
use super::shelf::{Entry, Shelf};
use super::tape::Unreadable;
use crate::event::CallEvent;
use crate::failure::Failure;
use crate::message::{Reply, Request};

/// How many calls that contained secrets are compared with a request before it counts as unknown.
const MOST_COMPARED: usize = 1000;

/// Answers calls from the cassettes of a directory. Only positions in the files are kept in memory.
pub struct Player {
    shelf: Shelf,
    /// How often each request was asked; the counter at a group's first call is that of the whole group.
    asked: Vec<AtomicU32>,
}

/// A recorded call.
#[derive(Clone, Debug, PartialEq)]
pub struct Played {
    /// The label of the endpoint that was called last.
    pub endpoint: String,
    pub events: Vec<CallEvent>,
    pub outcome: Result<Reply, Failure>,
}

/// Why a call cannot be answered. It displays as several lines for the user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Miss {
    /// The scope has no recorded calls.
    Scope {
        scope: String,
        /// Number of other scopes.
        others: usize,
        /// Another scope that has this request, if any.
        elsewhere: Option<String>,
    },
    /// The request was recorded fewer times.
    Exhausted {
        scope: String,
        /// How often it was asked, including this time.
        asked: u32,
        recorded: u32,
    },
    /// The scope has only other requests.
    Differs {
        scope: String,
        /// How the nearest recorded request differs, bounded in length.
        difference: String,
    },
    /// The recorded call cannot be read any more.
    Unreadable { file: PathBuf, why: String },
}

impl fmt::Display for Miss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Scope { scope, others, elsewhere } => {
                write!(f, "nothing is recorded {}", InScope(scope))?;
                match elsewhere {
                    Some(elsewhere) => write!(f, "; this request is recorded {}", InScope(elsewhere)),
                    None => {
                        write!(f, "; the cassette has {others} other scopes, none of them with this request")
                    }
                }
            }
            Self::Exhausted { scope, asked, recorded } => write!(
                f,
                "this request was asked {asked} times {}, but recorded only {}",
                InScope(scope),
                if *recorded == 1 { "once".to_owned() } else { format!("{recorded} times") }
            ),
            Self::Differs { scope, difference } => {
                write!(f, "this request is not recorded {}; {difference}", InScope(scope))
            }
            Self::Unreadable { file, why } => {
                write!(f, "the recorded call cannot be read from {}: {why}", file.display())
            }
        }
    }
}

impl std::error::Error for Miss {}

impl From<Unreadable> for Miss {
    fn from(Unreadable { file, why }: Unreadable) -> Self {
        Self::Unreadable { file, why }
    }
}

struct InScope<'a>(&'a str);

impl fmt::Display for InScope<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            "" => f.write_str("outside of all scopes"),
            scope => write!(f, "in scope `{scope}`"),
        }
    }
}

/// The position of a request among equal ones.
pub(super) enum Slot {
    /// A recorded call, by its index.
    Recorded(usize),
    /// After all recorded calls.
    Beyond {
        asked: u32,
        recorded: u32,
        /// The first free occurrence.
        occurrence: u32,
    },
    /// The request is not recorded at all.
    Unknown,
}

impl Player {
    /// Reads the cassettes of a directory. With the player come warnings and notes; without one, at least one error.
    pub fn open(directory: &Path) -> Result<(Self, Vec<Problem>), Vec<Problem>> {
        let (shelf, mut problems) = Shelf::open(directory)?;
        if shelf.is_empty() {
            let problem = Problem::error("the directory holds no cassette")
                .id(FAMILY.number(10))
                .why("cassettes are files with names like calls-000001.jsonl")
                .fix("give the directory that a run recorded into")
                .in_file(directory);
            problems.push(problem);
            return Err(problems);
        }
        Ok((Self::new(shelf), problems))
    }

    pub(super) fn new(shelf: Shelf) -> Self {
        let asked = shelf.entries.iter().map(|_| AtomicU32::new(0)).collect();
        Self { shelf, asked }
    }

    pub fn len(&self) -> usize {
        self.shelf.entries.len()
    }

    pub fn is_empty(&self) -> bool {
        self.shelf.entries.is_empty()
    }

    /// The recorded answer to the next of several equal requests in a scope.
    pub fn play(&self, scope: &str, model: &str, request: &Request) -> Result<Played, Miss> {
        let digest = short(&request_digest(model, request));
        match self.take(scope, digest, model, request)? {
            Slot::Recorded(at) => Ok(self.read(at)?),
            Slot::Beyond { asked, recorded, .. } => {
                Err(Miss::Exhausted { scope: scope.to_owned(), asked, recorded })
            }
            Slot::Unknown => Err(self.explain(scope, digest, model, request)?),
        }
    }

    /// Takes the next position for a request; `print` has the digest under which it would be recorded.
    pub(super) fn take(
        &self,
        scope: &str,
        digest: [u8; 16],
        model: &str,
        request: &Request,
    ) -> Result<Slot, Unreadable> {
        let Some(scope) = self.shelf.scope(scope) else { return Ok(Slot::Unknown) };
        let group = match self.shelf.group(&scope, digest) {
            Some(group) => group,
            None => {
                let alike = self.find_redacted(&scope, model, request)?;
                match alike.and_then(|entry| self.shelf.group(&scope, entry.digest)) {
                    Some(group) => group,
                    None => return Ok(Slot::Unknown),
                }
            }
        };
        let before = self.asked[group.start].fetch_add(1, Ordering::Relaxed);
        let recorded = u32::try_from(group.len()).unwrap_or(u32::MAX);
        if before < recorded {
            return Ok(Slot::Recorded(group.start + before as usize));
        }
        let last = self.shelf.entries[group.end - 1].occurrence;
        let occurrence = last.saturating_add(1).saturating_add(before - recorded);
        Ok(Slot::Beyond { asked: before.saturating_add(1), recorded, occurrence })
    }

    pub(super) fn occurrence(&self, at: usize) -> u32 {
        self.shelf.entries[at].occurrence
    }

    pub(super) fn read(&self, at: usize) -> Result<Played, Unreadable> {
        let entry = &self.shelf.entries[at];
        let tape = self.shelf.tape(entry);
        let line = tape.call(entry)?;
        let outcome = match line.outcome {
            Outcome::Reply(reply) => {
                let parts = tape.message(reply.message)?.parts;
                Ok(reply.join(parts))
            }
            Outcome::Failure(failure) => Err(failure),
        };
        Ok(Played { endpoint: line.endpoint, events: line.events, outcome })
    }

    /// A call with this request, apart from redacted secrets.
    fn find_redacted(
        &self,
        scope: &Range<usize>,
        model: &str,
        request: &Request,
    ) -> Result<Option<&Entry>, Unreadable> {
        let redacted = self.shelf.redacted(scope).into_iter();
        let alike = redacted.filter(|entry| entry.messages as usize == request.messages.len());
        for entry in alike.take(MOST_COMPARED) {
            if self.could_have_been(entry, model, request)? {
                return Ok(Some(entry));
            }
        }
        Ok(None)
    }

    /// Whether a redacted call may have had this request. The cheapest distinctions are checked first.
    fn could_have_been(&self, entry: &Entry, model: &str, request: &Request) -> Result<bool, Unreadable> {
        let tape = self.shelf.tape(entry);
        let call = tape.call(entry)?;
        let recorded = canonical::settings_text(&call.request.tool_choice, &call.request.sampling);
        let asked = canonical::settings_text(&request.tool_choice, &request.sampling);
        if !could_be(&call.model, model) || !could_be(&recorded, &asked) {
            return Ok(false);
        }
        let numbers = tape.conversation(call.request.turn);
        for (number, asked) in numbers.into_iter().zip(&request.messages).rev() {
            let recorded = tape.message(number)?;
            if !could_be(&canonical::message_text(&recorded), &canonical::message_text(asked)) {
                return Ok(false);
            }
        }
        let tools = match call.request.tools {
            Some(number) => tape.tools(number)?,
            None => Vec::new(),
        };
        Ok(could_be(&canonical::tools_text(&tools), &canonical::tools_text(&request.tools)))
    }

    fn explain(
        &self,
        scope: &str,
        digest: [u8; 16],
        model: &str,
        request: &Request,
    ) -> Result<Miss, Unreadable> {
        let Some(range) = self.shelf.scope(scope) else {
            let elsewhere = self.shelf.entries.iter().find(|entry| entry.digest == digest);
            return Ok(Miss::Scope {
                scope: scope.to_owned(),
                others: self.shelf.scope_count(),
                elsewhere: elsewhere.map(|entry| self.shelf.scope_name(entry).to_owned()),
            });
        };
        let difference = nearest::explain(&self.shelf, &self.shelf.entries[range], model, request)?;
        Ok(Miss::Differs { scope: scope.to_owned(), difference })
    }
}
