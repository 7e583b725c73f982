//! One worker process: its socket, its output, and its end.
//!
//! Four threads serve one process: one reads its messages, one writes to it, one copies its output, and one waits for
//! its end. The socket is the process's standard input, so no descriptor number must be passed.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::Shutdown;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::Builder;
use std::time::Duration;

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};

use crate::worker::connection::lock;
use crate::worker::error::{Cause, WorkerError};
use crate::worker::log::{LastLines, copy_output};
use crate::worker::protocol::FromWorker;
use crate::worker::row::Row;
use crate::worker::setup::{Setup, worker_variables};

/// The longest line that is read from a worker.
const LONGEST_LINE: u64 = 1 << 30;
/// How much is shown of a line that is not a message.
const EXCERPT: usize = 200;
/// How long reading the last messages of an ended worker may take.
const READ_AFTER_END: Duration = Duration::from_secs(5);
/// How long copying the output of an ended worker may take.
const COPY_AFTER_END: Duration = Duration::from_secs(5);
/// Bytes collected for one write.
const WRITE_AT_ONCE: usize = 256 * 1024;

/// Receives a worker's messages and its end.
pub(crate) trait Listener: Send + Sync + 'static {
    /// Called for a message, with the rows that followed it.
    fn receive(&self, message: FromWorker, rows: Vec<Row>);
    /// Called when the process has ended and all its messages were received.
    fn ended(&self, cause: Cause, last_lines: Vec<String>);
}

/// A started process, which may have ended.
#[derive(Debug)]
pub(crate) struct Process {
    pid: Pid,
    outbox: Sender<Vec<u8>>,
    end: Mutex<End>,
}

#[derive(Debug, Default)]
struct End {
    reaped: bool,
    cause: Option<Cause>,
}

impl Process {
    /// Starts the process. The listener receives every message, and the end exactly once.
    pub(crate) fn start(
        setup: &Setup,
        program: &std::path::Path,
        log: PathBuf,
        listener: &Arc<impl Listener>,
    ) -> Result<Arc<Self>, WorkerError> {
        let failed = |error: std::io::Error| WorkerError::Start {
            python: setup.python.clone(),
            reason: error.to_string(),
        };
        let (ours, theirs) = UnixStream::pair().map_err(failed)?;
        let (output, input) = std::io::pipe().map_err(failed)?;
        let mut command = Command::new(&setup.python);
        command
            .arg(program)
            .env_clear()
            .envs(worker_variables(setup))
            .stdin(Stdio::from(OwnedFd::from(theirs)))
            .stdout(Stdio::from(input.try_clone().map_err(failed)?))
            .stderr(Stdio::from(input))
            .process_group(0);
        let child = command.spawn().map_err(failed)?;
        drop(command);
        let pid = Pid::from_child(&child);
        let (outbox, messages) = channel();
        let process = Arc::new(Self { pid, outbox, end: Mutex::default() });
        let threads =
            Threads { process: Arc::clone(&process), socket: ours, log, most: setup.limits.log_bytes };
        threads.start(child, output, messages, listener).map_err(|error| {
            process.kill(Cause::Unknown);
            failed(error)
        })?;
        Ok(process)
    }

    /// Sends a line. It is lost if the process has ended.
    pub(crate) fn send(&self, line: Vec<u8>) {
        // The writer ends with the process, and the listener is notified of that.
        self.outbox.send(line).ok();
    }

    /// Kills the process and its group. The first cause is the one reported.
    pub(crate) fn kill(&self, cause: Cause) {
        let mut end = lock(&self.end);
        if !end.reaped {
            end.cause.get_or_insert(cause);
            // It may have ended by itself in between.
            kill_process_group(self.pid, Signal::KILL).ok();
        }
    }
}

struct Threads {
    process: Arc<Process>,
    socket: UnixStream,
    log: PathBuf,
    most: u64,
}

impl Threads {
    fn start(
        self,
        child: Child,
        output: impl Read + Send + 'static,
        messages: Receiver<Vec<u8>>,
        listener: &Arc<impl Listener>,
    ) -> std::io::Result<()> {
        let Self { process, socket, log, most } = self;
        let lines = LastLines::default();
        let (copied, output_copied) = channel::<()>();
        let (read, messages_read) = channel::<()>();
        let kept = lines.clone();
        Builder::new().name("worker output".to_owned()).spawn(move || {
            copy_output(output, &log, most, &kept);
            drop(copied);
        })?;
        let writer = socket.try_clone()?;
        Builder::new().name("worker writer".to_owned()).spawn(move || write_messages(writer, &messages))?;
        let reader = socket.try_clone()?;
        let (hears, owner) = (Arc::clone(listener), Arc::clone(&process));
        Builder::new().name("worker reader".to_owned()).spawn(move || {
            if let Err(excerpt) = read_messages(reader, &*hears) {
                owner.kill(Cause::Malformed(excerpt));
            }
            drop(read);
        })?;
        let hears = Arc::clone(listener);
        Builder::new().name("worker end".to_owned()).spawn(move || {
            let status = wait_for_end(&process, child);
            // Waits for the channel to close; nothing is ever sent on it.
            messages_read.recv_timeout(READ_AFTER_END).ok();
            socket.shutdown(Shutdown::Both).ok();
            output_copied.recv_timeout(COPY_AFTER_END).ok();
            let cause = lock(&process.end).cause.take().unwrap_or_else(|| cause_of(status));
            hears.ended(cause, lines.get());
        })?;
        Ok(())
    }
}

/// Waits without reaping, so that the pid stays reserved while the rest of the group is killed; then reaps.
fn wait_for_end(process: &Process, mut child: Child) -> Option<ExitStatus> {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
    while let Err(rustix::io::Errno::INTR) = waitid(WaitId::Pid(process.pid), options) {}
    let mut end = lock(&process.end);
    kill_process_group(process.pid, Signal::KILL).ok();
    end.reaped = true;
    child.wait().ok()
}

fn cause_of(status: Option<ExitStatus>) -> Cause {
    let Some(status) = status else { return Cause::Unknown };
    status.code().map_or_else(|| status.signal().map_or(Cause::Unknown, Cause::Signal), Cause::Exited)
}

fn write_messages(mut socket: UnixStream, messages: &Receiver<Vec<u8>>) {
    while let Ok(mut data) = messages.recv() {
        while data.len() < WRITE_AT_ONCE {
            match messages.try_recv() {
                Ok(more) => data.extend_from_slice(&more),
                Err(_) => break,
            }
        }
        if socket.write_all(&data).is_err() {
            break;
        }
    }
}

/// Reads until the process closes its socket or sends something that is not a message.
fn read_messages(socket: UnixStream, listener: &impl Listener) -> Result<(), String> {
    let mut reader = BufReader::with_capacity(256 * 1024, socket);
    while let Some(line) = read_line(&mut reader)? {
        let message: FromWorker = aec_base::json::from_str(&line).map_err(|_| excerpt(&line))?;
        let mut rows = Vec::new();
        if let FromWorker::Rows { lines, .. } = message {
            for _ in 0..lines {
                let text = read_line(&mut reader)?.ok_or_else(|| "its rows end too early".to_owned())?;
                rows.push(Row { text });
            }
        }
        listener.receive(message, rows);
    }
    Ok(())
}

fn read_line(reader: &mut impl BufRead) -> Result<Option<String>, String> {
    let mut line = Vec::new();
    let count = reader.take(LONGEST_LINE).read_until(b'\n', &mut line);
    if count.is_err() || line.is_empty() {
        return Ok(None);
    }
    if line.pop() != Some(b'\n') {
        // A process killed in the middle of a line is reported by its exit status instead.
        return if line.len() as u64 >= LONGEST_LINE - 1 {
            Err("a line of more than 1 GiB".to_owned())
        } else {
            Ok(None)
        };
    }
    String::from_utf8(line).map(Some).map_err(|error| excerpt(&String::from_utf8_lossy(error.as_bytes())))
}

fn excerpt(line: &str) -> String {
    line.chars().take(EXCERPT).collect()
}
