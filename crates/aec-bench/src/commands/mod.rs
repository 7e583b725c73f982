//! One file per command: resolve the arguments, call a library, render what it returns.

pub(crate) mod audit;
pub(crate) mod audit_page;
pub(crate) mod config;
pub(crate) mod config_check;
pub(crate) mod dataset_create;
pub(crate) mod dataset_diff;
pub(crate) mod dataset_export;
pub(crate) mod dataset_import;
pub(crate) mod dataset_list;
pub(crate) mod dataset_show;
pub(crate) mod dataset_split;
pub(crate) mod dataset_verify;
pub(crate) mod doctor;
pub(crate) mod init;
pub(crate) mod quickstart;
pub(crate) mod schema;
pub(crate) mod search;
pub(crate) mod selection;
pub(crate) mod shell;
pub(crate) mod task_list;
pub(crate) mod task_new;
pub(crate) mod task_show;
pub(crate) mod task_validate;
pub(crate) mod verify;
