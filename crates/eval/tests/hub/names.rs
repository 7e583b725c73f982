//! Names of datasets: those that users give, and generated ones.

use aec_eval::hub::{WantedName, default_name};
use proptest::prelude::*;

use crate::hub::said;

#[test]
fn the_default_name_is_made_of_the_evaluation() {
    assert_eq!(default_name("gsm8k", "openai/gpt-4.1-mini", 100, 3), "gsm8k_openai_gpt-4.1-mini_n100_r3");
    assert_eq!(default_name("me/my env", "a:b@c", -1, 1), "me_my-env_a-b-c_n-1_r1");
    assert_eq!(default_name("..a--b..", "-", 1, 1), "a-b._-_n1_r1");
    assert_eq!(default_name("", "", 0, 0), "__n0_r0");
}

#[test]
fn long_names_keep_their_numbers_and_stay_apart() {
    let model = "m".repeat(200);
    let one = default_name("env", &format!("{model}-one"), 500, 3);
    let two = default_name("env", &format!("{model}-two"), 500, 3);
    assert_ne!(one, two);
    for name in [one, two] {
        assert!(name.len() == 96 && name.starts_with("env_mmm") && name.ends_with("_n500_r3"), "{name}");
        WantedName::parse(&name).unwrap();
    }
}

#[test]
fn names_are_given_with_or_without_an_owner() {
    let name = WantedName::parse("results").unwrap();
    assert_eq!((name.owner(), name.name()), (None, "results"));
    assert_eq!(name.owned_by("me").unwrap().to_string(), "me/results");
    let name = WantedName::parse("my-org/my.env_results").unwrap();
    assert_eq!(name.owned_by("me").unwrap().to_string(), "my-org/my.env_results");
}

#[test]
fn bad_names_say_why() {
    let long = "a".repeat(97);
    for (name, why) in [
        ("", "empty"),
        ("/", "empty"),
        ("a/", "empty"),
        ("/b", "owner is empty"),
        ("a/b/c", "more than one"),
        ("https://huggingface.co/datasets/a/b", "more than one"),
        ("a b", "' '"),
        ("a/b\n", "'\\n'"),
        ("gr\u{f6}\u{df}e", "not allowed"),
        ("-a", "begins or ends"),
        ("a.", "begins or ends"),
        ("..", "begins or ends"),
        ("a--b", "`--`"),
        ("a..b", "`..`"),
        ("a.git", ".git"),
        ("a%2fb", "'%'"),
        (&long, "97 characters"),
    ] {
        let (id, text) = said(&WantedName::parse(name).unwrap_err());
        assert_eq!(id, "R075");
        assert!(text.contains(why), "{name}: {text}");
    }
    assert!(WantedName::parse("ok").unwrap().owned_by("bad owner").is_err());
}

proptest! {
    #[test]
    fn every_evaluation_has_a_valid_name(env in ".*", model in "\\PC{0,300}", n: i64, r: i64) {
        let name = default_name(&env, &model, n, r);
        prop_assert!(WantedName::parse(&name).is_ok(), "{name:?}");
        prop_assert_eq!(&name, &default_name(&env, &model, n, r));
    }

    #[test]
    fn names_of_the_hub_stay_as_they_are(env in "[a-z][a-z0-9_]{0,20}", model in "[a-z0-9]{1,20}", n in 0_i64..1000) {
        prop_assert_eq!(default_name(&env, &model, n, 3), format!("{env}_{model}_n{n}_r3"));
    }

    #[test]
    fn any_text_is_a_name_or_an_error(text in ".*") {
        if let Ok(name) = WantedName::parse(&text) {
            let repository = name.owned_by("me").unwrap();
            prop_assert!(repository.to_string().ends_with(text.as_str()));
        }
    }
}
