//! The upper lines of the full screen: the run as a whole.

use aec_base::decimal::rounded;
use aec_run::control::Wish;
use ratatui::layout::Rect;
use ratatui::style::{Color, Modifier, Style};

use super::super::phrases;
use super::super::state::State;
use super::pen::Pen;
use super::view::View;
use crate::progress::figures::{UNKNOWN, bar, grouped, many, money, rate, short, span};
use crate::progress::text::width;

pub(crate) fn header(pen: &mut Pen<'_>, area: Rect, state: &State, view: &View) {
    let now = view.now;
    let Some(started) = &state.started else {
        pen.line(area, 0, "aec-bench run: waiting for the first event", Style::new());
        return;
    };
    let elapsed = span(now.saturating_duration_since(state.began));
    let title = format!("{}: {}, {elapsed}", started.experiment_id, mood(state, view));
    let style = Style::new().add_modifier(Modifier::BOLD);
    pen.line(area, 0, &title, style);

    let mut parts = vec![phrases::trials(state)];
    parts.extend(phrases::left(state, now));
    parts.push(format!("{} running", grouped(state.running().len() as u64)));
    parts.push(phrases::pace(state, now));
    if let Some(overall) = state.overall_rate(now) {
        parts.push(format!("{} overall", rate(overall)));
    }
    gauge(pen, area, 1, share(state.done(), state.to_run()), &parts.join(", "));

    let set_aside = match state.tick.reserved.0 {
        0 => String::new(),
        _ => format!(", {} set aside", money(state.tick.reserved)),
    };
    let tokens = format!("{} tokens, {} open calls", short(state.tokens()), state.tick.open_calls);
    match started.max_cost {
        Some(most) => {
            let text = format!("{} of {}{set_aside}, {tokens}", phrases::cost(state), money(most));
            gauge(pen, area, 2, money_share(state.spent().0, most.0), &text);
        }
        None => pen.line(area, 2, &format!("{}{set_aside}, {tokens}", phrases::cost(state)), Style::new()),
    }

    let mut parts = vec![phrases::reward(&state.all)];
    parts.extend(phrases::unscored(state));
    pen.line(area, 3, &parts.join(", "), Style::new());

    match phrases::stuck(state, now) {
        Some(stuck) => {
            let style = pen.colored(Color::Yellow);
            pen.line(area, 4, &stuck, style);
        }
        None => pen.line(area, 4, &agents(state), Style::new()),
    }
}

/// What the run is about to do.
fn mood(state: &State, view: &View) -> String {
    if let Some(end) = phrases::end(state) {
        return end;
    }
    match (&state.stopping, view.wish) {
        (_, Wish::GiveUp) => format!("cancelling {}", many(state.running().len(), "running trial")),
        (Some(reason), Wish::GoOn) => phrases::stopping(state, reason),
        (_, Wish::Finish) => {
            format!("finishing {}; q again cancels them", many(state.running().len(), "running trial"))
        }
        (None, Wish::GoOn) => "running".to_owned(),
    }
}

fn agents(state: &State) -> String {
    let one = |tally: &aec_run::tally::AgentTally| {
        let name = tally.agent.as_ref().map(ToString::to_string).unwrap_or_default();
        let mean = tally.mean_reward().map_or_else(|| UNKNOWN.to_owned(), |mean| rounded(mean, 2));
        format!("{name} {mean} ({})", grouped(tally.counted() as u64))
    };
    state.agents.iter().map(one).collect::<Vec<_>>().join(", ")
}

/// A bar, if it fits, and text.
fn gauge(pen: &mut Pen<'_>, area: Rect, row: u16, share: f64, text: &str) {
    let cells = usize::from(area.width).saturating_sub(width(text) + 1).min(24);
    if cells < 5 {
        pen.line(area, row, text, Style::new());
        return;
    }
    pen.line(area, row, &format!("{} {text}", " ".repeat(cells)), Style::new());
    let style = pen.colored(Color::Cyan);
    pen.line(area, row, &bar(share, cells), style);
}

#[expect(clippy::cast_precision_loss, reason = "a share of a bar")]
fn share(part: usize, all: usize) -> f64 {
    part as f64 / all.max(1) as f64
}

#[expect(clippy::cast_precision_loss, reason = "a share of a bar")]
fn money_share(part: u64, all: u64) -> f64 {
    part as f64 / all.max(1) as f64
}
