//! A program on a pseudo-terminal, as a person sees it.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{Read as _, Write as _};
use std::process::{Child, Stdio};

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

use crate::TestEnv;

/// A program on a pseudo-terminal.
pub struct OnTerminal {
    child: Child,
    terminal: File,
    shown: Vec<u8>,
}

impl OnTerminal {
    /// Starts a command line of the program on a terminal that is this wide.
    pub fn start(env: &TestEnv, line: &str, columns: u16) -> Self {
        let words: Vec<&str> = line.split_whitespace().collect();
        Self::open(env, &words, columns, false)
    }

    /// Like `start`, with stderr going nowhere: the terminal shows data only.
    pub fn start_data<S: AsRef<OsStr>>(env: &TestEnv, words: &[S], columns: u16) -> Self {
        Self::open(env, words, columns, true)
    }

    fn open<S: AsRef<OsStr>>(env: &TestEnv, words: &[S], columns: u16, data_only: bool) -> Self {
        let terminal = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a terminal");
        grantpt(&terminal).expect("a terminal");
        unlockpt(&terminal).expect("a terminal");
        let name = ptsname(&terminal, Vec::new()).expect("a terminal with a name");
        let name = name.to_str().expect("a name");
        let side = File::options().read(true).write(true).open(name).expect("the other side");
        let size = Winsize { ws_row: 40, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(&side, size).expect("a terminal with a size");
        let stream = || Stdio::from(side.try_clone().expect("a stream"));
        let mut command = env.command(&env.dir(), words);
        command.env("TERM", "xterm").stdin(stream()).stdout(stream());
        command.stderr(if data_only { Stdio::null() } else { stream() });
        let child = command.spawn().expect("the program starts");
        Self { child, terminal: File::from(terminal), shown: Vec::new() }
    }

    /// Reads until a text without blanks is shown (only changes are drawn). Returns false if the program ended first.
    pub fn read_until(&mut self, text: &str) -> bool {
        let mut piece = [0; 4096];
        while !self.shown().contains(text) {
            // Reading fails once the other side of the terminal is closed.
            match self.terminal.read(&mut piece) {
                Ok(count) if count > 0 => self.shown.extend_from_slice(&piece[..count]),
                _ => return false,
            }
        }
        true
    }

    /// What was shown so far, control characters included.
    pub fn shown(&self) -> String {
        String::from_utf8_lossy(&self.shown).into_owned()
    }

    /// Presses keys.
    pub fn press(&mut self, keys: &str) {
        self.terminal.write_all(keys.as_bytes()).expect("a terminal that takes keys");
    }

    /// Reads to the end. Returns the exit code and all output.
    pub fn end(mut self) -> (Option<i32>, String) {
        self.read_until("\u{0} nothing shows this");
        (self.child.wait().expect("an end").code(), self.shown())
    }
}
