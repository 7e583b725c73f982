//! All checks of a task that do not run it. Each finding has a stable id, a place and a fix.
//!
//! `docs/tasks.md` lists the ids; a test compares it with this module.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use aec_base::document::{CONFIG_FILE_LIMIT, place, unreadable};
use aec_base::file::{Links, read_text};
use aec_base::parallel;
use aec_base::problem::Problem;
use aec_base::text;

use crate::catalogue::{Discovery, SMALL_TASKS, TaskDirectory, discover, missing_instruction};
use crate::compose::Compose;
use crate::id::TaskId;
use crate::long_documents::files;
use crate::task::{FAMILY, INSTRUCTION_FILE, INSTRUCTION_LIMIT, LoadedTask, TASK_FILE, Task};

/// Image layers that tasks may request.
pub const EXTENSIONS: [&str; 3] = ["claude-cli", "multimodal", "ocr"];

/// A task with more entries is a mistake.
const MAX_ENTRIES: usize = 10_000;

/// Scripts and verifiers are only scanned, so larger ones are not read.
const SCRIPT_LIMIT: u64 = 1024 * 1024;

#[derive(Debug, Default)]
pub struct Report {
    /// The tasks that were checked, with their findings.
    pub tasks: Vec<TaskReport>,
    /// Findings that do not belong to a single task.
    pub problems: Vec<Problem>,
}

/// The findings of one task.
#[derive(Debug)]
pub struct TaskReport {
    pub id: TaskId,
    pub path: PathBuf,
    pub problems: Vec<Problem>,
}

/// Checks every task below a root.
pub fn check_all(root: &Path) -> Report {
    let Discovery { directories, mut problems } = discover(root);
    problems.extend(ambiguous_ids(&directories));
    Report { tasks: check(&directories), problems }
}

pub fn check(directories: &[TaskDirectory]) -> Vec<TaskReport> {
    parallel::map(directories, SMALL_TASKS, |directory| TaskReport {
        id: directory.id.clone(),
        path: directory.path.clone(),
        problems: check_one(directory),
    })
}

fn check_one(directory: &TaskDirectory) -> Vec<Problem> {
    let mut problems = Vec::new();
    let tree = Tree::read(&directory.path, &mut problems);
    match Task::load(directory.id.clone(), &directory.path) {
        Ok(loaded) => check_settings(&loaded, &tree, &mut problems),
        Err(found) => problems.extend(found),
    }
    if directory.has_instruction {
        check_instruction(&directory.path, &mut problems);
    } else {
        problems.push(missing_instruction(directory));
    }
    check_verifier(&directory.path, &tree, &mut problems);
    check_extras(&directory.path, &tree, &mut problems);
    check_long_documents(&directory.path, &tree, &mut problems);
    problems.extend(Compose::read(&directory.path.join("environment")).err().unwrap_or_default());
    if directory.id.segments().count() < 2 {
        problems.push(
            finding(Problem::warning, 64, "a task id needs a discipline and a name")
                .fix("move the task to DISCIPLINE/NAME below the tasks root")
                .in_file(&directory.path),
        );
    }
    for problem in &mut problems {
        problem.about.get_or_insert_with(|| directory.id.as_str().to_owned());
    }
    problems
}

fn finding(severity: fn(String) -> Problem, number: u32, what: impl Into<String>) -> Problem {
    severity(what.into()).id(FAMILY.number(number))
}

/// The regular files of a task directory, by relative path.
struct Tree {
    files: BTreeSet<String>,
}

impl Tree {
    fn read(root: &Path, problems: &mut Vec<Problem>) -> Self {
        let mut tree = Self { files: BTreeSet::new() };
        let mut entries = 0;
        tree.walk(root, "", &mut entries, problems);
        tree
    }

    fn has(&self, path: &str) -> bool {
        self.files.contains(path)
    }

    fn has_below(&self, prefix: &str) -> bool {
        self.files.range(prefix.to_owned()..).next().is_some_and(|path| path.starts_with(prefix))
    }

    fn walk(&mut self, directory: &Path, prefix: &str, entries: &mut usize, problems: &mut Vec<Problem>) {
        let listing = match fs_err::read_dir(directory) {
            Ok(listing) => listing,
            Err(error) => {
                problems.push(
                    finding(Problem::error, 1, format!("cannot look into this directory: {}", error.kind()))
                        .fix("check its permissions")
                        .in_file(directory),
                );
                return;
            }
        };
        for entry in listing.filter_map(Result::ok) {
            *entries += 1;
            if *entries > MAX_ENTRIES {
                if *entries == MAX_ENTRIES + 1 {
                    problems.push(
                        finding(Problem::error, 65, format!("the task has more than {MAX_ENTRIES} files"))
                            .why("a task is copied into a room for every trial")
                            .fix("pack the material into one archive, or generate it in the image")
                            .in_file(directory),
                    );
                }
                return;
            }
            let Ok(kind) = entry.file_type() else { continue };
            let path = format!("{prefix}{}", entry.file_name().to_string_lossy());
            if kind.is_dir() {
                self.walk(&entry.path(), &format!("{path}/"), entries, problems);
            } else if kind.is_file() {
                if !prefix.is_empty() && entry.file_name() == TASK_FILE {
                    problems.push(
                        finding(Problem::error, 61, "a task is inside another task")
                            .why("the inner one is not found, and its files would be shown to the outer one's agent")
                            .fix("move it beside the outer task")
                            .in_file(entry.path()),
                    );
                }
                self.files.insert(path);
            } else if kind.is_symlink() {
                problems.push(
                    finding(Problem::error, 60, "a symbolic link inside a task")
                        .why("its content can change without the task changing, and it can point anywhere")
                        .fix("put a copy of the file here")
                        .in_file(entry.path()),
                );
            } else {
                problems.push(
                    finding(Problem::error, 62, "neither a file nor a directory")
                        .fix("remove it")
                        .in_file(entry.path()),
                );
            }
        }
    }
}

fn check_settings(loaded: &LoadedTask, tree: &Tree, problems: &mut Vec<Problem>) {
    let LoadedTask { task, file, document } = loaded;
    if task.difficulty.is_none() {
        problems.push(
            finding(Problem::warning, 30, "the difficulty is not set")
                .why("no difficulty filter selects this task")
                .fix("set metadata.difficulty to easy, medium or hard")
                .at(document.place("metadata")),
        );
    }
    if task.visibility.is_none() {
        problems.push(
            finding(Problem::note, 31, "the visibility is not set")
                .why("unknown is never treated as public, so exports leave the task out")
                .fix("set metadata.visibility to public or holdout")
                .at(document.place("metadata")),
        );
    }
    if task.tags.is_empty() {
        problems.push(
            finding(Problem::note, 32, "there are no tags")
                .fix("add words to find the task by in metadata.tags")
                .at(document.place("metadata")),
        );
    }
    if let Some(stated) = &file.metadata.domain
        && *stated != task.domain
    {
        problems.push(
            finding(
                Problem::warning,
                35,
                format!("metadata.domain says `{stated}`, the path says `{}`", task.domain),
            )
            .why("the path wins when it begins with a discipline")
            .fix("remove the key, or move the task")
            .at(document.place("metadata.domain")),
        );
    }
    for (index, extension) in task.environment.extensions.iter().enumerate() {
        if !EXTENSIONS.contains(&extension.as_str()) {
            let fix = match text::nearest(extension, &EXTENSIONS) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("use {}", text::one_of(&EXTENSIONS)),
            };
            problems.push(
                finding(Problem::error, 44, format!("unknown extension `{extension}`"))
                    .fix(fix)
                    .at(document.place_in_list("environment.extensions", index)),
            );
        }
    }
    for (key, present) in
        [("remediation", file.remediation.is_some()), ("canonical_refs", file.canonical_refs.is_some())]
    {
        if present {
            problems.push(
                finding(Problem::warning, 72, format!("`[{key}]` has no effect"))
                    .why("it configures a command of another tool")
                    .fix("remove the section")
                    .at(document.place(key)),
            );
        }
    }
    check_tools(loaded, tree, problems);
}

fn check_tools(loaded: &LoadedTask, tree: &Tree, problems: &mut Vec<Problem>) {
    let LoadedTask { task, file, document } = loaded;
    let (key, scripts) = if file.environment.tools.is_empty() {
        ("tools.scripts", false)
    } else {
        ("environment.tools", !file.tools.scripts.is_empty())
    };
    if scripts {
        problems.push(
            finding(Problem::warning, 43, "`[tools] scripts` is not used")
                .why("[[environment.tools]] says the same and wins")
                .fix("remove [tools]")
                .at(document.place("tools.scripts")),
        );
    }
    let mut names = BTreeSet::new();
    for (index, tool) in task.environment.tools.iter().enumerate() {
        let here = || document.place_in_list(key, index);
        let escapes =
            Path::new(&tool.source).components().any(|part| !matches!(part, std::path::Component::Normal(_)));
        if escapes || tool.source.contains('\\') || tool.source.chars().any(char::is_control) {
            problems.push(
                finding(
                    Problem::error,
                    41,
                    format!("the tool source `{}` is not below the task", tool.source),
                )
                .fix("name a file of the task, such as tools/NAME.py")
                .at(here()),
            );
        } else if !tree.has(&tool.source) {
            problems.push(
                finding(Problem::error, 40, format!("the tool file `{}` does not exist", tool.source))
                    .fix("correct the name, or add the file")
                    .at(here()),
            );
        }
        if !names.insert(&tool.name) {
            problems.push(
                finding(Problem::error, 42, format!("two tools are called `{}`", tool.name))
                    .fix("give each tool a different name")
                    .at(here()),
            );
        }
    }
}

fn check_instruction(directory: &Path, problems: &mut Vec<Problem>) {
    let path = directory.join(INSTRUCTION_FILE);
    let instruction = match read_text(&path, INSTRUCTION_LIMIT, Links::Refuse) {
        Ok(instruction) => instruction,
        Err(error) => {
            problems.push(unreadable(&path, &error, FAMILY));
            return;
        }
    };
    if instruction.trim().is_empty() {
        problems.push(
            finding(Problem::error, 11, "the instruction is empty")
                .fix("say what is given, what is asked, and where the answer goes")
                .in_file(path),
        );
        return;
    }
    if let Some((offset, placeholder)) = unrendered(&instruction) {
        problems.push(
            finding(Problem::error, 12, format!("`{placeholder}` was never filled in"))
                .why("the agent would see the placeholder instead of a value")
                .fix("write the value, or render the template again")
                .at(place(&path, &instruction, offset)),
        );
    }
    if !instruction.contains("/workspace/") {
        problems.push(
            finding(Problem::warning, 13, "the instruction does not say where the answer goes")
                .why("/workspace/output.jsonl is taken, which an agent cannot guess")
                .fix("name the file, such as /workspace/output.json")
                .in_file(&path),
        );
    }
    if let Some(offset) = instruction.find(|c: char| c.is_control() && !matches!(c, '\n' | '\r' | '\t')) {
        problems.push(
            finding(Problem::warning, 14, "a control character in the instruction")
                .fix("remove it")
                .at(place(&path, &instruction, offset)),
        );
    }
}

/// The first `{{ … }}` or `{% … %}` that looks like a template's, with its offset. Double braces after a letter or
/// brace are typesetting, as in `\frac{{a}}{b}`.
fn unrendered(instruction: &str) -> Option<(usize, &str)> {
    [("{{", "}}"), ("{%", "%}")]
        .into_iter()
        .flat_map(|(open, close)| {
            instruction.match_indices(open).filter_map(move |(start, _)| {
                let before = instruction[..start].chars().next_back();
                if before.is_some_and(|c| c.is_alphanumeric() || matches!(c, '}' | '{' | '\\' | '^' | '_')) {
                    return None;
                }
                let length = instruction[start..].find(close)? + close.len();
                let found = &instruction[start..start + length];
                (length > 4 && length < 200 && !found.contains('\n')).then_some((start, found))
            })
        })
        .min_by_key(|(start, _)| *start)
}

fn check_verifier(directory: &Path, tree: &Tree, problems: &mut Vec<Problem>) {
    match (tree.has("tests/test.sh"), tree.has("tests/verify.py")) {
        (false, false) => problems.push(
            finding(Problem::error, 20, "there is no verifier")
                .why("without one no answer can be scored")
                .fix("write tests/test.sh, which reads /workspace and writes /logs/verifier/reward.json")
                .in_file(directory.join("tests/test.sh")),
        ),
        (false, true) => problems.push(
            finding(Problem::warning, 21, "tests/verify.py is there, its entry tests/test.sh is not")
                .why("verify.py is then run by itself, which other tools do not do")
                .fix("add tests/test.sh that runs it")
                .in_file(directory.join("tests/test.sh")),
        ),
        (true, _) => {
            let path = directory.join("tests/test.sh");
            match read_text(&path, SCRIPT_LIMIT, Links::Refuse) {
                Err(error) => problems.push(unreadable(&path, &error, FAMILY)),
                Ok(script) => {
                    if !script.starts_with("#!") {
                        problems.push(
                            finding(Problem::warning, 22, "test.sh does not begin with #!")
                                .fix("begin it with #!/usr/bin/env bash")
                                .at(place(&path, &script, 0)),
                        );
                    }
                    if let Some(offset) = script.find("\r\n") {
                        problems.push(
                            finding(Problem::error, 23, "test.sh has Windows line ends")
                                .why("the shell takes the carriage return as part of each word")
                                .fix("save it with Unix line ends")
                                .at(place(&path, &script, offset)),
                        );
                    }
                }
            }
        }
    }
}

fn check_extras(directory: &Path, tree: &Tree, problems: &mut Vec<Problem>) {
    for (number, present, what, fix, path) in [
        (
            50,
            tree.has("environment/Dockerfile"),
            "there is no environment/Dockerfile",
            "add one if the task is to run in containers",
            "environment/Dockerfile",
        ),
        (
            70,
            tree.has_below("solution/"),
            "there is no reference solution",
            "add solution/solve.sh, so that the task can be shown to be solvable",
            "solution",
        ),
        (
            71,
            tree.has_below("tests/fixtures/golden_pass") && tree.has_below("tests/fixtures/golden_fail"),
            "there are no golden answers",
            "add tests/fixtures/golden_pass.* and golden_fail.*, so that the verifier can be tested",
            "tests/fixtures",
        ),
    ] {
        if !present {
            problems.push(finding(Problem::note, number, what).fix(fix).in_file(directory.join(path)));
        }
    }
}

/// Checks the files for the harnesses `rlm` and `lambda_rlm`.
fn check_long_documents(directory: &Path, tree: &Tree, problems: &mut Vec<Problem>) {
    struct Files<'a>(&'a Path, &'a Tree);
    impl files::Texts for Files<'_> {
        fn text(&self, path: &str) -> Result<Option<String>, Problem> {
            if !self.1.has(path) {
                return Ok(None);
            }
            // Relative, because this check names all files that way.
            read_text(&self.0.join(path), CONFIG_FILE_LIMIT, Links::Refuse)
                .map(Some)
                .map_err(|error| unreadable(Path::new(path), &error, FAMILY))
        }
    }
    let exists = |path: &str| tree.has(path) || tree.has_below(&format!("{path}/"));
    let found = files::check(&Files(directory, tree), &exists);
    problems.extend(found.into_iter().map(|problem| {
        let file = problem.file.as_ref().map(|file| directory.join(file));
        Problem { file, ..problem }
    }));
}

/// Ids that are equal in their dotted form are ambiguous there.
fn ambiguous_ids(directories: &[TaskDirectory]) -> Vec<Problem> {
    let mut seen: std::collections::HashMap<String, &TaskDirectory> = std::collections::HashMap::new();
    let mut problems = Vec::new();
    for directory in directories {
        if let Some(first) = seen.insert(directory.id.dotted(), directory) {
            problems.push(
                finding(
                    Problem::error,
                    66,
                    format!("`{}` and `{}` have the same dotted id", first.id, directory.id),
                )
                .about(directory.id.as_str())
                .why("manifests may name tasks by their dotted ids")
                .fix("rename one of the directories")
                .in_file(&directory.path),
            );
        }
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placeholders_are_told_from_typesetting() {
        assert_eq!(unrendered("Span of {{ span_m }} m"), Some((8, "{{ span_m }}")));
        assert_eq!(unrendered("{% if x %}a"), Some((0, "{% if x %}")));
        assert_eq!(unrendered(r"$\frac{{a}}{{b}}$ and x_{{i}}"), None);
        assert_eq!(unrendered("json like {\"a\": {\"b\": 1}}"), None);
        assert_eq!(unrendered("{{}}"), None);
        assert_eq!(unrendered("{{ open"), None);
    }
}
