//! Stand-in.
use crate::failure::Failure;
use aec_base::secret::Redactor;
use aec_run::control::Control;
use aec_run::event::{RunEnded, RunEvent};
pub(crate) enum Mode {
    Quiet,
    Lines,
    Bars,
    Screen,
}
pub(crate) struct Progress;
impl Progress {
    pub(crate) fn new(
        _mode: Mode,
        _color: bool,
        _redactor: Redactor,
        _control: Control,
    ) -> Result<Self, Failure> {
        Ok(Self)
    }
    pub(crate) fn wants_traces(&self) -> bool {
        false
    }
    pub(crate) fn on(&mut self, event: &RunEvent) {
        if let RunEvent::TrialEnded(e) = event {
            tracing::info!(?e, "ended");
        }
    }
    pub(crate) fn finish(self) {}
}
pub(crate) fn summary_text(ended: &RunEnded) -> String {
    format!("{ended:#?}\n")
}
