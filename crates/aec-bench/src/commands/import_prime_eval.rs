//! `aec-bench import-prime-eval`.

use std::io::Cursor;
use std::ops::ControlFlow;
use std::path::Path;

use aec_base::file::{Links, read_text};
use aec_base::name::Name;
use aec_base::problem::Problem;
use aec_prime::FAMILY;
use aec_prime::import::{Importer, Origin};
use aec_prime::rollouts::rows::Rows;
use aec_prime::rollouts::run::Run;
use aec_prime::service::evaluations::{self, SamplePage, SamplesError, SamplesOptions};
use serde_json::Value;

use super::import::{ImportDesk, failed as import_failed, open_source, take_rows};
use super::prime::{Narrator, Service, failed, unusable};
use crate::arguments::ImportPrimeEvalArguments;
use crate::context::Context;
use crate::failure::Failure;
use crate::output::Outcome;

/// A description of an evaluation is short.
const EVALUATION_LIMIT: u64 = 64 * 1024 * 1024;
const ADAPTER: &str = "prime-hosted";

pub(crate) fn import(context: &Context, arguments: &ImportPrimeEvalArguments) -> Result<Outcome, Failure> {
    let desk = ImportDesk::open(context, &arguments.into)?;
    match &arguments.file {
        Some(file) => from_file(context, arguments, &desk, file),
        None => from_service(context, arguments.id.as_deref().unwrap_or_default(), &desk),
    }
}

/// Samples that were saved before.
fn from_file(
    context: &Context,
    arguments: &ImportPrimeEvalArguments,
    desk: &ImportDesk,
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
    desk.bring(context, &origin(&id), source)
}

fn described(context: &Context, file: &Path) -> Result<Run, Failure> {
    let path = context.absolute(file)?;
    let refuse = |why: String| {
        let problem = Problem::error(format!("the evaluation cannot be read: {why}")).id(FAMILY.number(24));
        Failure::input(vec![problem.fix("save it with `prime eval get ID --output json`").in_file(&path)])
    };
    let text =
        read_text(&path, EVALUATION_LIMIT, Links::Follow).map_err(|error| refuse(error.to_string()))?;
    let value: Value = serde_json::from_str(&text).map_err(|error| refuse(error.to_string()))?;
    Ok(Run::from_evaluation(&value))
}

/// All samples that the service has, page by page. What is here already is passed over, so that an import that was
/// broken off goes on.
fn from_service(context: &Context, id: &str, desk: &ImportDesk) -> Result<Outcome, Failure> {
    let service = Service::open(context)?;
    let mut narrator = Narrator::new(context)?;
    let evaluation =
        service.runtime.block_on(evaluations::get(&service.client, id)).map_err(|error| failed(&error))?;
    let run = Run::from_evaluation(&evaluation.raw);
    let origin = origin(id);
    let redactor = context.redactor();
    let mut importer = desk.importer(&redactor, origin.clone(), run.clone())?;
    let (mut problems, mut unreadable, mut broken) = (Vec::new(), 0, None);
    let read = service.runtime.block_on(evaluations::samples(
        &service.client,
        id,
        &SamplesOptions::default(),
        |page: SamplePage| {
            let received = page.received;
            match take_page(&mut importer, id, &page.samples, &mut problems, &mut unreadable) {
                Ok(()) => {
                    narrator.say(&format!("{received} samples"));
                    ControlFlow::Continue(())
                }
                Err(failure) => {
                    broken = Some(failure);
                    ControlFlow::Break(())
                }
            }
        },
    ));
    if let Some(failure) = broken {
        return Err(failure);
    }
    let (imported, disagreements) = importer.finish().map_err(import_failed)?;
    // Samples that came before the service failed are kept; asking again goes on with the others.
    let count = read.map_err(|error| samples_failed(&error))?;
    problems.extend(disagreements);
    if let Some(total) = count.total.filter(|total| *total > count.received) {
        problems.push(
            Problem::warning(format!("{} of {total} samples were given", count.received))
                .id(FAMILY.number(25))
                .fix("import again when the evaluation has ended"),
        );
    }
    if !evaluation.status.is_final() {
        problems.push(
            Problem::warning(format!("the evaluation is {}: more samples may come", evaluation.status))
                .id(FAMILY.number(26))
                .fix("import again when it has ended; what is here already is passed over"),
        );
    }
    desk.outcome(context, &origin, &run, &imported, problems, unreadable)
}

fn take_page(
    importer: &mut Importer<'_>,
    id: &str,
    samples: &[Value],
    problems: &mut Vec<Problem>,
    unreadable: &mut usize,
) -> Result<(), Failure> {
    let page = serde_json::to_vec(samples)
        .map_err(|error| unusable(&error, "import again; report it if it happens again"))?;
    take_rows(importer, Rows::document(Cursor::new(page), Path::new(id)), problems, unreadable)
}

fn origin(id: &str) -> Origin {
    Origin { adapter: ADAPTER, id: Name::nearest(id).as_str().to_owned() }
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
