//! Tables at different widths.

use super::*;
use unicode_width::UnicodeWidthStr as _;

const LONG: &str = "generated/suite/civil/pipes/school-easy-20260524-000";

fn table(width: Option<usize>, arguments: &TableArguments) -> String {
    let mut table = Table::new(["TASK", "MEAN", "MODEL", "FAULTS", "TAGS", "ABOUT"])
        .spare(["TAGS", "FAULTS"])
        .cut_front(["TASK"])
        .cut(["MODEL"])
        .wrap(["ABOUT"]);
    table.view = View::of(width, arguments);
    table.row([LONG, "0.667 of 1,024", "gpt-4.1-mini", "0", "a b c", "one sentence that goes on"]);
    table.row(["electrical/voltage-drop", "1.000 of 6", "-", "0", "", "short"]);
    table.label_tasks("TASK");
    anstream::adapter::strip_str(&table.render()).to_string()
}

#[test]
fn a_table_fits_its_terminal_and_numbers_stay_whole() {
    let wide = table(None, &TableArguments::default());
    assert!(wide.contains(LONG) && wide.contains("a b c"), "{wide}");
    for columns in 16..200 {
        let fits = table(Some(columns), &TableArguments::default());
        assert!(fits.lines().all(|row| row.width() <= columns), "{columns}: {fits}");
        assert!(columns < 24 || fits.contains("0.667 of 1,024"), "{columns}: {fits}");
    }
    let all = TableArguments { wide: true, columns: Vec::new() };
    assert_eq!(table(Some(40), &all), wide);
}

#[test]
fn columns_that_say_nothing_go_first_then_others_then_cells_shrink_and_then_rows_become_blocks() {
    let at = |columns| table(Some(columns), &TableArguments::default());
    assert!(
        at(130).starts_with("TASK                     MEAN            MODEL         FAULTS  TAGS   ABOUT\n")
    );
    assert!(at(90).contains("(no room for FAULTS; --wide shows everything)"), "{}", at(90));
    assert!(at(78).contains("(no room for FAULTS, TAGS; --wide shows"), "{}", at(78));
    let narrow = at(60);
    assert!(narrow.contains("…") && narrow.lines().count() > 4, "{narrow}");
    assert!(at(30).starts_with("TASK    pipes/school-easy\nMEAN    0.667 of 1,024\n"), "{}", at(30));
}

#[test]
fn named_columns_are_shown_in_their_order() {
    let chosen = TableArguments { wide: false, columns: vec!["mean".to_owned(), "TASK".to_owned()] };
    let text = table(Some(60), &chosen);
    assert!(text.starts_with("MEAN            TASK\n0.667 of 1,024  pipes/school-easy\n"), "{text}");
    assert!(chosen.check(&[&["TASK"], &["MEAN"]]).is_ok());
    assert!(chosen.check(&[&["TASK"]]).is_err());
}

#[test]
fn a_table_without_a_named_column_is_shown_as_it_is_and_keyed_ones_keep_their_first() {
    let chosen = |name: &str| TableArguments { wide: false, columns: vec![name.to_owned()] };
    let shown = |arguments: &TableArguments| {
        let mut table = Table::new(["AGENT", "MEAN"]).keyed();
        table.view = View::of(None, arguments);
        table.row(["a", "1"]);
        anstream::adapter::strip_str(&table.render()).to_string()
    };
    assert_eq!(shown(&chosen("mean")), "AGENT  MEAN\na      1\n");
    assert_eq!(shown(&chosen("task")), "AGENT  MEAN\na      1\n");
}

#[test]
fn facts_have_no_header_and_wrap() {
    let mut table = Table::facts();
    table.view = View::of(Some(20), &TableArguments::default());
    table.row(["path", "a/b"]);
    table.row(["summary", "words that go on"]);
    let text = anstream::adapter::strip_str(&table.render()).to_string();
    assert_eq!(text, "path     a/b\nsummary  words that\n         go on\n");
}
