//! A running program, whose output a test reads line by line and to which it sends signals.

use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Child, ChildStderr};

use rustix::process::{Pid, Signal, kill_process};

/// The signals that ask a program to end. Under `nohup` every program is started with the end of the terminal ignored,
/// and goes on.
pub fn asking_to_end() -> Vec<Signal> {
    let status = std::fs::read_to_string("/proc/self/status").expect("what the kernel says of this process");
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:")).expect("the ignored signals");
    let ignored = u64::from_str_radix(ignored.trim(), 16).expect("a set of signals");
    let mut signals = vec![Signal::INT, Signal::TERM];
    if ignored & 1 == 0 {
        signals.push(Signal::HUP);
    }
    signals
}

/// A running program. It is killed when this is dropped.
pub struct Running {
    child: Child,
    said: BufReader<ChildStderr>,
}

impl Running {
    /// Takes over a program whose output is piped.
    pub fn new(mut child: Child) -> Self {
        let said = BufReader::new(child.stderr.take().expect("what it says is piped"));
        Self { child, said }
    }

    /// Waits for a line on stderr that contains this text.
    pub fn wait_for(&mut self, text: &str) -> String {
        let mut before = String::new();
        loop {
            let mut line = String::new();
            let read = self.said.read_line(&mut line).expect("what it says");
            assert_ne!(read, 0, "`{text}` was never said: {before}");
            if line.contains(text) {
                return line;
            }
            before.push_str(&line);
        }
    }

    pub fn id(&self) -> u32 {
        self.child.id()
    }

    pub fn signal(&self, signal: Signal) {
        let pid = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw).expect("the id of a process");
        kill_process(pid, signal).expect("a process that has not been waited for");
    }

    /// Sends a signal unless the program has ended. Returns whether it was sent.
    pub fn signal_if_alive(&mut self, signal: Signal) -> bool {
        let alive = !self.is_over();
        if alive {
            self.signal(signal);
        }
        alive
    }

    pub fn is_over(&mut self) -> bool {
        self.child.try_wait().expect("a child of ours").is_some()
    }

    /// Waits for its end. Returns the exit code, stdout, and the rest of stderr.
    pub fn end(mut self) -> (Option<i32>, String, String) {
        let (mut output, mut said) = (String::new(), String::new());
        self.said.read_to_string(&mut said).expect("what it says");
        self.child
            .stdout
            .take()
            .expect("its output is piped")
            .read_to_string(&mut output)
            .expect("its output");
        (self.child.wait().expect("a child of ours").code(), output, said)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}
