//! `aec-bench runs export`.

use std::path::PathBuf;

use aec_base::digest::Digest;
use aec_base::name::Name;
use aec_base::problem::Problem;
use aec_base::settings::Setting;
use aec_base::text;
use aec_ledger::FAMILY;
use aec_ledger::journal::recover;
use aec_ledger::layout::Ledger;
use aec_ledger::package::PackageError;
use aec_ledger::package::export::{Source, export as export_package};
use aec_ledger::package::manifest::Counts;
use aec_ledger::package::signature::PrivateKey;
use aec_run::session::sessions;
use clap::{Args, ValueHint};
use serde::Serialize;

use crate::commands::ledger::find_experiment;
use crate::context::Context;
use crate::failure::Failure;
use crate::output::Outcome;

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
                        aec-bench runs export pilot\n  \
                        aec-bench runs export pilot --output signed.tar.zst --sign team.key")]
pub(crate) struct RunsExportArguments {
    /// Experiment, or the unique beginning of its id
    #[arg(value_name = "EXPERIMENT")]
    pub(crate) experiment: String,
    /// File to write [default: EXPERIMENT.tar.zst]
    #[arg(long, short, value_name = "FILE.tar.zst", value_hint = ValueHint::FilePath)]
    pub(crate) output: Option<PathBuf>,
    /// Replace an existing file
    #[arg(long)]
    pub(crate) force: bool,
    /// Leave out these trials; the root of the package stays the same
    #[arg(long, value_name = "TRIAL", num_args = 1..)]
    pub(crate) withhold: Vec<String>,
    /// Include annotations
    #[arg(long)]
    pub(crate) annotations: bool,
    /// Sign with the key in this file, which `runs keygen` made
    #[arg(long, value_name = "KEYFILE", value_hint = ValueHint::FilePath)]
    pub(crate) sign: Option<PathBuf>,
}

#[derive(Serialize)]
struct Data {
    experiment_id: Name,
    file: PathBuf,
    size: u64,
    root: Digest,
    /// Public key of the signer.
    key: Option<String>,
    counts: Counts,
    annotations: usize,
}

pub(crate) fn export(context: &Context, arguments: &RunsExportArguments) -> Result<Outcome, Failure> {
    let project = context.project(Vec::new())?;
    let ledger = Ledger::new(project.settings.path(Setting::Ledger));
    let experiment = find_experiment(&ledger, &arguments.experiment)?;
    if sessions(&ledger.experiment(&experiment))?.1 {
        let problem = Problem::error(format!("`{experiment}` is being run")).id(FAMILY.number(105));
        return Err(problem.fix("wait for it, or stop it with `aec-bench runs stop`").into());
    }
    recover(&ledger, &experiment, &project.settings.path(Setting::Jobs))?;
    let shown = arguments.output.clone().unwrap_or_else(|| PathBuf::from(format!("{experiment}.tar.zst")));
    let file = context.absolute(&shown)?;
    if !arguments.force && file.symlink_metadata().is_ok() {
        return Err(Problem::error("there is something already")
            .id(FAMILY.number(99))
            .fix("choose another file with --output, or replace it with --force")
            .in_file(file)
            .into());
    }
    let key = match &arguments.sign {
        Some(path) => Some(PrivateKey::read(&context.absolute(path)?)?),
        None => None,
    };
    let annotations = project.settings.path(Setting::Feedback).join("annotations").join(experiment.as_str());
    let redactor = context.redactor();
    let source = Source {
        ledger: &ledger,
        experiment: &experiment,
        withhold: &arguments.withhold,
        annotations: arguments.annotations.then_some(annotations.as_path()),
        redactor: &redactor,
        key: key.as_ref(),
        tool_version: env!("CARGO_PKG_VERSION"),
    };
    let (manifest, size) = aec_base::file::write_atomic_with(&file, |file| -> Result<_, PackageError> {
        let manifest = export_package(&source, &mut *file)?;
        Ok((manifest, file.metadata()?.len()))
    })?;
    let data = Data {
        experiment_id: experiment,
        file,
        size,
        root: manifest.root,
        key: key.map(|key| key.public().to_string()),
        counts: manifest.counts,
        annotations: manifest.annotations.len(),
    };
    let mut text = format!("root  {}\n", data.root);
    if let Some(key) = &data.key {
        text.push_str(&format!("key   {key}\n"));
    }
    let remark = format!(
        "Wrote {} and {} of {} to {}, {size} bytes.",
        text::count(manifest.attempts.len(), "record"),
        text::count(manifest.contents.len(), "content"),
        data.experiment_id,
        text::printable(&shown.to_string_lossy())
    );
    let mut outcome = Outcome::new(context.format, &data, || text)?.remark(remark);
    for remark in remarks(&data.counts) {
        outcome = outcome.remark(remark);
    }
    Ok(outcome)
}

/// What the user should know about a package besides its root.
pub(crate) fn remarks(counts: &Counts) -> Vec<String> {
    let count = |number: u64| text::count(usize::try_from(number).unwrap_or(usize::MAX), "record");
    let mut remarks = Vec::new();
    if counts.withheld > 0 {
        remarks.push(format!("{} withheld; the root covers them.", count(counts.withheld)));
    }
    if counts.unchained > 0 {
        remarks.push(format!("{} in no chain.", count(counts.unchained)));
    }
    remarks
}
