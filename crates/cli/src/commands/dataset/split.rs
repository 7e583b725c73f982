//! `aec-bench dataset split`.

use std::collections::{BTreeSet, HashMap};

use aec_base::decimal::percent;
use aec_base::name::Name;
use aec_base::problem::Problem;
use aec_base::project::Project;
use aec_base::settings::Setting;
use aec_base::text;
use aec_task::dataset::FAMILY;
use aec_task::dataset::duplicates::{Group, groups, prompts};
use aec_task::dataset::freeze::{Draft, freeze};
use aec_task::dataset::manifest::{Manifest, Source, SourceMethod};
use aec_task::dataset::reference::DatasetRef;
use aec_task::dataset::split::{FEWEST_FAMILIES, Member, Side, TrainShare, sides};
use aec_task::dataset::store::{Store, already_there};
use aec_task::dataset::verify::{load_tasks, verify};
use aec_task::task::Task;
use clap::Args;
use serde::Serialize;

use crate::commands::dataset::create::parse_name;
use crate::context::Context;
use crate::failure::Failure;
use crate::output::Outcome;
use crate::table::{Table, TableArguments};

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
                        aec-bench dataset split electrical-v1 --seed 7\n  \
                        aec-bench dataset split electrical-v1 --seed 7 --train-share 0.5 --names fit,test")]
pub(crate) struct DatasetSplitArguments {
    /// The dataset: NAME for its highest version, or NAME@VERSION
    #[arg(value_name = "NAME[@VERSION]")]
    pub(crate) reference: String,
    /// Share of the tasks for training
    #[arg(long, value_name = "SHARE", default_value_t = 0.8)]
    pub(crate) train_share: f64,
    /// Seed that decides which family goes to which of the two datasets
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub(crate) seed: i64,
    /// Names of the two new datasets [default: NAME-train,NAME-eval]
    #[arg(long, value_name = "TRAIN,EVAL")]
    pub(crate) names: Option<String>,
    #[command(flatten)]
    pub(crate) table: TableArguments,
}

const COLUMNS: [&str; 5] = ["SIDE", "DATASET", "TASKS", "SHARE", "FAMILIES"];

#[derive(Serialize)]
struct Data {
    dataset: String,
    seed: i64,
    train_share: f64,
    /// What was kept together: families, or nothing if there are too few of them.
    split_by: &'static str,
    families: usize,
    train: SideData,
    eval: SideData,
    /// Groups of tasks that ask nearly the same question and have members in both datasets.
    near_duplicates_across: Vec<Group>,
}

#[derive(Serialize)]
struct SideData {
    dataset: String,
    content_hash: aec_base::digest::Digest,
    tasks: usize,
    /// Share of all tasks.
    share: f64,
    families: usize,
    /// Whether the same dataset existed before the split.
    was_there: bool,
}

pub(crate) fn split(context: &Context, arguments: &DatasetSplitArguments) -> Result<Outcome, Failure> {
    arguments.table.apply(&[&COLUMNS])?;
    let share = TrainShare::new(arguments.train_share).ok_or_else(|| {
        let what = format!("the train share must be between 0 and 1, not {}", arguments.train_share);
        Failure::usage(Problem::error(what).fix("write a share such as 0.8"))
    })?;
    let reference = DatasetRef::parse(&arguments.reference)?;
    let project = context.project(Vec::new())?;
    let store = Store::new(project.settings.path(Setting::Datasets));
    let whole = store.read(&reference)?;
    let names = names(arguments, &whole.name)?;
    if whole.tasks.len() < 2 {
        let what = format!("{} has one task, which cannot be split", whole.reference());
        return Err(Problem::error(what).id(FAMILY.number(50)).fix("split a dataset with more tasks").into());
    }
    let verification = verify(&project.root, &whole);
    if !verification.is_clean {
        return Err(verification.problems.into());
    }
    let tasks = load_tasks(&project.root, &whole)?;
    let members: Vec<Member> = tasks.iter().map(Member::of).collect();
    let sides = sides(&members, arguments.seed, share);
    let parent = Parent { whole: &whole, seed: arguments.seed, share };
    let drafts = [(Side::Train, &names[0]), (Side::Eval, &names[1])]
        .map(|(side, name)| draft(context, &project, &parent, side, name, &tasks, &sides));
    let [train, eval] = drafts;
    let (train, eval) = (train?, eval?);
    let train_was_there = is_there(&store, &train)?;
    let eval_was_there = is_there(&store, &eval)?;
    for (manifest, was_there) in [(&train, train_was_there), (&eval, eval_was_there)] {
        if !was_there {
            store.publish(manifest)?;
        }
    }
    let side_data = |manifest: &Manifest, side: Side, was_there: bool| SideData {
        dataset: manifest.reference(),
        content_hash: manifest.content_hash,
        tasks: manifest.tasks.len(),
        share: ratio(manifest.tasks.len(), tasks.len()),
        families: families(
            members.iter().zip(&sides).filter(|(_, at)| **at == side).map(|(member, _)| member),
        ),
        was_there,
    };
    let families = families(members.iter());
    let data = Data {
        dataset: whole.reference(),
        seed: arguments.seed,
        train_share: share.get(),
        split_by: if families < FEWEST_FAMILIES { "task" } else { "family" },
        families,
        train: side_data(&train, Side::Train, train_was_there),
        eval: side_data(&eval, Side::Eval, eval_was_there),
        near_duplicates_across: across(&tasks, &sides)?,
    };
    let outcome = Outcome::new(context.format, &data, || split_text(&data))?;
    let problems = leak(&data.near_duplicates_across).into_iter().collect();
    Ok(outcome.remark(explanation(&data)).problems(problems))
}

fn names(arguments: &DatasetSplitArguments, whole: &Name) -> Result<[Name; 2], Failure> {
    let Some(names) = &arguments.names else {
        return Ok([parse_name(&format!("{whole}-train"))?, parse_name(&format!("{whole}-eval"))?]);
    };
    let wrong = |what: &str| Failure::usage(Problem::error(what).fix("write --names TRAIN,EVAL"));
    let Some((train, eval)) = names.split_once(',') else {
        return Err(wrong("two names are needed, with a comma between them"));
    };
    let names = [parse_name(train.trim())?, parse_name(eval.trim())?];
    if names[0] == names[1] {
        return Err(wrong("the two sides need different names"));
    }
    if names.contains(whole) {
        return Err(wrong("a side needs another name than the dataset that is split"));
    }
    Ok(names)
}

/// The dataset to split, and how to split it.
struct Parent<'a> {
    whole: &'a Manifest,
    seed: i64,
    share: TrainShare,
}

fn draft(
    context: &Context,
    project: &Project,
    parent: &Parent<'_>,
    side: Side,
    name: &Name,
    tasks: &[Task],
    sides: &[Side],
) -> Result<Manifest, Failure> {
    let of_side: Vec<&Task> =
        tasks.iter().zip(sides).filter(|(_, at)| **at == side).map(|(task, _)| task).collect();
    let word = match side {
        Side::Train => "Train",
        Side::Eval => "Eval",
    };
    let summary = format!(
        "{word} side of {} ({}), train share {}, seed {}",
        parent.whole.reference(),
        parent.whole.content_hash,
        parent.share.get(),
        parent.seed
    );
    let source = Source {
        method: SourceMethod::Split,
        suite_config: parent.whole.source.suite_config.clone(),
        seed: Some(parent.seed),
    };
    let draft = Draft {
        name: name.clone(),
        version: parent.whole.version.clone(),
        created_at: context.created_at()?,
        summary: Some(summary),
        purpose: parent.whole.description.purpose.clone(),
        source,
    };
    Ok(freeze(&project.root, &of_side, draft)?)
}

/// Whether the same dataset exists already: a split that was stopped after its first half can be run again.
fn is_there(store: &Store, manifest: &Manifest) -> Result<bool, Failure> {
    if !store.has(&manifest.name, &manifest.version) {
        return Ok(false);
    }
    let reference = DatasetRef { name: manifest.name.clone(), version: Some(manifest.version.clone()) };
    if store.read(&reference)?.content_hash == manifest.content_hash {
        return Ok(true);
    }
    let place = store.place(&manifest.name, &manifest.version);
    let problem = already_there(&manifest.name, &manifest.version, &place);
    Err(problem.fix("choose other names with --names, or split another version").into())
}

fn families<'a>(members: impl Iterator<Item = &'a Member>) -> usize {
    members.map(|member| &member.family).collect::<BTreeSet<_>>().len()
}

#[expect(clippy::cast_precision_loss, reason = "no dataset has that many tasks")]
fn ratio(part: usize, whole: usize) -> f64 {
    (part as f64 / whole as f64 * 1e4).round() / 1e4
}

/// Groups of near duplicates with members in both datasets.
fn across(tasks: &[Task], sides: &[Side]) -> Result<Vec<Group>, Failure> {
    let side_of: HashMap<&str, Side> =
        tasks.iter().zip(sides).map(|(task, side)| (task.id.as_str(), *side)).collect();
    let mut found = groups(&prompts(tasks)?);
    found.retain(|group| {
        let sides: BTreeSet<Option<&Side>> = group.tasks.iter().map(|id| side_of.get(id.as_str())).collect();
        sides.len() > 1
    });
    Ok(found)
}

fn leak(across: &[Group]) -> Option<Problem> {
    let first = across.first()?;
    let shown = first.tasks.iter().take(4).cloned().collect::<Vec<_>>().join(", ");
    let more = if first.tasks.len() > 4 { ", …" } else { "" };
    let what = format!("{} of near duplicates on both sides", text::count(across.len(), "group"));
    Some(
        Problem::warning(what)
            .id(FAMILY.number(51))
            .why(format!("the evaluation would contain what was trained on; the first: {shown}{more}"))
            .fix("leave all but one of each group out, or give them the same generation.template"),
    )
}

fn explanation(data: &Data) -> String {
    match data.split_by {
        "family" => format!("Split by {} families: no family is on both sides.", data.families),
        _ => format!(
            "Split task by task: {} for whole families there must be at least {FEWEST_FAMILIES}.",
            match data.families {
                1 => "there is one family, and".to_owned(),
                n => format!("there are {n} families, and"),
            }
        ),
    }
}

fn split_text(data: &Data) -> String {
    let mut table = Table::new(COLUMNS).spare(["FAMILIES"]).cut(["DATASET"]);
    for (side, row) in [("train", &data.train), ("eval", &data.eval)] {
        table.row([
            side.to_owned(),
            row.dataset.clone(),
            row.tasks.to_string(),
            percent(row.tasks, data.train.tasks + data.eval.tasks),
            row.families.to_string(),
        ]);
    }
    let mut text = table.render();
    if !data.near_duplicates_across.is_empty() {
        text.push_str(&format!(
            "\n{}",
            crate::commands::dataset::show::groups_text(&data.near_duplicates_across)
        ));
    }
    text
}
