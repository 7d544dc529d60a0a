//! Strings of which only a part is written, and which are too long to be read for that: what is
//! declared holds for them all the same.

use std::sync::Arc;

use kstone::Database;
use kstone_keyspace::{Governor, GovernorOptions};
use kstone_redis::{Redis, Session, Value};

use crate::support::{keyspace_of, refusal, say};

const CATALOGUE: &str = r#"
application = "long"
description = "Strings that get long"

[placeholders]
thing = "id"

[pattern.document]
pattern = "document:{thing}"
store = "redis"
type = "json"
ttl = "none"
subject = { field = "owner" }
description = "Names a person"

[pattern.bits]
pattern = "bits:{thing}"
store = "redis"
type = "string"
ttl = "none"
subject = "none"
limits = { value_bytes = 3000000 }
description = "A bitmap"

[pattern.count]
pattern = "count:{thing}"
store = "redis"
type = "counter"
ttl = "none"
subject = "none"
description = "A number"
"#;

fn session() -> Session {
    let db = Database::memory().unwrap();
    let redis = Redis::open(&db).unwrap();
    let keyspace = Arc::new(keyspace_of(CATALOGUE));
    Governor::govern(&db, keyspace, GovernorOptions::default()).unwrap();
    redis.session()
}

#[test]
fn a_part_of_a_long_document_is_not_written_unseen() {
    let mut session = session();
    let long = format!(r#"{{"owner":"ann","text":"{}"}}"#, "x".repeat(1 << 20));
    let set = session.call(&[&b"SET"[..], b"document:a", long.as_bytes()]);
    assert!(!matches!(set, Value::Error(_)), "{set:?}");
    let told = refusal(say(&mut session, "SETRANGE document:a 10 bob"));
    assert!(told.contains("long.document") && told.contains("written whole"), "{told}");
    let told = refusal(say(&mut session, "APPEND document:a x"));
    assert!(told.contains("long.document"), "{told}");
    assert_eq!(say(&mut session, "STRLEN document:a"), Value::Integer(long.len() as i64));
    // How long it lives may be said without a look at it.
    assert_eq!(say(&mut session, "EXPIRE document:a 10"), Value::Integer(1));
    say(&mut session, "SET count:a 1");
    let told = refusal(say(&mut session, "SETRANGE count:a 2000000 1"));
    assert!(told.contains("long.count"), "{told}");
    assert_eq!(say(&mut session, "GET count:a"), Value::bulk("1"));
}

#[test]
fn a_string_that_grows_by_parts_is_held_to_its_limit() {
    let mut session = session();
    let grown = say(&mut session, "SETRANGE bits:a 2000000 x");
    assert_eq!(grown, Value::Integer(2_000_001));
    assert_eq!(say(&mut session, "APPEND bits:a y"), Value::Integer(2_000_002));
    let told = refusal(say(&mut session, "SETRANGE bits:a 3000000 x"));
    assert!(told.contains("long.bits") && told.contains("3000000"), "{told}");
    assert_eq!(say(&mut session, "STRLEN bits:a"), Value::Integer(2_000_002));
}
