//! The full screen, on a pseudo-terminal.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::process::{Child, Stdio};
use std::time::Duration;

use aec_model_server::Range;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

use crate::eval::world::World;

/// A program on a pseudo-terminal.
struct OnTerminal {
    child: Child,
    terminal: File,
    shown: Vec<u8>,
}

impl OnTerminal {
    fn start(world: &World, line: &str) -> Self {
        let terminal = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&terminal).unwrap();
        unlockpt(&terminal).unwrap();
        let name = ptsname(&terminal, Vec::new()).unwrap();
        let side = File::options().read(true).write(true).open(name.to_str().unwrap()).unwrap();
        tcsetwinsize(&side, Winsize { ws_row: 40, ws_col: 120, ws_xpixel: 0, ws_ypixel: 0 }).unwrap();
        let stream = || Stdio::from(side.try_clone().unwrap());
        let mut command = world.env.command(&world.env.dir(), line.split_whitespace());
        command.env("TERM", "xterm").stdin(stream()).stdout(stream()).stderr(stream());
        let child = command.spawn().unwrap();
        Self { child, terminal: File::from(terminal), shown: Vec::new() }
    }

    /// Reads until a text without blanks is shown (only changes are drawn). Returns false if the program ended first.
    fn read_until(&mut self, text: &str) -> bool {
        let mut piece = [0; 4096];
        while !String::from_utf8_lossy(&self.shown).contains(text) {
            // Reading fails once the other side of the terminal is closed.
            match self.terminal.read(&mut piece) {
                Ok(count) if count > 0 => self.shown.extend_from_slice(&piece[..count]),
                _ => return false,
            }
        }
        true
    }

    /// Reads to the end. Returns the exit code and all output.
    fn end(mut self) -> (Option<i32>, String) {
        self.read_until("\u{0} nobody shows this");
        (self.child.wait().unwrap().code(), String::from_utf8_lossy(&self.shown).into_owned())
    }
}

const ENTER: &str = "\u{1b}[?1049h";
const LEAVE: &str = "\u{1b}[?1049l";

#[test]
fn the_full_screen_shows_rollouts_and_gives_the_terminal_back() {
    let world = World::with(|options| options.latency = Range::only(Duration::from_millis(100)));
    world.environment("my-env");
    let mut program = OnTerminal::start(&world, "eval run my-env -m gpt-4.1-mini -n 5 -r 4 -c 1 -u");
    assert!(program.read_until("my-env"));
    // The conversation of the selected rollout, below the list.
    let seen = program.read_until("system:");
    assert!(seen, "{}", String::from_utf8_lossy(&program.shown));
    let (code, shown) = program.end();
    assert_eq!(code, Some(0), "{shown}");
    let (_, after) = shown.split_once(LEAVE).unwrap();
    assert!(shown.contains(ENTER));
    assert!(after.contains("Results:") && after.contains("Reward: "), "the summary stays: {after}");
}

#[test]
fn a_key_on_the_full_screen_ends_the_evaluation_and_it_goes_on_later() {
    let world = World::with(|options| options.latency = Range::only(Duration::from_millis(100)));
    world.environment("my-env");
    let line = "eval run my-env -m gpt-4.1-mini -n 5 -r 20 -s";
    let mut program = OnTerminal::start(&world, &format!("{line} -c 1 -u"));
    let seen = program.read_until("system:");
    assert!(seen, "{}", String::from_utf8_lossy(&program.shown));
    program.terminal.write_all(b"q").unwrap();
    let (code, shown) = program.end();
    assert_eq!(code, Some(130), "{shown}");
    assert!(shown.contains(LEAVE), "{shown}");
    assert!(world.requests().len() < 100, "it did not stop");
    assert_eq!(world.eval(&format!("{line} --resume"))["rows"], 100);
}
