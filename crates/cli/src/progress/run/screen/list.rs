//! The list of attempts: running ones, then recently ended ones.

use std::time::Instant;

use aec_base::decimal::rounded;
use aec_base::label;
use aec_judge::verdict::Outcome;
use aec_run::event::Stage;
use ratatui::layout::Rect;
use ratatui::style::{Color, Modifier, Style};

use super::super::state::{Row, State};
use super::pen::Pen;
use super::view::View;
use crate::progress::figures::{UNPRICED, money, span};
use crate::progress::text::{cut_front, fill, width};

/// Cells before each row, for the mark of the selected row.
const MARK: usize = 2;

struct Columns {
    trial: usize,
    task: usize,
    agent: usize,
    repetition: usize,
    state: usize,
    reward: usize,
    cost: usize,
    time: usize,
}

/// The narrowest useful column for a trial, a task or an agent.
const NARROWEST: usize = 8;

impl Columns {
    /// The columns that fit: first task, state and time, then the others. Trials, tasks and agents share the remaining
    /// width in proportion to their needs.
    fn of(width: usize, needs: [usize; 3]) -> Self {
        let (state, time) = (14, 9);
        let (repetition, reward) = if width >= 60 { (5, 6) } else { (0, 0) };
        let cost = if width >= 72 { 9 } else { 0 };
        let fixed = [state, time, repetition, reward, cost];
        let used: usize = fixed.iter().filter(|cells| **cells > 0).map(|cells| cells + 1).sum();
        let rest = width.saturating_sub(used + MARK);
        let [mut trial, mut task, mut agent] = needs;
        if rest < 3 * NARROWEST + 2 {
            (trial, agent) = (0, 0);
            task = rest;
        }
        let rest = rest.saturating_sub(usize::from(trial > 0) + usize::from(agent > 0));
        while trial + task + agent > rest {
            let widest = if task >= trial.max(agent) {
                &mut task
            } else if trial >= agent {
                &mut trial
            } else {
                &mut agent
            };
            *widest -= 1;
        }
        Self { trial, task, agent, repetition, state, reward, cost, time }
    }

    fn row(&self, cells: [&str; 8]) -> String {
        let widths = [
            self.trial,
            self.task,
            self.agent,
            self.repetition,
            self.state,
            self.reward,
            self.cost,
            self.time,
        ];
        let shown = cells.iter().zip(widths).filter(|(_, cells)| *cells > 0);
        shown.map(|(text, cells)| fill(text, cells)).collect::<Vec<_>>().join(" ")
    }
}

pub(crate) fn list(pen: &mut Pen<'_>, area: Rect, state: &State, view: &View) {
    let rows = state.rows(view.faults_only);
    let title = if view.faults_only { "faults (f shows all)".to_owned() } else { "trials".to_owned() };
    pen.title(area, &title, !view.trace_focused);
    let height = usize::from(area.height.saturating_sub(2));
    let selected = view.position(state);
    // The selected row stays visible, with as many rows as possible above it.
    let first = selected.saturating_sub(height.saturating_sub(1));
    let seen: Vec<Row<'_>> = rows.iter().skip(first).take(height).copied().collect();
    let ids: Vec<&str> = seen.iter().map(|row| row.trial().trial_id.as_str()).collect();
    let trials = label::short(&ids);
    let columns = Columns::of(usize::from(area.width), needs(&seen, &trials, state));
    let header = columns.row(["trial", "task", "agent", "rep", "state", "reward", "cost", "time"]);
    pen.line(area, 1, &format!("  {header}"), Style::new().add_modifier(Modifier::BOLD));
    for (line, ((index, row), trial)) in (2..).zip((first..).zip(&seen).zip(trials)) {
        let (text, color) = list_row(&columns, *row, trial, state, view.now);
        let mark = if index == selected { "▸ " } else { "  " };
        let mut style = color.map_or_else(Style::new, |color| pen.colored(color));
        if index == selected {
            style = style.add_modifier(Modifier::REVERSED);
        }
        pen.line(area, line, &format!("{mark}{text}"), style);
    }
    if rows.is_empty() {
        let text = if view.faults_only { "  no faults" } else { "  no trials yet" };
        pen.line(area, 2, text, Style::new());
    }
}

/// The widths that trials, tasks and agents need.
fn needs(rows: &[Row<'_>], trials: &[&str], state: &State) -> [usize; 3] {
    let mut needs = ["trial", "task", "agent"].map(width);
    for (row, id) in rows.iter().zip(trials) {
        let trial = row.trial();
        let found = [width(id), width(&state.safe(&trial.task)), width(trial.agent.as_str())];
        for (need, found) in needs.iter_mut().zip(found) {
            *need = found.max(*need);
        }
    }
    needs
}

fn list_row(
    columns: &Columns,
    row: Row<'_>,
    id: &str,
    state: &State,
    now: Instant,
) -> (String, Option<Color>) {
    let trial = row.trial();
    let task = cut_front(&state.safe(&trial.task), columns.task);
    let repetition = format!("{}/{}", trial.repetition, trial.attempt);
    let (doing, reward, cost, time, color) = match row {
        Row::Running(running) => {
            let time = span(now.saturating_duration_since(running.began));
            (stage(running.stage).to_owned(), String::new(), String::new(), time, None)
        }
        Row::Ended(ended) => {
            let color = match ended.outcome {
                Outcome::Scored => Some(Color::Green),
                Outcome::Unverified => None,
                Outcome::Cancelled => Some(Color::Yellow),
                Outcome::AgentFault | Outcome::InfraFault | Outcome::VerifierFault => Some(Color::Red),
            };
            let doing = ended.outcome.name().to_owned();
            let reward = ended.reward.map(|reward| rounded(reward, 2)).unwrap_or_default();
            let cost = ended.cost.map_or_else(|| UNPRICED.to_owned(), money);
            (doing, reward, cost, span(ended.duration), color)
        }
    };
    let cells = [id, &task, trial.agent.as_str(), &repetition, &doing, &reward, &cost, &time];
    (columns.row(cells), color)
}

/// The stage of an attempt, in one word.
fn stage(stage: Stage) -> &'static str {
    match stage {
        Stage::Staged => "staged",
        Stage::Running => "running",
        Stage::Frozen => "judging",
        Stage::Judged => "recording",
    }
}
