//! Tests of the scorer as a whole.

use std::time::{Duration, Instant};

use proptest::prelude::*;

use super::*;

mod files;

const SHEET: &str = r#"{"version": 1, "output": "results/output.json", "fields": {
    "moment": {"type": "number", "value": 12.5, "unit": "kN.m", "rel_tol": 0.01, "meaning": "at midspan"},
    "n_bolts": {"type": "integer", "value": 1234},
    "compliant": {"type": "boolean", "value": true},
    "grade": {"type": "choice", "value": "C30/37", "options": ["C30/37", "C25/30"], "aliases": {"c30": "C30/37"}},
    "standard": {"type": "text", "accept": ["AS 3600", "AS3600:2018"]},
    "loads": {"type": "list", "items": [1, 2, 3], "item": {"type": "number", "unit": "kN", "rel_tol": 0.01}},
    "beams": {"type": "table", "key": "beam", "columns": {
        "beam": {"type": "text"}, "load": {"type": "number", "unit": "kN", "sig": 3}, "ok": {"type": "boolean"}},
        "rows": [{"beam": "B1", "load": 12.34, "ok": true}, {"beam": "B2", "load": 5, "ok": false}]}
}}"#;

fn sheet() -> Answers {
    Answers::parse(SHEET.as_bytes()).unwrap()
}

/// An answers file with one field named `x`.
fn one(spec: &str) -> Answers {
    let text = format!(r#"{{"version": 1, "output": "output.json", "fields": {{"x": {spec}}}}}"#);
    Answers::parse(text.as_bytes()).unwrap_or_else(|error| panic!("{error}: {spec}"))
}

fn status(answers: &Answers, submission: &str) -> Status {
    score(answers, submission.as_bytes()).fields[0].status
}

fn field(answers: &Answers, submission: &str, name: &str) -> FieldScore {
    score(answers, submission.as_bytes()).fields.into_iter().find(|field| field.name == name).unwrap()
}

const RIGHT: &str = r#"{"moment": 12.5, "n_bolts": 1234, "compliant": true, "grade": "C30/37",
    "standard": "AS 3600", "loads": [1, 2, 3],
    "beams": [{"beam": "B1", "load": 12.3, "ok": true}, {"beam": "B2", "load": 5, "ok": false}]}"#;

#[test]
fn a_right_answer_is_right_in_every_wrapping() {
    let encoded = serde_json::to_string(RIGHT).unwrap();
    for (what, text) in [
        ("plain", RIGHT.to_owned()),
        ("fenced", format!("```json\n{RIGHT}\n```")),
        ("fenced with tildes", format!("text\n  ~~~~ JSON\n{RIGHT}\n  ~~~~\n")),
        ("one line", format!("```{}```", RIGHT.replace('\n', " "))),
        ("unclosed fence", format!("Answer:\n```\n{RIGHT}")),
        ("prose", format!("I don't like {{braces}} or {{'quotes: {RIGHT} it's done, \\frac{{1}}{{2}}")),
        ("carriage returns", RIGHT.replace('\n', "\r\n")),
        ("mark", format!("\u{feff}{RIGHT}")),
        ("twice", format!("{RIGHT}\n\nFinal:\n{RIGHT}")),
        ("an unrelated block behind", format!("{RIGHT}\n{{\"notes\": [1, 2], \"n\": {{}}}}")),
        ("an example with places to fill", format!("{{\"moment\": <number>, \"n_bolts\": ...}}\n{RIGHT}")),
        ("wrapped", format!("{{\"answer\": {RIGHT}}}")),
        ("in a list", format!("[{RIGHT}]")),
        ("encoded twice", encoded),
        ("typographic quotes", RIGHT.replace(": \"", ": “").replace('"', "”")),
        ("comments", RIGHT.replace(",\n", ", // as computed\n")),
        ("trailing commas", RIGHT.replace(']', ",]").replace('}', ",}")),
        ("Python", RIGHT.replace("true", "True").replace("false", "False").replace('"', "'")),
        ("NumPy", RIGHT.replace("12.5", "np.float64(12.5)").replace("1234", "np.int64(1234)")),
        ("bare keys", RIGHT.replace("\"moment\"", "moment")),
        ("other keys", RIGHT.replace("n_bolts", "N Bolts").replace("moment", "Moment")),
        ("extra keys", RIGHT.replace("\"moment\"", "\"note\": \"none\", \"moment\"")),
        (
            "table by key",
            RIGHT
                .replace(r#"[{"beam": "B1","#, r#"{"B1": {"#)
                .replace(r#"{"beam": "B2", "load": 5, "ok": false}]"#, r#""B2": {"load": 5, "ok": false}}"#),
        ),
    ] {
        let found = score(&sheet(), text.as_bytes());
        assert!(found.reward > 0.999_999_5, "{what}: {}\n{text}", found.to_details_json());
    }
    let wide: Vec<u8> =
        [0xff, 0xfe].into_iter().chain(RIGHT.encode_utf16().flat_map(u16::to_le_bytes)).collect();
    assert!(score(&sheet(), &wide).reward > 0.999_999_5, "UTF-16");
    let latin: Vec<u8> =
        format!("temperature 20 @C {RIGHT}").replace('@', "\u{b0}").chars().map(|c| c as u8).collect();
    assert!(score(&sheet(), &latin).reward > 0.999_999_5, "Latin-1");
}

#[test]
fn numbers() {
    let answers = one(r#"{"type": "number", "value": 12500, "unit": "N", "rel_tol": 0.01}"#);
    for (given, expected) in [
        ("12500", Status::Correct),
        ("12500.0", Status::Correct),
        ("\"12500\"", Status::Correct),
        ("\"12,500\"", Status::Correct),
        ("\"12\u{202f}500 N\"", Status::Correct),
        ("\"12.5 kN\"", Status::Correct),
        ("12.5 kN", Status::Correct),
        ("1.25e4", Status::Correct),
        ("\"1.25 × 10⁴ N\"", Status::Correct),
        ("{\"value\": 12.5, \"unit\": \"kN\"}", Status::Correct),
        ("{\"Value\": \"12.5\", \"UNITS\": \"kN\", \"note\": \"rounded\"}", Status::Correct),
        ("{\"value\": \"12.5 kN\", \"unit\": \"kN\"}", Status::Correct),
        ("{\"value\": 12500, \"unit\": null}", Status::Correct),
        ("12.5", Status::Wrong),
        ("-12500", Status::Wrong),
        ("12700", Status::Wrong),
        ("12625", Status::Correct),
        ("12625.1", Status::Wrong),
        ("\"12.5 kg\"", Status::WrongUnit),
        ("\"12500 units\"", Status::WrongUnit),
        ("{\"value\": 12500, \"unit\": \"furlong\"}", Status::WrongUnit),
        ("{\"value\": \"12.5 kN\", \"unit\": \"N\"}", Status::Invalid),
        ("{\"value\": \"12500 N\", \"unit\": \"newtons\"}", Status::Correct),
        ("{\"value\": 12500, \"value\": 13}", Status::Contradictory),
        ("{\"force\": 12500}", Status::Invalid),
        ("[12500]", Status::Correct),
        ("[12500, 12500]", Status::Invalid),
        ("[[12500]]", Status::Invalid),
        ("true", Status::Invalid),
        ("\"12,5\"", Status::Invalid),
        ("\"12500 or 13000\"", Status::Invalid),
        ("\"12400-12600\"", Status::Invalid),
        ("\"about 12500\"", Status::Correct),
        ("\"at least 12500\"", Status::Invalid),
        ("\"...\"", Status::Missing),
        ("NaN", Status::Invalid),
        ("Infinity", Status::Invalid),
        ("1e999", Status::Invalid),
        ("null", Status::Missing),
        ("\" \"", Status::Missing),
    ] {
        assert_eq!(status(&answers, &format!("{{\"x\": {given}}}")), expected, "{given}");
    }
}

#[test]
fn tolerances_are_edges_that_belong_to_the_inside() {
    for (spec, inside, outside) in [
        (r#"{"type": "number", "value": 0.3, "abs_tol": 0.1}"#, ["0.4", "0.2"], ["0.4000001", "0.1999999"]),
        (r#"{"type": "number", "value": 123.456, "sig": 3}"#, ["123", "123.956"], ["124", "122.9"]),
        (
            r#"{"type": "number", "value": 0.0001234, "sig": 2}"#,
            ["0.00012", "0.000128"],
            ["0.00013", "0.000118"],
        ),
        (r#"{"type": "number", "value": 0, "abs_tol": 0.5}"#, ["0.5", "-0.5"], ["0.51", "-0.51"]),
        (
            r#"{"type": "number", "value": 5, "abs_tol": 0, "rel_tol": 0}"#,
            ["5", "5.000"],
            ["5.0001", "4.9999"],
        ),
        (r#"{"type": "number", "value": 100, "rel_tol": 0.01, "sig": 1}"#, ["150", "50"], ["151", "49"]),
        (
            r#"{"type": "number", "value": 20, "unit": "degC", "abs_tol": 0.1}"#,
            ["\"68 F\"", "\"293.15 K\""],
            ["\"20 K\"", "20.2"],
        ),
        (
            r#"{"type": "number", "value": 20, "unit": "K", "difference": true, "abs_tol": 0.1}"#,
            ["\"20 °C\"", "\"36 °F\""],
            ["\"293.15 °C\"", "21"],
        ),
        (
            r#"{"type": "number", "value": 45, "unit": "%", "rel_tol": 0.01}"#,
            ["\"45 %\"", "{\"value\": 0.45, \"unit\": \"-\"}"],
            ["0.45", "\"0.45 %\""],
        ),
        (
            r#"{"type": "number", "value": 0.45, "rel_tol": 0.01}"#,
            ["\"45%\"", "0.45"],
            ["45", "\"0.45 rad\""],
        ),
        (
            r#"{"type": "number", "value": 6, "rel_tol": 0, "unit_words": ["bolts"]}"#,
            ["\"6 bolts\"", "6"],
            ["\"6 nuts\"", "\"6 m\""],
        ),
    ] {
        let answers = one(spec);
        for given in inside {
            assert_eq!(status(&answers, &format!("{{\"x\": {given}}}")), Status::Correct, "{spec} {given}");
        }
        for given in outside {
            assert_ne!(status(&answers, &format!("{{\"x\": {given}}}")), Status::Correct, "{spec} {given}");
        }
    }
}

#[test]
fn whole_numbers_are_exact() {
    let answers = one(r#"{"type": "integer", "value": "9007199254740993"}"#);
    for (given, expected) in [
        ("9007199254740993", Status::Correct),
        ("9007199254740993.0", Status::Correct),
        ("\"9,007,199,254,740,993\"", Status::Correct),
        ("9007199254740992", Status::Wrong),
        ("9007199254740993.5", Status::Wrong),
        ("9.007199254740993e15", Status::Correct),
        ("\"9007199254740993 kN\"", Status::WrongUnit),
    ] {
        assert_eq!(status(&answers, &format!("{{\"x\": {given}}}")), expected, "{given}");
    }
    let answers = one(r#"{"type": "integer", "value": 25, "unit": "mm"}"#);
    for (given, expected) in [
        ("\"25 mm\"", Status::Correct),
        ("\"0.025 m\"", Status::Correct),
        ("\"25 cm\"", Status::Wrong),
        ("25", Status::Correct),
    ] {
        assert_eq!(status(&answers, &format!("{{\"x\": {given}}}")), expected, "{given}");
    }
}

#[test]
fn words() {
    let boolean = one(r#"{"type": "boolean", "value": true, "true_words": ["adequate"]}"#);
    let choice = one(
        r#"{"type": "choice", "value": "Non-compliant", "options": ["Non-compliant", "compliant"], "aliases": {"NC": "Non-compliant"}}"#,
    );
    let text = one(r#"{"type": "text", "accept": ["pump house", "pumping station"]}"#);
    for (answers, given, expected) in [
        (&boolean, "true", Status::Correct),
        (&boolean, "\"Yes.\"", Status::Correct),
        (&boolean, "\"PASS\"", Status::Correct),
        (&boolean, "\"Adequate\"", Status::Correct),
        (&boolean, "\"fail\"", Status::Wrong),
        (&boolean, "\"yes or no\"", Status::Invalid),
        (&boolean, "1", Status::Invalid),
        (&choice, "\"NON COMPLIANT\"", Status::Correct),
        (&choice, "\"non_compliant\"", Status::Correct),
        (&choice, "\"nc\"", Status::Correct),
        (&choice, "\"compliant\"", Status::Wrong),
        (&choice, "\"compliant or non-compliant\"", Status::Invalid),
        (&choice, "[\"non-compliant\"]", Status::Correct),
        (&choice, "\"FAIL ❌\"", Status::Correct),
        (&choice, "\"OK\"", Status::Wrong),
        (&boolean, "\"OK\"", Status::Invalid),
        (&boolean, "\"yes?\"", Status::Invalid),
        (&text, "\"  Pump  House. \"", Status::Correct),
        (&text, "\"pumphouse\"", Status::Wrong),
        (&text, "\"pump house, or not\"", Status::Wrong),
        (&text, "\"**Pump house** (at the canal)\"", Status::Correct),
        (&text, "\"pump house (or not)\"", Status::Wrong),
    ] {
        assert_eq!(status(answers, &format!("{{\"x\": {given}}}")), expected, "{given}");
    }
    // Two accepted texts are one answer; two other texts are not.
    assert_eq!(status(&text, r#"{"x": "pump house", "x": "pumping station"}"#), Status::Correct);
    assert_eq!(status(&text, r#"{"x": "pump house", "x": "garage"}"#), Status::Contradictory);
}

#[test]
fn two_values_for_one_key_count_as_none() {
    let answers = sheet();
    for text in [
        r#"{"moment": 12.5, "moment": 13}"#,
        r#"{"moment": 12.5, "Moment": "13"}"#,
        "{\"moment\": 12.5}\n{\"moment\": 13}",
        "```json\n{\"moment\": 12.5}\n```\nor\n```json\n{\"moment\": 99}\n```",
        r#"{"draft": {"moment": 12.5}, "final": {"moment": 13}}"#,
        r#"[{"moment": 12.5}, {"moment": "oops"}]"#,
        r#"{"moment": 12.5, "moment_kNm": 13}"#,
        r#"{"moment": 12.5, "other": {"moment": 13}}"#,
        r#"{"n_bolts": 6, "a": {"moment": 12.5}, "b": {"moment": 13}}"#,
    ] {
        assert_eq!(field(&answers, text, "moment").status, Status::Contradictory, "{text}");
    }
    for text in [
        r#"{"moment": 12.5, "moment": "12500 N.m"}"#,
        "{\"moment\": null}\n{\"moment\": 12.5}",
        r#"{"inputs": {"span": 6}, "answer": {"moment": 12.5}}"#,
        r#"{"moment": 12.5, "units": {"moment": "kN.m"}, "notes": {"moment": "at midspan"}}"#,
        r#"{"n_bolts": 6, "results": {"moment": 12.5}}"#,
        "{\"moment\": \"<number>\"}\n{\"moment\": 12.5}",
    ] {
        assert_eq!(field(&answers, text, "moment").status, Status::Correct, "{text}");
    }
    let many = "{\"moment\": 12.5}\n".repeat(65);
    let found = score(&answers, many.as_bytes());
    assert!(found.reward == 0.0 && found.fields.iter().all(|field| field.status == Status::Contradictory));
    assert_eq!(field(&answers, &"{\"moment\": 12.5}\n".repeat(64), "moment").status, Status::Correct);
    let repeated = |count| format!("{{{}}}", vec!["\"moment\": 12.5"; count].join(", "));
    assert_eq!(field(&answers, &repeated(64), "moment").status, Status::Correct);
    assert_eq!(field(&answers, &repeated(65), "moment").status, Status::Contradictory);
}

#[test]
fn lists_and_tables_score_in_part() {
    let answers = sheet();
    for (key, given, expected, status) in [
        ("loads", "[3, 1, 2]", 1.0, Status::Correct),
        ("loads", "[\"2000 N\", 1.0, 3.0]", 1.0, Status::Correct),
        ("loads", "[1, 2]", 2.0 / 3.0, Status::Partial),
        ("loads", "[1, 1, 1]", 1.0 / 3.0, Status::Partial),
        ("loads", "[1, 2, 3, 4, 5, 6]", 0.5, Status::Partial),
        ("loads", "[7, 8]", 0.0, Status::Wrong),
        ("loads", "[]", 0.0, Status::Wrong),
        ("loads", "5", 0.0, Status::Invalid),
        ("loads", "\"1, 2, 3\"", 0.0, Status::Invalid),
        (
            "beams",
            r#"[{"beam": "b2", "ok": "no", "load": "5000 N"}, {"beam": "B1", "load": 12.3, "ok": true}]"#,
            1.0,
            Status::Correct,
        ),
        ("beams", r#"[{"beam": "B1", "load": 12.3, "ok": true}]"#, 0.5, Status::Partial),
        ("beams", r#"[{"beam": "B1"}, {"beam": "B2"}]"#, 0.0, Status::Wrong),
        // An identical row counts once; a repeated row with other cells is wrong and counts as two.
        (
            "beams",
            r#"[{"beam": "B1", "load": 12.3, "ok": true}, {"beam": "b1", "load": 12.3, "ok": "yes"}]"#,
            0.5,
            Status::Partial,
        ),
        (
            "beams",
            r#"[{"beam": "B1", "load": 12.3, "ok": true}, {"beam": "B1", "load": 9, "ok": true}, {"beam": "B2", "load": 5, "ok": false}]"#,
            2.0 / 6.0,
            Status::Partial,
        ),
        (
            "beams",
            r#"[{"beam": "B1", "load": 12.3, "load": 9, "ok": true}, {"beam": "B2", "load": 5, "ok": false}]"#,
            0.75,
            Status::Partial,
        ),
        ("beams", "[1, 2]", 0.0, Status::Invalid),
    ] {
        let found = field(&answers, &format!("{{\"{key}\": {given}}}"), key);
        assert!((found.score - expected).abs() < 1e-12 && found.status == status, "{given}: {found:?}");
    }
    // The best assignment, not the first that fits: 10.4 must be matched so that 10 remains for 9.7.
    let close = one(r#"{"type": "list", "items": [10, 10.6], "item": {"type": "number", "abs_tol": 0.5}}"#);
    assert_eq!(status(&close, r#"{"x": [10.4, 9.7]}"#), Status::Correct);
    let ordered = one(r#"{"type": "list", "ordered": true, "items": ["a", "b"], "item": {"type": "text"}}"#);
    assert_eq!(status(&ordered, r#"{"x": ["b", "a"]}"#), Status::Wrong);
    let none = one(r#"{"type": "list", "items": [], "item": {"type": "text"}}"#);
    assert_eq!(status(&none, r#"{"x": []}"#), Status::Correct);
    assert_eq!(status(&none, r#"{"x": ["a"]}"#), Status::Wrong);
}

#[test]
fn what_cannot_be_read_has_a_problem() {
    let answers = sheet();
    for (bytes, problem) in [
        (b"".to_vec(), "the submission is empty"),
        (b" \r\n\t".to_vec(), "the submission is empty"),
        (b"The moment is 12.5 kNm.".to_vec(), "the submission has no JSON object with an expected key"),
        (b"{\"moment\": 12.5".to_vec(), "the submission has no JSON object with an expected key"),
        (b"{\"other\": 12.5}".to_vec(), "the submission has no JSON object with an expected key"),
        (vec![b'x'; MAX_SUBMISSION + 1], "the submission is larger than 1 MiB"),
    ] {
        let found = score(&answers, &bytes);
        assert_eq!(found.problem.as_deref(), Some(problem));
        assert!(found.reward == 0.0 && found.fields.iter().all(|field| field.status == Status::Missing));
    }
    let found = score_unreadable(&answers, Unreadable::Missing);
    assert_eq!(found.to_reward_json(), "{\"reward\": 0.0}\n");
}

#[test]
fn the_reward_is_weighted_and_one_only_if_all_is_right() {
    let answers = Answers::parse(
        br#"{"version": 1, "output": "o.json", "fields": {
        "a": {"type": "integer", "value": 1, "weight": 3}, "b": {"type": "integer", "value": 2, "weight": 0.000001}}}"#,
    )
    .unwrap();
    assert_eq!(score(&answers, br#"{"a": 1, "b": 2}"#).to_reward_json(), "{\"reward\": 1.0}\n");
    assert_eq!(score(&answers, br#"{"a": 1, "b": 3}"#).to_reward_json(), "{\"reward\": 0.999999}\n");
    assert_eq!(score(&answers, br#"{"a": 2, "b": 2}"#).to_reward_json(), "{\"reward\": 0.0}\n");
    let sheet = sheet();
    assert_eq!(score(&sheet, br#"{"moment": 12.5}"#).to_reward_json(), "{\"reward\": 0.142857}\n");
}

#[test]
fn attacks_take_linear_time() {
    let answers = sheet();
    let size = MAX_SUBMISSION;
    for attack in [
        "{".repeat(size),
        "{\"a\":".repeat(size / 5),
        "{/*".repeat(size / 3),
        "{#".repeat(size / 2),
        "{'".repeat(size / 2),
        "```\n{".repeat(size / 5),
        "{}".repeat(size / 2),
        format!("{{\"a\": \"{}", "\\".repeat(size - 20)),
        format!("{{\"moment\": {}}}", "1".repeat(size - 20)),
        format!("{{\"loads\": [{}]}}", "1,".repeat(size / 2 - 20)),
        format!("{{\"beams\": [{}]}}", "{},".repeat(size / 3 - 20)),
        "{\"moment\":1},".repeat(size / 14),
        format!("{{{}}}", "\"moment_k_N_m_s\":1,".repeat(size / 20)),
        format!("{{\"n_bolts\": 1, {}}}", "\"a\":{\"moment\":1},".repeat(size / 20)),
        format!("{{\"standard\": \"{}\"}}", "**a** ".repeat(size / 6 - 20)),
        format!("{{\"beams\": [{}]}}", "{\"load_kN\":\".\"},".repeat(size / 18 - 20)),
        format!("{{{}}}", format!("\"compliant\": \"yes ({})\",", "a b ".repeat(29)).repeat(size / 150)),
    ] {
        let started = Instant::now();
        let found = score(&answers, attack.as_bytes());
        assert!(found.reward == 0.0);
        let took = started.elapsed();
        assert!(took < Duration::from_secs(10), "{took:?} for {}", &attack[..20]);
    }
    let deep = |depth: usize| format!("{{\"moment\": {}1{}}}", "[".repeat(depth), "]".repeat(depth));
    assert_eq!(field(&answers, &deep(63), "moment").status, Status::Invalid);
    assert_eq!(field(&answers, &deep(64), "moment").status, Status::Missing);
}

proptest! {
    #[test]
    fn no_bytes_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let found = score(&sheet(), &bytes);
        prop_assert!((0.0..=1.0).contains(&found.reward));
        prop_assert!(Answers::parse(&bytes).is_err());
    }

    #[test]
    fn no_text_panics(text in "[{}\\[\\]\"':,\\\\/#*a-f0-9. \n×²−°%kNm_-]{0,80}", name in "(moment|n_bolts|loads|beams)") {
        let text = format!("{{\"{name}\": {text}}} {text}");
        let found = score(&sheet(), text.as_bytes());
        prop_assert!((0.0..=1.0).contains(&found.reward));
        let details: serde_json::Value = serde_json::from_str(&found.to_details_json()).unwrap();
        prop_assert_eq!(details["reward"].as_f64(), Some(found.reward));
    }

    #[test]
    fn a_number_within_tolerance_is_right_and_one_outside_is_wrong(value in -1e6..1e6_f64, off in -3.0..3.0_f64) {
        prop_assume!(value.abs() > 1e-3 && (off.abs() - 1.0).abs() > 1e-6);
        let answers = one(&format!(r#"{{"type": "number", "value": {value:?}, "unit": "kN", "rel_tol": 0.01}}"#));
        let given = value * (1.0 + 0.01 * off) * 1000.0;
        let found = status(&answers, &format!("{{\"x\": \"{given} N\"}}"));
        prop_assert_eq!(found, if off.abs() < 1.0 { Status::Correct } else { Status::Wrong });
    }
}
