//! The examples run, and their own assertions hold.

#[path = "../../examples/embedded.rs"]
#[allow(dead_code, reason = "its main is not called")]
mod embedded;
#[path = "../../examples/key_design.rs"]
#[allow(dead_code, reason = "its main is not called")]
mod key_design;

#[test]
fn the_embedded_example_does_what_it_says() {
    let dir = std::env::temp_dir().join(format!("kstone-examples-{}", std::process::id()));
    embedded::run(&dir).unwrap();
    std::fs::remove_dir_all(&dir).unwrap();
}

#[test]
fn every_key_design_pattern_holds() {
    key_design::run().unwrap();
}
