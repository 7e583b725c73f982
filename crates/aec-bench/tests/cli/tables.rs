//! Lists on terminals of different widths.

use aec_xtest::TestEnv;
use aec_xtest::terminal::OnTerminal;

use crate::cli::empty_project;

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

/// The lines of a table, without colours.
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

fn on_terminal(env: &TestEnv, line: &str, columns: u16) -> Vec<String> {
    let (code, shown) = OnTerminal::start(env, line, columns).end();
    assert_eq!(code, Some(0), "{line}: {shown}");
    lines(&shown)
}

#[test]
fn lists_fit_their_terminal_and_rows_can_be_told_apart() {
    let env = project();
    for list in ["task list", "ledger list", "runs list", "report leaderboard"] {
        for columns in [80, 100, 120, 200] {
            let shown = on_terminal(&env, list, columns);
            let widest = shown.iter().map(|line| line.chars().count()).max().unwrap_or(0);
            assert!(widest <= usize::from(columns), "{list} at {columns}: {shown:#?}");
        }
        let wide = on_terminal(&env, &format!("{list} --wide"), 40);
        assert!(wide.iter().any(|line| line.chars().count() > 40), "{list} --wide: {wide:#?}");
    }
    let tasks = on_terminal(&env, "task list", 80);
    let rows: Vec<&String> = tasks.iter().filter(|line| line.contains("steel-beam-check")).collect();
    let labels: std::collections::BTreeSet<&str> =
        rows.iter().filter_map(|row| row.split_whitespace().next()).collect();
    assert_eq!((rows.len(), labels.len()), (3, 3), "{tasks:#?}");
    // What a list shows can be typed.
    let label = labels.first().unwrap();
    assert_eq!(env.run(["task", "show", label]).code, Some(0), "{label}");
}

#[test]
fn columns_are_chosen_by_name_and_unknown_ones_are_refused() {
    let env = project();
    let shown = on_terminal(&env, "ledger list --columns outcome,task", 80);
    let header = shown.iter().find(|line| line.contains("OUTCOME")).unwrap();
    assert_eq!(header.split_whitespace().collect::<Vec<_>>(), ["OUTCOME", "TASK"]);
    let run = env.run(["ledger", "list", "--columns", "outcom"]);
    assert_eq!(run.code, Some(2), "{run:?}");
    assert!(run.stderr.to_lowercase().contains("outcome"), "{run:?}");
}
