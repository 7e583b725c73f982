//! `generate suite`: determines which instances a `suite.toml` asks for, and makes them.

use std::path::Path;

use aec_base::problem::Problem;
use aec_base::text;
use aec_task::file::Visibility;
use aec_task::suite::{FAMILY, SuiteFile};
use globset::GlobBuilder;
use indexmap::IndexMap;
use serde::Serialize;

use crate::engine::Engines;
use crate::generate::{GenerateError, Order};
use crate::manifest::{LEVELS, SuiteSource};
use crate::params::{Givens, ToolMode};
use crate::produce::{Destination, Production, produce};
use crate::template::{Template, Tier};

mod allocate;

use allocate::{Allocation, Choice, allocate, apportion, shares_of_budget};

/// Defaults of `suite.toml`.
const PER_TASK: u32 = 5;
const TOTAL_MAX: u32 = 200;
const MIN_PER_DISCIPLINE: u32 = 3;

/// What a suite will contain.
#[derive(Debug)]
pub struct SuitePlan<'a> {
    pub orders: Vec<Order<'a>>,
    pub counts: Counts,
    /// Number of templates that the patterns select.
    pub templates: usize,
    /// Where the mix differs from the request, and why.
    pub notes: Vec<Problem>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    pub by_discipline: IndexMap<String, usize>,
    /// By tier.
    pub by_difficulty: IndexMap<String, usize>,
    /// By level of given values.
    pub by_visibility: IndexMap<String, usize>,
    pub by_tool_mode: IndexMap<String, usize>,
}

/// Plans a suite over the available templates.
pub fn plan<'a>(
    suite: &SuiteFile,
    path: &Path,
    templates: &'a [Template],
) -> Result<SuitePlan<'a>, Vec<Problem>> {
    let mut notes = Vec::new();
    let selected = select(suite, path, templates)?;
    let difficulties: Vec<(&str, f64)> =
        suite.coverage.difficulties.iter().map(|(name, share)| (name.as_str(), share.get())).collect();
    let usable: Vec<&Template> = selected
        .iter()
        .copied()
        .filter(|template| wanted_tiers(template, &difficulties).next().is_some())
        .collect();
    for template in selected.iter().filter(|template| wanted_tiers(template, &difficulties).next().is_none())
    {
        let names: Vec<&str> = difficulties.iter().map(|(name, _)| *name).collect();
        let what =
            format!("`{}` is left out: it has no usable tier {}", template.path(), text::one_of(&names));
        notes.push(note(path, what));
    }
    if usable.is_empty() {
        let problem =
            Problem::error("no selected template has a tier that is asked for").id(FAMILY.number(11));
        return Err(vec![problem.fix("correct coverage.difficulties or templates.include").in_file(path)]);
    }
    let counts = budget(suite, path, &usable, &mut notes);
    let total: usize = counts.iter().sum();
    let mix = &suite.visibility.mix;
    let levels = LEVELS.map(|level| {
        let share = match level {
            Givens::AllGiven => mix.all_given,
            Givens::Partial => mix.partial,
            Givens::ScenarioOnly => mix.scenario_only,
        };
        share.map_or(0.0, aec_task::suite::Share::get)
    });
    let difficulty_targets =
        apportion(total, &difficulties.iter().map(|(_, share)| *share).collect::<Vec<_>>());
    let level_targets = apportion(total, &levels);
    let choices: Vec<Vec<Choice>> = usable
        .iter()
        .map(|template| {
            let tier = |name: &str| template.tiers.get(name).filter(|tier| tier.problems.is_empty());
            difficulties
                .iter()
                .enumerate()
                .filter(|(_, (_, share))| *share > 0.0)
                .filter_map(|(difficulty, (name, _))| {
                    let level = LEVELS
                        .iter()
                        .position(|level| tier(name).is_some_and(|tier| tier.givens == *level))?;
                    Some(Choice { difficulty, level })
                })
                .collect()
        })
        .collect();
    let allocation = allocate(&counts, &choices, &difficulty_targets, &level_targets);
    explain(
        path,
        &usable,
        &difficulties,
        &choices,
        &allocation,
        (&difficulty_targets, &level_targets),
        &mut notes,
    );
    let modes = tool_modes(suite, path, &usable, &counts, &mut notes);
    let orders = orders(suite, &usable, &difficulties, &choices, &allocation, &modes);
    let counts = count(&orders);
    Ok(SuitePlan { orders, counts, templates: selected.len(), notes })
}

/// Makes and publishes a planned suite. `made` is called for each instance as soon as it is made, from several threads.
pub fn make(
    engines: &Engines,
    suite: &SuiteFile,
    plan: &SuitePlan<'_>,
    destination: &Destination,
    made: &(dyn Fn() + Sync),
) -> Result<Production, GenerateError> {
    let source = SuiteSource {
        name: suite.name.as_ref().map(ToString::to_string).unwrap_or_default(),
        seed: suite.seed.unwrap_or_default(),
        // The suite was parsed from a file, so it can be written.
        config: serde_json::to_value(suite).unwrap_or_default(),
    };
    produce(engines, &plan.orders, destination, "", Some(source), made)
}

fn note(path: &Path, what: String) -> Problem {
    Problem::note(what).id(FAMILY.number(20)).in_file(path)
}

/// The templates that the patterns select; a pattern without a match is a mistake.
fn select<'a>(
    suite: &SuiteFile,
    path: &Path,
    templates: &'a [Template],
) -> Result<Vec<&'a Template>, Vec<Problem>> {
    let every = vec!["*/*".to_owned()];
    let patterns = if suite.templates.include.is_empty() { &every } else { &suite.templates.include };
    let mut problems = Vec::new();
    let mut selected = vec![false; templates.len()];
    for pattern in patterns {
        let wrong = |what: String| Problem::error(what).id(FAMILY.number(10)).in_file(path);
        let matcher = match GlobBuilder::new(pattern).literal_separator(true).build() {
            Ok(glob) => glob.compile_matcher(),
            Err(error) => {
                let what = format!("`{}` is not a pattern: {}", text::printable(pattern), error.kind());
                problems.push(wrong(what).fix("write patterns such as electrical/* or civil/weir-flow"));
                continue;
            }
        };
        let mut any = false;
        for (slot, template) in selected.iter_mut().zip(templates) {
            let fits = matcher.is_match(template.path());
            *slot |= fits;
            any |= fits;
        }
        if !any {
            let what = format!("no template matches `{}`", text::printable(pattern));
            problems.push(wrong(what).fix("see `aec-bench generate list-templates` for their names"));
        }
    }
    if problems.is_empty() {
        Ok(templates
            .iter()
            .zip(selected)
            .filter(|(_, selected)| *selected)
            .map(|(template, _)| template)
            .collect())
    } else {
        Err(problems)
    }
}

fn wanted_tiers<'a>(
    template: &'a Template,
    difficulties: &'a [(&str, f64)],
) -> impl Iterator<Item = &'a Tier> {
    difficulties
        .iter()
        .filter(|(_, share)| *share > 0.0)
        .filter_map(|(name, _)| template.tiers.get(*name))
        .filter(|tier| tier.problems.is_empty())
}

/// How many instances each template contributes.
fn budget(suite: &SuiteFile, path: &Path, templates: &[&Template], notes: &mut Vec<Problem>) -> Vec<usize> {
    let count = |quantity: Option<aec_task::file::Quantity>, usual: u32| {
        quantity.map_or(usual, aec_task::file::Quantity::get) as usize
    };
    let per_task = count(suite.instances.per_task, PER_TASK);
    let total_max = count(suite.instances.total_max, TOTAL_MAX);
    let least = suite.coverage.min_tasks_per_discipline.unwrap_or(MIN_PER_DISCIPLINE) as usize;
    let disciplines: Vec<&str> = templates.iter().map(|template| template.discipline.as_str()).collect();
    let counts = shares_of_budget(&disciplines, per_task, total_max, least);
    let mut by_discipline: IndexMap<&str, usize> = IndexMap::new();
    for (discipline, count) in disciplines.iter().zip(&counts) {
        *by_discipline.entry(discipline).or_default() += count;
    }
    for (discipline, count) in by_discipline.into_iter().filter(|(_, count)| *count < least) {
        let what = format!(
            "{discipline} has {} instead of {least}: total_max = {total_max} and per_task = {per_task} allow no more",
            text::count(count, "task")
        );
        notes.push(note(path, what));
    }
    counts
}

/// Reports where the mix differs from the request, and why.
fn explain(
    path: &Path,
    templates: &[&Template],
    difficulties: &[(&str, f64)],
    choices: &[Vec<Choice>],
    allocation: &Allocation,
    (difficulty_targets, level_targets): (&[usize], &[usize]),
    notes: &mut Vec<Problem>,
) {
    for (at, (name, _)) in difficulties.iter().enumerate() {
        let (target, achieved) = (difficulty_targets[at], allocation.by_difficulty[at]);
        if target != achieved {
            let with =
                choices.iter().filter(|choices| choices.iter().any(|choice| choice.difficulty == at)).count();
            let what = format!(
                "difficulty {name}: {achieved} instead of {target}; {with} of {} have this tier",
                text::count(templates.len(), "template")
            );
            notes.push(note(path, what));
        }
    }
    for (at, level) in LEVELS.iter().enumerate() {
        let (target, achieved) = (level_targets[at], allocation.by_level[at]);
        if target == achieved {
            continue;
        }
        let tiers: Vec<String> = difficulties
            .iter()
            .enumerate()
            .map(|(difficulty, (name, _))| {
                let with = choices.iter().filter(|choices| {
                    choices.iter().any(|choice| choice.difficulty == difficulty && choice.level == at)
                });
                (name, with.count())
            })
            .filter(|(_, with)| *with > 0)
            .map(|(name, with)| format!("{name} of {}", text::count(with, "template")))
            .collect();
        let why = if tiers.is_empty() {
            "no tier is of this level".to_owned()
        } else {
            format!("this level has {}", tiers.join(", "))
        };
        notes.push(note(path, format!("visibility {}: {achieved} instead of {target}; {why}", level.name())));
    }
}

/// Chooses a mode for every instance of every template, spread evenly.
fn tool_modes(
    suite: &SuiteFile,
    path: &Path,
    templates: &[&Template],
    counts: &[usize],
    notes: &mut Vec<Problem>,
) -> Vec<Vec<ToolMode>> {
    let share = |share: Option<aec_task::suite::Share>| share.map_or(0.0, aec_task::suite::Share::get);
    let mix = &suite.tool_mode.mix;
    let total: usize = counts.iter().sum();
    let targets = apportion(total, &[share(mix.with_tool), share(mix.no_tool)]);
    let is_free = |template: &Template| {
        template.tool_modes.allows(ToolMode::WithTool) && template.tool_modes.allows(ToolMode::NoTool)
    };
    let fixed = |mode: ToolMode| -> usize {
        let only = templates.iter().zip(counts).filter(|(template, _)| !is_free(template));
        only.filter(|(template, _)| template.tool_modes.allows(mode)).map(|(_, count)| count).sum()
    };
    let free: usize =
        templates.iter().zip(counts).filter(|(template, _)| is_free(template)).map(|(_, count)| count).sum();
    let with = targets[0].saturating_sub(fixed(ToolMode::WithTool)).min(free);
    let achieved = fixed(ToolMode::WithTool) + with;
    if achieved != targets[0] {
        let what = format!(
            "tool mode with_tool: {achieved} instead of {}; {} must be with, {} without the calculator",
            targets[0],
            text::count(fixed(ToolMode::WithTool), "instance"),
            fixed(ToolMode::NoTool),
        );
        notes.push(note(path, what));
    }
    // Each free instance in turn gets the mode that is furthest behind.
    let (mut seen, mut given) = (0, 0);
    templates
        .iter()
        .zip(counts)
        .map(|(template, count)| {
            (0..*count)
                .map(|_| {
                    if !is_free(template) {
                        return template.tool_modes.usual();
                    }
                    seen += 1;
                    if with * seen > given * free {
                        given += 1;
                        ToolMode::WithTool
                    } else {
                        ToolMode::NoTool
                    }
                })
                .collect()
        })
        .collect()
}

fn orders<'a>(
    suite: &SuiteFile,
    templates: &[&'a Template],
    difficulties: &[(&str, f64)],
    choices: &[Vec<Choice>],
    allocation: &Allocation,
    modes: &[Vec<ToolMode>],
) -> Vec<Order<'a>> {
    let mut orders = Vec::new();
    for (at, template) in templates.iter().enumerate() {
        let mut modes = modes[at].iter().copied();
        // Tiers take turns, so that modes are spread over them too.
        let mut left: Vec<(usize, &Choice)> =
            allocation.counts[at].iter().copied().zip(&choices[at]).collect();
        let mut next: Vec<u32> = vec![0; left.len()];
        while left.iter().any(|(count, _)| *count > 0) {
            for (slot, (count, choice)) in left.iter_mut().enumerate().filter(|(_, (count, _))| *count > 0) {
                let Some(tier) = template.tiers.get(difficulties[choice.difficulty].0) else { continue };
                *count -= 1;
                orders.push(Order {
                    template,
                    tier,
                    seed: suite.seed.unwrap_or_default(),
                    index: next[slot],
                    tool_mode: modes.next().unwrap_or_else(|| template.tool_modes.usual()),
                    visibility: Visibility::Public,
                });
                next[slot] += 1;
            }
        }
    }
    orders
}

fn count(orders: &[Order<'_>]) -> Counts {
    let mut counts = Counts::default();
    for order in orders {
        *counts.by_discipline.entry(order.template.discipline.clone()).or_default() += 1;
        *counts.by_difficulty.entry(order.tier.name.clone()).or_default() += 1;
        *counts.by_visibility.entry(order.tier.givens.name().to_owned()).or_default() += 1;
        *counts.by_tool_mode.entry(order.tool_mode.name().to_owned()).or_default() += 1;
    }
    for map in [&mut counts.by_discipline, &mut counts.by_visibility, &mut counts.by_tool_mode] {
        map.sort_keys();
    }
    counts
}
