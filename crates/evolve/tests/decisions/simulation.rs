//! Thousands of simulated runs: the same decisions as in real ones, with rewards drawn from a rule that only the test
//! knows. They measure the claims about the error rate and about finding improvements.

use aec_base::digest::{Digest, Hasher};
use aec_evolve::config::Strategy;
use aec_evolve::edit::Scope;
use aec_evolve::event::{Arm, CycleStarted, Decided, Event, Kind, Measured, Purpose, Way};
use aec_evolve::run::Settings;
use aec_evolve::state::State;
use aec_evolve::step::{Todo, enter_test, todo};
use aec_evolve::strategy::{Choice, Next, next};

use crate::world::{AGENT, proposed, seen, settings, started, tasks};

/// `SplitMix64`: the same random numbers everywhere.
struct Luck(u64);

impl Luck {
    fn word(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    #[expect(clippy::cast_precision_loss, reason = "53 bits fit")]
    fn unit(&mut self) -> f64 {
        (self.word() >> 11) as f64 / 9_007_199_254_740_992.0
    }

    /// The reward of a trial: the share of five fields that are right, or all or nothing.
    fn reward(&mut self, skill: f64, whole: bool) -> f64 {
        if whole {
            return f64::from(self.unit() < skill);
        }
        f64::from((0..5).map(|_| u32::from(self.unit() < skill)).sum::<u32>()) / 5.0
    }
}

/// The true values of candidates.
struct World {
    luck: Luck,
    /// The skill of the candidate with which the run begins.
    skill: f64,
    /// How often a change is an improvement, and by how much.
    good: f64,
    gain: f64,
    whole: bool,
    skills: std::collections::HashMap<Digest, f64>,
    trials: usize,
}

impl World {
    fn child(&mut self, parent: Digest) -> Digest {
        let mut hasher = Hasher::default();
        hasher.part(parent.bytes());
        hasher.part(&self.luck.word().to_le_bytes());
        let id = hasher.finish();
        let gain = if self.luck.unit() < self.good { self.gain } else { 0.0 };
        let skill = (self.skills.get(&parent).copied().unwrap_or(self.skill) + gain).min(1.0);
        self.skills.insert(id, skill);
        id
    }

    fn arm(&mut self, candidate: Digest, tasks: usize) -> Arm {
        let skill = self.skills.get(&candidate).copied().unwrap_or(self.skill);
        let seen = (0..tasks)
            .map(|_| {
                self.trials += 1;
                let reward = self.luck.reward(skill, self.whole);
                seen(self.trials, Some(reward))
            })
            .collect();
        Arm { candidate, seen }
    }
}

/// Simulates a whole run and returns its final state.
fn run(world: &mut World, settings: &Settings) -> State {
    let mut state = State::new(started(Kind::Evolution, &[AGENT], settings.horizon()));
    loop {
        let open = state.lanes[AGENT].open.clone();
        let event = match open {
            None => match next(&state, settings, AGENT) {
                Next::Cycle(Choice { way, parent, partner, .. }) => Event::CycleStarted(CycleStarted {
                    agent: AGENT.to_owned(),
                    cycle: state.lanes[AGENT].cycle + 1,
                    way,
                    parent,
                    partner,
                    scope: Scope::Targeted,
                    tasks: tasks(&state, settings.batch_size as usize),
                }),
                Next::Widen => Event::Widened { agent: AGENT.to_owned(), cycle: 0 },
                _ => return state,
            },
            Some(open) => {
                let cycle = open.started.cycle;
                let measured = |purpose, tasks, arms| {
                    Event::Measured(Measured {
                        agent: AGENT.to_owned(),
                        cycle,
                        purpose,
                        tasks,
                        arms,
                        taken: None,
                    })
                };
                let candidate =
                    open.proposed.as_ref().map_or(open.started.parent, |proposed| proposed.candidate);
                match todo(&open, settings) {
                    Todo::Learn => {
                        let arm = world.arm(open.started.parent, open.started.tasks.len());
                        measured(Purpose::Learn, open.started.tasks.clone(), vec![arm])
                    }
                    Todo::Propose => {
                        let child = world.child(open.started.parent);
                        Event::Proposed(proposed(AGENT, cycle, child, open.started.parent))
                    }
                    Todo::Screen => {
                        let arm = world.arm(candidate, open.started.tasks.len());
                        measured(Purpose::Screen, open.started.tasks.clone(), vec![arm])
                    }
                    Todo::EnterTest => enter_test(&state, &settings.acceptance, &open, candidate),
                    Todo::Look(count) => {
                        let against = open.test.as_ref().unwrap().against;
                        let arms = vec![world.arm(candidate, count), world.arm(against, count)];
                        measured(Purpose::Accept, tasks(&state, count), arms)
                    }
                    Todo::Decide(rejection, standing) => Event::Decided(Decided {
                        agent: AGENT.to_owned(),
                        cycle,
                        candidate,
                        against: open.test.as_ref().unwrap().against,
                        rejection,
                        standing,
                    }),
                }
            }
        };
        state.apply(&event);
    }
}

fn world(seed: u64, skill: f64, good: f64, gain: f64, whole: bool) -> World {
    World {
        luck: Luck(seed.wrapping_mul(0x2545_f491_4f6c_dd1d)),
        skill,
        good,
        gain,
        whole,
        skills: std::collections::HashMap::new(),
        trials: 0,
    }
}

#[test]
fn where_nothing_helps_hardly_any_run_accepts_anything() {
    for strategy in [Strategy::HillClimb, Strategy::Qd] {
        for whole in [false, true] {
            let settings = settings(strategy);
            let mut accepting = 0;
            for seed in 0..200 {
                let state = run(&mut world(seed + 1, 0.5, 0.0, 0.0, whole), &settings);
                assert!(state.cycles.len() >= 10 || state.lanes[AGENT].dry >= 5);
                accepting += usize::from(!state.accepted.is_empty());
            }
            assert!(accepting <= 15, "{accepting} of 200 runs with {} accepted a change", strategy.name());
        }
    }
}

#[test]
fn an_improvement_is_found_and_kept() {
    let settings = settings(Strategy::HillClimb);
    let mut found = 0;
    for seed in 0..50 {
        let mut world = world(seed + 1, 0.4, 0.3, 0.4, false);
        let state = run(&mut world, &settings);
        let best = world.skills.get(&state.champion).copied().unwrap_or(0.4);
        found += usize::from(best > 0.7);
        // Accepted candidates must really be better, with few exceptions, which are counted here by their true values.
        for accepted in &state.accepted {
            let parent = state.candidates[accepted].parents[0];
            let gain = world.skills[accepted] - world.skills.get(&parent).copied().unwrap_or(0.4);
            assert!(gain > 0.01, "seed {seed} accepted a gain of {gain}");
        }
    }
    // A run without a good proposal in ten has a probability of 3 %.
    assert!(found >= 40, "{found} of 50");
}

#[test]
fn a_search_over_an_archive_finds_it_too() {
    let settings = settings(Strategy::Qd);
    let found = (0..30)
        .filter(|seed| {
            let mut world = world(seed + 100, 0.3, 0.4, 0.5, false);
            let state = run(&mut world, &settings);
            world.skills.get(&state.champion).copied().unwrap_or(0.3) > 0.7
        })
        .count();
    assert!(found >= 20, "{found} of 30");
}

#[test]
fn a_run_is_what_its_events_add_up_to() {
    // A crossing or a rescue is chosen only if there is a second candidate.
    let settings = settings(Strategy::Qd);
    let state = run(&mut world(5, 0.4, 0.3, 0.4, false), &settings);
    assert!(state.cycles.iter().all(|cycle| cycle.way == Way::Mutation || cycle.cycle > 1));
    assert!(state.tests <= settings.horizon());
}
