//! The tables that can be created, and the errors for all others.

use kstone::table::{
    BillingMode, IndexProjection, IndexSpec, KeyAttribute, KeySchema, ProjectionType, RawIndex,
    RawStream, RawTable, StreamView, TableSpec,
};
use kstone::{Database, Error};

use crate::tables::support::{INVALID, including, index, key, raw, refusal, spec, types, units};

fn named(name: &str) -> RawTable {
    RawTable { name: name.to_owned(), ..raw("a", "a H") }
}

fn with_global(attributes: &str, elements: &str, indexes: Vec<RawIndex>) -> RawTable {
    RawTable { global: Some(indexes), ..raw(attributes, elements) }
}

fn with_local(attributes: &str, elements: &str, indexes: Vec<RawIndex>) -> RawTable {
    RawTable { local: Some(indexes), ..raw(attributes, elements) }
}

#[test]
fn a_request_gives_the_table_that_it_describes() {
    let request = RawTable {
        local: Some(vec![index("by-time", "a H c R")]),
        global: Some(vec![including("by-owner", "d H e H b R", &["z", "y"])]),
        stream: Some(RawStream { enabled: true, view: Some(StreamView::KeysOnly) }),
        tags: vec![("team".to_owned(), "core".to_owned())],
        ..raw("a b:N c:B d e", "a H b R")
    };
    let spec = request.resolve().unwrap();
    let (a, b) = (KeyAttribute::string("a"), KeyAttribute::number("b"));
    assert_eq!(spec.key, KeySchema::hash_range(a.clone(), b.clone()));
    assert_eq!(spec.local[0].key, KeySchema::hash_range(a, KeyAttribute::binary("c")));
    let owner = KeySchema {
        hash: vec![KeyAttribute::string("d"), KeyAttribute::string("e")],
        range: vec![b],
    };
    assert_eq!(spec.global[0].key, owner);
    assert_eq!(
        spec.global[0].projection,
        IndexProjection::Include(vec!["y".to_owned(), "z".to_owned()])
    );
    assert_eq!(spec.stream, Some(StreamView::KeysOnly));
    assert_eq!(spec.attribute_definitions(), types("a b:N c:B d e"));
    let db = Database::memory().unwrap();
    assert_eq!(db.create_table(&spec).unwrap().spec, spec);
}

#[test]
fn a_table_has_a_name_of_3_to_255_letters_digits_and_signs() {
    let value = |name: &str, must: &str| {
        format!("Value '{name}' at 'tableName' failed to satisfy constraint: Member must {must}")
    };
    let pattern = "satisfy regular expression pattern: [a-zA-Z0-9_.-]+";
    let short = "have length greater than or equal to 3";
    let long_name = "a".repeat(256);
    for (name, expected) in [
        ("ab", format!("1 validation error detected: {}", value("ab", short))),
        ("a b c", format!("1 validation error detected: {}", value("a b c", pattern))),
        (
            "x!",
            format!(
                "2 validation errors detected: {}; {}",
                value("x!", pattern),
                value("x!", short)
            ),
        ),
        (
            &long_name,
            format!(
                "1 validation error detected: {}",
                value(&long_name, "have length less than or equal to 255")
            ),
        ),
    ] {
        assert_eq!(refusal(&named(name)), expected);
    }
    assert!(named("A.b_9-").resolve().is_ok());
    // A name that no table can have is reported alone.
    assert!(!refusal(&RawTable { key: Vec::new(), ..named("ab") }).contains("keySchema"));
}

#[test]
fn lengths_and_smallest_values_are_told_all_at_once() {
    let mut long = raw("a b c", "a H b R c R");
    long.throughput = units(0, 1);
    assert_eq!(
        refusal(&long),
        "2 validation errors detected: Value '0' at 'provisionedThroughput.readCapacityUnits' \
         failed to satisfy constraint: Member must have value greater than or equal to 1; Value \
         '[KeySchemaElement(attributeName=a, keyType=HASH), KeySchemaElement(attributeName=b, \
         keyType=RANGE), KeySchemaElement(attributeName=c, keyType=RANGE)]' at 'keySchema' failed \
         to satisfy constraint: Member must have length less than or equal to 2"
    );
    let twenty_one: Vec<String> = (0..21).map(|n| format!("x{n}")).collect();
    let names: Vec<&str> = twenty_one.iter().map(String::as_str).collect();
    let message = refusal(&with_global("a b", "a H", vec![including("gsi", "b H", &names)]));
    assert!(message.ends_with(
        "at 'globalSecondaryIndexes.1.member.projection.nonKeyAttributes' failed to satisfy \
         constraint: Member must have length less than or equal to 20"
    ));
    let message = refusal(&with_global("a b", "a H", vec![index("g!", "b H")]));
    assert!(message.starts_with(
        "2 validation errors detected: Value 'g!' at 'globalSecondaryIndexes.1.member.indexName'"
    ));
}

#[test]
fn units_are_given_if_and_only_if_they_are_provisioned() {
    let request = |billing, throughput| RawTable { billing, throughput, ..raw("a", "a H") };
    let missing = format!(
        "{INVALID}ReadCapacityUnits and WriteCapacityUnits must both be specified when \
         BillingMode is PROVISIONED"
    );
    assert_eq!(refusal(&request(None, None)), missing);
    assert_eq!(refusal(&request(Some(BillingMode::Provisioned), None)), missing);
    assert_eq!(
        refusal(&request(Some(BillingMode::PayPerRequest), units(1, 1))),
        format!(
            "{INVALID}Neither ReadCapacityUnits nor WriteCapacityUnits can be specified when \
             BillingMode is PAY_PER_REQUEST"
        )
    );
    assert_eq!(
        refusal(&request(None, units(1_000_000_000_001, 1))),
        "Given value 1000000000001 for ReadCapacityUnits is out of bounds"
    );
    assert!(request(None, units(1, 1)).resolve().is_ok());
    let maximum = RawTable { on_demand: Some((Some(5), None)), ..request(None, units(1, 1)) };
    assert_eq!(
        refusal(&maximum),
        format!(
            "{INVALID}MaxReadRequestUnits for OnDemandThroughput cannot be specified when the \
             table BillingMode is PROVISIONED"
        )
    );
    let none = RawTable { on_demand: Some((None, Some(0))), ..raw("a", "a H") };
    assert_eq!(
        refusal(&none),
        format!(
            "{INVALID}Requested MaxWriteRequestUnits for OnDemandThroughput for table is outside \
             of valid range"
        )
    );
}

#[test]
fn every_key_attribute_is_defined_once() {
    assert_eq!(
        refusal(&raw("a", "a H a R")),
        "Invalid KeySchema: Some index key attribute have no definition"
    );
    assert_eq!(
        refusal(&raw("b c", "a H c R")),
        format!(
            "{INVALID}Some index key attributes are not defined in AttributeDefinitions. Keys: \
             [a, c], AttributeDefinitions: [b, c]"
        )
    );
    for twice in ["a a", "a a:N"] {
        assert_eq!(refusal(&raw(twice, "a H")), "Attribute Name is duplicated: a");
    }
    for indexed in [
        with_global("a b", "a H", vec![index("idx", "c H")]),
        with_local("a b", "a H b R", vec![index("idx", "c H")]),
    ] {
        assert_eq!(
            refusal(&indexed),
            format!(
                "{INVALID}Some index key attributes are not defined in AttributeDefinitions. \
                 Keys: [c], AttributeDefinitions: [a, b]"
            )
        );
    }
}

#[test]
fn every_definition_is_used_by_a_key() {
    assert_eq!(
        refusal(&raw("a b", "a H")),
        format!(
            "{INVALID}Number of attributes in KeySchema does not exactly match number of \
             attributes defined in AttributeDefinitions"
        )
    );
    // Told before anything else that is wrong with the index.
    let unused = RawIndex { projection: None, ..index("gsi", "b H") };
    assert_eq!(
        refusal(&with_global("a b c", "a H", vec![unused])),
        format!(
            "{INVALID}Some AttributeDefinitions are not used. AttributeDefinitions: [a, b, c], \
             keys used: [a, b]"
        )
    );
}

#[test]
fn a_key_is_a_partition_key_and_then_a_sort_key() {
    let first = "Invalid KeySchema: The first KeySchemaElement is not a HASH key type";
    let second = "Invalid KeySchema: The second KeySchemaElement is not a RANGE key type";
    let same = "Both the Hash Key and the Range Key element in the KeySchema have the same name";
    for (elements, expected) in
        [("a R b H", first), ("a R b R", first), ("a H b H", second), ("a H a R", same)]
    {
        assert_eq!(refusal(&raw("a b", elements)), expected);
        let local = with_local("a b", "a H b R", vec![index("lsi", elements)]);
        assert_eq!(refusal(&local), expected);
    }
}

#[test]
fn a_global_index_has_up_to_four_attributes_in_each_part_of_its_key() {
    let definitions = "a b c d e f g h i";
    let expect = |elements: &str, message: &str| {
        let used: Vec<String> = key(elements).into_iter().map(|element| element.name).collect();
        let request = with_global(&used.join(" "), "a H", vec![index("gsi", elements)]);
        assert_eq!(refusal(&request), message, "{elements}");
    };
    let exceeds = |role: &str| {
        format!(
            "{INVALID}The KeySchema exceeds the maximum allowed number of {role} key attributes"
        )
    };
    expect("a H b H c H d H e H", &exceeds("HASH"));
    expect("a H b R c R d R e R f R", &exceeds("RANGE"));
    expect(
        "a H b R c H",
        &format!(
            "{INVALID}All HASH key attributes must precede RANGE key attributes in the KeySchema"
        ),
    );
    let same = with_global("a b", "a H", vec![index("gsi", "b H a R b R")]);
    assert_eq!(refusal(&same), "The KeySchema contains multiple key attributes with the same name");
    let first = with_global("a b", "a H", vec![index("gsi", "b R a H")]);
    assert_eq!(
        refusal(&first),
        "Invalid KeySchema: The first KeySchemaElement is not a HASH key type"
    );
    let eight = index("gsi", "b H c H d H e H f R g R h R i R");
    assert!(with_global(definitions, "a H", vec![eight]).resolve().is_ok());
}

#[test]
fn a_local_index_shares_the_partition_key_of_a_table_with_a_sort_key() {
    assert_eq!(
        refusal(&with_local("a b", "a H", vec![index("lsi", "a H b R")])),
        format!(
            "{INVALID}Table KeySchema does not have a range key, which is required when \
             specifying a LocalSecondaryIndex"
        )
    );
    assert_eq!(
        refusal(&with_local("a b", "a H b R", vec![index("lsi", "a H")])),
        format!("{INVALID}Index KeySchema does not have a range key for index: lsi")
    );
    assert_eq!(
        refusal(&with_local("a b c", "a H b R", vec![index("lsi", "c H b R")])),
        format!(
            "{INVALID}Index KeySchema does not have the same leading hash key as table KeySchema \
             for index: lsi. index hash key: c, table hash key: a"
        )
    );
}

#[test]
fn only_a_projection_that_includes_names_attributes() {
    let global = |index| refusal(&with_global("a b", "a H", vec![index]));
    let local = |index: RawIndex| {
        let index = RawIndex { key: key("a H b R"), ..index };
        refusal(&with_local("a b", "a H b R", vec![index]))
    };
    let some = including("idx", "b H", &["x"]);
    let cases = [
        (RawIndex { projection: None, ..index("idx", "b H") }, "Unknown ProjectionType: null"),
        (
            RawIndex { projection: Some(ProjectionType::All), ..some.clone() },
            "ProjectionType is ALL, but NonKeyAttributes is specified",
        ),
        (
            RawIndex { projection: Some(ProjectionType::KeysOnly), ..some.clone() },
            "ProjectionType is KEYS_ONLY, but NonKeyAttributes is specified",
        ),
        (
            RawIndex { non_key: None, ..some },
            "ProjectionType is INCLUDE, but NonKeyAttributes is not specified",
        ),
        (including("idx", "b H", &["x", "y", "x"]), "Duplicate element in NonKeyAttributes: x"),
    ];
    for (index, expected) in cases {
        assert_eq!(global(index.clone()), format!("{INVALID}{expected}"));
        assert_eq!(local(index), format!("{INVALID}{expected}"));
    }
}

#[test]
fn all_indexes_together_include_at_most_100_attributes() {
    let request = |each: usize| {
        let names: Vec<String> = (0..each).map(|n| format!("x{n}")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let indexes = (0..10).map(|n| including(&format!("gsi{n}"), "b H", &names)).collect();
        with_global("a b", "a H", indexes)
    };
    assert!(request(10).resolve().is_ok());
    assert!(refusal(&request(11)).ends_with("exceeds per-table limit of 100"));
}

#[test]
fn a_table_has_at_most_5_local_and_20_global_indexes_with_names_of_their_own() {
    let many = |count: usize, elements: &str| -> Vec<RawIndex> {
        (0..count).map(|n| index(&format!("idx{n}"), elements)).collect()
    };
    assert!(with_local("a b", "a H b R", many(5, "a H b R")).resolve().is_ok());
    assert_eq!(
        refusal(&with_local("a b", "a H b R", many(6, "a H b R"))),
        format!("{INVALID}Number of LocalSecondaryIndexes exceeds per-table limit of 5")
    );
    assert!(with_global("a b", "a H", many(20, "b H")).resolve().is_ok());
    assert_eq!(
        refusal(&with_global("a b", "a H", many(21, "b H"))),
        format!("{INVALID}GlobalSecondaryIndex count exceeds the per-table limit of 20")
    );
    let same = vec![index("idx", "b H"), index("idx", "b H")];
    let duplicate = format!("{INVALID}Duplicate index name: idx");
    assert_eq!(refusal(&with_global("a b", "a H", same)), duplicate);
    let both = RawTable {
        global: Some(vec![index("idx", "b H")]),
        ..with_local("a b", "a H b R", vec![index("idx", "a H b R")])
    };
    assert_eq!(refusal(&both), duplicate);
    assert_eq!(
        refusal(&with_global("a", "a H", Vec::new())),
        format!("{INVALID}List of GlobalSecondaryIndexes is empty")
    );
    assert_eq!(
        refusal(&with_local("a b", "a H b R", Vec::new())),
        format!("{INVALID}List of LocalSecondaryIndexes is empty")
    );
}

#[test]
fn an_index_is_billed_as_its_table_is() {
    let with_units = RawIndex { throughput: units(1, 1), ..index("gsi", "b H") };
    assert_eq!(
        refusal(&with_global("a b", "a H", vec![with_units.clone()])),
        format!(
            "{INVALID}ProvisionedThroughput should not be specified for index: gsi when \
             BillingMode is PAY_PER_REQUEST"
        )
    );
    let provisioned = |index| RawTable {
        billing: None,
        throughput: units(1, 1),
        ..with_global("a b", "a H", vec![index])
    };
    assert_eq!(
        refusal(&provisioned(index("gsi", "b H"))),
        format!("{INVALID}ProvisionedThroughput is not specified for index: gsi")
    );
    assert!(provisioned(with_units).resolve().is_ok());
}

#[test]
fn a_stream_says_what_it_holds_if_and_only_if_there_is_one() {
    let request =
        |enabled, view| RawTable { stream: Some(RawStream { enabled, view }), ..raw("a", "a H") };
    assert_eq!(
        refusal(&request(true, None)),
        format!(
            "{INVALID}Table is being created with a stream enabled, UpdateViewType is required"
        )
    );
    assert_eq!(
        refusal(&request(false, Some(StreamView::NewImage))),
        format!(
            "{INVALID}Table is being created with a stream disabled, UpdateViewType should not \
             be specified"
        )
    );
    assert_eq!(request(false, None).resolve().unwrap().stream, None);
}

#[test]
fn an_unknown_table_class_is_refused() {
    let request = RawTable { table_class: Some("FAST".to_owned()), ..raw("a", "a H") };
    assert_eq!(
        refusal(&request),
        "Invalid table-class parameter provided. Please try again with a valid table-class \
         value: [STANDARD, STANDARD_INFREQUENT_ACCESS]."
    );
}

#[test]
fn a_spec_made_in_code_is_checked_as_a_request_is() {
    let db = Database::memory().unwrap();
    let refusal = |spec: &TableSpec| match db.create_table(spec) {
        Err(Error::Validation(message)) => message,
        other => panic!("{other:?}"),
    };
    assert_eq!(
        refusal(&spec("ab")),
        "1 validation error detected: Value 'ab' at 'tableName' failed to satisfy constraint: \
         Member must have length greater than or equal to 3"
    );
    let by = |name: &str, key: KeyAttribute| IndexSpec {
        name: name.to_owned(),
        key: KeySchema::hash(key),
        projection: IndexProjection::All,
        throughput: None,
    };
    let two_types = TableSpec {
        global: vec![by("one", KeyAttribute::string("x")), by("two", KeyAttribute::number("x"))],
        ..spec("orders")
    };
    assert_eq!(refusal(&two_types), "Attribute Name is duplicated: x");
    let two_parts = TableSpec {
        key: KeySchema {
            hash: vec![KeyAttribute::string("x"), KeyAttribute::string("y")],
            range: Vec::new(),
        },
        ..spec("orders")
    };
    assert_eq!(
        refusal(&two_parts),
        "Invalid KeySchema: The second KeySchemaElement is not a RANGE key type"
    );
    assert!(refusal(&TableSpec { key: KeySchema::default(), ..spec("orders") }).ends_with(
        "at 'keySchema' failed to satisfy constraint: Member must have length greater \
                    than or equal to 1"
    ));
    assert!(db.list_tables(None, 10).0.is_empty());
}

#[test]
fn a_name_is_taken_until_its_table_is_dropped() {
    let db = Database::memory().unwrap();
    db.create_table(&spec("orders")).unwrap();
    match db.create_table(&spec("orders")) {
        Err(Error::InUse(message)) => assert_eq!(message, "Table already exists: orders"),
        other => panic!("{other:?}"),
    }
    db.delete_table("orders").unwrap();
    for result in [db.delete_table("orders"), db.describe_table("orders")] {
        match result {
            Err(Error::NotFound(message)) => {
                assert_eq!(message, "Requested resource not found: Table: orders not found");
            }
            other => panic!("{other:?}"),
        }
    }
    db.create_table(&spec("orders")).unwrap();
}

#[test]
fn names_are_listed_in_order_and_by_pages() {
    let db = Database::memory().unwrap();
    for name in ["ccc", "aaa", "BBB", "ddd"] {
        db.create_table(&spec(name)).unwrap();
    }
    assert_eq!(db.list_tables(None, 3), (vec!["BBB".into(), "aaa".into(), "ccc".into()], true));
    assert_eq!(db.list_tables(Some("ccc"), 3), (vec!["ddd".to_owned()], false));
    assert_eq!(db.list_tables(Some("b"), 1), (vec!["ccc".to_owned()], true));
}
