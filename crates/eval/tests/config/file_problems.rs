//! Problems reported for files of evaluations that cannot be used.

use crate::config::common::{problems, read, shown};

fn said(text: &str) -> String {
    shown(&problems(text))
}

#[test]
fn several_problems_are_told_at_once() {
    insta::assert_snapshot!(said(
        r#"model = "m"
nmu_examples = 3
name = "all"
temperature = nan

[[eval]]
env_id = "a"
rollouts_per_exmple = 5
max_tokens = "many"
save_results = 1

[[eval]]
num_examples = 1.5
timeout = 0

[[eval]]
env_id = "a b"
sweep = {}

[[ablation]]
id = "c"
[ablation.sweep]
tempratur = [1]
temperature = []
"#
    ));
}

#[test]
fn wrong_types() {
    insta::assert_snapshot!(said(
        r#"
[[eval]]
env_id = 1
env_args = "x"
header = "X-A: b"
headers = ["X-A: b"]
headers_from_state = { X-A = 1 }
header_from_state = [1]
state_columns = "a,b"
num_workers = "many"
max_retries = -1
resume = "path"
api_key_var = ["A"]
temperature = "hot"
seed = 1e3
taskset = "t"
sampling = [1]
"#
    ));
}

#[test]
fn bad_values() {
    insta::assert_snapshot!(said(
        r#"
[[eval]]
env_id = ""
model = "  "
name = "a/b"
api_base_url = "localhost"
api_key_var = "sk-123"
max_tokens = 0
rollouts_per_example = 0
num_workers = 0
temperature = -0.5
timeout = -inf
headers = { "Bad Name" = "x", X-Line = "a\nb", x-line = "c" }
header = ["no colon", "X-A: 1", "x-a: 2", "Host: h"]
header_from_state = ["X-S:"]
state_columns = ["a b", "c", "c"]
env_args = { x = inf, y = [nan], "" = 1 }
sampling = { enable_thinking = true, extra_body = 1 }
ledger = ".hidden"
"#
    ));
}

#[test]
fn conflicts() {
    insta::assert_snapshot!(said(
        r#"
[[eval]]
id = "a"
env_id = "a"
endpoint_id = "e"
model = "m"
args = { x = 1 }
env_args = { x = 2 }
sampling = { top_p = 1 }
sampling_args = { top_p = 1 }
resume = false
resume_path = "out"

[[eval]]
id = "b"
env_args = { config = 1 }
harness = { x = 1 }

[[eval]]
id = "c"
env_args = { config = { taskset = { id = "t" } } }
taskset = { id = "u" }
"#
    ));
}

#[test]
fn sweeps() {
    insta::assert_snapshot!(said(
        r#"
[[ablation]]
id = "none"

[[ablation]]
id = "empty"
[ablation.sweep]

[[ablation]]
id = "empty-arguments"
[ablation.sweep.args]

[[ablation]]
id = "fixed"
model = "m"
temperature = 1
args = { x = 1 }
[ablation.sweep]
id = ["other"]
temperature = [1, 2]
endpoint_id = ["e"]
seed = [1, 1]
shuffle_seed = 3
max_tokens = [10, "x", 0]
env_args = [{ y = 1 }]
name = ["a"]
nmae = ["a"]
[ablation.sweep.args]
x = [1]
z = []

[[ablation]]
sweep = [1]

[[ablation]]
id = "twice"
[ablation.sweep.args]
x = [1, nan]
[ablation.sweep.env_args]
x = [1]

[[ablation]]
[ablation.sweep]
model = ["m"]
endpoint_id = ["e"]
"#
    ));
}

#[test]
fn files_without_evaluations() {
    let texts = [
        "",
        "model = \"m\"\n",
        "eval = []\n",
        "[eval]\nenv_id = \"a\"\n",
        "eval = [1, { id = \"a\" }]\n",
        "[[evals]]\nenv_id = \"a\"\n",
        "ablation = 3\n",
    ];
    let told: Vec<String> =
        texts.iter().map(|text| format!("> {}\n{}", text.replace('\n', " "), said(text))).collect();
    insta::assert_snapshot!(told.join("\n"));
}

#[test]
fn text_that_is_no_toml() {
    let texts = [
        "[[eval]\nenv_id = \"a\"\n",
        "[[eval]]\nenv_id = \"a\"\nenv_id = \"b\"\n",
        "[[eval]]\nenv_id = \"a\n",
        "{\"eval\": []}",
        "\u{0}",
        "[[eval]]\nid = \"a\"\nseed = 99999999999999999999\n",
        "[[eval]]\nid = \"a\"\n[eval]\n",
    ];
    let told: Vec<String> = texts.iter().map(|text| said(text)).collect();
    insta::assert_snapshot!(told.join("\n"));
}

#[test]
fn secrets_are_not_repeated() {
    let told = said(
        "[[eval]]\nid = 'a'\napi_key_var = 'sk-secret'\napi_base_url = 'secret@x'\n\
         header = ['secret', 'X-A: secretß']\nheaders = { X-B = \"secret\\n\" }\n",
    );
    assert!(!told.contains("secret"), "{told}");
    assert_eq!(told.matches("R0").count(), 5, "{told}");
}

#[test]
fn a_file_with_very_many_problems_is_cut() {
    let keys: Vec<String> = (0..5000).map(|n| format!("unknown_{n} = 1\n")).collect();
    let problems = problems(&format!("{}[[eval]]\nid = 'a'\n", keys.concat()));
    assert_eq!(problems.len(), 51);
    assert_eq!(problems[50].what, "more problems are not shown");
}

#[test]
fn keys_that_would_colour_the_terminal_are_escaped() {
    let told = said("\"\\u001b[31m\" = 1\n[[eval]]\nid = 'a'\n");
    assert!(!told.contains('\u{1b}'), "{told:?}");
}

#[test]
fn a_known_key_is_known_everywhere_it_may_be() {
    // The code that reads a key reports a wrong type, so no key is listed without being read.
    let problem = &problems("[[eval]]\nid = 'a'\nzzz = 1\n")[0];
    let known = problem.why.as_deref().unwrap().split(" are ").nth(1).unwrap();
    let keys: Vec<&str> = known.split(", ").collect();
    assert_eq!(keys.len(), 50);
    for key in keys {
        let id = if matches!(key, "env_id" | "id") { "" } else { "id = 'a'\n" };
        let told = problems(&format!("[[eval]]\n{id}{key} = [[1]]\n"));
        assert_eq!(told.len(), 1, "{key}: {}", shown(&told));
        assert_eq!(told[0].id.as_deref(), Some("R004"), "{key}: {}", shown(&told));
        let in_ablation = problems(&format!("[[ablation]]\n{id}{key} = [[1]]\nsweep.args.x = [1]\n"));
        assert_eq!(in_ablation.len(), 1, "{key}: {}", shown(&in_ablation));
        if key != "name" {
            let global = problems(&format!("{key} = [[1]]\n[[eval]]\n{id}"));
            assert_eq!(global.len(), 1, "{key}: {}", shown(&global));
        }
    }
    assert_eq!(read("id = 'a'\n[[eval]]\n")[0].env_id.as_deref(), Some("a"));
}
