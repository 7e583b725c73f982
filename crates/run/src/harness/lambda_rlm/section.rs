//! One section of a report: reads its sources in parts, merges the facts, reviews them, writes the section, traces it.

use std::sync::OnceLock;

use aec_model::client::Model;
use aec_model::failure::{Failure, FailureKind};
use aec_model::message::{Reply, Request, Sampling};
use aec_model::meter::AccountKind;
use aec_rlm::merge::{Authority, Fact, MergedFact, merge};
use aec_rlm::plan::{Plan, SourceTree};
use aec_rlm::reply::Reply as Found;
use aec_rlm::trace::{Trace, trace};
use aec_task::long_documents::template::{GenerationMode, Section};
use futures_util::future::join_all;
use serde::Serialize;
use serde_json::{Map, Value};
use tokio::sync::Semaphore;

use super::given::{Given, Source};
use super::prompts::{self, Manner};
use crate::campaign::faults::{Meaning, meaning};
use crate::harness::advisor::Advisor;
use crate::harness::guard::{Guard, Plane};
use crate::harness::{End, Limit, TrialContext};

/// How often to ask again after an answer that is not JSON.
const SECOND_TRIES: u32 = 1;

pub(super) struct Shared<'a> {
    pub(super) context: &'a TrialContext,
    pub(super) given: &'a Given,
    pub(super) plan: &'a Plan,
    pub(super) guard: &'a Guard,
    pub(super) model: &'a Model,
    pub(super) permits: &'a Semaphore,
    pub(super) advisor: Option<&'a Advisor>,
    /// The model as its provider names it.
    pub(super) resolved: &'a OnceLock<String>,
}

/// A finished section.
#[derive(Debug, Default, Serialize)]
pub(super) struct Worked {
    pub(super) id: String,
    pub(super) text: Option<String>,
    pub(super) facts: Vec<MergedFact>,
    pub(super) trace: Option<Trace>,
    pub(super) gaps: Vec<String>,
    /// Failed calls, and why.
    pub(super) faults: Vec<String>,
    pub(super) reviews: u32,
    pub(super) reread: u32,
}

impl Shared<'_> {
    /// Works on a section. An error ends all work; a single failed call is a fault of the section.
    pub(super) async fn work(&self, section: &Section, before: &[(String, String)]) -> Result<Worked, End> {
        let mut worked = Worked { id: section.id.clone(), ..Worked::default() };
        let (sources, unknown) = self.given.sources_of(section);
        worked.gaps.extend(unknown.iter().map(|label| format!("there is no source `{label}`")));
        if section.generation_mode == GenerationMode::Boilerplate {
            let texts: Vec<&str> = sources.iter().map(|(source, _)| source.text.trim()).collect();
            worked.text = (!texts.is_empty()).then(|| texts.join("\n\n"));
            return Ok(worked);
        }
        let brief = prompts::brief(&self.context.task.instruction, &self.given.template.meta, section);
        let authority =
            Authority::from_priorities(sources.iter().map(|(source, rank)| (source.label.as_str(), *rank)));
        let mut found: Vec<(&Source, Vec<Fact>)> = Vec::new();
        let reading = sources.iter().map(|(source, _)| self.read(section, source, &brief, None));
        for ((source, _), read) in sources.iter().zip(join_all(reading).await) {
            let (facts, faults) = read?;
            worked.faults.extend(faults);
            found.push((source, facts));
        }
        self.review(section, &brief, &authority, &mut found, &mut worked).await?;
        worked.facts = merged(&found, &authority);
        worked.gaps.extend(missing(section, &worked.facts));
        self.write(section, &brief, before, &mut worked).await?;
        Ok(worked)
    }

    /// Reads a source: its parts concurrently, then merges level by level according to the plan.
    async fn read(
        &self,
        section: &Section,
        source: &Source,
        brief: &str,
        guidance: Option<&str>,
    ) -> Result<(Vec<Fact>, Vec<String>), End> {
        let is_it = |tree: &&SourceTree| tree.section == section.id && tree.source == source.label;
        let Some(tree) = self.plan.trees.iter().find(is_it) else { return Ok((Vec::new(), Vec::new())) };
        let mut faults = Vec::new();
        let leaves = tree.leaves.iter().map(|leaf| async {
            let text = |range: &std::ops::Range<usize>| source.text.get(range.clone()).unwrap_or_default();
            let header = leaf.context.as_ref().map(text);
            let request =
                prompts::leaf(brief, &source.label, header, text(&leaf.range), guidance, self.manner());
            let what = format!("{} bytes {} to {}", source.label, leaf.range.start, leaf.range.end);
            let found = self.found(&request, &what).await?;
            Ok::<_, End>(found.map(|found| found.facts(&source.label, &leaf.range)))
        });
        let mut results = Vec::with_capacity(tree.leaves.len());
        for read in join_all(leaves).await {
            results.push(read?.unwrap_or_else(|fault| {
                faults.push(fault);
                Vec::new()
            }));
        }
        for level in &tree.levels {
            let merging = level.iter().map(|group| self.reduce(brief, &results[group.clone()]));
            let mut above = Vec::with_capacity(level.len());
            for merged in join_all(merging).await {
                let (facts, fault) = merged?;
                faults.extend(fault);
                above.push(facts);
            }
            results = above;
        }
        Ok((results.into_iter().flatten().collect(), faults))
    }

    /// Merges the facts of a group. If the model's answer is unusable, all facts are carried up.
    async fn reduce(&self, brief: &str, group: &[Vec<Fact>]) -> Result<(Vec<Fact>, Option<String>), End> {
        let facts: Vec<Fact> = group.iter().flatten().cloned().collect();
        if group.iter().filter(|facts| !facts.is_empty()).count() < 2 {
            return Ok((facts, None));
        }
        let request = prompts::reduce(brief, &facts, self.manner());
        match self.found(&request, "a merge").await? {
            Ok(found) => {
                let merged = joined(&found, &facts);
                // An empty merge counts as unusable.
                Ok(if merged.is_empty() {
                    (facts, Some("a merge gave nothing".to_owned()))
                } else {
                    (merged, None)
                })
            }
            Err(fault) => Ok((facts, Some(fault))),
        }
    }

    /// Reviews the facts, and reads again what the review asks for, within the limits of the settings.
    async fn review(
        &self,
        section: &Section,
        brief: &str,
        authority: &Authority,
        found: &mut [(&Source, Vec<Fact>)],
        worked: &mut Worked,
    ) -> Result<(), End> {
        let rules = &self.given.settings.review;
        if !rules.enabled || found.is_empty() {
            return Ok(());
        }
        let mut read_again = vec![0; found.len()];
        let mut supplements = 0;
        loop {
            let facts = merged(found, authority);
            let labels: Vec<&str> = found.iter().map(|(source, _)| source.label.as_str()).collect();
            let request = prompts::review(brief, &facts, &labels, self.manner());
            worked.reviews += 1;
            let verdict = match self.found(&request, "a review").await? {
                Ok(verdict) => verdict,
                Err(fault) => {
                    worked.faults.push(fault);
                    return Ok(());
                }
            };
            let get = |key: &str| verdict.values.iter().find(|(name, _)| name == key).map(|(_, value)| value);
            let status = get("status").and_then(Value::as_str).unwrap_or("pass").to_owned();
            worked.gaps = texts(get("gaps"));
            let mut guidance = get("guidance").and_then(Value::as_str).map(str::to_owned);
            let wanted = texts(get("sources"));
            let mut again: Vec<usize> = Vec::new();
            if status == "reextract" {
                again.extend((0..found.len()).filter(|at| {
                    read_again[*at] < rules.max_retries_per_source
                        && wanted.iter().any(|label| *label == labels[*at])
                }));
            } else if status == "supplement" && supplements < rules.max_supplements_per_section {
                supplements += 1;
                again.extend(0..found.len());
            }
            if again.is_empty() {
                return Ok(());
            }
            if let Some(advice) = self.advice(section, &worked.gaps, guidance.as_deref()).await {
                guidance = Some(format!("{}\n{advice}", guidance.unwrap_or_default()));
            }
            for at in again {
                read_again[at] += 1;
                worked.reread += 1;
                let (facts, faults) = self.read(section, found[at].0, brief, guidance.as_deref()).await?;
                worked.faults.extend(faults);
                // Earlier facts are kept; duplicates become one fact.
                found[at].1.extend(facts);
            }
        }
    }

    /// The advisor's advice about reading again, if there is an advisor and it answers.
    async fn advice(&self, section: &Section, gaps: &[String], guidance: Option<&str>) -> Option<String> {
        let advisor = self.advisor?;
        let question = Map::from_iter([
            ("goal".to_owned(), format!("data for the section {}", section.title).into()),
            ("problem".to_owned(), gaps.join("\n").into()),
            ("attempt".to_owned(), guidance.into()),
        ]);
        let answer = advisor.ask(self.context, self.guard, &question).await.ok()?;
        advisor.remember(&format!("{}: {answer}", section.title));
        answer.get("response")?.as_str().map(str::to_owned)
    }

    /// Writes the section, and rewrites it once if it states unsupported numbers.
    async fn write(
        &self,
        section: &Section,
        brief: &str,
        before: &[(String, String)],
        worked: &mut Worked,
    ) -> Result<(), End> {
        if worked.facts.is_empty() && before.is_empty() {
            return Ok(());
        }
        let mut unsupported = Vec::new();
        for _ in 0..2 {
            let request = prompts::write(
                brief,
                section,
                &worked.facts,
                before,
                &worked.gaps,
                &unsupported,
                self.manner(),
            );
            let text = match self.ask(Plane::Main, &request).await? {
                Ok(reply) => reply.text().trim().to_owned(),
                Err(fault) => {
                    worked.faults.push(format!("the section was not written: {fault}"));
                    return Ok(());
                }
            };
            if text.is_empty() {
                worked.faults.push("the section was not written: the answer is empty".to_owned());
                return Ok(());
            }
            let traced = trace(&text, &worked.facts);
            unsupported = traced.unsupported().map(|one| text[one.range.clone()].trim().to_owned()).collect();
            worked.text = Some(text);
            worked.trace = Some(traced);
            // Numbers of earlier sections are not among the facts of this one.
            if unsupported.is_empty() || !before.is_empty() {
                break;
            }
        }
        Ok(())
    }

    /// Asks for an object; asks once more if the answer is not one.
    async fn found(&self, request: &Request, what: &str) -> Result<Result<Found, String>, End> {
        let mut fault = String::new();
        for _ in 0..=SECOND_TRIES {
            match self.ask(Plane::Subcalls, request).await? {
                Ok(reply) => match Found::read(&reply.text()) {
                    Ok(found) => return Ok(Ok(found)),
                    Err(error) => fault = format!("{what}: {error}"),
                },
                Err(error) => return Ok(Err(format!("{what}: {error}"))),
            }
        }
        Ok(Err(fault))
    }

    fn manner(&self) -> Manner<'_> {
        let agent = &self.context.agent;
        let wanted = &agent.parameters.sampling;
        let max_tokens = Some(self.guard.output_limit(wanted.output_limit()));
        Manner { own: agent.system_prompt.as_deref(), sampling: Sampling { max_tokens, ..wanted.clone() } }
    }

    /// Calls the model when a slot is free. A failure that would affect every other call ends the work.
    async fn ask(&self, plane: Plane, request: &Request) -> Result<Result<Reply, String>, End> {
        let _permit = self.permits.acquire().await.map_err(|error| End::Room(error.to_string().into()))?;
        if self.context.time_left().is_zero() {
            return Err(End::Limit(Limit::Time));
        }
        self.guard.enter(plane).map_err(End::Limit)?;
        match self.guard.ask(self.context, plane, self.model, request).await {
            Ok(reply) => {
                if let Some(model) = &reply.model {
                    self.resolved.get_or_init(|| model.clone());
                }
                Ok(Ok(reply))
            }
            Err(failure) if ends_all(&failure) => Err(self.ended(failure)),
            Err(failure) => Ok(Err(failure.to_string())),
        }
    }

    fn ended(&self, failure: Failure) -> End {
        if failure.account == Some(AccountKind::Harness) {
            End::Limit(Limit::Cost)
        } else {
            self.context.failed(failure)
        }
    }
}

fn ends_all(failure: &Failure) -> bool {
    failure.kind == FailureKind::Cancelled || meaning(failure) == Meaning::Fatal
}

fn merged(found: &[(&Source, Vec<Fact>)], authority: &Authority) -> Vec<MergedFact> {
    merge(found.iter().flat_map(|(_, facts)| facts.iter().cloned()), authority)
}

/// The facts of a merge, with the places of the findings that support them. Unsupported facts are dropped.
fn joined(found: &Found, facts: &[Fact]) -> Vec<Fact> {
    let list = found.values.iter().find(|(key, _)| key == "findings").and_then(|(_, value)| value.as_array());
    let mut merged = Vec::new();
    for finding in list.into_iter().flatten() {
        let from = finding.get("from").and_then(Value::as_array).into_iter().flatten();
        let from = from.filter_map(|number| facts.get(usize::try_from(number.as_u64()?).ok()?));
        let (Some(key), Some(value)) = (finding.get("key").and_then(Value::as_str), finding.get("value"))
        else {
            continue;
        };
        merged.extend(from.map(|fact| Fact { key: key.to_owned(), value: value.clone(), ..fact.clone() }));
    }
    merged
}

fn missing(section: &Section, facts: &[MergedFact]) -> Vec<String> {
    let is_there = |name: &str| facts.iter().any(|fact| fact.key == name);
    let required = section.fields.iter().filter(|field| field.required && !is_there(&field.name));
    required.map(|field| format!("`{}` was found nowhere", field.name)).collect()
}

fn texts(value: Option<&Value>) -> Vec<String> {
    let list = value.and_then(Value::as_array).into_iter().flatten();
    list.filter_map(|item| item.as_str().map(str::to_owned)).collect()
}
