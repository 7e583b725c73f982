//! `aec-bench report summary`.

use aec_report::evaluate::evaluate;
use aec_report::group::Unit;
use clap::Args;

use crate::commands::evaluate::{GROUP_COLUMNS, group_table, missing, overview};
use crate::commands::report::{ReportFilterArguments, Source};
use crate::context::Context;
use crate::failure::Failure;
use crate::output::Outcome;
use crate::table::{TableArguments, paragraph};

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
                        aec-bench report summary\n  \
                        aec-bench report summary -e pilot")]
pub(crate) struct ReportSummaryArguments {
    /// Experiment; may be repeated [default: all experiments]
    #[arg(long = "experiment-id", short = 'e', visible_alias = "experiment", value_name = "EXP")]
    pub(crate) experiments: Vec<String>,
    #[command(flatten)]
    pub(crate) filter: ReportFilterArguments,
    #[command(flatten)]
    pub(crate) table: TableArguments,
}

pub(crate) fn summary(context: &Context, arguments: &ReportSummaryArguments) -> Result<Outcome, Failure> {
    arguments.table.apply(&GROUP_COLUMNS)?;
    let source = Source::open(context, &arguments.experiments, &arguments.filter)?;
    let (selection, mut problems) = source.selection()?;
    let evaluation = evaluate(&selection, Unit::Task);
    problems.extend(missing(&evaluation));
    let outcome = Outcome::new(context.format, &evaluation, || {
        let mut text = paragraph(&overview(&evaluation));
        text.push_str(&format!("\n{}", group_table("AGENT", &evaluation.by.agent)));
        for note in &evaluation.notes {
            text.push_str(&paragraph(&format!("\nNote: {note}.\n")));
        }
        text
    })?;
    Ok(outcome.problems(problems))
}
