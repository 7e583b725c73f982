//! Interprets Python programs and scripts: on the command line, on standard input, or in a file that the agent wrote.

use super::action::{Act, Deed, Family, Interpreter};
use super::program::says_check;
use super::python::{CodeAct, scan};
use super::shell::Word;
use super::shell_action::{Setting, operands};

impl Interpreter<'_> {
    /// Python or a similar interpreter, with its arguments.
    pub(crate) fn python(&mut self, arguments: &[Word], setting: &Setting<'_>, deed: &mut Deed) -> Family {
        let mut rest = arguments;
        while let [first, after @ ..] = rest {
            match first.text.as_str() {
                "-c" | "-e" | "-p" | "--eval" => {
                    let code = after.first().map_or("", |word| word.text.as_str());
                    self.code(code, setting.current, deed);
                    return Family::Code;
                }
                "-m" => return self.module(after, setting, deed),
                "-W" | "-X" | "-Q" => rest = after.get(1..).unwrap_or_default(),
                "-" => break,
                option if option.starts_with('-') => rest = after,
                _ => {
                    let path = self.path(setting.current, &first.text);
                    return self.program(&path, after, setting, deed, false);
                }
            }
        }
        match setting.input {
            Some(code) => self.code(code, setting.current, deed),
            None => deed.acts.push(Act::Run),
        }
        Family::Code
    }

    fn module(&self, words: &[Word], setting: &Setting<'_>, deed: &mut Deed) -> Family {
        let (name, arguments) =
            words.split_first().map_or(("", words), |(name, rest)| (name.text.as_str(), rest));
        match name {
            "json.tool" => {
                self.reads(operands(arguments).take(1), "json", setting, deed);
                Family::Read
            }
            "pytest" | "unittest" | "doctest" | "py_compile" => {
                deed.acts.push(Act::Test);
                Family::Test
            }
            "pip" | "venv" => {
                deed.acts.push(Act::Install);
                Family::Named(name.to_owned())
            }
            _ => {
                deed.acts.push(Act::Run);
                self.handed(arguments, setting.current, deed);
                Family::Named(name.to_owned())
            }
        }
    }

    /// A program by its path: one of the task's, one of the agent's, or an unknown one.
    pub(crate) fn program(
        &mut self,
        path: &str,
        arguments: &[Word],
        setting: &Setting<'_>,
        deed: &mut Deed,
        is_shell: bool,
    ) -> Family {
        if let Some(number) = self.declared_at(path) {
            deed.acts.push(Act::Declared(number));
            self.handed(arguments, setting.current, deed);
            return Family::Declared(number);
        }
        if says_check(path) {
            deed.acts.push(Act::Test);
        }
        match self.script(path) {
            Some(text) if is_shell => self.shell(&text, setting.current, setting.depth + 1, deed),
            Some(text) => self.code(&text, setting.current, deed),
            None if says_check(path) => {}
            None => deed.acts.push(Act::Run),
        }
        self.handed(arguments, setting.current, deed);
        Family::Code
    }

    pub(crate) fn code(&mut self, code: &str, current: &str, deed: &mut Deed) {
        let before = deed.acts.len();
        for act in scan(code) {
            deed.acts.push(match act {
                CodeAct::Read(word) => {
                    Act::Read { path: self.path(current, &word.text), pattern: word.pattern, how: "python" }
                }
                CodeAct::Write(word) => Act::Write {
                    path: self.path(current, &word.text),
                    how: "python",
                    bytes: None,
                    appends: false,
                },
                CodeAct::Append(word) => Act::Write {
                    path: self.path(current, &word.text),
                    how: "python",
                    bytes: None,
                    appends: true,
                },
                CodeAct::List => Act::List,
                CodeAct::Help => Act::Help,
                CodeAct::Assert => Act::Assert,
                CodeAct::Compute => Act::Compute,
            });
        }
        if deed.acts.len() == before {
            deed.acts.push(Act::Compute);
        }
    }
}
