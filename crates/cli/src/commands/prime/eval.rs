//! `aec-bench prime eval`.

use std::ops::ControlFlow;

use aec_base::decimal::rounded;
use aec_base::problem::Problem;
use aec_prime::FAMILY;
use aec_prime::service::adapters::{self, AdapterStep};
use aec_prime::service::evaluations::{
    self, EnvironmentArguments, Evaluation, EvaluationStatus, FollowEnd, FollowEvent, HostedEvaluation,
    StartError, parse_argument,
};
use aec_prime::service::hub;
use clap::Args;
use serde::Serialize;
use serde_json::{Map, Value};

use crate::commands::prime::adapters::adapter_failed;
use crate::commands::prime::{Narrator, Service, SliceArguments, environment_name, failed, unusable, watch};
use crate::context::Context;
use crate::failure::{Exit, Failure};
use crate::output::Outcome;

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
                        aec-bench prime eval --remote-env acme/cables --hosted -m Qwen/Qwen3.5-4B --watch\n  \
                        aec-bench prime eval --remote-env acme/cables --hosted -m Qwen/Qwen3.5-4B -n 20")]
pub(crate) struct PrimeEvalArguments {
    /// The published environment, as owner/name
    #[arg(long, value_name = "OWNER/NAME")]
    pub(crate) remote_env: String,
    /// Run the evaluation on Prime's machines
    #[arg(long)]
    pub(crate) hosted: bool,
    /// Model to evaluate
    #[arg(long, short, value_name = "MODEL")]
    pub(crate) model: String,
    /// Id of a deployed adapter of the model
    #[arg(long, value_name = "ID", conflicts_with = "adapter_from_run")]
    pub(crate) adapter_id: Option<String>,
    /// Use the adapter that this training run deployed
    #[arg(long, value_name = "RUN")]
    pub(crate) adapter_from_run: Option<String>,
    /// Step of the training run: a number, or latest
    #[arg(long, value_name = "STEP", default_value = "latest", requires = "adapter_from_run")]
    pub(crate) adapter_step: String,
    #[command(flatten)]
    pub(crate) slice: SliceArguments,
    /// Number of tasks that the environment loads
    #[arg(long, value_name = "N")]
    pub(crate) env_num_examples: Option<i64>,
    /// Seed for the order of the tasks
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub(crate) seed: Option<i64>,
    /// Further argument of the environment; the value is parsed as JSON if possible
    #[arg(long, value_name = "KEY=VALUE")]
    pub(crate) env_arg: Vec<String>,
    /// Number of examples to evaluate; -1 for all
    #[arg(long, short, value_name = "N", allow_negative_numbers = true)]
    pub(crate) num_examples: Option<i64>,
    /// Rollouts of each example
    #[arg(long, short, value_name = "N", default_value_t = 1)]
    pub(crate) rollouts_per_example: u32,
    /// Most tokens per answer
    #[arg(long, value_name = "N")]
    pub(crate) max_tokens: Option<u32>,
    /// Sampling temperature
    #[arg(long, value_name = "NUMBER")]
    pub(crate) temperature: Option<f64>,
    /// Rollouts at once
    #[arg(long, value_name = "N")]
    pub(crate) max_concurrent: Option<u32>,
    /// Name of the evaluation
    #[arg(long, value_name = "NAME")]
    pub(crate) eval_name: Option<String>,
    /// Minutes after which the service stops the evaluation
    #[arg(long, value_name = "N", default_value_t = 120)]
    pub(crate) timeout_minutes: u32,
    /// Report progress until the evaluation ends
    #[arg(long, visible_alias = "follow")]
    pub(crate) watch: bool,
    /// Seconds between status requests while watching
    #[arg(long, value_name = "SECONDS", default_value_t = 10.0)]
    pub(crate) poll_interval: f64,
}

#[derive(Serialize)]
struct Data {
    evaluation_id: String,
    environment: String,
    environment_id: String,
    model: String,
    env_args: Map<String, Value>,
    page: String,
    /// How it ended; absent if it was only started.
    status: Option<String>,
    total_samples: Option<u64>,
    average_score: Option<f64>,
    error_message: Option<String>,
}

pub(crate) fn eval(context: &Context, arguments: &PrimeEvalArguments) -> Result<Outcome, Failure> {
    if !arguments.hosted {
        return Err(Failure::usage(
            Problem::error("`prime eval` runs hosted evaluations")
                .id(FAMILY.number(34))
                .why("without --hosted it is unclear where it should run")
                .fix("pass --hosted, or evaluate on this machine with `aec-bench eval run`"),
        ));
    }
    let name = environment_name(&arguments.remote_env)?;
    let options = watch(arguments.poll_interval)?;
    let env_args = environment_arguments(arguments)?;
    let service = Service::open(context)?;
    let mut narrator = Narrator::new(context)?;
    let (started, details, model) = service.runtime.block_on(async {
        let details = hub::details(&service.client, &name).await.map_err(|error| failed(&error))?;
        let model = model(&service, arguments).await?;
        let request = HostedEvaluation {
            environment_ids: vec![details.id.clone()],
            model: model.clone(),
            name: arguments.eval_name.clone(),
            env_args: env_args.clone(),
            num_examples: arguments.num_examples.unwrap_or_else(|| HostedEvaluation::default().num_examples),
            rollouts_per_example: arguments.rollouts_per_example,
            max_tokens: arguments.max_tokens,
            temperature: arguments.temperature,
            max_concurrent: arguments.max_concurrent,
            timeout_minutes: Some(arguments.timeout_minutes),
            ..HostedEvaluation::default()
        };
        let started =
            evaluations::start(&service.client, &request).await.map_err(|error| start_failed(&error))?;
        Ok::<_, Failure>((started, details, model))
    })?;
    let id = started.ids.first().cloned().unwrap_or_default();
    let page = service.client.settings().evaluation_page(&id);
    narrator.say(&format!("Started {id}: {page}"));
    let ended = if arguments.watch {
        let followed =
            service.runtime.block_on(evaluations::follow(&service.client, &id, &options, |event| {
                narrate(&mut narrator, &event);
                ControlFlow::Continue(())
            }));
        match followed.map_err(|error| failed(&error))? {
            FollowEnd::Ended(evaluation) => Some(*evaluation),
            FollowEnd::Left => None,
        }
    } else {
        None
    };
    let data = Data {
        environment: name.to_string(),
        environment_id: details.id,
        status: ended.as_ref().map(|evaluation| evaluation.status.to_string()),
        total_samples: ended.as_ref().and_then(|evaluation| evaluation.total_samples),
        average_score: ended.as_ref().and_then(|evaluation| evaluation.average_score),
        error_message: ended.as_ref().and_then(|evaluation| evaluation.error_message.clone()),
        evaluation_id: id,
        model,
        env_args,
        page,
    };
    render(context, &data, ended.as_ref())
}

fn render(context: &Context, data: &Data, ended: Option<&Evaluation>) -> Result<Outcome, Failure> {
    let outcome = Outcome::new(context.format, data, || {
        let score =
            data.average_score.map(|score| format!("  mean score {}", rounded(score, 3))).unwrap_or_default();
        let status = data.status.as_deref().unwrap_or("started");
        format!("{}  {status}{score}  {}\n", data.evaluation_id, data.page)
    })?;
    let next = format!("Next: aec-bench import-prime-eval {}", data.evaluation_id);
    let outcome = outcome.remark(next);
    Ok(match ended {
        Some(evaluation) if evaluation.status != EvaluationStatus::Completed => {
            let why =
                evaluation.error_message.clone().unwrap_or_else(|| "the service does not say why".to_owned());
            let problem = Problem::error(format!("the evaluation ended as {}", evaluation.status))
                .id(FAMILY.number(35))
                .why(why)
                .fix("look at its page; samples that were made can be imported all the same");
            outcome.problems(vec![problem]).exit(Exit::Found)
        }
        _ => outcome,
    })
}

/// The model, with its adapter if the user asked for one.
async fn model(service: &Service, arguments: &PrimeEvalArguments) -> Result<String, Failure> {
    let (client, base) = (&service.client, arguments.model.as_str());
    if let Some(id) = &arguments.adapter_id {
        return adapters::by_id(client, base, id).await.map_err(|error| adapter_failed(&error));
    }
    let Some(run) = &arguments.adapter_from_run else { return Ok(base.to_owned()) };
    let step: AdapterStep = arguments
        .adapter_step
        .parse()
        .map_err(|why: String| unusable(&why, "write --adapter-step latest, or a number"))?;
    let adapter = adapters::of_run(client, run, base, step).await.map_err(|error| adapter_failed(&error))?;
    adapters::compose(base, &adapter.id).map_err(|error| adapter_failed(&error))
}

fn environment_arguments(arguments: &PrimeEvalArguments) -> Result<Map<String, Value>, Failure> {
    let further = arguments.env_arg.iter().map(|text| parse_argument(text)).collect::<Result<_, _>>();
    let further = further.map_err(|error| unusable(&error, "write --env-arg KEY=VALUE"))?;
    Ok(EnvironmentArguments {
        split: arguments.slice.split.clone(),
        difficulties: arguments.slice.difficulty.clone(),
        harness: arguments.slice.harness.clone(),
        num_examples: arguments.env_num_examples,
        seed: arguments.seed,
        further,
    }
    .to_map())
}

fn narrate(narrator: &mut Narrator, event: &FollowEvent<'_>) {
    match event {
        FollowEvent::Status(status) => narrator.say(&format!("status: {status}")),
        FollowEvent::Log(line) => narrator.say(line),
        FollowEvent::Trouble { error, pause } => {
            narrator.say(&format!("{error}; asking again in {} s", pause.as_secs()));
        }
        FollowEvent::LogLost(error) => {
            narrator.say(&format!("the end of the log could not be read: {error}"));
        }
    }
}

fn start_failed(error: &StartError) -> Failure {
    match error {
        StartError::Api(error) => failed(error),
        _ => unusable(error, "see `aec-bench prime eval --help`"),
    }
}
