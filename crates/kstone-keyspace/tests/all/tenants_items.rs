//! A tenant of items: whatever it asks for, it reads and changes nothing of another.

use std::sync::Arc;

use kstone::ops::{
    BatchGet, BatchGetTable, BatchWrite, Condition, DeleteItem, GetItem, KeyCondition,
    Placeholders, PutItem, Query, Scan, Select, TransactAction, TransactGet, TransactGetRequest,
    TransactKind, TransactWrite, Update, UpdateItem, WriteRequest,
};
use kstone::table::{IndexProjection, IndexSpec, KeyAttribute, KeySchema, TableSpec};
use kstone::{Database, Durability, Item, Value, placeholders};
use kstone_keyspace::{Tenant, TenantItems, shipped};
use kstone_ports::Error;
use kstone_ports::items::{Items, PurgeItems};

use crate::support::now;

const TABLE: &str = "state";
const OWN: &str = "school:abc:student:1";
const OTHER: &str = "school:xyz:student:1";
const SK: &str = "profile:current_mastery";

fn key(pk: &str, sk: &str) -> Item {
    Item::new().with("pk", pk).with("sk", sk)
}

fn item(pk: &str) -> Item {
    key(pk, SK).with("value", "secret").with("other", "o").with("g", "everybody")
}

fn spec() -> TableSpec {
    let index = |name: &str, hash: &str, range: &str| IndexSpec {
        name: name.to_owned(),
        key: KeySchema::hash_range(KeyAttribute::string(hash), KeyAttribute::string(range)),
        projection: IndexProjection::All,
        throughput: None,
    };
    TableSpec {
        name: TABLE.to_owned(),
        key: KeySchema::hash_range(KeyAttribute::string("pk"), KeyAttribute::string("sk")),
        local: vec![index("local", "pk", "other")],
        global: vec![index("global", "g", "pk")],
        ..TableSpec::default()
    }
}

struct World {
    all: Arc<dyn Items>,
    own: TenantItems,
}

impl World {
    fn new() -> World {
        let db = Database::memory().unwrap().with_durability(Durability::Os);
        let all: Arc<dyn Items> = Arc::new(db);
        now(all.require_table(&spec(), None)).unwrap();
        for pk in [OWN, OTHER] {
            now(all.put(&PutItem { table: TABLE.into(), item: item(pk), ..PutItem::default() }))
                .unwrap();
        }
        let tenant = Tenant::new(Arc::new(shipped().unwrap()), "abc");
        let own = tenant.items(Arc::clone(&all));
        World { all, own }
    }

    /// Everything there is.
    fn state(&self) -> Vec<Item> {
        let scan = Scan { table: TABLE.into(), ..Scan::default() };
        let page = now(self.all.scan(&scan)).unwrap();
        let mut items: Vec<Item> =
            page.items.unwrap().iter().map(|item| item.decode().unwrap()).collect();
        items.sort_by_key(|item| format!("{item:?}"));
        items
    }
}

#[track_caller]
fn refused<T: std::fmt::Debug>(answer: Result<T, Error>) -> String {
    match answer {
        Err(Error::Refused(message)) => message,
        other => panic!("not refused: {other:?}"),
    }
}

fn query(text: &str, pk: &str) -> Query {
    Query {
        table: TABLE.into(),
        key_condition: Some(KeyCondition::Text(text.to_owned())),
        placeholders: placeholders([(":pk", pk), (":x", "z")]),
        ..Query::default()
    }
}

fn one_query(pk: &str) -> Query {
    Query { placeholders: placeholders([(":pk", pk)]), ..query("pk = :pk", pk) }
}

#[test]
fn keys_of_others_are_refused_by_every_operation_that_names_keys() {
    let world = World::new();
    let before = world.state();
    let table = || TABLE.to_owned();
    // Another tenant's, nobody's, what no pattern declares, and what is in the wrong partition.
    let foreign = [
        key(OTHER, SK),
        key("student:1", SK),
        key("anything", "at all"),
        key("school:abc", "student:1:profile:current_mastery"),
        key("school:abc:student:1:profile", "current_mastery"),
        key(OWN, "undeclared"),
        Item::new().with("pk", OWN.as_bytes()).with("sk", SK),
        Item::new().with("pk", OWN),
    ];
    for key in foreign {
        let get = GetItem { table: table(), key: key.clone(), ..GetItem::default() };
        refused(now(world.own.get(&get)));
        let put = PutItem { table: table(), item: key.clone(), ..PutItem::default() };
        refused(now(world.own.put(&put)));
        let update = UpdateItem {
            table: table(),
            key: key.clone(),
            update: Some(Update::Text("REMOVE other".into())),
            ..UpdateItem::default()
        };
        refused(now(world.own.update(&update)));
        let delete = DeleteItem { table: table(), key: key.clone(), ..DeleteItem::default() };
        refused(now(world.own.delete(&delete)));
        let keys = vec![item(OWN), key.clone()];
        let of_table = BatchGetTable { table: table(), keys, ..BatchGetTable::default() };
        refused(now(world
            .own
            .batch_get(&BatchGet { tables: vec![of_table], ..BatchGet::default() })));
        for write in [WriteRequest::Put(key.clone()), WriteRequest::Delete(key.clone())] {
            let writes = vec![WriteRequest::Put(item(OWN).with("new", "1")), write];
            let batch = BatchWrite { tables: vec![(table(), writes)], ..BatchWrite::default() };
            refused(now(world.own.batch_write(&batch)));
        }
        let get = TransactGetRequest {
            table: table(),
            key: key.clone(),
            ..TransactGetRequest::default()
        };
        refused(now(world
            .own
            .transact_get(&TransactGet { gets: vec![get], ..TransactGet::default() })));
        for kind in [
            TransactKind::Check(key.clone()),
            TransactKind::Put(key.clone()),
            TransactKind::Delete(key.clone()),
            TransactKind::Update(key.clone(), Update::Text("REMOVE other".into())),
        ] {
            let action = |kind, condition| TransactAction {
                table: table(),
                kind,
                condition,
                placeholders: Placeholders::default(),
                return_on_failure: true,
            };
            let exists = Some(Condition::Text("attribute_exists(pk)".into()));
            let own = action(TransactKind::Put(item(OWN).with("new", "1")), None);
            let actions = vec![own, action(kind, exists)];
            refused(now(world
                .own
                .transact_write(&TransactWrite { actions, ..TransactWrite::default() })));
        }
        let request = PurgeItems { items: vec![(table(), key.clone())], ..PurgeItems::default() };
        refused(now(world.own.purge(&request)));
    }
    assert_eq!(world.state(), before);
}

#[test]
fn a_query_is_done_only_in_a_partition_that_is_the_tenants() {
    let world = World::new();
    for pk in [OTHER, "student:1", "school:abc", "school:abc:student", "school:abc:nonsense", ""] {
        refused(now(world.own.query(&one_query(pk))));
        let built = legacy_condition(pk);
        let request = Query {
            table: TABLE.into(),
            key_condition: Some(KeyCondition::Built(built)),
            ..Query::default()
        };
        refused(now(world.own.query(&request)));
    }
    let found = now(world.own.query(&one_query(OWN))).unwrap();
    assert_eq!(found.count, 1);
    let own_built = Query {
        table: TABLE.into(),
        key_condition: Some(KeyCondition::Built(legacy_condition(OWN))),
        ..Query::default()
    };
    assert_eq!(now(world.own.query(&own_built)).unwrap().count, 1);
    let local = Query { index: Some("local".into()), ..one_query(OWN) };
    assert_eq!(now(world.own.query(&local)).unwrap().count, 1);
    let local = Query { index: Some("local".into()), ..one_query(OTHER) };
    refused(now(world.own.query(&local)));
    let text = "g = :pk AND pk = :x";
    let global = Query { index: Some("global".into()), ..query(text, "everybody") };
    refused(now(world.own.query(&global)));
    refused(now(world.own.query(&Query { table: TABLE.into(), ..Query::default() })));
    // Only the table's own partition key counts, whatever else is compared with it.
    refused(now(world.own.query(&query("sk = :pk AND g = :x", OWN))));
    // Where another's page ended is no place to begin.
    let start = Query { start: Some(key(OTHER, "a")), ..one_query(OWN) };
    now(world.own.query(&start)).unwrap_err();
}

fn legacy_condition(pk: &str) -> kstone::expr::BoundKeyCondition {
    use kstone::EncodedValue;
    use kstone::expr::{BoundKeyCondition, KeyClause, KeyOp};
    let op = KeyOp::Eq(EncodedValue::new(&Value::from(pk)));
    BoundKeyCondition { clauses: vec![KeyClause { name: "pk".into(), op }] }
}

#[test]
fn what_goes_through_everybodys_items_is_refused() {
    let world = World::new();
    for select in [None, Some(Select::Count)] {
        for index in [None, Some("local".to_owned()), Some("global".to_owned())] {
            let scan = Scan { table: TABLE.into(), index, select, ..Scan::default() };
            refused(now(world.own.scan(&scan)));
        }
    }
    for partition in [Value::from(OTHER), Value::from("school:abc"), Value::from(OWN.as_bytes())] {
        let partitions = vec![(TABLE.to_owned(), partition)];
        refused(now(world.own.purge(&PurgeItems { partitions, ..PurgeItems::default() })));
    }
    refused(now(world.own.purge(&PurgeItems { remains: true, ..PurgeItems::default() })));
}

#[test]
fn only_tables_with_declared_items_are_listed() {
    let world = World::new();
    let undeclared = TableSpec { name: "undeclared".to_owned(), ..spec() };
    now(world.all.require_table(&undeclared, None)).unwrap();
    assert_eq!(now(world.all.tables()).unwrap(), [TABLE, "undeclared"]);
    assert_eq!(now(world.own.tables()).unwrap(), [TABLE]);
}

#[test]
fn tables_are_described_without_counts_and_not_made() {
    let world = World::new();
    now(world.own.require_table(&spec(), None)).unwrap();
    refused(now(world.own.require_table(&spec(), Some("ttl"))));
    let other = TableSpec { name: "students".into(), ..spec() };
    refused(now(world.own.require_table(&other, None)));
    refused(now(world.own.describe("kstone.subjects")));
    let seen = now(world.own.describe(TABLE)).unwrap();
    assert_eq!((seen.items, seen.bytes), (0, 0));
    assert!(seen.global.iter().all(|index| index.items == 0));
    now(world.own.settle()).unwrap();
}

#[test]
fn a_tenant_works_with_its_own_items_as_with_any_port() {
    let world = World::new();
    let get = GetItem { table: TABLE.into(), key: key(OWN, SK), ..GetItem::default() };
    assert_eq!(now(world.own.get(&get)).unwrap().item.unwrap().decode().unwrap(), item(OWN));
    let action = |pk: &str| TransactAction {
        table: TABLE.into(),
        kind: TransactKind::Put(item(pk).with("new", "1")),
        condition: None,
        placeholders: Placeholders::default(),
        return_on_failure: false,
    };
    let token = Some("one-token".to_owned());
    let write = TransactWrite { actions: vec![action(OWN)], token, ..TransactWrite::default() };
    now(world.own.transact_write(&write)).unwrap();
    // Another tenant's use of the same token has nothing to do with it.
    let tenant = Tenant::new(Arc::new(shipped().unwrap()), "xyz");
    let other = TransactWrite { actions: vec![action(OTHER)], ..write.clone() };
    now(tenant.items(Arc::clone(&world.all)).transact_write(&other)).unwrap();
    now(world.own.transact_write(&write)).unwrap();
    let purge = PurgeItems {
        items: vec![(TABLE.into(), key(OWN, SK))],
        partitions: vec![(TABLE.into(), Value::from(OWN))],
        ..PurgeItems::default()
    };
    now(world.own.purge(&purge)).unwrap();
    assert_eq!(world.state(), [item(OTHER).with("new", "1")]);
}
