//! Changes beside the records: of the index, of the files of the runs, of `jobs`, of the journal.

use std::path::{Path, PathBuf};

use aec_base::digest::Digest;
use aec_xtest::files::names_in;
use rusqlite::Connection;
use serde_json::{Value, json};

use crate::run::Project;
use crate::run::world::RIGHT;

/// An experiment with one good and one bad result.
fn project() -> Project {
    let project = Project::with_tasks(2);
    let model = project.script(
        "model",
        &format!("replies: [{{text: '{RIGHT}'}}]\nconversations: [{{when: channel-001, replies: [{{text: wrong}}]}}]\n"),
    );
    let run = project.json(&format!("run civil --model {model} --harness direct -e x --concurrency 2"));
    assert_eq!(run.code, Some(0), "{run:?}");
    project
}

fn ids(project: &Project, line: &str) -> Vec<String> {
    let run = project.json(line);
    let mut ids: Vec<String> = run.errors().into_iter().map(|(id, _)| id).collect();
    assert_eq!(run.code, Some(i32::from(!ids.is_empty())), "{run:?}");
    ids.dedup();
    ids
}

fn mean(project: &Project, line: &str) -> Value {
    project.data(line)["overall"]["mean_reward"].clone()
}

/// Before: `evaluate` showed 1.000 and `ledger verify` was clean.
#[test]
fn a_forged_index_is_found_and_not_published() {
    let project = project();
    assert_eq!(mean(&project, "evaluate -e x"), 0.5);
    assert_eq!(ids(&project, "ledger verify -e x"), [""; 0]);
    let index = || Connection::open(project.env.path("artefacts/ledger/_index.sqlite")).unwrap();
    index().execute_batch("UPDATE records SET reward = 1.0; UPDATE totals SET rewards = 2.0").unwrap();
    assert_eq!(mean(&project, "evaluate -e x"), 1.0, "the attack works on a report that reads the index");
    let verified = project.json("ledger verify -e x");
    assert_eq!(verified.code, Some(1), "{verified:?}");
    let told: Vec<(String, String)> = verified.errors();
    assert!(told.iter().all(|(id, _)| id == "L041") && told[0].1.contains(": reward"), "{told:?}");
    assert_eq!(mean(&project, "evaluate -e x --verified"), 0.5);
    assert_eq!(mean(&project, "evaluate -e x --report page.html"), 0.5, "what is published reads records");
    assert_eq!(project.data("report leaderboard --verified")["rows"][0]["mean_reward"], 0.5);
    project.data("ledger reindex");
    assert_eq!((mean(&project, "evaluate -e x"), ids(&project, "ledger verify -e x").len()), (json!(0.5), 0));
    // Every column, every row, every sum.
    for change in [
        "UPDATE records SET outcome = 'infra_fault' WHERE reward = 0",
        "UPDATE records SET reward = NULL WHERE reward = 0",
        "UPDATE records SET cost_usd = 0.001",
        "UPDATE records SET tokens_in = 7",
        "UPDATE records SET repetition = 2",
        "UPDATE records SET latest = 0 WHERE reward = 0",
        "UPDATE records SET moment = moment + 1",
        "UPDATE records SET timestamp = '2020-01-01T00:00:00Z'",
        "UPDATE records SET fault_message = 'x'",
        "UPDATE records SET record = zeroblob(32)",
        "UPDATE records SET judged = 'room'",
        "UPDATE tasks SET difficulty = 'hard'",
        "UPDATE tasks SET task_revision = zeroblob(32)",
        "UPDATE agents SET agent = 'better'",
        "UPDATE agents SET model = 'better'",
        "DELETE FROM records WHERE reward = 0",
        "INSERT INTO records SELECT experiment_id, 'more', attempt, repetition, task_number, agent_number, dataset_id, \
         outcome, fault_boundary, fault_kind, fault_message, 1.0, cost_usd, tokens_in, tokens_out, model_calls, \
         timestamp, total_seconds, agent_seconds, completeness, record, size, moment, latest, key, plan, judged \
         FROM records LIMIT 1",
        "UPDATE totals SET rewards = rewards + 0.5",
        "UPDATE totals SET count = count + 1",
        "INSERT INTO totals VALUES ('ghost', 1, 'scored', 9, 9.0, 0, 9, 0, 0)",
        "CREATE TRIGGER forge AFTER INSERT ON records BEGIN UPDATE records SET reward = 1.0; END",
    ] {
        // A directory that has not changed for a while is not listed again.
        let long_ago = std::time::SystemTime::now() - std::time::Duration::from_mins(1);
        let times = std::fs::FileTimes::new().set_modified(long_ago);
        std::fs::File::open(project.ledger("x")).unwrap().set_times(times).unwrap();
        project.data("ledger reindex");
        index().execute_batch(change).unwrap();
        assert_eq!(ids(&project, "ledger verify -e x"), ["L041"], "{change}");
    }
}

/// `--verified` does not show records that were changed either.
#[test]
fn a_verified_report_refuses_changed_records() {
    let project = project();
    let records = project.records("x");
    let (bad, _) = records.iter().find(|(_, record)| record.reward() == Some(0.0)).unwrap();
    let path = project.ledger("x").join(bad);
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, text.replace("\"reward\": 0.0", "\"reward\": 1.0")).unwrap();
    for line in ["evaluate -e x --verified", "report leaderboard --verified", "report traces -e x --verified"]
    {
        assert_eq!(project.refusal(line, 3).0, "L030", "{line}");
    }
}

/// A file that an attack changes, and what it was.
struct Attacked {
    path: PathBuf,
    content: Vec<u8>,
}

impl Attacked {
    fn new(path: PathBuf) -> Self {
        Self {
            content: std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display())),
            path,
        }
    }

    fn restore(&self) {
        std::fs::write(&self.path, &self.content).unwrap();
    }
}

fn named(directory: &Path, front: &str) -> PathBuf {
    let name = names_in(directory).into_iter().find(|name| name.starts_with(front));
    directory.join(name.unwrap_or_else(|| panic!("no {front} in {}", directory.display())))
}

/// Before: `ledger verify --head` was clean after each of these.
#[test]
fn every_file_of_a_run_is_covered_by_the_head() {
    let project = project();
    let head = project.data("ledger verify -e x")["experiments"][0]["head"].as_str().unwrap().to_owned();
    let line = format!("ledger verify -e x --head {head}");
    assert_eq!(ids(&project, &line), [""; 0]);
    let run = project.ledger("x").join("_run");
    for file in [
        run.join("plan.json"),
        run.join("terms.json"),
        named(&run, "session-"),
        named(&run.join("plans"), ""),
        named(&run, "chain-"),
    ] {
        let attacked = Attacked::new(file);
        let name = attacked.path.display();
        let mut other = attacked.content.clone();
        other.push(b'\n');
        std::fs::write(&attacked.path, &other).unwrap();
        if !attacked.path.to_string_lossy().contains("chain-") {
            assert_eq!(ids(&project, &line), ["L043", "L039"], "{name} overwritten");
            assert_eq!(ids(&project, "ledger verify -e x"), ["L043"], "{name} overwritten, without a head");
        }
        std::fs::remove_file(&attacked.path).unwrap();
        let found = ids(&project, &line);
        assert!(
            found.contains(&"L042".to_owned()) && found.contains(&"L039".to_owned()),
            "{name}: {found:?}"
        );
        // Without what the last session stored, only the head reveals it.
        let sealed = Attacked::new(run.join("head.json"));
        std::fs::remove_file(&sealed.path).unwrap();
        assert!(ids(&project, &line).contains(&"L039".to_owned()), "{name} removed with `head.json`");
        sealed.restore();
        attacked.restore();
        assert_eq!(ids(&project, &line), [""; 0], "{name} restored");
    }
    // A note on an import could hide records that were removed.
    let forged = run.join("import-00000000.json");
    std::fs::write(&forged, "{}").unwrap();
    assert!(ids(&project, &line).contains(&"L043".to_owned()));
    std::fs::remove_file(&forged).unwrap();
    assert_eq!(ids(&project, &line), [""; 0]);
}

#[test]
fn heads_of_earlier_versions_are_accepted_for_what_they_cover() {
    let project = project();
    let data = project.data("ledger verify -e x");
    let old = data["experiments"][0]["chain_head"].as_str().unwrap().to_owned();
    let run = project.json(&format!("ledger verify -e x --head {old}"));
    assert_eq!((run.code, run.envelope()["data"]["is_clean"].clone()), (Some(0), json!(true)), "{run:?}");
    assert!(run.stdout.contains("L046"), "{run:?}");
    // An experiment of an earlier version has no description of its head.
    std::fs::remove_file(project.ledger("x").join("_run/head.json")).unwrap();
    assert_eq!(ids(&project, "ledger verify -e x"), [""; 0]);
}

#[test]
fn files_in_jobs_are_compared_with_the_records() {
    let project = project();
    let line = "ledger verify -e x";
    let attempt = project.jobs("x").join(project.record_names("x")[0].trim_end_matches(".json"));
    let file = attempt.join("workspace/trajectory.jsonl");
    let kept = std::fs::read(&file).unwrap();
    std::fs::remove_file(&file).unwrap();
    assert_eq!(ids(&project, line), ["L045"], "removed");
    std::fs::write(&file, "another story").unwrap();
    assert_eq!(ids(&project, line), ["L045"], "overwritten");
    std::fs::remove_dir_all(&attempt).unwrap();
    assert_eq!(ids(&project, line), ["L045"], "the whole attempt");
    std::fs::remove_dir_all(project.jobs("x")).unwrap();
    assert_eq!(ids(&project, line), ["L045"], "all of it");
    let planned = project.data("ledger repair --dry-run")["actions"].clone();
    assert_eq!(planned.as_array().unwrap().len(), 2, "{planned}");
    assert!(!project.jobs("x").exists(), "a dry run changes nothing");
    assert_eq!(project.data("ledger repair")["actions"], planned);
    assert_eq!(std::fs::read(&file).unwrap(), kept);
    assert_eq!(ids(&project, line), [""; 0]);
}

/// A journal as a killed session leaves it, with these records and links, in the format of `ledger::journal`.
fn journal(entries: &[(Vec<u8>, String)]) -> (Vec<u8>, Vec<usize>) {
    let mut bytes = b"aec-bench journal 1\n".to_vec();
    let mut starts = Vec::new();
    for (record, link) in entries {
        let mut payload = Vec::new();
        for part in [record.as_slice(), link.as_bytes()] {
            payload.extend_from_slice(&(part.len() as u64).to_le_bytes());
            payload.extend_from_slice(part);
        }
        starts.push(bytes.len());
        bytes.extend_from_slice(&(payload.len() as u64).to_le_bytes());
        bytes.extend_from_slice(Digest::of(&payload).bytes());
        bytes.extend_from_slice(&payload);
    }
    (bytes, starts)
}

/// A project of three records that are only in the journal, with the beginnings of its entries.
fn killed() -> (Project, PathBuf, Vec<usize>, Vec<PathBuf>) {
    let project = Project::with_tasks(3);
    let model = project.script("model", &format!("replies: [{{text: '{RIGHT}'}}]\n"));
    let run = project.json(&format!("run civil --model {model} --harness direct -e x"));
    assert_eq!(run.code, Some(0), "{run:?}");
    let run = project.ledger("x").join("_run");
    let chain = named(&run, "chain-");
    let links = std::fs::read_to_string(&chain).unwrap();
    let mut places = Vec::new();
    let entries: Vec<(Vec<u8>, String)> = links
        .lines()
        .map(|line| {
            let link: Value = serde_json::from_str(line).unwrap();
            let place = project.ledger("x").join(format!("{}.json", link["trial_id"].as_str().unwrap()));
            let record = std::fs::read(&place).unwrap();
            std::fs::remove_file(&place).unwrap();
            places.push(place);
            (record, line.to_owned())
        })
        .collect();
    let (bytes, starts) = journal(&entries);
    let path = run.join(
        chain.file_name().unwrap().to_str().unwrap().replace("chain-", "journal-").replace(".jsonl", ".log"),
    );
    std::fs::write(&path, bytes).unwrap();
    std::fs::write(&chain, "").unwrap();
    (project, path, starts, places)
}

/// Before: a dry run said "There was nothing to repair".
#[test]
fn a_dry_run_of_a_repair_says_what_the_repair_does() {
    let (project, journal, _, places) = killed();
    let would = project.json("ledger repair --dry-run");
    assert_eq!(would.code, Some(0), "{would:?}");
    let planned = would.envelope()["data"]["actions"].clone();
    assert_eq!(
        planned.as_array().unwrap().iter().filter(|action| action["action"] == "restored").count(),
        3,
        "{planned}"
    );
    assert!(journal.exists() && places.iter().all(|place| !place.exists()), "nothing is changed");
    let text = project.run("ledger repair --dry-run").stdout;
    assert_eq!(text.lines().filter(|line| line.starts_with("would restore")).count(), 3, "{text}");
    let did = project.data("ledger repair");
    assert_eq!(did["actions"], planned);
    assert!(!journal.exists() && places.iter().all(|place| place.exists()));
    project.assert_sound("x");
    assert_eq!(project.data("ledger repair")["actions"], json!([]));
}

/// Before: one flipped bit lost every record behind it, and the exit code was 0.
#[test]
fn a_flipped_bit_in_a_journal_costs_one_record_and_is_told() {
    // In the header, the length, the digest, the record and the link of the first entry.
    for (at, lost) in [(-15_i64, 0), (0, 0), (20, 0), (300, 1), (-1, 0)] {
        let (project, journal, starts, places) = killed();
        let mut bytes = std::fs::read(&journal).unwrap();
        // The last one is at the end of the first entry, in its link, which the record and the next link give again.
        let place = match at {
            -1 => starts[1] - 10,
            at => usize::try_from(i64::try_from(starts[0]).unwrap() + at).unwrap(),
        };
        bytes[place] ^= 1;
        std::fs::write(&journal, &bytes).unwrap();
        let would = project.json("ledger repair --dry-run");
        let did = project.json("ledger repair");
        assert_eq!((would.code, did.code), (Some(lost), Some(lost)), "{at}: {would:?} {did:?}");
        assert_eq!(would.envelope()["data"]["actions"], did.envelope()["data"]["actions"], "{at}");
        assert!(places[1].exists() && places[2].exists(), "{at}: the records behind it");
        assert_eq!(places[0].exists(), lost == 0, "{at}");
        let told = did.errors();
        if lost == 1 {
            assert_eq!(told[0].0, "L013", "{told:?}");
            let name = places[0].file_stem().unwrap().to_str().unwrap();
            assert!(told[0].1.contains(name), "{at}: {told:?}");
            assert!(ids(&project, "ledger verify -e x").contains(&"L013".to_owned()), "and it stays known");
        } else {
            project.assert_sound("x");
        }
    }
}
