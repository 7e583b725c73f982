//! Judges what a policy left, with the task's own verifier: which answer counts, and which reward it earns.

use std::sync::Arc;

use aec_base::content::ContentStore;
use aec_base::secret::Redactor;
use aec_judge::judge::JudgeLimits;
use aec_judge::probe::References;
use aec_judge::scorer::{self, Answers, Unreadable};
use aec_judge::settle::freeze::{AgentFiles, Freezer, Frozen, Given, Unfrozen, secret_in};
use aec_judge::settle::order::{self, AnswerOrder, Handed, InMemory, Source, is_directory};
use aec_judge::submission::SubmissionLimits;
use aec_judge::verdict::Outcome;
use aec_judge::verifier::VerifierFiles;
use aec_run::workspace::{Workspace, blocking};
use serde_json::Value;

use super::LazyJudge;
use super::workspace::GivenFile;

#[derive(Debug)]
pub(super) enum LoadedVerifier {
    /// The standard verifier, which the native scorer replaces.
    Standard(Answers),
    /// The task's own program.
    Own(VerifierFiles),
}

#[derive(Debug)]
pub(super) struct Terms {
    pub(super) verifier: LoadedVerifier,
    pub(super) limits: JudgeLimits,
    pub(super) order: AnswerOrder,
    pub(super) output_path: String,
    pub(super) outputs: Vec<String>,
    pub(super) given: Arc<[GivenFile]>,
    /// What shows who is at fault if the verifier fails.
    pub(super) references: References,
}

/// The verdict on a rollout. With a fault there is no reward.
#[derive(Clone, Debug, Default)]
pub(super) struct RolloutVerdict {
    pub(super) reward: Option<f64>,
    pub(super) fault: Option<String>,
    pub(super) source: Option<Source>,
    /// Why the policy's work cannot be judged, which gives a reward of zero.
    pub(super) problem: Option<String>,
    /// How the policy's files made the verifier fail, which gives a reward of zero.
    pub(super) broke: Option<String>,
    pub(super) refused: Vec<String>,
    /// The verifier's details about the parts of the answer.
    pub(super) details: Option<Value>,
}

impl RolloutVerdict {
    /// Names of the numbers that [`Self::metrics`] gives.
    pub(super) const METRICS: [&'static str; 5] =
        ["submitted", "source_workspace", "source_message", "verifier_fault", "agent_fault"];

    pub(super) fn record(&self) -> Value {
        let mut record = serde_json::json!({
            "reward": self.reward, "fault": self.fault, "source": Source::word(self.source), "problem": self.problem,
            "refused": self.refused,
        });
        if let Some(broke) = &self.broke {
            record["broke_verifier"] = broke.as_str().into();
        }
        record
    }

    pub(super) fn metrics(&self) -> [f64; Self::METRICS.len()] {
        let is_from = |source| self.source == Some(source);
        let sources = [Source::Submitted, Source::File, Source::FinalText].map(is_from);
        let [submitted, workspace, message] = sources;
        [submitted, workspace, message, self.fault.is_some(), self.problem.is_some()]
            .map(|is| if is { 1.0 } else { 0.0 })
    }

    /// Freezing failed: the policy's work cannot be judged, or this machine failed.
    fn unfrozen(error: &Unfrozen) -> Self {
        match error {
            Unfrozen::Unfit(_) => {
                Self { reward: Some(0.0), problem: Some(error.to_string()), ..Self::default() }
            }
            Unfrozen::Machine(fault) if fault.commands_could => {
                Self { reward: Some(0.0), problem: Some(error.to_string()), ..Self::default() }
            }
            Unfrozen::Machine(_) => Self { fault: Some(error.to_string()), ..Self::default() },
        }
    }
}

impl Terms {
    /// Freezes rollouts of this task.
    fn freezer<'a>(&'a self, contents: &'a ContentStore, redactor: &'a Redactor) -> Freezer<'a> {
        let given = self.given.iter().map(|file| Given { path: &file.path, content: &file.content });
        let (order, place, outputs) = (self.order, self.output_path.as_str(), self.outputs.as_slice());
        Freezer { order, place, outputs, given: given.collect(), contents, redactor }
    }

    /// Puts the judged answer into `files` and returns where it came from.
    fn settle(&self, files: &mut order::Files, handed: &Handed) -> Option<Source> {
        let place = self.output_path.as_str();
        let given = self.given.iter().find(|file| file.path == place).map(|file| &*file.content);
        InMemory { order: self.order, place, outputs: &self.outputs, given }.settle(files, handed)
    }
}

pub(super) struct RolloutJudge {
    pub(super) judge: LazyJudge,
    /// Where submissions are kept while a verifier in a room judges them.
    pub(super) contents: ContentStore,
    pub(super) redactor: Arc<Redactor>,
    /// Whether to keep the verifier's details about the parts of an answer.
    pub(super) details: bool,
}

impl RolloutJudge {
    pub(super) async fn judge(
        &self,
        terms: &Arc<Terms>,
        workspace: Option<Workspace>,
        handed: Handed,
    ) -> RolloutVerdict {
        let files = match &workspace {
            None => {
                let given = terms.given.iter().map(|file| (file.path.clone(), Arc::clone(&file.content)));
                Some(given.collect::<order::Files>())
            }
            Some(workspace) => workspace.files(),
        };
        match (&terms.verifier, files, workspace) {
            (LoadedVerifier::Standard(answers), Some(files), _) => {
                self.judge_at_once(terms, answers, files, &handed)
            }
            (_, _, Some(workspace)) => {
                self.judge_frozen(terms, move |freezer| freezer.freeze(workspace.agent_files()?, &handed))
                    .await
            }
            (_, files, None) => {
                let files = files.unwrap_or_default();
                self.judge_frozen(terms, move |freezer| freezer.freeze(AgentFiles::InMemory(files), &handed))
                    .await
            }
        }
    }

    /// Runs the standard scorer on files in memory, without a room or a disk.
    fn judge_at_once(
        &self,
        terms: &Terms,
        answers: &Answers,
        mut files: order::Files,
        handed: &Handed,
    ) -> RolloutVerdict {
        if let Err(error) = SubmissionLimits::default().check(&files, &terms.outputs) {
            return RolloutVerdict::unfrozen(&error.into());
        }
        let source = terms.settle(&mut files, handed);
        let is_given = |content: &[u8]| terms.given.iter().any(|given| *given.content == *content);
        let holds_secret = |content: &[u8]| {
            let mut search = self.redactor.search();
            search.feed(content);
            search.found()
        };
        let secret = files.iter().find(|(path, content)| {
            !is_given(content) && (holds_secret(content) || self.redactor.finds(path))
        });
        if let Some((path, _)) = secret {
            return RolloutVerdict::unfrozen(&secret_in(path));
        }
        let output = answers.output();
        let score = match files.get(output) {
            Some(bytes) => scorer::score(answers, bytes),
            None if is_directory(&files, output) => scorer::score_unreadable(answers, Unreadable::NotRegular),
            None => scorer::score_unreadable(answers, Unreadable::Missing),
        };
        let details = self.details.then(|| aec_base::json::from_str(&score.to_details_json()).ok()).flatten();
        RolloutVerdict { reward: Some(score.reward), source, details, ..RolloutVerdict::default() }
    }

    /// Freezes and judges on a blocking thread, with the judge that also judges trials.
    pub(super) async fn judge_frozen(
        &self,
        terms: &Arc<Terms>,
        freeze: impl FnOnce(&Freezer<'_>) -> Result<Frozen, Unfrozen> + Send + 'static,
    ) -> RolloutVerdict {
        let (judge, terms) = (Arc::clone(&self.judge), Arc::clone(terms));
        let (contents, redactor) = (self.contents.clone(), Arc::clone(&self.redactor));
        let done = blocking(move || {
            let frozen = match freeze(&terms.freezer(&contents, &redactor)) {
                Ok(frozen) => frozen,
                Err(error) => return RolloutVerdict::unfrozen(&error),
            };
            let refused = frozen.submission.refused.iter().take(100);
            let mut verdict = RolloutVerdict {
                source: frozen.source,
                refused: refused.map(|refused| format!("{}: {}", refused.path, refused.reason)).collect(),
                ..RolloutVerdict::default()
            };
            let given = match &terms.verifier {
                LoadedVerifier::Own(files) => {
                    judge.verdict_by(files, &terms.limits, &terms.references, &frozen.submission)
                }
                LoadedVerifier::Standard(answers) => match frozen.submission.read(answers.output()) {
                    Ok(content) => {
                        let score = match content {
                            Some(bytes) => scorer::score(answers, &bytes),
                            None => scorer::score_unreadable(answers, Unreadable::Missing),
                        };
                        verdict.reward = Some(score.reward);
                        verdict.details = aec_base::json::from_str(&score.to_details_json()).ok();
                        return verdict;
                    }
                    Err(error) => return RolloutVerdict { fault: Some(error.to_string()), ..verdict },
                },
            };
            let why = given.fault;
            let details = given.details;
            match given.outcome {
                Outcome::Scored => RolloutVerdict { reward: given.reward, broke: why, details, ..verdict },
                Outcome::AgentFault => RolloutVerdict { reward: Some(0.0), problem: why, details, ..verdict },
                _ => {
                    let fault = why.unwrap_or_else(|| "the verifier gave no reward".to_owned());
                    RolloutVerdict { fault: Some(fault), details, ..verdict }
                }
            }
        });
        done.await.unwrap_or_else(|error| RolloutVerdict {
            fault: Some(error.to_string()),
            ..RolloutVerdict::default()
        })
    }
}
