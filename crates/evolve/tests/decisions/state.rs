//! The state after events, case by case.

use aec_base::digest::Digest;
use aec_evolve::config::Strategy;
use aec_evolve::edit::Scope;
use aec_evolve::event::{Arm, Decided, Event, Kind, Measured, Phase, Purpose, Role, TaskRef, Way};
use aec_evolve::gate::{Bar, Rejection, Standing};
use aec_evolve::state::{State, Status};
use aec_evolve::strategy::{Next, next};

use crate::world::{cycle_started, proposed, seen, settings, started, tasks};

const BASELINE: &[u8] = b"baseline";

fn swarm() -> State {
    State::new(started(Kind::Swarm, &["agent-0", "agent-1"], 20))
}

fn begin(state: &mut State, agent: &str, parent: Digest) -> Vec<TaskRef> {
    let cycle = state.lanes[agent].cycle + 1;
    let tasks = tasks(state, 2);
    state.apply(&cycle_started(agent, cycle, parent, tasks.clone()));
    tasks
}

fn measure(state: &mut State, agent: &str, purpose: Purpose, tasks: Vec<TaskRef>, arms: &[(Digest, f64)]) {
    let mut number = state.candidates.values().map(|known| known.tally.trials).sum::<usize>() * 7 + 1;
    let arms = arms
        .iter()
        .map(|(candidate, reward)| {
            let seen = tasks
                .iter()
                .map(|_| {
                    number += 1;
                    seen(number, Some(*reward))
                })
                .collect();
            Arm { candidate: *candidate, seen }
        })
        .collect();
    let cycle = state.lanes.get(agent).map_or(0, |progress| progress.cycle);
    state.apply(&Event::Measured(Measured {
        agent: agent.to_owned(),
        cycle,
        purpose,
        tasks,
        arms,
        taken: None,
    }));
}

const STANDING: Standing =
    Standing { pairs: 20, left_out: 0, difference: 0.5, low: 0.1, high: 0.8, evidence: 500.0 };

fn propose(state: &mut State, agent: &str, word: &[u8], parent: Digest) -> Digest {
    let candidate = Digest::of(word);
    let cycle = state.lanes[agent].cycle;
    state.apply(&Event::Proposed(proposed(agent, cycle, candidate, parent)));
    candidate
}

fn enter(state: &mut State, agent: &str, candidate: Digest, against: Digest) {
    let bar = Bar { test: state.tests + 1, needed: 100.0, threshold: 0.01, max_tasks: 100 };
    let cycle = state.lanes[agent].cycle;
    state.apply(&Event::TestStarted { agent: agent.to_owned(), cycle, candidate, against, bar });
}

fn decide(state: &mut State, agent: &str, candidate: Digest, against: Digest, rejection: Option<Rejection>) {
    let cycle = state.lanes[agent].cycle;
    let standing = STANDING;
    let agent = agent.to_owned();
    state.apply(&Event::Decided(Decided { agent, cycle, candidate, against, rejection, standing }));
}

#[test]
fn who_wins_against_somebody_who_is_not_the_best_any_more_is_tested_again() {
    let mut state = swarm();
    let baseline = Digest::of(BASELINE);
    for (agent, word) in [("agent-0", b"a"), ("agent-1", b"b")] {
        let tasks = begin(&mut state, agent, baseline);
        measure(&mut state, agent, Purpose::Learn, tasks.clone(), &[(baseline, 0.2)]);
        let child = propose(&mut state, agent, word, baseline);
        measure(&mut state, agent, Purpose::Screen, tasks, &[(child, 0.8)]);
        enter(&mut state, agent, child, baseline);
    }
    let (first, second) = (Digest::of(b"a"), Digest::of(b"b"));
    decide(&mut state, "agent-0", first, baseline, None);
    assert_eq!(state.champion, first);
    assert!(state.lanes["agent-0"].open.is_none());
    decide(&mut state, "agent-1", second, baseline, None);
    assert_eq!(state.champion, first, "it was not shown to be better than the best");
    let open = state.lanes["agent-1"].open.as_ref().expect("its cycle goes on");
    assert!(open.test.is_none());
    enter(&mut state, "agent-1", second, first);
    decide(&mut state, "agent-1", second, first, Some(Rejection::NotShown));
    assert_eq!(state.champion, first);
    assert_eq!(state.candidates[&second].status, Status::Rejected(Rejection::NotShown));
    assert_eq!(state.buried, [second]);
    assert!(state.lanes["agent-1"].open.is_none());
    assert_eq!(state.cycles.len(), 2);
}

#[test]
fn tasks_of_tests_are_learned_from_once() {
    let mut state = swarm();
    let baseline = Digest::of(BASELINE);
    let learned = begin(&mut state, "agent-0", baseline);
    measure(&mut state, "agent-0", Purpose::Learn, learned.clone(), &[(baseline, 0.2)]);
    let child = propose(&mut state, "agent-0", b"a", baseline);
    measure(&mut state, "agent-0", Purpose::Screen, learned.clone(), &[(child, 0.8)]);
    enter(&mut state, "agent-0", child, baseline);
    let fresh = tasks(&state, 3);
    assert!(fresh.iter().all(|task| !learned.contains(task)));
    measure(&mut state, "agent-0", Purpose::Accept, fresh.clone(), &[(child, 0.8), (baseline, 0.2)]);
    assert_eq!(state.known_tasks(baseline, 10), fresh);
    assert_eq!(state.known_tasks(baseline, 2), fresh[..2]);
    decide(&mut state, "agent-0", child, baseline, Some(Rejection::NoGain));
    let supplied = state.used.supplied.clone();
    state.apply(&cycle_started("agent-1", 1, baseline, fresh[..2].to_vec()));
    assert_eq!(state.used.supplied, supplied, "they were not taken from those to learn from");
    assert_eq!(state.known_tasks(baseline, 10), fresh[2..]);
    assert_eq!(state.nearest_miss(), Some(child));
}

#[test]
fn what_was_asked_and_never_answered_is_spent() {
    let mut state = swarm();
    let asked = |agent: &str, usd: f64| Event::Asked {
        agent: agent.to_owned(),
        cycle: 1,
        role: Role::Evolver,
        model: "m".to_owned(),
        at_most_usd: Some(usd),
        at_most_tokens: 100,
    };
    state.apply(&asked("agent-0", 0.5));
    state.apply(&asked("agent-1", 0.25));
    state.apply(&Event::Answered {
        agent: "agent-0".to_owned(),
        cycle: 1,
        role: Role::Evolver,
        cost_usd: Some(0.01),
        unpriced_calls: 0,
        tokens: 7,
    });
    assert!((state.spend().usd - 0.01).abs() < 1e-12);
    state.settle_open_calls();
    assert!((state.spend().usd - 0.26).abs() < 1e-12, "{}", state.spend().usd);
    assert_eq!(state.spend().tokens, 107);
    state.settle_open_calls();
    assert_eq!(state.spend().tokens, 107, "once");
}

#[test]
fn a_trial_counts_once_however_often_it_is_asked_for() {
    let mut state = swarm();
    let baseline = Digest::of(BASELINE);
    let tasks = begin(&mut state, "agent-0", baseline);
    let arm = Arm { candidate: baseline, seen: vec![seen(1, Some(0.5)), seen(2, None)] };
    for _ in 0..2 {
        state.apply(&Event::Measured(Measured {
            agent: "agent-0".to_owned(),
            cycle: 1,
            purpose: Purpose::Learn,
            tasks: tasks.clone(),
            arms: vec![arm.clone()],
            taken: None,
        }));
    }
    let known = &state.candidates[&baseline];
    assert_eq!((known.tally.trials, known.tally.rewards.len()), (2, 1));
    assert!((state.trials.usd - 0.02).abs() < 1e-12);
    assert_eq!(state.archive.cells.len(), 1, "the beginning is in the archive once it was measured");
}

#[test]
fn searches_widen_then_end_and_agents_pivot() {
    let mut settings = settings(Strategy::HillClimb);
    settings.stagnation_window = Some(2);
    let mut state = State::new(started(Kind::Evolution, &["evolve"], 10));
    let baseline = Digest::of(BASELINE);
    let fail = |state: &mut State| {
        begin(state, "evolve", baseline);
        let cycle = state.lanes["evolve"].cycle;
        let (agent, reason) = ("evolve".to_owned(), "nothing".to_owned());
        state.apply(&Event::NotProposed { agent, cycle, reason, dropped: Vec::new() });
    };
    fail(&mut state);
    assert!(matches!(next(&state, &settings, "evolve"), Next::Cycle(_)));
    fail(&mut state);
    assert_eq!(next(&state, &settings, "evolve"), Next::Widen);
    state.apply(&Event::Widened { agent: "evolve".to_owned(), cycle: 2 });
    let Next::Cycle(choice) = next(&state, &settings, "evolve") else { panic!("it goes on") };
    assert_eq!(choice.scope, Scope::Comprehensive);
    fail(&mut state);
    fail(&mut state);
    assert_eq!(next(&state, &settings, "evolve"), Next::Stagnated);
    settings.stagnation_window = None;
    settings.pivot_after = Some(2);
    assert!(matches!(next(&state, &settings, "evolve"), Next::Pivot(Way::Crossover, _)));
    state.apply(&Event::Pivoted {
        agent: "evolve".to_owned(),
        cycle: 4,
        way: Way::Crossover,
        parent: baseline,
    });
    assert!(matches!(next(&state, &settings, "evolve"), Next::Cycle(_)));
    state.apply(&Event::PhaseChanged { phase: Phase::WindingDown });
    let Next::Cycle(choice) = next(&state, &settings, "evolve") else { panic!("it goes on") };
    assert_eq!((choice.scope, choice.parent, choice.way), (Scope::Minimal, baseline, Way::Mutation));
    state.apply(&Event::PhaseChanged { phase: Phase::Final });
    assert_eq!(next(&state, &settings, "evolve"), Next::NothingNew);
    settings.max_cycles = 4;
    state.phase = Phase::Exploring;
    assert_eq!(next(&state, &settings, "evolve"), Next::Finished);
}
