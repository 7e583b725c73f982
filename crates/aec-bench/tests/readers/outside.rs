//! The same from outside: the program with a hostile manifest in an archive, and in the project that it works in.

use aec_xtest::TestEnv;

/// Manifests that ended the program (exit code 134), or kept it busy for minutes.
fn manifests() -> [(&'static str, String); 3] {
    let keys: Vec<String> = (0..200_000).map(|number| format!("\"k{number}\":{number}")).collect();
    [
        ("deep lists", "[".repeat(20_000) + &"]".repeat(20_000)),
        ("deep tables", "{\"a\":".repeat(20_000) + "1" + &"}".repeat(20_000)),
        ("many keys", format!("{{{},\"schema_version\":1}}", keys.join(","))),
    ]
}

/// An archive with this manifest and nothing else.
pub(super) fn archive(manifest: &str) -> Vec<u8> {
    let mut tar = vec![0_u8; 512];
    tar[..13].copy_from_slice(b"manifest.json");
    tar[100..107].copy_from_slice(b"0000644");
    tar[124..135].copy_from_slice(format!("{:011o}", manifest.len()).as_bytes());
    tar[156] = b'0';
    tar[257..265].copy_from_slice(b"ustar\x0000");
    let sum: u32 = tar.iter().map(|byte| u32::from(*byte)).sum::<u32>() + 8 * 32;
    tar[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    tar.extend_from_slice(manifest.as_bytes());
    let whole = tar.len().next_multiple_of(512) + 1024;
    tar.resize(whole, 0);
    zstd::encode_all(tar.as_slice(), 19).unwrap()
}

#[test]
fn a_hostile_manifest_is_an_error_and_nothing_else() {
    let env = TestEnv::new(env!("CARGO_BIN_EXE_aec-bench"));
    env.init();
    for (name, manifest) in manifests() {
        let bytes = archive(&manifest);
        env.write("in.tar.zst", &bytes);
        let import = env.run(["dataset", "import", "in.tar.zst", "--json"]);
        assert_eq!(import.code, Some(3), "{name} ({} bytes): {import:?}", bytes.len());
        env.write("artefacts/datasets/evil/1.0.0/manifest.json", &manifest);
        for line in [
            "dataset list",
            "dataset show evil@1.0.0",
            "plan --dataset evil@1.0.0 --harness nop",
            "config check",
        ] {
            let run = env.run(line.split(' ').chain(["--json"]));
            assert!(matches!(run.code, Some(0 | 1 | 3)), "{name}: {line}: {run:?}");
            run.envelope();
        }
        std::fs::remove_dir_all(env.path("artefacts/datasets/evil")).unwrap();
    }
    // What people write by hand is read in the same way.
    let dots = format!("[{}a]\nb = 1\n", "a.".repeat(20_000));
    for file in ["aec-bench.toml", "configs/endpoints.toml", "tasks/civil/x/task.toml"] {
        let before = std::fs::read(env.path(file)).ok();
        env.write(file, &dots);
        for line in ["task list", "config check", "models check --no-call gpt-4.1"] {
            let run = env.run(line.split(' ').chain(["--json"]));
            assert!(matches!(run.code, Some(0..=4)), "{file}: {line}: {run:?}");
        }
        match before {
            Some(before) => env.write(file, before),
            None => std::fs::remove_file(env.path(file)).unwrap(),
        }
    }
}

#[test]
fn a_hostile_manifest_does_not_end_the_web_server() {
    let project = crate::web::world::Project::new();
    for (name, manifest) in manifests() {
        project.env.write("artefacts/datasets/evil/1.0.0/manifest.json", &manifest);
        let web = crate::web::world::Web::start(&project);
        for path in ["/datasets", "/datasets/evil@1.0.0", "/"] {
            let reply = web.get(path);
            assert!(reply.status < 500, "{name}: {path}: {}", reply.status);
        }
        assert_eq!(web.end(rustix::process::Signal::TERM).0, Some(0), "{name}");
    }
}
