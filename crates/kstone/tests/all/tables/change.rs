//! The changes that a table accepts, and the errors for all others.

use kstone::table::{
    Billing, BillingMode, RawIndex, RawStream, RawTable, RawTableChange, Status, StreamView,
    TableChange,
};
use kstone::{Database, Error, Item};

use crate::tables::support::{
    INVALID, change, create, delete, including, index, put, raw, types, units, update, with_table,
};

/// `orders` with the index `gsi` on `b`, billed by request.
fn on_demand() -> Database {
    with_table(&RawTable { global: Some(vec![index("gsi", "b H")]), ..raw("a b", "a H") })
}

/// The same with 5 units of everything, and a local index.
fn provisioned() -> Database {
    with_table(&RawTable {
        billing: None,
        throughput: units(5, 5),
        local: Some(vec![index("lsi", "a H b R")]),
        global: Some(vec![RawIndex { throughput: units(5, 5), ..index("gsi", "b H") }]),
        ..raw("a b", "a H b R")
    })
}

fn refusal(db: &Database, change: &RawTableChange) -> String {
    match db.update_table_as_requested("orders", change) {
        Err(Error::Validation(message)) => message,
        other => panic!("{other:?}"),
    }
}

fn limit(db: &Database, change: &RawTableChange) -> String {
    match db.update_table_as_requested("orders", change) {
        Err(Error::LimitExceeded(message)) => message,
        other => panic!("{other:?}"),
    }
}

fn stream(enabled: bool, view: Option<StreamView>) -> RawTableChange {
    RawTableChange { stream: Some(RawStream { enabled, view }), ..RawTableChange::default() }
}

fn throughput(read: u64, write: u64) -> RawTableChange {
    RawTableChange { throughput: units(read, write), ..RawTableChange::default() }
}

fn new_index(index: RawIndex, attributes: &str) -> RawTableChange {
    RawTableChange { attributes: Some(types(attributes)), ..change(vec![create(index)]) }
}

#[test]
fn a_request_changes_something() {
    let nothing = "At least one of ProvisionedThroughput, BillingMode, UpdateStreamEnabled, \
                   GlobalSecondaryIndexUpdates, SSESpecification, ReplicaUpdates, \
                   MultiAccountReplicaReady, ReplicaTransitRoleArn, MultiRegionConsistency, \
                   DeletionProtectionEnabled, OnDemandThroughput, WarmThroughput or TableClass is \
                   required";
    let db = on_demand();
    let definitions = RawTableChange { attributes: Some(types("a")), ..RawTableChange::default() };
    for empty in [RawTableChange::default(), definitions, change(Vec::new())] {
        assert_eq!(refusal(&db, &empty), nothing);
        // Before the table is looked for.
        assert!(matches!(
            db.update_table_as_requested("missing", &empty),
            Err(Error::Validation(message)) if message == nothing
        ));
    }
    assert!(matches!(
        db.update_table("orders", &TableChange::default()),
        Err(Error::Validation(message)) if message == nothing
    ));
    let with_empty_list = RawTableChange { deletion_protection: Some(true), ..change(Vec::new()) };
    assert_eq!(
        refusal(&db, &with_empty_list),
        format!("{INVALID}List of GlobalSecondaryIndexUpdates is empty")
    );
}

#[test]
fn a_table_that_does_not_exist_cannot_be_changed() {
    let db = on_demand();
    match db.update_table_as_requested("missing", &stream(false, None)) {
        Err(Error::NotFound(message)) => {
            assert_eq!(message, "Requested resource not found: Table: missing not found");
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn some_changes_are_made_alone() {
    let db = on_demand();
    let only = |what: &str| {
        format!("{INVALID}{what} modification must be the only operation in the request")
    };
    let class = Some("STANDARD".to_owned());
    let all = RawTableChange {
        encryption: Some(true),
        table_class: class.clone(),
        deletion_protection: Some(true),
        ..RawTableChange::default()
    };
    assert_eq!(refusal(&db, &all), only("Server-Side Encryption"));
    let two = RawTableChange { encryption: None, ..all };
    assert_eq!(refusal(&db, &two), only("TableClass"));
    let protected = RawTableChange { deletion_protection: Some(true), ..stream(false, None) };
    assert_eq!(refusal(&db, &protected), only("DeletionProtection"));
    let maximum = RawTableChange { on_demand: Some((Some(1), None)), ..stream(false, None) };
    assert_eq!(
        refusal(&db, &maximum),
        format!(
            "{INVALID}OnDemandThroughput can only be combined with BillingMode in an UpdateTable \
             request"
        )
    );
    let view = Some(StreamView::KeysOnly);
    let billing = Some(BillingMode::PayPerRequest);
    let together = RawTableChange { billing, ..stream(true, view) };
    db.update_table_as_requested("orders", &together).unwrap();
    let class = RawTableChange { table_class: class, ..RawTableChange::default() };
    db.update_table_as_requested("orders", &class).unwrap();

    let db = provisioned();
    let busy = |what: &str| format!("{INVALID}You cannot {what}");
    let stream_and_units = RawTableChange { throughput: units(6, 6), ..stream(true, view) };
    assert_eq!(
        refusal(&db, &stream_and_units),
        busy("modify stream status while updating table IOPS")
    );
    let index_and_units = RawTableChange { throughput: units(6, 6), ..change(vec![delete("gsi")]) };
    assert_eq!(
        refusal(&db, &index_and_units),
        busy("create or delete index while updating table IOPS")
    );
    let index_and_stream =
        RawTableChange { global: Some(vec![delete("gsi")]), ..stream(true, view) };
    assert_eq!(
        refusal(&db, &index_and_stream),
        busy("create or delete index while changing stream status")
    );
}

#[test]
fn throughput_changes_to_something_else() {
    let db = provisioned();
    let message = refusal(&db, &throughput(5, 5));
    assert_eq!(
        message,
        "The provisioned throughput for the table will not change. The requested value equals \
         the current value. Current ReadCapacityUnits provisioned for the table: 5. Requested \
         ReadCapacityUnits: 5. Current WriteCapacityUnits provisioned for the table: 5. Requested \
         WriteCapacityUnits: 5. Refer to the Amazon DynamoDB Developer Guide for current limits \
         and how to request higher limits."
    );
    let with_mode = RawTableChange { billing: Some(BillingMode::Provisioned), ..throughput(5, 5) };
    assert_eq!(refusal(&db, &with_mode), message);
    let message = refusal(&db, &change(vec![update("gsi", units(5, 5))]));
    assert!(message.starts_with(
        "The provisioned throughput for the index gsi will not change. The requested value \
         equals the current value. Current ReadCapacityUnits provisioned for index gsi: 5."
    ));
    let both =
        RawTableChange { global: Some(vec![update("gsi", units(7, 5))]), ..throughput(5, 6) };
    let changed = db.update_table_as_requested("orders", &both).unwrap().spec;
    assert_eq!((changed.throughput, changed.global[0].throughput), (units(5, 6), units(7, 5)));
    assert!(refusal(&db, &throughput(0, 5)).starts_with("1 validation error detected: Value '0'"));
}

#[test]
fn the_billing_mode_changes_for_table_and_indexes_together() {
    let db = on_demand();
    let mode = |billing, throughput| RawTableChange {
        billing: Some(billing),
        throughput,
        ..RawTableChange::default()
    };
    let neither = format!(
        "{INVALID}Neither ReadCapacityUnits nor WriteCapacityUnits can be specified when \
         BillingMode is PAY_PER_REQUEST"
    );
    assert_eq!(refusal(&db, &mode(BillingMode::PayPerRequest, units(1, 1))), neither);
    assert_eq!(refusal(&db, &throughput(1, 1)), neither);
    assert_eq!(
        refusal(&db, &mode(BillingMode::Provisioned, None)),
        format!("{INVALID}ProvisionedThroughput must be specified when BillingMode is PROVISIONED")
    );
    assert_eq!(
        refusal(&db, &mode(BillingMode::Provisioned, units(1, 1))),
        format!("{INVALID}ProvisionedThroughput must be specified for index: gsi")
    );
    assert_eq!(
        refusal(&db, &change(vec![update("gsi", units(1, 1))])),
        format!(
            "{INVALID}The only Updates for index: gsi when TableThroughputMode is \
             PAY_PER_REQUEST can be to OnDemandThroughput, WarmThroughput"
        )
    );
    // Nothing is wrong with asking for what is there.
    db.update_table_as_requested("orders", &mode(BillingMode::PayPerRequest, None)).unwrap();
    let all = RawTableChange {
        global: Some(vec![update("gsi", units(2, 2))]),
        ..mode(BillingMode::Provisioned, units(1, 1))
    };
    let spec = db.update_table_as_requested("orders", &all).unwrap().spec;
    assert_eq!((spec.throughput, spec.global[0].throughput), (units(1, 1), units(2, 2)));
    let back = TableChange { billing: Some(Billing::OnDemand), ..TableChange::default() };
    let spec = db.update_table("orders", &back).unwrap().spec;
    assert_eq!((spec.throughput, spec.global[0].throughput), (None, None));
}

#[test]
fn a_maximum_of_on_demand_throughput_changes_by_parts() {
    let db = on_demand();
    let maximum =
        |read, write| TableChange { on_demand: Some((read, write)), ..TableChange::default() };
    db.update_table("orders", &maximum(Some(10), None)).unwrap();
    let spec = db.update_table("orders", &maximum(None, Some(-1))).unwrap().spec;
    assert_eq!(spec.on_demand, Some((Some(10), Some(-1))));
    match db.update_table("orders", &maximum(Some(0), None)) {
        Err(Error::Validation(message)) => assert!(message.ends_with("outside of valid range")),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_stream_is_opened_when_there_is_none_and_closed_when_there_is_one() {
    let db = on_demand();
    let view = Some(StreamView::NewImage);
    assert_eq!(
        refusal(&db, &stream(true, None)),
        format!("{INVALID}If stream is being enabled then UpdateViewType is required")
    );
    assert_eq!(
        refusal(&db, &stream(false, view)),
        format!("{INVALID}If stream is being disabled, then UpdateViewType must not be specified")
    );
    assert_eq!(
        refusal(&db, &stream(false, None)),
        "Table has no stream to disable: TableName: orders"
    );
    let first = db.update_table_as_requested("orders", &stream(true, view)).unwrap();
    assert_eq!(first.spec.stream, view);
    for view in [view, Some(StreamView::KeysOnly)] {
        assert_eq!(
            refusal(&db, &stream(true, view)),
            "Table already has an enabled stream: TableName: orders"
        );
    }
    let closed = db.update_table_as_requested("orders", &stream(false, None)).unwrap();
    assert_eq!((closed.spec.stream, &closed.stream_label), (None, &first.stream_label));
    let second = db.update_table_as_requested("orders", &stream(true, view)).unwrap();
    assert_ne!(second.stream_label, first.stream_label);
}

#[test]
fn an_entry_for_indexes_does_one_thing_to_one_index() {
    let db = provisioned();
    let refused = |entries| refusal(&db, &change(entries));
    assert_eq!(
        refused(vec![kstone::table::RawIndexChange::default()]),
        format!(
            "{INVALID}One of GlobalSecondaryIndexUpdate.Update, \
             GlobalSecondaryIndexUpdate.Create, GlobalSecondaryIndexUpdate.Delete must not be null"
        )
    );
    let two = kstone::table::RawIndexChange {
        delete: Some("gsi".to_owned()),
        ..update("gsi", units(6, 6))
    };
    assert_eq!(
        refused(vec![two]),
        format!(
            "{INVALID}Only one global secondary index action is allowed per \
             GlobalSecondaryIndexUpdate object"
        )
    );
    assert_eq!(
        refused(vec![update("gsi", units(6, 6)), delete("gsi")]),
        format!(
            "{INVALID}Only one global secondary index update per index is allowed \
             simultaneously. Index: gsi"
        )
    );
    assert_eq!(
        refused(vec![delete("lsi")]),
        "Cannot delete an index that is not a GlobalSecondaryIndex: lsi"
    );
    assert_eq!(
        refused(vec![update("lsi", units(6, 6))]),
        "Cannot update an index that is not a GlobalSecondaryIndex: lsi"
    );
    for entry in [delete("nope"), update("nope", units(6, 6))] {
        match db.update_table_as_requested("orders", &change(vec![entry])) {
            Err(Error::NotFound(message)) => {
                assert_eq!(message, "Requested resource not found: Index nope for table orders")
            }
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn a_new_index_is_checked_as_one_of_a_new_table() {
    let db = on_demand();
    assert_eq!(
        refusal(&db, &change(vec![create(index("new", "b H"))])),
        format!("{INVALID}AttributeDefinitions is not specified for index: new")
    );
    assert_eq!(
        refusal(&db, &new_index(index("new", "c H"), "d")),
        format!(
            "{INVALID}Some index key attributes are not defined in AttributeDefinitions. Keys: \
             [c], AttributeDefinitions: [d, a, b]"
        )
    );
    assert_eq!(
        refusal(&db, &new_index(index("new", "b H"), "b:N")),
        "Attribute Name is duplicated: b"
    );
    assert_eq!(
        refusal(&db, &new_index(index("new", "c R b H"), "c")),
        "Invalid KeySchema: The first KeySchemaElement is not a HASH key type"
    );
    assert_eq!(
        refusal(&db, &new_index(RawIndex { projection: None, ..index("new", "c H") }, "c")),
        format!("{INVALID}Unknown ProjectionType: null")
    );
    let with_units = RawIndex { throughput: units(1, 1), ..index("new", "c H") };
    assert_eq!(
        refusal(&db, &new_index(with_units, "c")),
        format!(
            "{INVALID}Neither ReadCapacityUnits nor WriteCapacityUnits can be specified for \
             index: new when BillingMode is PAY_PER_REQUEST"
        )
    );
    assert_eq!(
        refusal(&provisioned(), &new_index(index("new", "c H"), "c")),
        format!(
            "{INVALID}Both ReadCapacityUnits and WriteCapacityUnits must be specified for index: \
             new"
        )
    );
    assert_eq!(
        refusal(&db, &new_index(index("gsi", "b H"), "b")),
        "Attempting to create an index which already exists"
    );
    // Definitions that nothing uses are passed over, even wrong ones.
    let extra = new_index(including("new", "c H b R", &["x"]), "c:N z a:N");
    let made = db.update_table_as_requested("orders", &extra).unwrap();
    assert_eq!(made.spec.attribute_definitions(), types("a b c:N"));
}

#[test]
fn one_index_is_made_or_dropped_at_a_time() {
    let only_one = "Subscriber limit exceeded: Only 1 online index can be created or deleted \
                    simultaneously per table";
    let db = on_demand();
    let two = RawTableChange {
        attributes: Some(types("b")),
        ..change(vec![create(index("one", "b H")), create(index("two", "b H"))])
    };
    assert_eq!(limit(&db, &two), only_one);
    let swap = RawTableChange {
        attributes: Some(types("b")),
        ..change(vec![create(index("one", "b H")), delete("gsi")])
    };
    assert_eq!(limit(&db, &swap), only_one);
    let indexes = (0..20).map(|n| index(&format!("idx{n}"), "b H")).collect();
    let full = with_table(&RawTable { global: Some(indexes), ..raw("a b", "a H") });
    assert_eq!(
        limit(&full, &new_index(index("one", "b H"), "b")),
        "Subscriber limit exceeded: Number of global secondary indexes exceeds per-table limit \
         of 20"
    );
}

#[test]
fn while_an_index_is_filled_the_table_stays_and_only_that_index_can_be_dropped() {
    let db = kstone::Database::open_with(
        kstone_core::env::Env { threads: None, ..kstone_core::env::Env::memory() },
        "db",
        kstone::DatabaseOptions::default(),
    )
    .unwrap();
    let table = RawTable { global: Some(vec![index("gsi", "b H")]), ..raw("a b", "a H") };
    db.create_table(&table.resolve().unwrap()).unwrap();
    put(&db, "orders", Item::new().with("a", "1").with("c", "x")).unwrap();
    let filling = new_index(index("new", "c H"), "c");
    let made = db.update_table_as_requested("orders", &filling).unwrap();
    assert_eq!(made.global[1].status, Status::Creating);
    assert_eq!(made.status, Status::Updating);
    match db.delete_table("orders") {
        Err(Error::InUse(message)) => assert_eq!(
            message,
            "Attempt to change a resource which is still in use: Cannot delete table while \
             indexes are being created, updated, or deleted."
        ),
        other => panic!("{other:?}"),
    }
    limit(&db, &change(vec![delete("gsi")]));
    limit(&db, &new_index(index("more", "c H"), "c"));
    let gone = db.update_table_as_requested("orders", &change(vec![delete("new")])).unwrap();
    assert_eq!(gone.global.last().unwrap().status, Status::Deleting);
    db.update_table_as_requested("orders", &filling).unwrap();
    db.run_background().unwrap();
    let filled = db.describe_table("orders").unwrap();
    assert_eq!((filled.status, filled.global[1].status), (Status::Active, Status::Active));
    assert_eq!(filled.global[1].items, 1);
    db.delete_table("orders").unwrap();
}

#[test]
fn a_protected_table_is_dropped_only_when_it_is_no_longer_protected() {
    let db = on_demand();
    let protect = |on| TableChange { deletion_protection: Some(on), ..TableChange::default() };
    db.update_table("orders", &protect(true)).unwrap();
    match db.delete_table("orders") {
        Err(Error::Validation(message)) => assert_eq!(
            message,
            "Resource cannot be deleted as it is currently protected against deletion. Disable \
             deletion protection first."
        ),
        other => panic!("{other:?}"),
    }
    db.update_table("orders", &protect(true)).unwrap();
    db.update_table("orders", &protect(false)).unwrap();
    db.delete_table("orders").unwrap();
}

#[test]
fn encryption_that_is_the_default_cannot_be_switched_off() {
    let db = on_demand();
    let encrypt = |on| TableChange { encryption: Some(on), ..TableChange::default() };
    match db.update_table("orders", &encrypt(false)) {
        Err(Error::Validation(message)) => {
            assert_eq!(message, format!("{INVALID}Table is already encrypted by default"));
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(db.update_table("orders", &encrypt(true)).unwrap().spec.encryption, Some(true));
    db.update_table("orders", &encrypt(false)).unwrap();
}
