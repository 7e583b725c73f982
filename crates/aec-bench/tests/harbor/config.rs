//! Credentials of services in configuration files: references, never values.

use crate::run::world::Project;

const SECRET: &str = "sk-harbor-literal-0123456789";

#[test]
fn a_token_that_is_written_out_is_refused_and_not_repeated() {
    let project = Project::with_tasks(1);
    let agents = "agents:\n  - {name: nop, harness: nop}\n";
    for (table, key) in
        [("harbor", "endpoint"), ("harbor", "token"), ("modal", "token_id"), ("modal", "token_secret")]
    {
        for value in [SECRET, "12345678901", "$NOT/A-NAME", "[sk-list-0123456789]"] {
            let text = format!("{agents}compute:\n  {table}:\n    {key}: {value}\n");
            project.env.write("experiment.yaml", text);
            let run = project.json("config check experiment.yaml");
            assert_ne!(run.code, Some(0), "{table}.{key}: {value}");
            let (id, _) = run.errors().remove(0);
            assert!(["E004", "E005"].contains(&id.as_str()), "{run:?}");
            for part in ["0123456789", "12345678901", "NOT/A-NAME"] {
                assert!(!run.stdout.contains(part), "{table}.{key}: {run:?}");
            }
        }
        for value in ["$SOME_VARIABLE", "${SOME_VARIABLE}", "env:SOME_VARIABLE"] {
            let text = format!("{agents}compute:\n  {table}:\n    {key}: {value}\n");
            project.env.write("experiment.yaml", text);
            assert_eq!(project.json("config check experiment.yaml").code, Some(0), "{table}.{key}: {value}");
        }
    }
    let written = project.env.read("aec-bench.toml");
    project.env.write("aec-bench.toml", format!("{written}\n[compute.harbor]\ntoken = \"{SECRET}\"\n"));
    let run = project.json("config check");
    assert_ne!(run.code, Some(0));
    assert!(!run.stdout.contains(SECRET) && run.errors().iter().any(|(id, _)| id == "C005"), "{run:?}");
}

#[test]
#[cfg_attr(
    not(all(python312, packages, root)),
    ignore = "needs Harbor: root, the Python package index and a Python 3.12"
)]
fn a_reference_to_nothing_is_told_before_anything_runs() {
    let project = crate::harbor::project(1);
    let text = "agents:\n  - {name: nop, harness: nop}\ncompute:\n  backend: harbor\n  harbor:\n    \
                environment: local_room:LocalRoom\n    token: $NOWHERE_TO_BE_FOUND\n";
    project.env.write("experiment.yaml", text);
    let (id, what) = project.refusal("run -c experiment.yaml", 3);
    assert_eq!(id, "Y028");
    assert!(what.contains("NOWHERE_TO_BE_FOUND"), "{what}");
}
