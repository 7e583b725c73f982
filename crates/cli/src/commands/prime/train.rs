//! `aec-bench prime train`.

use std::ops::ControlFlow;
use std::path::PathBuf;

use aec_base::problem::Problem;
use aec_base::text::printable;
use aec_prime::FAMILY;
use aec_prime::service::secrets::Secrets;
use aec_prime::service::training::{
    self, EnvironmentCheck, Generation, Run, TrainConfig, TrainEnd, TrainError, TrainEvent,
};
use clap::{Args, ValueHint};
use serde::Serialize;

use crate::commands::prime::{Narrator, Service, failed, unusable, watch};
use crate::context::Context;
use crate::failure::{Exit, Failure};
use crate::output::Outcome;

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
                        aec-bench prime train rl.toml --yes --watch")]
pub(crate) struct PrimeTrainArguments {
    /// Configuration of the training run
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) file: PathBuf,
    /// Start without confirmation; training costs money
    #[arg(long, short)]
    pub(crate) yes: bool,
    /// Secret for the run: KEY=VALUE, or KEY to take its value from this environment
    #[arg(long, short = 'E', value_name = "KEY[=VALUE]")]
    pub(crate) env_var: Vec<String>,
    /// File with such lines
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) env_file: Vec<PathBuf>,
    /// Start even if the hub's check of an environment failed
    #[arg(long)]
    pub(crate) skip_action_check: bool,
    /// Report progress until the run ends
    #[arg(long)]
    pub(crate) watch: bool,
    /// Seconds between status requests while watching
    #[arg(long, value_name = "SECONDS", default_value_t = 10.0)]
    pub(crate) poll_interval: f64,
}

#[derive(Serialize)]
struct Data {
    run_id: String,
    generation: &'static str,
    page: String,
    secrets: Vec<String>,
    cost_per_hour: Option<f64>,
    gpu_type: Option<String>,
    status: Option<String>,
    error_message: Option<String>,
}

pub(crate) fn train(context: &Context, arguments: &PrimeTrainArguments) -> Result<Outcome, Failure> {
    let options = watch(arguments.poll_interval)?;
    let path = context.absolute(&arguments.file)?;
    let config = TrainConfig::read(&path)
        .map_err(|error| unusable(&error, "write one with `aec-bench prime train-config`"))?;
    if !arguments.yes {
        let what = format!("{} would start a training run", printable(&arguments.file.to_string_lossy()));
        return Err(Failure::usage(
            Problem::error(what)
                .id(FAMILY.number(36))
                .why("training costs money")
                .fix("read the file, then pass --yes"),
        ));
    }
    let service = Service::open(context)?;
    let mut files = config.secret_files().map_err(|error| unusable(&error, "correct the configuration"))?;
    for file in &arguments.env_file {
        files.push(context.absolute(file)?);
    }
    let secrets =
        Secrets::collect(&files, &arguments.env_var, |name| service.project.env.get(name).map(str::to_owned))
            .map_err(|error| unusable(&error, "write --env-var KEY=VALUE"))?;
    let check =
        if arguments.skip_action_check { EnvironmentCheck::Skipped } else { EnvironmentCheck::Required };
    let mut narrator = Narrator::new(context)?;
    for warning in &config.warnings {
        narrator.say(&format!("note: {warning}"));
    }
    let started = service.runtime.block_on(training::start(&service.client, &config, &secrets, check));
    let started = started.map_err(|error| train_failed(&error))?;
    let page = service.client.settings().training_page(&started.id);
    narrator.say(&format!("Started {}: {page}", started.id));
    let ended = if arguments.watch { follow(&service, &started.id, &options, &mut narrator)? } else { None };
    let data = Data {
        generation: match started.generation {
            Generation::SharedLora => "shared-lora",
            Generation::Dedicated => "prime-rl",
        },
        page,
        secrets: secrets.names().map(str::to_owned).collect(),
        cost_per_hour: started.cost_per_hour,
        gpu_type: started.gpu_type,
        status: ended.as_ref().map(|run| run.status.clone()).or(started.status),
        error_message: ended.as_ref().and_then(|run| run.error_message.clone()),
        run_id: started.id,
    };
    let outcome = Outcome::new(context.format, &data, || {
        format!("{}  {}  {}\n", data.run_id, data.status.as_deref().unwrap_or("started"), data.page)
    })?;
    let next = "Next: aec-bench prime adapters, when it is done";
    Ok(match ended {
        Some(run) if run.status != "COMPLETED" => {
            let why = run.error_message.unwrap_or_else(|| "the service does not say why".to_owned());
            let problem = Problem::error(format!("the training run ended as {}", run.status));
            outcome.problems(vec![problem.id(FAMILY.number(37)).why(why)]).exit(Exit::Found)
        }
        _ => outcome.remark(next),
    })
}

fn follow(
    service: &Service,
    id: &str,
    options: &aec_prime::service::watch::WatchOptions,
    narrator: &mut Narrator,
) -> Result<Option<Run>, Failure> {
    let followed = service.runtime.block_on(training::follow(&service.client, id, options, |event| {
        match event {
            TrainEvent::Status(status) => narrator.say(&format!("status: {status}")),
            TrainEvent::Step { done, all } => {
                let all = all.map(|all| format!(" of {all}")).unwrap_or_default();
                narrator.say(&format!("step {done}{all}"));
            }
            TrainEvent::Metrics(metrics) => narrator.say(&metrics.to_string()),
            TrainEvent::Log(line) => narrator.say(line),
            TrainEvent::Trouble { error, pause } => {
                narrator.say(&format!("{error}; asking again in {} s", pause.as_secs()));
            }
        }
        ControlFlow::Continue(())
    }));
    Ok(match followed.map_err(|error| failed(&error))? {
        TrainEnd::Ended(run) => Some(*run),
        TrainEnd::Left => None,
    })
}

fn train_failed(error: &TrainError) -> Failure {
    match error {
        TrainError::Api(error) => failed(error),
        TrainError::Retired { .. } => Failure::environment(
            Problem::error(error.to_string())
                .id(FAMILY.number(38))
                .fix("write the file with `aec-bench prime train-config --target prime-rl`"),
        ),
        _ => unusable(error, "see `aec-bench prime train --help`"),
    }
}
