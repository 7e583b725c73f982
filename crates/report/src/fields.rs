//! `report fields`: which parts of answers fail, by template.

use std::collections::BTreeMap;

use aec_ledger::record::TrialRecord;
use serde::Serialize;

use crate::html::Field;
use crate::selection::is_full;
use crate::shown;

/// Most wrong answers quoted for each field.
const QUOTED: usize = 3;

/// The verifier's marks of the fields of one answer.
#[derive(Clone, Debug)]
pub struct Marks {
    family: String,
    agent: String,
    trial: String,
    fields: Vec<Field>,
}

impl Marks {
    /// Absent if the verifier reports no fields.
    pub fn of(record: &TrialRecord) -> Option<Self> {
        let told = record.evaluation.as_ref()?.breakdown.as_ref()?.get("fields")?.is_object();
        let fields = told.then(|| shown::fields(record))?;
        Some(Self {
            family: record.task.family.clone(),
            agent: record.agent.name.to_string(),
            trial: record.trial_id.to_string(),
            fields: fields.into_iter().filter(|field| field.score.is_some()).collect(),
        })
    }
}

#[derive(Clone, Debug, Serialize)]
pub struct FamilyFields {
    pub family: String,
    /// Trials whose verifier reports fields.
    pub trials: usize,
    /// Most frequently failing first.
    pub fields: Vec<FieldRow>,
}

#[derive(Clone, Debug, Serialize)]
pub struct FieldRow {
    pub name: String,
    pub asked: usize,
    pub correct: usize,
    pub mean_score: f64,
    pub statuses: BTreeMap<String, usize>,
    /// Right and asked, by agent.
    pub by_agent: BTreeMap<String, (usize, usize)>,
    /// Some wrong answers, as agents wrote them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub untrusted_examples: Vec<FieldExample>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FieldExample {
    pub trial: String,
    pub expected: String,
    pub got: String,
}

/// Combines the marks of many records. They come in the order of their trials' ids, so examples are always the same.
#[expect(clippy::cast_precision_loss, reason = "counts of trials are far below 2^52")]
pub fn fields(marks: &[Marks]) -> Vec<FamilyFields> {
    #[derive(Default)]
    struct Sum {
        row: Option<FieldRow>,
        scores: f64,
    }
    let mut families: BTreeMap<&str, (usize, BTreeMap<&str, Sum>)> = BTreeMap::new();
    for one in marks {
        let family = families.entry(&one.family).or_default();
        family.0 += 1;
        for mark in &one.fields {
            let sum = family.1.entry(&mark.name).or_default();
            let score = mark.score.unwrap_or_default();
            sum.scores += score;
            let row = sum.row.get_or_insert_with(|| FieldRow {
                name: mark.name.clone(),
                asked: 0,
                correct: 0,
                mean_score: 0.0,
                statuses: BTreeMap::new(),
                by_agent: BTreeMap::new(),
                untrusted_examples: Vec::new(),
            });
            let right = is_full(score);
            row.asked += 1;
            row.correct += usize::from(right);
            *row.statuses.entry(mark.status.clone()).or_default() += 1;
            let agent = row.by_agent.entry(one.agent.clone()).or_default();
            *agent = (agent.0 + usize::from(right), agent.1 + 1);
            if !right && row.untrusted_examples.len() < QUOTED {
                row.untrusted_examples.push(FieldExample {
                    trial: one.trial.clone(),
                    expected: mark.expected.clone(),
                    got: mark.got.clone(),
                });
            }
        }
    }
    families
        .into_iter()
        .map(|(family, (trials, fields))| {
            let mut fields: Vec<FieldRow> = fields
                .into_values()
                .filter_map(|sum| {
                    let mut row = sum.row?;
                    row.mean_score = sum.scores / row.asked as f64;
                    Some(row)
                })
                .collect();
            fields.sort_by(|a, b| a.mean_score.total_cmp(&b.mean_score).then_with(|| a.name.cmp(&b.name)));
            FamilyFields { family: family.to_owned(), trials, fields }
        })
        .collect()
}
