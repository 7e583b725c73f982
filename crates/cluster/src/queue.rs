//! Reads `squeue --json` in the shapes of all versions since 22.05: numbers alone or as `{"set", "number"}`, states
//! as a word or a list, tasks of an array one by one or as a range. Unused keys are skipped.

use aec_base::problem::Problem;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::FAMILY;

/// One job or one task of an array.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Entry {
    /// The id of the job, or of the array to which the task belongs.
    pub job: u64,
    /// Its index in the array.
    pub index: Option<usize>,
    /// Its state, such as `PENDING` or `RUNNING`.
    pub state: String,
    /// Why it waits or ended, where Slurm says so.
    pub reason: Option<String>,
    /// The node on which it runs or ran.
    pub node: Option<String>,
    /// How often it was started again.
    pub restarts: u64,
}

impl Entry {
    /// Whether Slurm will not run it any more.
    pub fn is_over(&self) -> bool {
        const OVER: [&str; 11] = [
            "BOOT_FAIL",
            "CANCELLED",
            "COMPLETED",
            "DEADLINE",
            "FAILED",
            "NODE_FAIL",
            "OUT_OF_MEMORY",
            "PREEMPTED",
            "REVOKED",
            "SPECIAL_EXIT",
            "TIMEOUT",
        ];
        OVER.contains(&self.state.as_str())
    }
}

#[derive(Deserialize)]
struct Answer {
    jobs: Option<Vec<RawJob>>,
    #[serde(default)]
    errors: Vec<Value>,
}

#[derive(Deserialize)]
struct RawJob {
    #[serde(default)]
    job_id: Value,
    #[serde(default)]
    array_job_id: Value,
    #[serde(default)]
    array_task_id: Value,
    #[serde(default)]
    array_task_string: Value,
    #[serde(default)]
    job_state: Value,
    #[serde(default)]
    state_reason: Value,
    #[serde(default)]
    nodes: Value,
    #[serde(default)]
    restart_cnt: Value,
}

/// The entries of the given jobs, sorted by job and index. `most` bounds the indices of arrays.
pub fn parse(bytes: &[u8], jobs: &[u64], most: usize) -> Result<Vec<Entry>, Problem> {
    let unreadable = |why: String| {
        Problem::error("the answer of squeue cannot be read")
            .id(FAMILY.number(13))
            .why(why)
            .fix("look with `squeue`; what is recorded is shown all the same")
    };
    // Serde would also accept a list as a struct.
    if bytes.trim_ascii_start().first() != Some(&b'{') {
        return Err(unreadable("it is not a JSON object".to_owned()));
    }
    let answer: Answer = aec_base::json::from_slice(bytes).map_err(|error| unreadable(error.to_string()))?;
    let found = answer.jobs.as_deref().unwrap_or_default();
    if found.is_empty()
        && let Some(error) = answer.errors.first()
    {
        let why = error.get("error").or_else(|| error.get("description")).and_then(Value::as_str);
        return Err(unreadable(
            aec_base::text::printable(why.unwrap_or("squeue reports an error")).into_owned(),
        ));
    }
    if answer.jobs.is_none() {
        return Err(unreadable("it has no list of jobs".to_owned()));
    }
    let mut entries = Vec::new();
    for raw in found {
        entries.extend(raw.entries(jobs, most));
    }
    // A task that Slurm took out of its range also has its own entry, which is preferred.
    entries.sort_by_key(|(entry, own)| (entry.job, entry.index, !own));
    entries.dedup_by(|later, first| (later.0.job, later.0.index) == (first.0.job, first.0.index));
    Ok(entries.into_iter().map(|(entry, _)| entry).collect())
}

impl RawJob {
    /// The entries of a job, and whether each has its own job id.
    fn entries(&self, jobs: &[u64], most: usize) -> Vec<(Entry, bool)> {
        let own = number(&self.job_id);
        let array = number(&self.array_job_id).filter(|id| *id != 0);
        let Some(job) = array.or(own).filter(|job| jobs.contains(job)) else { return Vec::new() };
        let entry = |index: Option<usize>| Entry {
            job,
            index,
            state: state(&self.job_state),
            reason: text(&self.state_reason).filter(|reason| reason != "None"),
            node: text(&self.nodes),
            restarts: number(&self.restart_cnt).unwrap_or(0),
        };
        if array.is_none() {
            return vec![(entry(None), true)];
        }
        let index = number(&self.array_task_id).and_then(|index| usize::try_from(index).ok());
        match (index, self.array_task_string.as_str().filter(|range| !range.is_empty())) {
            (_, Some(range)) => {
                indices(range, most).into_iter().map(|index| (entry(Some(index)), false)).collect()
            }
            (Some(index), None) if index < most => vec![(entry(Some(index)), true)],
            _ => Vec::new(),
        }
    }
}

/// A number alone, or an object that says whether it is set.
fn number(value: &Value) -> Option<u64> {
    match value {
        Value::Number(number) => number.as_u64(),
        Value::Object(map) => {
            let set = map.get("set").and_then(Value::as_bool).unwrap_or(true);
            let infinite = map.get("infinite").and_then(Value::as_bool).unwrap_or(false);
            map.get("number").and_then(Value::as_u64).filter(|_| set && !infinite)
        }
        _ => None,
    }
}

fn text(value: &Value) -> Option<String> {
    let text = value.as_str().filter(|text| !text.is_empty())?;
    Some(aec_base::text::printable(text).chars().take(200).collect())
}

/// A state as a word, or the first of a list.
fn state(value: &Value) -> String {
    let word = match value {
        Value::Array(words) => words.first().and_then(text),
        word => text(word),
    };
    word.map_or_else(|| "UNKNOWN".to_owned(), |word| word.to_ascii_uppercase())
}

/// The indices below a bound in a range such as `0,3-5,8-12:2%4`.
fn indices(range: &str, most: usize) -> Vec<usize> {
    let range = range.split('%').next().unwrap_or_default();
    let mut found = Vec::new();
    for part in range.trim_matches(['[', ']']).split(',') {
        let (span, step) = part.split_once(':').unwrap_or((part, "1"));
        let (first, last) = span.split_once('-').unwrap_or((span, span));
        let (Ok(first), Ok(last), Ok(step)) =
            (first.parse::<usize>(), last.parse::<usize>(), step.parse::<usize>())
        else {
            continue;
        };
        found.extend((first..=last.min(most.saturating_sub(1))).step_by(step.max(1)));
    }
    found.sort_unstable();
    found.dedup();
    found
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    type Brief = (u64, Option<usize>, String, Option<String>, u64);

    fn check(answer: &Value, jobs: &[u64]) -> Vec<Brief> {
        let entries = parse(answer.to_string().as_bytes(), jobs, 8).unwrap();
        entries.into_iter().map(|e| (e.job, e.index, e.state, e.node, e.restarts)).collect()
    }

    #[test]
    fn the_shape_of_22_05() {
        let answer = json!({"meta": {}, "errors": [], "jobs": [
            {"job_id": 6, "array_job_id": 5, "array_task_id": 0, "array_task_string": "", "job_state": "RUNNING",
             "nodes": "n1", "restart_cnt": 1, "state_reason": "None", "unknown": {"a": [1]}},
            {"job_id": 5, "array_job_id": 5, "array_task_id": null, "array_task_string": "2-3%4",
             "job_state": "PENDING", "nodes": "", "state_reason": "Resources"},
            {"job_id": 7, "array_job_id": 5, "array_task_id": 3, "array_task_string": "", "job_state": "COMPLETED"},
            {"job_id": 9, "array_job_id": 0, "array_task_id": null, "job_state": "PENDING"},
            {"job_id": 99, "array_job_id": 0, "job_state": "RUNNING"},
        ]});
        assert_eq!(
            check(&answer, &[5, 9]),
            [
                (5, Some(0), "RUNNING".to_owned(), Some("n1".to_owned()), 1),
                (5, Some(2), "PENDING".to_owned(), None, 0),
                (5, Some(3), "COMPLETED".to_owned(), None, 0),
                (9, None, "PENDING".to_owned(), None, 0),
            ]
        );
    }

    #[test]
    fn the_shape_of_23_11_and_later() {
        let set = |n: u64| json!({"set": true, "infinite": false, "number": n});
        let unset = json!({"set": false, "infinite": false, "number": 0});
        let answer = json!({"jobs": [
            {"job_id": 6, "array_job_id": set(5), "array_task_id": set(1), "job_state": ["RUNNING"], "nodes": "n2",
             "restart_cnt": 0},
            {"job_id": 5, "array_job_id": set(5), "array_task_id": unset, "array_task_string": "4-7:2",
             "job_state": ["PENDING", "REQUEUED"]},
            {"job_id": 8, "array_job_id": unset, "array_task_id": unset, "job_state": ["COMPLETED"]},
        ], "last_update": set(1), "warnings": []});
        assert_eq!(
            check(&answer, &[5, 8]),
            [
                (5, Some(1), "RUNNING".to_owned(), Some("n2".to_owned()), 0),
                (5, Some(4), "PENDING".to_owned(), None, 0),
                (5, Some(6), "PENDING".to_owned(), None, 0),
                (8, None, "COMPLETED".to_owned(), None, 0),
            ]
        );
    }

    #[test]
    fn nonsense_is_a_problem_and_nothing_worse() {
        for broken in ["", "{", "{}", "[]", "null", "{\"jobs\": 3}", "{\"jobs\": [{\"job_id\":", "\u{0}"] {
            assert_eq!(
                parse(broken.as_bytes(), &[1], 8).unwrap_err().id.as_deref(),
                Some("J013"),
                "{broken}"
            );
        }
        let error = json!({"jobs": [], "errors": [{"error": "no \u{1b}[31mcontroller", "error_number": 1}]});
        let problem = parse(error.to_string().as_bytes(), &[1], 8).unwrap_err();
        assert!(problem.why.is_some_and(|why| why.contains("controller") && !why.contains('\u{1b}')));
        // Ranges are bounded whatever the queue reports.
        let huge = json!({"jobs": [{"job_id": 1, "array_job_id": 1, "array_task_string": "0-18446744073709551615",
            "job_state": "PENDING"}]});
        assert_eq!(check(&huge, &[1]).len(), 8);
        let many: Vec<Value> = (0..50_000)
            .map(|id| json!({"job_id": id + 10, "array_job_id": 1, "array_task_id": id % 16, "job_state": "RUNNING"}))
            .collect();
        assert_eq!(check(&json!({ "jobs": many }), &[1]).len(), 8);
    }

    proptest! {
        #[test]
        fn any_bytes_are_survived(bytes in prop::collection::vec(any::<u8>(), 0..200), range in "[0-9,:%\\-\\[\\]]{0,30}") {
            parse(&bytes, &[1], 8).ok();
            prop_assert!(indices(&range, 8).iter().all(|index| *index < 8));
        }
    }
}
