//! Markup that is safe by its types: only literals of this program are markup, everything else becomes text.

use aec_report::html::escape;

use crate::href::Href;

/// Texts up to this many characters are not broken into lines.
const SHORT: usize = 24;

/// A longer fact takes two columns.
const LONG: usize = 34;

#[derive(Clone, Debug, Default)]
pub(crate) struct Html(String);

impl Html {
    pub(crate) fn of(text: &str) -> Self {
        let mut html = Self::default();
        html.text(text);
        html
    }

    /// Adds markup, which must be a literal.
    pub(crate) fn raw(&mut self, markup: &'static str) -> &mut Self {
        self.0.push_str(markup);
        self
    }

    /// Adds text, as content or as the value of a quoted attribute.
    pub(crate) fn text(&mut self, text: &str) -> &mut Self {
        self.0.push_str(&escape(text));
        self
    }

    pub(crate) fn add(&mut self, other: &Self) -> &mut Self {
        self.0.push_str(&other.0);
        self
    }

    pub(crate) fn link(&mut self, href: &Href, text: &str) -> &mut Self {
        self.raw("<a href=\"").text(href.as_str()).raw("\">").text(text).raw("</a>")
    }

    /// Adds a label, with the whole name on demand.
    pub(crate) fn label(&mut self, label: &str, whole: &str) -> &mut Self {
        if label == whole {
            return self.text(label);
        }
        self.raw("<span title=\"").text(whole).raw("\">").text(label).raw("</span>")
    }

    /// Adds a link whose text is a label.
    pub(crate) fn label_link(&mut self, href: &Href, label: &str, whole: &str) -> &mut Self {
        if label == whole {
            return self.link(href, label);
        }
        self.raw("<a href=\"").text(href.as_str()).raw("\" title=\"").text(whole);
        self.raw("\">").text(label).raw("</a>")
    }

    pub(crate) fn heading(&mut self, text: &str) -> &mut Self {
        self.raw("<h2>").text(text).raw("</h2>\n")
    }

    /// Adds text with commands in backticks.
    pub(crate) fn prose(&mut self, text: &str) -> &mut Self {
        for (at, part) in text.split('`').enumerate() {
            if at % 2 == 1 {
                self.raw("<code>").text(part).raw("</code>");
            } else {
                self.text(part);
            }
        }
        self
    }

    /// Adds a remark in small letters.
    pub(crate) fn hint(&mut self, text: &str) -> &mut Self {
        self.raw("<p class=\"hint\">").prose(text).raw("</p>\n")
    }

    /// Adds an important remark.
    pub(crate) fn note(&mut self, text: &str) -> &mut Self {
        self.raw("<p class=\"note\">").prose(text).raw("</p>\n")
    }

    /// Adds untrusted text unchanged, line by line.
    pub(crate) fn verbatim(&mut self, text: &str) -> &mut Self {
        // A line break right after the tag would be swallowed.
        self.raw("<pre class=\"data\">\n").text(text).raw("</pre>\n")
    }

    /// Adds data for the script. It is never run: its type is not a script, and no `<` is left to end it.
    pub(crate) fn json(&mut self, id: &'static str, value: &impl serde::Serialize) -> &mut Self {
        let text = serde_json::to_string(value).unwrap_or_else(|_| "null".to_owned());
        self.raw("<script type=\"application/json\" id=\"").raw(id).raw("\">");
        self.0.push_str(&text.replace('<', "\\u003c").replace('>', "\\u003e").replace('&', "\\u0026"));
        self.raw("</script>\n")
    }

    pub(crate) fn into_string(self) -> String {
        self.0
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Align {
    Left,
    Right,
}

/// Titles of columns and their alignment.
pub(crate) type Columns<'a> = &'a [(&'static str, Align)];

#[derive(Clone, Debug)]
pub(crate) enum Cell {
    Text(String),
    Link(Href, String),
    Label(Label),
    /// Text in a colour that shows how good it is; the text tells it too.
    Result(Class, String),
    Html(Html),
}

/// A short name for a whole one, which is shown on demand.
#[derive(Clone, Debug)]
pub(crate) struct Label {
    href: Option<Href>,
    short: String,
    whole: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Class {
    Pass,
    Partial,
    Fail,
    Fault,
}

impl Class {
    /// The class of a reward that counts.
    pub(crate) fn of(reward: Option<f64>) -> Self {
        match reward {
            Some(reward) if aec_report::selection::is_full(reward) => Self::Pass,
            Some(reward) if reward > 0.0 => Self::Partial,
            Some(_) => Self::Fail,
            None => Self::Fault,
        }
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Partial => "partial",
            Self::Fail => "fail",
            Self::Fault => "fault",
        }
    }

    /// The CSS class of an element.
    pub(crate) fn style(self) -> &'static str {
        match self {
            Self::Pass => "r-pass",
            Self::Partial => "r-partial",
            Self::Fail => "r-fail",
            Self::Fault => "r-fault",
        }
    }
}

impl Cell {
    pub(crate) fn label(label: impl Into<String>, whole: impl Into<String>) -> Self {
        Self::Label(Label { href: None, short: label.into(), whole: whole.into() })
    }

    /// A link whose text is a label.
    pub(crate) fn label_link(href: Href, label: impl Into<String>, whole: impl Into<String>) -> Self {
        Self::Label(Label { href: Some(href), short: label.into(), whole: whole.into() })
    }

    /// The number of characters it shows; a large number for anything but text.
    fn length(&self) -> usize {
        match self {
            Self::Text(text) | Self::Link(_, text) | Self::Result(_, text) => text.chars().count(),
            Self::Label(Label { short, .. }) => short.chars().count(),
            Self::Html(_) => usize::MAX,
        }
    }

    fn write(&self, html: &mut Html) {
        match self {
            Self::Text(text) => html.text(text),
            Self::Link(href, text) => html.link(href, text),
            Self::Label(Label { href: Some(href), short, whole }) => html.label_link(href, short, whole),
            Self::Label(Label { href: None, short, whole }) => html.label(short, whole),
            Self::Result(class, text) => {
                html.raw("<span class=\"").raw(class.style()).raw("\">").text(text).raw("</span>")
            }
            Self::Html(inner) => html.add(inner),
        };
    }
}

impl From<String> for Cell {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<&str> for Cell {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

/// Adds a table, whose rows can be walked with the keyboard. Empty columns are left out.
pub(crate) fn table(html: &mut Html, columns: Columns<'_>, rows: impl IntoIterator<Item = Vec<Cell>>) {
    let rows: Vec<Vec<Cell>> = rows.into_iter().collect();
    let is_used = |at: usize| rows.iter().any(|row| row.get(at).is_some_and(|cell| cell.length() > 0));
    let used: Vec<bool> = (0..columns.len()).map(|at| rows.is_empty() || is_used(at)).collect();
    html.raw("<div class=\"scroll\"><table class=\"summary list\"><thead><tr>");
    for ((title, align), _) in columns.iter().zip(&used).filter(|(_, used)| **used) {
        html.raw(if *align == Align::Right {
            "<th class=\"n\" scope=\"col\">"
        } else {
            "<th scope=\"col\">"
        });
        html.text(title).raw("</th>");
    }
    html.raw("</tr></thead>\n<tbody>\n");
    for row in &rows {
        html.raw("<tr>");
        for ((cell, (_, align)), _) in row.iter().zip(columns).zip(&used).filter(|(_, used)| **used) {
            html.raw(match align {
                Align::Right => "<td class=\"n\">",
                Align::Left if cell.length() <= SHORT => "<td class=\"data short\">",
                Align::Left => "<td class=\"data\">",
            });
            cell.write(html);
            html.raw("</td>");
        }
        html.raw("</tr>\n");
    }
    html.raw("</tbody></table></div>\n");
}

/// Adds a list of facts: trusted names, untrusted values. Empty values are left out.
pub(crate) fn facts(html: &mut Html, facts: &[(&'static str, Cell)]) {
    html.raw("<dl class=\"facts\">");
    for (name, value) in facts {
        let length = value.length();
        if length == 0 {
            continue;
        }
        html.raw(if length > LONG { "<div class=\"long\"><dt>" } else { "<div><dt>" });
        html.text(name).raw("</dt><dd class=\"data\">");
        value.write(html);
        html.raw("</dd></div>");
    }
    html.raw("</dl>\n");
}

/// Adds a selection box.
pub(crate) fn select(
    html: &mut Html,
    name: &'static str,
    label: &str,
    all: &str,
    words: &[&str],
    chosen: Option<&str>,
) {
    select_labelled(html, name, label, all, words.iter().map(|word| (*word, *word)), chosen);
}

/// Adds a selection box whose words have labels.
pub(crate) fn select_labelled<'a>(
    html: &mut Html,
    name: &'static str,
    label: &str,
    all: &str,
    words: impl IntoIterator<Item = (&'a str, &'a str)>,
    chosen: Option<&str>,
) {
    html.raw("<select name=\"").raw(name).raw("\" aria-label=\"").text(label).raw("\">");
    html.raw("<option value=\"\">").text(all).raw("</option>");
    for (word, label) in words {
        html.raw("<option");
        if chosen == Some(word) {
            html.raw(" selected");
        }
        html.raw(" value=\"").text(word).raw("\">").text(label).raw("</option>");
    }
    html.raw("</select>\n");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_but_literals_is_markup() {
        let mut html = Html::default();
        let hostile = "</script><img src=x onerror=alert(1)>\"'&";
        html.text(hostile)
            .prose(&format!("`{hostile}`{hostile}"))
            .link(&Href::new([hostile]), hostile)
            .label(hostile, &format!("{hostile}/whole"))
            .label_link(&Href::new([hostile]), hostile, &format!("{hostile}/whole"))
            .verbatim(hostile)
            .json("x", &hostile);
        table(&mut html, &[("a", Align::Left)], [vec![Cell::from(hostile)]]);
        facts(&mut html, &[("a", Cell::from(hostile))]);
        select(&mut html, "n", hostile, hostile, &[hostile], Some(hostile));
        let text = html.into_string();
        assert!(!text.contains("<img") && !text.contains("onerror=alert(1)>"), "{text}");
        assert_eq!(text.matches("</script>").count(), 1);
    }
}
