//! Checks of ranges that both settings files share.

use aec_base::document::Shared;
use aec_base::problem::Problem;

use super::{Advisor, TemplateSettings};
use crate::long_documents::source_file::{Checker, path_fault, shown};
use crate::long_documents::{FAMILY, number_of};

const MOST_WORKERS: u64 = 256;
/// A larger budget is a typing error; with this limit no sum of tokens can overflow.
pub(super) const MOST_TOKENS: u64 = 1_000_000_000_000;

impl Checker<'_> {
    pub(super) fn whole(&mut self, key: &str, value: u64, least: u64, most: u64) {
        if !(least..=most).contains(&value) {
            let what = format!("`{key}` must be from {least} to {most}, not {value}");
            self.shared(Shared::BadValue, key, what, format!("write a whole number from {least} to {most}"));
        }
    }

    /// A share above 0, up to 1.
    pub(super) fn share(&mut self, key: &str, value: f64) {
        if value > 0.0 && value <= 1.0 {
            return;
        }
        let what = format!("`{key}` must be a share above 0 and up to 1, not {value}");
        let fix = if value > 1.0 && value <= 100.0 {
            format!("write {} for {value} per cent", value / 100.0)
        } else {
            "write a number such as 0.85".to_owned()
        };
        self.shared(Shared::BadValue, key, what, fix);
    }

    pub(super) fn not_blank(&mut self, key: &str, text: &str) {
        if text.trim().is_empty() {
            self.shared(
                Shared::BadValue,
                key,
                format!("`{key}` is empty"),
                "write a name, or remove the key",
            );
        }
    }

    pub(super) fn path(&mut self, key: &str, path: &str) {
        if let Some(fault) = path_fault(path) {
            let what = format!("the path \"{}\" of `{key}` {fault}", shown(path));
            let fix = "write a path below the directory of this file, such as fixtures/spec.md";
            self.own(number_of::PATH, key, what, fix);
        }
    }

    pub(super) fn template(&mut self, template: &TemplateSettings) {
        if let Some(definition) = &template.definition {
            self.path("template.definition", definition);
        }
    }

    pub(super) fn workers(&mut self, workers: u32) {
        self.whole("execution.max_parallel_workers", workers.into(), 1, MOST_WORKERS);
    }

    pub(super) fn advisor(&mut self, advisor: &Advisor) {
        if advisor.model.trim().is_empty() {
            let what = "`advisor.model` is missing or empty".to_owned();
            let fix = "name the model that gives advice, or remove the table";
            self.shared(Shared::MissingKey, "advisor.model", what, fix);
        }
        self.whole("advisor.max_uses", advisor.max_uses.into(), 1, 10_000);
        self.whole("advisor.max_response_tokens", advisor.max_response_tokens.into(), 1, 1_000_000);
        self.whole("advisor.context_window", advisor.context_window.into(), 0, 1_000_000);
    }

    pub(super) fn warn(&mut self, number: u32, key: &str, what: String, fix: &str) {
        self.push(key, Problem::warning(what).id(FAMILY.number(number)).fix(fix));
    }
}
