//! Style and scripts, each at an address that contains a digest of its content.

use std::sync::LazyLock;

use aec_base::digest::Digest;
use aec_report::html::{DOM_SCRIPT, STYLE, TRACE_SCRIPT};

use crate::href::Href;
use crate::respond::{self, Answer};

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

/// The style of elements that reports do not have.
pub(crate) const WEB_STYLE: &str = include_str!("../assets/web.css");

/// The style of reports, and of elements that only pages of this server have.
pub(crate) static STYLES: LazyLock<Asset> =
    LazyLock::new(|| Asset::new("web.css", "text/css; charset=utf-8", [STYLE, WEB_STYLE].concat()));

/// Runs before the page is drawn.
pub(crate) static THEME: LazyLock<Asset> = LazyLock::new(|| {
    Asset::new("theme.js", "text/javascript; charset=utf-8", include_str!("../assets/theme.js").to_owned())
});

/// Keyboard control, the trace reader, and live runs.
pub(crate) static SCRIPT: LazyLock<Asset> = LazyLock::new(|| {
    let parts = [DOM_SCRIPT, TRACE_SCRIPT, include_str!("../assets/web.js")].concat();
    Asset::new(
        "web.js",
        "text/javascript; charset=utf-8",
        format!("(() => {{\n\"use strict\";\n{parts}}})();\n"),
    )
});

pub(crate) static ICON: LazyLock<Asset> =
    LazyLock::new(|| Asset::new("icon.svg", "image/svg+xml", include_str!("../assets/icon.svg").to_owned()));

pub(crate) fn find(name: &str) -> Option<Answer> {
    [&STYLES, &THEME, &SCRIPT, &ICON].into_iter().find(|asset| asset.name == name).map(|asset| asset.answer())
}

/// The icon for browsers that ask for the default address.
pub(crate) fn icon() -> Answer {
    respond::picture(ICON.kind, ICON.text.as_bytes())
}
