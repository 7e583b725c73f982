//! The tools that a task declares: programs in its workspace that a model calls by name with a line of arguments.

use aec_task::task::Tool;

/// Longest name that every provider accepts.
const LONGEST_NAME: usize = 64;

/// Part of the description of every task's tool.
pub(super) const ARGUMENTS: &str = "`command` is the line of arguments for the program, as in a shell.";

/// A program that a task offers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Declared {
    /// The name under which it is offered.
    pub name: String,
    pub place: String,
    pub description: String,
    /// Whether its output names pictures.
    pub returns_image: bool,
}

impl Declared {
    /// The task's tools, under names that every provider accepts and that are not taken.
    pub(crate) fn all(tools: &[Tool], taken: &[&str]) -> Vec<Self> {
        let mut declared: Vec<Self> = Vec::new();
        for tool in tools {
            let mut name = valid(&tool.name);
            if taken.contains(&name.as_str()) {
                name = shortened(&format!("task_{name}"), LONGEST_NAME);
            }
            let first = name.clone();
            let mut number = 2;
            while declared.iter().any(|other| other.name == name) {
                let suffix = format!("_{number}");
                name = shortened(&first, LONGEST_NAME - suffix.len()) + &suffix;
                number += 1;
            }
            declared.push(Self {
                name,
                place: tool.place().to_owned(),
                description: tool.description.clone(),
                returns_image: tool.returns_image,
            });
        }
        declared
    }

    /// Its description for the model.
    pub(crate) fn offered(&self) -> String {
        format!("{}\n{ARGUMENTS}", self.description.trim_end())
    }

    /// The command line for the shell. The arguments are not escaped: the model has a shell anyway.
    pub(crate) fn line(&self, root: &str, arguments: &str) -> String {
        let program = if self.place.ends_with(".sh") { "bash" } else { "python3" };
        format!("{program} {} {arguments}", quoted(&format!("{root}/{}", self.place)))
    }
}

fn valid(name: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '_' | '-') { c } else { '_' };
    let name: String = name.chars().map(plain).take(LONGEST_NAME).collect();
    if name.is_empty() { "tool".to_owned() } else { name }
}

/// Names are ASCII here.
fn shortened(name: &str, length: usize) -> String {
    name.chars().take(length).collect()
}

fn quoted(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '/' | '.' | '_' | '-');
    if text.chars().all(plain) { text.to_owned() } else { format!("'{}'", text.replace('\'', r"'\''")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(given: &[&str]) -> Vec<String> {
        let tools: Vec<Tool> = given
            .iter()
            .map(|name| Tool {
                name: (*name).to_owned(),
                source: format!("tools/{name}.py"),
                description: String::new(),
                returns_image: false,
            })
            .collect();
        Declared::all(&tools, &["bash", "read_file"]).into_iter().map(|tool| tool.name).collect()
    }

    #[test]
    fn names_are_valid_for_every_provider_and_unique() {
        assert_eq!(names(&["cable-size", "bash", "a b/ü", ""]), ["cable-size", "task_bash", "a_b__", "tool"]);
        let long = "x".repeat(100);
        let given = names(&[&long, &long, "bash", "task_bash"]);
        assert_eq!(given[0].len(), 64);
        assert_eq!((given[1].len(), &given[1][62..]), (64, "_2"));
        assert_eq!(&given[2..], ["task_bash", "task_bash_2"]);
    }

    #[test]
    fn a_path_stays_one_word() {
        let tool = |place: &str| Declared {
            name: "t".into(),
            place: place.into(),
            description: String::new(),
            returns_image: false,
        };
        assert_eq!(tool("tools/a.py").line("/workspace", "--x 1"), "python3 /workspace/tools/a.py --x 1");
        assert_eq!(tool("it's.sh").line("/w", "1"), r"bash '/w/it'\''s.sh' 1");
    }
}
