//! One cycle: measure the parent, find out how it fails, make a candidate, measure it on the same tasks, test it on
//! others, decide. Every step ends with an event, and the events determine the next step, so an interrupted cycle
//! continues at the step where it was.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use aec_base::digest::Digest;
use aec_base::name::Name;
use aec_base::problem::Problem;
use aec_base::text;
use aec_model::client::Client;
use aec_model::meter::Account;
use aec_run::control::{Control, Wish};
use aec_run::event::StopReason;
use aec_task::task::Task;
use tokio::task::block_in_place;

use crate::FAMILY;
use crate::analyse::Looked;
use crate::arena::{Arena, Halt};
use crate::edit::{Applied, Dropped, Edit, apply, cross};
use crate::event::{
    Arm, CycleStarted, Decided, Event, Kind, Measured, Proposed, Purpose, Taken, TaskRef, Way,
};
use crate::gate::{self, Rejection, Standing};
use crate::guard::Guard;
use crate::journal::Journal;
use crate::run::{RunDirectory, Settings};
use crate::state::{Known, Open, State};
use crate::step::{Todo, enter_test, todo};
use crate::strategy::Choice;
use crate::supply::{Item, Supply};
use crate::workspace::Workspace;
use crate::workspace::candidate::Candidate;

const KEPT: usize = 64;
pub struct Engine {
    pub settings: Settings,
    pub directory: RunDirectory,
    pub workspace: Workspace,
    pub supply: Supply,
    pub arena: Arena,
    pub client: Client,
    /// Pays for models directly, and for trials through accounts below it.
    pub account: Account,
    /// Dollars that earlier sessions spent.
    pub spent_before: f64,
    /// What trials of earlier sessions cost.
    pub taken_before: Taken,
    pub control: Control,
    pub journal: Arc<Journal>,
    pub kept: Kept,
}

/// Recently loaded candidates, and locks for the repository and for beginning cycles.
#[derive(Default)]
pub struct Kept {
    candidates: Mutex<HashMap<Digest, Arc<Candidate>>>,
    git: Mutex<()>,
    beginning: Mutex<()>,
}

/// The right to begin a cycle: one agent has it at a time.
pub struct Beginning<'a>(#[expect(dead_code, reason = "held, not read")] MutexGuard<'a, ()>);

impl Kept {
    /// Waits for the right to begin a cycle.
    pub fn beginning(&self) -> Beginning<'_> {
        Beginning(self.beginning.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn find(&self, id: Digest) -> Option<Arc<Candidate>> {
        self.candidates.lock().unwrap_or_else(PoisonError::into_inner).get(&id).cloned()
    }

    fn keep(&self, candidate: Candidate) -> Arc<Candidate> {
        let candidate = Arc::new(candidate);
        let mut kept = self.candidates.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() >= KEPT {
            kept.clear();
        }
        kept.insert(candidate.id, Arc::clone(&candidate));
        candidate
    }

    /// Only one thread at a time may change the repository.
    fn git(&self) -> MutexGuard<'_, ()> {
        self.git.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Engine {
    /// Reads the state of the run.
    pub fn look<T>(&self, look: impl FnOnce(&State) -> T) -> T {
        self.journal.look(look)
    }

    /// Records an event. The state includes it when this returns.
    pub fn tell(&self, event: Event) -> Result<(), Halt> {
        Ok(self.journal.tell(event)?)
    }

    pub fn spent(&self) -> f64 {
        self.spent_before + self.account.totals().all.spent.dollars()
    }

    /// What trials cost so far, as the budget counts it.
    pub fn taken(&self) -> Taken {
        let all = self.arena.account.totals().all;
        Taken {
            cost_usd: self.taken_before.cost_usd + all.spent.dollars(),
            tokens: self.taken_before.tokens + all.tokens(),
        }
    }

    /// Returns an error if the user asked to stop.
    pub fn check(&self) -> Result<(), Halt> {
        match self.control.wish() {
            Wish::GoOn => Ok(()),
            Wish::Finish => Err(Halt::Stopped(StopReason::Asked)),
            Wish::GiveUp => Err(Halt::Stopped(StopReason::Insisted)),
        }
    }

    pub fn candidate(&self, id: Digest) -> Result<Arc<Candidate>, Halt> {
        match self.kept.find(id) {
            Some(candidate) => Ok(candidate),
            None => Ok(self.kept.keep(self.workspace.load(id)?)),
        }
    }

    /// Begins a cycle of an agent. One agent at a time: no two agents may take the same tasks to learn from.
    pub fn begin(&self, agent: &str, choice: &Choice, _beginning: &Beginning<'_>) -> Result<(), Halt> {
        let wanted = self.settings.batch_size as usize;
        let (cycle, known, used) = self.look(|state| {
            let cycle = state.lanes.get(agent).map_or(1, |progress| progress.cycle + 1);
            (cycle, state.known_tasks(choice.parent, wanted), Arc::clone(&state.used))
        });
        // The parent need not repeat tasks that it was tested on. Selected tasks of tests, however, stay unseen.
        let mut known = if self.settings.generate.is_some() { known } else { Vec::new() };
        if self.settings.tasks.is_some() {
            // Leaves half of the batch to selected tasks.
            known.truncate(wanted / 2);
        }
        let fresh = block_in_place(|| self.supply.learning(&used, wanted - known.len()))?;
        let tasks: Vec<TaskRef> =
            known.into_iter().chain(fresh.into_iter().map(|item| item.reference)).collect();
        self.tell(Event::CycleStarted(CycleStarted {
            agent: agent.to_owned(),
            cycle,
            way: choice.way,
            parent: choice.parent,
            partner: choice.partner,
            scope: choice.scope,
            tasks,
        }))
    }

    /// Takes the next step of the current cycle.
    pub async fn step(&self, agent: &str, open: &Open) -> Result<(), Halt> {
        self.check()?;
        let started = &open.started;
        let child = match &open.proposed {
            Some(proposed) => Some(self.candidate(proposed.candidate)?),
            None => None,
        };
        match (todo(open, &self.settings), child) {
            (Todo::Learn, _) => {
                let items = self.supply.load(&started.tasks)?;
                let parent = self.candidate(started.parent)?;
                self.measure(agent, open, Purpose::Learn, &[&parent], &items).await
            }
            // All later steps have a candidate.
            (Todo::Propose, _) | (_, None) => {
                let items = self.supply.load(&started.tasks)?;
                let parent = self.candidate(started.parent)?;
                self.propose(agent, open, &parent, &items).await
            }
            (Todo::Screen, Some(child)) => {
                let items = self.supply.load(&started.tasks)?;
                self.measure(agent, open, Purpose::Screen, &[&child], &items).await
            }
            (Todo::EnterTest, Some(child)) => {
                let acceptance = self.settings.acceptance;
                Ok(self.journal.tell_with(|state| enter_test(state, &acceptance, open, child.id))?)
            }
            (Todo::Look(count), Some(child)) => self.look_again(agent, open, &child, count).await,
            (Todo::Decide(rejection, standing), Some(child)) => {
                self.decide(agent, open, &child, rejection, standing)
            }
        }
    }

    async fn measure(
        &self,
        agent: &str,
        open: &Open,
        purpose: Purpose,
        arms: &[&Candidate],
        items: &[Item],
    ) -> Result<(), Halt> {
        let looked = self.arena.measure(arms, items).await?;
        // Without a single reward there is nothing to learn or to decide, and asking models would waste money.
        if looked.iter().any(|arm| arm.iter().all(|looked| looked.seen.reward.is_none())) {
            return Err(self.without_rewards("no trial of a batch has a reward", &looked));
        }
        self.tell_measured((agent, open.started.cycle), purpose, arms, items, &looked)
    }

    /// Records what was seen of candidates on tasks.
    pub(crate) fn tell_measured(
        &self,
        (agent, cycle): (&str, u32),
        purpose: Purpose,
        arms: &[&Candidate],
        items: &[Item],
        looked: &[Vec<Looked>],
    ) -> Result<(), Halt> {
        self.tell(Event::Measured(Measured {
            agent: agent.to_owned(),
            cycle,
            purpose,
            tasks: items.iter().map(|item| item.reference.clone()).collect(),
            arms: arms
                .iter()
                .zip(looked)
                .map(|(candidate, looked)| Arm {
                    candidate: candidate.id,
                    seen: looked.iter().map(|looked| looked.seen.clone()).collect(),
                })
                .collect(),
            taken: Some(self.taken()),
        }))
    }

    /// The problem that stops a run whose trials have no reward through no fault of the agents.
    pub(crate) fn without_rewards(&self, what: &str, looked: &[Vec<Looked>]) -> Halt {
        let without = looked.iter().flatten().filter(|looked| looked.seen.reward.is_none());
        let outcomes: BTreeSet<&str> = without.map(|looked| looked.seen.outcome.name()).collect();
        let outcomes: Vec<&str> = outcomes.into_iter().collect();
        let problem = Problem::error(format!("{what}: {}", outcomes.join(", "))).id(FAMILY.number(51));
        let fix = format!("see `aec-bench ledger list -e {}`, then resume", self.arena.frame.experiment_id);
        problem.why("this says nothing about the candidates").fix(fix).into()
    }

    /// Runs both sides of a test on tasks that are new to it. Without such tasks, the test ends undecided.
    async fn look_again(
        &self,
        agent: &str,
        open: &Open,
        child: &Candidate,
        count: usize,
    ) -> Result<(), Halt> {
        let Some(test) = &open.test else { return Ok(()) };
        let used = self.look(|state| Arc::clone(&state.used));
        let items = block_in_place(|| self.supply.testing(&used, &test.had, count))?;
        if items.is_empty() {
            let standing = gate::standing(&test.bar, &test.pairs);
            return self.decide(agent, open, child, Some(Rejection::TasksRanOut), standing);
        }
        let tasks: Vec<Task> = items.iter().map(|item| item.task.clone()).collect();
        if Guard::of(&tasks).holds_answers(&child.system_prompt()) {
            let standing = gate::standing(&test.bar, &test.pairs);
            return self.decide(agent, open, child, Some(Rejection::HoldsAnswers), standing);
        }
        let against = self.candidate(test.against)?;
        self.measure(agent, open, Purpose::Accept, &[child, &against], &items).await
    }

    fn decide(
        &self,
        agent: &str,
        open: &Open,
        child: &Candidate,
        rejection: Option<Rejection>,
        standing: Standing,
    ) -> Result<(), Halt> {
        let Some(test) = &open.test else { return Ok(()) };
        self.tell(Event::Decided(Decided {
            agent: agent.to_owned(),
            cycle: open.started.cycle,
            candidate: child.id,
            against: test.against,
            rejection,
            standing,
        }))?;
        if self.look(|state| state.champion) == child.id {
            self.publish()?;
        }
        Ok(())
    }

    /// Shows the best candidate in the workspace, unless the user has edited the files there meanwhile.
    pub fn publish(&self) -> Result<(), Halt> {
        let (champion, label, ours) = self.look(|state| {
            let known = state.candidates.get(&state.champion);
            (
                state.champion,
                label(&self.directory, known),
                state.candidates.keys().copied().collect::<Vec<_>>(),
            )
        });
        let champion = self.candidate(champion)?;
        let _git = self.kept.git();
        block_in_place(|| {
            self.workspace.label(&label, champion.id)?;
            let here = self.workspace.here()?;
            if here.id != champion.id && ours.contains(&here.id) {
                self.workspace.show(&champion)?;
            }
            Ok(())
        })
    }

    async fn propose(
        &self,
        agent: &str,
        open: &Open,
        parent: &Arc<Candidate>,
        items: &[Item],
    ) -> Result<(), Halt> {
        let started = &open.started;
        let tasks: Vec<Task> = items.iter().map(|item| item.task.clone()).collect();
        let guard = Guard::of(&tasks);
        let partner = started.partner.map(|id| self.candidate(id)).transpose()?;
        let (applied, reasoning, note) = match (started.way, &partner) {
            (Way::Crossover, Some(partner)) => {
                let reasoning = format!("takes over skills of {}", partner.name());
                (cross(parent, partner), reasoning, None)
            }
            _ => {
                // The parent's trials are recorded, so nothing is run again.
                let looked =
                    self.arena.measure(&[parent], items).await?.into_iter().next().unwrap_or_default();
                match self.ask(agent, open, parent, partner.as_deref(), &looked, &tasks).await? {
                    Ok(mut proposal) => {
                        self.journal.scrub(&mut proposal);
                        let applied = apply(parent, &proposal.actions, started.scope, &guard);
                        (applied, proposal.reasoning, proposal.note)
                    }
                    Err(reason) => return self.not_proposed(agent, open, reason, Vec::new()),
                }
            }
        };
        let Applied { candidate, edits, dropped } = applied;
        if edits.is_empty() {
            let reason = match dropped.len() {
                0 => "nothing was proposed".to_owned(),
                count => format!("{} could not be applied", text::count(count, "proposed change")),
            };
            return self.not_proposed(agent, open, reason, dropped);
        }
        if self.look(|state| state.candidates.contains_key(&candidate.id)) {
            return self.not_proposed(agent, open, tried_before(&candidate), dropped);
        }
        if guard.holds_answers(&candidate.system_prompt()) {
            return self.not_proposed(agent, open, Rejection::HoldsAnswers.words().to_owned(), dropped);
        }
        let mut parents = vec![parent.id];
        parents.extend(partner.filter(|_| started.way == Way::Crossover).map(|partner| partner.id));
        let summary: Vec<String> = edits.iter().map(Edit::words).collect();
        {
            let _git = self.kept.git();
            block_in_place(|| {
                self.workspace.keep(&candidate, &parents, &summary.join(", "))?;
                if self.directory.kind == Kind::Swarm {
                    let tree = self.directory.tree(agent);
                    self.workspace.add_tree(&tree)?;
                    self.workspace.show_in(&tree, &candidate)?;
                }
                std::io::Result::Ok(())
            })?;
        }
        let prompt_letters = candidate.system_prompt().chars().count();
        let candidate = self.kept.keep(candidate);
        let (agent, cycle) = (agent.to_owned(), started.cycle);
        // Another agent may have made the same candidate meanwhile.
        let told = self.journal.tell_with(|state| {
            if state.candidates.contains_key(&candidate.id) {
                let reason = tried_before(&candidate);
                return Event::NotProposed { agent, cycle, reason, dropped };
            }
            Event::Proposed(Proposed {
                agent,
                cycle,
                candidate: candidate.id,
                parents,
                edits,
                dropped,
                reasoning,
                note,
                prompt_letters,
            })
        });
        Ok(told?)
    }

    fn not_proposed(
        &self,
        agent: &str,
        open: &Open,
        reason: String,
        dropped: Vec<Dropped>,
    ) -> Result<(), Halt> {
        let cycle = open.started.cycle;
        self.tell(Event::NotProposed { agent: agent.to_owned(), cycle, reason, dropped })
    }
}

fn tried_before(candidate: &Candidate) -> String {
    format!("{} was tried before", candidate.name())
}

/// The label of the candidate with which a run begins.
pub fn first_label(experiment: &Name) -> String {
    format!("{experiment}-0")
}

/// The label of a candidate that became the best.
pub(crate) fn label(directory: &RunDirectory, known: Option<&Known>) -> Name {
    let experiment = directory.experiment();
    let place = match known {
        Some(known) if directory.kind == Kind::Swarm && known.cycle > 0 => {
            format!("{}-{}", known.agent, known.cycle)
        }
        Some(known) => known.cycle.to_string(),
        None => "0".to_owned(),
    };
    Name::nearest(&format!("{experiment}-{place}"))
}

/// The changes of a candidate, in one line.
pub(crate) fn summary(known: &Known) -> String {
    let words: Vec<String> = known.edits.iter().map(Edit::words).collect();
    words.join(", ")
}
