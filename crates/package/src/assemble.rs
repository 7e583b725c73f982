//! Reads tasks into a package: its manifest and the contents of its files.

use std::collections::BTreeMap;
use std::sync::Arc;

use aec_base::digest::Digest;
use aec_base::parallel;
use aec_base::problem::Problem;
use aec_judge::settle::order::AnswerOrder;
use aec_judge::verifier::VerifierFiles;
use aec_run::harness::direct;
use aec_run::harness::tools::{Declared, Toolset};
use aec_run::parameters::{DEFAULT_COMMAND_TIMEOUT, DEFAULT_MAX_TURNS};
use aec_task::compose::Compose;
use aec_task::dataset::split::{Member, Side, TrainShare, family, sides};
use aec_task::dataset::tree::{Memory, hash};
use aec_task::file::{Difficulty, Visibility};
use aec_task::task::{Task, primary_output};

use crate::FAMILY;
use crate::interaction::{HarnessMode, Interaction, guardrails, lane};
use crate::manifest::{
    PackageManifest, PackagedFile, PackagedSide, PackagedTask, PackagedTool, PackagedVerifier, Prompts,
    SCHEMA_VERSION, SplitRule, TaskLimits,
};
use crate::{Audience, PackageSpec};

/// The seed of the sides, as with `dataset split --seed 0`.
const SPLIT_SEED: i64 = 0;
const WORKSPACE: &str = "/workspace/";

#[derive(Debug)]
pub struct Assembled {
    pub manifest: PackageManifest,
    pub contents: BTreeMap<Digest, Arc<[u8]>>,
}

/// A task in the package's form, with its contents.
struct ReadTask {
    task: PackagedTask,
    contents: Vec<(Digest, Arc<[u8]>)>,
}

/// Reads tasks. Reports the problems of all of them at once.
pub fn assemble(spec: &PackageSpec, tasks: &[Task]) -> Result<Assembled, Vec<Problem>> {
    let members: Vec<Member> = tasks.iter().map(Member::of).collect();
    let sides = sides(&members, SPLIT_SEED, TrainShare::default());
    let memory = Memory::default();
    let pairs: Vec<(&Task, Side)> = tasks.iter().zip(sides).collect();
    let read = parallel::map(&pairs, 4, |(task, side)| read_task(task, *side, spec, &memory));
    let (mut packaged, mut contents, mut problems) = (Vec::new(), BTreeMap::new(), Vec::new());
    for one in read {
        match one {
            Ok(read) => {
                packaged.push(read.task);
                contents.extend(read.contents);
            }
            Err(found) => problems.extend(found),
        }
    }
    if packaged.is_empty() && problems.is_empty() {
        problems
            .push(finding(11, "no task is selected").fix("name tasks with --task, --pattern or --dataset"));
    }
    if !problems.is_empty() {
        return Err(problems);
    }
    packaged.sort_by(|a, b| a.task_id.cmp(&b.task_id));
    let manifest = PackageManifest {
        schema_version: SCHEMA_VERSION,
        name: spec.name.module(),
        version: spec.version.clone(),
        tool_version: spec.tool_version.clone(),
        harness: spec.harness,
        dataset: spec.dataset.clone(),
        answer_order: AnswerOrder::PRESENT,
        split: SplitRule { seed: SPLIT_SEED, train_share: TrainShare::default().get() },
        tasks: packaged,
    };
    Ok(Assembled { manifest, contents })
}

fn finding(number: u32, what: impl Into<String>) -> Problem {
    Problem::error(what).id(FAMILY.number(number))
}

fn read_task(task: &Task, side: Side, spec: &PackageSpec, memory: &Memory) -> Result<ReadTask, Vec<Problem>> {
    let about = |problem: Problem| vec![problem.about(task.id.as_str())];
    if spec.audience == Audience::Everybody {
        refuse_unless_public(task).map_err(about)?;
    }
    let unreadable = |error: String| {
        about(
            finding(12, format!("the task `{}` cannot be exported: {error}", task.id))
                .fix("run `aec-bench task validate` on it"),
        )
    };
    let compose = Compose::read(&task.path.join("environment"))?;
    if !compose.is_empty() {
        // Without the services that it relies on, it would be another task.
        let names: Vec<&str> = compose.services.iter().map(|service| service.name.as_str()).collect();
        let what = match names.as_slice() {
            [] => "a package cannot set the variables of its Compose file".to_owned(),
            names => format!("a package cannot start its services ({})", names.join(", ")),
        };
        return Err(unreadable(what));
    }
    let instruction = task.instruction().map_err(|error| unreadable(error.to_string()))?;
    let revision = hash(&task.path, memory)?;
    let mut contents = Vec::new();
    let workspace = workspace(task, &mut contents).map_err(|error| unreadable(error.to_string()))?;
    let verifier = verifier(task, &mut contents).map_err(|error| unreadable(error.to_string()))?;
    let guardrails = guardrails(&task.path).map_err(unreadable)?;
    let places: Vec<&str> = workspace.iter().map(|file| file.path.as_str()).collect();
    let (lane, lane_reason) = lane(task, &places);
    if spec.harness == HarnessMode::SingleTurn && lane == Interaction::Stateful {
        let problem = finding(13, format!("`{}` needs a workspace: {lane_reason}", task.id));
        return Err(about(problem.fix("export it with --harness-mode stateful or auto")));
    }
    let output = primary_output(&instruction);
    let tools = Toolset::new(&task.tools());
    let prompts = Prompts {
        single_turn: direct::system_prompt(None, &output),
        stateful: tools.system_prompt(None, &output),
    };
    Ok(ReadTask {
        task: PackagedTask {
            task_id: task.id.as_str().to_owned(),
            task_revision: revision,
            family: family(task),
            side: match side {
                Side::Train => PackagedSide::Train,
                Side::Eval => PackagedSide::Eval,
            },
            discipline: task.domain.clone(),
            difficulty: task.difficulty.map(|difficulty| Difficulty::name(difficulty).to_owned()),
            // A task without a visibility is treated as held out, here and wherever its rollouts go.
            visibility: task.visibility.unwrap_or(Visibility::Holdout).name().to_owned(),
            tags: task.tags.clone(),
            lane,
            lane_reason,
            output_path: output.strip_prefix(WORKSPACE).unwrap_or(&output).to_owned(),
            outputs: (!task.agent.outputs.is_empty()).then(|| task.agent.outputs.clone()),
            prompts,
            limits: TaskLimits {
                max_turns: guardrails.max_turns.unwrap_or(DEFAULT_MAX_TURNS),
                max_total_tokens: guardrails.max_total_tokens,
                command_timeout_sec: DEFAULT_COMMAND_TIMEOUT.into(),
                verifier_timeout_sec: task.verifier.timeout_sec,
                agent_timeout_sec: task.agent.timeout_sec,
                cpus: task.environment.cpus,
                memory_mb: task.environment.memory_mb,
                storage_mb: task.environment.storage_mb,
            },
            tools: tools.declared().iter().map(packaged_tool).collect(),
            instruction,
            workspace,
            verifier,
        },
        contents,
    })
}

/// Training on a held-out task would make it useless as a benchmark.
fn refuse_unless_public(task: &Task) -> Result<(), Problem> {
    match task.visibility {
        Some(Visibility::Public) => Ok(()),
        Some(Visibility::Holdout) => {
            Err(finding(14, format!("`{}` is held out and is not exported", task.id))
                .fix("select public tasks; a task that a model was trained on measures nothing any more"))
        }
        None => Err(finding(15, format!("`{}` does not say who may see it", task.id))
            .fix("write `visibility = \"public\"` below [metadata] in its task.toml")),
    }
}

fn workspace(task: &Task, contents: &mut Vec<(Digest, Arc<[u8]>)>) -> std::io::Result<Vec<PackagedFile>> {
    let mut files = Vec::new();
    for staged in task.workspace_files()? {
        let content: Arc<[u8]> = fs_err::read(&staged.source)?.into();
        files.push(keep(staged.place, false, content, contents));
    }
    Ok(files)
}

fn verifier(task: &Task, contents: &mut Vec<(Digest, Arc<[u8]>)>) -> std::io::Result<PackagedVerifier> {
    let files = VerifierFiles::read(&task.path)?;
    let entry = files
        .entry()
        .ok_or_else(|| std::io::Error::other("it has no tests/test.sh and no tests/verify.py"))?;
    let kept = files
        .files()
        .map(|(path, bytes, executable)| keep(path.to_owned(), executable, Arc::from(bytes), contents));
    Ok(PackagedVerifier {
        files: kept.collect(),
        digest: files.digest,
        standard: files.standard_revision().is_some(),
        entry,
    })
}

fn keep(
    path: String,
    executable: bool,
    content: Arc<[u8]>,
    contents: &mut Vec<(Digest, Arc<[u8]>)>,
) -> PackagedFile {
    let digest = Digest::of(&content);
    contents.push((digest, content));
    PackagedFile { path, sha256: digest.hex(), executable }
}

fn packaged_tool(tool: &Declared) -> PackagedTool {
    PackagedTool {
        name: tool.name.clone(),
        path: tool.place.clone(),
        description: tool.description.clone(),
        returns_image: tool.returns_image,
    }
}
