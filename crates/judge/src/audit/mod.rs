//! Can the verdict be trusted? An audit of a task's verifier without a model.
//!
//! Wrong variants of the golden answer must lose, equivalent ones must not, agents that do no engineering must earn
//! almost nothing, the environment must not matter, and the agent's files must not contain the answer.

mod answer;
mod leaks;
mod tolerances;
mod variants;

pub use leaks::{answers_in, telling_answers};

use std::io;

use aec_base::content::ContentStore;
use aec_base::parallel;
use aec_base::problem::Problem;
use aec_task::task::Task;
use serde::Serialize;

use crate::cheat::{Cheater, cheat};
use crate::golden::{Expectation, golden_outputs, submission_with_output};
use crate::judge::{Judge, Surface};
use crate::scorer::{self, Answers};
use crate::submission::FreezeError;
use crate::verdict::Verdict;
use crate::verifier::VerifierFiles;
use answer::Answer;
use variants::Variant;

/// A higher reward for doing nothing is a finding.
const HIGH_FLOOR: f64 = 0.2;

/// The result of the audit of one task.
#[derive(Debug, Serialize)]
pub struct Audit {
    pub task_id: String,
    /// Wrong answers that lost, out of all tried.
    pub mutants: Tally,
    /// Equivalent answers that kept the full reward, out of all tried.
    pub equivalents: Tally,
    /// The highest reward without doing the work; absent if it could not be determined.
    pub floor: Option<f64>,
    /// The agent that earned it.
    pub floor_agent: Option<String>,
    /// Whether the reward was independent of locale, time zone and hash seed.
    pub deterministic: Option<bool>,
    /// Cheaters that earned no more than the floor, out of all tried.
    pub cheaters: Tally,
    /// Findings: errors are high, warnings are medium, notes are low.
    #[serde(skip)]
    pub findings: Vec<Problem>,
}

/// A count of good cases, out of all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Tally {
    pub good: usize,
    pub all: usize,
}

#[derive(Clone, Copy, Default)]
pub struct AuditOptions<'a> {
    /// The cheaters to run too.
    pub cheaters: &'a [Cheater],
    /// Tasks of the same kind, whose answers an agent may have seen.
    pub siblings: &'a [&'a Task],
    /// Is told how many cheaters were tried, out of how many.
    pub cheated: Option<&'a dyn Fn(usize, usize)>,
}

pub fn audit(
    judge: &Judge,
    task: &Task,
    options: AuditOptions<'_>,
    store: &ContentStore,
) -> Result<Audit, FreezeError> {
    let mut audit = Audit {
        task_id: task.id.to_string(),
        mutants: Tally::default(),
        equivalents: Tally::default(),
        floor: None,
        floor_agent: None,
        deterministic: None,
        cheaters: Tally::default(),
        findings: Vec::new(),
    };
    let instruction = task.instruction().map_err(|error| io::Error::other(error.to_string()))?;
    let bench = VariantJudge { judge, task, store };
    let Some((name, golden)) = golden_outputs(task, Expectation::Full)?.into_iter().next() else {
        audit.find(
            Problem::warning("there is no golden answer, so the verifier cannot be audited")
                .id("A001")
                .fix("add tests/fixtures/golden_pass.* with a fully right answer"),
        );
        return Ok(audit.about(task));
    };
    let verdict = bench.verdict(&golden)?;
    if verdict.reward != Some(1.0) {
        let earned = verdict
            .reward
            .map_or_else(|| verdict.fault.clone().unwrap_or_default(), |reward| reward.to_string());
        audit.find(
            Problem::error(format!("the golden answer {name} does not earn 1: {earned}"))
                .id("A002")
                .fix("correct the verifier or the answer"),
        );
        return Ok(audit.about(task));
    }
    audit.check_determinism(&bench, &golden, &verdict)?;
    match Answer::parse(&golden) {
        Some(answer) => {
            let edges = tolerances::edges(
                &answer,
                &fs_err::read(task.path.join("tests/answers.json")).unwrap_or_default(),
            );
            // Forms that only the standard contract accepts or refuses.
            let standard = verdict.scorer == Some(scorer::REVISION);
            let (mut wrong, mut right) = (edges.outside, edges.inside);
            if standard {
                wrong.extend(variants::hedged(&answer));
                right.extend(variants::dressed(&answer));
            }
            audit.check_mutants(&bench, &answer, wrong)?;
            let generous = standard || answer.is_embedded();
            audit.check_equivalents(&bench, &answer, generous, right)?;
            audit.check_floor(&bench, &answer, &instruction, options.siblings)?;
            let found = leaks::leaks(task, &answer.object, &instruction)?;
            audit.findings.extend(found);
        }
        None => audit.find(
            Problem::note("the golden answer holds no JSON object, so no variants of it were tried")
                .id("A003")
                .fix("nothing, if the output is not meant to be JSON"),
        ),
    }
    audit.check_cheaters(&bench, options);
    Ok(audit.about(task))
}

/// The golden answers of similar tasks that can be parsed.
fn golden_of(tasks: &[&Task]) -> Vec<Answer> {
    tasks
        .iter()
        .filter_map(|task| golden_outputs(task, Expectation::Full).ok()?.into_iter().next())
        .filter_map(|(_, output)| Answer::parse(&output))
        .collect()
}

/// The average reward of guessing the median of the other tasks' answers, over a family; `None` unless the standard
/// scorer judges the whole family.
fn medians_earn(family: &[&Task]) -> Option<f64> {
    let answers: Vec<Answers> = family
        .iter()
        .map(|task| {
            let files = VerifierFiles::read(&task.path).ok().filter(VerifierFiles::is_standard)?;
            Answers::parse(files.get("answers.json")?).ok()
        })
        .collect::<Option<_>>()?;
    let golden = golden_of(family);
    if golden.len() != answers.len() {
        return None;
    }
    let mut sum = 0.0;
    for (at, answers) in answers.iter().enumerate() {
        let others: Vec<&Answer> =
            golden.iter().enumerate().filter(|(other, _)| *other != at).map(|(_, one)| one).collect();
        sum += scorer::score(answers, &variants::medians(&golden[at], &others)?.output).reward;
    }
    #[expect(clippy::cast_precision_loss, reason = "there are far fewer than 2^53 tasks")]
    let count = golden.len() as f64;
    Some(sum / count)
}

/// Judges variants of one task's answer.
struct VariantJudge<'a> {
    judge: &'a Judge,
    task: &'a Task,
    store: &'a ContentStore,
}

impl VariantJudge<'_> {
    fn verdict(&self, output: &[u8]) -> Result<Verdict, FreezeError> {
        Ok(self.judge.verdict(self.task, &submission_with_output(self.task, output, self.store)?))
    }

    /// The verdicts on all variants, on all cores.
    fn rewards(&self, variants: &[Variant]) -> Result<Vec<Verdict>, FreezeError> {
        parallel::map(variants, 1, |variant| self.verdict(&variant.output)).into_iter().collect()
    }
}

impl Audit {
    fn find(&mut self, problem: Problem) {
        self.findings.push(problem);
    }

    fn about(mut self, task: &Task) -> Self {
        for finding in &mut self.findings {
            finding.about.get_or_insert_with(|| task.id.to_string());
            finding.file.get_or_insert_with(|| task.path.join("tests"));
        }
        self
    }

    fn check_determinism(
        &mut self,
        bench: &VariantJudge<'_>,
        golden: &[u8],
        usual: &Verdict,
    ) -> Result<(), FreezeError> {
        let surfaces = [("Pacific/Auckland", "C", "1"), ("America/St_Johns", "C.UTF-8", "4242")];
        let submission = submission_with_output(bench.task, golden, bench.store)?;
        let mut same = true;
        for (time_zone, locale, hash_seed) in surfaces {
            let surface = Surface {
                time_zone: time_zone.to_owned(),
                locale: locale.to_owned(),
                hash_seed: hash_seed.to_owned(),
            };
            let other = Judge { surface, ..bench.judge.clone() }.verdict(bench.task, &submission);
            if other.reward != usual.reward || other.details != usual.details {
                same = false;
                self.find(
                    Problem::error("the verdict depends on time zone, locale or hash seed")
                        .id("A040")
                        .why(format!(
                            "with TZ={time_zone} LC_ALL={locale} PYTHONHASHSEED={hash_seed} it differs"
                        ))
                        .fix("make the verifier independent of its surroundings: sort, and name encodings"),
                );
                break;
            }
        }
        self.deterministic = Some(same);
        Ok(())
    }

    fn check_mutants(
        &mut self,
        bench: &VariantJudge<'_>,
        golden: &Answer,
        outside: Vec<Variant>,
    ) -> Result<(), FreezeError> {
        let mut mutants = variants::mutants(golden);
        mutants.extend(outside);
        let verdicts = bench.rewards(&mutants)?;
        self.mutants.all = mutants.len();
        for (mutant, verdict) in mutants.iter().zip(&verdicts) {
            match verdict.reward {
                _ if verdict.caused_by.is_some() => {
                    self.mutants.good += 1;
                    let fault = verdict.fault.clone().unwrap_or_default();
                    self.find(
                        Problem::warning(format!("a wrong answer breaks the verifier: {}", mutant.name))
                            .id("A011")
                            .why(format!(
                                "{fault}; an agent that wrote it earns nothing for its other fields"
                            ))
                            .fix("make the verifier give such an answer what its other fields are worth"),
                    );
                }
                Some(reward) if reward >= 1.0 => self.find(
                    Problem::error(format!("a wrong answer earns everything: {}", mutant.name))
                        .id("A010")
                        .why("an agent that makes this mistake gets the full reward")
                        .fix("make the verifier check this field, with a sound tolerance"),
                ),
                // Without a reward this machine failed, which says nothing about the verifier.
                Some(_) | None => self.mutants.good += 1,
            }
        }
        Ok(())
    }

    fn check_equivalents(
        &mut self,
        bench: &VariantJudge<'_>,
        golden: &Answer,
        generous: bool,
        inside: Vec<Variant>,
    ) -> Result<(), FreezeError> {
        let mut equivalents = variants::equivalents(golden, generous);
        equivalents.extend(inside);
        let verdicts = bench.rewards(&equivalents)?;
        self.equivalents.all = equivalents.len();
        for (equal, verdict) in equivalents.iter().zip(&verdicts) {
            if verdict.reward == Some(1.0) {
                self.equivalents.good += 1;
                continue;
            }
            let earned =
                verdict.reward.map_or_else(|| "no reward".to_owned(), |reward| format!("only {reward}"));
            self.find(
                Problem::warning(format!(
                    "the right answer earns {earned} when written differently: {}",
                    equal.name
                ))
                .id("A020")
                .why("an agent that did the work would not be paid")
                .fix("accept it, or say in the instruction that it is not accepted"),
            );
        }
        Ok(())
    }

    fn check_floor(
        &mut self,
        bench: &VariantJudge<'_>,
        golden: &Answer,
        instruction: &str,
        siblings: &[&Task],
    ) -> Result<(), FreezeError> {
        let mut nulls = variants::null_answers(golden, instruction);
        let mut rewards: Vec<Option<f64>> =
            bench.rewards(&nulls)?.into_iter().map(|verdict| verdict.reward).collect();
        let others = golden_of(siblings);
        if let Some(medians) = variants::medians(golden, &others.iter().collect::<Vec<_>>()) {
            // One task's answer may be close to the median; the average over the family counts.
            let family: Vec<&Task> = std::iter::once(bench.task).chain(siblings.iter().copied()).collect();
            rewards.push(match medians_earn(&family) {
                Some(average) => Some(average),
                None => bench.verdict(&medians.output)?.reward,
            });
            nulls.push(medians);
        }
        let best = nulls
            .iter()
            .zip(&rewards)
            .filter_map(|(null, reward)| Some(((*reward)?, &null.name)))
            .max_by(|a, b| a.0.total_cmp(&b.0));
        let (floor, agent) = best.map_or((0.0, None), |(floor, agent)| (floor, Some(agent.clone())));
        self.floor = Some(floor);
        if floor > HIGH_FLOOR {
            let agent = agent.clone().unwrap_or_default();
            self.find(
                Problem::error(format!("doing nothing earns {floor}: {agent}"))
                    .id("A030")
                    .why("rewards of this task say less than they seem to")
                    .fix("drop fields that can be guessed, or give them less weight"),
            );
        }
        self.floor_agent = agent.filter(|_| floor > 0.0);
        Ok(())
    }

    fn check_cheaters(&mut self, bench: &VariantJudge<'_>, options: AuditOptions<'_>) {
        let floor = self.floor.unwrap_or(0.0);
        for cheater in options.cheaters {
            if let Some(tell) = options.cheated {
                tell(self.cheaters.all, options.cheaters.len());
            }
            self.cheaters.all += 1;
            match cheat(bench.judge, bench.task, cheater, bench.store) {
                Ok(result) if result.counts() && result.reward() <= floor => self.cheaters.good += 1,
                Ok(result) if !result.counts() => self.find(
                    Problem::error(format!("the attempt of the cheater {} is not counted", cheater.name))
                        .id("A060")
                        .why(format!("{}; {}", cheater.about(), result.fault()))
                        .fix("see docs/judge.md on verifiers that fail"),
                ),
                Ok(result) => self.find(
                    Problem::error(format!("the cheater {} earns {}", cheater.name, result.reward()))
                        .id("A060")
                        .why(cheater.about().to_owned())
                        .fix("see docs/judge.md on what a verifier must not do"),
                ),
                Err(error) => self.find(
                    Problem::warning(format!("the cheater {} could not be tried: {error}", cheater.name))
                        .id("A061")
                        .fix("see `aec-bench doctor`"),
                ),
            }
        }
    }
}
