//! Models that classify turns and propose changes: their prompts, their accounts, and their answers.

use std::sync::Arc;

use aec_base::decimal::signed;
use aec_base::digest::Digest;
use aec_base::problem::Problem;
use aec_base::text;
use aec_model::client::Scope as CallScope;
use aec_model::event::CallEvent;
use aec_model::failure::FailureKind;
use aec_model::message::{Message, Request, Role as Speaker, Sampling};
use aec_model::meter::{Account, Budget};
use aec_model::money::MicroDollars;
use aec_report::behaviour::kind::{Label, in_order};
use aec_report::behaviour::prompt::questions;
use aec_report::behaviour::reply;
use aec_run::control::Wish;
use aec_run::event::StopReason;
use aec_task::task::Task;

use crate::FAMILY;
use crate::analyse::{Looked, Tally};
use crate::arena::Halt;
use crate::brief::{Brief, Failure, PROGRAM};
use crate::config::Voice;
use crate::cycle::{Engine, summary};
use crate::event::{Event, Role, Way};
use crate::propose::{NoProposal, Proposal, ask};
use crate::state::{Known, Open, State};
use crate::workspace::candidate::Candidate;

/// Failed trials whose turns a classifier sees.
const CLASSIFIED: usize = 3;
/// Added to the evolver's temperature when the search is widened.
const WARMER: f64 = 0.3;

impl Engine {
    /// Asks a model for a change. The inner error tells why there is none.
    pub(crate) async fn ask(
        &self,
        agent: &str,
        open: &Open,
        parent: &Candidate,
        partner: Option<&Candidate>,
        looked: &[Looked],
        tasks: &[Task],
    ) -> Result<Result<Proposal, String>, Halt> {
        let started = &open.started;
        let seat = self.look(|state| state.started.agents.iter().position(|name| name == agent)).unwrap_or(0);
        let (Some(voice), nudge) =
            (self.settings.evolvers.get(seat), self.settings.nudges.get(seat).cloned().flatten())
        else {
            return Err(Problem::error(format!("{agent} has no model")).into());
        };
        let kinds = self.classify(agent, started.cycle, looked).await?;
        let (all, failures, notes, stuck, phase) = self.look(|state| {
            let all = state.candidates.get(&parent.id).map(|known| known.tally.clone()).unwrap_or_default();
            let stuck = state
                .lanes
                .get(agent)
                .is_some_and(|progress| progress.widened || progress.way != Way::Mutation);
            let notes: Vec<String> = state
                .notes
                .iter()
                .filter(|note| note.agent != agent)
                .map(|note| format!("{}: {}", note.agent, note.text))
                .collect();
            (all, failures(state), notes, stuck, state.phase)
        });
        let outcome = |candidate: &Candidate| {
            self.look(|state| {
                let known = state.candidates.get(&candidate.id);
                known.map_or_else(String::new, outcome_words)
            })
        };
        let all: Tally = all;
        let brief = Brief {
            cycle: (started.cycle, self.settings.max_cycles),
            parent,
            batch: looked,
            tasks,
            all: &all,
            kinds: &kinds,
            scope: started.scope,
            rescued: partner.map(|partner| (partner, outcome(partner))),
            failures: &failures,
            notes: &notes,
            nudge: nudge.as_deref(),
            stuck,
            phase,
        }
        .to_text();
        let model = self.client.model(&voice.model, None).map_err(Problem::from)?;
        let temperature = if stuck {
            (voice.temperature + WARMER).min(voice.temperature.max(1.0))
        } else {
            voice.temperature
        };
        let program = parent.program.as_deref().unwrap_or(PROGRAM);
        let (scope, account) = self.scope(agent, started.cycle, Role::Evolver, &voice.model, "propose");
        let answer = tokio::select! {
            answer = ask(&model, voice, temperature, program, &brief, &scope) => Some(answer),
            () = self.control.reached(Wish::GiveUp) => None,
        };
        self.answered(agent, started.cycle, Role::Evolver, &account)?;
        let Some(answer) = answer else { return Err(Halt::Stopped(StopReason::Insisted)) };
        match answer {
            Ok(proposal) => Ok(Ok(proposal)),
            Err(NoProposal::Unreadable(why)) => {
                Ok(Err(format!("the evolver's answers cannot be read: {why}")))
            }
            Err(NoProposal::Model(failure)) => match failure.kind {
                FailureKind::Budget => Err(Halt::Stopped(StopReason::Budget(failure.message))),
                FailureKind::Overlong | FailureKind::ContentFilter | FailureKind::Truncated => {
                    Ok(Err(format!("the evolver gave no answer: {failure}")))
                }
                _ => {
                    self.check()?;
                    let problem =
                        Problem::error(format!("the evolver failed: {failure}")).id(FAMILY.number(50));
                    Err(problem.fix("check the model with `aec-bench models check`, then resume").into())
                }
            },
        }
    }

    /// The classifier's view of the turns of failed trials. It is only a second opinion: the run continues without it.
    async fn classify(&self, agent: &str, cycle: u32, looked: &[Looked]) -> Result<Vec<String>, Halt> {
        let failed = looked.iter().filter(|looked| {
            looked.seen.reward.is_some_and(|reward| !aec_report::selection::is_full(reward))
        });
        let mut told = Vec::new();
        for (at, looked) in failed.take(CLASSIFIED).enumerate() {
            let Some(trace) = looked.trace.as_ref().filter(|trace| !trace.turns.is_empty()) else { continue };
            let mut labels: Vec<Label> = looked.labels.clone();
            if let Some(voice) = &self.settings.classifier {
                let wanted: Vec<u32> = trace.turns.iter().map(|turn| turn.index).collect();
                for question in questions(trace, &wanted) {
                    let asked = (question.system.clone(), question.user.clone());
                    let label = format!("classify-{at}");
                    if let Some(answer) = self.opinion(agent, cycle, voice, asked, &label).await? {
                        for label in reply::parse(&answer, &question).labels {
                            labels.retain(|known| known.turn_index != label.turn_index);
                            labels.push(label);
                        }
                    }
                }
            }
            let letters: Vec<String> = in_order(trace, labels)
                .into_iter()
                .map(|label| label.map_or_else(|| "?".to_owned(), |label| label.kind.letter().to_string()))
                .collect();
            told.push(letters.join("-"));
        }
        Ok(told)
    }

    async fn opinion(
        &self,
        agent: &str,
        cycle: u32,
        voice: &Voice,
        (system, user): (String, String),
        label: &str,
    ) -> Result<Option<String>, Halt> {
        let model = self.client.model(&voice.model, None).map_err(Problem::from)?;
        let (scope, account) = self.scope(agent, cycle, Role::Classifier, &voice.model, label);
        let request = Request {
            messages: vec![Message::text(Speaker::System, system), Message::text(Speaker::User, user)],
            sampling: Sampling {
                temperature: Some(voice.temperature),
                max_tokens: Some(voice.max_tokens),
                ..Sampling::default()
            },
            ..Request::default()
        };
        let called = tokio::select! {
            called = model.call(&request, &scope) => Some(called.outcome),
            () = self.control.reached(Wish::GiveUp) => None,
        };
        self.answered(agent, cycle, Role::Classifier, &account)?;
        let Some(outcome) = called else { return Err(Halt::Stopped(StopReason::Insisted)) };
        match outcome {
            Ok(reply) => Ok(Some(reply.text())),
            Err(failure) if failure.kind == FailureKind::Budget => {
                Err(Halt::Stopped(StopReason::Budget(failure.message)))
            }
            Err(failure) => {
                tracing::debug!(%failure, "a classifier gave no opinion");
                Ok(None)
            }
        }
    }

    /// The scope of a model call: a separate account, and a record of every attempt before it is sent.
    fn scope(&self, agent: &str, cycle: u32, role: Role, model: &str, label: &str) -> (CallScope, Account) {
        let account = self.account.open("a question", Budget::UNLIMITED);
        let label = format!("{}/{agent}/cycle-{cycle}/{label}", self.directory.kind.name());
        let mut scope = CallScope::new(label, account.clone());
        let (journal, agent, model) = (Arc::clone(&self.journal), agent.to_owned(), model.to_owned());
        scope.observer = Some(Arc::new(move |event: &CallEvent| {
            if let CallEvent::Attempt { at_most, .. } = event {
                journal.note(Event::Asked {
                    agent: agent.clone(),
                    cycle,
                    role,
                    model: model.clone(),
                    at_most_usd: at_most.and_then(|bound| bound.cost).map(MicroDollars::dollars),
                    at_most_tokens: at_most.map_or(0, |bound| bound.tokens),
                });
            }
        }));
        (scope, account)
    }

    fn answered(&self, agent: &str, cycle: u32, role: Role, account: &Account) -> Result<(), Halt> {
        let all = account.totals().all;
        self.tell(Event::Answered {
            agent: agent.to_owned(),
            cycle,
            role,
            cost_usd: (all.unpriced_calls == 0).then(|| all.spent.dollars()),
            unpriced_calls: all.unpriced_calls,
            tokens: all.tokens(),
        })
    }
}

fn failures(state: &State) -> Vec<Failure> {
    let known = |candidate: &Digest| state.candidates.get(candidate);
    state
        .buried
        .iter()
        .filter_map(known)
        .map(|known| Failure { summary: summary(known), outcome: outcome_words(known) })
        .collect()
}

fn outcome_words(known: &Known) -> String {
    match known.standing {
        Some(standing) if standing.pairs > 0 => {
            format!(
                "{} ({} over {})",
                known.status.words(),
                signed(standing.difference, 3),
                text::count(standing.pairs, "task")
            )
        }
        _ => known.status.words().to_owned(),
    }
}
