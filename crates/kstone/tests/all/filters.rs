//! What a query refuses of its filter and of its projection, in DynamoDB's words.

use kstone::expr::legacy::{
    ComparisonOperator, ConditionalOperator, LegacyCondition, filter as legacy_filter,
};
use kstone::ops::{Condition, KeyCondition, Projection, PutItem, Query, Scan, Select};
use kstone::table::{IndexProjection, IndexSpec, KeyAttribute, KeySchema, TableSpec};
use kstone::{Database, Item, Value, placeholders};

const TABLE: &str = "things";

fn database() -> Database {
    let db = Database::memory().unwrap();
    let pair = |hash: &str, range: &str| {
        KeySchema::hash_range(KeyAttribute::string(hash), KeyAttribute::string(range))
    };
    let index = |name: &str, key| IndexSpec {
        name: name.to_owned(),
        key,
        projection: IndexProjection::Include(vec!["held".to_owned()]),
        throughput: None,
    };
    db.create_table(&TableSpec {
        name: TABLE.to_owned(),
        key: pair("pk", "sk"),
        local: vec![index("local", pair("pk", "r"))],
        global: vec![index("global", pair("g", "r"))],
        ..TableSpec::default()
    })
    .unwrap();
    let names = ["pk", "sk", "r", "g", "held", "lacks"];
    let item = names.into_iter().map(|name| (name, "x")).collect();
    db.put_item(&PutItem { table: TABLE.to_owned(), item, ..PutItem::default() }).wait().unwrap();
    db
}

fn query(index: Option<&str>) -> Query {
    let hash = if index == Some("global") { "g" } else { "pk" };
    Query {
        table: TABLE.to_owned(),
        index: index.map(str::to_owned),
        key_condition: Some(KeyCondition::Text(format!("{hash} = :x"))),
        placeholders: placeholders([(":x", "x")]),
        ..Query::default()
    }
}

fn text(text: &str) -> Option<Condition> {
    Some(Condition::Text(text.to_owned()))
}

fn legacy(name: &str) -> Option<Condition> {
    let condition =
        LegacyCondition { operator: ComparisonOperator::Eq, values: vec![Value::from("x")] };
    let conditions = vec![(name.to_owned(), condition)];
    Some(Condition::Built(legacy_filter(conditions, ConditionalOperator::And).unwrap()))
}

#[test]
fn a_query_does_not_filter_by_what_its_index_lacks() {
    let db = database();
    for index in ["local", "global"] {
        let refused = |query: Query| db.query_items(&query).wait().unwrap_err().to_string();
        let message = format!(
            "One or more parameter values were invalid: Secondary index {index} does not project \
             one or more filter attributes: [lacks, more]"
        );
        let filter = text("lacks = :x AND held = :x AND (more = :x OR lacks > :x)");
        assert_eq!(refused(Query { filter, ..query(Some(index)) }), message);
        let message = message.replace(", more", "");
        assert_eq!(refused(Query { filter: legacy("lacks"), ..query(Some(index)) }), message);
        let select = (index == "local").then_some(Select::AllAttributes);
        let filter = text("lacks = :x");
        assert_eq!(refused(Query { filter, select, ..query(Some(index)) }), message);

        let filter = text("held = :x AND sk = :x");
        let page = db.query_items(&Query { filter, ..query(Some(index)) }).wait().unwrap();
        assert_eq!(page.count, 1);
    }
    let filter = text("lacks = :x");
    assert_eq!(db.query_items(&Query { filter, ..query(None) }).wait().unwrap().count, 1);
}

#[test]
fn a_scan_of_an_index_filters_by_what_it_lacks_as_by_what_is_not_there() {
    let db = database();
    let scan = Scan {
        table: TABLE.to_owned(),
        index: Some("global".to_owned()),
        filter: text("lacks = :x"),
        placeholders: placeholders([(":x", "x")]),
        ..Scan::default()
    };
    let page = db.scan_items(&scan).wait().unwrap();
    assert_eq!((page.count, page.scanned), (0, 1));
}

#[test]
fn a_filter_on_a_key_is_refused_by_the_name_of_its_parameter() {
    let db = database();
    for (filter, parameter) in
        [(text("sk = :x"), "Filter Expression"), (legacy("sk"), "QueryFilter")]
    {
        let refused = db.query_items(&Query { filter, ..query(None) }).wait().unwrap_err();
        let rest = "can only contain non-primary key attributes: Primary key attribute: sk";
        assert_eq!(refused.to_string(), format!("{parameter} {rest}"));
    }
}

#[test]
fn a_projection_beside_a_count_is_refused_by_the_name_of_its_parameter() {
    let db = database();
    for (projection, parameter) in [
        (Projection::Text("held".to_owned()), "ProjectionExpression"),
        (Projection::Attributes(vec!["held".to_owned()]), "AttributesToGet"),
    ] {
        let request =
            Query { projection: Some(projection), select: Some(Select::Count), ..query(None) };
        let refused = db.query_items(&request).wait().unwrap_err().to_string();
        let rest = "when choosing to get only the Count";
        assert_eq!(refused, format!("Cannot specify the {parameter} {rest}"));
    }
}

#[test]
fn attributes_to_get_are_found_however_many_are_asked_for() {
    let db = database();
    let mut names: Vec<String> = (0..200).map(|n| format!("no{n}")).collect();
    names.extend(["sk", "held", "lacks"].map(str::to_owned));
    let request = Query { projection: Some(Projection::Attributes(names)), ..query(None) };
    let items = db.query_items(&request).wait().unwrap().items.unwrap();
    let expected: Item = ["held", "lacks", "sk"].into_iter().map(|name| (name, "x")).collect();
    assert_eq!(items[0].decode().unwrap(), expected);
}
