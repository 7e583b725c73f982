//! Task trees of any size, for tests and benchmarks.

use std::path::Path;

/// The smallest valid task file.
pub const TASK_TOML: &str =
    "version = \"1.0\"\n\n[metadata]\ndifficulty = \"easy\"\nvisibility = \"public\"\ntags = [\"x\"]\n";

/// Writes a valid task.
pub fn write_task(directory: &Path, task_toml: &str) {
    let file = |name: &str, text: &str| {
        let path = directory.join(name);
        fs_err::create_dir_all(path.parent().expect("a parent")).expect("directories");
        fs_err::write(path, text).expect("a written file");
    };
    file("task.toml", task_toml);
    file("instruction.md", "# A task\n\nWrite the answer to `/workspace/output.json`.\n");
    file("tests/test.sh", "#!/usr/bin/env bash\nexec python3 -I \"$(dirname \"$0\")/verify.py\"\n");
    file("tests/verify.py", "print('ok')\n");
    file("tests/fixtures/golden_pass.json", "{}\n");
    file("tests/fixtures/golden_fail.json", "{}\n");
    file("solution/solve.sh", "#!/usr/bin/env bash\ntrue\n");
    file("environment/Dockerfile", "FROM scratch\n");
}

/// Writes `count` tasks like those of a suite, spread over disciplines and templates.
pub fn write_tree(root: &Path, count: usize) {
    const DISCIPLINES: [&str; 6] = ["civil", "electrical", "ground", "maritime", "mechanical", "structural"];
    const DIFFICULTIES: [&str; 3] = ["easy", "medium", "hard"];
    for index in 0..count {
        let discipline = DISCIPLINES[index % DISCIPLINES.len()];
        let template = index / DISCIPLINES.len() % 20;
        let directory =
            root.join(discipline).join(format!("template-{template}")).join(format!("instance-{index}"));
        let difficulty = DIFFICULTIES[index % DIFFICULTIES.len()];
        let task_toml = format!(
            "version = \"1.0\"\n\n[metadata]\ndifficulty = \"{difficulty}\"\nvisibility = \"public\"\ncategory = \"calculation\"\n\
             tags = [\"{discipline}\", \"generated\"]\n\n[agent]\ntimeout_sec = 600.0\n\n[verifier]\ntimeout_sec = 300.0\n\n\
             [environment]\nextensions = []\nbuild_timeout_sec = 600.0\ncpus = 2\nmemory_mb = 4096\nstorage_mb = 10240\n\
             allow_internet = false\n\n[generation]\ntemplate = \"template-{template}\"\nseed = 42\nindex = {index}\n"
        );
        write_task(&directory, &task_toml);
    }
}
