//! Limits of a run and its usage: limits are checked before each call.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use aec_base::decimal::rounded;
use aec_model::client::Model;
use aec_model::failure::{Failure, FailureKind};
use aec_model::message::{Reply, Request};
use aec_model::meter::{Account, AccountKind, Budget, Spending};
use aec_model::money::MicroDollars;
use aec_task::long_documents::settings::Guardrails;
use serde_json::{Map, Value, json};

use super::tools::cut_text;
use super::{Limit, TrialContext, blame};

/// Bytes of a call's question and answer in its note.
const NOTED: usize = 4000;

/// The purpose of a call. All planes share the same budgets; usage is reported separately.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Plane {
    Main,
    Subcalls,
    Compaction,
    Advisor,
}

impl Plane {
    const ALL: [Self; 4] = [Self::Main, Self::Subcalls, Self::Compaction, Self::Advisor];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Main => "main",
            Self::Subcalls => "subcalls",
            Self::Compaction => "compaction",
            Self::Advisor => "advisor",
        }
    }
}

pub(super) struct Guard {
    rules: Guardrails,
    /// Holds the budget in money; the accounts of the planes are below it.
    account: Account,
    planes: [Account; 4],
    iterations: AtomicU64,
    subcalls: AtomicU64,
    warned: AtomicBool,
}

impl Guard {
    pub(super) fn new(rules: Guardrails, trial: &Account) -> Self {
        let money = rules.max_budget_usd.and_then(MicroDollars::from_dollars);
        let account = trial.open(AccountKind::Harness, Budget { money, tokens: None });
        let planes = Plane::ALL.map(|plane| account.open(plane.name(), Budget::UNLIMITED));
        Self {
            rules,
            account,
            planes,
            iterations: AtomicU64::new(0),
            subcalls: AtomicU64::new(0),
            warned: AtomicBool::new(false),
        }
    }

    /// The account that pays for the calls of a plane.
    pub(super) fn account(&self, plane: Plane) -> &Account {
        &self.planes[plane as usize]
    }

    pub(super) fn rules(&self) -> &Guardrails {
        &self.rules
    }

    pub(super) fn iterations(&self) -> u64 {
        self.iterations.load(Ordering::Relaxed)
    }

    /// Whether another call may be made. Turns and sub-calls are counted here, so that concurrent calls cannot exceed
    /// their limit.
    pub(super) fn enter(&self, plane: Plane) -> Result<(), Limit> {
        let spent = self.account.totals().all;
        if spent.tokens() >= self.rules.token_budget {
            return Err(Limit::Tokens);
        }
        if self.rules.billable_input_budget.is_some_and(|most| billable(&spent) >= most) {
            return Err(Limit::BillableInput);
        }
        if self.money().is_some_and(|most| spent.spent >= most) {
            return Err(Limit::Cost);
        }
        match plane {
            Plane::Main if !count(&self.iterations, self.rules.max_iterations.into()) => Err(Limit::Turns),
            Plane::Subcalls if !count(&self.subcalls, self.rules.max_subcalls.unwrap_or(u64::MAX)) => {
                Err(Limit::Subcalls)
            }
            _ => Ok(()),
        }
    }

    fn money(&self) -> Option<MicroDollars> {
        self.rules.max_budget_usd.and_then(MicroDollars::from_dollars)
    }

    /// Calls a model outside the conversation. Its events name the plane.
    pub(super) async fn ask(
        &self,
        context: &TrialContext,
        plane: Plane,
        model: &Model,
        request: &Request,
    ) -> Result<Reply, Failure> {
        let mut scope = context.scope.clone();
        scope.account = self.account(plane).clone();
        scope.deadline = Some(scope.deadline.map_or(context.deadline, |own| own.min(context.deadline)));
        let trajectory = context.trajectory.clone();
        scope.observer = Some(Arc::new(move |event| trajectory.model_call_of(plane.name(), event)));
        let called = model.call(request, &scope).await;
        called.outcome.map_err(|failure| blame(failure, &called.events))
    }

    /// Writes a note of a call outside the conversation, with its result.
    pub(super) fn note(
        context: &TrialContext,
        plane: Plane,
        name: &str,
        arguments: &Value,
        result: &Result<Value, String>,
    ) {
        let mut metadata = Map::new();
        metadata.insert("plane".to_owned(), plane.name().into());
        metadata.insert("call".to_owned(), name.into());
        metadata.insert("arguments".to_owned(), cut_text(&arguments.to_string(), NOTED).into());
        let (key, text) = match result {
            Ok(value) => ("result", value.to_string()),
            Err(error) => ("error", error.clone()),
        };
        metadata.insert(key.to_owned(), cut_text(&text, NOTED).into());
        context.trajectory.note(format!("{name} was called"), metadata);
    }

    /// The output tokens that a call may still produce.
    pub(super) fn output_limit(&self, wanted: u32) -> u32 {
        let left = self.rules.token_budget.saturating_sub(self.account.totals().all.tokens());
        wanted.min(u32::try_from(left).unwrap_or(u32::MAX)).max(1)
    }

    /// A warning to give once, when the first of the limits is nearly reached.
    pub(super) fn warning(&self) -> Option<String> {
        let spent = self.account.totals().all;
        let share = |used: f64, most: f64| if most > 0.0 { 100.0 * used / most } else { 0.0 };
        #[expect(clippy::cast_precision_loss, reason = "shares in per cent")]
        let uses = [
            ("tokens", share(spent.tokens() as f64, self.rules.token_budget as f64)),
            ("turns", share(self.iterations() as f64, f64::from(self.rules.max_iterations))),
            (
                "sub-calls",
                share(
                    self.subcalls.load(Ordering::Relaxed) as f64,
                    self.rules.max_subcalls.unwrap_or(0) as f64,
                ),
            ),
            ("money", share(spent.spent.dollars(), self.rules.max_budget_usd.unwrap_or(0.0))),
            (
                "billable input",
                share(billable(&spent) as f64, self.rules.billable_input_budget.unwrap_or(0) as f64),
            ),
        ];
        let (what, used) = uses.into_iter().max_by(|a, b| a.1.total_cmp(&b.1))?;
        if used < self.rules.budget_warning_pct || self.warned.swap(true, Ordering::Relaxed) {
            return None;
        }
        let left = u64::from(self.rules.max_iterations).saturating_sub(self.iterations());
        Some(format!(
            "[{} % of your {what} are used up, {left} turns are left. Write the output now and call FINAL; \
             there is no further turn after the last.]",
            rounded(used, 0)
        ))
    }

    pub(super) fn usage(&self) -> Value {
        let mut planes = Map::new();
        for plane in Plane::ALL {
            planes.insert(plane.name().to_owned(), figures(&self.account(plane).totals().all));
        }
        planes.insert("total".to_owned(), figures(&self.account.totals().all));
        Value::Object(planes)
    }

    pub(super) fn subcalls(&self) -> u64 {
        self.subcalls.load(Ordering::Relaxed)
    }
}

/// Counts one more, unless that would exceed `most`.
fn count(counter: &AtomicU64, most: u64) -> bool {
    let one_more = |used: u64| (used < most).then_some(used + 1);
    counter.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_more).is_ok()
}

fn billable(spent: &Spending) -> u64 {
    spent.usage.all_input().saturating_sub(spent.usage.cache_read)
}

fn figures(spent: &Spending) -> Value {
    json!({
        "calls": spent.calls,
        "input_tokens": spent.usage.all_input(),
        "output_tokens": spent.usage.all_output(),
        "cache_read_tokens": spent.usage.cache_read,
        "cache_write_tokens": spent.usage.cache_write,
        "unconfirmed_tokens": spent.unconfirmed_tokens,
        "cost_usd": (spent.unpriced_calls == 0).then(|| spent.spent.dollars()),
    })
}

/// The message for a call that a limit forbids.
pub(super) fn refusal(limit: Limit) -> String {
    format!("this call was not made: {}", limit.name().replace('_', " "))
}

/// The message to a model whose call failed. It omits the provider's words, which do not help the model.
pub(super) fn told(failure: &Failure) -> String {
    match failure.kind {
        FailureKind::Overlong => "the text is too long for the model; give it in parts".to_owned(),
        FailureKind::Budget => "this call was not made: the budget is used up".to_owned(),
        kind => format!("the model gave no answer ({})", kind.name()),
    }
}
