//! The full screen, on a pseudo-terminal.

use std::time::Duration;

use aec_model_server::Range;
use aec_xtest::terminal::OnTerminal;

use crate::eval::world::World;

const ENTER: &str = "\u{1b}[?1049h";
const LEAVE: &str = "\u{1b}[?1049l";

#[test]
fn the_full_screen_shows_rollouts_and_gives_the_terminal_back() {
    let world = World::with(|options| options.latency = Range::only(Duration::from_millis(100)));
    world.environment("my-env");
    let mut program = OnTerminal::start(&world.env, "eval run my-env -m gpt-4.1-mini -n 5 -r 4 -c 1 -u", 120);
    assert!(program.read_until("my-env"));
    // The conversation of the selected rollout, below the list.
    let seen = program.read_until("system:");
    assert!(seen, "{}", program.shown());
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
    let mut program = OnTerminal::start(&world.env, &format!("{line} -c 1 -u"), 120);
    let seen = program.read_until("system:");
    assert!(seen, "{}", program.shown());
    program.press("q");
    let (code, shown) = program.end();
    assert_eq!(code, Some(130), "{shown}");
    assert!(shown.contains(LEAVE), "{shown}");
    assert!(world.requests().len() < 100, "it did not stop");
    assert_eq!(world.eval(&format!("{line} --resume"))["rows"], 100);
}
