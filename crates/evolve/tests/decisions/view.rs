//! The view of a run, from events alone.

use aec_base::digest::Digest;
use aec_base::timestamp::Timestamp;
use aec_evolve::event::{Decided, Ending, Entry, Event, Kind, RetiredFor};
use aec_evolve::gate::{Rejection, Standing};
use aec_evolve::view::View;
use aec_evolve::workspace::candidate::name;

use crate::world::{cycle_started, proposed, started};

const STANDING: Standing =
    Standing { pairs: 20, left_out: 0, difference: 0.5, low: 0.1, high: 0.8, evidence: 500.0 };

fn view(events: Vec<Event>) -> View {
    let first = Event::RunStarted(Box::new(started(Kind::Swarm, &["agent-0", "agent-1"], 20)));
    let events = std::iter::once(first).chain(events);
    let entry = |(at, event)| Entry { sequence: at as u64, at: Timestamp::from_seconds(0), event };
    View::of(&events.enumerate().map(entry).collect::<Vec<_>>(), false).unwrap()
}

fn begin(agent: &str, cycle: u32, parent: Digest) -> Event {
    cycle_started(agent, cycle, parent, Vec::new())
}

fn decide(agent: &str, cycle: u32, candidate: Digest, rejection: Option<Rejection>) -> Event {
    let (agent, against, standing) = (agent.to_owned(), Digest::of(b"baseline"), STANDING);
    Event::Decided(Decided { agent, cycle, candidate, against, rejection, standing })
}

#[test]
fn candidates_stand_below_what_they_were_made_from_whatever_ended_first() {
    let baseline = Digest::of(b"baseline");
    let (accepted, sibling, child) = (Digest::of(b"a"), Digest::of(b"b"), Digest::of(b"c"));
    let view = view(vec![
        begin("agent-0", 1, baseline),
        begin("agent-1", 1, baseline),
        Event::Proposed(proposed("agent-0", 1, accepted, baseline)),
        Event::Proposed(proposed("agent-1", 1, sibling, baseline)),
        decide("agent-0", 1, accepted, None),
        begin("agent-0", 2, accepted),
        Event::Proposed(proposed("agent-0", 2, child, accepted)),
        decide("agent-1", 1, sibling, Some(Rejection::WorseThanParent)),
        decide("agent-0", 2, child, Some(Rejection::WorseThanParent)),
    ]);
    let lineage: Vec<_> =
        view.lineage().into_iter().map(|(depth, candidate)| (depth, candidate.name.clone())).collect();
    let expected = [(0, baseline), (1, accepted), (2, child), (1, sibling)];
    assert_eq!(lineage, expected.map(|(depth, id)| (depth, name(id))));
}

#[test]
fn what_a_stopped_agent_left_is_not_being_measured_any_more() {
    let baseline = Digest::of(b"baseline");
    let left = Digest::of(b"a");
    let mut events =
        vec![begin("agent-0", 1, baseline), Event::Proposed(proposed("agent-0", 1, left, baseline))];
    let status = |events: &[Event]| {
        let view = view(events.to_vec());
        view.candidates.iter().find(|known| known.candidate == left).unwrap().status.clone()
    };
    assert_eq!(status(&events), "being measured");
    let (agent, reason, retired_for) = ("agent-0".to_owned(), "stopped".to_owned(), RetiredFor::Wish);
    events.push(Event::AgentRetired { agent, reason, retired_for });
    assert_eq!(status(&events), "not decided: its agent stopped working");
    events.push(Event::Ended { reason: Ending::Finished, taken: None });
    assert_eq!(status(&events), "not decided: its agent stopped working");
}

#[test]
fn resuming_gives_agents_that_failed_another_try_and_no_others() {
    let retired = |agent: &str, retired_for| Event::AgentRetired {
        agent: agent.to_owned(),
        reason: "it works no more".to_owned(),
        retired_for,
    };
    let events = vec![retired("agent-0", RetiredFor::Failures), retired("agent-1", RetiredFor::Wish)];
    let works = |events: Vec<Event>| -> Vec<bool> {
        view(events).agents.iter().map(|agent| agent.retired.is_none()).collect()
    };
    assert_eq!(works(events.clone()), [false, false]);
    let resumed = Event::Resumed { tool_version: "0".to_owned() };
    assert_eq!(works(events.into_iter().chain([resumed]).collect()), [true, false]);
}
