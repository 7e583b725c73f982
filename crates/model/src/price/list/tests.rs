//! Which price applies, and which price files are refused.

use super::*;
use crate::message::Usage;
use crate::money::MicroDollars;

fn with_file(text: &str) -> Result<PriceList, Vec<Problem>> {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("prices.toml");
    fs_err::write(&path, text).unwrap();
    PriceList::with_user_file(&path)
}

fn input_of(list: &PriceList, provider: &str, model: &str) -> Option<String> {
    list.find(provider, model, None).map(|price| price.rates.input.to_string())
}

#[test]
fn the_list_that_is_compiled_in_is_sound() {
    let (rows, version, problems) = read_built_in();
    assert_eq!(problems, []);
    assert!(rows.len() > 200 && is_date(&version));
    for row in &rows {
        assert!(row.price.source.is_some() && row.price.checked.is_some(), "{:?}", row.key);
        let Rates { input, output, cache_read, cache_write } = row.price.rates;
        let free = matches!(&row.key, Key::Model { provider, .. } if provider == "offline");
        // A figure with a misplaced digit most likely breaks one of these.
        assert!(free || (input > Rate::FREE && input <= output && cache_read <= input), "{:?}", row.key);
        assert!(cache_write >= input && cache_write <= output, "{:?}", row.key);
    }
}

#[test]
fn known_prices() {
    let list = PriceList::builtin();
    for (provider, model, rates) in [
        ("anthropic", "claude-sonnet-4-20250514", "3.00 15.00 0.30 3.75"),
        ("anthropic", "Claude-Opus-4-1-20250805", "15.00 75.00 1.50 18.75"),
        ("anthropic", "claude-opus-4-20250514", "15.00 75.00 1.50 18.75"),
        ("anthropic", "claude-opus-4-5-20251101", "5.00 25.00 0.50 6.25"),
        ("anthropic", "claude-haiku-4-5", "1.00 5.00 0.10 1.25"),
        ("anthropic", "claude-3-5-haiku-20241022", "0.80 4.00 0.08 1.00"),
        ("anthropic", "claude-3-haiku-20240307", "0.25 1.25 0.03 0.30"),
        ("openai", "gpt-4.1", "2.00 8.00 0.50 2.00"),
        ("openai", "gpt-4.1-nano-2025-04-14", "0.10 0.40 0.025 0.10"),
        ("openai", "gpt-4o-2024-05-13", "5.00 15.00 5.00 5.00"),
        ("openai", "gpt-4o-2024-08-06", "2.50 10.00 1.25 2.50"),
        ("openai", "o3", "2.00 8.00 0.50 2.00"),
        ("openai", "o3-2025-04-16", "2.00 8.00 0.50 2.00"),
        ("openai", "gpt-5-nano", "0.05 0.40 0.005 0.05"),
        ("azure", "gpt-5-mini", "0.25 2.00 0.025 0.25"),
        ("bedrock", "anthropic.claude-3-7-sonnet-20250219-v1:0", "3.00 15.00 0.30 3.75"),
        ("bedrock", "au.anthropic.claude-sonnet-4-5-20250929-v1:0", "3.30 16.50 0.33 4.125"),
        ("bedrock", "global.anthropic.claude-sonnet-4-5-20250929-v1:0", "3.00 15.00 0.30 3.75"),
        ("bedrock", "eu.amazon.nova-micro-v1:0", "0.035 0.14 0.00875 0.035"),
        ("together", "meta-llama/llama-3.3-70b-instruct-turbo", "0.88 0.88 0.88 0.88"),
        ("offline", "whatever", "0.00 0.00 0.00 0.00"),
    ] {
        let price = list.find(provider, model, None).unwrap_or_else(|| panic!("{provider} {model}"));
        let Rates { input, output, cache_read, cache_write } = price.rates;
        assert_eq!(format!("{input} {output} {cache_read} {cache_write}"), rates, "{provider} {model}");
        assert_eq!(price.origin.to_string(), format!("built-in list of {}", list.version()));
    }
    let long = list.find("anthropic", "claude-sonnet-4-5-20250929", None).unwrap();
    let usage = Usage { input: 300_000, output: 1000, ..Usage::default() };
    assert_eq!(long.cost(&usage), MicroDollars(1_822_500));
}

#[test]
fn a_name_that_contains_another_is_unpriced() {
    let list = PriceList::builtin();
    for (provider, model) in [
        ("openai", "my-o3"),
        ("openai", "o3-deep-research"),
        ("openai", "gpt-4o-audio-preview"),
        ("openai", "gpt-4o-realtime-preview"),
        ("openai", "gpt-5.9"),
        ("openai", "claude-sonnet-4-5"),
        ("anthropic", "claude-opus-4-9"),
        ("anthropic", "claude-haiku-9"),
        ("bedrock", "xx.anthropic.claude-sonnet-4-5-20250929-v1:0"),
        ("prime", "anything"),
        ("", ""),
    ] {
        assert_eq!(list.find(provider, model, None), None, "{provider} {model}");
    }
}

#[test]
fn a_users_row_wins_whatever_its_specificity() {
    let list = with_file(
        r#"
[[price]]
provider = "OpenAI"
model = "*"
input = 7
output = 7
[[price]]
provider = "openai"
model = "gpt-4*"
input = 8
output = 8
[[price]]
endpoint = "own-box"
input = 0.5
output = 0.25
"#,
    )
    .unwrap();
    assert_eq!(input_of(&list, "openai", "gpt-5").as_deref(), Some("7.00"));
    assert_eq!(input_of(&list, "openai", "GPT-4.1").as_deref(), Some("8.00"));
    assert_eq!(input_of(&list, "anthropic", "claude-haiku-4-5").as_deref(), Some("1.00"));
    let own = list.find("openai", "gpt-4.1", Some("own-box")).unwrap();
    assert_eq!(own.rates.input.to_string(), "0.50");
    assert_eq!(own.rates.cache_write.to_string(), "0.50");
    assert!(own.origin.to_string().ends_with("prices.toml"));
    assert_eq!(list.find("none", "none", Some("Own-Box")), None);
    assert_eq!(
        list.entries().next().unwrap().subject,
        Subject::Model { provider: "openai".into(), model: "*".into() }
    );
}

#[test]
fn every_mistake_is_reported_with_its_place() {
    let problems = with_file(
        r#"schema_version = 2
version = "soon"
[[price]]
provider = "openai"
modle = "gpt-4.1"
input = -2
output = 8
[[price]]
provider = "openai"
model = "gpt-4*"
input = 0.0000001
output = "8"
[[price]]
endpoint = "x"
model = "y"
input = 1
[[price]]
endpoint = "z"
input = 1
output = 1
checked = "May"
above = { output = 3 }
"#,
    )
    .unwrap_err();
    let mut found: Vec<String> = problems
        .iter()
        .map(|problem| {
            let (id, line) = (problem.id.as_deref().unwrap(), problem.line.unwrap());
            format!("{id}:{line} {} | {}", problem.what, problem.fix.as_deref().unwrap())
        })
        .collect();
    found.sort();
    insta::assert_snapshot!(found.join("\n"));
}

#[test]
fn rows_that_could_both_count_are_a_mistake() {
    let row =
        |model: &str| format!("[[price]]\nprovider = \"p\"\nmodel = \"{model}\"\ninput = 1\noutput = 1\n");
    for (one, two, twins) in [
        ("a*b", "a*b", true),
        ("a*b", "a*c", false),
        ("a*bb", "a*cb", false),
        ("a*b*", "a*c*", true),
        ("*ab", "*b*", false),
        ("M", "m", true),
        ("m", "n", false),
    ] {
        let read = with_file(&format!("{}{}", row(one), row(two)));
        assert_eq!(read.is_err(), twins, "{one} {two}");
        if let Err(problems) = read {
            assert_eq!(
                (problems.len(), problems[0].id.as_deref(), problems[0].line),
                (1, Some("M007"), Some(6))
            );
        }
    }
    let endpoint = "[[price]]\nendpoint = \"e\"\ninput = 1\noutput = 1\n";
    assert!(with_file(&endpoint.repeat(2)).is_err());
}

#[test]
fn the_schema_accepts_what_the_reader_accepts() {
    let schema = serde_json::to_value(schemars::schema_for!(PriceFile)).unwrap();
    assert_eq!(schema["additionalProperties"], false);
    let rate = &schema["$defs"]["Rate"];
    assert_eq!((rate["type"].as_str(), rate["minimum"].as_u64()), (Some("number"), Some(0)));
}
