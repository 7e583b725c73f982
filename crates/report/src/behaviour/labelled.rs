//! Turns that were labelled by hand, and the share of them that the rules get right.

use aec_ledger::transcript::turns::{Call, CallResult, Turn};
use serde_json::json;

use super::kind::Kind::{Deliberation as D, Execution as E, Exploration as X, Verification as V};
use super::labelled_turns::{Case, SEEN};
use super::rules::label;
use super::trace::{DeclaredTool, TaskFacts, Trace};

/// Written by the same person after the last adjustment of the rules, and never used to adjust them.
const FRESH: &[Case] = &[
    (X, false, "Okay, first things first: what do we have here?", &["ls /workspace/inputs"]),
    (X, false, "", &["xxd inputs/drawing.pdf | head -4; file inputs/drawing.pdf"]),
    (X, false, "Reading the whole table before deciding anything.", &["less inputs/loads.csv"]),
    (
        X,
        false,
        "It is unclear whether 12.5 includes the self-weight. If it does, nothing is to be added; if it does not, about 0.2 kN/m are missing.",
        &[],
    ),
    (
        X,
        false,
        "",
        &[
            "python3 - <<'EOF'\nimport csv\nfor row in csv.reader(open('inputs/loads.csv')):\n    print(row)\nEOF",
        ],
    ),
    (X, false, "No manual. Trying the usual flags.", &["tools/beam_calc.py --help || tools/beam_calc.py -h"]),
    (X, false, "", &["grep -rn NOTE . | head; git log --oneline | head -3"]),
    (
        E,
        false,
        "The tool needs JSON on standard input, so here it is.",
        &["echo '{\"span\": 6, \"load\": 12.5}' | python3 tools/beam_calc.py --json -"],
    ),
    (
        E,
        false,
        "",
        &[
            "python3 - <<'EOF' > output.json\nimport json\nprint(json.dumps({'moment_knm': 12.5*6**2/8}))\nEOF",
        ],
    ),
    (
        E,
        true,
        "Rounding to two decimals as required.",
        &[
            "python3 -c \"import json; d=json.load(open('output.json')); d={k: round(v,2) for k,v in d.items()}; json.dump(d, open('output.json','w'))\"",
        ],
    ),
    (E, false, "", &["R=$(echo 'scale=3; 75/2' | bc); echo $R"]),
    (E, false, "Done. The governing case is wind uplift with 38.2 kN and the anchor holds 45 kN.", &[]),
    (
        E,
        false,
        "",
        &[
            "mkdir -p build; cat > build/run.sh <<'EOF'\npython3 tools/beam_calc.py --span 6 --load 12.5\nEOF\nchmod +x build/run.sh; build/run.sh",
        ],
    ),
    (E, true, "Now let me submit.", &["submit_answer||done"]),
    (E, false, "| quantity | value |\n|---|---|\n| moment | 56.25 kNm |\n| shear | 37.5 kN |", &[]),
    (V, true, "", &["echo ---; cat output.json; echo ---; ls -l output.json"]),
    (V, true, "Let me run the numbers a second time in another way.", &["awk 'BEGIN { print 75*6/8 }'"]),
    (
        V,
        true,
        "",
        &[
            "python3 - <<'EOF'\nimport json\nd = json.load(open('output.json'))\nfor k in ('moment_knm', 'shear_kn'):\n    assert k in d, k\nEOF",
        ],
    ),
    (
        V,
        true,
        "Before handing in I go through the requirements once more: keys present, units as asked, decimals with a point. All good.",
        &[],
    ),
    (V, true, "The tool says 56.25, by hand I get 56.3. The difference is rounding.", &[]),
    (V, true, "", &["cmp output.json work.json && echo same"]),
    (V, true, "Oops, I divided by 4 and not by 8. That doubles the moment.", &[]),
    (V, false, "", &["shellcheck run.sh && python3 -m py_compile solve.py"]),
    (
        D,
        false,
        "Equilibrium gives two unknown reactions and two equations. Moments about A yield B, and the vertical sum yields A.",
        &[],
    ),
    (
        D,
        false,
        "For the pump, head is static lift plus friction. Friction goes with the square of the flow, which rules out the smaller pipe.",
        &[],
    ),
    (
        D,
        false,
        "I'll proceed as follows. Loads, then combinations, then section forces, then the check of the section; deflection comes last as it depends on the section chosen.",
        &[],
    ),
    (
        D,
        false,
        "Breaker rating must exceed 54 A but stay below what the cable carries, 63 A. The only standard size in between is 63 A itself, hence 63 A.",
        &[],
    ),
    (D, false, "With n = 0.013 and S = 0.0088, V = 1.31 m/s, and Q = V A = 0.0199 m3/s.", &[]),
];

fn trace(case: &Case) -> Trace {
    let (_, written, text, calls) = case;
    let call = |line: &&str| {
        let mut parts = line.splitn(3, '|');
        let (name, path, content) = (parts.next().unwrap(), parts.next(), parts.next());
        match (name, path) {
            ("read_file" | "view_file" | "list_files" | "write_file" | "edit_file", Some(path)) => Call {
                name: name.into(),
                arguments: json!({ "path": path, "content": content }),
                ..Call::default()
            },
            ("submit_answer" | "think", Some(_)) => {
                Call { name: name.into(), arguments: json!({ "answer": content }), ..Call::default() }
            }
            ("beam-calc", Some(line)) => {
                Call { name: name.into(), arguments: json!({ "command": line }), ..Call::default() }
            }
            _ => Call { name: "bash".into(), command: Some((*line).into()), ..Call::default() },
        }
    };
    let before = Turn {
        index: 1,
        calls: vec![Call {
            name: "write_file".into(),
            arguments: json!({ "path": "output.json", "content": "{}" }),
            ..Call::default()
        }],
        results: vec![CallResult { exit_code: Some(0), ..CallResult::default() }],
        ..Turn::default()
    };
    let turn = Turn {
        index: 2,
        text: (*text).into(),
        calls: calls.iter().map(call).collect(),
        results: calls
            .iter()
            .map(|_| CallResult { stdout: "ok".into(), exit_code: Some(0), ..CallResult::default() })
            .collect(),
        ..Turn::default()
    };
    Trace {
        turns: if *written { vec![before, turn] } else { vec![turn] },
        task: TaskFacts {
            input_files: vec![
                "inputs/loads.csv".into(),
                "inputs/notes.txt".into(),
                "inputs/drawing.pdf".into(),
            ],
            declared_tools: vec![DeclaredTool {
                name: "beam-calc".into(),
                path: Some("tools/beam_calc.py".into()),
            }],
            output_path: "/workspace/output.json".into(),
            root: None,
        },
        ..Trace::default()
    }
}

/// How many the rules get right.
fn right(cases: &[Case]) -> usize {
    let mut right = 0;
    for case in cases {
        let labels = label(&trace(case));
        let found = labels.last().unwrap();
        if found.kind == case.0 {
            right += 1;
        } else {
            println!(
                "{} taken for {} ({:?}): {} {:?}",
                case.0.name(),
                found.kind.name(),
                found.evidence,
                case.2,
                case.3
            );
        }
    }
    right
}

#[test]
fn turns_that_shaped_the_rules_are_labelled_right() {
    let right = right(SEEN);
    println!("seen: {right} of {}", SEEN.len());
    assert!(right * 100 >= SEEN.len() * 95, "{right} of {}", SEEN.len());
}

#[test]
fn most_turns_written_after_the_rules_are_labelled_right() {
    let right = right(FRESH);
    println!("fresh: {right} of {}", FRESH.len());
    assert!(right * 100 >= FRESH.len() * 70, "{right} of {}", FRESH.len());
}
