//! Tests of report templates.

use std::path::Path;

use proptest::prelude::*;

use super::*;

const GOOD: &str = r#"
[meta]
voice = "plain"

[[sections]]
id = "summary"
title = "Summary"
depends_on = ["loads", "site"]
generation_mode = "creative"
writing_guidance = ["Be brief"]

[[sections]]
id = "site"
title = "Site"
fields = [{ name = "area", dtype = "float", unit = "m2", required = true }]
input_mapping = { sources = ["survey.md", "letter.md", "notes.txt"], priority = { "letter.md" = 1, "survey.md" = 2 } }

[[sections]]
id = "loads"
title = "Loads"
depends_on = ["site"]
writing_guidance = { summary = "Loads as given", rules = ["State units"] }
input_mapping = ["loads.csv"]
[sections.fields]
wind = "float"
snow = { dtype = "float", tolerance = 0.1 }

[[sections]]
id = "drawings"
title = "Drawings"
generation_mode = "external"
"#;

fn read(text: &str) -> (Option<ReportTemplate>, Vec<Problem>) {
    ReportTemplate::read(Path::new("t.toml"), text, Tier::DependencyTree, None)
}

fn mapped(text: &str) -> (Option<ReportTemplate>, Vec<Problem>) {
    let mapping = SourceMapping { path: Path::new("source_mapping.toml"), text };
    ReportTemplate::read(Path::new("t.toml"), GOOD, Tier::DependencyTree, Some(mapping))
}

fn ids((template, problems): (Option<ReportTemplate>, Vec<Problem>)) -> Vec<String> {
    assert!(template.is_none(), "{template:?}");
    assert!(problems.iter().all(|problem| problem.file.is_some() && problem.fix.is_some()), "{problems:?}");
    problems.into_iter().map(|problem| problem.id.unwrap()).collect()
}

fn sections(list: &[(&str, &str)]) -> String {
    list.iter()
        .map(|(id, rest)| format!("[[sections]]\nid = \"{id}\"\ntitle = \"{id} title\"\n{rest}\n"))
        .collect::<Vec<_>>()
        .concat()
}

#[test]
fn short_and_long_forms_are_read() {
    let (template, problems) = read(GOOD);
    assert!(problems.is_empty(), "{problems:?}");
    let template = template.unwrap();
    let order: Vec<&str> = template.order().map(|section| section.id.as_str()).collect();
    assert_eq!(order, ["site", "loads", "summary", "drawings"]);
    let site = template.section("site").unwrap();
    let priorities: Vec<_> =
        site.input_mapping.sources.iter().map(|(label, rank)| (label.as_str(), *rank)).collect();
    assert_eq!(priorities, [("survey.md", 2), ("letter.md", 1), ("notes.txt", 3)]);
    let loads = template.section("loads").unwrap();
    assert_eq!(loads.fields[0], Field { name: "wind".into(), dtype: "float".into(), ..Field::default() });
    assert_eq!((loads.fields[1].name.as_str(), loads.fields[1].tolerance), ("snow", Some(0.1)));
    assert_eq!(loads.writing_guidance.summary.as_deref(), Some("Loads as given"));
    assert_eq!(template.meta.voice.as_deref(), Some("plain"));
}

#[test]
fn what_lies_over_a_template_replaces_sources() {
    let (template, problems) = mapped("[sections.site]\nsources = ['survey.md', 'new.md']");
    assert!(problems.is_empty(), "{problems:?}");
    let template = template.unwrap();
    let sources = &template.section("site").unwrap().input_mapping.sources;
    assert_eq!((sources["survey.md"], sources["new.md"], sources.len()), (2, 3, 2));
    assert_eq!(ids(mapped("[sections.sight]\nsources = []")), ["O071"]);
    assert_eq!(ids(mapped("[sections.site]\nsources = ['a', 'a', '']")), ["O071", "O071"]);
    assert_eq!(ids(mapped("[sections.site]\nsource = ['a']")), ["O003"]);
    assert_eq!(ids(mapped("x")), ["O002"]);
}

#[test]
fn dependencies_are_checked_at_load() {
    for (list, expected) in [
        (vec![("a", "depends_on = ['b']")], "O067"),
        (vec![("a", "depends_on = ['a']")], "O067"),
        (vec![("a", ""), ("b", "depends_on = ['a', 'a']")], "O067"),
        (vec![("a", ""), ("a", "")], "O066"),
    ] {
        assert_eq!(ids(read(&sections(&list))), [expected], "{list:?}");
    }
    let circle = sections(&[
        ("x", "depends_on = ['b']"),
        ("a", "depends_on = ['c']"),
        ("b", "depends_on = ['a']"),
        ("c", "depends_on = ['b']"),
    ]);
    let problems = read(&circle).1;
    assert_eq!(problems[0].id.as_deref(), Some("O068"));
    assert!(problems[0].what.ends_with("b → a → c → b"), "{}", problems[0].what);
    let flat = ReportTemplate::read(Path::new("t"), GOOD, Tier::Flat, None);
    assert_eq!(ids(flat), ["O069", "O069"]);
}

#[test]
fn what_is_not_supported_is_refused() {
    for (text, expected) in [
        (sections(&[("a", "generation_mode = 'compose'")]), "O061"),
        (sections(&[("a", "blocks = []")]), "O061"),
        (sections(&[("a", "per_discipline = true")]), "O061"),
        (sections(&[("a", "")]) + "[boilerplate]\npath = 'x'", "O061"),
        (sections(&[("a", "generation_mode = 'transfrom'")]), "O005"),
        (sections(&[("a", "generation_mode = 'boilerplate'")]), "O071"),
        (sections(&[("a", "input_mapping = {sources = ['x'], priority = {y = 1}}")]), "O071"),
        (sections(&[("a", "input_mapping = ['x', 'x']")]), "O071"),
        (sections(&[("a", "fields = [{name = 'x'}, {name = 'x'}]")]), "O066"),
        (sections(&[("a", "fields = [{dtype = 'x'}]")]), "O006"),
        (sections(&[("a", "fields = {x = 3}")]), "O004"),
        (sections(&[("a", "fields = {x = {dtyp = 'x'}}")]), "O003"),
        (sections(&[("a", "fields = 3")]), "O004"),
        (sections(&[("a", "writing_guidance = 'x'")]), "O004"),
        (sections(&[("a", "writing_guidance = {rule = []}")]), "O003"),
        (sections(&[("a b", "")]), "O005"),
        ("[[sections]]\nid = 'a'".to_owned(), "O006"),
        ("[[sections]]\ntitle = 'a'".to_owned(), "O006"),
        (String::new(), "O006"),
        ("sections = 3".to_owned(), "O004"),
        ("[[section]]\nid = 'a'".to_owned(), "O003"),
        ("\0".to_owned(), "O002"),
        ("#".repeat(2 << 20), "O072"),
        (sections(&[("a", "id = 'b'")]), "O002"),
    ] {
        assert_eq!(ids(read(&text)), [expected], "{}", text.chars().take(200).collect::<String>());
    }
    let (template, problems) = read(&(sections(&[("a", "")]) + "[rubric]\nrollup_strategy = 'x'"));
    assert!(template.is_some());
    assert_eq!(problems[0].id.as_deref(), Some("O070"));
}

proptest! {
    #[test]
    fn an_order_respects_dependencies_or_a_circle_is_named(
        edges in proptest::collection::vec((0usize..8, 0usize..8), 0..14),
    ) {
        let needs = |at: usize| {
            let mut needs: Vec<usize> = edges.iter().filter(|(from, _)| *from == at).map(|(_, to)| *to).collect();
            needs.sort_unstable();
            needs.dedup();
            needs
        };
        let text = (0..8)
            .map(|at| {
                let list: Vec<String> = needs(at).iter().map(|other| format!("'s{other}'")).collect();
                format!("[[sections]]\nid = 's{at}'\ntitle = 't'\ndepends_on = [{}]\n", list.join(","))
            })
            .collect::<Vec<_>>().concat();
        match read(&text) {
            (Some(template), _) => {
                let order: Vec<String> = template.order().map(|section| section.id.clone()).collect();
                prop_assert_eq!(order.len(), 8);
                for (from, to) in &edges {
                    let place = |at: &usize| order.iter().position(|id| *id == format!("s{at}"));
                    prop_assert!(place(to) < place(from));
                }
            }
            (None, problems) => {
                prop_assert!(problems.iter().all(|problem| matches!(problem.id.as_deref(), Some("O067" | "O068"))));
            }
        }
    }

    #[test]
    fn no_template_is_too_strange(text in "\\PC{0,100}|(\\[\\[sections\\]\\]\n|id = 'a'\n|title = 'b'\n|fields = |depends_on = |[\\[\\]{}=,.'a]){0,40}") {
        let (template, problems) = read(&text);
        prop_assert!(template.is_some() || !problems.is_empty());
    }
}
