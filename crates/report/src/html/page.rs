//! The page around the data: head, the content for readers without a script, and the blocks that the script unpacks.

use aec_base::decimal::{UNPRICED, cost, dollars, rounded};

use super::Omitted;
use super::assets::{STYLE, policy, script};
use super::document::{Agent, Document};
use super::text::{escape, thousands};
use super::traces::Chunk;

pub(super) struct Page<'a> {
    pub(super) document: &'a Document,
    pub(super) table: &'a str,
    /// The packed list of chunks with their trials.
    pub(super) index: &'a str,
    pub(super) chunks: &'a [Chunk],
    pub(super) omitted: &'a Omitted,
}

impl Page<'_> {
    pub(super) fn render(&self) -> String {
        let script = script();
        let data: usize = self.chunks.iter().map(|chunk| chunk.data.len() + 80).sum();
        let mut page = String::with_capacity(data + self.table.len() + script.len() + STYLE.len() + 20_000);
        page.push_str(&format!(
            "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta http-equiv=\"Content-Security-Policy\" content=\"{}\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <meta name=\"referrer\" content=\"no-referrer\">\n<meta name=\"generator\" content=\"{}\">\n\
             <title>{}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n",
            policy(STYLE, &script),
            escape(&self.document.tool),
            escape(&self.document.title),
        ));
        self.header(&mut page);
        page.push_str("<main id=\"main\">\n<section id=\"overview\">\n");
        self.notes(&mut page);
        self.agents(&mut page);
        page.push_str("<div id=\"charts\"></div>\n");
        self.left_out(&mut page);
        page.push_str("</section>\n<div id=\"view\" hidden></div>\n</main>\n");
        self.footer(&mut page);
        block(&mut page, "data-table", self.table);
        block(&mut page, "data-index", self.index);
        for (number, chunk) in self.chunks.iter().enumerate() {
            block(&mut page, &format!("data-traces-{number}"), &chunk.data);
        }
        page.push_str(&format!("<script>{script}</script>\n</body>\n</html>\n"));
        page
    }

    fn header(&self, page: &mut String) {
        page.push_str(&format!(
            "<header class=\"bar\">\n<h1><a href=\"#\" class=\"data\">{}</a></h1>\n<nav id=\"nav\"></nav>\n</header>\n\
             <noscript><p class=\"note\">This report has tables, charts and traces that need JavaScript. Without it \
             only the summary is shown. The report loads nothing and sends nothing.</p></noscript>\n\
             <p id=\"status\" class=\"note\" role=\"status\" hidden></p>\n",
            escape(&self.document.title)
        ));
    }

    fn notes(&self, page: &mut String) {
        let experiments = self.document.experiments.iter().map(|experiment| {
            let mut facts = vec![format!("<b class=\"data\">{}</b>", escape(&experiment.id))];
            facts.extend(
                experiment
                    .dataset
                    .iter()
                    .map(|set| format!("dataset <span class=\"data\">{}</span>", escape(set))),
            );
            facts.extend(experiment.plan.iter().map(|plan| format!("plan <code>{}</code>", escape(plan))));
            facts.extend(experiment.started.iter().map(|time| format!("began {}", escape(time))));
            facts.extend(experiment.planned.map(|planned| format!("{} trials planned", thousands(planned))));
            format!("<li>{}</li>", facts.join(" · "))
        });
        page.push_str(&format!("<ul class=\"experiments\">{}</ul>\n", experiments.collect::<String>()));
        if !self.document.notes.is_empty() {
            let notes = self.document.notes.iter().map(|note| format!("<li>{}</li>", escape(note)));
            page.push_str(&format!("<ul class=\"notes\">{}</ul>\n", notes.collect::<String>()));
        }
    }

    fn agents(&self, page: &mut String) {
        page.push_str(
            "<h2>Agents</h2>\n<div class=\"scroll\"><table class=\"summary\" id=\"agents\">\n<thead><tr>\
             <th>agent</th><th>harness</th><th>model</th><th class=\"n\">trials</th><th class=\"n\">scored</th>\
             <th class=\"n\">mean reward</th><th class=\"n\">95 % interval</th><th class=\"n\">as run</th>\
             <th class=\"n\">without infra</th><th class=\"n\">worst case</th><th class=\"n\">faults</th>\
             <th class=\"n\">crashed</th><th class=\"n\">pass rate</th>\
             <th class=\"n\">cost</th><th class=\"n\">cost per solved</th><th class=\"n\">tokens in</th>\
             <th class=\"n\">tokens out</th><th class=\"n\">seconds per trial</th></tr></thead>\n<tbody>\n",
        );
        for agent in &self.document.agents {
            page.push_str(&agent_row(agent));
        }
        page.push_str("</tbody></table></div>\n");
        if let Some(method) = &self.document.method {
            page.push_str(&format!("<p class=\"hint\">{}</p>\n", escape(method)));
        }
    }

    fn left_out(&self, page: &mut String) {
        let omitted = self.omitted;
        let known = omitted.kept + omitted.traces;
        if known == 0 {
            page.push_str("<h2>Traces</h2>\n<p>No trial of this report has a trace.</p>\n");
            return;
        }
        page.push_str("<h2>Traces</h2>\n<p id=\"omitted\">");
        if omitted.traces == 0 {
            page.push_str(&format!("This file has all {} traces.", thousands(known as u64)));
        } else {
            page.push_str(&format!(
                "This file has {} of {} traces. The others are left out to keep it small; <code>aec-bench web</code> \
                 shows them.",
                thousands(omitted.kept as u64),
                thousands(known as u64),
            ));
        }
        if omitted.shortened > 0 {
            page.push_str(&format!(
                " Long texts in traces that are shortened: {}.",
                thousands(omitted.shortened as u64)
            ));
        }
        if omitted.prompts > 0 {
            page.push_str(&format!(" Prompts left out: {}.", thousands(omitted.prompts as u64)));
        }
        page.push_str("</p>\n");
        if omitted.traces == 0 {
            return;
        }
        page.push_str(
            "<details><summary>Which traces are here</summary>\n<p class=\"hint\">First one typical trace (of median \
             length) for each agent and result; then failures, faults, partial results and passes, short ones \
             first and the agents in turn.</p>\n<table class=\"summary\"><thead><tr><th>agent</th><th>result</th>\
             <th class=\"n\">here</th><th class=\"n\">left out</th></tr></thead>\n<tbody>\n",
        );
        for class in &omitted.classes {
            let agent = self.document.agents.get(class.agent).map_or("", |agent| agent.name.as_str());
            page.push_str(&format!(
                "<tr><td class=\"data\">{}</td><td>{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td></tr>\n",
                escape(agent),
                class.result.name(),
                thousands(class.kept as u64),
                thousands(class.omitted as u64)
            ));
        }
        page.push_str("</tbody></table></details>\n");
    }

    fn footer(&self, page: &mut String) {
        page.push_str(&format!(
            "<footer><p>Made by {}. One file, no network: a policy in the page forbids it.</p>\
             <details id=\"keys\" hidden><summary>Keyboard</summary></details></footer>\n",
            escape(&self.document.tool)
        ));
    }
}

/// A block of packed data. Base64 has no character that could end it.
fn block(page: &mut String, id: &str, data: &str) {
    page.push_str(&format!("<script type=\"application/octet-stream\" id=\"{id}\">{data}</script>\n"));
}

fn agent_row(agent: &Agent) -> String {
    let mut row = String::from("<tr>");
    for text in [&agent.name, &agent.harness, agent.model.as_ref().unwrap_or(&String::new())] {
        let class = if text.chars().count() <= 24 { "data short" } else { "data" };
        row.push_str(&format!("<td class=\"{class}\">{}</td>", escape(text)));
    }
    let interval = match (finite(agent.low), finite(agent.high)) {
        (Some(low), Some(high)) => format!("{} – {}", rounded(low, 3), rounded(high, 3)),
        _ => unknown(),
    };
    for cell in [
        thousands(agent.trials),
        thousands(agent.scored),
        mean(agent),
        interval,
        share(agent.as_run),
        share(agent.without_infra),
        share(agent.worst_case),
        thousands(agent.faults),
        thousands(agent.crashed),
        share(agent.pass_rate),
        finite(agent.cost).map_or_else(|| UNPRICED.to_owned(), |spent| cost(spent, agent.unpriced)),
        match finite(agent.cost_per_solved) {
            Some(each) => dollars(each),
            None if agent.unpriced > 0 => UNPRICED.to_owned(),
            None => unknown(),
        },
        agent.tokens_in.map_or_else(unknown, short_count),
        agent.tokens_out.map_or_else(unknown, short_count),
        finite(agent.seconds).map_or_else(unknown, |seconds| rounded(seconds, 1)),
    ] {
        row.push_str(&format!("<td class=\"n\">{cell}</td>"));
    }
    row.push_str("</tr>\n");
    row
}

/// The mean; one that is not of all trials is marked, with the reason.
fn mean(agent: &Agent) -> String {
    match &agent.unknown {
        Some(unknown) => format!("<b title=\"{}\">{}*</b>", escape(unknown), share(agent.mean)),
        None => format!("<b>{}</b>", share(agent.mean)),
    }
}

fn finite(value: Option<f64>) -> Option<f64> {
    value.filter(|value| value.is_finite())
}

fn unknown() -> String {
    "–".to_owned()
}

fn short_count(count: u64) -> String {
    for (unit, name) in [(1_000_000_000, "G"), (1_000_000, "M"), (1_000, "k")] {
        if count >= 10 * unit {
            let tenths = count / (unit / 10);
            return format!("{}.{} {name}", thousands(tenths / 10), tenths % 10);
        }
    }
    thousands(count)
}

fn share(value: Option<f64>) -> String {
    // Adding zero turns a negative zero into zero.
    finite(value).map_or_else(unknown, |value| rounded(value, 3))
}
