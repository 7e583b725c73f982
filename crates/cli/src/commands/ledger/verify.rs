//! `aec-bench ledger verify`.

use aec_base::digest::Digest;
use aec_base::problem::Problem;
use aec_base::settings::Setting;
use aec_base::text;
use aec_ledger::index::IndexAudit;
use aec_ledger::verify::{Depth, Scope, Verified, check_head, verify as verify_experiment};
use clap::Args;
use serde::Serialize;

use crate::arguments::{JobsRootArgument, LedgerRootArgument};
use crate::commands::ledger::{experiments, open_with_jobs, shorten};
use crate::context::Context;
use crate::failure::Failure;
use crate::output::{Outcome, problem_text};

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
                        aec-bench ledger verify\n  \
                        aec-bench ledger verify --experiment-id pilot --quick")]
pub(crate) struct LedgerVerifyArguments {
    /// Only this experiment
    #[arg(long = "experiment-id", short = 'e', visible_alias = "experiment", value_name = "EXP")]
    pub(crate) experiments: Vec<String>,
    /// Head that the experiment must have, as it was printed earlier and stored elsewhere
    #[arg(long, value_name = "DIGEST")]
    pub(crate) head: Option<String>,
    /// Do not read the contents of artefacts
    #[arg(long)]
    pub(crate) quick: bool,
    #[command(flatten)]
    pub(crate) ledger_root: LedgerRootArgument,
    #[command(flatten)]
    pub(crate) jobs_root: JobsRootArgument,
}

#[derive(Serialize)]
struct Data {
    is_clean: bool,
    experiments: Vec<Verified>,
}

pub(crate) fn verify(context: &Context, arguments: &LedgerVerifyArguments) -> Result<Outcome, Failure> {
    let (project, ledger) = open_with_jobs(context, &arguments.ledger_root, &arguments.jobs_root)?;
    let experiments = experiments(&ledger, &arguments.experiments)?;
    let head = arguments.head.as_deref().map(head).transpose()?;
    if head.is_some() && experiments.len() != 1 {
        let problem = Problem::error("--head is about one experiment").fix("name it with --experiment-id");
        return Err(Failure::usage(problem));
    }
    let depth = if arguments.quick { Depth::Quick } else { Depth::Full };
    let jobs = project.settings.path(Setting::Jobs);
    let scope = Scope { ledger: &ledger, jobs: &jobs };
    let mut index = IndexAudit::open(&ledger);
    let mut problems = index.as_ref().map(IndexAudit::problems).unwrap_or_default();
    let mut verified = Vec::with_capacity(experiments.len());
    for experiment in &experiments {
        let mut found = verify_experiment(&scope, index.as_mut(), experiment, depth)?;
        problems.append(&mut found.problems);
        problems.extend(head.and_then(|head| check_head(&found, head)));
        verified.push(found);
    }
    shorten(&project, &mut problems);
    let data = Data { is_clean: !problems.iter().any(Problem::counts), experiments: verified };
    let outcome = Outcome::new(context.format, &data, || {
        let mut shown: String = problems.iter().map(problem_text).collect();
        shown.extend(data.experiments.iter().map(|found| line(found, depth)));
        shown
    })?;
    let outcome = if data.experiments.is_empty() { outcome.remark("There are no records.") } else { outcome };
    Ok(outcome.problems_in_text(problems))
}

fn head(text: &str) -> Result<Digest, Failure> {
    Digest::try_from(text.to_owned()).map_err(|error| {
        let problem = Problem::error(format!("`{}` {error}", text::printable(text)));
        Failure::usage(problem.fix("pass the head as `ledger verify` prints it"))
    })
}

fn line(found: &Verified, depth: Depth) -> String {
    let outcomes: Vec<String> =
        found.outcomes.iter().map(|(outcome, count)| format!("{count} {}", outcome.name())).collect();
    let outcomes = if outcomes.is_empty() { String::new() } else { format!(" ({})", outcomes.join(", ")) };
    let contents = match depth {
        Depth::Full => text::count(found.contents, "content"),
        Depth::Quick => "contents not read".to_owned(),
    };
    let head = found.head.map_or_else(|| "no head".to_owned(), |head| format!("head {head}"));
    format!(
        "{}: {}{outcomes}, {} in {}, {contents}, {head}\n",
        found.experiment_id,
        text::count(found.records, "record"),
        text::count(found.links, "link"),
        text::count(found.chains, "chain"),
    )
}
