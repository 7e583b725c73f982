//! The progress of a shard, which its worker writes about once a second and a progress line adds up. It is only
//! cheaper to read than the records, which are authoritative.

use std::io;

use aec_base::problem::Problem;
use aec_base::timestamp::Timestamp;
use aec_run::event::{RunEnded, RunEvent};
use serde::{Deserialize, Serialize};

use crate::contract::{Folder, read_json, write_json};

/// What a worker reports about its shard.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Segment {
    /// The number of the shard, from 0.
    pub shard: usize,
    pub planned: usize,
    pub done: usize,
    /// Running attempts.
    pub running: usize,
    /// What this worker spent, in millionths of a dollar.
    pub spent: u64,
    pub tokens: u64,
    /// Whether the worker has ended.
    pub ended: bool,
    pub pid: u32,
    pub at: Option<Timestamp>,
}

impl Segment {
    /// The segment of a shard whose worker is about to begin.
    pub fn new(shard: usize) -> Self {
        Self { shard, pid: std::process::id(), ..Self::default() }
    }

    /// Applies an event; returns whether the segment is worth writing.
    pub fn on(&mut self, event: &RunEvent) -> bool {
        match event {
            RunEvent::Started(started) => {
                self.planned = started.planned;
                self.done = started.done_before;
            }
            RunEvent::TrialEnded(ended) => {
                if !ended.retried && ended.outcome.is_settled() {
                    self.done += 1;
                }
                return false;
            }
            RunEvent::Tick(tick) => {
                self.running = tick.running;
                self.spent = tick.spent.0;
                self.tokens = tick.tokens;
            }
            RunEvent::Ended(ended) => self.end(ended),
            _ => return false,
        }
        true
    }

    fn end(&mut self, ended: &RunEnded) {
        self.done = ended.all.executed;
        self.running = 0;
        self.spent = ended.spent.unwrap_or_default().0;
        self.tokens = ended.tokens;
        self.ended = true;
    }

    pub fn write(&mut self, folder: &Folder) -> io::Result<()> {
        self.at = Some(Timestamp::now_in_milliseconds());
        write_json(&folder.segment(self.shard), self)
    }

    /// The segment of a shard, if its worker ever began.
    pub fn read(folder: &Folder, shard: usize) -> Result<Option<Self>, Problem> {
        read_json(&folder.segment(shard))
    }
}
