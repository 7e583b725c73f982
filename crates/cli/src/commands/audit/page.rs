//! The HTML page that `audit --report` writes: one file, without scripts and without anything fetched.

use aec_base::decimal::rounded;
use aec_base::problem::Severity;
use aec_judge::audit::Audit;

use crate::commands::audit::tally;

const STYLE: &str = "body{font:15px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:70rem;padding:0 1rem;\
color-scheme:light dark}table{border-collapse:collapse;width:100%}th,td{text-align:left;padding:.35rem .6rem;\
border-bottom:1px solid #8884;vertical-align:top}.high{color:#c22}.medium{color:#b70}.low{color:#888}";

pub(crate) fn page(audits: &[Audit]) -> String {
    let mut html = format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\
         <title>Audit</title><style>{STYLE}</style></head><body>\n<h1>Audit of {} tasks</h1>\n\
         <table><thead><tr><th>Task<th>Mutants lost<th>Equals kept<th>Floor<th>Deterministic<th>Cheaters held\
         </tr></thead><tbody>\n",
        audits.len()
    );
    for audit in audits {
        let floor = audit.floor.map_or_else(|| "-".to_owned(), |floor| rounded(floor, 3));
        let same = audit.deterministic.map_or("-", |same| if same { "yes" } else { "no" });
        html.push_str("<tr>");
        let cells = [
            audit.task_id.clone(),
            tally(audit.mutants),
            tally(audit.equivalents),
            floor,
            same.to_owned(),
            tally(audit.cheaters),
        ];
        for cell in cells {
            html.push_str(&format!("<td>{}", escape(&cell)));
        }
        html.push_str("</tr>\n");
    }
    html.push_str("</tbody></table>\n<h2>Findings</h2>\n<table><tbody>\n");
    let findings: Vec<_> = audits.iter().flat_map(|audit| &audit.findings).collect();
    for finding in &findings {
        let severity = match finding.severity {
            Severity::Error => "high",
            Severity::Warning => "medium",
            Severity::Note => "low",
        };
        let part = |text: &Option<String>| escape(text.as_deref().unwrap_or_default());
        html.push_str(&format!(
            "<tr><td class=\"{severity}\">{severity}<td>{}<td>{}<td>{}<br><small>{}</small><td>{}</tr>\n",
            part(&finding.id),
            part(&finding.about),
            escape(&finding.what),
            part(&finding.why),
            part(&finding.fix),
        ));
    }
    if findings.is_empty() {
        html.push_str("<tr><td>None.</tr>\n");
    }
    html.push_str("</tbody></table>\n</body></html>\n");
    html
}

fn escape(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            other => safe.push(other),
        }
    }
    safe
}
