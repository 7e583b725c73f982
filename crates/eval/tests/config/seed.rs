//! The files and command lines of the documentation, as written there.
use std::path::{Path, PathBuf};

use aec_eval::config::{EvalOptions, Limit, ModelChoice, parse_eval_file, parse_json_object};
use serde_json::json;

const MY_BENCHMARK: &str = r#"# Global defaults
model = "gpt-4.1-mini"
num_examples = 50
rollouts_per_example = 3

[[eval]]
env_id = "gsm8k"
num_examples = 100  # Override global

[[eval]]
env_id = "math-python"

[[eval]]
env_id = "reverse-text"
rollouts_per_example = 5  # Override global
"#;

const DETAILED: &str = r#"model = "gpt-4.1-mini"

[[eval]]
env_id = "math-python"
num_examples = 50

[eval.env_args]
difficulty = "hard"
split = "test"

[[eval]]
env_id = "wiki-search"
num_examples = 30

[eval.env_args]
max_turns = 15
judge_model = "gpt-4.1-mini"
"#;

const MULTI_MODEL: &str = r#"endpoints_path = "./configs/endpoints.toml"

[[eval]]
env_id = "gsm8k"
endpoint_id = "gpt-4.1-mini"
num_examples = 100

[[eval]]
env_id = "gsm8k"
endpoint_id = "qwen3-235b-i"
num_examples = 100

[[eval]]
env_id = "gsm8k"
endpoint_id = "claude-sonnet"
num_examples = 100
"#;

const COMPARE: &str = r#"num_examples = 50
rollouts_per_example = 3

[[eval]]
env_id = "gsm8k"
endpoint_id = "gpt-4.1-mini"

[[eval]]
env_id = "gsm8k"
endpoint_id = "qwen3-235b-i"

[[eval]]
env_id = "gsm8k"
endpoint_id = "claude-sonnet"
"#;

fn read(name: &str, text: &str) -> Vec<EvalOptions> {
    parse_eval_file(Path::new(name), text).unwrap().evaluations
}

fn options() -> EvalOptions {
    EvalOptions::default()
}

#[test]
fn basic_multi_environment_file() {
    let common = EvalOptions {
        model: Some("gpt-4.1-mini".into()),
        num_examples: Some(50),
        rollouts_per_example: Some(3),
        ..options()
    };
    let expected = vec![
        EvalOptions { env_id: Some("gsm8k".into()), num_examples: Some(100), ..common.clone() },
        EvalOptions { env_id: Some("math-python".into()), ..common.clone() },
        EvalOptions { env_id: Some("reverse-text".into()), rollouts_per_example: Some(5), ..common },
    ];
    assert_eq!(read("configs/eval/my-benchmark.toml", MY_BENCHMARK), expected);
}

#[test]
fn arguments_belong_to_the_evaluation_above_them() {
    let evaluations = read("configs/eval/detailed.toml", DETAILED);
    let arguments: Vec<_> = evaluations.iter().map(|options| json!(options.env_args)).collect();
    assert_eq!(
        arguments,
        [
            json!({"difficulty": "hard", "split": "test"}),
            json!({"max_turns": 15, "judge_model": "gpt-4.1-mini"}),
        ]
    );
    assert_eq!(evaluations[0].num_examples, Some(50));
    assert_eq!(evaluations[1].env_id.as_deref(), Some("wiki-search"));
}

#[test]
fn endpoints_are_looked_up_beside_the_file() {
    let evaluations = read("configs/eval/multi-model.toml", MULTI_MODEL);
    let ids: Vec<_> = evaluations.iter().filter_map(|options| options.endpoint_id.as_deref()).collect();
    assert_eq!(ids, ["gpt-4.1-mini", "qwen3-235b-i", "claude-sonnet"]);
    for options in evaluations {
        let expected = PathBuf::from("configs/eval/./configs/endpoints.toml");
        assert_eq!(options.endpoints_path, Some(expected));
        assert_eq!(options.resolve().unwrap().num_examples, Limit::AtMost(100));
    }
}

#[test]
fn endpoints_of_the_working_directory_are_found_when_there_are_none_beside_the_file() {
    let text = "endpoints_path = \"tests/config/seed.rs\"\n[[eval]]\nenv_id = \"a\"\n";
    let evaluations = read("configs/eval/a.toml", text);
    assert_eq!(evaluations[0].endpoints_path, Some(PathBuf::from("tests/config/seed.rs")));
    let text = "endpoints_path = \"/etc/endpoints.toml\"\n[[eval]]\nenv_id = \"a\"\n";
    let evaluations = read("configs/eval/a.toml", text);
    assert_eq!(evaluations[0].endpoints_path, Some(PathBuf::from("/etc/endpoints.toml")));
}

#[test]
fn comparison_of_models() {
    let settings: Vec<_> = read("configs/eval/compare.toml", COMPARE)
        .into_iter()
        .map(|options| options.resolve().unwrap())
        .collect();
    let models: Vec<_> = settings.iter().map(|settings| settings.model.clone()).collect();
    let endpoint = |id: &str| ModelChoice::Endpoint(id.to_owned());
    assert_eq!(models, [endpoint("gpt-4.1-mini"), endpoint("qwen3-235b-i"), endpoint("claude-sonnet")]);
    for settings in settings {
        assert_eq!((settings.num_examples, settings.rollouts_per_example), (Limit::AtMost(50), 3));
    }
}

#[test]
fn json_of_the_command_lines() {
    for text in [
        r#"{"temperature": 0.7, "top_p": 0.9, "presence_penalty": 0.1}"#,
        r#"{"difficulty": "hard", "num_examples": 100, "seed": 123}"#,
        r#"{"max_turns": 20}"#,
        r#"{"max_turns": 15, "system_prompt": "Custom prompt"}"#,
    ] {
        let map = parse_json_object("-S", text).unwrap();
        assert_eq!(json!(map), serde_json::from_str::<serde_json::Value>(text).unwrap());
    }
}
