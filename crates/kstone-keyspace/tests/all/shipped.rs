//! The catalogues that ship: they have no problems.

use kstone_keyspace::{SHIPPED, check, shipped};

#[test]
fn the_shipped_catalogues_have_neither_errors_nor_warnings() {
    let report = check(&SHIPPED);
    assert!(report.problems.is_empty(), "{report}");
    let keyspace = shipped().unwrap();
    assert!(keyspace.warnings().is_empty());
}
