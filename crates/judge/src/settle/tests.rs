//! The table of answers, which `check_core.py` also runs against the Python twin.

use std::collections::BTreeMap;
use std::path::Path;

use aec_base::content::ContentStore;
use aec_base::secret::Redactor;
use aec_sandbox::Tree;
use serde::Deserialize;

use super::freeze::{AgentFiles, Freezer, Frozen, Given, Unfrozen};
use super::order::{AnswerOrder, Handed, Source, Submitted, last_word};
use super::outcome::{AgentStatus, Boundary, Ending, Fault, Settled};
use crate::verdict::{OUT_OF_MEMORY, Outcome};

/// What an agent left, and the expected result.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    name: String,
    order: AnswerOrder,
    place: String,
    outputs: Vec<String>,
    given: BTreeMap<String, String>,
    /// The workspace at the end; absent if there was none.
    files: Option<BTreeMap<String, String>>,
    links: BTreeMap<String, String>,
    submitted: Option<Handing>,
    said: Option<String>,
    calls_tools: bool,
    source: String,
    answer: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Handing {
    Content(String),
    Path(String),
}

impl Case {
    fn handed(&self) -> Handed {
        let submitted = self.submitted.as_ref().map(|submitted| match submitted {
            Handing::Content(content) => Submitted::Content(content.clone().into_bytes()),
            Handing::Path(path) => Submitted::File(path.clone()),
        });
        let said = self.said.as_deref().and_then(|text| last_word(text, self.calls_tools));
        Handed { submitted, said: said.map(str::to_owned) }
    }

    fn freeze(
        &self,
        redactor: &Redactor,
        freeze: impl Fn(&Freezer<'_>) -> Result<Frozen, Unfrozen>,
    ) -> Result<Frozen, Unfrozen> {
        let store = tempfile::tempdir().unwrap();
        let given: Vec<Given<'_>> =
            self.given.iter().map(|(path, content)| Given { path, content: content.as_bytes() }).collect();
        let contents = ContentStore::new(store.path());
        let freezer = Freezer {
            order: self.order,
            place: &self.place,
            outputs: &self.outputs,
            given,
            contents: &contents,
            redactor,
        };
        let frozen = freeze(&freezer)?;
        let answer = frozen.submission.read(&self.place).unwrap();
        let answer = answer.map(|bytes| String::from_utf8(bytes).unwrap());
        assert_eq!(
            (Source::word(frozen.source), answer.as_deref()),
            (self.source.as_str(), self.answer.as_deref()),
            "{}",
            self.name
        );
        Ok(frozen)
    }

    /// Whether the case can be represented in memory.
    fn fits_in_memory(&self) -> bool {
        self.links.is_empty()
    }

    fn write(&self, root: &Path) {
        for (path, content) in self.files.iter().flatten() {
            let path = root.join(path);
            fs_err::create_dir_all(path.parent().unwrap()).unwrap();
            fs_err::write(path, content).unwrap();
        }
        for (path, target) in &self.links {
            std::os::unix::fs::symlink(target, root.join(path)).unwrap();
        }
    }
}

fn cases() -> Vec<Case> {
    serde_json::from_str(include_str!("cases.json")).unwrap()
}

#[test]
fn memory_and_directories_give_the_answers_of_the_table() {
    let redactor = Redactor::default();
    for case in cases() {
        let handed = case.handed();
        let in_memory = case.fits_in_memory().then(|| {
            case.freeze(&redactor, |freezer| {
                let files = case.files.as_ref().map_or_else(
                    || freezer.given_files(),
                    |files| {
                        let bytes = |text: &String| text.as_bytes().into();
                        files.iter().map(|(path, text)| (path.clone(), bytes(text))).collect()
                    },
                );
                freezer.freeze(AgentFiles::InMemory(files), &handed)
            })
            .unwrap()
        });
        if case.files.is_none() {
            continue;
        }
        let root = tempfile::tempdir().unwrap();
        case.write(root.path());
        let tree = Tree::open(root.path()).unwrap();
        let in_tree = case.freeze(&redactor, |freezer| freezer.tree(&tree, &[], &handed)).unwrap();
        if let Some(in_memory) = in_memory {
            assert_eq!(in_memory.submission.digest, in_tree.submission.digest, "{}", case.name);
        }
    }
}

#[test]
fn a_submitted_path_that_cannot_be_read_is_refused_by_name() {
    let case = cases().into_iter().find(|case| case.name == "a submitted path that is a link").unwrap();
    let root = tempfile::tempdir().unwrap();
    case.write(root.path());
    let tree = Tree::open(root.path()).unwrap();
    let frozen =
        case.freeze(&Redactor::default(), |freezer| freezer.tree(&tree, &[], &case.handed())).unwrap();
    let refused: Vec<&str> = frozen.submission.refused.iter().map(|refused| refused.path.as_str()).collect();
    assert!(refused.contains(&"a.json"), "{refused:?}");
}

#[test]
fn a_secret_is_refused_in_every_source_but_not_in_what_was_given() {
    let redactor = Redactor::default().with([("KEY", "sk-canary-7f3a9c51d2")]);
    let read = |text: &str| -> Case { serde_json::from_str(text).unwrap() };
    let rest = r#""name": "x", "order": "submitted_first", "place": "output.json", "outputs": [], "links": {},
        "calls_tools": false, "answer": null"#;
    let key = "sk-canary-7f3a9c51d2";
    for (files, submitted, said) in [
        (format!(r#"{{"notes.md": "{key}"}}"#), "null".to_owned(), "null".to_owned()),
        ("{}".to_owned(), format!(r#"{{"content": "a {key} b"}}"#), "null".to_owned()),
        ("{}".to_owned(), "null".to_owned(), format!(r#""{key}""#)),
    ] {
        let case = read(&format!(
            r#"{{{rest}, "given": {{}}, "files": {files}, "submitted": {submitted}, "said": {said}, "source": "none"}}"#
        ));
        let root = tempfile::tempdir().unwrap();
        case.write(root.path());
        let tree = Tree::open(root.path()).unwrap();
        let frozen = case.freeze(&redactor, |freezer| freezer.tree(&tree, &[], &case.handed()));
        assert!(matches!(frozen, Err(Unfrozen::Unfit(_))), "{files} {submitted} {said}: {frozen:?}");
    }
    let files = format!(r#"{{"survey.csv": "{key}", "copy.csv": "{key}"}}"#);
    let given = read(&format!(
        r#"{{{rest}, "given": {{"survey.csv": "{key}"}}, "files": {files}, "submitted": null, "said": null, "source": "none"}}"#
    ));
    let root = tempfile::tempdir().unwrap();
    given.write(root.path());
    let tree = Tree::open(root.path()).unwrap();
    given.freeze(&redactor, |freezer| freezer.tree(&tree, &[], &given.handed())).unwrap();
}

#[test]
fn how_the_work_ended_is_told_beside_what_became_of_it() {
    let own = |ending: Ending| match ending {
        Ending::Judgeable(own) => own,
        Ending::Lost(..) => panic!("it is judged"),
    };
    let status = |own: Option<Fault>, has_answer| Settled::judged(own, has_answer, None).status;
    assert_eq!(status(None, true), AgentStatus::Completed);
    assert_eq!(status(None, false), AgentStatus::Empty);
    assert_eq!(status(own(Ending::limit("timeout")), false), AgentStatus::Partial);
    assert_eq!(status(own(Ending::agent_error("it crashed")), true), AgentStatus::Failed);
    let killed = Fault::lasting(Boundary::Harness, Some(OUT_OF_MEMORY), "x");
    assert_eq!(status(Some(killed.clone()), true), AgentStatus::Completed);
    assert_eq!(status(Some(killed), false), AgentStatus::Empty);
    let unfit = Settled::unfrozen(&Unfrozen::Unfit("too large".to_owned()));
    assert_eq!((unfit.outcome, unfit.status), (Outcome::AgentFault, AgentStatus::Failed));
    let broken = Settled::unfrozen(&Unfrozen::Machine("no disk".to_owned().into()));
    assert_eq!((broken.outcome, broken.fault.unwrap().retryable), (Outcome::InfraFault, true));
    assert_eq!(Settled::stopped().status, AgentStatus::Partial);
}
