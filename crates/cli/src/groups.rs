//! The groups of the top-level help. The parser lists subcommands flat, but people look for what they want to do.

use clap::Command;

/// Titles of the groups. The hundreds of a command's `display_order` are its group.
const GROUPS: [&str; 11] =
    ["Start", "Author", "Judge", "Run", "Keep", "Read", "Train", "Improve", "Files", "Develop", "Shell"];

/// Replaces the flat list of subcommands by groups.
pub(crate) fn group_help(command: Command) -> Command {
    let styles = clap::builder::Styles::styled();
    let (header, literal) = (styles.get_header(), styles.get_literal());
    let line = |name: &str, about: &str| format!("  {literal}{name:<17}{literal:#}  {about}\n");
    let mut text = String::new();
    for (number, title) in (1..).zip(GROUPS) {
        text.push_str(&format!("{header}{title}:{header:#}\n"));
        for shown in members(&command, number) {
            let about = shown.get_about().map(ToString::to_string).unwrap_or_default();
            text.push_str(&line(shown.get_name(), about.lines().next().unwrap_or_default()));
        }
        if number == GROUPS.len() {
            text.push_str(&line("help", "Help on a command"));
        }
        text.push('\n');
    }
    let template = format!(
        "{{about-section}}\n{{usage-heading}} {{usage}}\n\n{text}{header}Options:{header:#}\n{{options}}{{after-help}}"
    );
    command.help_template(template)
}

/// The visible commands of a group, in their display order.
fn members(command: &Command, group: usize) -> Vec<&Command> {
    let visible = command.get_subcommands().filter(|sub| !sub.is_hide_set());
    let mut members: Vec<&Command> = visible.filter(|sub| sub.get_display_order() / 100 == group).collect();
    members.sort_by_key(|sub| sub.get_display_order());
    members
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn every_visible_command_has_a_group() {
        let command = crate::arguments::Arguments::command();
        let grouped: usize = (1..=GROUPS.len()).map(|group| members(&command, group).len()).sum();
        assert_eq!(grouped, command.get_subcommands().filter(|sub| !sub.is_hide_set()).count());
    }
}
