//! Tests of splitting.

use proptest::prelude::*;

use super::*;

const FORMS: [Form; 4] = [Form::Text, Form::Csv, Form::Json, Form::Toml];

fn limits(max_chars: usize) -> Limits {
    Limits { max_chars, max_context_chars: 100, chunks: None }
}

/// Splits, and checks the properties that every split has.
fn parts(text: &str, form: Form, limits: Limits) -> Vec<&str> {
    let chunks = split(text, form, limits);
    let mut at = 0;
    for chunk in &chunks {
        assert_eq!(chunk.range.start, at);
        assert!(chunk.range.end > at);
        at = chunk.range.end;
        let chars = text[chunk.range.clone()].chars().count();
        assert_eq!(chars, chunk.chars);
        assert!(chars <= limits.max_chars.max(1), "{chars} > {}", limits.max_chars);
        if let Some(context) = &chunk.context {
            assert!(context.end <= chunk.range.start);
            assert!(text[context.clone()].chars().count() <= limits.max_context_chars);
        }
    }
    assert_eq!(at, text.len());
    let total = text.chars().count();
    let least = total.div_ceil(limits.max_chars.max(1));
    match limits.chunks {
        Some(wanted) => assert_eq!(chunks.len(), wanted.max(least).min(total)),
        None => assert!(chunks.len() >= least),
    }
    assert_eq!(split(text, form, limits), chunks);
    chunks.into_iter().map(|chunk| &text[chunk.range]).collect()
}

fn halves(text: &str, form: Form) -> Vec<&str> {
    parts(text, form, Limits { max_chars: text.len(), max_context_chars: 100, chunks: Some(2) })
}

#[test]
fn the_best_boundary_wins() {
    for (text, second) in [
        ("aaaa bbbb.\n\nCccc dddd.\u{c}eeee ffff gggg hhhh", "eeee"),
        ("aaaa bbbb cccc\n\ndddd eeee\n# Title\nffff gggg\n\nhhhh iiii", "# Title"),
        ("aaaa bbbb cccc\n\n## Low\ndddd\n\n# High\nffff gggg hhhh iiii", "# High"),
        ("aaaa bbbb cccc dddd\n\nTitle\n=====\nffff gggg hhhh iiii", "Title\n"),
        ("aaaa bbbb cccc dddd\n\n2.1 Title here\n\nffff gggg hhhh", "2.1 Title"),
        ("aaaa bbbb cccc dddd.\n\n2. Title\n\nffff gggg\n\nhhhh iiii jjjj", "2. Title"),
        ("aaaa bbbb cccc dddd\neeee\n\nffff gggg hhhh iiii jjjj", "ffff"),
        ("aaaa bbbb cccc dddd. Eeee ffff\ngggg hhhh iiii jjjj", "Eeee"),
        ("aaaa bbbb cccc dddd eeee\nffff gggg hhhh iiii", "ffff"),
        ("aaaabbbbccccdddd eeeeffffgggghhhh", "eeee"),
        ("- aaaa\n- bbbb bb\n- cccc dddd. Eeee\n- ffff\n- gggg", "- cccc"),
    ] {
        for text in [text.to_owned(), text.replace('\n', "\r\n")] {
            let parts = halves(&text, Form::Text);
            assert!(parts[1].replace('\r', "").starts_with(second), "{parts:?}");
        }
    }
}

#[test]
fn a_comment_in_code_is_no_heading() {
    let text = "aaaa bbbb cccc\n\ndddd\n\n```\n# code\nx\n```\neeee ffff gggg hhhh";
    assert!(halves(text, Form::Text)[1].starts_with("```"));
}

#[test]
fn a_cut_table_knows_its_header() {
    let rows = (0..40).map(|at| format!("| {at} | x |\n")).collect::<Vec<_>>().concat();
    let text = format!("Before.\n\n| a | b |\n|---|---|\n{rows}\nAfter the table comes text.");
    let chunks = split(&text, Form::Text, limits(120));
    assert!(chunks.len() > 3);
    for chunk in &chunks[1..chunks.len() - 1] {
        assert!(text[chunk.range.clone()].starts_with('|'));
        assert_eq!(&text[chunk.context.clone().unwrap()], "| a | b |\n|---|---|\n");
    }
    assert_eq!(chunks[0].context, None);
    let narrow = Limits { max_context_chars: 5, ..limits(120) };
    assert!(split(&text, Form::Text, narrow).iter().all(|chunk| chunk.context.is_none()));
    let after =
        format!("{}\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n{}", "word ".repeat(40), "Text here. ".repeat(40));
    let last = split(&after, Form::Text, limits(200)).pop().unwrap();
    assert_eq!(last.context, None);
}

#[test]
fn rows_of_csv_stay_whole() {
    let rows =
        (0..50).map(|at| format!("{at},\"line one\nline \"\"two\"\"\",z\r\n")).collect::<Vec<_>>().concat();
    let text = format!("id,text,more\r\n{rows}");
    let chunks = split(&text, Form::Csv, limits(500));
    for chunk in &chunks[1..] {
        assert!(text[chunk.range.clone()].starts_with(|letter: char| letter.is_ascii_digit()));
        assert_eq!(&text[chunk.context.clone().unwrap()], "id,text,more\r\n");
    }
    let open = format!("a,b\n{}", "1,\"x\n".repeat(51));
    assert!(
        split(&open, Form::Csv, limits(50))
            .iter()
            .skip(1)
            .all(|chunk| open[chunk.range.clone()].starts_with("1,"))
    );
}

#[test]
fn items_of_json_and_toml_stay_whole() {
    let items: Vec<String> =
        (0..30).map(|at| format!("{{\"id\": {at}, \"text\": \"a, b }}\", \"n\": [1, 2]}}")).collect();
    let text = format!("[\n  {}\n]", items.join(",\n  "));
    for part in parts(&text, Form::Json, limits(600)).iter().skip(1) {
        assert!(part.starts_with("{\"id\""), "{part}");
    }
    let lines = items.join("\n");
    for part in parts(&lines, Form::Json, limits(600)).iter().skip(1) {
        assert!(part.starts_with("{\"id\""), "{part}");
    }
    let tables = (0..30)
        .map(|at| format!("[t{at}]\nx = \"\"\"\n[no]\n\"\"\"\ny = {at}\n"))
        .collect::<Vec<_>>()
        .concat();
    for part in parts(&tables, Form::Toml, limits(300)).iter().skip(1) {
        assert!(part.starts_with("[t"), "{part}");
    }
}

#[test]
fn parts_are_about_equal() {
    let text = "Words of a sentence that ends. ".repeat(400);
    let sizes: Vec<usize> = parts(&text, Form::Text, Limits { chunks: Some(7), ..limits(5_000) })
        .iter()
        .map(|part| part.len())
        .collect();
    assert!(sizes.iter().all(|size| size.abs_diff(text.len() / 7) < 62), "{sizes:?}");
}

#[test]
fn edges() {
    assert!(split("", Form::Text, limits(10)).is_empty());
    assert_eq!(parts("a", Form::Text, limits(0)), ["a"]);
    assert_eq!(parts("äöü", Form::Text, limits(1)), ["ä", "ö", "ü"]);
    assert_eq!(parts("abc", Form::Text, Limits { chunks: Some(9), ..limits(3) }).len(), 3);
    assert_eq!(Form::of_name("a/b.CSV"), Form::Csv);
    assert_eq!(Form::of_name("a/b"), Form::Text);
}

/// A splitter that looked back over the line for each part would take hours.
#[test]
fn a_long_line_is_cut_into_equal_parts() {
    for (megabytes, forms) in [(16, &FORMS[..]), (100, &[Form::Text][..])] {
        for form in forms.iter().copied() {
            let text = "x".repeat(megabytes << 20);
            assert_eq!(split(&text, form, limits(100_000)).len(), text.len().div_ceil(87_500));
        }
    }
}

fn text() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        Just("\r\n".to_owned()),
        Just("\n".to_owned()),
        Just("\n\n".to_owned()),
        Just("\u{c}".to_owned()),
        Just("# H\n".to_owned()),
        Just("1.2 Title\n".to_owned()),
        Just("===\n".to_owned()),
        Just("---\n".to_owned()),
        Just("| a | b |\n|---|---|\n".to_owned()),
        Just("| 1 | 2 |\n".to_owned()),
        Just("```\n".to_owned()),
        Just("\"".to_owned()),
        Just("\"\"\"".to_owned()),
        Just("[a.b]\n".to_owned()),
        Just("{\"a\": [1, 2]},".to_owned()),
        Just("Some words. And more! ".to_owned()),
        "\\PC{0,12}",
        "[äö€𝄞\u{301} ]{0,6}",
        ".{0,8}",
    ];
    proptest::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn every_split_covers_the_source(text in text(), size in 0usize..60, wanted in proptest::option::of(0usize..40), header in 0usize..40) {
        for form in FORMS {
            parts(&text, form, Limits { max_chars: size, max_context_chars: header, chunks: wanted });
        }
    }
}
