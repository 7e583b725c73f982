//! `generate validate-template`: checks a template by using it.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Mutex;
use std::time::Duration;

use aec_base::decimal::rounded;
use aec_base::problem::Problem;
use aec_base::text;
use aec_judge::judge::Isolation;
use aec_judge::scorer::{self, Answers};
use aec_sandbox::python::Python;
use aec_sandbox::{ExecSpec, Exit, Limits, Room, RoomSpec, Sandbox as _, SandboxError};
use aec_task::file::Visibility;
use indexmap::IndexMap;
use serde::Serialize;
use serde_json::{Map, Value as Json};

use crate::check::typed;
use crate::engine::{Call, EngineError, Engines, Reply};
use crate::floor::HIGHEST_FLOOR;
use crate::generate::{GenerateError, Order, Skipped, generate};
use crate::instance::{Files, is_executable};
use crate::params::{ExampleTable, ToolMode};
use crate::template::{FAMILY, Template, Tier};
use crate::value::Value;

/// Seed of the instances that are made for the checks.
const SEED: i64 = 1;

#[derive(Debug, Serialize)]
pub struct Validation {
    /// `discipline/name`.
    pub template: String,
    pub version: String,
    /// Number of worked examples that the engine reproduces.
    pub examples: usize,
    pub tiers: Vec<TierReport>,
    #[serde(skip)]
    pub problems: Vec<Problem>,
}

#[derive(Debug, Serialize)]
pub struct TierReport {
    pub difficulty: String,
    /// How many of the given values its prompts show.
    pub visibility_level: &'static str,
    pub instances: usize,
    /// The average reward of guessing the median answers.
    pub medians_earn: f64,
    pub skipped: Vec<Skipped>,
}

/// How a template is tested.
#[derive(Debug)]
pub struct Trial<'a> {
    pub engines: &'a Engines,
    /// Whether tools and solutions run in rooms.
    pub isolation: Isolation,
    /// The interpreter for tools and solutions.
    pub python: Option<&'a Python>,
    /// Number of instances of each tier.
    pub instances: u32,
}

impl Trial<'_> {
    /// Tests a template: its engine, examples, tiers, prompts, answers, calculator and solution.
    pub fn validate(&self, template: &Template) -> Result<Validation, EngineError> {
        let mut validation = Validation {
            template: template.path(),
            version: template.version.to_string(),
            examples: 0,
            tiers: Vec::new(),
            problems: template.tiers.values().flat_map(|tier| tier.problems.iter().cloned()).collect(),
        };
        match self.engine(template) {
            Ok(problems) if problems.is_empty() => {}
            Ok(problems) => {
                validation.problems.extend(problems);
                return Ok(validation);
            }
            Err(EngineError::Broken(reason)) => {
                validation.problems.push(fault(template, 25, format!("engine.py: {reason}")));
                return Ok(validation);
            }
            Err(error) => return Err(error),
        }
        self.examples(template, &mut validation)?;
        for tier in template.tiers.values().filter(|tier| tier.problems.is_empty()) {
            self.tier(template, tier, &mut validation)?;
        }
        Ok(validation)
    }

    /// Checks that `compute` takes exactly the parameters.
    fn engine(&self, template: &Template) -> Result<Vec<Problem>, EngineError> {
        let described = self.engines.describe(template)?;
        let mut problems = Vec::new();
        for name in template.params.keys() {
            if !described.parameters.contains(name) && !described.any_keyword {
                problems.push(fault(template, 25, format!("compute does not take `{name}`")));
            }
        }
        for name in described.parameters.iter().filter(|name| !template.params.contains_key(*name)) {
            problems.push(fault(template, 25, format!("compute takes `{name}`, which is not a parameter")));
        }
        for name in described.defaults.iter().filter(|name| template.params.contains_key(*name)) {
            let what = format!("compute has a default for `{name}`");
            problems.push(
                fault(template, 25, what).why("a given that is missing from a prompt would not be noticed"),
            );
        }
        Ok(problems)
    }

    fn examples(&self, template: &Template, validation: &mut Validation) -> Result<(), EngineError> {
        if template.examples.is_empty() {
            let problem =
                Problem::note("there is no worked example").id(FAMILY.number(33)).about(template.path());
            validation.problems.push(problem.fix("add one from a text, or by another method"));
            return Ok(());
        }
        let inputs: Vec<IndexMap<String, Value>> = template
            .examples
            .iter()
            .map(|example| {
                let value = |(name, quantity): (&String, &crate::template::Quantity)| {
                    Some((name.clone(), typed(example.inputs.get(name)?, quantity.kind)?))
                };
                template.params.iter().filter_map(value).collect()
            })
            .collect();
        let calls: Vec<Call<'_>> = inputs.iter().map(Call::compute).collect();
        let replies = self.engines.run(template, &calls)?;
        for (at, (example, reply)) in template.examples.iter().zip(replies).enumerate() {
            let faults = match reply {
                Reply::Result(Json::Object(answers)) => disagreements(example, &answers),
                Reply::Result(other) => vec![format!("compute returned {other}")],
                Reply::Refused(reason) | Reply::Late(reason) | Reply::Fault(reason) => vec![reason],
            };
            if faults.is_empty() {
                validation.examples += 1;
            }
            for what in faults {
                let what = format!("example {} ({}): {what}", at + 1, text::printable(&example.source));
                validation.problems.push(fault(template, 17, what));
            }
        }
        Ok(())
    }

    fn tier(&self, template: &Template, tier: &Tier, validation: &mut Validation) -> Result<(), EngineError> {
        let tool_mode = template.tool_modes.usual();
        let orders: Vec<Order<'_>> = (0..self.instances)
            .map(|index| Order {
                template,
                tier,
                seed: SEED,
                index,
                tool_mode,
                visibility: Visibility::Public,
            })
            .collect();
        let made: Mutex<BTreeMap<String, Files>> = Mutex::default();
        let keep = |path: &str, files: &Files| {
            if let Ok(mut made) = made.lock() {
                made.insert(path.to_owned(), files.clone());
            }
            Ok(())
        };
        let generated = match generate(self.engines, &orders, &keep) {
            Ok(generated) => generated,
            Err(GenerateError::Template(problems)) => {
                validation.problems.extend(problems);
                return Ok(());
            }
            Err(GenerateError::Engine(error)) => return Err(error),
            Err(GenerateError::Io(error)) => return Err(error.into()),
        };
        let made = made.into_inner().unwrap_or_default();
        let mut report = TierReport {
            difficulty: tier.name.clone(),
            visibility_level: tier.givens.name(),
            instances: made.len(),
            medians_earn: 0.0,
            skipped: generated.skipped,
        };
        let first = generated.made.first().and_then(|first| made.get(&first.path));
        if let Some(files) = first {
            for what in self.try_out(template, tier, tool_mode, files)? {
                validation.problems.push(fault(template, 29, format!("{}: {what}", tier.name)));
            }
        }
        let standard: Vec<(Answers, Map<String, Json>)> = made.values().filter_map(standard).collect();
        for (answers, golden) in &standard {
            let reward = scorer::score(answers, Json::Object(golden.clone()).to_string().as_bytes()).reward;
            if reward < 1.0 {
                let what = format!("{}: the golden answer earns {reward}", tier.name);
                validation.problems.push(fault(template, 27, what));
            }
        }
        report.medians_earn = medians_earn(&standard);
        if report.medians_earn > HIGHEST_FLOOR {
            let what = format!(
                "{}: answering with medians earns {} on average",
                tier.name,
                rounded(report.medians_earn, 2)
            );
            validation.problems.push(
                Problem::warning(what)
                    .id(FAMILY.number(34))
                    .about(template.path())
                    .fix("widen the ranges, or give less weight to what hardly varies"),
            );
        }
        validation.tiers.push(report);
        Ok(())
    }

    /// Runs the calculator and the reference solution of an instance; returns their problems.
    fn try_out(
        &self,
        template: &Template,
        tier: &Tier,
        mode: ToolMode,
        files: &Files,
    ) -> Result<Vec<String>, EngineError> {
        if self.isolation == Isolation::None {
            return Ok(Vec::new());
        }
        let golden: Map<String, Json> = match files.get("tests/fixtures/golden_pass.json") {
            Some(text) => aec_base::json::from_str(text).unwrap_or_default(),
            None => return Ok(Vec::new()),
        };
        let mut room = self.room(files)?;
        let mut problems = Vec::new();
        if mode == ToolMode::WithTool
            && let Some(tool) = files.keys().find(|path| path.starts_with("tools/"))
            && let Some(what) = run_tool(&mut room, template, tier, tool, &golden)?
        {
            problems.push(what);
        }
        let mut solve = ExecSpec::new(["bash", "/solution/solve.sh"]);
        solve.cwd = "/workspace".into();
        solve.deadline = Duration::from_secs(30);
        let result = room.exec(&solve, &mut |_, _| {})?;
        let output = room.directory("/workspace").map(|tree| tree.read(Path::new("output.json"), 1 << 20));
        if let Some(Ok(submission)) = output {
            if let Some((answers, _)) = standard(files) {
                let reward = scorer::score(&answers, &submission).reward;
                if reward < 1.0 {
                    problems.push(format!("the reference solution earns {reward}"));
                }
            }
        } else {
            problems.push(format!(
                "the reference solution ends with {:?} and writes nothing: {}",
                result.exit,
                last_line(&result.stderr.text())
            ));
        }
        Ok(problems)
    }

    fn room(&self, files: &Files) -> Result<Room, SandboxError> {
        let mut spec = RoomSpec {
            writable: vec!["/workspace".to_owned(), "/solution".to_owned()],
            sealed: Vec::new(),
            show: Vec::new(),
            programs: Vec::new(),
            limits: Limits { cpus: 1, memory_mb: 512, storage_mb: 64, pids: 64 },
            network: false,
        };
        if let Some(python) = self.python {
            spec.offer_python(python);
        }
        let room = Room::open(&spec)?;
        for (path, content) in files {
            let (place, inside) = if let Some(inside) = path.strip_prefix("environment/") {
                ("/workspace", inside)
            } else if path.starts_with("tools/") {
                ("/workspace", path.as_str())
            } else if let Some(inside) = path.strip_prefix("solution/") {
                ("/solution", inside)
            } else {
                continue;
            };
            if let Some(tree) = room.directory(place) {
                tree.write(Path::new(inside), content.as_bytes(), is_executable(path))?;
            }
        }
        Ok(room)
    }
}

/// Asks the calculator for help and for the answer; returns its problems.
fn run_tool(
    room: &mut Room,
    template: &Template,
    tier: &Tier,
    tool: &str,
    golden: &Map<String, Json>,
) -> Result<Option<String>, SandboxError> {
    let tool = format!("/workspace/{tool}");
    let help = room.exec(&ExecSpec::new(["python3", &tool, "--help"]), &mut |_, _| {})?;
    let printed = help.stdout.text();
    let flag = |name: &String| format!("--{}", name.replace('_', "-"));
    if help.exit != Exit::Code(0) || !template.params.keys().all(|name| printed.contains(&flag(name))) {
        return Ok(Some(format!("the calculator's --help fails: {}", last_line(&help.stderr.text()))));
    }
    let Some(example) = template.examples.first() else { return Ok(None) };
    let mut ask = ExecSpec::new(["python3", &tool, "--json", "-"]);
    // A map of numbers and texts can always be written.
    ask.stdin = serde_json::to_vec(&example.inputs).unwrap_or_default();
    let answered = room.exec(&ask, &mut |_, _| {})?;
    let answers: Option<Map<String, Json>> = aec_base::json::from_str(&answered.stdout.text()).ok();
    let keys = |answers: &Map<String, Json>| tier.outputs.iter().all(|name| answers.contains_key(name));
    Ok(match answers {
        Some(answers) if keys(&answers) && golden.keys().all(|name| answers.contains_key(name)) => {
            disagreements(example, &answers).into_iter().next().map(|what| format!("the calculator: {what}"))
        }
        _ => Some(format!("the calculator fails: {}", last_line(&answered.stderr.text()))),
    })
}

fn fault(template: &Template, number: u32, what: impl Into<String>) -> Problem {
    template.problem(number, what).fix("correct the template; see docs/templates.md")
}

fn last_line(text: &str) -> String {
    text.lines().last().unwrap_or("it says nothing").to_owned()
}

/// The differences between an engine's answers and a worked example.
fn disagreements(example: &ExampleTable, answers: &Map<String, Json>) -> Vec<String> {
    const ROUNDING: f64 = 0.01;
    let tolerance = example.tolerance.unwrap_or(ROUNDING);
    example
        .outputs
        .iter()
        .filter_map(|(name, expected)| match answers.get(name) {
            None => Some(format!("the engine gives no `{name}`")),
            Some(found) if agree(expected, found, tolerance) => None,
            Some(found) => Some(format!("`{name}` is {expected}, the engine gives {found}")),
        })
        .collect()
}

/// Whether two answers are equal up to a relative tolerance of their numbers.
fn agree(expected: &Json, found: &Json, tolerance: f64) -> bool {
    match (expected, found) {
        (Json::Array(one), Json::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| agree(one, other, tolerance))
        }
        (Json::Object(one), Json::Object(other)) => {
            one.len() == other.len()
                && one
                    .iter()
                    .all(|(key, one)| other.get(key).is_some_and(|other| agree(one, other, tolerance)))
        }
        _ => match (expected.as_f64(), found.as_f64()) {
            (Some(expected), Some(found)) => (expected - found).abs() <= tolerance * expected.abs() + 1e-12,
            _ => expected == found,
        },
    }
}

/// The answers file and the golden answer of an instance that the standard scorer judges.
fn standard(files: &Files) -> Option<(Answers, Map<String, Json>)> {
    let answers = Answers::parse(files.get("tests/answers.json")?.as_bytes()).ok()?;
    let golden = aec_base::json::from_str(files.get("tests/fixtures/golden_pass.json")?).ok()?;
    Some((answers, golden))
}

/// The average reward of an agent that knows only the usual answers.
fn medians_earn(instances: &[(Answers, Map<String, Json>)]) -> f64 {
    let Some((_, first)) = instances.first() else { return 0.0 };
    let mut usual = Map::new();
    for name in first.keys() {
        let mut seen: Vec<&Json> = instances.iter().filter_map(|(_, golden)| golden.get(name)).collect();
        let most_frequent = |seen: &[&Json]| {
            let count = |value: &Json| seen.iter().filter(|other| ***other == *value).count();
            seen.iter().max_by_key(|value| count(value)).map(|value| (*value).clone())
        };
        if seen.iter().all(|value| value.is_number()) {
            seen.sort_by(|a, b| a.as_f64().unwrap_or(0.0).total_cmp(&b.as_f64().unwrap_or(0.0)));
            if let Some(median) = seen.get(seen.len() / 2) {
                usual.insert(name.clone(), (*median).clone());
            }
        } else if let Some(value) = most_frequent(&seen) {
            usual.insert(name.clone(), value);
        }
    }
    let guess = Json::Object(usual).to_string();
    let earned: f64 =
        instances.iter().map(|(answers, _)| scorer::score(answers, guess.as_bytes()).reward).sum();
    #[expect(clippy::cast_precision_loss, reason = "some dozens of instances")]
    let count = instances.len() as f64;
    earned / count
}
