//! Who is at fault when a verifier fails: the verifier is asked about submissions that the task itself vouches for. If
//! it can judge one of those in the same conditions, it is sound, and the submission on which it failed is at fault.

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};

use aec_base::content::ContentStore;
use aec_base::digest::{Digest, Hasher};
use aec_task::task::{Task, primary_output};

use crate::golden::{Expectation, golden_answers};
use crate::submission::{FreezeError, Submission};

/// Golden answers that are asked about. A task has one or two.
const MOST_GOLDEN: usize = 3;
/// How often a process asks about references on which a verifier failed: an accident must not blame a sound verifier,
/// and a broken one must not double the time of every trial.
const MOST_FAILURES: u32 = 3;
/// Verifiers whose state is remembered; a process rarely sees more.
const MOST_REMEMBERED: usize = 50_000;

/// Submissions that a task's verifier must be able to judge.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct References {
    /// Whether they are golden answers. If not, they are what agents leave that do next to nothing: a verifier that
    /// gives one of them a reward is sound too, but one that fails on them may fail only on such answers.
    pub are_golden: bool,
    submissions: Vec<ReferenceFiles>,
}

/// The files of a reference by path, each with whether it is executable.
type ReferenceFiles = BTreeMap<String, (Arc<[u8]>, bool)>;

impl References {
    /// The passing golden answers of a task, or what agents leave that do next to nothing.
    pub fn read(task: &Task) -> Self {
        let golden =
            golden_answers(task).into_iter().filter(|golden| golden.expectation == Expectation::Full);
        let golden: Vec<ReferenceFiles> = golden
            .take(MOST_GOLDEN)
            .filter_map(|golden| {
                let store = tempfile::Builder::new().prefix("aec-bench-").tempdir().ok()?;
                let submission = golden.submission(task, &ContentStore::new(store.path())).ok()?;
                contents(&submission).ok()
            })
            .collect();
        if !golden.is_empty() {
            return Self { are_golden: true, submissions: golden };
        }
        let instruction = task.instruction().unwrap_or_default();
        let place = primary_output(&instruction);
        let staged = task.workspace_files().unwrap_or_default();
        let given = staged.into_iter().filter_map(|file| {
            let content = fs_err::read(&file.source).ok()?;
            Some((file.place, Arc::from(content)))
        });
        Self::minimal(given, place.strip_prefix("/workspace/").unwrap_or(&place))
    }

    /// What agents leave that do next to nothing, for a task without golden answers: the files that they got, and the
    /// same with an empty answer or an empty object at the answer's place.
    pub fn minimal(given: impl IntoIterator<Item = (String, Arc<[u8]>)>, place: &str) -> Self {
        let given: ReferenceFiles =
            given.into_iter().map(|(path, content)| (path, (content, false))).collect();
        let answers: [Option<&[u8]>; 3] = [None, Some(b"{}\n"), Some(b"")];
        let submissions = answers.map(|answer| {
            let mut files = given.clone();
            files.extend(answer.map(|answer| (place.to_owned(), (Arc::from(answer), false))));
            files
        });
        Self { are_golden: false, submissions: submissions.into() }
    }

    pub(crate) fn digest(&self) -> Digest {
        let mut hasher = Hasher::default();
        hasher.part(&[u8::from(self.are_golden)]);
        for files in &self.submissions {
            for (path, (content, executable)) in files {
                hasher.part(path.as_bytes());
                hasher.part(content);
                hasher.part(&[u8::from(*executable)]);
            }
            hasher.part(b"end");
        }
        hasher.finish()
    }

    /// Their size in memory.
    pub fn bytes(&self) -> usize {
        self.submissions.iter().flat_map(BTreeMap::values).map(|(content, _)| content.len()).sum()
    }
}

fn contents(submission: &Submission) -> io::Result<ReferenceFiles> {
    let mut files = ReferenceFiles::new();
    for (path, file) in &submission.files {
        let content = submission.read(path)?.unwrap_or_default();
        files.insert(path.clone(), (Arc::from(content), file.executable));
    }
    Ok(files)
}

/// What one reference showed.
pub(crate) enum Trial {
    Works,
    Fails,
    /// This machine failed, for this reason.
    Machine(String),
}

/// What the references show about a verifier.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Shown {
    /// It gives one of them a reward.
    Works,
    /// It fails on all of them.
    Fails,
    /// This machine failed, for this reason.
    Machine(String),
}

/// What this process knows about a verifier in certain conditions.
#[derive(Debug, Default)]
struct Known {
    works: bool,
    failures: u32,
}

/// The state of each verifier, by its conditions.
type AllKnown = HashMap<Digest, Arc<Mutex<Known>>>;

/// While one thread asks about a verifier, others that need the same wait for it.
static KNOWN: LazyLock<Mutex<AllKnown>> = LazyLock::new(Mutex::default);

/// What the references show in these conditions. Once a verifier has shown that it works, it is not asked again.
pub(crate) fn ask(
    conditions: &Digest,
    references: &References,
    mut judge: impl FnMut(&Submission) -> Trial,
) -> Shown {
    let known = {
        let mut all = lock(&KNOWN);
        if all.len() >= MOST_REMEMBERED {
            all.clear();
        }
        Arc::clone(all.entry(*conditions).or_default())
    };
    let mut known = lock(&known);
    if known.works {
        return Shown::Works;
    }
    if known.failures >= MOST_FAILURES {
        return Shown::Fails;
    }
    let shown = match ask_each(references, &mut judge) {
        Ok(shown) => shown,
        Err(error) => Shown::Machine(error.to_string()),
    };
    match shown {
        Shown::Works => known.works = true,
        Shown::Fails => known.failures += 1,
        Shown::Machine(_) => {}
    }
    shown
}

fn ask_each(
    references: &References,
    judge: &mut impl FnMut(&Submission) -> Trial,
) -> Result<Shown, FreezeError> {
    let store = tempfile::Builder::new().prefix("aec-bench-").tempdir()?;
    let store = ContentStore::new(store.path());
    let mut shown = Shown::Fails;
    for files in &references.submissions {
        let files = files.iter().map(|(path, (content, executable))| (path.clone(), content, *executable));
        match judge(&Submission::from_files(files, &store)?) {
            Trial::Works => return Ok(Shown::Works),
            Trial::Fails => {}
            Trial::Machine(reason) => shown = Shown::Machine(reason),
        }
    }
    Ok(shown)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    fn references() -> References {
        References::minimal([("data.csv".to_owned(), Arc::from(&b"1"[..]))], "output.json")
    }

    /// Asks this often, and counts how often references were judged.
    fn asked(name: &str, times: u32, answer: impl Fn(u32) -> Trial) -> (Vec<Shown>, u32) {
        let (references, count) = (references(), Cell::new(0));
        let conditions = Digest::of(name.as_bytes());
        let shown = (0..times).map(|_| {
            ask(&conditions, &references, |_| {
                count.set(count.get() + 1);
                answer(count.get())
            })
        });
        let shown = shown.collect();
        (shown, count.get())
    }

    #[test]
    fn a_sound_verifier_is_asked_once_and_a_broken_one_a_few_times() {
        let (shown, count) = asked("sound", 1000, |_| Trial::Works);
        assert!(shown.iter().all(|shown| *shown == Shown::Works));
        assert_eq!(count, 1);
        let (shown, count) = asked("broken", 1000, |_| Trial::Fails);
        assert!(shown.iter().all(|shown| *shown == Shown::Fails));
        assert_eq!(count, 3 * MOST_FAILURES, "three references each time");
        let (shown, _) = asked("accident", 3, |count| if count > 3 { Trial::Works } else { Trial::Fails });
        assert_eq!(shown, [Shown::Fails, Shown::Works, Shown::Works], "one accident does not stick");
        let (shown, _) = asked("machine", 5, |_| Trial::Machine("no disk".to_owned()));
        assert!(shown.iter().all(|shown| *shown == Shown::Machine("no disk".to_owned())));
    }
}
