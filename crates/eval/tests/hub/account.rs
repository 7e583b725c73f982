//! Where the token and the address come from.

use std::path::Path;

use aec_eval::hub::{Account, HubError};

use crate::hub::said;

fn load(
    files: &[(&str, &[u8])],
    variables: &[(&str, &str)],
) -> (tempfile::TempDir, Result<Account, HubError>) {
    let home = tempfile::tempdir().unwrap();
    for (path, content) in files {
        let path = home.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }
    let root = home.path().to_str().unwrap().to_owned();
    let account = Account::load(home.path(), |name| {
        let found = variables.iter().find(|(known, _)| *known == name);
        found.map(|(_, value)| value.replace("HOME", &root))
    });
    (home, account)
}

fn origin(files: &[(&str, &[u8])], variables: &[(&str, &str)]) -> String {
    let (home, account) = load(files, variables);
    let origin = account.unwrap().origin().to_owned();
    origin.replace(home.path().to_str().unwrap(), "HOME")
}

#[test]
fn the_first_source_of_a_token_wins() {
    let stored: &[(&str, &[u8])] = &[
        (".cache/huggingface/token", b"hf_cache\n"),
        ("cache/huggingface/token", b"hf_xdg"),
        ("hf/token", b"hf_home"),
        ("elsewhere", b"  hf_path \r\n"),
    ];
    let all = [
        ("HF_TOKEN", "hf_variable"),
        ("HUGGING_FACE_HUB_TOKEN", "hf_old_variable"),
        ("HF_TOKEN_PATH", "HOME/elsewhere"),
        ("HF_HOME", "~/hf"),
        ("XDG_CACHE_HOME", "HOME/cache"),
    ];
    let expected = [
        "HF_TOKEN",
        "HUGGING_FACE_HUB_TOKEN",
        "HOME/elsewhere",
        "HOME/hf/token",
        "HOME/cache/huggingface/token",
        "HOME/.cache/huggingface/token",
    ];
    for (missing, expected) in expected.iter().enumerate() {
        assert_eq!(origin(stored, &all[missing..]), *expected);
    }
    assert_eq!(origin(stored, &[("HF_TOKEN", "  "), ("HF_HOME", "HOME/hf")]), "HOME/hf/token");
}

#[test]
fn no_token_says_how_to_get_one() {
    for files in [vec![], vec![(".cache/huggingface/token", b" \n".as_slice())]] {
        let (_home, account) = load(&files, &[]);
        let (id, text) = said(&account.unwrap_err());
        assert_eq!(id, "R070");
        assert!(text.contains("settings/tokens") && text.contains("HF_TOKEN"), "{text}");
    }
}

#[test]
fn what_is_no_token_is_named_and_never_shown() {
    let long = vec![b'a'; 100_000];
    let cases: [&[u8]; 4] = [b"hf_secret one", b"hf_secret\nhf_secret", b"hf_secret\xff\xfe", &long];
    for content in cases {
        let (_home, account) = load(&[(".cache/huggingface/token", content)], &[]);
        let (id, text) = said(&account.unwrap_err());
        assert_eq!(id, "R071", "{text}");
        assert!(text.contains("huggingface/token") && !text.contains("hf_secret"), "{text}");
    }
    let (_home, account) = load(&[], &[("HF_TOKEN", "hf_secret\u{e4}")]);
    let (id, text) = said(&account.unwrap_err());
    assert!(id == "R071" && text.contains("HF_TOKEN") && !text.contains("hf_secret"), "{text}");
    let home = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(home.path().join(".cache/huggingface/token")).unwrap();
    assert_eq!(said(&Account::load(home.path(), |_| None).unwrap_err()).0, "R071");
}

#[test]
fn the_token_is_not_shown() {
    let (_home, account) = load(&[], &[("HF_TOKEN", "hf_secret")]);
    let shown = format!("{:?}", account.unwrap());
    assert!(!shown.contains("hf_secret"), "{shown}");
}

#[test]
fn the_token_travels_encrypted_or_stays_here() {
    let at = |endpoint: &str| {
        Account::load(Path::new("/nowhere"), |name| match name {
            "HF_TOKEN" => Some("hf_x".to_owned()),
            "HF_ENDPOINT" => Some(endpoint.to_owned()),
            _ => None,
        })
    };
    for good in [
        "https://hub.test",
        "https://hub.test/mirror/",
        "http://127.0.0.1:8",
        "http://[::1]:9",
        "http://localhost",
    ] {
        at(good).unwrap();
    }
    assert_eq!(at(" ").unwrap().endpoint().as_str(), "https://huggingface.co/");
    for bad in [
        "http://hub.test",
        "http://localhost.hub.test",
        "http://0.0.0.0",
        "ftp://hub.test",
        "hub.test",
        "file:///etc/passwd",
        "https://user:p4ss@hub.test",
        "https://hub.test:99999",
    ] {
        let (id, text) = said(&at(bad).unwrap_err());
        assert_eq!(id, "R072", "{bad}");
        assert!(text.contains("HF_ENDPOINT") && !text.contains("p4ss"), "{text}");
    }
}
