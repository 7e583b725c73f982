//! The commands of the README work as they stand there, typed one after the other in a new project.

use std::path::PathBuf;

use aec_xtest::{Run, TestEnv};

use crate::cli::examples::words;
use crate::cli::server::Server;
use crate::cli::world;

/// Lines that a test cannot run, by their beginning, and why.
const NOT_TRIED: [(&str, &str); 4] = [
    ("cargo ", "the program is built already"),
    ("aec-bench prime smoke", "it installs packages; the tests of the Prime loop run it"),
    (
        "aec-bench import-prime-eval",
        "the evaluation is one of the reader's; the tests of the Prime loop run it",
    ),
    ("aec-bench evolve run", "the reader writes the file; the tests of evolution run it"),
];

/// The lines of the README's blocks of commands, without comments.
fn lines() -> Vec<String> {
    let (mut lines, mut inside) = (Vec::new(), false);
    for line in include_str!("../../../../README.md").lines() {
        match line {
            "```sh" => inside = true,
            "```" => inside = false,
            _ if inside => lines.push(line.split(" #").next().unwrap().trim().to_owned()),
            _ => {}
        }
    }
    lines.retain(|line| !line.is_empty());
    lines
}

/// A shell that knows what the README's lines use.
struct Shell {
    env: TestEnv,
    directory: PathBuf,
}

impl Shell {
    fn program(&self, command: &str) -> Run {
        let run = self.env.run_in(&self.directory, words(command).unwrap());
        assert_eq!(run.code, Some(0), "{command}: {run:?}");
        run
    }

    fn line(&mut self, line: &str) {
        for command in line.split("&&").map(str::trim) {
            match (command.strip_prefix("cd "), command.split_once(" | ")) {
                (Some(below), _) => self.directory = self.directory.join(below),
                (None, Some((command, "python3 -m json.tool"))) => {
                    let data = self.program(command).data();
                    assert!(data.is_object(), "{command}: {data}");
                }
                (None, None) => drop(self.program(command)),
                _ => panic!("no test knows how to run `{line}`"),
            }
        }
    }
}

#[test]
fn every_line_works_in_order_in_a_new_project() {
    let mut env = world();
    // The model of the README answers here, so that nobody needs a key.
    let mut server = Server::start(&env, "--json dev serve-model");
    let url = server.data()["url"].as_str().unwrap().to_owned();
    env.set("OPENAI_API_KEY", "sk-readme");
    let directory = env.dir();
    let mut shell = Shell { env, directory };
    let lines = lines();
    for (beginning, why) in NOT_TRIED {
        assert!(
            lines.iter().any(|line| line.starts_with(beginning)),
            "no line begins with {beginning}: {why}"
        );
    }
    for line in lines {
        if NOT_TRIED.iter().any(|(beginning, _)| line.starts_with(beginning)) {
            continue;
        }
        shell.line(&line);
        if line.starts_with("aec-bench init") {
            shell.env.write(
                "my-bench/configs/endpoints.toml",
                format!("[[endpoint]]\nendpoint_id = \"gpt-4.1-mini\"\nmodel = \"gpt-4.1-mini\"\nurl = \"{url}/v1\"\n"),
            );
            // The prices of the model's own provider do not hold for another address.
            shell.env.write(
                "my-bench/configs/prices.toml",
                "[[price]]\nendpoint = \"gpt-4.1-mini\"\ninput = 0.4\noutput = 1.6\n",
            );
        }
    }
}
