//! From what a policy left to a reward, with the task's own verifier: where the answer came from, and what it is worth.

use std::path::Path;
use std::sync::Arc;

use aec_base::content::ContentStore;
use aec_judge::judge::JudgeLimits;
use aec_judge::scorer::{self, Answers, Unreadable};
use aec_judge::submission::{FreezeError, Submission, SubmissionLimits};
use aec_judge::verifier::VerifierFiles;
use aec_run::harness::tools::Submitted;
use aec_run::workspace::{Files, WORKSPACE, blocking, is_directory};
use aec_sandbox::Sandbox;
use serde_json::Value;

use super::LazyJudge;
use super::workspace::{GivenFile, Workspace};

/// What judges a task.
#[derive(Debug)]
pub(super) enum LoadedVerifier {
    /// The standard verifier: its native twin does it.
    Standard(Answers),
    /// A program of its own.
    Own(VerifierFiles),
}

/// Everything that judging needs to know of a task.
#[derive(Debug)]
pub(super) struct Terms {
    pub(super) verifier: LoadedVerifier,
    pub(super) limits: JudgeLimits,
    pub(super) output_path: String,
    pub(super) outputs: Vec<String>,
    pub(super) given: Arc<[GivenFile]>,
}

/// Where an answer came from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Source {
    /// It was handed in.
    Submission,
    /// It is the answer's file of the workspace.
    Workspace,
    /// It is what the policy said last.
    Message,
    /// There is none.
    #[default]
    None,
}

impl Source {
    fn name(self) -> &'static str {
        match self {
            Self::Submission => "submission",
            Self::Workspace => "workspace",
            Self::Message => "message",
            Self::None => "none",
        }
    }
}

/// What a rollout earned. With a fault there is no reward.
#[derive(Clone, Debug, Default)]
pub(super) struct RolloutVerdict {
    pub(super) reward: Option<f64>,
    pub(super) fault: Option<String>,
    pub(super) source: Source,
    /// Why a submission was not taken.
    pub(super) problem: Option<String>,
    pub(super) refused: Vec<String>,
    /// What the verifier says about the parts of the answer.
    pub(super) details: Option<Value>,
}

impl RolloutVerdict {
    /// Names of the numbers that [`Self::metrics`] gives.
    pub(super) const METRICS: [&'static str; 4] =
        ["submitted", "source_workspace", "source_message", "verifier_fault"];

    /// For the record of a rollout.
    pub(super) fn record(&self) -> Value {
        serde_json::json!({
            "reward": self.reward, "fault": self.fault, "source": self.source.name(), "problem": self.problem,
            "refused": self.refused,
        })
    }

    /// The same as numbers.
    pub(super) fn metrics(&self) -> [f64; Self::METRICS.len()] {
        let is_from = |source| self.source == source;
        let (submitted, workspace) = (is_from(Source::Submission), is_from(Source::Workspace));
        [submitted, workspace, is_from(Source::Message), self.fault.is_some()]
            .map(|is| if is { 1.0 } else { 0.0 })
    }
}

/// Judges rollouts.
pub(super) struct Bench {
    pub(super) judge: LazyJudge,
    /// Where submissions of verifiers in rooms are kept while they are judged.
    pub(super) contents: ContentStore,
    /// Whether somebody wants to know what the verifier says about the parts of an answer.
    pub(super) details: bool,
}

impl Bench {
    /// Judges what is left of a rollout.
    pub(super) async fn judge(
        &self,
        terms: &Arc<Terms>,
        workspace: Option<Workspace>,
        message: &str,
    ) -> RolloutVerdict {
        let said = (!message.trim().is_empty()).then_some(message.as_bytes());
        match workspace {
            None => {
                let given = terms.given.iter().map(|file| (file.path.clone(), Arc::clone(&file.content)));
                let source = if said.is_some() { Source::Message } else { Source::None };
                self.judge_in_memory(terms, given.collect(), said, source, &[]).await
            }
            Some(workspace) => match workspace.place.files() {
                Some(files) => {
                    let (source, answer) = in_memory_answer(terms, &workspace, &files, said);
                    let answer = answer.map(<[u8]>::to_vec);
                    self.judge_in_memory(terms, files, answer.as_deref(), source, &terms.outputs).await
                }
                None => self.judge_in_room(terms, workspace, said).await,
            },
        }
    }

    /// Judges the answer of a driven rollout, among the files that it was given.
    pub(super) async fn judge_answer(
        &self,
        terms: &Arc<Terms>,
        source: Source,
        answer: Option<&[u8]>,
    ) -> RolloutVerdict {
        let given = terms.given.iter().map(|file| (file.path.clone(), Arc::clone(&file.content)));
        self.judge_in_memory(terms, given.collect(), answer, source, &terms.outputs).await
    }

    async fn judge_in_memory(
        &self,
        terms: &Arc<Terms>,
        mut files: Files,
        answer: Option<&[u8]>,
        source: Source,
        outputs: &[String],
    ) -> RolloutVerdict {
        if !outputs.is_empty() {
            files.retain(|path, _| aec_judge::submission::is_output(path, outputs));
        }
        if let Some(answer) = answer {
            files.insert(terms.output_path.clone(), answer.into());
        }
        let verdict = RolloutVerdict { source, ..RolloutVerdict::default() };
        match &terms.verifier {
            LoadedVerifier::Standard(answers) => self.standard(answers, &files, verdict),
            LoadedVerifier::Own(_) => {
                let files: Vec<(String, Vec<u8>)> =
                    files.into_iter().map(|(path, content)| (path, content.to_vec())).collect();
                self.own(terms, verdict, move |contents| Submission::from_contents(files, contents)).await
            }
        }
    }

    fn standard(&self, answers: &Answers, files: &Files, mut verdict: RolloutVerdict) -> RolloutVerdict {
        let output = answers.output();
        let score = match files.get(output) {
            Some(bytes) => scorer::score(answers, bytes),
            None if is_directory(files, output) => scorer::score_unreadable(answers, Unreadable::NotRegular),
            None => scorer::score_unreadable(answers, Unreadable::Missing),
        };
        verdict.reward = Some(score.reward);
        if self.details {
            verdict.details = serde_json::from_str(&score.to_details_json()).ok();
        }
        verdict
    }

    async fn judge_in_room(
        &self,
        terms: &Arc<Terms>,
        workspace: Workspace,
        said: Option<&[u8]>,
    ) -> RolloutVerdict {
        let said = said.map(<[u8]>::to_vec);
        let (frozen_terms, contents) = (Arc::clone(terms), self.contents.clone());
        let frozen = blocking(move || freeze(&frozen_terms, &workspace, said, &contents)).await;
        let frozen = match frozen {
            Ok(Ok(frozen)) => frozen,
            Ok(Err(fault)) => return RolloutVerdict { fault: Some(fault), ..RolloutVerdict::default() },
            Err(error) => {
                return RolloutVerdict { fault: Some(error.to_string()), ..RolloutVerdict::default() };
            }
        };
        let (submission, verdict) = frozen;
        self.own(terms, verdict, move |_| Ok(submission)).await
    }

    /// A verdict by the judge that also judges trials.
    async fn own(
        &self,
        terms: &Arc<Terms>,
        mut verdict: RolloutVerdict,
        submission: impl FnOnce(&ContentStore) -> Result<Submission, FreezeError> + Send + 'static,
    ) -> RolloutVerdict {
        let (judge, terms, contents) = (Arc::clone(&self.judge), Arc::clone(terms), self.contents.clone());
        let done = blocking(move || {
            let submission = submission(&contents).map_err(|error| error.to_string())?;
            let files = match &terms.verifier {
                LoadedVerifier::Own(files) => files,
                LoadedVerifier::Standard(answers) => {
                    let score = match submission.read(answers.output()).map_err(|error| error.to_string())? {
                        Some(bytes) => scorer::score(answers, &bytes),
                        None => scorer::score_unreadable(answers, Unreadable::Missing),
                    };
                    let details = serde_json::from_str(&score.to_details_json()).ok();
                    return Ok((Some(score.reward), None, details));
                }
            };
            let verdict = judge.verdict_by(files, &terms.limits, &submission);
            Ok::<_, String>((verdict.reward, verdict.fault, verdict.details))
        });
        match done.await {
            Ok(Ok((reward, fault, details))) => {
                verdict.fault =
                    fault.or_else(|| reward.is_none().then(|| "the verifier gave no reward".to_owned()));
                verdict.reward = reward;
                verdict.details = details;
            }
            Ok(Err(fault)) => verdict.fault = Some(fault),
            Err(error) => verdict.fault = Some(error.to_string()),
        }
        verdict
    }
}

/// Where the answer came from, and its content when that does not lie in its place already.
fn in_memory_answer<'a>(
    terms: &Terms,
    workspace: &'a Workspace,
    files: &'a Files,
    said: Option<&'a [u8]>,
) -> (Source, Option<&'a [u8]>) {
    match &workspace.submitted {
        Some(Submitted::Content(text)) => return (Source::Submission, Some(text.as_bytes())),
        Some(Submitted::File(path)) => {
            return (Source::Submission, files.get(path).map(|content| &**content));
        }
        None => {}
    }
    let place = terms.output_path.as_str();
    let written = match (files.get(place), workspace.given(place)) {
        (Some(content), Some(given)) => *content != given.content,
        (Some(_), None) => true,
        (None, _) => is_directory(files, place),
    };
    match said {
        _ if written => (Source::Workspace, None),
        Some(said) => (Source::Message, Some(said)),
        None => (Source::None, None),
    }
}

/// Freezes what lies in a room, once nothing runs there any more.
fn freeze(
    terms: &Terms,
    workspace: &Workspace,
    said: Option<Vec<u8>>,
    contents: &ContentStore,
) -> Result<(Submission, RolloutVerdict), String> {
    let mut room = workspace.place.lock().map_err(|error| error.to_string())?;
    room.freeze().map_err(|error| error.to_string())?;
    let limits = SubmissionLimits::default();
    let mut verdict = RolloutVerdict::default();
    let answer;
    (verdict.source, answer) = in_room_answer(terms, workspace, room.as_ref(), said, limits.file_bytes);
    let tree = room.directory(WORKSPACE).ok_or_else(|| "the room has lost its directory".to_owned())?;
    let mut submission = match Submission::freeze(tree, &terms.outputs, &limits, contents) {
        Ok(submission) => submission,
        Err(error @ FreezeError::TooLarge(_)) => {
            verdict.problem = Some(format!("the workspace is not taken: {error}"));
            Submission::from_contents([], contents).map_err(|error| error.to_string())?
        }
        Err(error @ FreezeError::Io(_)) => return Err(error.to_string()),
    };
    if let Some(answer) = answer {
        submission.put(&terms.output_path, &answer).map_err(|error| error.to_string())?;
    }
    let refused = submission.refused.iter().take(100);
    verdict.refused = refused.map(|refused| format!("{}: {}", refused.path, refused.reason)).collect();
    Ok((submission, verdict))
}

fn in_room_answer(
    terms: &Terms,
    workspace: &Workspace,
    room: &dyn Sandbox,
    said: Option<Vec<u8>>,
    limit: u64,
) -> (Source, Option<Vec<u8>>) {
    let tree = room.directory(WORKSPACE);
    let read = |path: &str| tree.and_then(|tree| tree.read(Path::new(path), limit).ok());
    match &workspace.submitted {
        Some(Submitted::Content(text)) => return (Source::Submission, Some(text.clone().into_bytes())),
        Some(Submitted::File(path)) => return (Source::Submission, read(path)),
        None => {}
    }
    let place = Path::new(&terms.output_path);
    let written = tree.is_some_and(|tree| match tree.open_file(place) {
        Ok(_) => workspace
            .given(&terms.output_path)
            .is_none_or(|given| read(&terms.output_path).as_deref() != Some(&*given.content)),
        // A link or a directory in its place is what the policy left; it will be refused by name.
        Err(error) => error.kind() != std::io::ErrorKind::NotFound,
    });
    match said {
        _ if written => (Source::Workspace, None),
        Some(said) => (Source::Message, Some(said)),
        None => (Source::None, None),
    }
}
