//! The user file and its settings, shared by `config set` and `config reset`.

use std::path::PathBuf;

use aec_base::problem::Problem;
use aec_base::settings::{SETTINGS, Setting};
use aec_base::text;
use aec_base::user::{EditError, UserConfig};
use serde::Serialize;

use crate::context::Context;
use crate::failure::Failure;

#[derive(Serialize)]
pub(crate) struct EditData {
    pub(crate) file: PathBuf,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) key: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) value: Option<String>,
}

pub(crate) fn user_setting(name: &str) -> Result<(Setting, &'static str), Failure> {
    let known: Vec<&str> = SETTINGS.iter().filter_map(|row| row.user_key).collect();
    let Some(setting) = Setting::by_name(name) else {
        let problem = Problem::error(format!("unknown setting `{}`", text::printable(name)))
            .why(format!("the user file holds {}", text::one_of(&known).replace(" or ", " and ")));
        return Err(Failure::usage(problem.fix(text::near_or(name, &known, "name one of them"))));
    };
    match setting.spec().user_key {
        Some(key) => Ok((setting, key)),
        None => {
            let key = setting.spec().key;
            let flag = setting.spec().flag.map(|flag| format!(", or pass {flag}")).unwrap_or_default();
            Err(Failure::usage(
                Problem::error(format!("`{key}` is not kept in the user file"))
                    .why("the user file holds path defaults for all projects; this belongs to one project")
                    .fix(format!("set {key} in the project's aec-bench.toml{flag}")),
            ))
        }
    }
}

pub(crate) fn user_file(context: &Context) -> Result<PathBuf, Failure> {
    context.user_file().ok_or_else(|| {
        Failure::environment(
            Problem::error("there is no home directory for the user file").fix("set HOME or XDG_CONFIG_HOME"),
        )
    })
}

pub(crate) fn read_for_edit(file: &std::path::Path) -> Result<UserConfig, Failure> {
    UserConfig::read(file).map_err(|mut problems| {
        for problem in &mut problems {
            problem
                .why
                .get_or_insert_with(|| "nothing was changed, so that nothing in the file is lost".to_owned());
        }
        problems.push(
            Problem::note("the user file was not changed")
                .fix("correct it, or remove it with `aec-bench config reset`"),
        );
        Failure::input(problems)
    })
}

pub(crate) fn edit_failure(error: EditError) -> Failure {
    match error {
        EditError::Io(error) => error.into(),
        EditError::Value(_) | EditError::NotAUserSetting { .. } => {
            Failure::usage(Problem::error(error.to_string()).fix("give a path"))
        }
    }
}
