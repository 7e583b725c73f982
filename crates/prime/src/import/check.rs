//! Judging answers again that were judged elsewhere.

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::sync::OnceLock;

use aec_base::content::ContentStore;
use aec_base::digest::Digest;
use aec_judge::judge::Judge;
use aec_judge::submission::Submission;
use aec_judge::verdict::Verdict;
use aec_judge::verifier::VerifierFiles;
use aec_task::dataset::tree::{Memory, hash};
use aec_task::task::{Task, primary_output};

use crate::package::lane::{Lane, lane};
use crate::rollouts::rollout::Rollout;

/// How far two rewards may lie apart and be the same: one of them went through text.
const SAME: f64 = 1e-9;
const WORKSPACE: &str = "/workspace/";

/// What became of judging an answer again.
#[derive(Clone, Debug, PartialEq)]
pub enum Verification {
    /// The reward is the same.
    Agrees {
        /// The reward.
        reward: f64,
    },
    /// It is not.
    Disagrees {
        /// What this judge says.
        local: f64,
        /// What the sample says.
        hosted: Option<f64>,
    },
    /// It was not judged again.
    Unverified {
        /// Why.
        reason: String,
    },
}

impl Verification {
    /// The word for it in records.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Agrees { .. } => "agrees",
            Self::Disagrees { .. } => "disagrees",
            Self::Unverified { .. } => "unverified",
        }
    }
}

/// The tasks of this project, read when a rollout asks for them.
pub struct KnownTasks<'a> {
    tasks: HashMap<&'a str, (&'a Task, OnceLock<Option<KnownTask>>)>,
    memory: Memory,
}

/// A task as it is here now.
pub struct KnownTask {
    /// Digest of its files.
    pub revision: Digest,
    /// Where the answer goes, below the workspace.
    pub output: String,
    /// What the agent was asked.
    pub instruction: String,
    verifier: VerifierFiles,
    /// Whether the answer is all that the verifier reads.
    answer_is_all: bool,
    /// What the agent was given.
    staged: Vec<(String, PathBuf)>,
}

impl<'a> KnownTasks<'a> {
    /// Tasks by their ids.
    pub fn new(tasks: &'a [Task]) -> Self {
        let tasks = tasks.iter().map(|task| (task.id.as_str(), (task, OnceLock::new()))).collect();
        Self { tasks, memory: Memory::default() }
    }

    /// Whether a task of this id is here.
    pub fn knows(&self, id: &str) -> bool {
        self.tasks.contains_key(id)
    }

    /// The task of an id, with what is known of it here.
    pub fn get(&self, id: &str) -> Option<(&'a Task, &KnownTask)> {
        let (task, known) = self.tasks.get(id)?;
        known.get_or_init(|| KnownTask::read(task, &self.memory)).as_ref().map(|known| (*task, known))
    }
}

impl KnownTask {
    /// A task that cannot be read is not known.
    fn read(task: &Task, memory: &Memory) -> Option<Self> {
        let instruction = task.instruction().ok()?;
        let output = primary_output(&instruction);
        let verifier = VerifierFiles::read(&task.path).ok()?;
        let staged = task.workspace_files().ok()?;
        let places: Vec<&str> = staged.iter().map(|file| file.place.as_str()).collect();
        let single = lane(task, &places).0 == Lane::SingleTurn;
        Some(Self {
            revision: hash(&task.path, memory).ok()?,
            output: output.strip_prefix(WORKSPACE).unwrap_or(&output).to_owned(),
            answer_is_all: verifier.is_standard() || single,
            staged: staged.into_iter().map(|file| (file.place, file.source)).collect(),
            instruction,
            verifier,
        })
    }
}

impl KnownTask {
    /// The workspace as it was left by an agent that changed nothing in it but its answer.
    fn submission(&self, answer: Option<&Answer>, contents: &ContentStore) -> Result<Submission, String> {
        let mut files = BTreeMap::new();
        if !self.answer_is_all {
            for (place, source) in &self.staged {
                files.insert(place.clone(), fs_err::read(source).map_err(|error| error.to_string())?);
            }
        }
        if let Some(answer) = answer {
            files.insert(self.output.clone(), answer.text.clone().into_bytes());
        }
        Submission::from_contents(files, contents).map_err(|error| error.to_string())
    }
}

/// An answer as the judge gets it.
pub(super) struct Answer {
    /// Where it goes below the workspace.
    pub(super) path: String,
    pub(super) text: String,
    /// Whether it was handed in, or is what the model said at the end.
    pub(super) submitted: bool,
}

/// The answer of a rollout: what was handed in, else what the model said at the end.
pub(super) fn answer(rollout: &Rollout, known: Option<&KnownTask>) -> Option<Answer> {
    let place = |given: Option<String>| given.or_else(|| known.map(|known| known.output.clone()));
    if let Some(submission) = rollout.submitted() {
        let named = submission.path.as_ref().and_then(|_| submission.file());
        let path = place(named.map(|path| path.to_string_lossy().into_owned()));
        let path = path.or_else(|| submission.file().map(|path| path.to_string_lossy().into_owned()))?;
        return Some(Answer { path, text: submission.text.clone()?, submitted: true });
    }
    let text = rollout.final_text.as_ref().filter(|text| !text.trim().is_empty())?;
    Some(Answer { path: place(None)?, text: text.clone(), submitted: false })
}

/// Judges an answer again, if everything that the verifier read elsewhere is here.
pub(super) fn check(
    rollout: &Rollout,
    known: Option<(&Task, &KnownTask)>,
    answer: Option<&Answer>,
    judge: Option<&Judge>,
    contents: &ContentStore,
) -> (Verification, Option<(Verdict, Submission)>) {
    let unverified = |reason: &str| (Verification::Unverified { reason: reason.to_owned() }, None);
    let Some(judge) = judge else { return unverified("nobody asked for it") };
    let Some((task, known)) = known else { return unverified("the task is not here") };
    match rollout.task.revision.as_deref().map(str::parse::<Digest>) {
        Some(Ok(revision)) if revision == known.revision => {}
        Some(_) => return unverified("the task here has another revision"),
        None => return unverified("the sample does not say which revision of the task it is"),
    }
    if super::record::failed_elsewhere(rollout) {
        return unverified("it failed where it was made, before there was an answer");
    }
    // What an agent left in the workspace and did not hand in was judged where the workspace was.
    let wrote = rollout
        .calls_by_name
        .keys()
        .any(|tool| tool != "submit_answer" && tool != "read_file" && tool != "list_files");
    let handed_in_a_file =
        rollout.submitted().is_some_and(|submission| submission.text.is_none() && submission.path.is_some());
    if handed_in_a_file || wrote && answer.is_none_or(|answer| !answer.submitted) {
        return unverified("the answer may be a file of the workspace, which is not in the sample");
    }
    if wrote && !known.answer_is_all {
        return unverified("the verifier may read files of the workspace that are not in the sample");
    }
    let submission = match known.submission(answer, contents) {
        Ok(submission) => submission,
        Err(error) => return unverified(&format!("the answer cannot be kept: {error}")),
    };
    let verdict = judge.verdict_by(&known.verifier, &task.into(), &submission);
    let Some(local) = verdict.reward else {
        let why = verdict.fault.unwrap_or_default();
        return (Verification::Unverified { reason: format!("the verifier failed here: {why}") }, None);
    };
    let hosted = rollout.reward;
    let same = hosted.is_some_and(|hosted| (hosted - local).abs() <= SAME);
    let verification =
        if same { Verification::Agrees { reward: local } } else { Verification::Disagrees { local, hosted } };
    (verification, Some((verdict, submission)))
}
