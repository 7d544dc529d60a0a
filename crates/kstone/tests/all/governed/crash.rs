//! An item and its entries in the index of persons are one commit: a crash leaves both or neither.

use std::sync::Arc;

use kstone::{Database, DatabaseOptions, Durability};
use kstone_core::env::Env;
use kstone_sim::{CrashPolicy, Trigger};

use crate::governed::support::{
    Machine, Students, create, delete, indexed, key, put, recounted, update,
};

fn write(db: &Database) -> kstone::Result<()> {
    for n in 0..4 {
        let pk = format!("student:{n}");
        put(db, key(&pk, "a").with("friend", "b"))?;
        update(db, &pk, "a", "SET friend = sk")?;
        if n % 2 == 0 {
            delete(db, &pk, "a")?;
        }
    }
    Ok(())
}

#[test]
fn after_a_crash_the_index_of_persons_is_that_of_the_items() {
    let mut crashes = 0;
    for at_op in 0.. {
        let machine = Machine::new();
        let db = machine.open().with_durability(Durability::Sync);
        create(&db);
        db.govern(Arc::new(Students::default())).unwrap();
        machine.disk.arm(Trigger::AtOp(at_op));
        let is_done = write(&db).is_ok();
        assert_eq!(is_done, !machine.disk.is_stopped());
        for policy in [CrashPolicy::LoseAll, CrashPolicy::KeepAll, CrashPolicy::Random(at_op)] {
            let found = machine.disk.crash(policy);
            let env = Env { vfs: Arc::new(found), ..machine.env() };
            let db = Database::open_with(env, "db", DatabaseOptions::default()).unwrap();
            assert_eq!(indexed(&db), recounted(&db).1, "{policy:?} at operation {at_op}");
        }
        crashes += 1;
        if is_done {
            break;
        }
    }
    assert!(crashes > 10, "the power was lost {crashes} times only");
}
