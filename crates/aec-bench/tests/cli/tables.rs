//! Tables on terminals of different widths.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};

use aec_xtest::TestEnv;
use aec_xtest::terminal::OnTerminal;

use crate::cli::empty_project;
use crate::cli::examples::{Preparation, examples, leaves};

const WIDTHS: [u16; 4] = [80, 100, 120, 200];

/// Commands that do something and end with a summary. Other commands show the same at length, so these have no
/// `--wide`.
const SUMMARIES: [&str; 9] = [
    "quickstart",
    "run",
    "runs merge",
    "evolve run",
    "evolve resume",
    "swarm run",
    "swarm resume",
    "swarm stop",
    "evolve stop",
];

/// What tables of commands show even on a terminal of 80 columns.
const NEEDED: [(&str, &[&str]); 22] = [
    ("audit", &["TASK", "MUTANTS LOST", "EQUALS KEPT", "FLOOR", "DETERMINISTIC"]),
    ("config view", &["SETTING", "VALUE", "FROM"]),
    ("dataset list", &["DATASET", "TASKS", "ABOUT"]),
    ("dataset show", &["TASK", "DIFFICULTY"]),
    ("dataset split", &["SIDE", "DATASET", "TASKS", "SHARE"]),
    ("doctor", &["CHECK", "STATUS", "DETAIL", "FIX"]),
    ("eval list", &["ID", "ENVIRONMENT", "MODEL", "ROLLOUTS", "REWARD"]),
    ("evaluate", &["AGENT", "MEAN", "95 % INTERVAL", "SOLVED"]),
    ("evolve history", &["RUN", "STATE", "BEST", "MEAN REWARD"]),
    ("generate list-templates", &["TEMPLATE", "TIERS", "ABOUT"]),
    ("ledger list", &["RECORD", "TASK", "AGENT", "OUTCOME", "REWARD"]),
    ("models check", &["MODEL", "ENDPOINT", "KEY", "ANSWERS"]),
    ("plan", &["TRIAL", "TASK", "AGENT", "REP", "STATE"]),
    ("report compare", &["METRIC", "BASE", "OTHER", "DIFFERENCE", "95 % INTERVAL"]),
    ("report fields", &["FAMILY", "FIELD", "RIGHT", "MEAN SCORE"]),
    ("report leaderboard", &["RANK", "AGENT", "MEAN", "95 % INTERVAL", "SOLVED"]),
    ("report summary", &["AGENT", "MEAN", "95 % INTERVAL", "SOLVED"]),
    ("report traces", &["TRIAL", "TASK", "AGENT", "REWARD", "CLASS"]),
    ("runs list", &["EXPERIMENT", "STATE", "EXECUTED", "MEAN REWARD"]),
    ("runs status", &["agent", "planned", "executed", "mean reward"]),
    ("search", &["KIND", "NAME", "ABOUT"]),
    ("verify", &["TASK", "SUBMISSION", "REWARD", "EXPECTED", "OUTCOME"]),
];

/// A project whose task ids are as long as those of suites.
fn project() -> TestEnv {
    let env = empty_project();
    for template in ["structural/steel-beam-check", "mechanical/pump-power-npsh"] {
        let line = format!("generate task {template} --instances 3 --seed 20260524 --quiet");
        let run = env.run(line.split_whitespace());
        assert_eq!(run.code, Some(0), "{run:?}");
    }
    let run = env.run("run --harness nop structural mechanical -e first --quiet".split_whitespace());
    assert_eq!(run.code, Some(0), "{run:?}");
    env
}

/// What a terminal shows, without colours.
fn lines(shown: &str) -> Vec<String> {
    let mut text = String::new();
    let mut is_escape = false;
    for letter in shown.chars() {
        match letter {
            '\u{1b}' => is_escape = true,
            'm' if is_escape => is_escape = false,
            '\r' => {}
            _ if is_escape => {}
            letter => text.push(letter),
        }
    }
    text.lines().map(str::to_owned).collect()
}

/// The titles of the tables in what a terminal shows: they are the lines that are bold to their ends.
fn titles(shown: &str) -> BTreeSet<String> {
    let bold = shown.lines().filter_map(|line| {
        let line = line.trim_end_matches('\r').strip_prefix("\u{1b}[1m")?.strip_suffix("\u{1b}[0m")?;
        (!line.contains('\u{1b}')).then_some(line)
    });
    let headers = bold.filter(|line| line.contains("  "));
    headers.flat_map(|line| line.split("  ")).map(|title| title.trim().to_owned()).collect()
}

fn on_terminal(env: &TestEnv, line: &str, columns: u16) -> Vec<String> {
    let (code, shown) = OnTerminal::start(env, line, columns).end();
    assert_eq!(code, Some(0), "{line}: {shown}");
    lines(&shown)
}

fn widest(lines: &[String]) -> usize {
    lines.iter().map(|line| line.chars().count()).max().unwrap_or(0)
}

/// The examples of every command that prints tables, on terminals of all widths.
#[test]
fn what_every_command_prints_fits_its_terminal() {
    let given = Preparation::read();
    let prepared = given.project();
    let leaves = leaves();
    for (command, _) in NEEDED {
        assert!(leaves.iter().any(|leaf| leaf == command), "`{command}` is no command");
    }
    let tasks = prepared.run(["task", "list", "--json"]).data();
    let tasks: Vec<&str> =
        tasks["tasks"].as_array().unwrap().iter().map(|task| task["task_id"].as_str().unwrap()).collect();
    let next = AtomicUsize::new(0);
    let work = || {
        while let Some(command) = leaves.get(next.fetch_add(1, Ordering::Relaxed)) {
            if given.commands.get(command).is_none_or(|special| special.why_not.is_none()) {
                let help = prepared.run(command.split(' ').chain(["--help"])).stdout;
                if help.contains("--wide") {
                    try_widths(&given, &prepared, command, &tasks);
                } else {
                    has_no_table(&given, &prepared, command);
                }
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(work);
        }
    });
}

/// Runs the examples of a command that has `--wide`.
fn try_widths(given: &Preparation, prepared: &TestEnv, command: &str, tasks: &[&str]) {
    let mut seen = BTreeSet::new();
    for columns in WIDTHS {
        let env = given.copy(prepared, command);
        for example in texts(&env, command) {
            let (code, shown) = OnTerminal::start_data(&env, &example, columns).end();
            let example = example.join(" ");
            assert!(matches!(code, Some(0 | 1)), "{example}: {shown}");
            let shown_lines = lines(&shown);
            let fits = widest(&shown_lines) <= usize::from(columns);
            assert!(fits || titles(&shown).is_empty(), "{example} at {columns}: {shown_lines:#?}");
            if columns == WIDTHS[0] {
                seen.extend(titles(&shown));
            }
        }
    }
    let needed = NEEDED.iter().find(|(name, _)| *name == command).map_or(&[][..], |(_, needed)| needed);
    for title in needed {
        assert!(seen.contains(*title), "{command} does not show {title} at 80 columns, only {seen:?}");
    }
    let env = given.copy(prepared, command);
    for mut example in texts(&env, command) {
        if !example.iter().any(|word| word == "--columns") {
            example.push("--wide".to_owned());
            let (code, shown) = OnTerminal::start_data(&env, &example, WIDTHS[0]).end();
            assert!(matches!(code, Some(0 | 1)), "{example:?}: {shown}");
            // Datasets write ids with dots.
            let has_ids =
                tasks.iter().any(|task| shown.contains(task) || shown.contains(&task.replace('/', ".")));
            assert!(has_ids || command == "generate task" || !titles(&shown).contains("TASK"), "{shown}");
            assert!(!shown.contains("no room for"), "{example:?}: {shown}");
        }
    }
}

/// Runs the examples of a command without `--wide`, which prints no table, or one that fits.
fn has_no_table(given: &Preparation, prepared: &TestEnv, command: &str) {
    let env = given.copy(prepared, command);
    for example in texts(&env, command) {
        let (_, shown) = OnTerminal::start_data(&env, &example, WIDTHS[0]).end();
        let titles = titles(&shown);
        let is_summary = SUMMARIES.contains(&command);
        assert!(titles.is_empty() || is_summary, "{example:?} prints a table, but has no --wide: {titles:?}");
        // Commands to copy stay on one line.
        let table: Vec<String> =
            lines(&shown).into_iter().filter(|line| !line.contains("aec-bench ")).collect();
        let fits = widest(&table) <= usize::from(WIDTHS[0]);
        assert!(fits || titles.is_empty(), "{example:?}: {table:#?}");
    }
}

/// The examples of a command that print text.
fn texts(env: &TestEnv, command: &str) -> Vec<Vec<String>> {
    let is_text = |example: &Vec<String>| !example.iter().any(|word| word == "--json");
    examples(env, command).into_iter().filter(is_text).collect()
}

#[test]
fn rows_can_be_told_apart_and_what_a_list_shows_can_be_typed() {
    let env = project();
    let tasks = on_terminal(&env, "task list", 80);
    let rows: Vec<&String> = tasks.iter().filter(|line| line.contains("steel-beam-check")).collect();
    let labels: BTreeSet<&str> = rows.iter().filter_map(|row| row.split_whitespace().next()).collect();
    assert_eq!((rows.len(), labels.len()), (3, 3), "{tasks:#?}");
    let label = labels.first().unwrap();
    assert_eq!(env.run(["task", "show", label]).code, Some(0), "{label}");
}

#[test]
fn means_keep_their_denominators_however_narrow_the_terminal_is() {
    let env = project();
    env.write(
        "long.yaml",
        "tasks:\n  include_patterns: ['*']\nagents:\n\
         - {name: an-agent-with-a-long-name-that-says-what-it-does, harness: oracle}\n\
         - {name: another-agent-with-a-long-name-that-says-little, harness: nop}\n",
    );
    for columns in [30, 60, 80, 100, 120] {
        for line in ["run --config long.yaml -q -e", "runs status -q"] {
            let (code, shown) = OnTerminal::start(&env, &format!("{line} at-{columns}"), columns).end();
            assert_eq!(code, Some(0), "{line}: {shown}");
            let shown = lines(&shown);
            let all = shown.iter().filter(|line| line.contains(" of 6") || line.contains(" of 12"));
            assert_eq!(all.count(), 3, "{line} at {columns}: {shown:#?}");
        }
    }
}

#[test]
fn columns_are_chosen_by_name_and_unknown_ones_are_refused() {
    let env = project();
    let shown = on_terminal(&env, "ledger list --columns outcome,task", 80);
    let header = shown.iter().find(|line| line.contains("OUTCOME")).unwrap();
    assert_eq!(header.split_whitespace().collect::<Vec<_>>(), ["OUTCOME", "TASK"]);
    // Of several tables of groups each keeps the name of its groups.
    let shown = on_terminal(&env, "evaluate -e first --columns mean", 80);
    let tables: Vec<&String> = shown.iter().filter(|line| line.contains("MEAN")).collect();
    assert!(tables.len() > 1, "{shown:#?}");
    assert!(tables.iter().all(|header| header.split_whitespace().count() == 2), "{tables:#?}");
    let run = env.run(["ledger", "list", "--columns", "outcom"]);
    assert_eq!(run.code, Some(2), "{run:?}");
    assert!(run.stderr.to_lowercase().contains("outcome"), "{run:?}");
}

#[test]
fn a_pipe_gets_whole_tables() {
    let env = project();
    let run = env.run(["task", "list"]);
    assert!(run.stdout.contains("-20260524-000") && !run.stdout.contains("no room for"), "{run:?}");
}
