//! Style and scripts, each under an address that has a digest of its content in it.

use std::sync::LazyLock;

use aec_base::digest::Digest;
use aec_report::html::{DOM_SCRIPT, STYLE, TRACE_SCRIPT};

use crate::href::Href;
use crate::respond::{self, Answer};

/// A file of ours.
pub(crate) struct Asset {
    name: String,
    kind: &'static str,
    text: String,
}

impl Asset {
    fn new(name: &str, kind: &'static str, text: String) -> Self {
        let digest = Digest::of(text.as_bytes()).hex();
        let (stem, extension) = name.split_once('.').unwrap_or((name, ""));
        Self { name: format!("{stem}-{}.{extension}", &digest[..16]), kind, text }
    }

    pub(crate) fn href(&self) -> Href {
        Href::new(["asset", &self.name])
    }

    fn answer(&'static self) -> Answer {
        respond::asset(self.kind, self.text.as_bytes())
    }
}

/// The look of what reports do not have.
pub(crate) const WEB_STYLE: &str = include_str!("../assets/web.css");

/// The look of reports, and what only pages of this server have.
pub(crate) static STYLES: LazyLock<Asset> =
    LazyLock::new(|| Asset::new("web.css", "text/css; charset=utf-8", [STYLE, WEB_STYLE].concat()));

/// Runs before the page is drawn.
pub(crate) static THEME: LazyLock<Asset> = LazyLock::new(|| {
    Asset::new("theme.js", "text/javascript; charset=utf-8", include_str!("../assets/theme.js").to_owned())
});

/// Keys, the reader of traces, and runs as they go on.
pub(crate) static SCRIPT: LazyLock<Asset> = LazyLock::new(|| {
    let parts = [DOM_SCRIPT, TRACE_SCRIPT, include_str!("../assets/web.js")].concat();
    Asset::new(
        "web.js",
        "text/javascript; charset=utf-8",
        format!("(() => {{\n\"use strict\";\n{parts}}})();\n"),
    )
});

/// The sign in the browser's tab.
pub(crate) static ICON: LazyLock<Asset> =
    LazyLock::new(|| Asset::new("icon.svg", "image/svg+xml", include_str!("../assets/icon.svg").to_owned()));

/// The file that an address names.
pub(crate) fn find(name: &str) -> Option<Answer> {
    [&STYLES, &THEME, &SCRIPT, &ICON].into_iter().find(|asset| asset.name == name).map(|asset| asset.answer())
}

/// The sign in the browser's tab, for browsers that do not read which one it is.
pub(crate) fn icon() -> Answer {
    respond::picture(ICON.kind, ICON.text.as_bytes())
}
