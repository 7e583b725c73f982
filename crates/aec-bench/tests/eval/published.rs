//! Results published as a dataset on the Hugging Face hub.

use aec_xtest::hub::StandIn;
use serde_json::json;

use crate::eval::world::{World, rows};

fn hub(world: &mut World) -> StandIn {
    let hub = world.runtime.block_on(StandIn::start()).unwrap();
    world.env.set("HF_ENDPOINT", &hub.base_url());
    world.env.set("HF_TOKEN", &hub.with(|state| state.token.clone()));
    hub
}

#[test]
fn an_evaluation_is_saved_and_published_as_the_document_says() {
    let mut world = World::new();
    let hub = hub(&mut world);
    hub.with(|state| state.organisations = vec!["my-org".to_owned()]);
    world.environment("my-env");
    let run = world.run(
        "--json eval run my-env -m gpt-4.1-mini -n 4 -r 2 -s --save-to-hf-hub --hf-hub-dataset-name my-org/my-env-results",
    );
    assert_eq!(run.code, Some(0), "{run:?}");
    let saved = world.saved("my_env", "my-env");
    let (files, private) = hub.with(|state| {
        let dataset = &state.datasets["my-org/my-env-results"];
        (dataset.files.clone(), dataset.private)
    });
    assert!(private, "nobody asked for a public one");
    let (_, sent) = files.iter().find(|(path, _)| path.ends_with("results.jsonl")).unwrap();
    assert_eq!(sent.as_ref(), std::fs::read(saved.join("results.jsonl")).unwrap());
    assert!(files.keys().any(|path| path == "README.md"), "{:?}", files.keys());
    assert!(run.stdout.contains("my-org/my-env-results"), "where it went is told: {run:?}");
}

#[test]
fn a_saved_evaluation_is_published_later_and_again() {
    let mut world = World::new();
    let hub = hub(&mut world);
    world.environment("my-env");
    world.eval("eval run my-env -n 3 -r 2 -s");
    let saved = world.saved("my_env", "my-env");
    let path = saved.to_str().unwrap();
    let pushed = world.env.run(["--json", "eval", "push", path, "--public"]);
    assert_eq!(pushed.code, Some(0), "{pushed:?}");
    let data = pushed.data();
    assert_eq!((&data["rows"], &data["visibility"]), (&json!(rows(&saved).len()), &json!("public")));
    let dataset = data["dataset"].as_str().unwrap();
    let private = hub.with(|state| state.datasets[dataset].private);
    assert!(!private);
    let again = world.env.run(["eval", "push", path, "--hf-hub-dataset-name", dataset]);
    assert!(again.code == Some(4) && again.stderr.contains("R077"), "everybody could read it: {again:?}");
    let again = world.env.run(["eval", "push", path, "--hf-hub-dataset-name", dataset, "--public"]);
    assert_eq!(again.code, Some(0), "{again:?}");
    assert_eq!(hub.with(|state| state.datasets.len()), 1);
    // A token that the hub does not know.
    world.env.set("HF_TOKEN", "hf_nobody");
    let refused = world.env.run(["eval", "push", path]);
    assert_eq!(refused.code, Some(4), "{refused:?}");
    assert!(refused.stderr.contains("fix:") && !refused.stderr.contains("hf_nobody"), "{refused:?}");
    let nothing = world.env.run(["eval", "push", "nothing-like-it"]);
    assert_eq!(nothing.code, Some(3), "{nothing:?}");
}
