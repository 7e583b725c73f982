//! Files of evaluations: every rule of the format.

use std::path::{Path, PathBuf};

use crate::config::common::{problems, read, shown};
use aec_eval::config::{EvalOptions, Switch, Workers, parse_eval_file, read_eval_file};
use proptest::prelude::*;
use serde_json::{Value, json};

fn one(text: &str) -> EvalOptions {
    let mut evaluations = read(text);
    assert_eq!(evaluations.len(), 1);
    evaluations.remove(0)
}

fn pairs(headers: Option<aec_eval::config::Headers>) -> Vec<(String, String)> {
    headers.unwrap_or_default().into_iter().collect()
}

#[test]
fn every_key_is_read() {
    let options = one(r#"
        [[eval]]
        env_id = "a"
        name = "hard-a"
        env_args = { x = 1, when = 2026-01-02, list = [1, { y = 2.5 }] }
        extra_env_kwargs = { max_turns = 20 }
        env_dir_path = "envs"
        endpoints_path = "/endpoints.toml"
        provider = "openai"
        model = "m"
        api_client_type = "openai_chat_completions"
        api_key_var = "MY_KEY"
        api_base_url = "http://localhost:8000/v1"
        headers = { X-A = "1" }
        headers_from_state = { X-S = "example_id" }
        sampling_args = { top_p = 0.5 }
        max_tokens = 10
        temperature = 1
        num_examples = -1
        rollouts_per_example = 2
        max_concurrent = 0
        max_concurrent_generation = 3
        max_concurrent_scoring = 4
        independent_scoring = true
        no_interleave_scoring = true
        max_retries = 0
        num_workers = "auto"
        timeout = 2.5
        python = "python3"
        output_dir = "out"
        state_columns = ["a", "b"]
        save_results = true
        resume = true
        resume_path = "out/x"
        save_to_hf_hub = false
        hf_hub_dataset_name = "o/d"
        shuffle = true
        shuffle_seed = 5
        seed = -5
        verbose = true
        disable_tui = true
        disable_env_server = true
        heartbeat_url = "https://status.example.com/ping"
        ledger = "exp"
    "#);
    let expected = EvalOptions {
        env_id: Some("a".into()),
        name: Some("hard-a".into()),
        env_args: json!({"x": 1, "when": "2026-01-02", "list": [1, {"y": 2.5}]}).as_object().cloned(),
        extra_env_kwargs: json!({"max_turns": 20}).as_object().cloned(),
        env_dir_path: Some("envs".into()),
        endpoints_path: Some("/endpoints.toml".into()),
        provider: Some("openai".into()),
        endpoint_id: None,
        model: Some("m".into()),
        api_client_type: Some("openai_chat_completions".into()),
        api_key_var: Some("MY_KEY".into()),
        api_base_url: Some("http://localhost:8000/v1".into()),
        headers: Some([("X-A".to_owned(), "1".to_owned())].into()),
        headers_from_state: Some([("X-S".to_owned(), "example_id".to_owned())].into()),
        sampling_args: json!({"top_p": 0.5}).as_object().cloned(),
        max_tokens: Some(10),
        temperature: Some(1.0),
        num_examples: Some(-1),
        rollouts_per_example: Some(2),
        max_concurrent: Some(0),
        max_concurrent_generation: Some(3),
        max_concurrent_scoring: Some(4),
        independent_scoring: true.into(),
        no_interleave_scoring: true.into(),
        max_retries: Some(0),
        num_workers: Some(Workers::Auto),
        timeout: Some(2.5),
        python: Some("python3".into()),
        output_dir: Some("out".into()),
        state_columns: Some(vec!["a".into(), "b".into()]),
        save_results: true.into(),
        resume: true.into(),
        resume_path: Some("out/x".into()),
        save_to_hf_hub: Switch(Some(false)),
        hf_hub_dataset_name: Some("o/d".into()),
        shuffle: true.into(),
        shuffle_seed: Some(5),
        seed: Some(-5),
        verbose: true.into(),
        disable_tui: true.into(),
        disable_env_server: true.into(),
        heartbeat_url: Some("https://status.example.com/ping".into()),
        ledger: Some("exp".into()),
        ..EvalOptions::default()
    };
    assert_eq!(options, expected);
    assert_eq!(options.said().len(), 42, "all but endpoint_id");
    options.resolve().unwrap();
}

#[test]
fn aliases() {
    assert_eq!(one("[[eval]]\nid = 'a'").env_id.as_deref(), Some("a"));
    let options = one("[[eval]]\nid = 'a'\nargs = { x = 1 }\nenv_args = { y = 2 }");
    assert_eq!(json!(options.env_args), json!({"x": 1, "y": 2}));
    assert_eq!(one("[[eval]]\nid = 'a'\nnum_workers = 3").num_workers, Some(Workers::Count(3)));
}

#[test]
fn own_model_removes_the_global_endpoint_and_the_other_way_round() {
    let options = one("endpoint_id = 'e'\n[[eval]]\nid = 'a'\nmodel = 'm'");
    assert_eq!((options.model.as_deref(), options.endpoint_id), (Some("m"), None));
    let options = one("model = 'm'\n[[eval]]\nid = 'a'\nendpoint_id = 'e'");
    assert_eq!((options.model, options.endpoint_id.as_deref()), (None, Some("e")));
}

#[test]
fn a_list_of_headers_beats_the_table_and_own_headers_beat_global_ones() {
    let options = one(r#"
        headers = { X-Global = "g", X-Own = "g" }
        header_from_state = ["X-Session-ID: example_id"]
        [[eval]]
        id = "a"
        header = ["X-Own: list", "x-new:a: b"]
        headers = { X-OWN = "table", X-Table = "t" }
        headers_from_state = { X-Step = "step" }
    "#);
    let text = |pairs: &[(&str, &str)]| -> Vec<(String, String)> {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    };
    let expected = [("X-Global", "g"), ("X-Own", "list"), ("X-Table", "t"), ("x-new", "a: b")];
    assert_eq!(pairs(options.headers), text(&expected));
    let expected = [("X-Session-ID", "example_id"), ("X-Step", "step")];
    assert_eq!(pairs(options.headers_from_state), text(&expected));
}

#[test]
fn thinking_parameters_of_a_sampling_table_reach_the_chat_template() {
    let options = one(r#"
        [[eval]]
        id = "a"
        [eval.sampling]
        top_p = 0.9
        reasoning_effort = "high"
        enable_thinking = false
        extra_body = { top_k = 5, chat_template_kwargs = { z = 1, enable_thinking = true } }
    "#);
    assert_eq!(
        json!(options.sampling_args),
        json!({
            "top_p": 0.9,
            "reasoning_effort": "high",
            "enable_thinking": false,
            "extra_body": {
                "top_k": 5,
                "chat_template_kwargs": {"z": 1, "enable_thinking": false, "reasoning_effort": "high"},
            },
        })
    );
    let options = one("[[eval]]\nid = 'a'\nsampling_args = { reasoning_effort = 'low' }");
    assert_eq!(json!(options.sampling_args), json!({"reasoning_effort": "low"}));
}

#[test]
fn tasksets_and_harnesses_become_the_argument_config() {
    let evaluations = read(
        r#"
        harness = { max_turns = 3 }
        [[eval]]
        env_args = { config = { seed = 1 }, x = 2 }
        [eval.taskset]
        id = "owner/tasks"
        split = "test"
        [[eval]]
        id = "named"
        [eval.harness]
        max_turns = 9
        "#,
    );
    let expected = json!({
        "config": {"seed": 1, "harness": {"max_turns": 3}, "taskset": {"id": "owner/tasks", "split": "test"}},
        "x": 2,
    });
    assert_eq!(json!(evaluations[0].env_args), expected);
    assert_eq!(evaluations[0].env_id.as_deref(), Some("owner/tasks"), "the taskset names the environment");
    assert_eq!(json!(evaluations[1].env_args), json!({"config": {"harness": {"max_turns": 9}}}));
    assert_eq!(evaluations[1].env_id.as_deref(), Some("named"));
}

#[test]
fn sweeps_expand_in_the_order_of_the_file() {
    let evaluations = read(
        r#"
        env_args = { split = "test" }
        [[ablation]]
        id = "b"
        num_examples = 9
        [ablation.sweep.args]
        level = ["easy", "hard"]
        [ablation.sweep]
        temperature = [0.0, 1]
        model = ["m1", "m2"]
        [ablation.sweep.env_args]
        turns = [1]
        [[eval]]
        id = "a"
        "#,
    );
    assert_eq!(evaluations[0].env_id.as_deref(), Some("a"), "`[[eval]]` comes first");
    let combinations: Vec<Value> = evaluations[1..]
        .iter()
        .map(|options| {
            assert_eq!((options.env_id.as_deref(), options.num_examples), (Some("b"), Some(9)));
            json!([options.temperature, options.model, options.env_args])
        })
        .collect();
    let expected = |temperature: f64, model: &str, level: &str| json!([temperature, model, {"split": "test", "turns": 1, "level": level}]);
    assert_eq!(
        combinations,
        [
            expected(0.0, "m1", "easy"),
            expected(0.0, "m1", "hard"),
            expected(0.0, "m2", "easy"),
            expected(0.0, "m2", "hard"),
            expected(1.0, "m1", "easy"),
            expected(1.0, "m1", "hard"),
            expected(1.0, "m2", "easy"),
            expected(1.0, "m2", "hard"),
        ]
    );
}

#[test]
fn environments_endpoints_tables_and_lists_can_be_swept() {
    let evaluations = read(
        r#"
        model = "m"
        sampling = { enable_thinking = true, top_p = 0.5 }
        [[ablation]]
        [ablation.sweep]
        id = ["a", "b"]
        endpoint_id = ["e"]
        sampling = [{ reasoning_effort = "low" }, { top_p = 1.0 }]
        state_columns = [["x", "y"]]
        "#,
    );
    let ids: Vec<_> = evaluations.iter().map(|options| options.env_id.clone().unwrap()).collect();
    assert_eq!(ids, ["a", "a", "b", "b"]);
    assert!(evaluations.iter().all(|options| options.model.is_none() && options.endpoint_id.is_some()));
    assert_eq!(evaluations[0].state_columns, Some(vec!["x".to_owned(), "y".to_owned()]));
    let template = json!({"enable_thinking": true, "reasoning_effort": "low"});
    let expected = json!({
        "enable_thinking": true,
        "top_p": 0.5,
        "extra_body": {"chat_template_kwargs": template},
        "reasoning_effort": "low",
    });
    assert_eq!(json!(evaluations[0].sampling_args), expected);
    assert_eq!(evaluations[1].sampling_args.as_ref().unwrap()["top_p"], json!(1.0));
    let text = "[[ablation]]\nid = 'a'\nsampling_args = { n = 1 }\nsweep.sampling = [{ top_p = 1 }]";
    assert_eq!(json!(one(text).sampling_args), json!({"n": 1, "top_p": 1}));
}

#[test]
fn a_swept_temperature_is_not_hidden_by_sampling_arguments() {
    let text =
        "sampling_args = { temperature = 0.3 }\n[[ablation]]\nid = 'a'\nsweep.temperature = [0.0, 1.0]";
    let temperatures: Vec<Value> = read(text)
        .into_iter()
        .map(|options| options.resolve().unwrap().sampling_args["temperature"].clone())
        .collect();
    assert_eq!(temperatures, [json!(0.0), json!(1.0)]);
}

#[test]
fn paths_stay_relative_to_the_working_directory() {
    let options =
        one("output_dir = 'out'\nenv_dir_path = './environments'\n[[eval]]\nid = 'a'\nresume_path = 'r'");
    assert_eq!(options.output_dir, Some(PathBuf::from("out")));
    assert_eq!(options.env_dir_path, Some(PathBuf::from("./environments")));
    assert_eq!(options.resume_path, Some(PathBuf::from("r")));
}

#[test]
fn files_are_read_from_the_disk() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("eval.toml");
    std::fs::write(&path, "endpoints_path = 'e.toml'\n[[eval]]\nid = 'a'\n").unwrap();
    let file = read_eval_file(&path).unwrap();
    assert_eq!(file.evaluations[0].endpoints_path, Some(directory.path().join("e.toml")));
    for (name, bytes) in
        [("binary", &b"\xff\xfe\x00"[..]), ("nul", b"a = 1\0"), ("huge", &vec![b'#'; 2 * 1024 * 1024])]
    {
        let path = directory.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        let problems = read_eval_file(&path).unwrap_err();
        assert_eq!((problems.len(), problems[0].file.as_deref()), (1, Some(path.as_path())), "{name}");
    }
    for path in [directory.path().join("absent"), directory.path().to_owned()] {
        assert_eq!(read_eval_file(&path).unwrap_err()[0].id.as_deref(), Some("R001"));
    }
}

#[test]
fn as_many_evaluations_as_are_allowed() {
    let list = |count: usize| (0..count).map(|n| n.to_string()).collect::<Vec<_>>().join(",");
    let text = |a: usize, b: usize| {
        format!(
            "[[ablation]]\nid = 'a'\n[ablation.sweep]\nseed = [{}]\nshuffle_seed = [{}]",
            list(a),
            list(b)
        )
    };
    assert_eq!(read(&text(100, 100)).len(), 10_000);
    assert_eq!(problems(&text(101, 100))[0].id.as_deref(), Some("R009"));
    assert_eq!(problems(&text(10_001, 1))[0].id.as_deref(), Some("R009"));
    assert_eq!(problems(&"[[eval]]\nid='a'\n".repeat(10_001))[0].id.as_deref(), Some("R009"));
    // Nine lists of nine hundred values would be 10^26 evaluations.
    let keys: Vec<String> = (0..9).map(|n| format!("k{n} = [{}]\n", list(900))).collect();
    let text = format!("[[ablation]]\nid = 'a'\n[ablation.sweep.args]\n{}", keys.concat());
    assert_eq!(problems(&text)[0].id.as_deref(), Some("R009"));
}

#[test]
fn a_large_table_is_not_repeated_without_end() {
    let large = "x".repeat(600_000);
    let list = (0..5000).map(|n| n.to_string()).collect::<Vec<_>>().join(",");
    let text = format!("[[ablation]]\nid = 'a'\nargs = {{ x = '{large}' }}\nsweep.seed = [{list}]");
    assert_eq!(problems(&text)[0].id.as_deref(), Some("R009"));
    let evaluations = "[[eval]]\nid='a'\n".repeat(9000);
    let text = format!("args = {{ x = '{large}' }}\n{evaluations}");
    let problem = &problems(&text)[0];
    assert_eq!(problem.id.as_deref(), Some("R009"));
    assert_eq!((problem.line, problem.column), (Some(2), Some(3)), "it is told before any table is read");
}

/// Texts that are nearly files of evaluations.
fn nearly_a_file() -> impl Strategy<Value = String> {
    let line = prop_oneof![
        Just("[[eval]]".to_owned()),
        Just("[[ablation]]".to_owned()),
        Just("[ablation.sweep]".to_owned()),
        Just("[ablation.sweep.args]".to_owned()),
        Just("[eval.env_args]".to_owned()),
        "(id|env_id|model|endpoint_id|temperature|num_examples|args|header|headers|sampling|taskset|sweep|eval|x) = \
         (1|-1|nan|inf|true|'a'|'X-A: b'|\\[\\]|\\[1, 2\\]|\\['a', 'b'\\]|\\{ \\}|\\{ a = 1 \\}|\\[\\{ id = 'b' \\}\\])",
        "[a-z =\\[\\]'\"{}.#]{0,12}",
    ];
    prop::collection::vec(line, 0..12).prop_map(|lines| lines.join("\n"))
}

proptest! {
    #[test]
    fn no_text_panics(text in any::<String>()) {
        if let Err(problems) = parse_eval_file(Path::new("x.toml"), &text) {
            prop_assert!(!problems.is_empty());
        }
    }

    #[test]
    fn no_text_that_is_nearly_right_panics(text in nearly_a_file()) {
        match parse_eval_file(Path::new("x.toml"), &text) {
            Ok(file) => {
                prop_assert!(!file.evaluations.is_empty());
                for options in file.evaluations {
                    prop_assert!(options.resolve().is_ok(), "a file that is read can be run: {text}");
                }
            }
            Err(problems) => {
                let lines = u32::try_from(text.split('\n').count()).unwrap();
                for problem in &problems {
                    prop_assert!(problem.line.is_some_and(|line| (1..=lines).contains(&line)), "{}", shown(&problems));
                    prop_assert!(problem.fix.is_some() && problem.id.is_some());
                }
            }
        }
    }

    #[test]
    fn a_sweep_has_the_size_of_its_product(sizes in prop::collection::vec(1..6usize, 1..5)) {
        let keys = ["seed", "shuffle_seed", "num_examples", "max_concurrent"];
        let lists: Vec<String> = sizes
            .iter()
            .zip(keys)
            .map(|(size, key)| format!("{key} = {:?}\n", (0..*size).collect::<Vec<_>>()))
            .collect();
        let evaluations = read(&format!("[[ablation]]\nid = 'a'\n[ablation.sweep]\n{}", lists.concat()));
        prop_assert_eq!(evaluations.len(), sizes.iter().product::<usize>());
        let different: std::collections::HashSet<String> =
            evaluations.iter().map(|options| format!("{options:?}")).collect();
        prop_assert_eq!(different.len(), evaluations.len());
    }
}
