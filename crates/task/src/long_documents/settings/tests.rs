//! Tests of both settings files.

use std::path::Path;

use aec_base::problem::{Problem, Severity};
use proptest::prelude::*;
use serde_json::json;

use super::*;

const RLM: &str = include_str!("../../../tests/data/long_documents/rlm.toml");
const LAMBDA: &str = include_str!("../../../tests/data/long_documents/lambda-rlm.toml");

fn rlm(text: &str) -> (Option<RlmSettings>, Vec<Problem>) {
    RlmSettings::read(Path::new("rlm.toml"), text)
}

fn lambda(text: &str) -> (Option<LambdaSettings>, Vec<Problem>) {
    LambdaSettings::read(Path::new("lambda-rlm.toml"), text)
}

/// The ids of problems; also checks that each has a place and a fix.
fn ids(problems: &[Problem]) -> Vec<&str> {
    for problem in problems {
        assert!(problem.file.is_some() && problem.fix.is_some(), "{problem:?}");
    }
    problems.iter().map(|problem| problem.id.as_deref().unwrap()).collect()
}

fn refused(text: &str) -> Vec<Problem> {
    let (settings, problems) = rlm(text);
    assert!(settings.is_none(), "{text}");
    assert!(problems.iter().any(|problem| problem.severity == Severity::Error), "{text}");
    ids(&problems);
    problems
}

#[test]
fn the_printed_rlm_file_loads() {
    let (settings, problems) = rlm(RLM);
    let settings = settings.unwrap_or_else(|| panic!("{problems:?}"));
    assert_eq!(ids(&problems), ["O060", "O060", "O060"]);
    let line = |word: &str| {
        RLM.lines().position(|line| line.contains(word)).map(|at| u32::try_from(at).unwrap() + 1)
    };
    let lines: Vec<_> = problems.iter().map(|problem| problem.line).collect();
    assert_eq!(lines, [line("custom_impl"), line("compaction_model"), line("subcall_model")]);
    assert_eq!(settings.template.definition.as_deref(), Some("report_template.toml"));
    assert_eq!(settings.guardrails, Guardrails::default());
    assert_eq!(settings.execution, Execution::default());
    assert_eq!(settings.inputs["source_doc"].source, "fixtures/spec.md");
    assert_eq!(settings.hints.prohibited, ["guess", "skip_verification"]);
    assert_eq!(settings.subcalls["extract"].custom_impl, None);
    let advisor = settings.advisor.unwrap();
    assert_eq!(advisor, Advisor { model: "claude-haiku-4-5-20251001".into(), ..Advisor::default() });
}

#[test]
fn the_printed_lambda_file_loads() {
    let (settings, problems) = lambda(LAMBDA);
    let settings = settings.unwrap_or_else(|| panic!("{problems:?}"));
    assert_eq!(ids(&problems), ["O060"]);
    let (defaults, none) = lambda("");
    assert!(none.is_empty());
    let mut defaults = defaults.unwrap();
    assert_eq!(defaults.template.tier, Tier::DependencyTree);
    defaults.advisor.clone_from(&settings.advisor);
    assert_eq!(settings, defaults);
}

#[test]
fn an_empty_file_has_the_defaults() {
    let settings = rlm("").0.unwrap();
    assert_eq!(settings.template, TemplateSettings { tier: Tier::Flat, definition: None });
    assert_eq!(settings.offered_subcalls(), KNOWN_SUBCALLS);
    assert_eq!(settings.effective()["guardrails"]["max_subcalls"], json!(null));
    assert_eq!(settings.effective()["guardrails"]["budget_warning_pct"], json!(80.0));
}

#[test]
fn unknown_keys_are_named_with_their_line() {
    let problems = refused("[guardrails]\ntoken_budgets = 3\n");
    assert_eq!((ids(&problems), problems[0].line), (vec!["O003"], Some(2)));
    assert!(problems[0].fix.as_ref().unwrap().contains("`token_budget`"));
    let problems = lambda("[template]\nk_candidates = 3\n[review]\ntrigger = \"always\"").1;
    assert_eq!(ids(&problems), ["O003", "O003"]);
    assert!(lambda("[advisor]\nmodel = 'm'\nmax_uses = 2").0.is_some());
    assert_eq!(ids(&refused("[guardrails]\nunheard_of = null")), ["O003", "O060"]);
}

#[test]
fn null_unsets_any_key_and_nothing_else() {
    let text = "[guardrails]\ntoken_budget = null\nmax_subcalls = null # none\n[hints]\nphases = null\n\
                prohibited = ['a = null']\n[execution]\nscaffolding = null\n[subcalls]\nverify = null";
    let (settings, problems) = rlm(text);
    assert_eq!(ids(&problems), ["O060"; 5]);
    let settings = settings.unwrap();
    assert_eq!(settings.guardrails, Guardrails::default());
    assert_eq!(settings.hints.prohibited, ["a = null"]);
    assert_eq!(ids(&refused("[hints]\nphases = ['a', null]"))[0], "O002");
    assert_eq!(ids(&refused("[hints]\nphases = [[]]")), ["O004"]);
}

#[test]
fn values_out_of_range_are_refused() {
    for (text, id) in [
        ("[guardrails]\ntoken_budget = 0", "O005"),
        ("[guardrails]\ntoken_budget = -1", "O004"),
        ("[guardrails]\ntoken_budget = 1.5", "O004"),
        ("[guardrails]\ntoken_budget = '1'", "O004"),
        ("[guardrails]\nmax_iterations = 0", "O005"),
        ("[guardrails]\nmax_subcall_depth = 0", "O005"),
        ("[guardrails]\nbudget_warning_pct = 101", "O005"),
        ("[guardrails]\nbudget_warning_pct = nan", "O005"),
        ("[guardrails]\nmax_budget_usd = -0.5", "O005"),
        ("[guardrails]\nmax_budget_usd = inf", "O005"),
        ("[execution]\nmax_parallel_workers = 0", "O005"),
        ("[execution]\nscaffolding = 1", "O004"),
        ("[execution]\nsubcall_model = ' '", "O005"),
        ("[execution]\ncompaction_threshold_pct = 0.96", "O007"),
        ("[template]\ntier = 'tree'", "O005"),
        ("[template]\ndefinition = '../x.toml'", "O062"),
        ("[template]\ndefinition = '/etc/passwd'", "O062"),
        ("[hints]\nphases = ['']", "O005"),
        ("[advisor]\nenabled = true", "O006"),
        ("[advisor]\nmodel = 'm'\nmax_uses = 0", "O005"),
        ("[constitution]\npath = 'x'", "O061"),
        ("template = 3", "O004"),
        ("a = 1\na = 2", "O002"),
    ] {
        assert_eq!(ids(&refused(text)), [id], "{text}");
    }
    let problems = refused("[execution]\nhard_ceiling_pct = 90.0");
    assert!(problems[0].fix.as_ref().unwrap().contains("0.9"));
    let (settings, problems) = rlm("[guardrails]\nbudget_warning_pct = 0.8");
    assert_eq!((settings.is_some(), ids(&problems)), (true, vec!["O065"]));
    for (text, id) in [
        ("[planner]\naccuracy_target = 0", "O005"),
        ("[planner]\nleaf_accuracy = 0.5", "O007"),
        ("[planner]\nmax_branching_factor = 1", "O005"),
        ("[planner]\ncontext_window_chars = 10", "O005"),
        ("[constitution]", "O061"),
    ] {
        assert_eq!(ids(&lambda(text).1), [id], "{text}");
    }
}

#[test]
fn inputs_have_names_of_python_and_plain_paths() {
    let input = |name: &str, rest: &str| format!("[inputs.{name}]\nsource = 'a.md'\n{rest}");
    assert!(rlm(&input("doc", "type = 'csv'\npre_parse = true")).0.is_some());
    for name in ["class", "'a-b'", "'1a'", "__builtins__", "report", "extract", "'ü'", "''"] {
        assert_eq!(ids(&refused(&input(name, ""))), ["O063"], "{name}");
    }
    assert_eq!(ids(&refused(&input("doc", "pre_parse = true"))), ["O007"]);
    assert_eq!(ids(&refused(&input("doc", "type = 'yaml'"))), ["O005"]);
    assert_eq!(ids(&refused("[inputs.doc]\ntype = 'json'")), ["O006"]);
    assert_eq!(ids(&refused("[inputs.doc]\nsource = 'a/../../b'")), ["O062"]);
    let taken = "[inputs.look]\nsource = 'a'\n[subcalls.look]\ncustom_impl = 'a.py:look'";
    assert_eq!(ids(&refused(taken)), ["O063"]);
}

#[test]
fn subcalls_are_known_or_bring_their_own() {
    let (settings, problems) =
        rlm("[subcalls.review]\nenabled = false\n[subcalls.look_up]\ncustom_impl = 'tools/calls.py:look_up'");
    assert!(problems.is_empty(), "{problems:?}");
    let offered = settings.unwrap();
    assert_eq!(
        offered.offered_subcalls(),
        ["extract", "calculate", "verify", "summarise", "reason", "look_up"]
    );
    let problems = refused("[subcalls.retrieve]\nenabled = true");
    assert!(
        problems[0].what.contains("not offered") && problems[0].why.as_ref().unwrap().contains("invents")
    );
    let problems = refused("[subcalls.summarize]");
    assert!(problems[0].fix.as_ref().unwrap().contains("summarise"));
    for bad in ["a.py", "a.py:", "a:b", "../a.py:b", "/a.py:b", "a.py:b-c", "a.py:class", ":b", "x:a.py:b"] {
        assert_eq!(ids(&refused(&format!("[subcalls.own]\ncustom_impl = '{bad}'"))), ["O064"], "{bad}");
    }
}

#[test]
fn bad_files_are_refused_without_a_panic() {
    assert_eq!(ids(&refused("\0\u{1}\u{2}")), ["O002"]);
    assert_eq!(ids(&refused(&"#".repeat(2 << 20))), ["O072"]);
    for deep in ["a = ".to_owned() + &"[".repeat(200_000), "a = ".to_owned() + &"{a=".repeat(100_000)] {
        assert_eq!(ids(&refused(&deep))[0], "O002");
    }
    let many = (0..20_000).map(|at| format!("key{at} = 1\n")).collect::<Vec<_>>().concat();
    assert_eq!(refused(&many).len(), 50);
}

#[test]
fn overrides_only_lower() {
    let mut settings = rlm("").0.unwrap();
    let overrides = Overrides {
        max_turns: Some(7),
        token_budget: Some(u64::MAX),
        max_cost_usd: Some(1.5),
        max_subcalls: Some(3),
        max_parallel_workers: Some(0),
        ..Overrides::default()
    };
    settings.tighten(&overrides);
    assert_eq!((settings.guardrails.max_iterations, settings.guardrails.token_budget), (7, 500_000));
    assert_eq!((settings.guardrails.max_budget_usd, settings.guardrails.max_subcalls), (Some(1.5), Some(3)));
    assert_eq!(settings.execution.max_parallel_workers, 4);
    settings.tighten(&Overrides { max_cost_usd: Some(2.0), max_subcalls: Some(9), ..Overrides::default() });
    assert_eq!((settings.guardrails.max_budget_usd, settings.guardrails.max_subcalls), (Some(1.5), Some(3)));
    settings.tighten(&Overrides { max_cost_usd: Some(f64::NAN), ..Overrides::default() });
    assert_eq!(settings.guardrails.max_budget_usd, Some(1.5));

    let mut settings = lambda("").0.unwrap();
    assert_eq!(settings.tighten(&overrides), ["max_subcalls"]);
    assert_eq!(settings.run, RunLimits { max_calls: Some(7), max_cost_usd: Some(1.5) });
}

#[test]
fn equal_settings_give_equal_records() {
    let one =
        rlm("[guardrails]\nmax_budget_usd = 1\n[inputs.b]\nsource='b'\n[inputs.a]\nsource='a'").0.unwrap();
    let other = rlm("[inputs]\na.source='a'\nb={source='b'}\n[guardrails]\nmax_budget_usd = 1.0").0.unwrap();
    assert_eq!(one.effective().to_string(), other.effective().to_string());
}

proptest! {
    #[test]
    fn no_text_is_too_strange(text in "\\PC{0,200}|([a-z_]{1,12}|[\\[\\]{}=,.'\"#\n ]|null|guardrails|[0-9.-]{1,6}){0,60}") {
        for problems in [rlm(&text).1, lambda(&text).1] {
            ids(&problems);
        }
    }

    #[test]
    fn tightening_never_raises(turns in 0u32..300, tokens in 0u64..1_000_000, dollars in -1.0..10.0f64, own in 0.01..5.0f64) {
        let text = format!("[guardrails]\nmax_budget_usd = {own:?}");
        let before = rlm(&text).0.unwrap();
        let mut after = before.clone();
        after.tighten(&Overrides {
            max_turns: Some(turns), token_budget: Some(tokens), max_cost_usd: Some(dollars), ..Overrides::default()
        });
        prop_assert!(after.guardrails.max_iterations <= before.guardrails.max_iterations);
        prop_assert!(after.guardrails.max_iterations > 0 && after.guardrails.token_budget > 0);
        prop_assert!(after.guardrails.token_budget <= before.guardrails.token_budget);
        let most = |settings: &RlmSettings| settings.guardrails.max_budget_usd.unwrap_or(f64::INFINITY);
        prop_assert!(most(&after) <= most(&before) && most(&after) > 0.0);
    }
}
