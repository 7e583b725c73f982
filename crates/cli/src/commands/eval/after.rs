//! What happens after an evaluation: its results are sent to the hub and into the ledger.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use aec_base::problem::Problem;
use aec_base::project::Project;
use aec_eval::FAMILY;
use aec_eval::config::EvalSettings;
use aec_eval::evaluation::Ended;
use aec_eval::hub::{Account, HubOptions, Publication, Published, Visibility, publish};
use aec_eval::results::{METADATA_FILE, RESULTS_FILE};
use aec_http::Proxies;
use tokio::runtime::Runtime;

use crate::commands::eval::run::EvalRunArguments;
use crate::commands::import::{ImportInto, ImportProject, failed, open_source, saved, take};
use crate::context::Context;
use crate::failure::Failure;

/// What to do with the results of an evaluation. Everything that can fail is checked before the evaluation begins.
pub(crate) struct After {
    hub: Option<(Account, Option<String>)>,
    ledger: Option<String>,
}

impl After {
    pub(crate) fn of(project: &Project, settings: &EvalSettings) -> Result<Self, Failure> {
        let hub = settings.said.save_to_hf_hub.is_on().then(|| hub_account(project)).transpose()?;
        Ok(Self {
            hub: hub.map(|account| (account, settings.said.hf_hub_dataset_name.clone())),
            ledger: settings.said.ledger.clone(),
        })
    }

    /// Publishes and imports the results. The evaluation is saved already, so a failed upload is only a problem.
    pub(crate) fn carry_out(
        &self,
        context: &Context,
        arguments: &EvalRunArguments,
        project: &Project,
        runtime: &Runtime,
        ended: &Ended,
    ) -> Result<Vec<Problem>, Failure> {
        let Some(directory) = ended.started.directory.as_deref() else { return Ok(Vec::new()) };
        let mut problems = Vec::new();
        if let Some((account, dataset)) = &self.hub {
            if ended.is_complete() {
                match push(
                    context,
                    project,
                    runtime,
                    account,
                    directory,
                    dataset.clone(),
                    Visibility::Private,
                ) {
                    Ok(published) => {
                        let what = format!("published as {}", published.page);
                        problems.push(Problem::note(what).id(FAMILY.number(106)));
                    }
                    Err(failure) => problems.extend(failure.problems),
                }
            } else {
                let what = "the evaluation is not complete, so it was not published";
                problems.push(Problem::warning(what).id(FAMILY.number(107)).fix("finish it with --resume"));
            }
        }
        if let Some(experiment) = &self.ledger {
            let into = ImportInto {
                experiment: Some(experiment.clone()),
                no_verify: false,
                // The user has just had them given here, also by environments whose tasks this project does not have.
                trust_rewards: true,
                tasks_root: arguments.tasks.tasks_root.clone(),
                sandbox: arguments.sandbox.clone(),
            };
            let project = ImportProject::open(context, &into)?;
            let redactor = context.redactor();
            let mut importer = project.importer(&redactor, saved(directory))?;
            take(&mut importer, open_source(directory)?)?;
            let (imported, told) = importer.finish().map_err(failed)?;
            let here = imported.imported + imported.attempts + imported.skipped;
            let what = format!("{here} records in the ledger as `{experiment}`");
            problems.push(Problem::note(what).id(FAMILY.number(108)));
            problems.extend(told);
        }
        Ok(problems)
    }
}

/// The account on the hub, or an environment failure that explains what is missing.
pub(crate) fn hub_account(project: &Project) -> Result<Account, Failure> {
    let home = etcetera::home_dir().unwrap_or_else(|_| PathBuf::from("/"));
    let account = Account::load(&home, |name| project.env.get(name).map(str::to_owned));
    account.map_err(|error| Failure::environment(error.problem()))
}

pub(crate) fn push(
    context: &Context,
    project: &Project,
    runtime: &Runtime,
    account: &Account,
    run: &Path,
    dataset: Option<String>,
    visibility: Visibility,
) -> Result<Published, Failure> {
    let publication = Publication {
        results: run.join(RESULTS_FILE),
        metadata: run.join(METADATA_FILE),
        dataset,
        visibility,
        secrets: Arc::new(context.redactor()),
    };
    let options = HubOptions { proxies: Proxies::of(&project.env), ..HubOptions::default() };
    let published = runtime.block_on(publish(account, &publication, &options));
    published.map_err(|error| Failure::environment(error.problem()))
}
