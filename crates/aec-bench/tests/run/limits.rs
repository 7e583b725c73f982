//! A limit in money that no call fits into, or whose model has no price, is refused before anything is run.

use crate::run::world::{Project, Server, right};

/// A model whose price nobody knows, and one of the price list.
const UNPRICED: &str = "nobody-knows";

fn project() -> (Project, Server) {
    let project = Project::with_tasks(2);
    let server = Server::start(right());
    project.env.write(
        "configs/endpoints.toml",
        ["nobody-knows", "gpt-4.1"]
            .map(|model| {
                format!(
                    "[[endpoint]]\nendpoint_id = \"{model}\"\nmodel = \"{model}\"\nurl = \"{}/v1\"\n",
                    server.url()
                )
            })
            .concat(),
    );
    // The endpoint of this name has the price that the list has for the model.
    project.env.write(
        "configs/prices.toml",
        "schema_version = 1\n[[price]]\nendpoint = \"gpt-4.1\"\ninput = 2.0\noutput = 8.0\n",
    );
    (project, server)
}

/// Before, a trial with such a limit was scored 0.0 without a call, and the program exited with 0.
#[test]
fn limits_that_allow_no_call_are_refused_everywhere() {
    let (project, server) = project();
    let own = |file: &str, text: &str| {
        for task in ["000", "001"] {
            project.env.write(format!("tasks/civil/channel-{task}/{file}"), text);
        }
    };
    let refused = |line: &str, why: &str| {
        for command in
            [format!("run {line} -e x"), format!("run {line} -e x --dry-run"), format!("plan {line} -e x")]
        {
            let run = project.json(&command);
            let errors = run.errors();
            let found = errors.iter().find(|(id, _)| id == "E055");
            assert_eq!(run.code, Some(3), "{command}: {run:?}");
            assert!(found.is_some_and(|(_, what)| what.contains(why)), "{command}: {run:?}");
        }
        assert!(!project.ledger("x").exists(), "{line}");
    };
    let settings = project.env.read("aec-bench.toml");
    for (model, limit, why) in
        [(UNPRICED, "1.0", "has no price"), ("gpt-4.1", "0.000001", "does not cover the call")]
    {
        let agent = |harness: &str| format!("civil --model {model} --harness {harness}");
        for harness in ["direct", "tool_loop", "rlm", "lambda_rlm"] {
            refused(&format!("{} --max-cost {limit}", agent(harness)), why);
            project.env.write("aec-bench.toml", format!("{settings}\n[budget]\ntrial_usd = {limit}\n"));
            refused(&agent(harness), why);
            project.env.write("aec-bench.toml", &settings);
        }
        for harness in ["rlm", "lambda_rlm"] {
            refused(&format!("{} --parameter max_cost_usd={limit}", agent(harness)), why);
        }
        own("rlm.toml", &format!("[guardrails]\nmax_budget_usd = {limit}\n"));
        refused(&agent("rlm"), why);
        own("rlm.toml", "");
    }
    assert_eq!(server.count(), 0, "no model was called");
    // A second model of the task's file is asked about as well.
    own(
        "rlm.toml",
        &format!("[guardrails]\nmax_budget_usd = 5.0\n[execution]\nsubcall_model = \"{UNPRICED}\"\n"),
    );
    refused("civil --model gpt-4.1 --harness rlm", "has no price");
    own("rlm.toml", "");
    // Whoever allows models without a price means it, and limits that allow a call are nobody's business.
    for line in [
        format!("run civil --model {UNPRICED} --harness direct --max-cost 1 --allow-unpriced -e allowed"),
        "run civil --model gpt-4.1 --harness direct --max-cost 1 -e enough".to_owned(),
    ] {
        let run = project.json(&line);
        assert_eq!(run.code, Some(0), "{line}: {run:?}");
    }
    assert_eq!(server.count(), 4);
}

#[test]
fn evaluations_and_evolutions_refuse_them_too() {
    let (project, server) = project();
    let exported =
        project.run("prime export --name aec-limits --task civil/channel-000 --output-dir packages");
    assert_eq!(exported.code, Some(0), "{exported:?}");
    let line = format!("eval run ./packages/aec_limits -m {UNPRICED} -n 1 -r 1 --max-cost 1");
    let run = project.json(&line);
    assert_eq!(run.code, Some(3), "{run:?}");
    assert!(run.errors().iter().any(|(id, what)| id == "E055" && what.contains("has no price")), "{run:?}");
    assert_eq!(server.count(), 0);
}
