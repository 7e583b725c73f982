//! Makes instances: draws values, runs the engine, renders the prompt and writes files, until every order has its
//! task.
//!
//! Orders of one template and tier are made together, so that no two have the same givens and the engine is called in
//! batches. Unusable draws are skipped with a reason; too many of them are the template's fault.

use std::collections::{BTreeMap, BTreeSet};
use std::io;

use aec_base::digest::Digest;
use aec_base::parallel;
use aec_base::problem::Problem;
use aec_base::text;
use aec_task::file::Visibility;
use serde::Serialize;
use serde_json::{Map, Value as Json};

use crate::draw::{self, Draw, Position};
use crate::engine::{Call, EngineError, Engines, Reply};
use crate::floor::{self, HIGHEST_FLOOR};
pub use crate::instance::Files;
use crate::instance::{self, Computed, Recipe};
use crate::params::ToolMode;
use crate::render;
use crate::template::{Template, Tier};
use crate::value::number_context;

/// With more draws than this the template is at fault.
const MOST_DRAWS: u32 = 1000;
/// Failures of an engine, besides refused values, after which it is at fault. A call that takes too long counts as
/// several, because waiting is costly.
const MOST_FAULTS: usize = 20;
const LATE_COUNTS: usize = 10;
/// Most files and bytes that `build_sources` may return.
const MOST_SOURCES: usize = 100;
const SOURCES_LIMIT: usize = 8 * 1024 * 1024;

/// An instance to make.
#[derive(Clone, Debug)]
pub struct Order<'a> {
    pub template: &'a Template,
    pub tier: &'a Tier,
    pub seed: i64,
    pub index: u32,
    /// With or without the calculator.
    pub tool_mode: ToolMode,
    /// Who may see the task.
    pub visibility: Visibility,
}

/// An instance that was made.
#[derive(Clone, Debug)]
pub struct Made {
    /// The task's path below the output directory.
    pub path: String,
    /// How many draws came before this one.
    pub draw: u32,
    /// Digest of all its files.
    pub digest: Digest,
}

/// Draws of a tier that were skipped, and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Skipped {
    /// `discipline/name`.
    pub template: String,
    pub difficulty: String,
    pub reason: String,
    pub draws: usize,
}

#[derive(Debug, thiserror::Error)]
pub enum GenerateError {
    #[error("{}", .0.first().map_or("the template is at fault", |problem| problem.what.as_str()))]
    Template(Vec<Problem>),
    #[error(transparent)]
    Engine(EngineError),
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// The result of some orders: an instance for each, in their order, and the skipped draws.
#[derive(Debug)]
pub struct Generated {
    pub made: Vec<Made>,
    /// Skipped draws with their reasons.
    pub skipped: Vec<Skipped>,
}

/// Makes every order. `write` gets each task's path and files as soon as they are ready, from several threads.
pub fn generate(
    engines: &Engines,
    orders: &[Order<'_>],
    write: &(dyn Fn(&str, &Files) -> io::Result<()> + Sync),
) -> Result<Generated, GenerateError> {
    let mut groups: BTreeMap<(String, &str), Vec<usize>> = BTreeMap::new();
    for (at, order) in orders.iter().enumerate() {
        groups.entry((order.template.path(), order.tier.name.as_str())).or_default().push(at);
    }
    let groups: Vec<Vec<usize>> = groups.into_values().collect();
    let results = parallel::map(&groups, 1, |group| {
        let wanted: Vec<&Order<'_>> = group.iter().map(|at| &orders[*at]).collect();
        Group::new(engines, &wanted).make(write)
    });
    let mut made: Vec<Option<Made>> = vec![None; orders.len()];
    let mut skipped = Vec::new();
    let mut problems = Vec::new();
    for (group, result) in groups.iter().zip(results) {
        match result {
            Ok((instances, reasons)) => {
                for (at, instance) in group.iter().zip(instances) {
                    made[*at] = Some(instance);
                }
                skipped.extend(reasons);
            }
            Err(GenerateError::Template(found)) => problems.extend(found),
            Err(error) => return Err(error),
        }
    }
    if !problems.is_empty() {
        return Err(GenerateError::Template(problems));
    }
    Ok(Generated { made: made.into_iter().flatten().collect(), skipped })
}

/// Makes one instance again, given the number of its draw.
pub(crate) fn again(
    engines: &Engines,
    order: &Order<'_>,
    number: u32,
) -> Result<(String, Files), GenerateError> {
    let group = Group::new(engines, &[order]);
    let candidate = group.candidate(order, number).map_err(|reason| group.fault(28, reason))?;
    let replies = group.ask(&[&candidate])?;
    let answers = match replies.into_iter().next() {
        Some(Reply::Result(Json::Object(answers))) => answers,
        other => return Err(group.fault(28, format!("the engine gives {other:?}"))),
    };
    let computed = group.complete(&[(&candidate, answers)])?.into_iter().next().unwrap_or_default();
    let recipe = recipe(order);
    let files = recipe
        .files(&candidate.draw, &computed, &candidate.prompt)
        .map_err(|reason| group.fault(27, reason))?;
    Ok((recipe.path(&candidate.draw), files))
}

/// Orders of one template and tier.
struct Group<'a> {
    engines: &'a Engines,
    orders: Vec<&'a Order<'a>>,
    template: &'a Template,
    tier: &'a Tier,
}

/// A draw with its prompt, before the engine has computed it.
struct Candidate {
    number: u32,
    draw: Draw,
    prompt: String,
}

/// The progress of an order.
struct Progress {
    next_draw: u32,
    made: Option<Made>,
}

impl<'a> Group<'a> {
    fn new(engines: &'a Engines, orders: &[&'a Order<'a>]) -> Self {
        let first = orders[0];
        Self { engines, orders: orders.to_vec(), template: first.template, tier: first.tier }
    }

    fn make(
        &self,
        write: &(dyn Fn(&str, &Files) -> io::Result<()> + Sync),
    ) -> Result<(Vec<Made>, Vec<Skipped>), GenerateError> {
        if !self.tier.problems.is_empty() {
            return Err(GenerateError::Template(self.tier.problems.clone()));
        }
        let mut progress: Vec<Progress> =
            self.orders.iter().map(|_| Progress { next_draw: 0, made: None }).collect();
        let mut seen = BTreeSet::new();
        let mut reasons: BTreeMap<String, usize> = BTreeMap::new();
        let mut faults = 0;
        while progress.iter().any(|one| one.made.is_none()) {
            let mut round: Vec<(usize, Candidate)> = Vec::new();
            for (at, one) in progress.iter_mut().enumerate().filter(|(_, one)| one.made.is_none()) {
                let candidate = self.next_candidate(at, one, &mut seen, &mut reasons)?;
                round.push((at, candidate));
            }
            let replies = self.ask(&round.iter().map(|(_, candidate)| candidate).collect::<Vec<_>>())?;
            let mut accepted = Vec::new();
            for ((at, candidate), reply) in round.into_iter().zip(replies) {
                match self.judge(&candidate, reply)? {
                    Ok(answers) => accepted.push((at, candidate, answers)),
                    Err(Rejected { reason, faults: more }) => {
                        faults += more;
                        *reasons.entry(reason.clone()).or_default() += 1;
                        if faults > MOST_FAULTS {
                            return Err(self.fault(25, format!("the engine fails: {reason}")));
                        }
                    }
                }
            }
            self.finish(accepted, &mut progress, write)?;
        }
        let skipped = reasons.into_iter().map(|(reason, draws)| Skipped {
            template: self.template.path(),
            difficulty: self.tier.name.clone(),
            reason,
            draws,
        });
        Ok((progress.into_iter().filter_map(|one| one.made).collect(), skipped.collect()))
    }

    /// The next usable draw of an order that differs from those of all other orders.
    fn next_candidate(
        &self,
        at: usize,
        progress: &mut Progress,
        seen: &mut BTreeSet<String>,
        reasons: &mut BTreeMap<String, usize>,
    ) -> Result<Candidate, GenerateError> {
        loop {
            let number = progress.next_draw;
            if number == MOST_DRAWS {
                return Err(self.exhausted(reasons));
            }
            progress.next_draw += 1;
            let order = self.orders[at];
            let drawn = draw::draw(self.template, self.tier, position(order), number);
            let reason = match drawn {
                Err(reason) => reason,
                Ok(draw) if !seen.insert(draw.identity()) => {
                    "another instance has the same givens".to_owned()
                }
                Ok(draw) => return self.prompted(order, draw, number),
            };
            *reasons.entry(reason).or_default() += 1;
        }
    }

    /// A draw by its number, without checking for duplicates.
    fn candidate(&self, order: &Order<'_>, number: u32) -> Result<Candidate, String> {
        let draw = draw::draw(self.template, self.tier, position(order), number)?;
        let prompt = recipe(order).prompt(&draw)?;
        Ok(Candidate { number, draw, prompt })
    }

    fn prompted(&self, order: &Order<'_>, draw: Draw, number: u32) -> Result<Candidate, GenerateError> {
        let prompt = recipe(order).prompt(&draw).map_err(|reason| {
            self.fault(24, format!("instruction.md cannot be rendered for `{}`: {reason}", self.tier.name))
        })?;
        Ok(Candidate { number, draw, prompt })
    }

    fn ask(&self, candidates: &[&Candidate]) -> Result<Vec<Reply>, GenerateError> {
        let arguments: Vec<_> =
            candidates.iter().map(|candidate| candidate.draw.arguments(self.template)).collect();
        let calls: Vec<Call<'_>> = arguments.iter().map(Call::compute).collect();
        self.engines.run(self.template, &calls).map_err(|error| self.engine_error(error))
    }

    /// Decides whether an engine's result makes a task; the outer error is the template's fault.
    fn judge(
        &self,
        candidate: &Candidate,
        reply: Reply,
    ) -> Result<Result<Map<String, Json>, Rejected>, GenerateError> {
        let rejected = |reason: String, faults: usize| Ok(Err(Rejected { reason, faults }));
        let answers = match reply {
            Reply::Result(Json::Object(answers)) => answers,
            Reply::Result(other) => {
                return Err(self.fault(25, format!("compute returned {other}, not a dictionary")));
            }
            Reply::Refused(reason) => return rejected(reason, 0),
            Reply::Late(reason) => return rejected(reason, LATE_COUNTS),
            Reply::Fault(reason) => return rejected(reason, 1),
        };
        if let Some(name) = self.template.outputs.keys().find(|name| !answers.contains_key(*name)) {
            return Err(self.fault(25, format!("compute does not give `{name}`")));
        }
        if let Some(name) = answers.keys().find(|name| !self.template.outputs.contains_key(*name)) {
            return Err(self.fault(25, format!("compute gives `{name}`, which is not an output")));
        }
        let mut context = candidate.draw.context();
        context.extend(answers.iter().map(|(name, value)| (name.clone(), json_context(value))));
        for constraint in &self.template.constraints {
            let names = constraint.names();
            let applies = names.iter().all(|name| context.contains_key(name));
            if draw::is_about_inputs(self.template, names) || !applies {
                continue;
            }
            match constraint.holds(&context) {
                Ok(true) => {}
                Ok(false) => return rejected(format!("it breaks `{}`", constraint.text()), 0),
                Err(reason) => return rejected(reason, 1),
            }
        }
        if let Some(name) = floor::swallowed(self.template, self.tier, &answers) {
            return rejected(format!("`{name}` is within its tolerance of zero"), 0);
        }
        let floor = floor::floor(self.template, self.tier, &answers, &candidate.prompt);
        if floor > HIGHEST_FLOOR {
            return rejected("the same number for every answer would earn too much".to_owned(), 0);
        }
        Ok(Ok(answers))
    }

    /// Asks the engine for the files and fixtures that it makes itself.
    fn complete(&self, accepted: &[(&Candidate, Map<String, Json>)]) -> Result<Vec<Computed>, GenerateError> {
        let hooks = self.hooks()?;
        let mut computed: Vec<Computed> = accepted
            .iter()
            .map(|(_, answers)| Computed { answers: answers.clone(), ..Computed::default() })
            .collect();
        for hook in hooks {
            let calls: Vec<Call<'_>> = accepted
                .iter()
                .map(|(candidate, answers)| match hook {
                    "build_sources" => Call::sources(&candidate.draw.values),
                    _ => Call::golden(hook, &candidate.draw.values, answers),
                })
                .collect();
            let replies =
                self.engines.run(self.template, &calls).map_err(|error| self.engine_error(error))?;
            for (one, reply) in computed.iter_mut().zip(replies) {
                let result = match reply {
                    Reply::Result(result) => result,
                    Reply::Refused(reason) | Reply::Late(reason) | Reply::Fault(reason) => {
                        return Err(self.fault(25, format!("{hook} fails: {reason}")));
                    }
                };
                match hook {
                    "build_sources" => one.sources = self.sources(result)?,
                    "build_golden_pass" => one.golden_pass = result.as_str().map(str::to_owned),
                    _ => one.golden_fail = result.as_str().map(str::to_owned),
                }
            }
        }
        Ok(computed)
    }

    /// The hooks that the engine's source defines; asking the engine would cost a fork for each template.
    fn hooks(&self) -> Result<Vec<&'static str>, GenerateError> {
        const HOOKS: [&str; 3] = ["build_sources", "build_golden_pass", "build_golden_fail"];
        let source = self.template.file("engine.py").unwrap_or_default();
        if !HOOKS.iter().any(|hook| source.contains(hook)) {
            return Ok(Vec::new());
        }
        let described = self.engines.describe(self.template).map_err(|error| self.engine_error(error))?;
        Ok(HOOKS.into_iter().filter(|hook| described.hooks.iter().any(|known| known == hook)).collect())
    }

    fn sources(&self, result: Json) -> Result<BTreeMap<String, String>, GenerateError> {
        let sources: BTreeMap<String, String> = serde_json::from_value(result)
            .map_err(|error| self.fault(25, format!("build_sources: {error}")))?;
        let sound = |path: &str| {
            !path.is_empty()
                && path.len() <= 200
                && path.split('/').all(|part| {
                    aec_base::name::check(part.trim_start_matches('.')).is_ok() && !part.starts_with('.')
                })
                && path != "Dockerfile"
                && path != "output.json"
        };
        if let Some(path) = sources.keys().find(|path| !sound(path)) {
            let what =
                format!("build_sources gives a file `{}`, which is not allowed", text::printable(path));
            return Err(self.fault(25, what));
        }
        if sources.len() > MOST_SOURCES || sources.values().map(String::len).sum::<usize>() > SOURCES_LIMIT {
            return Err(self.fault(25, "build_sources gives too many or too large files"));
        }
        Ok(sources)
    }

    fn finish(
        &self,
        accepted: Vec<(usize, Candidate, Map<String, Json>)>,
        progress: &mut [Progress],
        write: &(dyn Fn(&str, &Files) -> io::Result<()> + Sync),
    ) -> Result<(), GenerateError> {
        let answered: Vec<(&Candidate, Map<String, Json>)> =
            accepted.iter().map(|(_, candidate, answers)| (candidate, answers.clone())).collect();
        let complete = self.complete(&answered)?;
        for ((at, candidate, _), computed) in accepted.into_iter().zip(complete) {
            if computed.sources.is_empty() {
                self.check_prompt(&candidate)?;
            }
            let recipe = recipe(self.orders[at]);
            let files = recipe
                .files(&candidate.draw, &computed, &candidate.prompt)
                .map_err(|reason| self.fault(27, reason))?;
            let path = recipe.path(&candidate.draw);
            write(&path, &files)?;
            progress[at].made = Some(Made { path, draw: candidate.number, digest: instance::digest(&files) });
        }
        Ok(())
    }

    /// Readers of the prompt must find every given in it.
    fn check_prompt(&self, candidate: &Candidate) -> Result<(), GenerateError> {
        if let [name, ..] = render::unprinted(&candidate.draw, &candidate.prompt).as_slice() {
            let what = format!("instruction.md does not print `{name}` in `{}`", self.tier.name);
            return Err(self.fault(24, what));
        }
        let rules = render::rules(self.template, self.tier);
        if !candidate.prompt.contains(&rules) {
            let what = format!(
                "instruction.md does not print the rules of `{}`: use {{{{ rules }}}}",
                self.tier.name
            );
            return Err(self.fault(24, what));
        }
        Ok(())
    }

    fn exhausted(&self, reasons: &BTreeMap<String, usize>) -> GenerateError {
        let mut worst: Vec<(&String, &usize)> = reasons.iter().collect();
        worst.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
        let worst: Vec<String> =
            worst.iter().take(3).map(|(reason, count)| format!("{reason} ({count} times)")).collect();
        let what = format!(
            "no draw of `{}` in {MOST_DRAWS} makes another instance for {}",
            self.tier.name,
            text::count(self.orders.len(), "order"),
        );
        let problem = self.template.problem(26, what).why(worst.join("; "));
        GenerateError::Template(vec![
            problem.fix("widen the ranges, refine the grid or loosen the constraints"),
        ])
    }

    fn engine_error(&self, error: EngineError) -> GenerateError {
        match error {
            EngineError::Broken(reason) => self.fault(25, format!("engine.py: {reason}")),
            other => GenerateError::Engine(other),
        }
    }

    fn fault(&self, number: u32, what: impl Into<String>) -> GenerateError {
        let problem = self.template.problem(number, what);
        GenerateError::Template(vec![problem.fix("correct the template; see docs/templates.md")])
    }
}

/// A draw that the engine or a constraint rejected.
struct Rejected {
    reason: String,
    /// How much this counts against the template; 0 if the engine merely refused the values.
    faults: usize,
}

fn position(order: &Order<'_>) -> Position {
    Position { seed: order.seed, index: order.index }
}

fn recipe<'a>(order: &Order<'a>) -> Recipe<'a> {
    Recipe {
        template: order.template,
        tier: order.tier,
        position: position(order),
        mode: order.tool_mode,
        visibility: order.visibility,
    }
}

fn json_context(value: &Json) -> minijinja::Value {
    match value {
        Json::Bool(flag) => minijinja::Value::from(*flag),
        Json::Number(number) => number_context(number.as_f64().unwrap_or(f64::NAN)),
        Json::String(text) => minijinja::Value::from(text.as_str()),
        Json::Array(items) => items.iter().map(json_context).collect(),
        Json::Object(_) | Json::Null => minijinja::Value::from(()),
    }
}
