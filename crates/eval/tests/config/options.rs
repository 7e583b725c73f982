//! Layers of options, the resulting settings, names of environments and JSON on the command line.

use std::path::PathBuf;
use std::time::Duration;

use crate::config::common::read;
use aec_base::problem::Problem;
use aec_eval::config::{
    Environment, EvalOptions, Headers, Limit, ModelChoice, Resume, Switch, Workers, display_name,
    module_name, parse_json_object,
};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

fn named(env_id: &str) -> EvalOptions {
    EvalOptions { env_id: Some(env_id.into()), ..EvalOptions::default() }
}

fn map(value: &Value) -> Option<Map<String, Value>> {
    value.as_object().cloned()
}

fn headers(pairs: &[(&str, &str)]) -> Headers {
    pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

fn shown(problems: &[Problem]) -> String {
    let line = |problem: &Problem| {
        format!(
            "{} {problem}\n  fix: {}\n",
            problem.id.as_deref().unwrap_or("-"),
            problem.fix.as_deref().unwrap_or("-")
        )
    };
    problems.iter().map(line).collect()
}

#[test]
fn what_is_said_above_wins_field_by_field() {
    let base = EvalOptions {
        num_examples: Some(7),
        verbose: Switch(Some(true)),
        env_args: map(&json!({"a": 1, "b": 2})),
        ..named("base")
    };
    let upper = EvalOptions {
        verbose: Switch(Some(false)),
        env_args: map(&json!({"c": 3})),
        ..EvalOptions::default()
    };
    let merged = upper.over(base);
    assert_eq!(merged.env_id.as_deref(), Some("base"));
    assert_eq!(merged.num_examples, Some(7));
    assert_eq!(merged.verbose, Switch(Some(false)));
    assert_eq!(json!(merged.env_args), json!({"c": 3}), "maps replace each other");
}

#[test]
fn headers_merge_without_regard_to_case() {
    let base = EvalOptions {
        headers: Some(headers(&[("X-One", "1"), ("X-Two", "2")])),
        headers_from_state: Some(headers(&[("X-Session-ID", "example_id")])),
        ..EvalOptions::default()
    };
    let upper = EvalOptions {
        headers: Some(headers(&[("x-two", "two"), ("X-Three", "3")])),
        ..EvalOptions::default()
    };
    let merged = upper.over(base);
    let pairs: Vec<_> = merged.headers.unwrap().into_iter().collect();
    let expected = [("X-One", "1"), ("x-two", "two"), ("X-Three", "3")];
    assert_eq!(pairs, expected.map(|(name, value)| (name.to_owned(), value.to_owned())));
    assert_eq!(merged.headers_from_state, Some(headers(&[("X-Session-ID", "example_id")])));
}

#[test]
fn model_and_endpoint_exclude_each_other_across_layers() {
    let model = || EvalOptions { model: Some("m".into()), ..EvalOptions::default() };
    let endpoint = || EvalOptions { endpoint_id: Some("e".into()), ..EvalOptions::default() };
    assert_eq!(model().over(endpoint()), model());
    assert_eq!(endpoint().over(model()), endpoint());
    assert_eq!(EvalOptions::default().over(endpoint()), endpoint());
    let both = EvalOptions { model: Some("m".into()), endpoint_id: Some("e".into()), ..named("a") };
    assert_eq!(both.resolve().unwrap_err().len(), 1);
}

#[test]
fn sampling_arguments_beat_plain_fields_of_their_layer_only() {
    let base = EvalOptions {
        temperature: Some(0.1),
        max_tokens: Some(10),
        sampling_args: map(&json!({"temperature": 0.2, "top_p": 0.9})),
        ..named("a")
    };
    let sampling = base.clone().resolve().unwrap().sampling_args;
    assert_eq!(json!(sampling), json!({"temperature": 0.2, "top_p": 0.9, "max_tokens": 10}));
    let upper = EvalOptions { temperature: Some(0.5), ..EvalOptions::default() };
    let sampling = upper.over(base).resolve().unwrap().sampling_args;
    assert_eq!(json!(sampling), json!({"top_p": 0.9, "max_tokens": 10, "temperature": 0.5}));
}

#[derive(clap::Parser)]
struct Line {
    #[command(flatten)]
    options: EvalOptions,
}

#[test]
fn a_command_line_and_a_file_say_the_same() {
    let line = [
        "eval",
        "-m",
        "m",
        "-n",
        "-1",
        "-r",
        "2",
        "-s",
        "-T",
        "1",
        "-t",
        "10",
        "-S",
        r#"{"top_p": 0.5}"#,
        "--header",
        "X-A: 1",
        "-a",
        r#"{"x": [1]}"#,
        "-w",
        "auto",
        "--shuffle",
        "--shuffle-seed",
        "-5",
        "-iN",
        "--timeout",
        "2.5",
        "-d",
        "-C",
        "a, b",
        "-o",
        "out",
        "--ledger",
        "exp",
    ];
    let said = <Line as clap::Parser>::parse_from(line).options;
    let file = read(
        r#"
        [[eval]]
        env_id = "a"
        model = "m"
        num_examples = -1
        rollouts_per_example = 2
        save_results = true
        temperature = 1
        max_tokens = 10
        sampling_args = { top_p = 0.5 }
        header = ["X-A: 1"]
        env_args = { x = [1] }
        num_workers = "auto"
        shuffle = true
        shuffle_seed = -5
        independent_scoring = true
        no_interleave_scoring = true
        timeout = 2.5
        disable_tui = true
        state_columns = ["a", "b"]
        output_dir = "out"
        ledger = "exp"
        "#,
    );
    assert_eq!(said.over(named("a")).resolve(), file[0].clone().resolve());
    let nothing = <Line as clap::Parser>::parse_from(["eval"]).options;
    assert_eq!(nothing, EvalOptions::default(), "a flag that is not there says nothing");
}

#[test]
fn said_names_the_fields_that_are_set() {
    assert!(EvalOptions::default().said().is_empty());
    let options = EvalOptions { max_retries: Some(0), ledger: Some("x".into()), ..named("a") };
    assert_eq!(options.said(), ["env_id", "max_retries", "ledger"]);
}

#[test]
fn built_in_defaults() {
    let settings = named("my-env").resolve().unwrap();
    assert_eq!(settings.model, ModelChoice::Model("gpt-4.1-mini".into()));
    assert_eq!(settings.num_examples, Limit::AtMost(5));
    assert_eq!(settings.rollouts_per_example, 3);
    assert_eq!(settings.max_concurrent, Limit::AtMost(32));
    assert_eq!(settings.max_concurrent_generation, Limit::AtMost(32));
    assert_eq!(settings.max_concurrent_scoring, Limit::AtMost(32));
    assert_eq!((settings.num_workers, settings.shuffle), (1, None));
    assert_eq!(settings.env_dir_path, PathBuf::from("./environments"));
    assert_eq!(settings.resume, Resume::No);
    assert_eq!((settings.timeout, settings.sampling_args.len(), settings.headers.len()), (None, 0, 0));
    assert_eq!(settings.said, named("my-env"), "nothing is said that was not said");
    let shuffled = |seed| EvalOptions { shuffle: true.into(), shuffle_seed: seed, ..named("a") }.resolve();
    assert_eq!((shuffled(None).unwrap().shuffle, shuffled(Some(4)).unwrap().shuffle), (Some(0), Some(4)));
}

#[test]
fn limits_follow_the_concurrency() {
    let settings =
        EvalOptions { max_concurrent: Some(600), max_concurrent_scoring: Some(0), ..named("a") }.resolve();
    let settings = settings.unwrap();
    assert_eq!(settings.max_concurrent_generation, Limit::AtMost(600));
    assert_eq!(settings.max_concurrent_scoring, Limit::Unlimited);
    assert_eq!(settings.num_workers, 3, "one worker carries 256 rollouts");
    let all =
        EvalOptions { max_concurrent: Some(-1), num_examples: Some(-1), ..named("a") }.resolve().unwrap();
    assert_eq!(
        (all.max_concurrent, all.num_examples, all.num_workers),
        (Limit::Unlimited, Limit::Unlimited, 1)
    );
}

#[test]
fn workers_and_the_flag_for_one_process() {
    let workers = |workers, one| {
        EvalOptions { num_workers: Some(workers), disable_env_server: Switch(one), ..named("a") }
            .resolve()
            .unwrap()
            .num_workers
    };
    assert_eq!(workers(Workers::Count(4), None), 4);
    assert_eq!(workers(Workers::Count(4), Some(true)), 1);
    assert_eq!(workers(Workers::Auto, None), 1);
}

#[test]
fn resuming() {
    let path = Some(PathBuf::from("outputs/x"));
    let resume =
        |resume, resume_path| EvalOptions { resume: Switch(resume), resume_path, ..named("a") }.resolve();
    assert_eq!(resume(Some(true), None).unwrap().resume, Resume::Latest);
    assert_eq!(resume(None, path.clone()).unwrap().resume, Resume::Path("outputs/x".into()));
    assert!(resume(Some(false), path.clone()).is_err());
    let no = || EvalOptions { resume: Switch(Some(false)), ..EvalOptions::default() };
    let run = || EvalOptions { resume_path: path.clone(), ..EvalOptions::default() };
    assert_eq!(no().over(run()), no(), "the wish to start anew beats a path below it");
    assert_eq!(run().over(no()), run());
}

#[test]
fn every_bad_value_is_told_at_once() {
    let options = EvalOptions {
        model: Some(" ".into()),
        api_key_var: Some("sk-secret-value".into()),
        api_base_url: Some("my-api.example.com".into()),
        heartbeat_url: Some("ftp://example.com".into()),
        headers: Some(headers(&[("Bad Name", "x"), ("X-Value", "secret\nvalue"), ("Host", "h")])),
        headers_from_state: Some(headers(&[("X-Session-ID", "")])),
        sampling_args: map(&json!({"": 1})),
        max_tokens: Some(0),
        temperature: Some(f64::NAN),
        timeout: Some(-1.0),
        rollouts_per_example: Some(0),
        num_workers: Some(Workers::Count(0)),
        state_columns: Some(vec!["a b".into(), "x".into(), "x".into(), String::new()]),
        name: Some("../up".into()),
        ledger: Some(String::new()),
        ..named("owner/name@")
    };
    let problems = options.resolve().unwrap_err();
    assert!(problems.iter().all(|problem| problem.about.as_deref() == Some("owner/name@")));
    let text = shown(&problems);
    assert!(!text.contains("secret"), "values that may be secrets are not repeated");
    insta::assert_snapshot!(text);
}

#[test]
fn an_environment_must_be_named() {
    insta::assert_snapshot!(shown(&EvalOptions::default().resolve().unwrap_err()), @"
    R006 no environment is named
      fix: name one, such as my-env or ./environments/my_env
    ");
}

#[test]
fn timeouts_are_durations() {
    let timeout = |seconds| EvalOptions { timeout: Some(seconds), ..named("a") }.resolve();
    assert_eq!(timeout(1.5).unwrap().timeout, Some(Duration::from_millis(1500)));
    for seconds in [0.0, -0.0, f64::INFINITY, f64::NAN, 1e300] {
        assert!(timeout(seconds).is_err(), "{seconds}");
    }
}

#[test]
fn grammar_of_environments() {
    let parts = |owner: Option<&str>, name: &str, version: Option<&str>| Environment::Named {
        owner: owner.map(str::to_owned),
        name: name.to_owned(),
        version: version.map(str::to_owned),
    };
    let directory = |path: &str| Environment::Directory(path.into());
    for (env_id, expected, module, display) in [
        ("gsm8k", parts(None, "gsm8k", None), "gsm8k", "gsm8k"),
        ("o/my-env", parts(Some("o"), "my-env", None), "my_env", "o/my-env"),
        ("o/my-env@1.2", parts(Some("o"), "my-env", Some("1.2")), "my_env", "o/my-env@1.2"),
        ("my-set@1.0.0", parts(None, "my-set", Some("1.0.0")), "my_set", "my-set@1.0.0"),
        ("./my-env", directory("./my-env"), "my_env", "my-env"),
        ("/a/b/my-env/", directory("/a/b/my-env/"), "my_env", "my-env"),
        ("a/b/c-d", directory("a/b/c-d"), "c_d", "c-d"),
        ("../x/.", directory("../x/."), "x", "x"),
        (".", directory("."), "", "."),
        ("..", directory(".."), "", ".."),
    ] {
        assert_eq!(Environment::parse(env_id).unwrap(), expected, "{env_id}");
        assert_eq!(module_name(env_id), module, "{env_id}");
        assert_eq!(display_name(env_id), display, "{env_id}");
    }
    for bad in ["", "  ", "a b", "a@", "@1", "o/", "a@1@2", "ä", "a\u{1b}[31m", "a@1 0", "-a", "a\0", "o/-a"]
    {
        // A trailing slash makes it a directory.
        assert_eq!(Environment::parse(bad).is_ok(), bad == "o/", "{bad:?}");
    }
}

#[test]
fn the_name_of_an_evaluation_is_shown_first() {
    let settings = EvalOptions { name: Some("hard".into()), ..named("./my-env") }.resolve().unwrap();
    assert_eq!((settings.display_name(), settings.module_name()), ("hard".into(), "my_env".into()));
    assert_eq!(named("./my-env").resolve().unwrap().display_name(), "my-env");
}

#[test]
fn headers_as_lines() {
    let lines = |lines: &[&str]| Some(lines.iter().map(|line| (*line).to_owned()).collect::<Vec<_>>());
    let options = EvalOptions {
        header: lines(&["X-A: 1", "X-B:http://x:1", "X-Empty:"]),
        headers: Some(headers(&[("x-a", "table"), ("X-C", "3")])),
        header_from_state: lines(&["X-S: example_id"]),
        ..named("a")
    };
    let settings = options.resolve().unwrap();
    let expected = headers(&[("X-A", "1"), ("X-C", "3"), ("X-B", "http://x:1"), ("X-Empty", "")]);
    assert_eq!(settings.headers, expected, "lines beat the table");
    assert_eq!(settings.said.headers_from_state, Some(headers(&[("X-S", "example_id")])));
    let wrong = EvalOptions {
        header: lines(&["hidden", "X-A: 1", "x-a: 2", ": 3"]),
        header_from_state: lines(&["X-S:"]),
        ..EvalOptions { env_id: Some("a".into()), ..EvalOptions::default() }
    };
    insta::assert_snapshot!(shown(&wrong.resolve().unwrap_err()), @r#"
    R014 a text in `header` is not of the form "Name: Value"
      fix: write the name, a colon and the value
    R014 the header `x-a` is twice in `header`
      fix: keep one of them
    R014 "" in `header` cannot be the name of a header
      fix: use letters, digits and -
    R014 the header `X-S` in `header_from_state` names no key of the state
      fix: write the key, such as example_id
    "#);
    let many: Vec<String> = (0..102).map(|n| format!("X-{n}: 1")).collect();
    let many = EvalOptions { header: Some(many), ..named("a") };
    assert_eq!(many.resolve().unwrap_err().len(), 1);
}

#[test]
fn json_that_is_no_object() {
    let deep = format!("{{\"a\": {}", "[".repeat(100_000));
    let texts = [
        "",
        "  ",
        "[1]",
        "3",
        "null",
        "{",
        "{\"a\": NaN}",
        "{\"a\": -Infinity}",
        "{\"ä\": nan}",
        "{'a': 1}",
        "{\"a\": 1, \"a\": 2}",
        "{\"a\": {\"b\": 1,\n \"b\": 2}}",
        "{\"a\": 1} x",
        "{\"a\": 1e999}",
        "{\"a\": 1,}",
        "{\"\u{1b}[31m\": 1, \"\u{1b}[31m\": 2}",
        &deep,
    ];
    let problems: Vec<Problem> =
        texts.iter().map(|text| parse_json_object("--env-args", text).unwrap_err()).collect();
    insta::assert_snapshot!(shown(&problems));
}

#[test]
fn json_numbers_keep_their_value() {
    let parsed = parse_json_object("-a", "{\"a\": 18446744073709551615, \"b\": -1, \"c\": 0.1}").unwrap();
    assert_eq!(json!(parsed).to_string(), "{\"a\":18446744073709551615,\"b\":-1,\"c\":0.1}");
}

proptest! {
    #[test]
    fn no_text_of_a_flag_panics(text in any::<String>()) {
        drop(parse_json_object("-a", &text));
    }

    #[test]
    fn broken_objects_are_placed_inside_the_text(cut in 1..30usize, text in "[a-zäöü \\[\\]{}:,]{25}") {
        let broken: String = format!("{{\"key\": \"{text}\"}}").chars().take(cut).collect();
        let problem = parse_json_object("-a", &broken).unwrap_err();
        let column = problem.what.split("column ").nth(1).and_then(|rest| rest.split(':').next()).unwrap();
        prop_assert!((1..=cut).contains(&column.parse().unwrap()), "{}", problem);
    }

    #[test]
    fn a_key_twice_is_found_at_its_second_place(key in "[a-zäöü]{1,8}", space in " {0,5}") {
        let text = format!("{{{space}\"{key}\": 1,{space}\"{key}\": 2}}");
        let problem = parse_json_object("-a", &text).unwrap_err();
        let column = 2 * space.len() + key.chars().count() + 8;
        let expected = format!("at column {column}: ");
        prop_assert!(problem.what.contains(&expected), "{} in {text}", problem);
    }

    #[test]
    fn no_name_of_an_environment_panics(text in any::<String>()) {
        drop((Environment::parse(&text), module_name(&text), display_name(&text)));
    }

    #[test]
    fn options_over_nothing_are_themselves(n in any::<Option<i64>>(), model in any::<Option<String>>()) {
        let options = EvalOptions { num_examples: n, model, ..EvalOptions::default() };
        prop_assert_eq!(&options.clone().over(EvalOptions::default()), &options);
        prop_assert_eq!(&EvalOptions::default().over(options.clone()), &options);
    }
}
