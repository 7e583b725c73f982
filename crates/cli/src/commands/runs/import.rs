//! `aec-bench runs import`.

use std::path::{Path, PathBuf};

use aec_base::digest::Digest;
use aec_base::problem::Problem;
use aec_base::settings::Setting;
use aec_base::text;
use aec_ledger::layout::Ledger;
use aec_ledger::package::import::{
    Claim, Demands, Destination, Imported, Mode, Rewards, import as import_package,
};
use aec_ledger::package::signature::PublicKey;
use aec_run::import::KnownTasks;
use aec_task::catalogue::Catalogue;
use clap::{Args, ValueHint};
use serde::Serialize;

use crate::commands::runs::export::remarks;
use crate::commands::runs::size;
use crate::context::Context;
use crate::failure::Failure;
use crate::output::Outcome;

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
                        aec-bench runs import pilot.tar.zst --dry-run\n  \
                        aec-bench runs import pilot.tar.zst --expect-key team.key.pub")]
pub(crate) struct RunsImportArguments {
    /// File written by `runs export`
    #[arg(value_name = "FILE.tar.zst", value_hint = ValueHint::FilePath)]
    pub(crate) file: PathBuf,
    /// Verify everything and write nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Refuse a package that is not signed by this key: the public key, or a file that contains it
    #[arg(long, value_name = "KEY|FILE.pub", value_hint = ValueHint::FilePath)]
    pub(crate) expect_key: Option<String>,
    /// Refuse a package with a different root
    #[arg(long, value_name = "DIGEST")]
    pub(crate) expect_root: Option<String>,
    /// Refuse a package that unpacks to more bytes than this, such as 500MB or 2GiB
    #[arg(long, value_name = "SIZE", default_value = "16GiB", value_parser = size)]
    pub(crate) max_size: u64,
    /// Also write the files of all attempts into paths.jobs
    #[arg(long)]
    pub(crate) jobs: bool,
    /// Let rewards count that were not given for the tasks of this project; reports say so
    #[arg(long)]
    pub(crate) trust_rewards: bool,
}

#[derive(Serialize)]
struct Data<'a> {
    dry_run: bool,
    #[serde(flatten)]
    imported: &'a Imported,
}

pub(crate) fn import(context: &Context, arguments: &RunsImportArguments) -> Result<Outcome, Failure> {
    let demands = Demands {
        max_size: arguments.max_size,
        key: match &arguments.expect_key {
            Some(given) => Some(PublicKey::given(given, &context.absolute(Path::new(given))?)?),
            None => None,
        },
        root: match &arguments.expect_root {
            Some(given) => Some(root(given)?),
            None => None,
        },
    };
    let project = context.project(Vec::new())?;
    let ledger = Ledger::new(project.settings.path(Setting::Ledger));
    let annotations = project.settings.path(Setting::Feedback).join("annotations");
    let jobs = project.settings.path(Setting::Jobs);
    let to =
        Destination { ledger: &ledger, annotations: &annotations, jobs: &jobs, lays_out: arguments.jobs };
    let tasks = Catalogue::load(&project.settings.path(Setting::Tasks)).tasks;
    let known = KnownTasks::new(&tasks);
    let objection = |claim: &Claim| {
        let why = known.objection(&claim.task_id, claim.task_revision).map(str::to_owned);
        why.or_else(|| {
            claim.was_trusted.then(|| "it counted there only because the user trusted it".to_owned())
        })
    };
    let rewards = Rewards { objection: &objection, trust: arguments.trust_rewards };
    let mode = if arguments.dry_run { Mode::Try } else { Mode::Take(context.created_at()?) };
    let mut imported = import_package(&context.absolute(&arguments.file)?, &to, &demands, &rewards, &mode)?;
    let problems = std::mem::take(&mut imported.problems);
    let data = Data { dry_run: arguments.dry_run, imported: &imported };
    let outcome = Outcome::new(context.format, &data, || describe(&imported))?.problems(problems);
    let outcome = remarks(&imported.counts).into_iter().fold(outcome, Outcome::remark);
    let many = |count: u64, noun: &str| text::count(usize::try_from(count).unwrap_or(usize::MAX), noun);
    let outcome = match (imported.unverified, imported.trusted) {
        (0, 0) => outcome,
        (0, trusted) => outcome.remark(format!(
            "{} counts only because you trust the package; reports say so.",
            many(trusted, "reward")
        )),
        (unverified, _) => outcome.remark(format!(
            "{} not for a task of this project: unverified, in no mean (--trust-rewards lets them count).",
            many(unverified, "reward")
        )),
    };
    let outcome = match imported.annotations_kept {
        0 => outcome,
        kept => outcome.remark(format!("{kept} files of annotations were not taken: the ledger has others.")),
    };
    Ok(match &imported.key {
        _ if arguments.dry_run => outcome.remark("Everything is in order; nothing was written (--dry-run)."),
        None => outcome.remark("The package is not signed."),
        Some(_) => outcome,
    })
}

fn describe(imported: &Imported) -> String {
    let added = text::count(usize::try_from(imported.added).unwrap_or(usize::MAX), "record");
    let mut text = format!(
        "{}  {added} added, {} here already\nroot  {}\n",
        imported.experiment_id, imported.duplicates, imported.root
    );
    if let Some(key) = &imported.key {
        text.push_str(&format!("key   {key}\n"));
    }
    text
}

fn root(given: &str) -> Result<Digest, Failure> {
    Digest::try_from(given.to_owned()).map_err(|why| {
        Failure::usage(
            Problem::error(format!("--expect-root {why}")).fix("give the root that `runs export` printed"),
        )
    })
}
