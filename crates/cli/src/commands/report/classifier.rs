//! A model's labels for the turns of trials. They are requested in batches and cached by content; some may be missing.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use aec_base::digest::Digest;
use aec_base::file::{Links, read_text, write_atomic};
use aec_base::problem::Problem;
use aec_base::settings::Setting;
use aec_model::client::{Model, Scope};
use aec_model::message::{Message, Request, Role, Sampling};
use aec_model::retry::RetryPolicy;
use aec_report::behaviour::kind::Label;
use aec_report::behaviour::prompt::{Question, questions};
use aec_report::behaviour::reply;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use crate::commands::models;
use crate::commands::report::behavioral::{Analysed, ReportBehavioralArguments, cache_key};
use crate::context::Context;
use crate::failure::Failure;

/// Most tokens of an answer.
const ANSWER_TOKENS: u32 = 4000;
/// Largest file of a label, in bytes.
const LABEL_LIMIT: u64 = 64 * 1024;
/// Most problems that are reported.
const TOLD: usize = 20;

/// The labels that a model gave to the turns of trials.
#[derive(Default)]
pub(crate) struct Classified {
    pub(crate) labels: HashMap<String, Vec<Label>>,
    pub(crate) cached: usize,
    pub(crate) asked: usize,
    pub(crate) missing: usize,
    pub(crate) calls: usize,
    pub(crate) problems: Vec<String>,
    pub(crate) warnings: Vec<Problem>,
}

/// Asks a model about every turn whose label is not in the cache.
pub(crate) fn classify(
    context: &Context,
    arguments: &ReportBehavioralArguments,
    name: &str,
    trials: &[Analysed],
) -> Result<Classified, Failure> {
    let project = models::project(context, &arguments.endpoints, &arguments.budget)?;
    let unpriced = arguments.budget.unpriced();
    let opened = models::open(context, &project, &arguments.tape, RetryPolicy::default(), unpriced)?;
    let model = opened.client.model(name, None).map_err(Problem::from)?;
    let cache = project.settings.path(Setting::ModelCache).with_file_name("behaviour");
    let mut done = Classified { warnings: opened.problems, ..Classified::default() };
    let mut open: Vec<(usize, Question)> = Vec::new();
    for (at, trial) in trials.iter().enumerate() {
        let Some(trace) = &trial.trace else { continue };
        let mut wanted = Vec::new();
        for (place, turn) in trace.turns.iter().enumerate() {
            match cache_key(trace, place, name).and_then(|key| look_up(&cache, key)) {
                Some(label) => {
                    done.cached += 1;
                    let label = Label { turn_index: turn.index, ..label };
                    done.labels.entry(trial.trial_id.clone()).or_default().push(label);
                }
                None => wanted.push(turn.index),
            }
        }
        done.asked += wanted.len();
        open.extend(questions(trace, &wanted).into_iter().map(|question| (at, question)));
    }
    done.calls = open.len();
    let scope = Scope::new("behaviour", opened.run);
    let asking = ask_all(model, scope, open, arguments.concurrency.into());
    for (at, question, answer) in models::runtime()?.block_on(asking) {
        take_in(&trials[at], name, &question, answer, &cache, &mut done);
    }
    done.problems.truncate(TOLD);
    if done.missing > 0 {
        let what = format!("the classifier gave no label for {} of {} turns", done.missing, done.asked);
        let warning = Problem::warning(what).fix("run it again: only the missing labels are requested");
        done.warnings.push(match done.problems.first() {
            Some(first) => warning.why(first.clone()),
            None => warning,
        });
    }
    Ok(done)
}

type Answer = Result<String, String>;

async fn ask_all(
    model: Model,
    scope: Scope,
    open: Vec<(usize, Question)>,
    at_once: usize,
) -> Vec<(usize, Question, Answer)> {
    let places = Arc::new(Semaphore::new(at_once));
    let mut asking = JoinSet::new();
    for (order, (at, question)) in open.into_iter().enumerate() {
        let (model, scope, places) = (model.clone(), scope.clone(), Arc::clone(&places));
        asking.spawn(async move {
            let _place = places.acquire().await;
            let answer = ask(&model, &scope, &question).await;
            (order, at, question, answer)
        });
    }
    let mut answers = asking.join_all().await;
    answers.sort_by_key(|(order, ..)| *order);
    answers.into_iter().map(|(_, at, question, answer)| (at, question, answer)).collect()
}

async fn ask(model: &Model, scope: &Scope, question: &Question) -> Answer {
    let request = Request {
        messages: vec![
            Message::text(Role::System, question.system.clone()),
            Message::text(Role::User, question.user.clone()),
        ],
        sampling: Sampling { temperature: Some(0.0), max_tokens: Some(ANSWER_TOKENS), ..Sampling::default() },
        ..Request::default()
    };
    model.call(&request, scope).await.outcome.map(|reply| reply.text()).map_err(|failure| failure.to_string())
}

fn take_in(
    trial: &Analysed,
    model: &str,
    question: &Question,
    answer: Answer,
    cache: &Path,
    done: &mut Classified,
) {
    let Some(trace) = &trial.trace else { return };
    let text = match answer {
        Ok(text) => text,
        Err(failure) => {
            done.missing += question.indices.len();
            done.problems.push(format!("{}: {failure}", trial.trial_id));
            return;
        }
    };
    let reply = reply::parse(&text, question);
    done.missing += reply.missing.len();
    done.problems.extend(reply.problems.iter().map(|problem| format!("{}: {problem}", trial.trial_id)));
    for label in &reply.labels {
        let place = trace.turns.iter().position(|turn| turn.index == label.turn_index);
        if let Some(key) = place.and_then(|place| cache_key(trace, place, model)) {
            keep(cache, key, label);
        }
    }
    done.labels.entry(trial.trial_id.clone()).or_default().extend(reply.labels);
}

fn place(cache: &Path, key: Digest) -> PathBuf {
    let hex = key.hex();
    cache.join(&hex[..2]).join(format!("{hex}.json"))
}

fn look_up(cache: &Path, key: Digest) -> Option<Label> {
    let text = read_text(&place(cache, key), LABEL_LIMIT, Links::Refuse).ok()?;
    aec_base::json::from_str(&text).ok()
}

/// Saves a label in the cache. If that fails, the label is used all the same and requested again next time.
fn keep(cache: &Path, key: Digest, label: &Label) {
    let path = place(cache, key);
    let written = serde_json::to_vec(label).map_err(std::io::Error::from).and_then(|bytes| {
        path.parent().map_or(Ok(()), std::fs::create_dir_all)?;
        write_atomic(&path, &bytes)
    });
    if let Err(error) = written {
        tracing::debug!(%error, "a label was not kept");
    }
}
