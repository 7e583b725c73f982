//! `aec-bench import-prime-eval`.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use aec_base::file::{Links, read_text};
use aec_base::name::Name;
use aec_base::problem::Problem;
use aec_prime::FAMILY;
use aec_prime::import::Rollouts;
use aec_prime::rollouts::rows::sample;
use aec_prime::rollouts::run::Run;
use aec_prime::service::evaluations::{self, SamplePage, SamplesError, SamplesOptions};
use aec_run::import::Origin;
use clap::{Args, ValueHint};
use serde_json::Value;

use crate::commands::import::{
    About, ImportInto, ImportProject, failed as import_failed, open_source, outcome, take,
};
use crate::commands::prime::{Narrator, Service, failed};
use crate::context::Context;
use crate::failure::Failure;
use crate::output::Outcome;

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
                        aec-bench import-prime-eval --file samples.json -e base-medium\n  \
                        aec-bench import-prime-eval --file samples.json --evaluation-json eval.json")]
pub(crate) struct ImportPrimeEvalArguments {
    /// Id of the hosted evaluation
    #[arg(value_name = "ID", required_unless_present = "file")]
    pub(crate) id: Option<String>,
    /// File of previously saved samples; the service is not asked for them
    #[arg(long, visible_alias = "samples-json", value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) file: Option<PathBuf>,
    /// File with the service's description of the evaluation that the saved samples belong to
    #[arg(long, value_name = "FILE", requires = "file", value_hint = ValueHint::FilePath)]
    pub(crate) evaluation_json: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) into: ImportInto,
}

/// A description of an evaluation is shorter.
const EVALUATION_LIMIT: u64 = 64 * 1024 * 1024;
const ADAPTER: &str = "prime-hosted";

pub(crate) fn import(context: &Context, arguments: &ImportPrimeEvalArguments) -> Result<Outcome, Failure> {
    let into = ImportProject::open(context, &arguments.into)?;
    match &arguments.file {
        Some(file) => from_file(context, arguments, &into, file),
        None => from_service(context, arguments.id.as_deref().unwrap_or_default(), &into),
    }
}

fn from_file(
    context: &Context,
    arguments: &ImportPrimeEvalArguments,
    into: &ImportProject,
    file: &Path,
) -> Result<Outcome, Failure> {
    let path = context.absolute(file)?;
    let mut source = open_source(&path)?;
    let described = arguments.evaluation_json.as_ref().map(|file| described(context, file)).transpose()?;
    let run = described.or_else(|| source.run.take()).unwrap_or_default();
    let id = arguments.id.clone().or_else(|| run.evaluation_id.clone());
    let id = id.unwrap_or_else(|| {
        path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default()
    });
    source.run = Some(run);
    let redactor = context.redactor();
    let mut importer = into.importer(&redactor, origin(&id))?;
    let run = take(&mut importer, source)?;
    outcome(context, importer, About::run(&run))
}

fn described(context: &Context, file: &Path) -> Result<Run, Failure> {
    let path = context.absolute(file)?;
    let refuse = |why: String| {
        let problem = Problem::error(format!("the evaluation cannot be read: {why}")).id(FAMILY.number(24));
        Failure::input(vec![problem.fix("save it with `prime eval get ID --output json`").in_file(&path)])
    };
    let text =
        read_text(&path, EVALUATION_LIMIT, Links::Follow).map_err(|error| refuse(error.to_string()))?;
    let value: Value = aec_base::json::from_str(&text).map_err(|error| refuse(error.to_string()))?;
    Ok(Run::from_evaluation(&value))
}

/// Imports all samples from the service, page by page. Samples that were imported before are skipped, so an interrupted
/// import can be continued.
fn from_service(context: &Context, id: &str, into: &ImportProject) -> Result<Outcome, Failure> {
    let service = Service::open(context)?;
    let mut narrator = Narrator::new(context)?;
    let evaluation =
        service.runtime.block_on(evaluations::get(&service.client, id)).map_err(|error| failed(&error))?;
    let run = Run::from_evaluation(&evaluation.raw);
    let redactor = context.redactor();
    let mut importer = into.importer(&redactor, origin(id))?;
    let mut rollouts = Rollouts::new(&mut importer, &run);
    let mut broken = None;
    let read = service.runtime.block_on(evaluations::samples(
        &service.client,
        id,
        &SamplesOptions::default(),
        |page: SamplePage| {
            let mut samples = page.samples.into_iter().map(|raw| sample(raw, Path::new(id)));
            match samples.try_for_each(|row| rollouts.take(row)) {
                Ok(()) => {
                    narrator.say(&format!("{} samples", page.received));
                    ControlFlow::Continue(())
                }
                Err(error) => {
                    broken = Some(error);
                    ControlFlow::Break(())
                }
            }
        },
    ));
    if let Some(error) = broken {
        return Err(import_failed(error));
    }
    // Samples received before the service failed are kept; the next import continues with the others.
    rollouts.finish().map_err(import_failed)?;
    let count = match read {
        Ok(count) => count,
        Err(error) => {
            importer.finish().map_err(import_failed)?;
            return Err(samples_failed(&error));
        }
    };
    if let Some(total) = count.total.filter(|total| *total > count.received) {
        importer.tell(
            Problem::warning(format!("{} of {total} samples were given", count.received))
                .id(FAMILY.number(25))
                .fix("import again when the evaluation has ended"),
        );
    }
    if !evaluation.status.is_final() {
        importer.tell(
            Problem::warning(format!("the evaluation is {}: more samples may come", evaluation.status))
                .id(FAMILY.number(26))
                .fix("import again when it has ended; what is here already is passed over"),
        );
    }
    outcome(context, importer, About::run(&run))
}

fn origin(id: &str) -> Origin {
    let id = Name::nearest(id).as_str().to_owned();
    Origin { adapter: ADAPTER, name: id.clone(), id }
}

fn samples_failed(error: &SamplesError) -> Failure {
    match error {
        SamplesError::Api(error) => failed(error),
        _ => Failure::environment(
            Problem::error(error.to_string())
                .id(FAMILY.number(27))
                .fix("what was given until then is in the ledger; import again later"),
        ),
    }
}
