//! Plays rollouts with the library: up to 0.3 by a small program in one process, from 0.4 on by the library's command
//! line, whose traces are read like any others.

use std::io::{self, Read as _, Write as _};
use std::os::fd::AsRawFd as _;
use std::path::Path;
use std::process::Stdio;

use aec_base::staging::Staging;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::venv::{Venv, VenvError, last_lines};
use crate::rollouts::reader;

const DRIVER: &str = include_str!("../../../../python/smoke.py");
/// The variable with the key of the local models, which accept any.
const KEY: &str = "AEC_BENCH_SMOKE_KEY";

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Player {
    Reference,
    Nothing,
    Model,
}

#[derive(Clone, Debug)]
pub struct Seat {
    pub player: Player,
    pub model: String,
    /// The address, in the format of chat completions.
    pub url: String,
    /// The key, with the name of its variable; absent for a local model.
    pub key: Option<(String, String)>,
    pub num_examples: usize,
    /// Most tokens of an answer.
    pub max_tokens: u32,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Loaded {
    /// The library's class of the environment.
    pub kind: String,
    /// Absent if only the command line was used.
    pub examples: Option<usize>,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Played {
    pub player: Player,
    pub task_id: Option<String>,
    pub reward: Option<f64>,
    pub stop_condition: Option<String>,
    pub error: Option<String>,
}

#[derive(Deserialize)]
#[serde(tag = "event", rename_all = "lowercase")]
enum Line {
    Loaded { kind: String, examples: usize },
    Rollout(Played),
}

/// Plays everything. The package must be installed.
pub fn play(
    venv: &Venv,
    module: &str,
    most: usize,
    seats: &[Seat],
) -> Result<(Loaded, Vec<Played>), VenvError> {
    if venv.is_v1_only() {
        by_command_line(venv, module, seats)
    } else {
        by_driver(venv, module, most, seats)
    }
}

fn by_driver(
    venv: &Venv,
    module: &str,
    most: usize,
    seats: &[Seat],
) -> Result<(Loaded, Vec<Played>), VenvError> {
    let runs: Vec<_> = seats
        .iter()
        .map(|seat| {
            json!({
                "player": seat.player, "model": seat.model, "url": seat.url, "max_tokens": seat.max_tokens,
                "num_examples": seat.num_examples,
                "key_variable": seat.key.as_ref().map_or(KEY, |(name, _)| name),
            })
        })
        .collect();
    let request = json!({
        "environment": module, "arguments": { "split": "all", "num_examples": most }, "runs": runs,
    });
    let (mut answers, theirs) = io::pipe()?;
    let mut command = venv.program("python");
    command.args(["-B", "-c", DRIVER]).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
    command.env("AEC_BENCH_SMOKE_FD", theirs.as_raw_fd().to_string()).env(KEY, "none");
    for (name, value) in seats.iter().filter_map(|seat| seat.key.as_ref()) {
        command.env(name, value);
    }
    let_inherit(&theirs)?;
    let mut child = command.spawn()?;
    drop(theirs);
    if let Some(mut stdin) = child.stdin.take() {
        stdin.write_all(request.to_string().as_bytes())?;
    }
    let complaints = child.stderr.take();
    let complaints = std::thread::spawn(move || {
        let mut text = Vec::new();
        if let Some(mut stderr) = complaints {
            // The error output is only needed if the program fails, so a read error does not matter.
            stderr.read_to_end(&mut text).ok();
        }
        text
    });
    let mut text = String::new();
    answers.read_to_string(&mut text)?;
    let status = child.wait()?;
    let complaints = complaints.join().unwrap_or_default();
    if !status.success() {
        return Err(VenvError::Failed {
            what: "loading and playing the package",
            said: last_lines(&complaints),
        });
    }
    let (mut loaded, mut played) = (Loaded::default(), Vec::new());
    for line in text.lines() {
        match aec_base::json::from_str(line).map_err(io::Error::from)? {
            Line::Loaded { kind, examples } => loaded = Loaded { kind, examples: Some(examples) },
            Line::Rollout(rollout) => played.push(rollout),
        }
    }
    Ok((loaded, played))
}

/// Lets the next child inherit a descriptor; no other child is started before it is closed here.
fn let_inherit(pipe: &io::PipeWriter) -> io::Result<()> {
    Ok(rustix::io::fcntl_setfd(pipe, rustix::io::FdFlags::empty())?)
}

fn by_command_line(venv: &Venv, module: &str, seats: &[Seat]) -> Result<(Loaded, Vec<Played>), VenvError> {
    let mut played = Vec::new();
    for seat in seats {
        let place = Staging::scratch()?;
        let limit = seat.num_examples.to_string();
        let max_tokens = seat.max_tokens.to_string();
        let mut command = venv.program("vf-eval");
        command.current_dir(place.path()).args([module, "-m", &seat.model, "--client.base-url", &seat.url]);
        let variable = seat.key.as_ref().map_or(KEY, |(name, _)| name);
        command.args(["--client.api-key-var", variable, "--no-push", "--no-rich", "-c", "2", "-o"]);
        command.arg(place.path().join("out")).args(["--env.taskset.split", "all", "--select.limit", &limit]);
        command.args(["--sampling.max-tokens", &max_tokens]).env(KEY, "none");
        if let Some((name, value)) = &seat.key {
            command.env(name, value);
        }
        let output = command.output()?;
        if !output.status.success() {
            let said = last_lines(if output.stderr.is_empty() { &output.stdout } else { &output.stderr });
            return Err(VenvError::Failed { what: "playing the package", said });
        }
        played.extend(traces(&place.path().join("out"), seat.player)?);
    }
    Ok((Loaded { kind: "Taskset".to_owned(), examples: None }, played))
}

fn traces(directory: &Path, player: Player) -> io::Result<Vec<Played>> {
    let mut played = Vec::new();
    for entry in fs_err::read_dir(directory)? {
        let source = reader::open(&entry?.path()).map_err(|error| io::Error::other(error.to_string()))?;
        for row in source.rows {
            let row = row.map_err(|problem| io::Error::other(problem.to_string()))?;
            played.extend(row.rollouts.into_iter().map(|rollout| Played {
                player,
                task_id: rollout.task.task_id,
                reward: rollout.reward,
                stop_condition: rollout.stop.given,
                error: rollout.error.map(|error| error.message.unwrap_or(error.kind)),
            }));
        }
    }
    Ok(played)
}
