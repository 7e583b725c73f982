//! The pages, and the frame around them.

pub(crate) mod artefact;
pub(crate) mod audits;
pub(crate) mod compare;
pub(crate) mod datasets;
pub(crate) mod evolution;
pub(crate) mod experiment;
pub(crate) mod experiments;
pub(crate) mod leaderboard;
pub(crate) mod library;
mod marks;
pub(crate) mod pair;
mod reader;
pub(crate) mod search;
pub(crate) mod templates;
pub(crate) mod trial;
mod trials;

use aec_base::label::Labels;
use aec_base::problem::{Problem, Severity};

use crate::assets;
use crate::href::{self, Asked, Href};
use crate::html::{Cell, Html};
use crate::respond::Trouble;
use crate::words;

/// Most rows of a page.
pub(crate) const ROWS: usize = 100;

pub(crate) struct Page {
    title: String,
    /// The part of the site that it belongs to: the beginning of its address.
    section: &'static str,
    body: Html,
}

impl Page {
    pub(crate) fn new(title: impl Into<String>, section: &'static str, body: Html) -> Self {
        Self { title: title.into(), section, body }
    }
}

const SECTIONS: [(&str, &str); 8] = [
    ("", "Experiments"),
    ("leaderboard", "Leaderboard"),
    ("compare", "Compare"),
    ("evolution", "Evolution"),
    ("library", "Tasks"),
    ("templates", "Templates"),
    ("datasets", "Datasets"),
    ("audits", "Audits"),
];

pub(crate) fn frame(project: &str, page: &Page) -> String {
    let mut html = Html::default();
    html.raw("<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n")
        .raw("<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>")
        .text(&page.title)
        .raw(" · ")
        .text(project)
        .raw("</title>\n<link rel=\"icon\" href=\"")
        .text(assets::ICON.href().as_str())
        .raw("\">\n<link rel=\"stylesheet\" href=\"")
        .text(assets::STYLES.href().as_str())
        .raw("\">\n<script src=\"")
        .text(assets::THEME.href().as_str())
        .raw("\"></script>\n<script src=\"")
        .text(assets::SCRIPT.href().as_str())
        .raw("\" defer></script>\n</head>\n<body>\n<a class=\"skip\" href=\"#main\">Skip to content</a>\n")
        .raw("<header class=\"bar\"><h1><a href=\"/\" class=\"data\">")
        .text(project)
        .raw("</a></h1><nav aria-label=\"Parts\">");
    for (section, title) in SECTIONS {
        let href = if section.is_empty() { Href::new::<&str>([]) } else { Href::new([section]) };
        html.raw("<a href=\"").text(href.as_str()).raw("\"");
        if section == page.section {
            html.raw(" aria-current=\"page\"");
        }
        html.raw(">").text(title).raw("</a>");
    }
    html.raw("</nav><form action=\"/search\" role=\"search\"><input type=\"search\" name=\"q\" id=\"search\" placeholder=\"Search  ( / )\" aria-label=\"Search\"></form>")
        .raw("<button type=\"button\" id=\"theme\" class=\"needs-script\">Light / dark</button></header>\n<main id=\"main\">\n")
        .add(&page.body)
        .raw("</main>\n<footer><p>Reads only. Keys: <kbd>/</kbd> search, <kbd>j</kbd> <kbd>k</kbd> move in a list, <kbd>Enter</kbd> open, <kbd>[</kbd> <kbd>]</kbd> previous and next trial, <kbd>e</kbd> next error in a trace.</p></footer>\n</body>\n</html>\n");
    html.into_string()
}

/// A page that tells why there is none.
pub(crate) fn trouble(trouble: &Trouble, outside: bool) -> Page {
    let mut body = Html::default();
    let title = trouble.status.canonical_reason().unwrap_or("No page");
    body.raw("<h1>")
        .text(trouble.status.as_str())
        .raw(" · ")
        .text(title)
        .raw("</h1>\n<div class=\"empty-page\"><p>");
    body.prose(&sentence(&trouble.what)).raw("</p><p>").prose(&sentence(&trouble.fix)).raw("</p></div>\n");
    Page::new(title, if outside { "-" } else { "?" }, body)
}

fn sentence(text: &str) -> String {
    let mut characters = text.chars();
    let Some(first) = characters.next() else { return String::new() };
    let end = if text.ends_with(['.', '?']) { "" } else { "." };
    format!("{}{}{end}", first.to_uppercase(), characters.as_str())
}

pub(crate) struct Pager {
    page: usize,
    total: usize,
}

impl Pager {
    pub(crate) fn new(asked: &Asked, total: usize) -> Self {
        let last = total.div_ceil(ROWS).max(1);
        let page = asked.number("page").and_then(|page| usize::try_from(page).ok()).unwrap_or(1);
        Self { page: page.clamp(1, last), total }
    }

    pub(crate) fn range(&self) -> std::ops::Range<usize> {
        let first = (self.page - 1) * ROWS;
        first..(first + ROWS).min(self.total)
    }

    /// Adds links to the previous and next pages.
    pub(crate) fn show(&self, html: &mut Html, asked: &Asked, noun: &str) {
        let range = self.range();
        html.raw("<p class=\"pager\">");
        let link = |html: &mut Html, page: usize, text: &str| {
            html.link(&asked.without("page").with("page", &page.to_string()), text);
        };
        if self.page > 1 {
            link(html, self.page - 1, "‹ Previous page");
        }
        let shown = match self.total {
            0 => format!("no {noun}"),
            total if total <= ROWS => format!("{} {noun}", words::count(total)),
            total => format!(
                "{} – {} of {} {noun}",
                words::count(range.start + 1),
                words::count(range.end),
                words::count(total)
            ),
        };
        html.raw("<span>").text(&shown).raw("</span>");
        if range.end < self.total {
            link(html, self.page + 1, "Next page ›");
        }
        html.raw("</p>\n");
    }
}

/// Adds a box that tells the user how to begin.
pub(crate) fn empty(html: &mut Html, what: &str, command: &str) {
    html.raw("<div class=\"empty-page\"><p>").text(what).raw("</p><pre>").text(command).raw("</pre></div>\n");
}

/// A link to a task.
pub(crate) fn task_link(labels: &Labels, id: &str) -> Cell {
    Cell::label_link(href::task(id), labels.get(id), id)
}

/// Adds problems. What they are about is shown with its label if it has one.
pub(crate) fn problems(html: &mut Html, problems: &[Problem], labels: &Labels) {
    for problem in problems.iter().take(ROWS) {
        html.raw(match problem.severity {
            Severity::Error => "<div class=\"problem error\"><p>",
            Severity::Warning => "<div class=\"problem warning\"><p>",
            Severity::Note => "<div class=\"problem\"><p>",
        });
        html.text(&problem.severity.to_string());
        if let Some(id) = &problem.id {
            html.raw(" <code>").text(id).raw("</code>");
        }
        if let Some(about) = &problem.about {
            html.raw(" <b class=\"data\">").label(labels.get(about), about).raw("</b>");
        }
        html.raw(": ").prose(&problem.what).raw("</p>");
        for part in [&problem.why, &problem.fix].into_iter().flatten() {
            html.raw("<p class=\"quiet\">").prose(part).raw("</p>");
        }
        html.raw("</div>\n");
    }
    if problems.len() > ROWS {
        html.hint(&format!("and {} more", words::count(problems.len() - ROWS)));
    }
}

/// Adds a breadcrumb trail.
pub(crate) fn crumbs(html: &mut Html, links: &[(Href, &str)]) {
    html.raw("<p class=\"crumbs\">");
    for (href, text) in links {
        html.link(href, text).raw(" / ");
    }
    html.raw("</p>\n");
}
