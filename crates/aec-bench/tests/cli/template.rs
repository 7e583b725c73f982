//! User templates: every key has an effect or causes a problem, engines are isolated, prompts state the drawn values.

use aec_xtest::TestEnv;
use serde_json::Value;

use crate::cli::empty_project;

/// A project with the template that `template new` writes.
pub(crate) fn with_template() -> TestEnv {
    let env = empty_project();
    let run = env.run(["template", "new", "structural/beam"]);
    assert_eq!(run.code, Some(0), "{run:?}");
    env
}

/// Changes a file of the template.
pub(crate) fn change(env: &TestEnv, file: &str, from: &str, to: &str) {
    let path = format!("templates/beam/{file}");
    let text = env.read(&path);
    assert!(text.contains(from), "{file} has no {from}");
    env.write(&path, text.replacen(from, to, 1));
}

/// The ids and messages of the problems that a change of `params.toml` causes.
fn problems_of(from: &str, to: &str) -> Vec<(String, String)> {
    let env = with_template();
    change(&env, "params.toml", from, to);
    let run = env.run(["--json", "generate", "validate-template", "templates/beam", "--instances", "2"]);
    assert_eq!(run.code, Some(1), "{from} -> {to}: {run:?}");
    run.errors()
}

/// Generates tasks and returns their directories.
fn generate(env: &TestEnv, more: &[&str]) -> Vec<std::path::PathBuf> {
    let mut command = vec!["--json", "generate", "task", "beam"];
    if !more.contains(&"--instances") {
        command.extend(["--instances", "6"]);
    }
    let data = env.run(command.iter().chain(more)).data();
    let place = env.dir();
    let root = place.parent().unwrap().to_string_lossy().into_owned();
    data["instances"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| row["path"].as_str().unwrap().replace("[TEST]", &root).into())
        .collect()
}

fn read(task: &std::path::Path, file: &str) -> String {
    std::fs::read_to_string(task.join(file)).unwrap()
}

/// The value of a given in a prompt.
fn given(prompt: &str, name: &str) -> Option<String> {
    let marker = format!("| `{name}` | ");
    let line = prompt.lines().find(|line| line.contains(&marker))?;
    Some(line.split(&marker).nth(1)?.trim_end_matches([' ', '|']).to_owned())
}

#[test]
fn a_new_template_is_sound_and_makes_tasks() {
    let env = with_template();
    insta::assert_snapshot!(
        "validate_template",
        env.run(["generate", "validate-template", "templates/beam", "--instances", "4"]).snapshot()
    );
    let tasks = generate(&env, &[]);
    assert_eq!(tasks.len(), 6);
    assert_eq!(env.run(["task", "validate", "--all"]).code, Some(0));
    assert_eq!(env.run(["verify", "--all"]).code, Some(0));
    let audit = env.run(["audit", "--all"]);
    assert_eq!(audit.code, Some(0), "{audit:?}");
}

#[test]
fn prompts_are_as_reviewed() {
    let env = with_template();
    let tasks = generate(&env, &["--seed", "7"]);
    for (task, tier) in tasks.iter().zip(["easy", "medium", "hard"]) {
        insta::assert_snapshot!(format!("prompt_{tier}"), read(task, "instruction.md"));
    }
    insta::assert_snapshot!("task_toml", read(&tasks[2], "task.toml"));
    insta::assert_snapshot!("answers_json", read(&tasks[2], "tests/answers.json"));
}

/// What hides a parameter in the hard tier of the template.
const HIDDEN: &str = "[difficulty.hard.derive]\nelastic_modulus_gpa = { table = \"materials\" }";

/// A change of `params.toml`, the id of the problem that it causes, and a part of the message.
const MISTAKES: &[(&str, &str, &str, &str)] = &[
    ("name = \"beam\"", "", "P006", "`meta.name` is missing"),
    ("name = \"beam\"", "name = \"be am\"", "P005", "`meta.name`"),
    ("name = \"beam\"", "name = \"arch\"", "P012", "its directory `beam`"),
    ("category = ", "kategorie = ", "P003", "unknown key `kategorie`"),
    ("tool_mode = \"both\"", "tool_mode = \"some\"", "P005", "some"),
    ("tool_mode = \"both\"", "tool_mode = \"both\"\nversion = \"1\"", "P005", "MAJOR.MINOR.PATCH"),
    ("type = \"float\"", "type = \"real\"", "P005", "real"),
    ("type = \"float\"\ndescription = \"span", "description = \"span", "P006", "`params.span_m.type`"),
    ("description = \"span of the beam\"", "", "P006", "`params.span_m.description`"),
    ("min = 3\n", "min = 30\n", "P005", "above the maximum"),
    ("min = 3\n", "", "P006", "`params.span_m.min`"),
    ("step = 0.1", "step = 0", "P005", "above 0"),
    ("step = 0.1", "step = 0.1\nsig = 3", "P007", "both `step` and `sig`"),
    ("step = 0.1", "steps = 0.1", "P003", "unknown key `steps`"),
    ("sig = 3", "sig = 12", "P005", "1 to 9"),
    ("values = [11, 30, 70, 205]", "values = [11, 30, 70, 205]\nmin = 3", "P018", "has no effect"),
    ("values = [11, 30, 70, 205]", "values = [11, \"30\"]", "P005", "of the parameter's type"),
    ("values = [11, 30, 70, 205]", "values = [11, 11]", "P005", "distinct"),
    ("values = [11, 30, 70, 205]", "values = [11, 30, 70, 205]\ndefault = 12", "P005", "usual value"),
    ("step = 0.1", "step = 0.1\noptional = true", "P018", "optional"),
    ("step = 0.1", "step = 0.1\nderivable_from = \"the sky\"", "P005", "derived from"),
    ("step = 0.1", "step = 0.1\nderivable_from = \"archetype\"", "P018", "derivable_from"),
    ("[params.span_m]", "[params.Span]", "P005", "not a name"),
    ("[params.span_m]", "[params.outputs]", "P013", "means something else"),
    ("[outputs.reaction_kn]", "[outputs.span_m]", "P013", "there twice"),
    ("key = \"material\"", "key = \"matter\"", "P011", "no quantity `matter`"),
    (
        "{ material = \"steel\", elastic_modulus_gpa = 205 },",
        "{ material = \"steel\" },",
        "P014",
        "same quantities",
    ),
    ("material = \"concrete\", elastic", "material = \"timber\", elastic", "P014", "same key"),
    ("elastic_modulus_gpa = 11 }", "elastic_modulus_gpa = \"soft\" }", "P014", "wrong type"),
    ("title = \"Modulus of elasticity\"", "", "P006", "tables.materials.title"),
    ("rows = [\n  { material", "match = \"up_to\"\nrows = [\n  { material", "P014", "ascending"),
    ("tolerance = 0.01", "tolerance = 0.01\nvalues = [\"a\"]", "P018", "values"),
    ("description = \"reaction at each support\"", "", "P006", "outputs.reaction_kn.description"),
    ("span_m = { min = 4, max = 9 }", "spann_m = { min = 4, max = 9 }", "P011", "no parameter `spann_m`"),
    ("span_m = { min = 4, max = 9 }", "span_m = { min = 4 }", "P005", "not a limit"),
    ("span_m = { min = 4, max = 9 }", "span_m = { min = 40, max = 90 }", "P015", "outside"),
    ("span_m = { min = 4, max = 9 }", "elastic_modulus_gpa = [11, 12]", "P015", "outside"),
    ("[archetypes.roof-beam]", "[archetypes.\"roof beam\"]", "P005", "the name"),
    ("description = \"a floor beam\"", "", "P006", "archetypes.floor-beam.description"),
    ("description = \"a floor beam\"", "description = 5", "P004", "archetypes.floor-beam"),
    ("visibility = \"partial\"", "", "P006", "difficulty.hard.visibility"),
    ("visibility = \"partial\"", "visibility = \"all_given\"", "P022", "hides 1 of 4 parameters"),
    ("visibility = \"partial\"", "visibility = \"scenario_only\"", "P022", "scenario_only"),
    (
        "visibility = \"partial\"",
        "visibility = \"partial\"\narchetypes = [\"arch\"]",
        "P011",
        "no archetype `arch`",
    ),
    (
        "visibility = \"partial\"",
        "visibility = \"partial\"\noutputs = [\"shear\"]",
        "P011",
        "no output `shear`",
    ),
    ("visibility = \"partial\"", "visibility = \"partial\"\nspan_m = false", "P011", "switched off"),
    (
        "visibility = \"partial\"",
        "visibility = \"partial\"\nspan_m = { min = 9.5, max = 12 }",
        "P015",
        "no value of `span_m`",
    ),
    ("visibility = \"partial\"", "visibility = \"partial\"\nvary = true", "P011", "no parameter `vary`"),
    (
        "visibility = \"partial\"",
        "visibility = \"partial\"\nelastic_modulus_gpa = 30",
        "P018",
        "`difficulty.hard.elastic_modulus_gpa` has no effect",
    ),
    (
        "visibility = \"all_given\"",
        "visibility = \"all_given\"\nreplacement_text = \"x\"",
        "P018",
        "replacement_text` has no effect",
    ),
    (HIDDEN, "hidden_params = [\"elastic_modulus_gpa\"]", "P020", "nothing says how to find it"),
    (
        HIDDEN,
        "[difficulty.hard.derive]\nelastic_modulus_gpa = { rule = \"span_m * (\" }",
        "P016",
        "not an expression",
    ),
    (
        HIDDEN,
        "[difficulty.hard.derive]\nelastic_modulus_gpa = { rule = \"width_m\" }",
        "P011",
        "no quantity `width_m`",
    ),
    (
        HIDDEN,
        "[difficulty.hard.derive]\nelastic_modulus_gpa = { table = \"stuff\" }",
        "P011",
        "no table `stuff`",
    ),
    (HIDDEN, "[difficulty.hard.derive]\nelastic_modulus_gpa = {}", "P005", "a `rule` or a `table`"),
    (HIDDEN, "[difficulty.hard.derive]\nspan_m = { table = \"materials\" }", "P014", "no `span_m`"),
    (
        HIDDEN,
        "[difficulty.hard.derive]\nspan_m = { rule = \"load_kn_per_m\" }\nload_kn_per_m = { rule = \"span_m\" }",
        "P021",
        "need each other",
    ),
    ("span_m = \"mm\"", "span_m = \"kN\"", "P023", "cannot be brought into m"),
    ("span_m = \"mm\"", "span_m = \"m\"", "P018", "has no effect"),
    ("span_m = \"mm\"", "material = \"mm\"", "P018", "has no effect"),
    (
        "[difficulty.hard.derive]",
        "[difficulty.hard.units]\nelastic_modulus_gpa = \"MPa\"\n[difficulty.hard.derive]",
        "P018",
        "units.elastic",
    ),
    ("deflection_mm > 0.5", "sag_mm > 0.5", "P011", "no quantity `sag_mm`"),
    ("deflection_mm > 0.5", "deflection_mm >", "P016", "not an expression"),
    ("deflection_mm > 0.5", "deflection_mm > 5000", "P026", "no draw of `easy`"),
    ("source = \"derived\"", "source = \"\"", "P017", "source is missing"),
    ("method = \"by hand", "method = \"\" # \"by hand", "P017", "how it was derived"),
    ("tolerance = 0.001", "tolerance = 0.5", "P017", "from 0 to 0.1"),
    ("inputs = { span_m = 6, ", "inputs = { ", "P017", "the input `span_m` is missing"),
    ("reaction_kn = 30,", "reaction_kn = 31,", "P017", "the engine gives 30"),
    ("reaction_kn = 30,", "shear_kn = 30,", "P017", "no output `shear_kn`"),
    (
        "[difficulty.hard]",
        "[difficulty.extra]\nvisibility = \"all_given\"\n[difficulty.hard]",
        "P006",
        "difficulty.extra.description",
    ),
];

#[test]
fn every_mistake_in_params_has_its_problem() {
    for (from, to, id, says) in MISTAKES {
        let problems = problems_of(from, to);
        assert!(
            problems.iter().any(|(found, what)| found == id && what.contains(says)),
            "{from} -> {to}: wanted {id} {says}, found {problems:?}"
        );
    }
}

#[test]
fn what_nothing_uses_is_a_problem() {
    for (from, to, says) in [
        (
            "elastic_modulus_gpa = { table = \"materials\" }",
            "elastic_modulus_gpa = { rule = \"span_m * 10\" }",
            "auxiliary.material",
        ),
        (
            "visibility = \"all_given\"\n\n[difficulty.medium]",
            "visibility = \"all_given\"\narchetypes = [\"floor-beam\"]\n\n[difficulty.medium]",
            "",
        ),
    ] {
        let env = with_template();
        change(&env, "params.toml", from, to);
        let run = env.run(["--json", "generate", "validate-template", "templates/beam", "--instances", "2"]);
        let found = run.errors().iter().any(|(id, what)| id == "P018" && what.contains(says));
        assert_eq!(found, !says.is_empty(), "{run:?}");
    }
}

#[test]
fn a_faulty_tier_does_not_spoil_the_others() {
    let env = with_template();
    change(
        &env,
        "params.toml",
        "[difficulty.hard.derive]\nelastic_modulus_gpa = { table = \"materials\" }",
        "[difficulty.hard.units]\nspan_m = \"mm\"",
    );
    change(
        &env,
        "params.toml",
        "visibility = \"partial\"",
        "visibility = \"partial\"\nhidden_params = [\"elastic_modulus_gpa\"]",
    );
    // Nothing uses these any more.
    let text = env.read("templates/beam/params.toml");
    let (start, end) =
        (text.find("[auxiliary.material]").unwrap(), text.find("[outputs.reaction_kn]").unwrap());
    env.write("templates/beam/params.toml", format!("{}{}", &text[..start], &text[end..]));
    let all = env.run(["--json", "generate", "task", "beam"]);
    assert_eq!((all.code, all.errors()[0].0.as_str()), (Some(3), "P020"));
    assert_eq!(env.run(["generate", "task", "beam", "--difficulty", "easy,medium"]).code, Some(0));
}

#[test]
fn parameters_are_drawn_as_their_keys_say() {
    let env = with_template();
    // A limit for each type, in an archetype and in a tier; both apply.
    change(
        &env,
        "params.toml",
        "span_m = { min = 4, max = 9 }",
        "span_m = { min = 4, max = 9 }\nelastic_modulus_gpa = [11, 30]",
    );
    change(
        &env,
        "params.toml",
        "[difficulty.easy]",
        "[difficulty.easy]\nspan_m = [4.2, 8.1, 11.3]\narchetypes = [\"floor-beam\"]\nelastic_modulus_gpa = { min = 20, max = 300 }\nload_kn_per_m = 12.5",
    );
    for task in generate(&env, &["--difficulty", "easy", "--instances", "2"]) {
        let prompt = read(&task, "instruction.md");
        let span = given(&prompt, "span_m").unwrap();
        assert!(["4.2 m", "8.1 m"].contains(&span.as_str()), "{span}");
        assert_eq!(given(&prompt, "elastic_modulus_gpa").unwrap(), "30 GPa");
        assert_eq!(given(&prompt, "load_kn_per_m").unwrap(), "12.5 kN/m");
        let figures = given(&prompt, "second_moment_cm4").unwrap();
        let digits = figures.trim_end_matches(" cm4").trim_end_matches('0').len();
        assert!(digits <= 3, "{figures}");
    }
}

#[test]
fn a_parameter_can_be_switched_off() {
    for (keys, key, expected) in [
        ("optional = true", "load = false", "60 kN/m"),
        ("optional = true\ndefault = 7", "load_kn_per_m = false", "7 kN/m"),
        ("default = 7.5", "load_kn = false", "7.5 kN/m"),
    ] {
        let env = with_template();
        change(&env, "params.toml", "step = 0.5", &format!("step = 0.5\n{keys}"));
        change(&env, "params.toml", "[difficulty.easy]", &format!("[difficulty.easy]\n{key}"));
        let tasks = generate(&env, &["--difficulty", "easy", "--instances", "2"]);
        assert_eq!(given(&read(&tasks[0], "instruction.md"), "load_kn_per_m").unwrap(), expected);
    }
}

#[test]
fn hidden_values_come_from_rules_tables_and_archetypes() {
    let env = with_template();
    change(
        &env,
        "params.toml",
        "[difficulty.hard.derive]",
        "[difficulty.hard.derive]\nload_kn_per_m = { rule = \"span_m * 2 + elastic_modulus_gpa / 100\" }",
    );
    let task = &generate(&env, &["--difficulty", "hard", "--instances", "1"])[0];
    let prompt = read(task, "instruction.md");
    assert!(prompt.contains("`load_kn_per_m` = `span_m * 2 + elastic_modulus_gpa / 100`"), "{prompt}");
    assert!(prompt.contains("| `material` | `elastic_modulus_gpa` (GPa) |"), "{prompt}");
    assert_eq!(given(&prompt, "load_kn_per_m"), None);

    let env = with_template();
    change(
        &env,
        "params.toml",
        "[difficulty.hard.derive]",
        "hidden_params = [\"span_m\"]\nreplacement_text = \"Ask the architect.\"\n[difficulty.hard.derive]",
    );
    change(&env, "params.toml", "step = 0.1", "step = 0.1\nderivable_from = \"archetype\"");
    let open = env.run(["--json", "generate", "task", "beam", "--difficulty", "hard"]);
    assert_eq!(open.errors()[0].0, "P020", "a range cannot be derived: {open:?}");
    change(&env, "params.toml", "span_m = { min = 4, max = 9 }", "span_m = 6");
    change(&env, "params.toml", "[archetypes.roof-beam]", "[archetypes.roof-beam]\nspan_m = 7.5");
    let prompt = read(&generate(&env, &["--difficulty", "hard", "--instances", "1"])[0], "instruction.md");
    assert!(prompt.contains("| a floor beam | 6 |\n| a roof beam | 7.5 |"), "{prompt}");
    assert!(prompt.contains("Ask the architect."), "{prompt}");
}

#[test]
fn a_table_may_reach_up_to_its_keys() {
    let env = with_template();
    change(&env, "params.toml", "key = \"material\"", "key = \"span_m\"\nmatch = \"up_to\"");
    for (material, limit) in [("timber", "5"), ("concrete", "7"), ("aluminium", "9"), ("steel", "12")] {
        change(
            &env,
            "params.toml",
            &format!("{{ material = \"{material}\""),
            &format!("{{ span_m = {limit}"),
        );
    }
    let text = env.read("templates/beam/params.toml");
    let (start, end) = (text.find("[auxiliary.material]").unwrap(), text.find("[tables.materials]").unwrap());
    env.write("templates/beam/params.toml", format!("{}{}", &text[..start], &text[end..]));
    for task in generate(&env, &["--difficulty", "hard"]) {
        let prompt = read(&task, "instruction.md");
        assert!(prompt.contains("| `span_m` (m) up to | `elastic_modulus_gpa` (GPa) |"), "{prompt}");
    }
}

#[test]
fn a_prompt_that_hides_a_given_is_refused() {
    let env = with_template();
    change(&env, "instruction.md", "{{ givens }}", "The span is {{ span_m }} m.");
    let run = env.run(["--json", "generate", "task", "beam"]);
    assert_eq!(run.code, Some(3));
    assert!(run.errors().iter().all(|(id, what)| id == "P024" && what.contains("does not print")), "{run:?}");
    change(&env, "instruction.md", "The span is {{ span_m }} m.", "{{ givens }}");
    change(&env, "instruction.md", "{{ rules }}", "…");
    let run = env.run(["--json", "generate", "task", "beam"]);
    assert!(run.errors()[0].1.contains("does not print the rules of `hard`"), "{run:?}");
    change(&env, "instruction.md", "…", "{{ rulez }}");
    let run = env.run(["--json", "generate", "task", "beam"]);
    assert!(run.errors()[0].1.contains("cannot be rendered"), "{run:?}");
}

#[test]
fn text_is_not_escaped_and_blocks_leave_no_gaps() {
    let env = with_template();
    change(&env, "params.toml", "span of the beam", "span < the hall & > the door | \\\"clear\\\"");
    change(
        &env,
        "instruction.md",
        "Work out:",
        "| a |\n|---|\n{% for row in [1, 2] %}\n| {{ row }} |\n{% endfor %}\n\nWork out:",
    );
    let prompt = read(&generate(&env, &[])[0], "instruction.md");
    assert!(prompt.contains("span < the hall & > the door \\| \"clear\""), "{prompt}");
    assert!(prompt.contains("| a |\n|---|\n| 1 |\n| 2 |\n"), "{prompt}");
}

#[test]
fn a_raising_engine_skips_the_draw_and_says_why() {
    let env = with_template();
    change(
        &env,
        "engine.py",
        "    stiffness_kn_m2",
        "    if span_m > 6:\n        raise ValueError(\"too long\")\n    stiffness_kn_m2",
    );
    let run = env.run(["--json", "generate", "task", "beam", "--instances", "12"]);
    let data = run.data();
    let skipped = data["skipped"].as_array().unwrap();
    assert!(
        skipped.iter().any(|row| row["reason"] == "ValueError: too long (engine.py, line 8)"),
        "{skipped:?}"
    );
    assert_eq!(data["instances"].as_array().unwrap().len(), 12);
}

#[test]
fn an_engine_at_fault_leaves_nothing_behind() {
    for (from, to, says) in [
        ("    if span_m <= 0", "    raise KeyError('x')\n    if span_m <= 0", "the engine fails: KeyError"),
        ("    if span_m <= 0", "    while True: pass\n    if span_m <= 0", "it took more than 5 s"),
        ("    if span_m <= 0", "    x = bytearray(10**11)\n    if span_m <= 0", "MemoryError"),
        ("    if span_m <= 0", "    import os; os._exit(3)\n    if span_m <= 0", "ended without an answer"),
        ("    if span_m <= 0", "    import os; os.kill(os.getpid(), 9)\n    if span_m <= 0", "signal 9"),
        ("    return {", "    return 5\n    return {", "not a dictionary"),
        (
            "        \"reaction_kn\": load_kn_per_m * span_m / 2,",
            "        \"reaction_kn\": float('nan'),",
            "JSON compliant",
        ),
        (
            "        \"reaction_kn\": load_kn_per_m * span_m / 2,",
            "        \"reaction_kn\": True,",
            "is no number",
        ),
        ("        \"reaction_kn\": load_kn_per_m * span_m / 2,", "", "does not give `reaction_kn`"),
        (
            "        \"reaction_kn\":",
            "        \"more\": 1,\n        \"reaction_kn\":",
            "`more`, which is not an output",
        ),
        ("def compute(", "import nonsense\ndef compute(", "ModuleNotFoundError"),
        ("def compute(", "def calculate(", "no function `compute`"),
        ("def compute(span_m,", "def compute(span_mm,", "span_m"),
        ("def compute(", "def compute)(", "SyntaxError"),
    ] {
        let env = with_template();
        change(&env, "engine.py", from, to);
        let run = env.run(["--json", "generate", "task", "beam", "--instances", "1", "--difficulty", "easy"]);
        let said = format!("{:?}", run.envelope()["errors"]);
        assert_eq!(run.code, Some(3), "{says}: {said}");
        assert!(said.contains(says), "{says}: {said}");
        assert!(
            !env.path("tasks/structural").exists()
                || env.run(["--json", "task", "list"]).data()["total"] == 0
        );
        let left: Vec<_> = walk(&env.path("tasks"));
        assert!(left.is_empty(), "{says}: {left:?}");
    }
}

/// Every file below a directory.
pub(crate) fn walk(directory: &std::path::Path) -> Vec<std::path::PathBuf> {
    let Ok(entries) = std::fs::read_dir(directory) else { return Vec::new() };
    let mut found = Vec::new();
    for entry in entries.filter_map(Result::ok) {
        if entry.path().is_dir() {
            found.extend(walk(&entry.path()));
        } else {
            found.push(entry.path());
        }
    }
    found
}

#[test]
fn engines_cannot_reach_out() {
    let env = with_template();
    env.write("secret.txt", "do not read");
    let secret = env.path("secret.txt").display().to_string();
    let probe = format!(
        "    try:\n        open({secret:?}).read()\n        seen = 1\n    except OSError:\n        seen = 0\n    \
         import socket\n    try:\n        socket.create_connection((\"127.0.0.1\", 9), 1)\n        seen += 2\n    \
         except OSError as error:\n        seen += 4 if error.errno == 111 else 0\n    if seen:\n        \
         raise KeyError(seen)\n    if span_m <= 0"
    );
    change(&env, "engine.py", "    if span_m <= 0", &probe);
    let run = env.run(["generate", "task", "beam"]);
    // Exit code 4 would mean that the host's loopback answered.
    assert_eq!(run.code, Some(0), "{run:?}");
}

#[test]
fn engines_may_have_modules_sources_and_fixtures_of_their_own() {
    let env = with_template();
    env.write("templates/beam/constants.py", "GIGA = 1e6\n");
    change(
        &env,
        "engine.py",
        "def compute",
        "from constants import GIGA\n\n\ndef build_sources(params):\n    return {\"data/load.csv\": f\"load\\n{params['load_kn_per_m']}\\n\"}\n\n\ndef build_golden_pass(params, answers):\n    import json\n    return \"Done.\\n```json\\n\" + json.dumps(answers) + \"\\n```\\n\"\n\n\ndef compute",
    );
    change(&env, "engine.py", "elastic_modulus_gpa * 1e6", "elastic_modulus_gpa * GIGA");
    env.write("templates/beam/system_prompt.md", "Be careful.\n");
    let task = &generate(&env, &["--instances", "1"])[0];
    assert!(read(task, "environment/data/load.csv").starts_with("load\n"));
    assert_eq!(read(task, "environment/system_prompt.md"), "Be careful.\n");
    assert!(read(task, "tests/fixtures/golden_pass.md").starts_with("Done."));
    assert!(read(task, "environment/Dockerfile").contains("COPY data/load.csv /workspace/data/load.csv"));
    assert_eq!(env.run(["verify", "--all"]).code, Some(0));
    change(&env, "engine.py", "\"data/load.csv\"", "\"../load.csv\"");
    let run = env.run(["--json", "generate", "task", "beam", "--seed", "1"]);
    assert!(run.errors()[0].1.contains("`../load.csv`, which is not allowed"), "{run:?}");
}

#[test]
fn a_verifier_of_ones_own_gets_the_values() {
    let env = with_template();
    env.write(
        "templates/beam/verify.py",
        "import json, pathlib\ninstance = json.loads(pathlib.Path('/tests/instance.json').read_text())\n\
         try:\n    given = json.loads(pathlib.Path('/workspace/output.json').read_text())\nexcept Exception:\n    given = {}\n\
         reward = float(given.get('reaction_kn') == instance['ground_truth']['reaction_kn'])\n\
         pathlib.Path('/logs/verifier').mkdir(parents=True, exist_ok=True)\n\
         pathlib.Path('/logs/verifier/reward.json').write_text(json.dumps({'reward': reward}))\n",
    );
    change(&env, "instruction.md", "Work out:", "Write `/workspace/output.json`. Work out:");
    let task = &generate(&env, &["--instances", "1"])[0];
    let instance: Value = serde_json::from_str(&read(task, "tests/instance.json")).unwrap();
    assert!(instance["parameters"]["span_m"].is_number());
    assert!(!task.join("tests/answers.json").exists());
    let judged = env.run(["verify", "--all"]);
    assert_eq!(judged.code, Some(0), "{judged:?}");
}

#[test]
fn strange_files_and_names_are_refused() {
    let env = with_template();
    env.write("templates/beam/notes.txt", "x");
    let run = env.run(["--json", "generate", "validate-template", "templates/beam"]);
    assert_eq!(run.errors()[0].0, "P010");
    std::fs::remove_file(env.path("templates/beam/notes.txt")).unwrap();
    std::fs::remove_file(env.path("templates/beam/engine.py")).unwrap();
    std::os::unix::fs::symlink("/etc/passwd", env.path("templates/beam/engine.py")).unwrap();
    let run = env.run(["--json", "generate", "validate-template", "templates/beam"]);
    assert_eq!(run.errors()[0].0, "P001");
    assert_eq!(env.run(["generate", "validate-template", "templates/nothing"]).code, Some(3));
    for bad in ["beam", "a/b/c", "/x", "civil/", "civil/..", "civil/a b"] {
        assert_eq!(env.run(["template", "new", bad]).code, Some(2), "{bad}");
    }
    assert_eq!(env.run(["template", "new", "structural/beam"]).code, Some(3), "it exists");
}

#[test]
fn a_template_of_the_project_takes_the_place_of_a_built_in_one() {
    let env = with_template();
    let beam = env.read("templates/beam/params.toml");
    for file in ["engine.py", "instruction.md"] {
        env.write(format!("templates/voltage-drop/{file}"), env.read(format!("templates/beam/{file}")));
    }
    let taken =
        beam.replace("name = \"beam\"", "name = \"voltage-drop\"").replace("structural", "electrical");
    env.write("templates/voltage-drop/params.toml", &taken);
    let rows = env.run(["--json", "generate", "list-templates", "--filter", "name=voltage-drop"]).data();
    assert_eq!(rows.as_array().unwrap().len(), 1);
    assert!(rows[0]["origin"].is_string());
    // The same name in another discipline is another template, so the full name is required.
    env.write("templates/voltage-drop/params.toml", taken.replace("electrical", "ground"));
    let run = env.run(["--json", "generate", "task", "voltage-drop"]);
    assert_eq!(run.errors()[0].0, "P031", "{run:?}");
    assert_eq!(env.run(["generate", "task", "ground/voltage-drop", "--dry-run"]).code, Some(0));
    let near = env.run(["generate", "task", "voltage-dorp"]);
    assert!(near.stderr.contains("did you mean `voltage-drop`?"), "{near:?}");
}
