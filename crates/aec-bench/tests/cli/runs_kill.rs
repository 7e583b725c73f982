//! Killed at any moment, `runs import` leaves all of an experiment or nothing of it.

use std::time::Instant;

use crate::cli::dataset_commands::run;
use crate::cli::dataset_kill::{hidden, kill, kills, moment};
use crate::cli::runs_package::{EXPERIMENT, package, receiving, record, recorded, store, write_records};

#[test]
fn a_killed_import_leaves_a_consistent_ledger() {
    let source = recorded();
    std::fs::remove_dir_all(source.path(EXPERIMENT)).unwrap();
    let names: Vec<String> = (0..60).map(|index| format!("trial-{index}")).collect();
    let records: Vec<(&str, u32, String)> = names
        .iter()
        .map(|name| {
            let text = format!("{name}\n").repeat(500);
            (name.as_str(), 1, record(&store(&source), name, 1, "scored", &[("log", &text)]))
        })
        .collect();
    write_records(&source, &records);
    let bytes = package(&source, "");
    let env = receiving(&bytes);
    let started = Instant::now();
    assert_eq!(run(&env, "runs import in.tar.zst").code, Some(0));
    let whole = started.elapsed();
    let (mut made, mut missing) = (0, 0);
    let rounds = kills() / 2;
    for round in 0..rounds {
        std::fs::remove_dir_all(env.path("artefacts/ledger")).unwrap();
        std::fs::create_dir(env.path("artefacts/ledger")).unwrap();
        // Every third time, some of the records exist already.
        if round % 3 == 2 {
            for name in &names[..20] {
                let from = source.path(format!("{EXPERIMENT}/{name}.json"));
                env.write(format!("{EXPERIMENT}/{name}.json"), std::fs::read(from).unwrap());
            }
        }
        kill(&env, "runs import in.tar.zst", moment(round, whole));
        let here = names.iter().filter(|name| env.path(format!("{EXPERIMENT}/{name}.json")).exists());
        match (here.count(), round % 3) {
            (60, _) => made += 1,
            (0, 0 | 1) | (20, 2) => missing += 1,
            (some, 2) => assert!(some > 20, "round {round}: {some}"),
            (some, _) => panic!("round {round}: {some} records of an experiment that was not here"),
        }
        for name in &names {
            let path = format!("{EXPERIMENT}/{name}.json");
            if env.path(&path).exists() {
                assert!(env.read(&path) == source.read(&path), "round {round}: a whole record");
            }
        }
        // An incomplete file would block the import.
        assert_eq!(run(&env, "runs import in.tar.zst --dry-run").code, Some(0), "round {round}");
    }
    assert!(made + missing <= rounds);
    assert_eq!(run(&env, "runs import in.tar.zst").code, Some(0), "importing again completes it");
    assert!(package(&env, "") == bytes);
    assert_eq!(hidden(&env, "artefacts/ledger"), 0, "the next one clears up");
}
