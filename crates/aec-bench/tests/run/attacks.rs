//! Attempts to get a better figure than earned: answers in agents, edited plans, edited ledgers, cheating in trials.

use std::path::{Path, PathBuf};

use aec_judge::verdict::Outcome;
use aec_xtest::files::names_in;
use serde_json::{Value, json};

use crate::run::world::{RIGHT, right};
use crate::run::{Project, Server};

/// A typical verifier: absolute paths, not hardened.
const NAIVE: &str = r#"import json, math, pathlib
answer = json.loads(pathlib.Path("/workspace/output.json").read_text()) if pathlib.Path("/workspace/output.json").exists() else {}
met = [math.isclose(float(answer.get(key, "nan")), value, rel_tol=0.01) for key, value in {"flow_m3_s": 3.217, "depth_m": 1.254}.items()]
pathlib.Path("/logs/verifier").mkdir(parents=True, exist_ok=True)
pathlib.Path("/logs/verifier/reward.json").write_text(json.dumps({"reward": sum(met) / len(met)}))
"#;

/// Attack 39.
#[test]
fn agents_that_carry_the_answers_are_refused() {
    let project = Project::with_tasks(2);
    let few_shot =
        format!("You are an engineer.\n\nExample: the channel at mile 3 has\n```json\n{RIGHT}\n```\n");
    project.env.write("prompts/leak.md", "Hint: 3.217 and 1.254.\n");
    project.env.write("prompts/few.md", few_shot);
    project.env.write("prompts/clean.md", "Use SI units, 4 digits, and 9.80665 for g.\n");
    project.env.write("agent/main.py", "print('no answers here')\n");
    project.env.write("agent/data/table.json", format!("[{RIGHT}]"));
    let agent = |text: &str| {
        project.env.write("e.yaml", format!("experiment_id: x\nagents: [{text}]\n"));
        "run --config e.yaml --dry-run"
    };
    let direct = |prompt: &str| {
        format!("{{name: a, harness: direct, model: offline/echo, system_prompt_file: prompts/{prompt}}}")
    };
    let command = |parameters: &str| format!("{{name: a, harness: command, parameters: {{{parameters}}}}}");
    for (text, place) in [
        (direct("leak.md"), "prompts/leak.md"),
        (direct("few.md"), "prompts/few.md"),
        (command("command: python3 /agent/agent/main.py, files: [agent]"), "agent/data/table.json"),
        (command("command: \"echo 3.217 1.254 > output.json\""), "command"),
        (command("command: python3 -, env: {A: '3.217', B: '1.254'}"), "env"),
    ] {
        let run = project.json(agent(&text));
        assert_eq!(run.code, Some(3), "{text}: {run:?}");
        let (id, what) = run.errors().remove(0);
        assert!(id == "E032" && what.contains("2 tasks"), "{what}");
        assert!(what.contains(place), "{place}: {what}");
        assert!(!what.contains("3.217"), "the complaint does not tell what it found: {what}");
    }
    assert_eq!(project.json(agent(&direct("clean.md"))).code, Some(0));
    assert_eq!(
        project.json(agent(&command("command: python3 /agent/agent/main.py, files: [agent/main.py]"))).code,
        Some(0)
    );
    // A user who insists gets it recorded in the plan, whose digest is in every record.
    let line = agent(&direct("leak.md")).replace("--dry-run", "--allow-leaks");
    let run = project.json(&line);
    assert!(run.stdout.contains("E032"), "{run:?}");
    let plan: Value = serde_json::from_str(&project.env.read("artefacts/ledger/x/_run/plan.json")).unwrap();
    assert_eq!(plan["conditions"]["allow_leaks"], true);
    assert!(project.records("x").values().all(|record| json!(record.plan) == plan["digest"]));
    assert_eq!(project.record_names("x").len(), 2);
    // A prompt for all tasks comes from the environment, and is checked as well.
    let mut project = project;
    project.env.set("AGENT_INSTRUCTION", &format!("Write {RIGHT} to /workspace/output.json"));
    let run = project.json("run civil --model offline/echo --harness direct --dry-run");
    assert_eq!((run.code, run.errors()[0].0.as_str()), (Some(3), "E032"), "{run:?}");
}

/// An experiment with one good and one bad result.
fn good_and_bad() -> (Project, Server) {
    let project = Project::with_tasks(2);
    let replies = format!(
        "replies: [{{text: '{RIGHT}'}}]\nconversations: [{{when: channel-001, replies: [{{text: wrong}}]}}]\n"
    );
    let server = Server::saying(&replies);
    project.endpoints(&server.url(), &["mine"]);
    let data = project.data(LINE);
    assert_eq!(data["all"]["reward_sum"], 1.0);
    (project, server)
}

const LINE: &str = "run civil --model mine --harness direct -e x";

/// The record of the good result, and that of the bad one.
fn pair(project: &Project) -> (PathBuf, PathBuf) {
    let records = project.records("x");
    let find = |reward: f64| {
        let (name, _) = records.iter().find(|(_, record)| record.reward() == Some(reward)).unwrap();
        project.ledger("x").join(name)
    };
    (find(1.0), find(0.0))
}

/// Attack 40.
#[test]
fn a_bad_result_cannot_be_dropped_and_had_again() {
    let (project, server) = good_and_bad();
    let (_, bad) = pair(&project);
    let kept = std::fs::read(&bad).unwrap();
    let head = project.data("ledger verify -e x")["experiments"][0]["head"].as_str().unwrap().to_owned();
    std::fs::remove_file(&bad).unwrap();
    for line in [LINE, "run --resume x", "run --resume x --rerun failed", &format!("{LINE} --extend -n 2")] {
        let refused = project.json(line);
        assert_eq!((refused.code, refused.errors()[0].0.as_str()), (Some(3), "E035"), "{line}: {refused:?}");
    }
    assert_eq!(server.count(), 2, "nothing was asked again");
    assert_eq!(project.json("ledger verify -e x").code, Some(1));
    let status = project.json("runs status x");
    assert!(status.stdout.contains("E035"), "{status:?}");
    // If its link is removed as well, the printed head reveals it.
    let run = project.ledger("x").join("_run");
    let chain = run.join(names_in(&run).into_iter().find(|name| name.starts_with("chain-")).unwrap());
    let links = std::fs::read_to_string(&chain).unwrap();
    let name = bad.file_stem().unwrap().to_str().unwrap().to_owned();
    let without: String = links.split_inclusive('\n').filter(|line| !line.contains(&name)).collect();
    std::fs::write(&chain, without).unwrap();
    let verified = project.json(&format!("ledger verify -e x --head {head}"));
    assert_eq!(verified.code, Some(1), "{verified:?}");
    std::fs::remove_file(&chain).unwrap();
    let verified = project.json(&format!("ledger verify -e x --head {head}"));
    assert_eq!(verified.code, Some(1), "{verified:?}");
    // After restoring it, everything is as before.
    std::fs::write(&chain, links).unwrap();
    std::fs::write(&bad, kept).unwrap();
    assert_eq!(project.data(&format!("ledger verify -e x --head {head}"))["is_clean"], true);
    assert_eq!(project.data(LINE)["recorded"], 0);
}

#[test]
fn what_was_planned_and_not_done_is_always_shown() {
    let project = Project::with_tasks(5);
    let server = Server::start(right());
    project.endpoints(&server.url(), &["mine"]);
    project.data(&format!("{LINE} --shard 0/2"));
    let status = project.run("runs status x");
    insta::assert_snapshot!("planned_and_missing", status.stdout.split("session").next().unwrap());
    let data = project.data("runs status x");
    assert_eq!((&data["all"]["planned"], &data["all"]["executed"]), (&json!(5), &json!(3)));
    // More repetitions than planned make another plan.
    assert_eq!(project.refusal(&format!("{LINE} -n 2"), 3).0, "E036");
    assert_eq!(server.count(), 3);
}

fn verify(project: &Project) -> Vec<String> {
    let run = project.json("ledger verify -e x");
    assert_eq!(run.code, Some(1), "{run:?}");
    let mut ids: Vec<String> = run.errors().into_iter().map(|(id, _)| id).collect();
    ids.sort();
    ids.dedup();
    ids
}

/// A name, the problem that must be found, the file, and the change of its text: another text, or none at all.
type Tampering<'a> = (&'a str, &'a str, PathBuf, Box<dyn Fn(&str) -> Option<String> + 'a>);

/// Attack 36, on the files of a real run.
#[test]
fn every_way_to_tamper_with_a_ledger_is_seen() {
    let (project, _server) = good_and_bad();
    let (good, bad) = pair(&project);
    let run = project.ledger("x").join("_run");
    let chain = run.join(names_in(&run).into_iter().find(|name| name.starts_with("chain-")).unwrap());
    let text = |path: &Path| std::fs::read_to_string(path).unwrap();
    let record = project.records("x").into_values().find(|record| record.reward() == Some(0.0)).unwrap();
    let content = |name: &str| {
        let artefact = record.all_artefacts().find(|artefact| artefact.path.ends_with(name)).unwrap();
        let hex = artefact.digest.hex();
        project.env.path(format!("artefacts/ledger/_artefacts/sha256/{}/{hex}", &hex[..2]))
    };
    let stranger = project.ledger("x").join("00000000-0000-8000-8000-000000000000.json");
    let swapped = |links: &str| -> String {
        let mut lines: Vec<&str> = links.lines().collect();
        lines.reverse();
        format!("{}\n", lines.join("\n"))
    };
    let attacks: Vec<Tampering<'_>> = vec![
        (
            "edited",
            "L030",
            bad.clone(),
            Box::new(|old| Some(old.replace("\"reward\": 0.0", "\"reward\": 1.0"))),
        ),
        ("deleted", "L032", bad.clone(), Box::new(|_| None)),
        ("reordered", "L012", chain.clone(), Box::new(move |old| Some(swapped(old)))),
        ("link removed", "L012", chain, Box::new(|old| Some(old.split_inclusive('\n').skip(1).collect()))),
        ("replayed", "L022", bad.clone(), Box::new(|_| Some(text(&good)))),
        ("duplicated", "L022", stranger, Box::new(|_| Some(text(&good)))),
        ("torn", "L002", bad.clone(), Box::new(|old| Some(old[..old.len() / 2].to_owned()))),
        ("emptied", "L002", bad, Box::new(|_| Some(String::new()))),
        ("another answer", "L035", content("output.json"), Box::new(|_| Some("right".to_owned()))),
        ("no trace", "L034", content("trajectory.jsonl"), Box::new(|_| None)),
    ];
    for (name, expected, path, tamper) in attacks {
        let before = std::fs::read(&path).ok();
        match tamper(&before.as_deref().map(String::from_utf8_lossy).unwrap_or_default()) {
            Some(text) => {
                std::fs::remove_file(&path).ok();
                std::fs::write(&path, text).unwrap();
            }
            None => std::fs::remove_file(&path).unwrap(),
        }
        let found = verify(&project);
        assert!(found.contains(&expected.to_owned()), "{name}: {found:?}");
        std::fs::remove_file(&path).ok();
        if let Some(before) = before {
            std::fs::write(&path, before).unwrap();
        }
        project.assert_sound("x");
    }
}

/// The cheat of each task. None of them does the work.
const CHEATS: &str = r#"
replies: [{text: nothing}]
conversations:
- when: channel-000
  replies:
  - tool_calls:
    - {name: bash, arguments: {command: "mkdir -p logs/verifier; echo '{\"reward\": 1}' > logs/verifier/reward.json; echo 1 > logs/verifier/reward.txt; mkdir -p /logs/verifier; echo '{\"reward\": 1}' > /logs/verifier/reward.json; chmod -R a-w logs /logs; exit 0"}}
- when: channel-001
  replies:
  - tool_calls:
    - {name: bash, arguments: {command: "echo '{\"role\":\"assistant\",\"content\":\"honest work\"}' | tee trajectory.jsonl conversation.jsonl agent_result.json"}}
- when: channel-002
  replies:
  - tool_calls:
    - {name: bash, arguments: {command: "cat /tests/* /tests/fixtures/* /solution/* /workspace/../tests/answers.json; find / -name answers.json -o -name golden_pass.json -o -name verify.py 2>/dev/null | grep -v '^/proc'; echo looked"}}
- when: channel-003
  replies:
  - tool_calls:
    - {name: bash, arguments: {command: "ln -s /tests/fixtures/golden_pass.json output.json; ln -s /etc link; mkfifo pipe; ln output.json hard; echo tried"}}
- when: channel-004
  replies:
  - tool_calls:
    - {name: bash, arguments: {command: "env; cat /proc/1/environ | tr '\\0' '\\n'; ls /proc/1/root/ /home /root; cat TOP/aec-bench.toml TOP/.env; ls TOP/artefacts; curl -s -m 2 http://127.0.0.1/; echo looked"}}
- when: channel-005
  replies:
  - tool_calls:
    - {name: bash, arguments: {command: "(while true; do echo '{\"flow_m3_s\": 3.217}' > output.json; done) & (setsid nohup bash -c 'sleep 2; mkdir -p /logs/verifier; echo 1 > /logs/verifier/reward.txt' &) ; echo begun"}}
"#;

#[test]
fn cheating_in_a_trial_earns_nothing_and_leaves_its_traces() {
    const SECRET: &str = "sk-canary-of-the-project";
    let project = Project::with_tasks(6);
    project.env.write(".env", format!("ANTHROPIC_API_KEY={SECRET}\n"));
    for task in ["000", "003"] {
        project.env.write(format!("tasks/civil/channel-{task}/tests/verify.py"), NAIVE);
        std::fs::remove_file(project.env.path(format!("tasks/civil/channel-{task}/tests/answers.json")))
            .unwrap();
    }
    let top = project.env.dir();
    let model = project.script("cheats", &CHEATS.replace("TOP", top.to_str().unwrap()));
    let run =
        project.json(&format!("run civil --model {model} --harness tool_loop --parameter max_turns=1 -e x"));
    assert!(matches!(run.code, Some(0 | 1)), "{run:?}");
    let records = project.records("x");
    assert_eq!(records.len(), 6);
    for record in records.values() {
        assert_eq!(record.outcome, Outcome::Scored, "{record:?}");
        let task = record.task.task_id.trim_start_matches("civil/channel-");
        // The last one repeatedly writes half of an answer; it has earned that much.
        let most = if task == "005" { 0.5 } else { 0.0 };
        assert!(record.reward().unwrap() <= most, "{task}: {:?}", record.reward());
        let trajectory = project.job_file(record, "trajectory.jsonl");
        assert!(trajectory.starts_with("{\"step\":0,\"role\":\"system\""), "{task}: our trajectory is ours");
        assert!(trajectory.contains("\"tool_call\""), "{task}: what it did is written down");
        assert!(!trajectory.contains(SECRET), "{task}");
        let stem = project.jobs("x").join(record.trial_id.as_str());
        let reward: Value =
            serde_json::from_str(&project.job_file(record, "logs/verifier/reward.json")).unwrap();
        assert_eq!(reward["reward"].as_f64(), record.reward(), "{task}");
        match task {
            "000" => {
                let planted =
                    std::fs::read_to_string(stem.join("submitted/logs/verifier/reward.json")).unwrap();
                assert!(planted.contains("\"reward\": 1"), "the evidence is kept: {planted}");
            }
            "001" => {
                for name in ["trajectory.jsonl", "conversation.jsonl", "agent_result.json"] {
                    let forged = std::fs::read_to_string(stem.join("submitted").join(name)).unwrap();
                    assert!(forged.contains("honest work"), "{name}");
                    assert!(
                        !project
                            .job_file(record, name)
                            .starts_with("{\"role\":\"assistant\",\"content\":\"honest")
                    );
                }
            }
            "002" => {
                assert!(trajectory.contains("looked"));
                for secret in ["3.217", "1.254", "golden_pass.json\\n"] {
                    assert!(
                        !trajectory.contains(&format!("{secret}\\n"))
                            && !trajectory.contains("\"value\": 3.217"),
                        "{trajectory}"
                    );
                }
            }
            "003" => {
                let refused = &record.outputs.submission.as_ref().unwrap().refused;
                let named: Vec<&str> = refused.iter().map(|file| file.path.as_str()).collect();
                for name in ["output.json", "link", "pipe"] {
                    assert!(named.contains(&name), "{name} is refused by name: {named:?}");
                }
            }
            _ => assert!(trajectory.contains("looked") || trajectory.contains("begun"), "{trajectory}"),
        }
    }
    project.assert_sound("x");
}

/// A real agent program with its own client, without libraries.
#[test]
fn an_external_program_works_as_an_agent() {
    const KEY: &str = "sk-canary-of-the-endpoint";
    let mut project = Project::with_tasks(3);
    let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/examples/agents/minimal_agent.py");
    let place = "docs/examples/agents/minimal_agent.py";
    project.env.write(place, std::fs::read(program).unwrap());
    project.env.set("MODEL_KEY", KEY);
    let server = Server::saying(&format!(
        "replies:\n- text: \"Let me work.\\n```bash\\ncat survey.csv\\necho '{}' > output.json\\nenv\\n```\\n\"\n- text: done\n",
        RIGHT.replace('"', "\\\"")
    ));
    project.env.write(
        "configs/endpoints.toml",
        format!("[[endpoint]]\nendpoint_id = \"mine\"\nmodel = \"test-model\"\nurl = \"{}/v1\"\nkey = \"MODEL_KEY\"\n", server.url()),
    );
    project.env.write(
        "e.yaml",
        format!(
            "experiment_id: x\nagents:\n- name: minimal\n  harness: command\n  model: mine\n  parameters: {{command: python3 /agent/{place}, files: [{place}]}}\n"
        ),
    );
    let run = project.json("run --config e.yaml");
    assert_eq!(run.code, Some(0), "{run:?}");
    assert_eq!(run.envelope()["data"]["all"]["reward_sum"], 3.0, "{run:?}");
    assert_eq!(server.count(), 6, "two turns of three trials");
    for record in project.records("x").values() {
        assert_eq!((record.cost.model_calls, record.reward()), (2, Some(1.0)));
        assert_eq!(record.outputs.output_source, Some(aec_judge::settle::order::Source::File));
        assert_eq!(record.agent.resolved_model.as_deref(), Some("test-model"));
        let trajectory = project.job_file(record, "trajectory.jsonl");
        assert!(
            trajectory.contains("AGENT_MODEL") && !trajectory.contains(KEY),
            "the key stays outside: {trajectory}"
        );
    }
    assert!(
        server
            .server()
            .requests()
            .iter()
            .all(|request| request.headers["authorization"].to_str().unwrap().contains(KEY))
    );
    project.assert_sound("x");
}

const LOOK: &str = "replies:\n- tool_calls:\n  - {name: bash, arguments: {command: 'ls -l /proc/self/fd; cat <&9; ls -d /proc/self/fd/9/*'}}\n- text: x\n";

/// Before, an agent read the golden answer through a directory that the shell of the user had open.
#[test]
fn what_this_program_inherited_reaches_no_room() {
    let project = Project::with_tasks(1);
    let model = project.script("look", LOOK);
    let line = format!("run civil --model {model} --harness tool_loop -e x");
    let status = std::process::Command::new("bash")
        .args(["-c", "exec 8<aec-bench.toml 9<tasks; exec \"$0\" \"$@\"", env!("CARGO_BIN_EXE_aec-bench")])
        .args(line.split(' '))
        .current_dir(project.env.dir())
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap())
        .env("HOME", project.env.home())
        .output()
        .unwrap();
    assert!(status.status.success(), "{status:?}");
    let trajectory = project.job_file(&project.record("x"), "trajectory.jsonl");
    let result = trajectory.lines().find(|line| line.contains("\"tool_result\"")).unwrap();
    assert!(result.contains("Bad file descriptor"), "{result}");
    assert!(!result.contains("civil") && !result.contains("tasks"), "{result}");
}
