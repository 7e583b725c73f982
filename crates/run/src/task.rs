//! A task in the form that trials need: everything that an agent may see, read once for all trials of a run.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use aec_base::content::ContentStore;
use aec_base::digest::Digest;
use aec_base::problem::Problem;
use aec_base::secret::Redactor;
use aec_judge::probe::References;
use aec_judge::settle::freeze::{Freezer, Given};
use aec_judge::settle::order::AnswerOrder;
use aec_judge::verifier::VerifierFiles;
use aec_ledger::record::InputFile;
use aec_task::dataset::split::family;
use aec_task::file::Lifecycle;
use aec_task::id::TaskId;
use aec_task::task::{AgentLimits, Environment, Task, Tool, VerifierLimits, primary_output};

use crate::plan::{Conditions, PlannedTool};

#[derive(Debug)]
pub struct PreparedTask {
    /// The task itself. Harnesses do not need its path.
    pub(crate) task: Task,
    /// Digest of its files.
    pub revision: Digest,
    /// The prompt.
    pub instruction: String,
    /// The path of the answer: the last path below `/workspace` that the prompt names.
    pub output_path: String,
    /// Programs offered to the agent.
    pub tools: Vec<Tool>,
    pub files: Vec<WorkspaceFile>,
    /// The same for all tasks of one family.
    pub family: String,
    /// Its verifier, if it has one: the same bytes judge every trial of a run.
    pub(crate) verifier: Option<VerifierFiles>,
    /// What shows who is at fault if the verifier fails. The native scorer does not fail.
    pub(crate) references: References,
}

#[derive(Clone, Debug)]
pub struct WorkspaceFile {
    /// Path below `/workspace`.
    pub place: String,
    pub content: Arc<[u8]>,
    /// Its digest and origin.
    pub facts: InputFile,
}

impl PreparedTask {
    /// Reads everything that an agent may see.
    pub fn read(task: Task, revision: Digest, conditions: &Conditions) -> Result<Self, Problem> {
        let unreadable = |what: String| {
            Problem::error(format!("the task `{}` cannot be read: {what}", task.id))
                .fix("run `aec-bench task validate` on it")
        };
        let instruction = match &conditions.instruction {
            Some(instruction) => instruction.clone(),
            None => task.instruction().map_err(|error| unreadable(error.to_string()))?,
        };
        let files = read_files(&task).map_err(|error| unreadable(error.to_string()))?;
        let verifier = VerifierFiles::read(&task.path).ok();
        let can_fail = verifier.as_ref().is_some_and(VerifierFiles::needs_room);
        Ok(Self {
            references: if can_fail { References::read(&task) } else { References::default() },
            revision,
            output_path: primary_output(&instruction),
            instruction,
            tools: match &conditions.tools {
                Some(tools) => tools.iter().map(PlannedTool::to_tool).collect(),
                None => task.tools(),
            },
            files,
            family: family(&task),
            verifier,
            task,
        })
    }

    /// A prompt and its tools, for an agent inside the sandbox. There is no task directory.
    pub(crate) fn of_prompt(id: TaskId, instruction: String, tools: Vec<Tool>) -> Self {
        let task = Task {
            domain: String::new(),
            path: PathBuf::new(),
            category: None,
            difficulty: None,
            generation_difficulty: None,
            visibility: None,
            lifecycle: Lifecycle::default(),
            tags: Vec::new(),
            standard: None,
            agent: AgentLimits { timeout_sec: 0.0, outputs: Vec::new() },
            verifier: VerifierLimits { timeout_sec: 0.0 },
            environment: Environment {
                extensions: Vec::new(),
                build_timeout_sec: 0.0,
                cpus: 0,
                memory_mb: 0,
                storage_mb: 0,
                allow_internet: false,
                tools: Vec::new(),
            },
            generation: None,
            id,
        };
        Self {
            revision: Digest::of(instruction.as_bytes()),
            output_path: primary_output(&instruction),
            instruction,
            tools,
            files: Vec::new(),
            family: String::new(),
            verifier: None,
            references: References::default(),
            task,
        }
    }

    /// The output's path below the workspace.
    pub fn output_place(&self) -> &str {
        self.output_path.strip_prefix("/workspace/").unwrap_or(&self.output_path)
    }

    /// Freezes attempts at the task.
    pub fn freezer<'a>(
        &'a self,
        order: AnswerOrder,
        contents: &'a ContentStore,
        redactor: &'a Redactor,
    ) -> Freezer<'a> {
        let given = self.files.iter().map(|file| Given { path: &file.place, content: &file.content });
        let (place, outputs) = (self.output_place(), &self.task.agent.outputs);
        Freezer { order, place, outputs, given: given.collect(), contents, redactor }
    }

    /// Its approximate size in memory.
    pub(crate) fn bytes(&self) -> usize {
        let files = self.files.iter().map(|file| file.content.len()).sum::<usize>();
        let verifier = self.verifier.as_ref().map_or(0, VerifierFiles::bytes) + self.references.bytes();
        self.instruction.len() + files + verifier
    }

    /// The agent's time limit in seconds, according to the task.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "at most a week")]
    pub fn agent_seconds(&self) -> u64 {
        self.task.agent.timeout_sec as u64
    }

    pub fn domain(&self) -> &str {
        &self.task.domain
    }

    pub fn difficulty(&self) -> Option<&'static str> {
        self.task.difficulty.map(aec_task::file::Difficulty::name)
    }

    /// Who may see it, if the task says so.
    pub fn visibility(&self) -> Option<&'static str> {
        self.task.visibility.map(aec_task::file::Visibility::name)
    }

    pub fn id(&self) -> &str {
        self.task.id.as_str()
    }
}

fn read_files(task: &Task) -> io::Result<Vec<WorkspaceFile>> {
    let mut files = Vec::new();
    for staged in task.workspace_files()? {
        let content: Arc<[u8]> = fs_err::read(&staged.source)?.into();
        let source =
            staged.source.strip_prefix(&task.path).ok().map(|path| path.to_string_lossy().into_owned());
        let facts = InputFile { path: staged.place.clone(), hash: Digest::of(&content), source };
        files.push(WorkspaceFile { place: staged.place, content, facts });
    }
    Ok(files)
}
