//! The typed keys that are committed are what the catalogues say.

use kstone_keyspace::typed::{GenerateError, rust_keys};
use kstone_keyspace::{Catalogue, SHIPPED};

use crate::support::redis_pattern;

#[test]
fn the_committed_keys_are_those_of_the_catalogues() {
    for (file, text) in SHIPPED {
        let catalogue = Catalogue::parse(file, text).unwrap();
        let expected = rust_keys(&catalogue).unwrap();
        let path = format!("{}/src/keys/{}.rs", env!("CARGO_MANIFEST_DIR"), catalogue.application);
        if std::env::var_os("KSTONE_REWRITE").is_some() {
            std::fs::write(&path, &expected).unwrap();
        }
        let committed = std::fs::read_to_string(&path).unwrap();
        assert!(
            committed == expected,
            "src/keys/{}.rs is not what {file} says: run this test with KSTONE_REWRITE=1",
            catalogue.application
        );
    }
}

fn generate(placeholders: &str, patterns: &[(&str, &str)]) -> Result<String, GenerateError> {
    let mut text =
        format!("application = \"a\"\ndescription = \"b\"\n[placeholders]\n{placeholders}\n");
    for (name, pattern) in patterns {
        text += &redis_pattern(name, pattern);
    }
    rust_keys(&Catalogue::parse("a.toml", &text).unwrap())
}

#[test]
fn names_that_would_be_one_in_rust_are_refused() {
    let error = generate("user_id = \"id\"", &[("user_id", "u:{user_id}")]).unwrap_err();
    let shown =
        "`{user_id}` and `user_id` would both be called `UserId`; rename one in the catalogue";
    assert_eq!(error.to_string(), shown);
    let error = generate("", &[("date", "today")]).unwrap_err();
    assert!(matches!(error, GenerateError::Collision { .. }));
}

#[test]
fn a_word_of_the_language_is_refused_as_a_name() {
    let error = generate("type = \"id\"", &[("thing", "t:{type}")]).unwrap_err();
    assert_eq!(error, GenerateError::Keyword { name: "type".to_owned() });
}
