//! Arguments of the web interface.

use clap::{Args, ValueHint};

use super::{LedgerRootArgument, TasksRootArgument};

#[derive(Debug, Args)]
pub(crate) struct WebArguments {
    /// Port to listen on; 0 for one that is free
    #[arg(long, short, value_name = "PORT", default_value_t = 8710)]
    pub(crate) port: u16,
    /// Name or address to listen on; anything but loopback needs --token
    #[arg(long, value_name = "HOST", default_value = "127.0.0.1")]
    pub(crate) host: String,
    /// What every request must show, as `Authorization: Bearer TOKEN` or once as `?token=TOKEN`; `env:NAME` takes a variable
    #[arg(long, value_name = "TOKEN")]
    pub(crate) token: Option<String>,
    #[command(flatten)]
    pub(crate) ledger_root: LedgerRootArgument,
    /// Directory of raw trial outputs to use instead of the configured one; attempts under way lie there
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) jobs_root: Option<String>,
    #[command(flatten)]
    pub(crate) tasks_root: TasksRootArgument,
}
