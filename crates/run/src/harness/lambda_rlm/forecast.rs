//! A run's forecast before its first call: the plan, its expected accuracy and its expected cost.

use std::fmt;

use aec_base::decimal::rounded;
use aec_model::client::Model;
use aec_model::message::Usage;
use aec_model::money::MicroDollars;
use aec_rlm::plan::{CallShape, Plan, Request};
use aec_task::long_documents::settings::Overrides;
use aec_task::long_documents::template::{GenerationMode, Section};
use serde::Serialize;

use super::given::Given;
use super::prompts;
use crate::parameters::Parameters;
use crate::task::PreparedTask;

/// A task with its plan.
pub(super) struct PlannedWork {
    pub(super) given: Given,
    pub(super) plan: Plan,
    pub(super) forecast: Forecast,
}

/// The expected usage of a run, without sources that a review reads again, which the settings limit.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Forecast {
    /// Calls of the plan, one review and one writing of each section.
    pub calls: u64,
    pub input_tokens: u64,
    pub output_tokens: u64,
    /// The least probability that a fact of a source reaches its section.
    pub accuracy: f64,
    /// The cost at the model's price, if it has one.
    pub cost: Option<MicroDollars>,
}

impl PlannedWork {
    /// Reads a task's files and plans it, or says why there is no plan.
    pub(super) fn make(
        task: &PreparedTask,
        parameters: &Parameters,
        system_prompt: Option<&str>,
        model: Option<&Model>,
    ) -> Result<Self, String> {
        let mut given = Given::read(task)?;
        let without_use = given.settings.tighten(&Overrides {
            max_turns: parameters.given_turns,
            token_budget: parameters.token_budget,
            max_cost_usd: parameters.max_cost_usd,
            ..Overrides::default()
        });
        let meaningless = |name: &&str| format!("`{name}` has no meaning for this harness");
        given.notes.extend(without_use.iter().map(meaningless));
        let planner = given.settings.planner.clone();
        let read: Vec<&Section> = given.template.order().filter(|section| is_made(section)).collect();
        let briefs = read
            .iter()
            .map(|section| prompts::brief(&task.instruction, &given.template.meta, section).chars().count());
        let usual = CallShape::for_window(planner.context_window_chars);
        let frame = usual.prompt_chars.max((briefs.max().unwrap_or(0) + prompts::LONGEST_FRAME) as u64);
        // A usual call does not include the agent's prompt, which is added here.
        let own = prompts::before_role(system_prompt).chars().count() as u64;
        let call = CallShape { prompt_chars: frame.saturating_add(own), ..usual };
        let requests: Vec<Request<'_>> = read
            .iter()
            .flat_map(|section| {
                given.sources_of(section).0.into_iter().map(|(source, _)| Request {
                    section: &section.id,
                    source: &source.label,
                    text: &source.text,
                    form: source.form,
                })
            })
            .collect();
        let plan =
            Plan::make(&requests, &planner, &call).map_err(|error| format!("there is no plan: {error}"))?;
        let forecast = Forecast::of(&given, &plan, read.len() as u64, model);
        Ok(Self { given, plan, forecast })
    }
}

/// Whether models write a section from its sources.
fn is_made(section: &Section) -> bool {
    !matches!(section.generation_mode, GenerationMode::Boilerplate | GenerationMode::External)
}

impl Forecast {
    fn of(given: &Given, plan: &Plan, sections: u64, model: Option<&Model>) -> Self {
        let (shape, totals) = (&plan.call, &plan.totals);
        // Review and writing each read the facts of a section's sources; a section is as long as they are.
        let sources = plan.trees.iter().filter(|tree| tree.shape.leaves > 0).count() as u64;
        let found = sources.saturating_mul(shape.output_cap_chars);
        let reviews = if given.settings.review.enabled { sections } else { 0 };
        let times = 1 + u64::from(given.settings.review.enabled);
        let chars = found.saturating_mul(times).saturating_add((reviews + sections) * shape.prompt_chars);
        let calls = totals.calls + reviews + sections;
        let input_tokens = totals.input_tokens.saturating_add(shape.tokens(chars));
        let output_tokens = totals.output_tokens.saturating_add(shape.tokens(found));
        Self {
            calls,
            input_tokens,
            output_tokens,
            accuracy: totals.accuracy,
            cost: model.and_then(|model| cost(model, calls, input_tokens, output_tokens)),
        }
    }
}

/// The cost of calls of equal size at the most expensive endpoint.
fn cost(model: &Model, calls: u64, input: u64, output: u64) -> Option<MicroDollars> {
    let each = calls.max(1);
    let usage = Usage { input: input.div_ceil(each), output: output.div_ceil(each), ..Usage::default() };
    let prices = model.prices().into_iter().collect::<Option<Vec<_>>>()?;
    let dearest = prices.into_iter().map(|price| price.cost(&usage)).max()?;
    Some(MicroDollars(dearest.0.saturating_mul(calls)))
}

impl fmt::Display for Forecast {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let cost = self.cost.map_or_else(|| "no price is known".to_owned(), |cost| format!("about {cost}"));
        write!(
            f,
            "{} calls with reviews and writing, about {} tokens read and {} written, accuracy at least {}, {cost}",
            self.calls,
            self.input_tokens,
            self.output_tokens,
            rounded(self.accuracy, 3)
        )
    }
}
