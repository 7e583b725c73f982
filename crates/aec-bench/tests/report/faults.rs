//! Faults in reports: per agent, beside the mean, the same everywhere, and a clear difference between agents is said.

use aec_judge::settle::outcome::{Boundary, Fault};
use aec_judge::verdict::Outcome;
use aec_ledger::example;
use serde_json::{Value, json};

use crate::report::world::{World, of_agent, of_task, rewarded};

/// An agent that leaves its mean where it would lose, and one that does not: 30 trials each.
fn coin_and_honest() -> World {
    let mut world = World::new();
    for number in 0..30 {
        let won = number >= 7;
        for agent in ["coin", "honest"] {
            world.add("x", |record| {
                of_task(record, &format!("beam-{number}"));
                of_agent(record, agent);
                rewarded(record, if won { 1.0 } else { 0.0 });
                if agent == "coin" && !won {
                    *record = example::with_outcome(record.clone(), Outcome::VerifierFault);
                }
                if agent == "honest" && number == 0 {
                    let fault =
                        Fault::lasting(Boundary::Harness, Some("crashed"), "it ended with exit code 1");
                    record.fault = Some(fault);
                }
            });
        }
    }
    world
}

fn named<'a>(rows: &'a Value, key: &str, name: &str) -> &'a Value {
    rows.as_array().unwrap().iter().find(|row| row[key] == name).unwrap()
}

/// The agent with the faults stood first with 1.000, and nothing said why.
#[test]
fn faults_stand_beside_the_mean_and_a_clear_difference_is_said() {
    let world = coin_and_honest();
    let data = world.data("evaluate -e x");
    let board = world.data("report leaderboard -e x");
    for (rows, key) in [(&data["by"]["agent"], "name"), (&board["rows"], "agent")] {
        let (coin, honest) = (named(rows, key, "coin"), named(rows, key, "honest"));
        assert_eq!(coin["faults"], json!({ "uncounted": 7, "agents": 0, "crashed": 0 }));
        assert_eq!(honest["faults"], json!({ "uncounted": 0, "agents": 1, "crashed": 1 }));
        assert_eq!(coin["mean_reward"], 1.0);
        // With faults as 0 they are the same.
        let means = [coin, honest].map(|row| row["denominators"]["as_run"].as_f64().unwrap());
        assert!(means.iter().all(|mean| (mean - 23.0 / 30.0).abs() < 1e-12), "{means:?}");
    }
    for report in [&data, &board] {
        let rate = named(&report["fault_rates"], "agent", "coin");
        assert_eq!(
            (&rate["faults"], &rate["trials"], &rate["flagged"]),
            (&json!(7), &json!(30), &json!(true))
        );
        // scipy.stats.fisher_exact([[7, 23], [0, 30]])
        assert!((rate["p_value"].as_f64().unwrap() - 0.010_542_535_074_203_227).abs() < 1e-12, "{rate}");
        assert_eq!(named(&report["fault_rates"], "agent", "honest")["flagged"], false);
        let notes = report["notes"].to_string();
        assert!(notes.contains("coin has more faults") && notes.contains("7 of 30 trials against 0 of 30"));
    }
    for line in ["evaluate -e x", "report leaderboard -e x"] {
        let text = world.run(line).stdout;
        for wanted in ["FAULTS AS 0", "CRASHED", "0.767", "Note: coin has more faults"] {
            assert!(text.contains(wanted), "{line}: {wanted} is not in\n{text}");
        }
    }
    let page = world.run("evaluate -e x --report r.html --no-traces");
    assert_eq!(page.code, Some(0), "{page:?}");
    let page = world.env.read("r.html");
    assert!(
        page.contains("<th class=\"n\">faults</th>") && page.contains("coin has more faults"),
        "the page"
    );
}

#[test]
fn a_comparison_tells_the_faults_of_both() {
    let world = coin_and_honest();
    let compared = world.run("--json report compare x/coin x/honest");
    assert_eq!(compared.code, Some(1), "neither is shown to be better: {compared:?}");
    let data = &compared.envelope()["data"];
    let rate = named(&data["fault_rates"], "agent", "x/coin");
    assert_eq!((&rate["faults"], &rate["flagged"]), (&json!(7), &json!(true)), "{data}");
    let text = world.run("report compare x/coin x/honest").stdout;
    assert!(text.contains("faults of x/coin that are not part of its mean: 7 of 30"), "{text}");
    assert!(text.contains("such a difference in faults by chance: p 0.011"), "{text}");
    assert!(text.contains("Note: x/coin has more faults"), "{text}");
}
