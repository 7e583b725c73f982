//! The result of a run: planned against executed trials for each agent, and what the run took.

use aec_base::decimal::rounded;
use aec_base::name::Name;
use aec_base::text::printable;
use aec_judge::verdict::Outcome;
use aec_run::event::{RunEnded, StopReason};
use aec_run::tally::AgentTally;

use super::phrases::stop_reason;
use crate::progress::figures::{UNKNOWN, cost, grouped, many, span};
use crate::table::{Table, paragraph};

pub(crate) fn summary_text(ended: &RunEnded) -> String {
    let mut text = tally_table(&ended.agents, &ended.all);
    text.push('\n');
    text.push_str(&crashes(&ended.agents));
    text.push_str(&format!(
        "{} in {}: {}, {}, {} tokens\n",
        many(ended.recorded, "attempt"),
        span(ended.duration),
        cost(ended.spent.unwrap_or_default(), ended.unpriced),
        count(ended.calls, "call"),
        grouped(ended.tokens),
    ));
    if ended.unsettled_calls > 0 {
        text.push_str(&format!(
            "{}: under way when an earlier session was killed; the provider may have charged for them\n",
            count(ended.unsettled_calls, "unsettled call")
        ));
    }
    if let Some(head) = &ended.head {
        text.push_str(&format!("chain head: {head}\n"));
    }
    if let Some(reason) = &ended.stopped {
        text.push_str(&format!("stopped: {}\n", printable(&stop_reason(reason)).replace('\n', " ")));
    }
    if let Some(command) = ended.all.continuation(&ended.experiment_id) {
        // The cap still applies, so a session within it would end at once.
        let more = match ended.stopped {
            Some(StopReason::Budget(_)) => " --max-cost DOLLARS (more than the cap that is used up)",
            _ => "",
        };
        text.push_str(&format!("continue with: {command}{more}\n"));
    }
    paragraph(&text)
}

/// The columns of the table of planned against executed trials, with one for each outcome.
pub(crate) const TALLY_COLUMNS: [&str; 12] = [
    "agent",
    "planned",
    "executed",
    "scored",
    "agent_fault",
    "infra_fault",
    "verifier_fault",
    "cancelled",
    "unverified",
    "crashed",
    "missing",
    "mean reward",
];

/// Planned against executed trials, with a line for each agent and one for all of them.
pub(crate) fn tally_table(agents: &[AgentTally], all: &AgentTally) -> String {
    let mut table = Table::new(TALLY_COLUMNS)
        .keyed()
        .spare([
            "missing",
            "crashed",
            "unverified",
            "cancelled",
            "verifier_fault",
            "infra_fault",
            "agent_fault",
            "scored",
        ])
        .cut(["agent"]);
    for tally in agents.iter().chain([all]) {
        table.row(cells(tally));
    }
    let mut text = table.render();
    for tally in agents.iter().chain([all]) {
        if let Some(unknown) = tally.unknown {
            let name = tally.agent.as_ref().map_or("all", Name::as_str);
            text.push_str(&format!("*{name}: {}\n", unknown.text(tally.counted())));
        }
    }
    text
}

fn cells(tally: &AgentTally) -> Vec<String> {
    let outcomes = Outcome::ALL.map(|outcome| tally.outcomes.get(&outcome).copied().unwrap_or(0));
    let others = [tally.crashed, tally.missing()];
    let numbers = [tally.planned, tally.executed].into_iter().chain(outcomes).chain(others);
    let mut cells = vec![tally.agent.as_ref().map_or_else(|| "all".to_owned(), ToString::to_string)];
    cells.extend(numbers.map(|number| grouped(number as u64)));
    cells.push(match tally.mean_reward() {
        Some(mean) => {
            let mark = if tally.unknown.is_some() { "*" } else { "" };
            format!("{}{mark} of {}", rounded(mean, 4), grouped(tally.counted() as u64))
        }
        None => format!("{UNKNOWN} of 0"),
    });
    cells
}

/// What the program of each agent printed when it crashed, as it wrote it.
fn crashes(agents: &[AgentTally]) -> String {
    let mut text = String::new();
    for tally in agents {
        let (Some(agent), Some(said)) = (&tally.agent, &tally.traceback) else { continue };
        let crashed = many(tally.crashed, "trial");
        text.push_str(&format!("the program of {agent} crashed in {crashed}; it wrote last:\n"));
        for line in said.lines() {
            text.push_str(&format!("    {}\n", printable(line)));
        }
        text.push('\n');
    }
    text
}

fn count(number: u64, noun: &str) -> String {
    many(usize::try_from(number).unwrap_or(usize::MAX), noun)
}

#[cfg(test)]
mod tests {
    use aec_base::digest::Digest;
    use aec_model::money::MicroDollars;

    use super::super::samples;
    use super::*;

    fn shown(ended: &RunEnded) -> String {
        anstream::adapter::strip_str(&summary_text(ended)).to_string()
    }

    #[test]
    fn every_outcome_has_its_column() {
        assert_eq!(TALLY_COLUMNS[3..9], Outcome::ALL.map(Outcome::name));
    }

    #[test]
    fn a_run_that_is_done() {
        insta::assert_snapshot!(shown(&samples::run_ended()));
    }

    #[test]
    fn a_run_that_goes_on_later() {
        let mut ended = samples::run_ended();
        ended.all.add(Outcome::InfraFault, None);
        ended.all.planned = 60;
        ended.unsettled_calls = 2;
        ended.head = Some(Digest::of(b"head"));
        ended.stopped = Some(StopReason::Budget("no room for \u{1b}[31mthis call".to_owned()));
        insta::assert_snapshot!(shown(&ended));
    }

    #[test]
    fn what_has_no_price_is_not_free() {
        let cost_of = |spent, unpriced| {
            let text = shown(&RunEnded { spent, unpriced, ..samples::run_ended() });
            let line = text.lines().find(|line| line.starts_with("50 attempts")).unwrap();
            line.split(", ").next().unwrap().split(": ").nth(1).unwrap().to_owned()
        };
        assert_eq!(cost_of(None, 2), "unpriced");
        assert_eq!(cost_of(Some(MicroDollars(10_000)), 2), "$0.01 and 2 unpriced");
        assert_eq!(cost_of(Some(MicroDollars::ZERO), 0), "$0.00");
    }

    #[test]
    fn an_empty_run_has_no_mean() {
        let ended = RunEnded { agents: Vec::new(), all: AgentTally::default(), ..samples::run_ended() };
        let text = shown(&ended);
        assert!(text.contains("— of 0"), "{text}");
        assert!(!text.contains("--resume"), "{text}");
    }
}
