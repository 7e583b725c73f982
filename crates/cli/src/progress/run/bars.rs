//! Progress on a terminal: a bar, results so far, a line for each agent, and trials that seem stuck. Faults and reasons
//! to stop are printed above it.

use std::time::Instant;

use aec_run::control::Wish;
use aec_run::event::{RunEvent, StopReason};
use aec_run::tally::AgentTally;

use super::phrases;
use super::state::State;
use crate::progress::figures::{bar, grouped, many, short};
use crate::progress::text::{cut, fill, width, wrap};

/// Most agents with a separate line.
const AGENTS: usize = 12;

const CYAN: anstyle::Style = anstyle::AnsiColor::Cyan.on_default();

/// The line to print above the bar for an event, after the state has been updated.
pub(super) fn above(event: &RunEvent, state: &State) -> Option<String> {
    match event {
        RunEvent::Started(started) => Some(phrases::start(started)),
        RunEvent::TrialEnded(_) => state.latest().and_then(|ended| phrases::fault(state, ended)),
        // These two are shown below, because the number of running trials in them keeps changing.
        RunEvent::Stopping(StopReason::Asked | StopReason::Insisted) => None,
        RunEvent::Stopping(reason) => Some(phrases::stopping(state, reason)),
        _ => None,
    }
}

/// The lines to show, at most `columns` wide.
pub(super) fn picture(state: &State, wish: Wish, now: Instant, columns: usize) -> Vec<String> {
    if state.started.is_none() {
        return Vec::new();
    }
    let (trials, elapsed) = (phrases::trials(state), phrases::elapsed(state, now));
    let left = phrases::left(state, now).map(|left| format!(", {left}")).unwrap_or_default();
    let mut text = format!("{trials}, {elapsed}{left}");
    if width(&text) > columns {
        text = trials + &left;
    }
    // A narrow bar is better than no bar, and no bar is better than cut text.
    let cells = columns.saturating_sub(width(&text) + 1).min(30);
    let mut lines = Vec::new();
    if cells >= 5 {
        lines.push(format!("{CYAN}{}{CYAN:#} {text}", bar(share(state), cells)));
    } else {
        lines.push(cut(&text, columns));
    }
    let running = format!("{} running", grouped(state.running().len() as u64));
    let mut parts =
        vec![phrases::reward(&state.all), phrases::cost(state), phrases::pace(state, now), running];
    parts.extend(phrases::unscored(state));
    parts.push(format!("{} tokens", short(state.tokens())));
    lines.extend(flow(&parts, columns));
    lines.extend(agents(state, columns));
    lines.extend(phrases::stuck(state, now).map(|stuck| cut(&stuck, columns)));
    let asked = match (wish, &state.stopping) {
        (Wish::GiveUp, _) => Some(StopReason::Insisted),
        (Wish::Finish, None | Some(StopReason::Asked)) => Some(StopReason::Asked),
        _ => None,
    };
    if let Some(reason) = asked {
        lines.extend(wrap(&phrases::stopping(state, &reason), columns));
    }
    lines
}

#[expect(clippy::cast_precision_loss, reason = "a share of a bar")]
fn share(state: &State) -> f64 {
    state.done() as f64 / state.to_run().max(1) as f64
}

/// Puts as many phrases on each line as fit.
fn flow(parts: &[String], columns: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for part in parts {
        match lines.last_mut() {
            Some(line) if width(line) + width(part) + 2 <= columns => {
                line.push_str(", ");
                line.push_str(part);
            }
            _ => lines.push(cut(part, columns)),
        }
    }
    lines
}

fn agents(state: &State, columns: usize) -> Vec<String> {
    if state.agents.len() < 2 {
        return Vec::new();
    }
    let name = |tally: &AgentTally| tally.agent.as_ref().map(ToString::to_string).unwrap_or_default();
    let widest = state.agents.iter().take(AGENTS).map(|tally| width(&name(tally))).max().unwrap_or(0);
    let label = widest.min(columns / 2);
    let line = |tally: &AgentTally| {
        let done = many(tally.executed, "trial");
        cut(&format!("  {} {}, {done}", fill(&name(tally), label), phrases::reward(tally)), columns)
    };
    let mut lines: Vec<String> = state.agents.iter().take(AGENTS).map(line).collect();
    let more = state.agents.len().saturating_sub(AGENTS);
    if more > 0 {
        lines.push(format!("  and {}", many(more, "more agent")));
    }
    lines
}

#[cfg(test)]
mod tests {
    use aec_base::secret::Redactor;
    use aec_judge::verdict::Outcome;
    use aec_run::control::Control;

    use super::super::RunShow;
    use super::super::samples::{self, Play};
    use super::*;
    use crate::progress::painter::{Display, Mode, Painter};

    fn run() -> Play {
        let mut play = Play::new();
        play.apply(&samples::started(400));
        for number in 0..120 {
            let infra = number % 40 == 7;
            let outcome = if infra { Outcome::InfraFault } else { Outcome::Scored };
            play.trial(number, outcome, infra.then_some("the room is gone"));
        }
        for number in 120..123 {
            play.apply(&RunEvent::TrialStarted(samples::trial(number, 1)));
        }
        play
    }

    fn shown(play: &Play, wish: Wish, columns: usize) -> String {
        let lines = picture(&play.state, wish, play.now, columns);
        let lines: Vec<String> =
            lines.iter().map(|line| anstream::adapter::strip_str(line).to_string()).collect();
        for line in &lines {
            assert!(width(line) <= columns, "{line:?} at {columns}");
        }
        lines.join("\n")
    }

    #[test]
    fn pictures_fit_their_terminal() {
        let mut play = run();
        insta::assert_snapshot!("wide", shown(&play, Wish::GoOn, 119));
        insta::assert_snapshot!("narrow", shown(&play, Wish::Finish, 39));
        play.wait(90_000);
        insta::assert_snapshot!("stuck", shown(&play, Wish::GiveUp, 79));
        for columns in 1..200 {
            shown(&play, Wish::Finish, columns);
        }
        picture(&play.state, Wish::GoOn, play.now, 0);
    }

    #[test]
    fn before_the_beginning_there_is_nothing() {
        assert_eq!(shown(&Play::new(), Wish::GoOn, 80), "");
    }

    #[test]
    fn many_agents_do_not_fill_the_terminal() {
        let mut play = Play::new();
        let RunEvent::Started(mut started) = samples::started(10) else { unreachable!() };
        started.agents = (0..40).map(|number| samples::name(&format!("agent-{number}"))).collect();
        play.apply(&RunEvent::Started(started));
        let text = shown(&play, Wish::GoOn, 80);
        assert!(text.contains("agent-11") && !text.contains("agent-12"), "{text}");
        assert!(text.ends_with("and 28 more agents"), "{text}");
    }

    #[test]
    fn a_run_without_a_terminal_ends_as_well() {
        let show = RunShow::new(Redactor::default(), true, Instant::now());
        let bars = Display { mode: Mode::Bars, events: None };
        let painter = Painter::new(bars, show, true, Control::default()).unwrap();
        painter.on(&samples::started(2));
        painter.on(&samples::ended(&samples::trial(0, 1), Outcome::InfraFault, Some("gone")));
        painter.on(&RunEvent::Ended(Box::new(samples::run_ended())));
        drop(painter);
    }
}
