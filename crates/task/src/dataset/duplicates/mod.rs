//! Finds tasks that ask nearly the same: the same words with nearly the same numbers, or nearly the same words.
//!
//! Both relations are found exactly, without comparing every pair of tasks: the first by grouping equal texts and
//! sweeping over their numbers, the second by the prefixes of sets (two sets that share nine tenths share one of
//! their rarest elements).

mod alike;
mod numbers;
mod words;

use std::collections::BTreeMap;

use aec_base::parallel;
use aec_base::problem::Problem;
use serde::Serialize;

use self::alike::Groups;
use crate::task::Task;

/// What an agent gets, as text.
#[derive(Clone, Debug)]
pub struct Prompt {
    pub task_id: String,
    /// The instruction and the text of the workspace files.
    pub text: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Likeness {
    /// The same text with the same numbers.
    Identical,
    /// The same text except for numbers, which differ by at most one per cent.
    Numbers,
    /// Nine tenths of all sequences of five words are the same.
    Words,
}

impl Likeness {
    /// A description of the likeness.
    pub fn text(self) -> &'static str {
        match self {
            Self::Identical => "same text",
            Self::Numbers => "same text, numbers within 1 %",
            Self::Words => "nearly the same words",
        }
    }
}

/// Tasks of which each is similar to another one of the group.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Group {
    pub alike: Vec<Likeness>,
    /// Their ids, sorted.
    pub tasks: Vec<String>,
}

/// Further text is not compared.
const TEXT_LIMIT: usize = 1024 * 1024;

pub fn prompts(tasks: &[Task]) -> Result<Vec<Prompt>, Vec<Problem>> {
    let read = parallel::map(tasks, 16, |task| {
        prompt(task).map_err(|error| {
            super::finding(1, format!("cannot read what `{}` gives to its agent: {error}", task.id))
                .about(task.id.as_str())
                .fix("run `aec-bench task validate` on it")
                .in_file(&task.path)
        })
    });
    let (mut prompts, mut problems) = (Vec::with_capacity(read.len()), Vec::new());
    for result in read {
        match result {
            Ok(prompt) => prompts.push(prompt),
            Err(problem) => problems.push(problem),
        }
    }
    if problems.is_empty() { Ok(prompts) } else { Err(problems) }
}

fn prompt(task: &Task) -> Result<Prompt, String> {
    use std::io::Read as _;
    let mut text = task.instruction().map_err(|error| error.to_string())?;
    for file in task.workspace_files().map_err(|error| error.to_string())? {
        // All tasks of a family share the same tools, so tools do not distinguish tasks.
        if file.place.starts_with("tools/") || text.len() >= TEXT_LIMIT {
            continue;
        }
        let mut content = Vec::new();
        let limit = (TEXT_LIMIT - text.len()) as u64;
        let opened = fs_err::File::open(&file.source).map_err(|error| error.to_string())?;
        opened.take(limit).read_to_end(&mut content).map_err(|error| error.to_string())?;
        match std::str::from_utf8(&content) {
            Ok(content) => text.extend(["\n", content]),
            // Binary files, such as pictures, are only equal or different.
            Err(_) => text.extend(["\n", &aec_base::digest::Digest::of(&content).to_string()]),
        }
    }
    Ok(Prompt { task_id: task.id.to_string(), text })
}

/// The groups of near duplicates, largest first.
pub fn groups(prompts: &[Prompt]) -> Vec<Group> {
    let mut groups = Groups::new(prompts.len());
    let masked = parallel::map(prompts, 16, |prompt| numbers::mask(&prompt.text));
    numbers::join(&masked, &mut groups);
    words::join(prompts, &mut groups);
    let mut members: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for index in 0..prompts.len() {
        members.entry(groups.root(index)).or_default().push(index);
    }
    let mut found: Vec<Group> = members
        .into_iter()
        .filter(|(_, members)| members.len() > 1)
        .map(|(root, members)| {
            let mut tasks: Vec<String> =
                members.iter().map(|index| prompts[*index].task_id.clone()).collect();
            tasks.sort();
            Group { alike: groups.alike(root), tasks }
        })
        .collect();
    found.sort_by(|a, b| b.tasks.len().cmp(&a.tasks.len()).then_with(|| a.tasks.cmp(&b.tasks)));
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(texts: &[&str]) -> Vec<(Vec<Likeness>, String)> {
        let prompts: Vec<Prompt> = texts
            .iter()
            .enumerate()
            .map(|(index, text)| Prompt { task_id: format!("t{index}"), text: (*text).to_owned() })
            .collect();
        groups(&prompts).into_iter().map(|group| (group.alike, group.tasks.join(" "))).collect()
    }

    #[test]
    fn numbers_within_a_hundredth_are_the_same_task() {
        let text = |length: &str, current: &str| format!("A cable of {length} m carries {current} A.");
        let texts = [
            text("100", "32"),
            text("100.9", "32"),
            text("103", "32"),
            text("100", "33"),
            text("1e2", "32.0"),
        ];
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        assert_eq!(found(&texts), [(vec![Likeness::Identical, Likeness::Numbers], "t0 t1 t4".to_owned())]);
        assert_eq!(found(&["same", "same", "other"]), [(vec![Likeness::Identical], "t0 t1".to_owned())]);
        assert_eq!(found(&["", ""]), [(vec![Likeness::Identical], "t0 t1".to_owned())]);
        assert!(found(&["0 m", "0.001 m"]).is_empty(), "nothing is within a hundredth of zero");
        assert!(found(&["one 5", "two 5"]).is_empty());
        assert!(found(&[]).is_empty());
    }

    #[test]
    fn nine_tenths_of_the_words_are_the_same_task() {
        let words: Vec<String> = (0..200)
            .map(|index| {
                format!(
                    "word{}",
                    char::from(b'a' + index % 26).to_string().repeat(1 + usize::from(index / 26))
                )
            })
            .collect();
        let base = words.join(" ");
        let mut near = words.clone();
        near[100] = "changed".into();
        let mut far = words;
        for index in (0..200).step_by(10) {
            far[index] = format!("changed-{}", "x".repeat(index));
        }
        assert_eq!(
            found(&[&base, &near.join(" "), &far.join(" ")]),
            [(vec![Likeness::Words], "t0 t1".to_owned())]
        );
    }
}
