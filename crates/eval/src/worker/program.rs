//! Runs short programs: starts one, gives it a text, and waits for a limited time.

use std::io::{Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::mpsc::channel;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};

/// Most bytes of a program's output that are kept.
const MOST_OUTPUT: u64 = 4 * 1024 * 1024;

#[derive(Debug)]
pub(crate) struct Said {
    pub(crate) status: ExitStatus,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// Runs a program outside the event loop. If it takes too long, it is killed with its children.
pub(crate) async fn run(mut command: Command, input: String, limit: Duration) -> std::io::Result<Said> {
    let task = tokio::task::spawn_blocking(move || run_blocking(&mut command, &input, limit));
    task.await.map_err(std::io::Error::other)?
}

fn run_blocking(command: &mut Command, input: &str, limit: Duration) -> std::io::Result<Said> {
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .spawn()?;
    let pid = Pid::from_child(&child);
    if let Some(mut stdin) = child.stdin.take() {
        // A program that ends without reading its input reports the reason in its output or status.
        stdin.write_all(input.as_bytes()).ok();
    }
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    let (sender, receiver) = channel();
    let (out, err) = std::thread::scope(|scope| {
        scope.spawn(move || {
            if receiver.recv_timeout(limit) == Err(std::sync::mpsc::RecvTimeoutError::Timeout) {
                // The process is reaped only below, so the pid still belongs to it.
                kill_process_group(pid, Signal::KILL).ok();
            }
        });
        let reading = scope.spawn(move || read_some(stderr));
        let out = read_some(stdout);
        let err = reading.join().unwrap_or_default();
        drop::<std::sync::mpsc::Sender<()>>(sender);
        (out, err)
    });
    Ok(Said { status: child.wait()?, stdout: out, stderr: err })
}

fn read_some(reader: Option<impl Read>) -> String {
    let mut kept = Vec::new();
    if let Some(mut reader) = reader {
        // An error ends the reading; what was read before is kept.
        reader.by_ref().take(MOST_OUTPUT).read_to_end(&mut kept).ok();
        std::io::copy(&mut reader, &mut std::io::sink()).ok();
    }
    String::from_utf8_lossy(&kept).into_owned()
}
