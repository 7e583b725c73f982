//! A run of evolution: lineage, scores by cycle, accepted and rejected changes, cost. The same page stands in the site
//! and in a file of its own.

use aec_evolve::view::View;

use crate::html::Html;

/// The page as one file that needs nothing else.
pub fn standalone(view: &View) -> String {
    let mut html = Html::default();
    html.raw("<!doctype html>\n<html lang=\"en\"><meta charset=\"utf-8\"><title>").text(view.run.as_str()).raw("</title>\n");
    for candidate in &view.candidates {
        html.raw("<h2>").text(candidate.name.as_str()).raw("</h2>\n");
        if let Some(diff) = &candidate.diff {
            html.verbatim(diff);
        }
    }
    html.into_string()
}
