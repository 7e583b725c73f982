//! `aec-bench config reset`.

use aec_base::problem::Problem;
use clap::Args;

use crate::commands::config::user_file::{EditData, edit_failure, read_for_edit, user_file, user_setting};
use crate::context::Context;
use crate::failure::Failure;
use crate::output::Outcome;

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
                        aec-bench config reset paths.tasks\n  \
                        aec-bench config reset")]
pub(crate) struct ConfigResetArguments {
    /// Setting to remove [default: all settings]
    pub(crate) key: Option<String>,
}

pub(crate) fn reset(context: &Context, arguments: &ConfigResetArguments) -> Result<Outcome, Failure> {
    let file = user_file(context)?;
    let Some(key) = &arguments.key else {
        // Removing the file also helps when it cannot be read.
        if let Err(error) = std::fs::remove_file(&file)
            && error.kind() != std::io::ErrorKind::NotFound
        {
            let problem = Problem::error(format!("cannot remove the user file: {error}"));
            return Err(Failure::environment(problem.fix("remove it by hand").in_file(file)));
        }
        let remark = format!("removed {}", file.display());
        let data = EditData { file, key: None, value: None };
        return Ok(Outcome::new(context.format, &data, String::new)?.remark(remark));
    };
    let (setting, key) = user_setting(key)?;
    read_for_edit(&file)?.reset(setting).map_err(edit_failure)?;
    let remark = format!("{key} is back to its default, {}", setting.spec().default);
    let data = EditData { file, key: Some(key), value: Some(setting.spec().default.to_owned()) };
    Ok(Outcome::new(context.format, &data, String::new)?.remark(remark))
}
