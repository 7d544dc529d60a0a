//! Purging items: nobody reads them any more, no file holds a byte of them, and everything else is
//! as it was.

use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use kstone::ops::PutItem;
use kstone::stream::ShardPosition;
use kstone::table::{
    IndexProjection, IndexSpec, KeyAttribute, KeySchema, StreamView, TableChange, TableSpec,
};
use kstone::{Database, DatabaseOptions, Item, Result, Value, ValueRef};
use kstone_core::env::{Env, ManualClock, SeededRandom};
use kstone_core::{Compression, Options, Tuning};
use kstone_ports::items::{Items, PurgeItems, PurgeReport, StreamImage, StreamImageFilter};
use kstone_sim::{CrashPolicy, SimDisk, Trigger};

const TABLE: &str = "people";
/// Whatever has this in it must be gone.
const SECRET: &str = "SECRET";

struct Machine {
    disk: SimDisk,
    clock: Arc<ManualClock>,
}

impl Machine {
    fn new() -> Self {
        Machine { disk: SimDisk::new(3), clock: Arc::new(ManualClock::at(1_700_000_000_000)) }
    }

    fn open(&self) -> Result<Database> {
        let env = Env {
            vfs: Arc::new(self.disk.clone()),
            clock: Arc::clone(&self.clock) as _,
            random: Arc::new(SeededRandom::new(1)),
            threads: None,
        };
        // Small files, so that there are several levels; and bytes as they are.
        let engine = Options {
            memory_budget_bytes: 256 << 10,
            stripe_records_max: Some(8),
            compression: Compression::None,
            bottom_compression: Compression::None,
            tuning: Tuning {
                block_bytes: 256,
                l0_compact_files: 2,
                l1_bytes: 4096,
                file_bytes: 2048,
                log_segment_bytes: Some(16_384),
                ..Tuning::default()
            },
            ..Options::default()
        };
        Database::open_with(env, "db", DatabaseOptions { engine, ..DatabaseOptions::default() })
    }

    /// The files, checkpoints' among them, that hold a needle.
    fn holders(&self, needle: &str) -> Vec<String> {
        let mut found = Vec::new();
        for path in self.disk.paths() {
            let bytes = self.disk.read_file(&path).unwrap();
            if bytes.windows(needle.len()).any(|window| window == needle.as_bytes()) {
                found.push(path.display().to_string());
            }
        }
        found
    }
}

fn index(name: &str, key: KeySchema) -> IndexSpec {
    IndexSpec { name: name.to_owned(), key, projection: IndexProjection::All, throughput: None }
}

fn create(db: &Database, with_global: bool) {
    let s = KeyAttribute::string;
    let global = index("by-email", KeySchema::hash(s("email")));
    let spec = TableSpec {
        name: TABLE.to_owned(),
        key: KeySchema::hash_range(s("pk"), s("sk")),
        local: vec![index("by-city", KeySchema::hash_range(s("pk"), s("city")))],
        global: if with_global { vec![global] } else { Vec::new() },
        stream: Some(StreamView::NewAndOldImages),
        ..TableSpec::default()
    };
    db.create_table(&spec).unwrap();
    db.update_ttl(TABLE, "ttl", true).unwrap();
    db.run_background().unwrap();
}

fn put(db: &Database, item: Item) {
    db.put_item(&PutItem { table: TABLE.to_owned(), item, ..PutItem::default() }).wait().unwrap();
}

fn key(pk: &str, sk: &str) -> Item {
    Item::new().with("pk", pk).with("sk", sk)
}

fn person(pk: &str, sk: &str, mark: &str) -> Item {
    key(pk, sk)
        .with("email", format!("{mark}-mail-{sk}"))
        .with("city", format!("{mark}-city"))
        .with("name", format!("{mark}-name"))
        .with("ttl", 1_800_000_000)
}

/// Others with their data, and one with data that moved about in indexes and in time; a checkpoint
/// was made in the middle of it.
fn fill(db: &Database) {
    for n in 0..60 {
        put(db, person(&format!("other{n}"), "profile", "plain"));
    }
    for n in 0..10 {
        put(db, person("SECRET-pk", &format!("s{n}"), "SECRET-old"));
    }
    db.engine().checkpoint("copy").unwrap();
    for n in 0..10 {
        put(db, person("SECRET-pk", &format!("s{n}"), "SECRET-new"));
    }
    put(db, person("shared-pk", "SECRET-sk", "SECRET-third"));
    db.table(TABLE).delete(key("SECRET-pk", "s9")).unwrap();
}

fn request() -> PurgeItems {
    PurgeItems {
        items: vec![(TABLE.to_owned(), key("shared-pk", "SECRET-sk"))],
        partitions: vec![(TABLE.to_owned(), Value::from("SECRET-pk"))],
        ..PurgeItems::default()
    }
}

fn purge(db: &Database, request: &PurgeItems) -> kstone_ports::Result<PurgeReport> {
    let mut answer = db.purge(request);
    match answer.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(report) => report,
        Poll::Pending => panic!("it waits for something"),
    }
}

/// What the stream tells of, by the partition keys.
fn told(db: &Database) -> Vec<String> {
    let mut told = Vec::new();
    let (stream, _) = db.list_streams(Some(TABLE), None, 10);
    let stream = &stream[0];
    for shard in db.describe_stream(stream, None, 100).unwrap().shards {
        let from = db.shard_iterator(stream, &shard.id, ShardPosition::TrimHorizon).unwrap();
        let page = db.stream_records(&from, 1000).wait().unwrap();
        for record in page.records {
            told.push(
                record.keys.decode().unwrap().get("pk").unwrap().as_str().unwrap().to_owned(),
            );
        }
    }
    told.sort();
    told
}

fn check_gone(machine: &Machine, db: &Database) {
    assert_eq!(machine.holders(SECRET), Vec::<String>::new());
    let items = db.table(TABLE).scan().unwrap();
    assert_eq!(items.len(), 60);
    assert!(told(db).iter().all(|pk| pk.starts_with("other")));
    assert_eq!(told(db).len(), 60);
}

#[test]
fn nothing_of_purged_items_is_left_in_any_file_and_everything_else_is() {
    for with_global in [false, true] {
        let machine = Machine::new();
        let db = machine.open().unwrap();
        create(&db, with_global);
        fill(&db);
        for needle in ["SECRET-pk", "SECRET-old-mail-s1", "SECRET-new-city"] {
            assert!(!machine.holders(needle).is_empty(), "{needle} was nowhere to begin with");
        }
        let report = purge(&db, &request()).unwrap();
        check_gone(&machine, &db);
        assert_eq!(report.stripes == 256, with_global, "{report:?}");
        assert_eq!((report.checkpoints, report.missing_checkpoints.len()), (1, 0));
        // Nine items and one, each with its entries; their stream records; the same in the copy.
        assert!(report.records > 50 && report.last_seq > report.first_seq, "{report:?}");
        if with_global {
            let found = db.table(TABLE).query_index(
                "by-email",
                "email = :e",
                [(":e", "plain-mail-profile")],
            );
            assert_eq!(found.unwrap().len(), 60);
        }
        drop(db);
        check_gone(&machine, &machine.open().unwrap());
    }
}

#[test]
fn what_an_index_held_is_gone_also_when_the_index_was_dropped_before() {
    let machine = Machine::new();
    let db = machine.open().unwrap();
    create(&db, true);
    fill(&db);
    let drop_index =
        TableChange { delete_index: Some("by-email".to_owned()), ..TableChange::default() };
    db.update_table(TABLE, &drop_index).unwrap();
    purge(&db, &PurgeItems { remains: true, ..request() }).unwrap();
    check_gone(&machine, &db);
}

#[test]
fn what_a_table_held_is_gone_also_when_the_table_was_dropped_before() {
    let machine = Machine::new();
    let db = machine.open().unwrap();
    create(&db, true);
    fill(&db);
    db.delete_table(TABLE).unwrap();
    purge(&db, &request()).unwrap();
    assert_eq!(machine.holders(SECRET), Vec::<String>::new());
}

#[test]
fn what_was_deleted_before_anybody_asked_can_be_purged_without_naming_it() {
    let machine = Machine::new();
    let db = machine.open().unwrap();
    create(&db, false);
    fill(&db);
    purge(&db, &request()).unwrap();
    put(&db, person("SECRET-unnamed", "a", "SECRET-more"));
    db.table(TABLE).delete(key("SECRET-unnamed", "a")).unwrap();
    put(&db, key("class", "list").with("who", "Ada SECRET-member Bob"));
    put(&db, key("class", "list").with("who", "Ada Bob"));
    // A stream tells of it for a day.
    machine.clock.advance(25 * 3600 * 1000);
    db.run_background().unwrap();
    assert!(!machine.holders(SECRET).is_empty());
    let all = PurgeItems { remains: true, ..PurgeItems::default() };
    assert_eq!(purge(&db, &all).unwrap().stripes, 256);
    assert_eq!(machine.holders(SECRET), Vec::<String>::new());
    assert_eq!(db.table(TABLE).scan().unwrap().len(), 61);
}

#[test]
fn what_a_stream_told_of_somebody_goes_also_where_the_item_is_another_by_now() {
    let machine = Machine::new();
    let db = machine.open().unwrap();
    create(&db, false);
    put(&db, person("elsewhere", "a", "SECRET-once"));
    db.engine().checkpoint("copy").unwrap();
    put(&db, person("elsewhere", "a", "plain"));
    put(&db, person("elsewhere", "b", "plain"));
    assert_eq!(told(&db).len(), 3);
    let names = |image: &StreamImage<'_>| {
        assert_eq!((image.table, image.pk), (TABLE, &b"elsewhere"[..]));
        matches!(image.image.get("name"), Some(ValueRef::S(name)) if name.contains(SECRET))
    };
    let request = PurgeItems {
        stream_images: Some(StreamImageFilter(Arc::new(names))),
        ..PurgeItems::default()
    };
    purge(&db, &request).unwrap();
    assert_eq!(told(&db).len(), 1, "two told of somebody");
    let copy = db.open_checkpoint("copy").unwrap().unwrap();
    assert_eq!(told(&copy), Vec::<String>::new());
    assert!(copy.table(TABLE).get(key("elsewhere", "a")).unwrap().is_some());
    drop(copy);
    let left = machine.holders(SECRET);
    let is_copy = |holder: &String| holder.starts_with("copy");
    assert!(!left.is_empty() && left.iter().all(is_copy), "to be read in the checkpoint: {left:?}");
    let items = vec![(TABLE.to_owned(), key("elsewhere", "a"))];
    purge(&db, &PurgeItems { items, ..request }).unwrap();
    assert_eq!(machine.holders(SECRET), Vec::<String>::new());
}

#[test]
fn a_purge_that_was_interrupted_anywhere_is_asked_for_again() {
    let mut is_done = false;
    for at_op in (0..).step_by(37) {
        if is_done {
            assert!(at_op > 37 * 5, "it was hardly interrupted");
            break;
        }
        let machine = Machine::new();
        let db = machine.open().unwrap();
        create(&db, false);
        fill(&db);
        machine.disk.arm(Trigger::AtOp(at_op));
        is_done = purge(&db, &request()).is_ok();
        drop(db);
        let found = machine.disk.crash(CrashPolicy::Random(at_op));
        let machine = Machine { disk: found, clock: machine.clock };
        let db = machine.open().unwrap();
        purge(&db, &request()).unwrap();
        check_gone(&machine, &db);
    }
}

#[test]
fn keys_that_do_not_fit_the_table_are_refused() {
    let machine = Machine::new();
    let db = machine.open().unwrap();
    create(&db, false);
    let wrong = [
        PurgeItems { items: vec![(TABLE.to_owned(), Item::new().with("pk", 1))], ..request() },
        PurgeItems { partitions: vec![(TABLE.to_owned(), Value::from(1))], ..request() },
    ];
    for request in wrong {
        let refused = purge(&db, &request).unwrap_err().to_string();
        assert_eq!(refused, "The provided key element does not match the schema");
    }
}
