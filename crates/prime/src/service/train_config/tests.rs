//! Tests of the written files.

use proptest::prelude::*;
use toml::{Table, Value};

use super::*;

fn options() -> TrainOptions {
    TrainOptions::new("your-owner/aec-electrical-v1".parse().unwrap())
}

/// The broad example of the documentation.
fn broad() -> TrainOptions {
    TrainOptions {
        model: "Qwen/Qwen3.5-9B".to_owned(),
        split: "all".to_owned(),
        harness: Some("stateful".to_owned()),
        difficulties: Difficulties::from_flags(
            &[],
            &["easy=0.45".to_owned(), "medium=0.40".to_owned(), "hard=0.15".to_owned()],
        )
        .unwrap(),
        max_steps: 50,
        batch_size: 64,
        rollouts_per_example: 8,
        max_tokens: 4096,
        filtering: Some(DifficultyFiltering {
            easy_fraction: 0.25,
            hard_fraction: 0.25,
            ..DifficultyFiltering::default()
        }),
        ..TrainOptions::new("your-owner/aec-release-train".parse().unwrap())
    }
}

#[test]
fn one_view() {
    let options = TrainOptions {
        difficulties: Difficulties::from_flags(&["easy".to_owned()], &[]).unwrap(),
        harness: Some("stateful".to_owned()),
        num_examples: Some(50),
        ..options()
    };
    let expected = r#"model = "Qwen/Qwen3.5-0.8B"
max_steps = 20
batch_size = 32
rollouts_per_example = 4

[sampling]
max_tokens = 2048

[[env]]
id = "your-owner/aec-electrical-v1"
args = { split = "train", difficulty = "easy", harness = "stateful", num_examples = 50 }

[eval]
interval = 10
num_examples = 10
rollouts_per_example = 1
eval_base_model = true

[[eval.env]]
id = "your-owner/aec-electrical-v1"
args = { split = "eval", difficulty = "easy", harness = "stateful" }

[adapters]
interval = 0
keep_last = 3
"#;
    assert_eq!(options.write(Target::SharedLora).unwrap().text, expected);
}

#[test]
fn views_with_ratios() {
    let written = broad().write(Target::SharedLora).unwrap();
    let table: Table = written.text.parse().unwrap();
    let environments = table["env"].as_array().unwrap();
    let difficulties: Vec<&str> =
        environments.iter().map(|env| env["args"]["difficulty"].as_str().unwrap()).collect();
    assert_eq!(difficulties, ["easy", "medium", "hard"]);
    assert_eq!(environments[0]["name"].as_str(), Some("aec-release-train-easy"));
    let buffer = table["buffer"].as_table().unwrap();
    assert_eq!(buffer["env_ratios"], Value::try_from([0.45, 0.4, 0.15]).unwrap());
    assert_eq!(buffer["online_difficulty_filtering"].as_bool(), Some(true));
    assert_eq!(buffer["easy_fraction"].as_float(), Some(0.25));
    assert_eq!(table["eval"]["env"].as_array().unwrap().len(), 3);
    assert!(written.notes.iter().any(|note| note.contains("split \"all\"")), "{:?}", written.notes);
}

#[test]
fn prime_rl_sources() {
    let table: Table = broad().write(Target::PrimeRl).unwrap().text.parse().unwrap();
    let orchestrator = &table["orchestrator"];
    assert_eq!(orchestrator["group_size"].as_integer(), Some(8));
    let sources = orchestrator["train"]["source"].as_array().unwrap();
    assert_eq!(sources.len(), 3);
    let easy = &sources[0];
    assert_eq!(easy["name"].as_str(), Some("aec-release-train-easy"));
    assert_eq!(easy["ratio"].as_float(), Some(0.45));
    assert_eq!(easy["env"]["taskset"]["id"].as_str(), Some("aec-release-train"));
    assert_eq!(easy["env"]["taskset"]["difficulty"].as_str(), Some("easy"));
    let pools = easy["curriculum"]["sampler"]["pools"].as_table().unwrap();
    assert_eq!(pools["hard"]["threshold"].as_float(), Some(0.2));
    assert_eq!(pools["normal"]["weight"].as_float(), Some(1.0));
    assert_eq!(pools["easy"]["weight"].as_float(), Some(0.25));
    assert_eq!(easy["curriculum"]["gates"]["no_signal"]["type"].as_str(), Some("advantage_range"));
    let evaluations = orchestrator["eval"]["source"].as_array().unwrap();
    assert!(evaluations.iter().all(|source| source["env"]["taskset"]["split"].as_str() == Some("eval")));
    let mut names: Vec<&str> =
        sources.iter().chain(evaluations).map(|source| source["name"].as_str().unwrap()).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), 6, "names must differ");
}

#[test]
fn thresholds_of_pools_differ_even_at_the_top() {
    let filtering =
        DifficultyFiltering { easy_threshold: 1.0, hard_threshold: 0.0, ..DifficultyFiltering::default() };
    let written = TrainOptions { filtering: Some(filtering), ..options() }.write(Target::PrimeRl).unwrap();
    let table: Table = written.text.parse().unwrap();
    let pools = &table["orchestrator"]["train"]["source"][0]["curriculum"]["sampler"]["pools"];
    assert_eq!(pools.as_table().unwrap().len(), 2);
    assert_eq!(pools["hard"]["threshold"].as_float(), Some(0.0));
}

#[test]
fn mistakes_are_refused() {
    use TrainOptionsError as Error;
    let ratios = |list: &[(&str, f64)]| {
        Difficulties::Ratios(list.iter().map(|(name, ratio)| ((*name).to_owned(), *ratio)).collect())
    };
    let filtering = |easy_threshold, hard_threshold, easy_fraction| {
        Some(DifficultyFiltering { easy_threshold, hard_threshold, easy_fraction, hard_fraction: 0.0 })
    };
    let check = |options: TrainOptions, expected: fn(&Error) -> bool| {
        let error = options.write(Target::SharedLora).unwrap_err();
        assert!(expected(&error), "{error}");
    };
    let base = options;
    check(TrainOptions { batch_size: 30, ..base() }, |e| matches!(e, Error::Batch { .. }));
    check(TrainOptions { max_steps: 0, ..base() }, |e| matches!(e, Error::Zero { .. }));
    check(TrainOptions { num_examples: Some(0), ..base() }, |e| matches!(e, Error::Zero { .. }));
    check(TrainOptions { model: String::new(), ..base() }, |e| matches!(e, Error::Empty { .. }));
    for ratio in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        let options = TrainOptions { difficulties: ratios(&[("easy", ratio)]), ..base() };
        check(options, |e| matches!(e, Error::RatioRange { .. }));
    }
    let twice = ratios(&[("easy", 1.0), ("easy", 2.0)]);
    check(TrainOptions { difficulties: twice, ..base() }, |e| matches!(e, Error::Repeated { .. }));
    let filters = [
        (filtering(0.2, 0.8, 0.0), "threshold"),
        (filtering(0.5, 0.5, 0.0), "threshold"),
        (filtering(1.5, 0.2, 0.0), "from 0 to 1"),
        (filtering(f64::NAN, 0.2, 0.0), "from 0 to 1"),
        (filtering(0.8, 0.2, -0.1), "from 0 to 1"),
    ];
    for (filtering, expected) in filters {
        let error = TrainOptions { filtering, ..base() }.write(Target::PrimeRl).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
    let flags = |together: &[&str], ratios: &[&str]| {
        let owned = |list: &[&str]| list.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
        Difficulties::from_flags(&owned(together), &owned(ratios)).unwrap_err()
    };
    assert_eq!(flags(&["easy"], &["hard=1"]), Error::DifficultyTwice);
    for bad in ["easy", "easy=", "easy=x", "easy=1,5"] {
        assert!(matches!(flags(&[], &[bad]), Error::Ratio { .. }), "{bad}");
    }
}

proptest! {
    #[test]
    fn any_text_survives(
        model in "\\PC{1,20}",
        difficulty in "\\PC{1,12}",
        harness in "[\\x00-\\x7f]{0,12}",
        ratio in 1e-9f64..1e9,
    ) {
        prop_assume!(!model.trim().is_empty() && !difficulty.trim().is_empty());
        let options = TrainOptions {
            model: model.clone(),
            harness: Some(harness.clone()),
            difficulties: Difficulties::Ratios(vec![(difficulty.clone(), ratio)]),
            ..options()
        };
        let table: Table = options.write(Target::SharedLora).unwrap().text.parse().unwrap();
        prop_assert_eq!(table["model"].as_str(), Some(model.as_str()));
        prop_assert_eq!(table["env"][0]["args"]["difficulty"].as_str(), Some(difficulty.as_str()));
        prop_assert_eq!(table["env"][0]["args"]["harness"].as_str(), Some(harness.as_str()));
        prop_assert_eq!(table["buffer"]["env_ratios"][0].as_float(), Some(ratio));
        let table: Table = options.write(Target::PrimeRl).unwrap().text.parse().unwrap();
        prop_assert_eq!(table["model"]["name"].as_str(), Some(model.as_str()));
        prop_assert_eq!(table["orchestrator"]["train"]["source"][0]["ratio"].as_float(), Some(ratio));
    }
}
