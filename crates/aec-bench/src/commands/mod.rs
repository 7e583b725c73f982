//! One file per command: resolve the arguments, call a library, render what it returns.

pub(crate) mod audit;
pub(crate) mod audit_page;
pub(crate) mod config;
pub(crate) mod config_check;
pub(crate) mod doctor;
pub(crate) mod generate_replay;
pub(crate) mod generate_suite;
pub(crate) mod generate_task;
pub(crate) mod init;
pub(crate) mod library_export;
pub(crate) mod list_templates;
pub(crate) mod quickstart;
pub(crate) mod schema;
pub(crate) mod search;
pub(crate) mod shell;
pub(crate) mod task_list;
pub(crate) mod task_new;
pub(crate) mod task_show;
pub(crate) mod task_validate;
pub(crate) mod template_new;
pub(crate) mod validate_template;
pub(crate) mod verify;
