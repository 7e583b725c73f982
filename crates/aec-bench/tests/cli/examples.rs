//! Every command has examples in its help, and each of them works in a prepared project.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};

use aec_xtest::TestEnv;
use serde::Deserialize;

use crate::cli::world;

/// `examples.json`: what the examples need.
#[derive(Deserialize)]
pub(super) struct Preparation {
    prepare: Vec<String>,
    #[serde(default)]
    files: BTreeMap<String, String>,
    pub(super) commands: BTreeMap<String, Special>,
}

/// What one command needs in addition.
#[derive(Default, Deserialize)]
pub(super) struct Special {
    #[serde(default)]
    before: Vec<String>,
    /// Why its examples cannot run in a test.
    pub(super) why_not: Option<String>,
}

impl Preparation {
    pub(super) fn read() -> Self {
        serde_json::from_str(include_str!("examples.json")).unwrap()
    }

    /// A project in which examples can run.
    pub(super) fn project(&self) -> TestEnv {
        let prepared = world();
        let mut prepare = self.prepare.iter();
        try_out(&prepared, &words(prepare.next().unwrap()).unwrap());
        for (path, content) in &self.files {
            prepared.write(path, content);
        }
        prepare.for_each(|line| try_out(&prepared, &words(line).unwrap()));
        prepared
    }

    /// A copy of the project for the examples of one command.
    pub(super) fn copy(&self, prepared: &TestEnv, command: &str) -> TestEnv {
        let mut env = world();
        env.set("OPENAI_API_KEY", "sk-example");
        aec_xtest::files::copy(&prepared.dir(), &env.dir());
        let before = self.commands.get(command).into_iter().flat_map(|special| &special.before);
        before.for_each(|line| try_out(&env, &words(line).unwrap()));
        env
    }
}

fn try_out(env: &TestEnv, line: &Vec<String>) {
    let run = env.run(line);
    assert!(matches!(run.code, Some(0 | 1)), "{}: {run:?}", line.join(" "));
}

/// The commands of the reference that have no subcommands.
pub(super) fn leaves() -> Vec<String> {
    let reference = include_str!("../../../../docs/reference/cli.md");
    let name = |line: &str| Some(line.strip_prefix("## `aec-bench ")?.strip_suffix('`')?.to_owned());
    let all: Vec<String> = reference.lines().filter_map(name).collect();
    let is_leaf = |name: &String| !all.iter().any(|other| other.starts_with(&format!("{name} ")));
    all.iter().filter(|name| is_leaf(name)).cloned().collect()
}

/// The examples of a help page, without the name of the program.
pub(super) fn examples(env: &TestEnv, command: &str) -> Vec<Vec<String>> {
    let help = env.run(command.split(' ').chain(["--help"])).stdout;
    let listed = help.split_once("Examples:\n").map(|(_, listed)| listed).unwrap_or_default();
    listed.lines().filter_map(|line| words(line.trim())).collect()
}

/// The words of a command line, with blanks inside single or double quotes.
pub(crate) fn words(line: &str) -> Option<Vec<String>> {
    let line = line.strip_prefix("aec-bench ")?;
    let (mut words, mut quote) = (vec![String::new()], None);
    for letter in line.chars() {
        match (letter, quote) {
            ('\'' | '"', None) => quote = Some(letter),
            (_, Some(open)) if letter == open => quote = None,
            (' ', None) => words.push(String::new()),
            _ => words.last_mut().unwrap().push(letter),
        }
    }
    Some(words)
}

#[test]
fn every_command_has_examples_that_begin_with_its_name() {
    let env = world();
    for command in leaves() {
        let examples = examples(&env, &command);
        assert!(!examples.is_empty(), "`aec-bench {command} --help` has no example");
        for example in examples {
            assert!(example.join(" ").starts_with(&command), "{command}: {example:?}");
        }
    }
}

#[test]
fn examples_of_the_help_work() {
    let given = Preparation::read();
    let leaves = leaves();
    for name in given.commands.keys() {
        assert!(leaves.contains(name), "examples.json names `{name}`, which is no command");
    }
    let prepared = given.project();
    let (next, ran) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let work = || {
        while let Some(command) = leaves.get(next.fetch_add(1, Ordering::Relaxed)) {
            let special = given.commands.get(command);
            if let Some(why) = special.and_then(|special| special.why_not.as_ref()) {
                eprintln!("not tried: the examples of `{command}`: {why}");
                continue;
            }
            let env = given.copy(&prepared, command);
            for example in examples(&env, command) {
                try_out(&env, &example);
                ran.fetch_add(1, Ordering::Relaxed);
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(work);
        }
    });
    assert!(ran.into_inner() > 100);
}
