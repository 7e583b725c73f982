//! The scorer in Python and its twin in Rust give the same verdicts, byte for byte.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test stops at the first thing that cannot be arranged, and says what it covered"
)]

mod forms;
mod generate;

use std::collections::BTreeMap;
use std::io::{BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use aec_judge::scorer::{
    Answers, REVISION, STANDARD_VERIFY_PY, Score, Status, Unreadable, revision_of, score, score_unreadable,
};
use generate::{Known, Random};

fn script() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../python/verify.py").canonicalize().unwrap()
}

/// The interpreter itself, because `python3` may be a shim that takes a hundred times as long to start.
fn interpreter() -> PathBuf {
    let output = Command::new("python3").args(["-c", "import sys; print(sys.executable)"]).output().unwrap();
    assert!(output.status.success(), "these tests need python3");
    PathBuf::from(String::from_utf8(output.stdout).unwrap().trim())
}

/// A Python process that scores the frames it receives.
struct Twin {
    process: Child,
    input: Option<BufWriter<ChildStdin>>,
    output: BufReader<ChildStdout>,
}

impl Twin {
    fn start() -> Self {
        let twin = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/twin.py");
        let mut process = Command::new(interpreter())
            .args(["-S".as_ref(), twin.as_os_str(), script().parent().unwrap().as_os_str()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let input = Some(BufWriter::new(process.stdin.take().unwrap()));
        let output = BufReader::new(process.stdout.take().unwrap());
        Self { process, input, output }
    }

    fn answer(output: &mut impl Read) -> String {
        let mut size = [0; 4];
        output.read_exact(&mut size).unwrap();
        let mut text = vec![0; usize::try_from(u32::from_le_bytes(size)).unwrap()];
        output.read_exact(&mut text).unwrap();
        String::from_utf8(text).unwrap()
    }

    /// Sends all frames; returns the replies and the result of `meanwhile`, which runs at the same time.
    fn exchange<T>(&mut self, frames: &[(u8, &[u8])], meanwhile: impl FnOnce() -> T) -> (Vec<String>, T) {
        let input = self.input.as_mut().unwrap();
        let output = &mut self.output;
        std::thread::scope(|scope| {
            scope.spawn(move || {
                for (kind, bytes) in frames {
                    input.write_all(&[*kind]).unwrap();
                    input.write_all(&u32::try_from(bytes.len()).unwrap().to_le_bytes()).unwrap();
                    input.write_all(bytes).unwrap();
                }
                input.flush().unwrap();
            });
            let replies = scope.spawn(move || frames.iter().map(|_| Self::answer(output)).collect());
            let result = meanwhile();
            (replies.join().unwrap(), result)
        })
    }

    /// The processor time that the process has used, in seconds; other work on the machine hardly changes it.
    fn time_used(&self) -> f64 {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.process.id())).unwrap();
        // The name, which stands in brackets, may have spaces. Then come user and system time in hundredths.
        let (_, rest) = stat.rsplit_once(')').unwrap();
        rest.split_whitespace().skip(11).take(2).map(|ticks| ticks.parse::<f64>().unwrap() / 100.0).sum()
    }

    /// The verdict on one submission.
    fn verdict(&mut self, answers: &str, bytes: &[u8]) -> String {
        self.exchange(&[(b'A', answers.as_bytes()), (b'S', bytes)], || ()).0.remove(1)
    }
}

impl Drop for Twin {
    fn drop(&mut self) {
        drop(self.input.take());
        let status = self.process.wait();
        assert!(std::thread::panicking() || status.is_ok_and(|status| status.success()));
    }
}

/// A disagreement, with everything needed to reproduce it.
fn report(what: &str, answers: &str, bytes: &[u8], rust: &str, python: &str) -> String {
    format!(
        "{what}\n--- answers\n{answers}\n--- submission\n{}\n--- as bytes\n{:?}\n--- rust\n{rust}\n--- python\n{python}",
        String::from_utf8_lossy(bytes),
        String::from_utf8_lossy(bytes)
    )
}

/// Drops parts of a submission while the twins still disagree.
fn minimal(twin: &mut Twin, answers: &str, bytes: &[u8]) -> Vec<u8> {
    let parsed = Answers::parse(answers.as_bytes()).unwrap();
    let mut bytes = bytes.to_vec();
    let mut size = bytes.len() / 2;
    while size > 0 {
        let mut at = 0;
        while at + size <= bytes.len() {
            let mut shorter = bytes.clone();
            shorter.drain(at..at + size);
            if twin.verdict(answers, &shorter) == score(&parsed, &shorter).to_details_json() {
                at += size;
            } else {
                bytes = shorter;
            }
        }
        size /= 2;
    }
    bytes
}

#[derive(Default)]
struct Counts {
    submissions: usize,
    right: usize,
    statuses: BTreeMap<(String, Status), usize>,
    problems: BTreeMap<String, usize>,
}

impl Counts {
    fn add(&mut self, answers: &generate::Answers, score: &Score) {
        self.submissions += 1;
        self.right += usize::from(score.problem.is_none() && score.reward > 0.999_999_5);
        for (field, (_, spec)) in score.fields.iter().zip(&answers.fields) {
            let kind = spec["type"].as_str().unwrap().to_owned();
            *self.statuses.entry((kind, field.status)).or_default() += 1;
        }
        if let Some(problem) = &score.problem {
            *self.problems.entry(problem.clone()).or_default() += 1;
        }
    }
}

/// Submissions for each answers file.
const EACH: usize = 20;

type Case = (generate::Answers, Vec<generate::Submission>);

fn native(cases: &[Case]) -> Vec<Score> {
    let mut scores = Vec::new();
    for (answers, submissions) in cases {
        let parsed = Answers::parse(answers.text.as_bytes()).unwrap();
        scores.extend(submissions.iter().map(|submission| score(&parsed, &submission.bytes)));
    }
    scores
}

/// Checks properties that must hold even if the twins agree.
fn check(answers: &generate::Answers, submission: &generate::Submission, result: &Score) {
    assert!((0.0..=1.0).contains(&result.reward));
    for (field, known) in result.fields.iter().zip(&submission.known) {
        let right = field.status == Status::Correct;
        let expected = match known {
            Known::Right => right,
            Known::Wrong => !right,
            Known::Open => true,
        };
        let what = format!("{} should be {known:?}", field.name);
        let details = result.to_details_json();
        assert!(expected, "{}", report(&what, &answers.text, &submission.bytes, &details, "the same"));
    }
}

#[test]
fn the_twins_agree_on_every_submission() {
    let rounds: u64 = if aec_xtest::full() { 20_000 } else { 5_000 };
    let started = std::time::Instant::now();
    let mut twin = Twin::start();
    let mut counts = Counts::default();
    for batch in 0..rounds / 100 {
        let cases: Vec<_> = (0..100)
            .map(|at| {
                let mut random = Random::new(batch * 100 + at);
                let answers = generate::answers(&mut random);
                let submissions: Vec<_> =
                    (0..EACH).map(|_| generate::submission(&mut random, &answers)).collect();
                (answers, submissions)
            })
            .collect();
        let frames: Vec<(u8, &[u8])> = cases
            .iter()
            .flat_map(|(answers, submissions)| {
                let submissions = submissions.iter().map(|submission| (b'S', submission.bytes.as_slice()));
                std::iter::once((b'A', answers.text.as_bytes())).chain(submissions)
            })
            .collect();
        let (python, rust) = twin.exchange(&frames, || native(&cases));
        let mut python = python.into_iter();
        let mut rust = rust.into_iter();
        for (answers, submissions) in &cases {
            assert_eq!(python.next().unwrap(), "", "{}", answers.text);
            for submission in submissions {
                let (result, python) = (rust.next().unwrap(), python.next().unwrap());
                if result.to_details_json() != python {
                    let bytes = minimal(&mut twin, &answers.text, &submission.bytes);
                    let rust =
                        score(&Answers::parse(answers.text.as_bytes()).unwrap(), &bytes).to_details_json();
                    let python = twin.verdict(&answers.text, &bytes);
                    panic!("{}", report("the twins disagree", &answers.text, &bytes, &rust, &python));
                }
                check(answers, submission, &result);
                counts.add(answers, &result);
            }
        }
    }
    println!(
        "{} submissions, {} fully right, {:.1} s",
        counts.submissions,
        counts.right,
        started.elapsed().as_secs_f64()
    );
    for ((kind, status), count) in &counts.statuses {
        println!("{kind:>8} {status:<14} {count:>7}");
    }
    for (problem, count) in &counts.problems {
        println!("{count:>7} {problem}");
    }
    assert!(counts.submissions >= 100_000);
    for status in [
        Status::Correct,
        Status::Partial,
        Status::Wrong,
        Status::Missing,
        Status::Invalid,
        Status::WrongUnit,
        Status::Contradictory,
    ] {
        assert!(counts.statuses.keys().any(|(_, found)| *found == status), "{status} never occurred");
    }
    for kind in ["number", "integer", "boolean", "choice", "text", "list", "table"] {
        assert!(counts.statuses.contains_key(&(kind.to_owned(), Status::Correct)), "{kind} never occurred");
    }
    assert!(counts.right > counts.submissions / 10, "too few submissions are right");
}

#[test]
fn the_twins_refuse_the_same_answers_files() {
    let rounds = if aec_xtest::full() { 50_000 } else { 5_000 };
    let mut random = Random::new(7);
    let mut twin = Twin::start();
    let texts: Vec<Vec<u8>> = (0..rounds)
        .map(|_| {
            let text = generate::answers(&mut random).text;
            if !random.one_in(3) {
                let mut json: serde_json::Value = serde_json::from_str(&text).unwrap();
                generate::change(&mut random, &mut json["fields"]);
                return json.to_string().into_bytes();
            }
            let mut bytes = text.into_bytes();
            let pieces: [&[u8]; 22] = [
                b"{", b"}", b"[", b"]", b"\"", b",", b":", b"1", b"0", b"-", b".", b"e5", b"null", b"true",
                b"\"x\"", b"1e999", b"kip", b"\\u12", b"\n", b"\xff", b" ", b"'",
            ];
            for _ in 0..=random.below(2) {
                let at = random.below(bytes.len());
                let end = (at + random.below(4)).min(bytes.len());
                let piece = *random.item(&pieces);
                bytes.splice(at..end, piece.iter().copied());
            }
            bytes
        })
        .collect();
    let frames: Vec<(u8, &[u8])> = texts.iter().map(|text| (b'A', text.as_slice())).collect();
    let mut kinds: BTreeMap<String, usize> = BTreeMap::new();
    let (replies, ()) = twin.exchange(&frames, || ());
    for (text, python) in texts.iter().zip(replies) {
        let rust = Answers::parse(text).map_or_else(|error| error.to_string(), |_| String::new());
        assert_eq!(rust, python, "{}", String::from_utf8_lossy(text));
        // The message without position and names.
        let kind = rust.split(": ").nth(1).unwrap_or("accepted").split('`').step_by(2).collect::<String>();
        let kind = kind.trim_end_matches(|c: char| c.is_ascii_digit()).to_owned();
        *kinds.entry(kind).or_default() += 1;
    }
    println!("{rounds} answers files, {} kinds of outcome", kinds.len());
    assert!(kinds.contains_key("accepted") && kinds.len() > 25, "{kinds:?}");
}

/// Many expected items, because the time for a list or table grows with them.
fn large_answers() -> String {
    let columns: serde_json::Map<String, serde_json::Value> = (0..20)
        .map(|at| (format!("c{at}"), serde_json::json!({"type": "number", "unit": "kN", "sig": 3})))
        .chain([("beam".to_owned(), serde_json::json!({"type": "text"}))])
        .collect();
    let row = |at: usize| {
        let mut row: serde_json::Map<String, serde_json::Value> =
            (0..20).map(|column| (format!("c{column}"), 5.into())).collect();
        row.insert("beam".to_owned(), format!("B{at}").into());
        row
    };
    serde_json::json!({"version": 1, "output": "output.json", "fields": {
        "moment": {"type": "number", "value": 12.5, "unit": "kN.m", "rel_tol": 0.01},
        "compliant": {"type": "boolean", "value": true},
        "loads": {"type": "list", "items": vec![1.5; 200], "item": {"type": "number", "unit": "kN", "rel_tol": 0.5}},
        "oks": {"type": "list", "items": vec!["pass"; 200],
            "item": {"type": "choice", "options": ["pass", "fail"]}},
        "beams": {"type": "table", "key": "beam", "columns": columns, "rows": (0..200).map(row).collect::<Vec<_>>()},
    }})
    .to_string()
}

/// The largest submissions that cost most.
fn hostile() -> Vec<Vec<u8>> {
    let size = 1 << 20;
    let list = |key: &str, item: &str| format!("{{\"{key}\": [{}]}}", vec![item; 800].join(",")).repeat(64);
    [
        "{".repeat(size),
        "{\"a\":".repeat(size / 5),
        "{a:".repeat(size / 3),
        "{'".repeat(size / 2),
        "{}".repeat(size / 2),
        format!("{{\"loads\": [{}]}}", "1,".repeat(size / 2 - 20)),
        format!("{{{}}}", "\"moment_k_N_m_s\":1,".repeat(size / 20)),
        format!("{{{}}}", "\"a/(-[,_a/(-[,_a/(-x\":1,".repeat(size / 26)),
        format!("{{\"compliant\": \"{}\"}}", "a ".repeat(size / 2 - 20)),
        format!("{{\"{}\": 1}}", "a_".repeat(size / 2 - 20)),
        format!("{{\"moment\": {}", "/ ".repeat(size / 2 - 20)),
        list("oks", &format!("\"pass ({})\"", "a/b ".repeat(29))),
        list("loads", &format!("\"1 kN ({})\"", "ab ".repeat(39))),
        list("loads", &format!("\"{}\"", "$ ".repeat(127))),
        list("loads", "\"1 m.m.m.m.m.m.m.mxxxx\""),
        list("loads", "1"),
        list("beams", "{\"beam\": \"B1\"}"),
        format!("{{\"moment\": {}", "9".repeat(5000)),
    ]
    .into_iter()
    .map(|text| text.bytes().take(size).collect())
    .collect()
}

/// Regression: a list of verdicts with long remarks took the script eleven seconds.
#[test]
fn hostile_submissions_take_bounded_time() {
    let answers = large_answers();
    let parsed = Answers::parse(answers.as_bytes()).unwrap();
    let mut twin = Twin::start();
    for bytes in hostile() {
        let before = twin.time_used();
        let python = twin.verdict(&answers, &bytes);
        let script = twin.time_used() - before;
        let started = std::time::Instant::now();
        assert_eq!(score(&parsed, &bytes).to_details_json(), python);
        let native = started.elapsed().as_secs_f64();
        let head = String::from_utf8_lossy(&bytes[..bytes.len().min(40)]).into_owned();
        println!("{script:5.2} s {native:5.2} s {head}");
        // An idle machine needs at most two seconds for the script.
        assert!(script < 6.0 && native < 60.0, "{head}");
    }
}

fn interpreters() -> Vec<PathBuf> {
    let mut found = vec![PathBuf::from("/usr/bin/python3"), interpreter()];
    let home = std::env::var_os("HOME").map(PathBuf::from).unwrap_or_default();
    let installed: Vec<PathBuf> = std::fs::read_dir(home.join(".pyenv/versions"))
        .into_iter()
        .flatten()
        .map(|entry| entry.unwrap().path())
        .collect();
    for version in ["3.9", "3.10", "3.11", "3.12", "3.13"] {
        let prefix = format!("{version}.");
        match installed.iter().find(|path| path.file_name().unwrap().to_string_lossy().starts_with(&prefix)) {
            Some(path) => found.push(path.join("bin/python3")),
            None => println!("skipped: no Python {version} here"),
        }
    }
    found.retain(|path| {
        let there = path.exists();
        if !there {
            println!("skipped: no {}", path.display());
        }
        there
    });
    found
}

/// The name of the first field.
fn sheet_name(sheet: &Answers) -> String {
    score(sheet, b"").fields.remove(0).name
}

#[test]
fn the_script_runs_as_a_file_under_every_python() {
    let mut random = Random::new(11);
    let folder = tempfile::tempdir().unwrap();
    let answers = folder.path().join("answers.json");
    let submission = folder.path().join("output.json");
    let logs = folder.path().join("logs/deep");
    for python in interpreters() {
        let run = || {
            Command::new(&python)
                .args(["-I", "-S"])
                .arg(script())
                .args([
                    "--answers".as_ref(),
                    answers.as_os_str(),
                    "--submission".as_ref(),
                    submission.as_os_str(),
                ])
                .args(["--logs".as_ref(), logs.as_os_str()])
                .output()
                .unwrap()
        };
        let written = |name: &str| std::fs::read_to_string(logs.join(name)).unwrap();
        let mut parsed = None;
        for _ in 0..4 {
            let case = generate::answers(&mut random);
            let bytes = generate::submission(&mut random, &case).bytes;
            std::fs::write(&answers, &case.text).unwrap();
            std::fs::write(&submission, &bytes).unwrap();
            let output = run();
            assert!(
                output.status.success(),
                "{}: {}",
                python.display(),
                String::from_utf8_lossy(&output.stderr)
            );
            let sheet = Answers::parse(case.text.as_bytes()).unwrap();
            let expected = score(&sheet, &bytes);
            assert_eq!(written("details.json"), expected.to_details_json(), "{}", python.display());
            assert_eq!(written("reward.json"), expected.to_reward_json());
            parsed = Some(sheet);
        }
        let sheet = parsed.unwrap();
        for (arrange, why) in [
            ((|_: &Path| {}) as fn(&Path), Unreadable::Missing),
            (|path: &Path| std::fs::create_dir(path).unwrap(), Unreadable::NotRegular),
            (|path: &Path| std::os::unix::fs::symlink("answers.json", path).unwrap(), Unreadable::Failed),
        ] {
            drop(std::fs::remove_file(&submission));
            arrange(&submission);
            assert!(run().status.success());
            assert_eq!(written("details.json"), score_unreadable(&sheet, why).to_details_json());
            drop(std::fs::remove_dir(&submission));
        }
        drop(std::fs::remove_file(&submission));
        let name = sheet_name(&sheet);
        for hostile in [
            "[".repeat(200_000),
            format!("{{\"{name}\":").repeat(20_000),
            format!("{{\"{name}\": {}}}", "[".repeat(100_000)),
            format!("{{\"{name}\": {}}}", "9".repeat(400)),
            format!("{{\"{name}\": {}}}", "9".repeat(200)),
            format!("{{\"{name}\": 1e999999}}"),
            format!("{{\"{name}\": \"1 \\\\times 10^{{999999}}\"}}"),
            format!("{{\"{name}\": NaN}}"),
            format!("{{\"{name}\": -Infinity}}"),
            format!("{{\"{name}\": \"{}\"}}", "\\\\text{".repeat(40_000)),
            format!("{{\"{name}\": \"12 {}\"}}", "(".repeat(200)),
            "\u{0}".repeat(1000),
            format!("{{\"{name}\": \"\\ud800\\udfff\"}}"),
        ] {
            std::fs::write(&submission, &hostile).unwrap();
            let output = run();
            let said = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "{}: {said}", python.display());
            assert_eq!(written("details.json"), score(&sheet, hostile.as_bytes()).to_details_json());
            assert_eq!(
                written("reward.json"),
                "{\"reward\": 0.0}\n",
                "{}",
                &hostile[..20.min(hostile.len())]
            );
        }
        std::fs::write(&submission, "x".repeat((1 << 20) + 1)).unwrap();
        assert!(run().status.success());
        assert!(written("details.json").contains("larger than 1 MiB"));

        std::fs::write(&answers, "{\"version\": 1, \"output\": \"o.json\", \"feilds\": {}}").unwrap();
        std::fs::remove_dir_all(&logs).unwrap();
        let output = run();
        assert_eq!(output.status.code(), Some(2));
        assert_eq!(String::from_utf8_lossy(&output.stderr), "verify.py: answers: unknown key `feilds`\n");
        assert!(!logs.exists(), "nothing may be written for broken answers");
        println!("{} agrees", python.display());
    }
}

#[test]
fn the_twins_know_the_same_prefixes() {
    let prefixes = [
        ("T", "1e12"),
        ("G", "1e9"),
        ("M", "1e6"),
        ("k", "1e3"),
        ("h", "100"),
        ("d", "0.1"),
        ("c", "0.01"),
        ("m", "0.001"),
        ("µ", "1e-6"),
        ("n", "1e-9"),
        ("p", "1e-12"),
    ];
    let units =
        std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("src/scorer/units.txt")).unwrap();
    let names = |flag: char| {
        let lines = units.lines().filter(move |line| line.starts_with(flag));
        lines.flat_map(|line| line.split(' ').skip(3)).collect::<Vec<_>>()
    };
    let mut twin = Twin::start();
    let mut count = 0;
    for name in names('+') {
        for (prefix, factor) in prefixes {
            // `V.A` is a name but not an atom, and `kt` is a separate name.
            if name.contains('.') || names('.').contains(&format!("{prefix}{name}").as_str()) {
                continue;
            }
            let answers = format!(
                r#"{{"version": 1, "output": "o", "fields": {{"x": {{"type": "number", "value": {factor}, "unit": "{name}", "rel_tol": 1e-12}}}}}}"#
            );
            let submission = format!("{{\"x\": \"1 {prefix}{name}\"}}");
            let rust = score(&Answers::parse(answers.as_bytes()).unwrap(), submission.as_bytes());
            assert_eq!(rust.fields[0].status, Status::Correct, "{answers} {submission}");
            assert_eq!(twin.verdict(&answers, submission.as_bytes()), rust.to_details_json());
            count += 1;
        }
    }
    println!("{count} prefixed units");
}

#[test]
fn the_script_is_the_one_built_in() {
    assert_eq!(STANDARD_VERIFY_PY, std::fs::read_to_string(script()).unwrap());
    for (name, file) in [("UNITS", "units.txt"), ("WORD_LISTS", "words.txt")] {
        let table = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/scorer").join(file);
        let table = std::fs::read_to_string(table).unwrap();
        assert!(STANDARD_VERIFY_PY.contains(&format!("{name} = \"\"\"\n{table}\"\"\"\n")), "{file} differs");
    }
    assert!(STANDARD_VERIFY_PY.contains(&format!("\nREVISION = {REVISION}  #")));
    assert_eq!(revision_of(STANDARD_VERIFY_PY.as_bytes()), Some(REVISION));
    assert_eq!(revision_of(b"print(1)"), None);
}
