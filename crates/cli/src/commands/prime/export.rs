//! `aec-bench prime export`, and the export that other `prime` commands start with.

use std::path::PathBuf;

use aec_base::digest::Digest;
use aec_base::problem::Problem;
use aec_base::project::Project;
use aec_base::settings::Setting;
use aec_base::text::{count, printable};
use aec_eval::native::PackageSource;
use aec_package::interaction::HarnessMode;
use aec_package::manifest::{PackageManifest, PackagedSide};
use aec_package::select::{Ask, select};
use aec_package::{Audience, PackageName, PackageSpec, WriteError, Written, assemble, write};
use aec_prime::FAMILY;
use aec_task::catalogue::Catalogue;
use aec_task::dataset::reference::DatasetRef;
use aec_task::dataset::store::Store;
use aec_task::dataset::verify::verify;
use aec_task::task::Task;
use clap::Args;
use serde::Serialize;

use crate::commands::prime::PackageArguments;
use crate::commands::selection::NamedTasks;
use crate::context::Context;
use crate::failure::Failure;
use crate::output::Outcome;
use crate::table::{Table, TableArguments};

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
                        aec-bench prime export --name aec-electrical-v1 --dataset electrical-v1@1.0.0\n  \
                        aec-bench prime export --name aec-pump-house --task electrical/voltage-drop")]
pub(crate) struct PrimeExportArguments {
    #[command(flatten)]
    pub(crate) package: PackageArguments,
    #[command(flatten)]
    pub(crate) table: TableArguments,
}

const COLUMNS: [&str; 5] = ["TASK", "DIFFICULTY", "SIDE", "LANE", "WHY"];

pub(crate) struct ExportedPackage {
    pub(crate) name: PackageName,
    pub(crate) manifest: PackageManifest,
    pub(crate) written: Written,
    pub(crate) project: Project,
    pub(crate) warnings: Vec<Problem>,
}

#[derive(Serialize)]
pub(crate) struct PackageData {
    name: String,
    module: String,
    version: String,
    harness: &'static str,
    dataset: Option<String>,
    path: PathBuf,
    digest: Digest,
    files: usize,
    bytes: u64,
    replaced: bool,
    /// Tasks of each side, as the environment shows them.
    train: usize,
    eval: usize,
    /// Whether both sides contain all tasks.
    overlap: bool,
    tasks: Vec<TaskData>,
}

#[derive(Serialize)]
struct TaskData {
    task_id: String,
    task_revision: Digest,
    difficulty: Option<String>,
    side: PackagedSide,
    lane: &'static str,
    lane_reason: String,
    verifier: Digest,
    standard_verifier: bool,
}

pub(crate) fn export(context: &Context, arguments: &PrimeExportArguments) -> Result<Outcome, Failure> {
    arguments.table.apply(&[&COLUMNS])?;
    let exported = export_package(context, &arguments.package)?;
    let data = exported.data();
    let sides = if data.overlap {
        "too few to be split, so both sides have them all".to_owned()
    } else {
        format!("{} to train on, {} held out", data.train, data.eval)
    };
    let remark = format!(
        "Wrote {} with {}: {sides}.",
        printable(&data.path.to_string_lossy()),
        count(data.tasks.len(), "task"),
    );
    let next = format!("Next: aec-bench prime smoke --name {}", data.name);
    let outcome = Outcome::new(context.format, &data, || data.table())?.remark(remark).remark(next);
    Ok(outcome.problems(exported.warnings))
}

/// Writes a package for a command that needs one. If the user gave only the name of an existing package, it is made
/// again from its own tasks, which an earlier export chose.
pub(crate) fn export_again(
    context: &Context,
    arguments: &PackageArguments,
) -> Result<ExportedPackage, Failure> {
    let name = parse_name(&arguments.name)?;
    let project = context.project(arguments.tasks_root.overrides(context)?)?;
    let place = below(context, &project, arguments)?.join(name.module());
    let Some(there) = PackageSource::find(&place, &name.module()).filter(|_| !arguments.selects()) else {
        return export_package(context, arguments);
    };
    let manifest = PackageSource::read(&there)?.manifest;
    let task = manifest.tasks.into_iter().map(|task| task.task_id).collect();
    let arguments = PackageArguments {
        task,
        dataset: manifest.dataset,
        // These tasks were exported before, so their present lifecycle stage does not matter.
        lifecycle: vec!["any".to_owned()],
        harness_mode: arguments.harness_mode.clone().or_else(|| Some(manifest.harness.name().to_owned())),
        package_version: arguments.package_version.clone().or(Some(manifest.version)),
        ..arguments.clone()
    };
    export_package(context, &arguments)
}

fn below(context: &Context, project: &Project, arguments: &PackageArguments) -> Result<PathBuf, Failure> {
    match &arguments.output_dir {
        Some(directory) => Ok(context.absolute(directory)?),
        None => Ok(project.settings.path(Setting::Prime).join("environments")),
    }
}

fn export_package(context: &Context, arguments: &PackageArguments) -> Result<ExportedPackage, Failure> {
    let name = parse_name(&arguments.name)?;
    let version = parse_version(arguments.package_version.as_deref().unwrap_or("0.1.0"))?;
    let project = context.project(arguments.tasks_root.overrides(context)?)?;
    let catalogue = Catalogue::load(&project.settings.path(Setting::Tasks));
    refuse_drift(&project, arguments.dataset.as_deref())?;
    let ids = (arguments.task.as_slice(), arguments.pattern.as_slice());
    let named = NamedTasks::choose(&project, ids, &arguments.selection(), &catalogue)?;
    let tasks: Vec<Task> = named.tasks.into_iter().cloned().collect();
    let spec = PackageSpec {
        version,
        harness: harness(arguments.harness_mode.as_deref().unwrap_or("auto")),
        dataset: arguments.dataset.clone(),
        tool_version: env!("CARGO_PKG_VERSION").to_owned(),
        audience: Audience::Everybody,
        name,
    };
    let assembled = assemble(&spec, &tasks)?;
    let written = write(&spec.name, &assembled, &below(context, &project, arguments)?).map_err(failed)?;
    let manifest = assembled.manifest;
    let mut warnings = named.warnings;
    warnings.extend(tasks.iter().filter(|task| task.environment.allow_internet).map(offline));
    Ok(ExportedPackage { name: spec.name, manifest, written, project, warnings })
}

fn offline(task: &Task) -> Problem {
    Problem::warning(format!("`{}` allows the internet, but packages give tasks no network", task.id))
        .id(FAMILY.number(19))
        .about(task.id.as_str())
        .fix("leave it out if it cannot be solved without a network")
}

/// A dataset is a promise about its tasks: if they have changed, they are not exported under its name.
fn refuse_drift(project: &Project, dataset: Option<&str>) -> Result<(), Failure> {
    let Some(dataset) = dataset else { return Ok(()) };
    let manifest = Store::new(project.settings.path(Setting::Datasets)).read(&DatasetRef::parse(dataset)?)?;
    let verification = verify(&project.root, &manifest);
    if verification.is_clean { Ok(()) } else { Err(verification.problems.into()) }
}

fn parse_name(text: &str) -> Result<PackageName, Failure> {
    PackageName::parse(text).map_err(|why| {
        let what = format!("`{}` is not a name for an environment", printable(text));
        let problem = Problem::error(what).id(FAMILY.number(16)).why(why);
        Failure::usage(problem.fix("write small letters, digits and dashes, such as aec-voltage-drop"))
    })
}

/// Accepts versions of Python packages in their simplest form, such as 0.1.0.
fn parse_version(text: &str) -> Result<String, Failure> {
    let parts: Vec<&str> = text.split('.').collect();
    let is_number =
        |part: &&str| !part.is_empty() && part.len() < 10 && part.bytes().all(|byte| byte.is_ascii_digit());
    if parts.len() <= 3 && parts.iter().all(is_number) {
        return Ok(text.to_owned());
    }
    let what = format!("`{}` is not a version for a package", printable(text));
    Err(Failure::usage(Problem::error(what).id(FAMILY.number(17)).fix("write numbers such as 0.1.0")))
}

fn harness(name: &str) -> HarnessMode {
    // The argument parser has checked the word.
    HarnessMode::ALL.into_iter().find(|mode| mode.name() == name).unwrap_or_default()
}

fn failed(error: WriteError) -> Failure {
    match error {
        WriteError::NotAPackage(place) => Problem::error("the package cannot be written here")
            .id(FAMILY.number(18))
            .why("the directory exists and is not an environment package")
            .fix("move it away, or choose another --name or --output-dir")
            .in_file(place)
            .into(),
        WriteError::Io(error) => error.into(),
    }
}

impl ExportedPackage {
    pub(crate) fn data(&self) -> PackageData {
        let (manifest, written) = (&self.manifest, &self.written);
        let on = |side: PackagedSide| select(manifest, &Ask { side: Some(side), ..Ask::default() });
        PackageData {
            name: self.name.as_str().to_owned(),
            module: manifest.name.clone(),
            version: manifest.version.clone(),
            harness: manifest.harness.name(),
            dataset: manifest.dataset.clone(),
            path: self.project.shown(&written.place).to_path_buf(),
            digest: written.digest,
            files: written.files,
            bytes: written.bytes,
            replaced: written.replaced,
            train: on(PackagedSide::Train).tasks.len(),
            eval: on(PackagedSide::Eval).tasks.len(),
            overlap: on(PackagedSide::Train).overlap,
            tasks: manifest
                .tasks
                .iter()
                .map(|task| TaskData {
                    task_id: task.task_id.clone(),
                    task_revision: task.task_revision,
                    difficulty: task.difficulty.clone(),
                    side: task.side,
                    lane: task.lane.name(),
                    lane_reason: task.lane_reason.clone(),
                    verifier: task.verifier.digest,
                    standard_verifier: task.verifier.standard,
                })
                .collect(),
        }
    }
}

impl PackageData {
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    fn table(&self) -> String {
        let mut table = Table::new(COLUMNS).spare(["DIFFICULTY"]).cut_front(["TASK"]).wrap(["WHY"]);
        for task in &self.tasks {
            let side = match task.side {
                _ if self.overlap => "both",
                PackagedSide::Train => "train",
                PackagedSide::Eval => "eval",
            };
            let difficulty = task.difficulty.as_deref().unwrap_or("unknown");
            table.row([task.task_id.as_str(), difficulty, side, task.lane, &task.lane_reason]);
        }
        table.label_tasks("TASK");
        table.render()
    }
}
