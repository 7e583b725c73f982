//! Style and script of the page, and the digests with which its content security policy allows them.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest as _, Sha256};

/// The style, which the web pages of this program share.
pub const STYLE: &str = include_str!("../../assets/report.css");

/// Builds elements without ever parsing markup. All other scripts need it.
pub const DOM_SCRIPT: &str = include_str!("../../assets/dom.js");

/// The trace reader: `traceReader(entries, options)` returns an element. Needs [`DOM_SCRIPT`].
pub const TRACE_SCRIPT: &str = include_str!("../../assets/trace.js");

const PARTS: [&str; 7] = [
    DOM_SCRIPT,
    include_str!("../../assets/data.js"),
    include_str!("../../assets/charts.js"),
    include_str!("../../assets/table.js"),
    TRACE_SCRIPT,
    include_str!("../../assets/diff.js"),
    include_str!("../../assets/main.js"),
];

pub(super) fn script() -> String {
    format!("(() => {{\n\"use strict\";\n{}}})();\n", PARTS.concat())
}

/// The content security policy: nothing is loaded, and only these two run.
pub(super) fn policy(style: &str, script: &str) -> String {
    let source = |text: &str| format!("'sha256-{}'", STANDARD.encode(Sha256::digest(text)));
    format!(
        "default-src 'none'; script-src {}; style-src {}; base-uri 'none'; form-action 'none'; \
         require-trusted-types-for 'script'; trusted-types 'none'",
        source(script),
        source(style)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn assets_are_small_and_cannot_end_their_elements() {
        let script = script();
        assert!(script.len() + STYLE.len() < 80_000, "{} bytes", script.len() + STYLE.len());
        for text in [script.as_str(), STYLE] {
            let lower = text.to_lowercase();
            assert!(!lower.contains("</s") && !lower.contains("<!--"));
            // A browser turns carriage returns into line breaks, and the digest would no longer match.
            assert!(!text.contains('\r'));
        }
    }

    #[test]
    fn the_script_has_no_way_to_turn_text_into_markup_or_code() {
        let script = script();
        for word in
            ["innerHTML", "outerHTML", "insertAdjacent", "document.write", "eval(", "Function(", "srcdoc"]
        {
            assert!(!script.contains(word), "{word}");
        }
        for word in ["fetch(", "XMLHttpRequest", "WebSocket", "import(", "http://", "https://"] {
            assert!(!script.replace("http://www.w3.org/2000/svg", "").contains(word), "{word}");
        }
        assert!(!STYLE.contains("url(") && !STYLE.contains("@import"));
    }

    #[test]
    fn the_policy_names_digests_only() {
        // printf a | openssl dgst -sha256 -binary | base64
        let policy = policy("a", "b");
        assert!(
            policy.contains("style-src 'sha256-ypeBEsobvcr6wjGzmiPcTaeG7/gUfE5yuYB3ha/uSLs='"),
            "{policy}"
        );
        assert!(!policy.contains("unsafe") && !policy.contains('*'));
    }
}
