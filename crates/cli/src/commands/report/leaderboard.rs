//! `aec-bench report leaderboard`.

use aec_base::problem::Problem;
use aec_base::text;
use aec_report::group::Unit;
use aec_report::leaderboard::{Leaderboard, leaderboard as rank};
use clap::Args;

use crate::commands::ledger::number;
use crate::commands::report::{ReportFilterArguments, Source, UnitArgument, dollars, mean, span};
use crate::context::Context;
use crate::failure::Failure;
use crate::output::Outcome;
use crate::table::{Table, TableArguments, paragraph};

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
                        aec-bench report leaderboard\n  \
                        aec-bench report leaderboard -e pilot -e reference --difficulty easy")]
pub(crate) struct ReportLeaderboardArguments {
    /// Only this experiment; may be repeated [default: all experiments]
    #[arg(long = "experiment-id", short = 'e', visible_alias = "experiment", value_name = "EXP")]
    pub(crate) experiments: Vec<String>,
    #[command(flatten)]
    pub(crate) filter: ReportFilterArguments,
    /// Which trials the intervals treat as one group
    #[arg(long, value_enum, value_name = "UNIT", default_value_t)]
    pub(crate) unit: UnitArgument,
    /// Only tasks with this visibility
    #[arg(long, value_name = "WORD", value_parser = ["public", "holdout"])]
    pub(crate) visibility: Option<String>,
    /// Treat different revisions of a task as the same task
    #[arg(long)]
    pub(crate) mix_revisions: bool,
    #[command(flatten)]
    pub(crate) table: TableArguments,
}

const COLUMNS: [&str; 14] = [
    "RANK",
    "AGENT",
    "HARNESS",
    "MODEL",
    "MEAN",
    "95 % INTERVAL",
    "FAULTS AS 0",
    "SOLVED",
    "WORST",
    "FAULTS",
    "CRASHED",
    "TASKS",
    "USD",
    "USD/SOLVED",
];

pub(crate) fn leaderboard(
    context: &Context,
    arguments: &ReportLeaderboardArguments,
) -> Result<Outcome, Failure> {
    arguments.table.apply(&[&COLUMNS])?;
    let mut source = Source::open(context, &arguments.experiments, &arguments.filter)?;
    source
        .filter
        .fields
        .extend(arguments.visibility.iter().map(|word| ("visibility".to_owned(), word.clone())));
    let (mut selection, problems) = source.selection()?;
    let mixed = selection.mixed_revisions();
    if let Some((task, revisions)) = mixed.first() {
        if !arguments.mix_revisions {
            let what = format!(
                "{} of {} were run, the first is `{task}` with {revisions}",
                "different revisions",
                text::count(mixed.len(), "task")
            );
            let problem = Problem::error(what)
                .why("a task with other files is another task; its rewards do not belong into one mean")
                .fix("name experiments of one revision with -e, or pass --mix-revisions");
            return Err(Failure::input([problem]));
        }
        selection.merge_revisions();
    }
    let board = rank(&selection, Unit::from(arguments.unit));
    Ok(Outcome::new(context.format, &board, || board_text(&board))?.problems(problems))
}

fn board_text(board: &Leaderboard) -> String {
    let spare = ["USD/SOLVED", "TASKS", "WORST", "HARNESS", "USD", "MODEL"];
    let mut table = Table::new(COLUMNS).spare(spare).cut(["AGENT", "HARNESS", "MODEL"]);
    for row in &board.rows {
        let rank = match (row.rank, row.ranks) {
            (Some(rank), Some((best, worst))) if best != worst => format!("{rank} ({best}-{worst})"),
            (Some(rank), _) => rank.to_string(),
            (None, _) => "-".to_owned(),
        };
        let group = &row.group;
        table.row([
            rank,
            row.agent.clone(),
            row.harness.clone(),
            row.model.clone().unwrap_or_else(|| "-".to_owned()),
            mean(group),
            span(group.interval),
            number(group.denominators.as_run, 3),
            format!("{} of {}", group.solved, group.counted),
            number(group.denominators.worst_case, 3),
            group.faults.uncounted.to_string(),
            group.faults.crashed.to_string(),
            group.tasks.to_string(),
            dollars(group),
            number(group.cost_per_solved, 4),
        ]);
    }
    let mut text = table.render();
    for note in &board.notes {
        text.push_str(&paragraph(&format!("\nNote: {note}.\n")));
    }
    text
}
