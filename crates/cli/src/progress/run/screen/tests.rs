//! Frames of invented runs, with invented keys.

use std::sync::Arc;
use std::time::Duration;

use aec_judge::verdict::Outcome;
use aec_ledger::transcript::{Event, EventRole};
use aec_model::money::MicroDollars;
use aec_run::control::{Control, Wish};
use aec_run::event::{RunEvent, Stage, StopReason, Tick, TrialRef};
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::super::samples::{self, Play};
use super::view::View;

fn view(play: &Play, columns: u16, rows: u16) -> View {
    View { columns, rows, ..View::new(true, play.now) }
}

fn frame(play: &Play, view: &View) -> String {
    drawn(play, view, view.columns, view.rows).to_string()
}

fn drawn(play: &Play, view: &View, columns: u16, rows: u16) -> TestBackend {
    let mut terminal = Terminal::new(TestBackend::new(columns, rows)).unwrap();
    terminal.draw(|frame| super::draw::draw(frame, &play.state, view)).unwrap();
    terminal.backend().clone()
}

fn event(role: EventRole, content: &str) -> Arc<Event> {
    Arc::new(Event { step: 1, role, content: Some(content.to_owned()), ..Event::default() })
}

/// A run that is half done, with a trace of its first running trial.
fn running() -> Play {
    let mut play = Play::new();
    play.apply(&samples::started(400));
    for number in 0..120 {
        let outcome = match number % 40 {
            7 => Outcome::InfraFault,
            9 => Outcome::AgentFault,
            _ => Outcome::Scored,
        };
        play.trial(number, outcome, (outcome != Outcome::Scored).then_some("the room is gone"));
    }
    for number in 120..124 {
        play.apply(&RunEvent::TrialStarted(samples::trial(number, 1)));
        play.wait(300);
    }
    let trial = samples::trial(120, 1);
    play.apply(&RunEvent::Stage(Arc::clone(&trial), Stage::Running));
    let call = Event {
        step: 1,
        role: EventRole::ToolCall,
        tool_name: Some("bash".to_owned()),
        command: Some("cat drawing.txt | grep -n width".to_owned()),
        ..Event::default()
    };
    let result = Event {
        step: 1,
        role: EventRole::ToolResult,
        tool_name: Some("bash".to_owned()),
        stdout: Some(
            "12: width 0.90 m\n14: width 1.20 m, between the posts, as measured on site\n".to_owned(),
        ),
        exit_code: Some(0),
        duration_ms: Some(34),
        ..Event::default()
    };
    for event in [event(EventRole::Assistant, "I look at the drawing."), Arc::new(call), Arc::new(result)] {
        play.apply(&RunEvent::Trace(Arc::clone(&trial), event));
    }
    let spent = MicroDollars(521_000);
    play.apply(&RunEvent::Tick(Tick {
        spent,
        reserved: MicroDollars(40_000),
        tokens: 181_500,
        open_calls: 3,
        running: 4,
    }));
    play
}

#[test]
fn a_run_that_has_not_begun() {
    let play = Play::new();
    insta::assert_snapshot!("empty_80", frame(&play, &view(&play, 80, 24)));
    insta::assert_snapshot!("empty_140", frame(&play, &view(&play, 140, 40)));
}

#[test]
fn a_run_in_the_middle() {
    let play = running();
    insta::assert_snapshot!("running_80", frame(&play, &view(&play, 80, 24)));
    insta::assert_snapshot!("running_140", frame(&play, &view(&play, 140, 40)));
    insta::assert_snapshot!("running_40", frame(&play, &view(&play, 40, 20)));
    insta::assert_snapshot!("faults_80", frame(&play, &View { faults_only: true, ..view(&play, 80, 24) }));
    insta::assert_snapshot!("help_80", frame(&play, &View { help: true, ..view(&play, 80, 24) }));
}

#[test]
fn a_run_that_stops_and_one_that_ended() {
    let mut play = running();
    play.apply(&RunEvent::Stopping(StopReason::Asked));
    insta::assert_snapshot!("stopping_80", frame(&play, &View { wish: Wish::Finish, ..view(&play, 80, 24) }));
    play.apply(&RunEvent::Ended(Box::new(samples::run_ended())));
    insta::assert_snapshot!("ended_80", frame(&play, &view(&play, 80, 24)));
    insta::assert_snapshot!("ended_140", frame(&play, &view(&play, 140, 40)));
}

/// Long ids, and text that contains control sequences.
fn hostile() -> Play {
    let mut play = Play::new();
    play.apply(&samples::started(10));
    let trial = Arc::new(TrialRef {
        trial_id: samples::name(&"t".repeat(128)),
        task_id: "fire/long".to_owned(),
        task: format!("fire/{}\u{1b}]0;owned\u{7}", "very-long-".repeat(30)),
        agent: samples::name(&"agent-".repeat(20)),
        repetition: 4_000_000_000,
        attempt: 4_000_000_000,
    });
    play.apply(&RunEvent::TrialStarted(Arc::clone(&trial)));
    let texts = [
        "\u{1b}[2J\u{1b}[H\u{1b}[31mall gone\u{1b}[0m\u{7}\u{8}\r\nsecret-value in plain sight",
        "日本語のとても長い文章がここにあります。折り返しは幅で決まります。👩\u{200d}🔧 ⚠\u{fe0f} \u{202e}backwards",
        &format!("Z{}algo {}", "\u{301}\u{302}\u{303}".repeat(30), "x".repeat(300)),
    ];
    for text in texts {
        play.apply(&RunEvent::Trace(Arc::clone(&trial), event(EventRole::Assistant, text)));
    }
    play.wait(1_000);
    play
}

#[test]
fn hostile_text_stays_text() {
    let play = hostile();
    for (name, columns, rows) in [("hostile_80", 80, 24), ("hostile_140", 140, 40)] {
        let shown = frame(&play, &view(&play, columns, rows));
        assert!(!shown.chars().any(|c| c.is_control() && c != '\n'), "{shown:?}");
        assert!(!shown.contains("secret-value"), "{shown}");
        insta::assert_snapshot!(name, shown);
    }
}

#[test]
fn no_size_is_too_small() {
    for play in [Play::new(), running(), hostile()] {
        for (columns, rows) in (0..150).step_by(11).flat_map(|x| (0..45).step_by(3).map(move |y| (x, y))) {
            for trace_focused in [false, true] {
                let view = View { trace_focused, help: rows % 2 == 0, ..view(&play, columns, rows) };
                drawn(&play, &view, columns, rows);
            }
        }
        // The screen may have become smaller since the view was told its size.
        drawn(&play, &view(&play, 200, 60), 20, 6);
    }
}

#[test]
fn colours_say_nothing_that_words_do_not() {
    let play = running();
    let plain = View { color: false, ..view(&play, 80, 24) };
    assert_eq!(frame(&play, &plain), frame(&play, &view(&play, 80, 24)));
    let reset = ratatui::style::Color::Reset;
    assert!(
        drawn(&play, &plain, 80, 24)
            .buffer()
            .content()
            .iter()
            .all(|cell| cell.fg == reset && cell.bg == reset)
    );
}

fn press(view: &mut View, play: &Play, control: &Control, codes: &[KeyCode]) {
    for code in codes {
        view.key(KeyEvent::new(*code, KeyModifiers::NONE), &play.state, control);
    }
}

fn selected(view: &View, play: &Play) -> String {
    view.chosen(&play.state).map(|key| key.trial.to_string()).unwrap_or_default()
}

#[test]
fn keys_select_trials() {
    let mut play = running();
    let control = Control::default();
    let mut view = view(&play, 80, 24);
    assert_eq!(selected(&view, &play), "t0120");
    press(&mut view, &play, &control, &[KeyCode::Down, KeyCode::Char('j'), KeyCode::Up]);
    assert_eq!(selected(&view, &play), "t0121");
    // The selection stays on its trial when that ends and others begin.
    play.apply(&samples::ended(&samples::trial(121, 1), Outcome::Scored, None));
    play.apply(&RunEvent::TrialStarted(samples::trial(124, 1)));
    assert_eq!(selected(&view, &play), "t0121");
    press(&mut view, &play, &control, &[KeyCode::Home, KeyCode::Up]);
    assert_eq!(selected(&view, &play), "t0120");
    press(&mut view, &play, &control, &[KeyCode::PageDown]);
    assert_eq!(selected(&view, &play), "t0114");
    press(&mut view, &play, &control, &[KeyCode::End, KeyCode::Down]);
    assert_eq!(selected(&view, &play), "t0000");
    press(&mut view, &play, &control, &[KeyCode::Char('f')]);
    assert_eq!(selected(&view, &play), "t0089");
    press(&mut view, &play, &control, &[KeyCode::Char('j'), KeyCode::Esc]);
    assert!(!view.faults_only);
    assert_eq!(control.wish(), Wish::GoOn);
}

#[test]
fn keys_scroll_the_trace() {
    let mut play = running();
    let trial = samples::trial(120, 1);
    for line in 0..50 {
        let text = format!("line {line}");
        play.apply(&RunEvent::Trace(Arc::clone(&trial), event(EventRole::Note, &text)));
    }
    let control = Control::default();
    let mut view = view(&play, 80, 24);
    assert!(frame(&play, &view).contains("line 49"));
    press(&mut view, &play, &control, &[KeyCode::Enter, KeyCode::PageUp]);
    assert_eq!((view.trace_focused, view.scroll), (true, 10));
    let shown = frame(&play, &view);
    assert!(shown.contains("line 39") && !shown.contains("line 40"), "{shown}");
    // Scrolling stops at the beginning.
    press(&mut view, &play, &control, &[KeyCode::Home, KeyCode::PageUp]);
    let shown = frame(&play, &view);
    assert!(shown.contains("1 agent") && shown.contains("I look at the drawing."), "{shown}");
    press(&mut view, &play, &control, &[KeyCode::Down]);
    assert!(!frame(&play, &view).contains("1 agent"));
    press(&mut view, &play, &control, &[KeyCode::End]);
    assert!(frame(&play, &view).contains("line 49"));
    press(&mut view, &play, &control, &[KeyCode::Tab, KeyCode::Down]);
    assert_eq!((view.trace_focused, view.scroll), (false, 0));
    assert_eq!(selected(&view, &play), "t0121");
}

#[test]
fn the_first_q_finishes_and_the_second_gives_up() {
    let play = running();
    let control = Control::default();
    let mut view = view(&play, 80, 24);
    press(&mut view, &play, &control, &[KeyCode::Char('q')]);
    assert_eq!((control.wish(), view.wish), (Wish::Finish, Wish::Finish));
    press(&mut view, &play, &control, &[KeyCode::Char('q'), KeyCode::Char('q')]);
    assert_eq!(control.wish(), Wish::Finish, "a key that is held down asks once");
    assert!(frame(&play, &view).contains("finishing 4 running trials; q again cancels them"));
    view.now += Duration::from_secs(1);
    view.help = true;
    view.key(KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL), &play.state, &control);
    assert_eq!(control.wish(), Wish::GiveUp);
    view.help = false;
    assert!(frame(&play, &view).contains("cancelling 4 running trials"));
}

#[test]
fn help_comes_and_goes_and_unknown_keys_do_nothing() {
    let play = Play::new();
    let control = Control::default();
    let mut view = view(&play, 80, 24);
    let keys = [KeyCode::Down, KeyCode::PageUp, KeyCode::Enter, KeyCode::Up, KeyCode::Enter, KeyCode::F(5)];
    press(&mut view, &play, &control, &keys);
    press(&mut view, &play, &control, &[KeyCode::Char('?')]);
    assert!(view.help);
    press(&mut view, &play, &control, &[KeyCode::Char('f')]);
    assert!(!view.help && !view.faults_only);
    view.key(KeyEvent::new(KeyCode::Char('c'), KeyModifiers::NONE), &play.state, &control);
    assert_eq!(control.wish(), Wish::GoOn);
}
