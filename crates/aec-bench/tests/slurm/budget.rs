//! All shards together share a budget and the limits of endpoints.

use std::time::Instant;

use crate::run::world::{RIGHT, Server, right};
use crate::slurm::cluster::Cluster;
use crate::slurm::project_on;

#[test]
#[cfg_attr(not(slurm), ignore = "needs Slurm as root: apt-get install slurm-wlm munge")]
fn shards_together_never_pass_a_budget() {
    let cluster = Cluster::start();
    let project = project_on(&cluster, 20);
    let server = Server::start(right());
    project.endpoints(&server.url(), &["m"]);
    project.env.write(
        "configs/prices.toml",
        "schema_version = 1\n\n[[price]]\nendpoint = \"m\"\ninput = 100.0\noutput = 100.0\n",
    );
    // The cost of one trial tells how many trials a budget pays for.
    let one =
        project.data("run civil/channel-000 --model m --harness direct -e one")["spent"].as_u64().unwrap();
    assert!(one > 0);
    #[expect(clippy::cast_precision_loss, reason = "a few dollars")]
    let dollars = |micro: u64| micro as f64 / 1e6;
    let cap = one * 30;
    let line = format!(
        "run civil --model m --harness direct -n 10 -e x --parameter max_tokens=64 --engine slurm --shards 4 \
         --concurrency 4 --max-cost {}",
        dollars(cap)
    );
    let stopped = project.json(&line);
    assert_eq!(stopped.code, Some(1), "{stopped:?}");
    let spent = |experiment: &str| -> f64 {
        project.records(experiment).values().filter_map(|record| record.cost.estimated_cost_usd).sum()
    };
    let first = spent("x");
    assert!(first <= dollars(cap) + 1e-9, "{first} of {}", dollars(cap));
    assert!(first >= dollars(cap) * 0.5, "the budget is used: {first} of {}", dollars(cap));
    // The cap applies across submissions as well.
    let again =
        project.json(&format!("run --resume x --engine slurm --shards 4 --max-cost {}", dollars(cap)));
    assert_eq!(again.code, Some(1), "{again:?}");
    assert!(spent("x") <= dollars(cap) + 1e-9, "{}", spent("x"));
    let more =
        project.data(&format!("run --resume x --engine slurm --shards 2 --max-cost {}", dollars(cap * 100)));
    assert_eq!(more["state"], "complete", "{more}");
    project.assert_sound("x");
}

#[test]
#[cfg_attr(not(slurm), ignore = "needs Slurm as root: apt-get install slurm-wlm munge")]
fn limits_of_endpoints_are_divided_among_shards() {
    let cluster = Cluster::start();
    let project = project_on(&cluster, 8);
    let server = Server::saying(&format!("replies:\n- text: '{RIGHT}'\n"));
    project.env.write(
        "configs/endpoints.toml",
        format!(
            "[[endpoint]]\nendpoint_id = \"m\"\nmodel = \"test-model\"\nurl = \"{}/v1\"\nrequests_per_minute = 240\n",
            server.url()
        ),
    );
    // 48 calls at 4 per second, after a burst of 24 that four shards share.
    let begun = Instant::now();
    let ended = project
        .data("run civil --model m --harness direct -n 6 -e x --engine slurm --shards 4 --concurrency 12");
    assert_eq!(ended["state"], "complete", "{ended}");
    assert_eq!(server.count(), 48);
    let seconds = begun.elapsed().as_secs_f64();
    assert!(seconds >= 6.0, "four shards asked more than 240 times a minute: {seconds} s");
}
