//! The groups of the top-level help. The argument parser lists subcommands flat; people look for a task in hand.

use clap::Command;

const GROUPS: [(&str, &[&str]); 11] = [
    ("Start", &["quickstart", "init", "doctor", "config"]),
    ("Author", &["task", "generate", "template", "dataset", "library", "search"]),
    ("Judge", &["verify", "audit"]),
    ("Run", &["plan", "run", "runs", "eval", "models", "gateway"]),
    ("Keep", &["ledger", "import", "import-prime-eval"]),
    ("Read", &["evaluate", "report", "web"]),
    ("Train", &["prime", "export"]),
    ("Improve", &["evolve", "swarm"]),
    ("Files", &["schema"]),
    ("Develop", &["dev"]),
    ("Shell", &["completions", "man", "help"]),
];

/// Replaces the flat list of subcommands by groups.
pub(crate) fn group_help(command: Command) -> Command {
    let styles = clap::builder::Styles::styled();
    let (header, literal) = (styles.get_header(), styles.get_literal());
    let mut text = String::new();
    for (title, names) in GROUPS {
        text.push_str(&format!("{header}{title}:{header:#}\n"));
        for name in names {
            let about = match command.find_subcommand(name) {
                Some(found) => found.get_about().map(ToString::to_string).unwrap_or_default(),
                None => "Help on a command".to_owned(),
            };
            let about = about.lines().next().unwrap_or_default().to_owned();
            text.push_str(&format!("  {literal}{name:<17}{literal:#}  {about}\n"));
        }
        text.push('\n');
    }
    let template = format!(
        "{{about-section}}\n{{usage-heading}} {{usage}}\n\n{text}{header}Options:{header:#}\n{{options}}{{after-help}}"
    );
    command.help_template(template)
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn every_visible_command_is_in_exactly_one_group() {
        let mut grouped: Vec<&str> = GROUPS.iter().flat_map(|(_, names)| names.iter().copied()).collect();
        grouped.retain(|name| *name != "help");
        grouped.sort_unstable();
        let command = crate::arguments::Arguments::command();
        let mut visible: Vec<&str> =
            command.get_subcommands().filter(|sub| !sub.is_hide_set()).map(Command::get_name).collect();
        visible.sort_unstable();
        assert_eq!(grouped, visible);
    }
}
