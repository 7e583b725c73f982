//! Lines on their way to a terminal. The reader may be slow or stuck; the run does not wait for it.

use std::io::{self, Write as _};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread::JoinHandle;

use super::figures::many;

/// Most lines that may wait.
const WAITING: usize = 10_000;

/// Prints lines on a separate thread.
pub(crate) struct Outlet {
    lines: Option<SyncSender<String>>,
    left_out: usize,
    /// Makes the line that says how many lines were left out.
    told: fn(usize) -> String,
    printer: Option<JoinHandle<()>>,
}

impl Outlet {
    /// Prints lines on stderr, with or without colours.
    pub(crate) fn stderr(color: bool) -> io::Result<Self> {
        let choice = if color { anstream::ColorChoice::Auto } else { anstream::ColorChoice::Never };
        Self::new(move |line| {
            let mut stream = anstream::AutoStream::new(io::stderr().lock(), choice);
            // A reader that closed the pipe is not an error, and other errors could be reported nowhere.
            let _unused = stream.write_all(line.as_bytes()).and_then(|()| stream.flush());
        })
    }

    /// Passes each line, with its line break, to `print`.
    pub(crate) fn new(print: impl FnMut(&str) + Send + 'static) -> io::Result<Self> {
        Self::telling(said, print)
    }

    /// Like `new`, with `told` to make the line about lines that were left out.
    pub(crate) fn telling(
        told: fn(usize) -> String,
        print: impl FnMut(&str) + Send + 'static,
    ) -> io::Result<Self> {
        Self::with(WAITING, told, print)
    }

    fn with(
        waiting: usize,
        told: fn(usize) -> String,
        print: impl FnMut(&str) + Send + 'static,
    ) -> io::Result<Self> {
        let (sender, receiver) = sync_channel(waiting);
        let printer = std::thread::Builder::new()
            .name("progress".to_owned())
            .spawn(move || print_all(&receiver, print))?;
        Ok(Self { lines: Some(sender), left_out: 0, told, printer: Some(printer) })
    }

    /// Queues a line for printing. If too many lines wait, it is left out, and a later line says so.
    pub(crate) fn print(&mut self, line: String) {
        let Some(lines) = &self.lines else { return };
        if self.left_out > 0 {
            match lines.try_send((self.told)(self.left_out)) {
                Ok(()) => self.left_out = 0,
                Err(_) => {
                    self.left_out += 1;
                    return;
                }
            }
        }
        if let Err(TrySendError::Full(_)) = lines.try_send(line) {
            self.left_out += 1;
        }
    }
}

fn said(left_out: usize) -> String {
    format!("{} left out: the reader was too slow", many(left_out, "line"))
}

fn print_all(lines: &Receiver<String>, mut print: impl FnMut(&str)) {
    while let Ok(mut line) = lines.recv() {
        line.push('\n');
        print(&line);
    }
}

impl Drop for Outlet {
    fn drop(&mut self) {
        if let (Some(lines), left_out @ 1..) = (&self.lines, self.left_out) {
            // At the end, waiting for the reader delays nothing else.
            let _unused = lines.send((self.told)(left_out));
        }
        self.lines = None;
        if let Some(printer) = self.printer.take() {
            let _unused = printer.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex, mpsc};

    use super::*;

    #[test]
    fn a_reader_that_is_stuck_stops_nobody() {
        let (allow, allowed) = mpsc::channel::<()>();
        let (began, begun) = mpsc::channel();
        let seen = Arc::new(Mutex::new(String::new()));
        let printed = Arc::clone(&seen);
        let mut outlet = Outlet::with(2, said, move |line| {
            let _unused = began.send(());
            let _unused = allowed.recv();
            printed.lock().unwrap().push_str(line);
        })
        .unwrap();
        outlet.print("1".to_owned());
        begun.recv().unwrap();
        for line in 2..=9 {
            outlet.print(line.to_string());
        }
        drop(allow);
        drop(outlet);
        assert_eq!(*seen.lock().unwrap(), "1\n2\n3\n6 lines left out: the reader was too slow\n");
    }
}
