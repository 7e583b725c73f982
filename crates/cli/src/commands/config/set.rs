//! `aec-bench config set`.

use aec_base::settings::{Origin, Setting};
use aec_base::text;
use clap::Args;

use crate::commands::config::user_file::{EditData, edit_failure, read_for_edit, user_file, user_setting};
use crate::context::Context;
use crate::failure::Failure;
use crate::output::Outcome;

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
                        aec-bench config set paths.tasks benchmark/tasks")]
pub(crate) struct ConfigSetArguments {
    /// Setting, such as `tasks_root` or `paths.tasks`
    pub(crate) key: String,
    /// Path, relative to the root of each project
    pub(crate) value: String,
}

pub(crate) fn set(context: &Context, arguments: &ConfigSetArguments) -> Result<Outcome, Failure> {
    let (setting, key) = user_setting(&arguments.key)?;
    let file = user_file(context)?;
    let mut config = read_for_edit(&file)?;
    config.set(setting, &arguments.value).map_err(edit_failure)?;
    let data = EditData { file, key: Some(key), value: Some(arguments.value.clone()) };
    let remark = format!("{key} = {} in {}", text::printable(&arguments.value), data.file.display());
    let outcome = Outcome::new(context.format, &data, String::new)?.remark(remark);
    Ok(match stronger(context, setting) {
        Some(place) => outcome.remark(format!("This project overrides it in {place}.")),
        None => outcome,
    })
}

/// Where the current project sets this setting itself and thereby overrides the user file.
pub(crate) fn stronger(context: &Context, setting: Setting) -> Option<String> {
    let project = context.project(Vec::new()).ok()?;
    let Origin::Project(place) = &project.settings.get(setting).origin else { return None };
    Some(format!("{}:{}", project.shown(&place.file).display(), place.line))
}
