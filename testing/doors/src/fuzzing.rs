//! What the fuzz targets for items, expressions and statements do with any bytes, and inputs to
//! start from. The long run is in `fuzz/`, the short one in this crate's tests; the target for
//! whole requests is `kstone_dynamo::fuzzing`, and starts from [`seeds`] as well.
//!
//! Nothing here may panic, hang, or take memory out of proportion to the input; what is accepted
//! has to mean the same after it was written and read again.

use kstone::expr::{
    Binder, ExpressionCache, Kind, parse_condition, parse_projection, parse_update,
};
use kstone::ops::Placeholders;
use kstone::{Item, ItemBytes, ItemRef, Number, Value, ValueRef, partiql};
use serde_json::Value as Json;

use crate::dice::Dice;
use crate::differential::requests;

/// A target under its name.
pub type Target = (&'static str, fn(&[u8]));

/// Every target of this file.
pub const TARGETS: &[Target] =
    &[("item", item), ("expression", expression), ("partiql", partiql_statement)];

/// Stored bytes of an item: walked, searched, measured, decoded and encoded again.
///
/// # Panics
/// If what is right by [`ItemRef::check`] does not decode, or changes on the way.
pub fn item(bytes: &[u8]) {
    let Ok(item) = ItemRef::from_slice(bytes) else { return };
    walk(item, NESTING_MAX);
    let size = item.size();
    let (is_right, decoded) = (item.check().is_ok(), item.decode());
    assert_eq!(is_right, decoded.is_ok(), "what is checked and what decodes differ");
    let Ok(decoded) = decoded else { return };
    assert_eq!(size, decoded.size());
    let again = ItemBytes::encode(&decoded);
    assert_eq!(again.decode().ok().as_ref(), Some(&decoded), "an item changed");
    for (name, value) in item.iter() {
        let found = item.get(name).is_some_and(|found| found.eq_value(value));
        assert!(found, "{name} is in the item and not found");
    }
}

/// Deeper than any item is.
const NESTING_MAX: usize = 40;

fn walk(item: ItemRef<'_>, levels: usize) {
    for (name, value) in item.iter() {
        let _ = item.get(name);
        visit(value, levels);
    }
    let _ = (item.get(""), item.contains("zz"), item.len());
}

fn visit(value: ValueRef<'_>, levels: usize) {
    let Some(below) = levels.checked_sub(1) else { return };
    let _ = (value.type_name(), value.size(), value.eq_value(value), value.compare(value));
    match value {
        ValueRef::M(map) => walk(map, below),
        ValueRef::L(list) => list.iter().for_each(|element| visit(element, below)),
        ValueRef::Ss(set) | ValueRef::Ns(set) | ValueRef::Bs(set) => {
            set.iter().for_each(|element| visit(element, below));
        }
        ValueRef::N(number) => drop(number.to_number().to_string()),
        _ => {}
    }
}

/// A kind (one byte) and the text of an expression: parsed, printed and parsed again; then bound
/// and asked of an item.
///
/// # Panics
/// If the printed text is not read as the same tree.
pub fn expression(bytes: &[u8]) {
    let Some((kind, text)) = bytes.split_first() else { return };
    let Ok(text) = std::str::from_utf8(text) else { return };
    macro_rules! print_and_parse {
        ($parse:ident) => {
            if let Ok(tree) = $parse(text) {
                let printed = tree.to_string();
                assert_eq!($parse(&printed).as_ref(), Ok(&tree), "{text} became {printed}");
            }
        };
    }
    let cache = ExpressionCache::new(16);
    let (placeholders, item) = (placeholders(), thing());
    let Ok(mut binder) = Binder::new(&cache, &placeholders) else { return };
    let bytes = ItemBytes::encode(&item);
    match kind % 5 {
        0 | 1 => {
            print_and_parse!(parse_condition);
            let kind = if kind % 5 == 0 { Kind::Condition } else { Kind::Filter };
            if let Ok(bound) = binder.condition(kind, text) {
                let _ = (bound.matches(Some(bytes.as_ref())), bound.matches(None));
            }
        }
        2 => {
            print_and_parse!(parse_condition);
            let _ = binder.key_condition(text);
        }
        3 => {
            print_and_parse!(parse_projection);
            if let Ok(bound) = binder.projection(text) {
                let projected = bound.apply(bytes.as_ref());
                assert!(projected.as_ref().check().is_ok(), "{text} made a damaged item");
            }
        }
        _ => {
            print_and_parse!(parse_update);
            if let Ok(bound) = binder.update(text) {
                let mut after = item;
                let _ = bound.apply(&mut after);
                let after = ItemBytes::encode(&after);
                let touched =
                    [bound.touched_old(bytes.as_ref()), bound.touched_new(after.as_ref())];
                for touched in touched {
                    assert!(touched.as_ref().check().is_ok(), "{text} made a damaged item");
                }
            }
        }
    }
    let _ = binder.finish();
}

/// Placeholders under the names that the differential test gives them.
fn placeholders() -> Placeholders {
    let names = ["n", "s", "l", "m", "x", "ss", "ns", "bs", "b", "t", "k1", "k2", "k3", "absent"];
    let names = names.iter().map(|name| (format!("#{name}"), (*name).to_owned())).collect();
    let values: Vec<(String, Value)> = [
        Value::from("a"),
        Value::N(Number::from(3_i64)),
        Value::L(vec![Value::from("b")]),
        Value::Ss(vec!["a".to_owned()]),
        Value::Null,
    ]
    .into_iter()
    .enumerate()
    .map(|(n, value)| (format!(":v{n}"), value))
    .collect();
    Placeholders { names: Some(names), values: Some(values) }
}

/// An item with an attribute of every type.
fn thing() -> Item {
    let json = serde_json::json!({
        "n": 5, "s": "abc", "t": true, "z": null, "k1": "a", "k2": 7,
        "l": ["a", 1, {"x": "y"}], "m": {"x": "a", "n": 1, "l": [1, 2]},
    });
    let mut item = Item::from_json(&json).unwrap_or_default();
    item.insert("ss", Value::Ss(vec!["a".to_owned(), "b".to_owned()]));
    item.insert("ns", Value::Ns(vec![Number::from(1_i64)]));
    item.insert("b", Value::B(bytes::Bytes::from_static(b"\x00\xff")));
    item
}

/// The text of a PartiQL statement: parsed, printed and parsed again.
///
/// # Panics
/// If the printed text is not read as the same tree.
pub fn partiql_statement(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let Ok(tree) = partiql::parse(text) else { return };
    let printed = tree.to_string();
    if printed.chars().count() > partiql::STATEMENT_MAX {
        return;
    }
    match partiql::parse(&printed) {
        Ok(again) => assert_eq!(again, tree, "{text} became {printed}"),
        Err(error) => panic!("{text} became {printed}: {error}"),
    }
}

/// Inputs to start from: for the targets above by name, and for requests by operation.
#[derive(Debug)]
pub struct Seeds {
    /// Target and input.
    pub inputs: Vec<(&'static str, Vec<u8>)>,
    /// Operation and body.
    pub requests: Vec<(&'static str, Vec<u8>)>,
}

/// What the differential test sends, taken apart.
pub fn seeds() -> Seeds {
    let mut seeds = Seeds { inputs: Vec::new(), requests: Vec::new() };
    seeds.inputs.push(("item", ItemBytes::encode(&thing()).as_slice().to_vec()));
    for seed in 0..4 {
        for step in requests::steps(&Dice::new(seed), 60) {
            collect(&step.body, &mut seeds.inputs);
            seeds.requests.push((step.operation, step.body.to_string().into_bytes()));
        }
    }
    seeds
}

/// Finds the expressions, statements and items of a request.
fn collect(body: &Json, inputs: &mut Vec<(&'static str, Vec<u8>)>) {
    let Json::Object(members) = body else {
        body.as_array().into_iter().flatten().for_each(|element| collect(element, inputs));
        return;
    };
    for (name, member) in members {
        let kind = match name.as_str() {
            "ConditionExpression" => Some(0),
            "FilterExpression" => Some(1),
            "KeyConditionExpression" => Some(2),
            "ProjectionExpression" => Some(3),
            "UpdateExpression" => Some(4),
            _ => None,
        };
        match (kind, member.as_str()) {
            (Some(kind), Some(text)) => {
                inputs.push(("expression", [&[kind], text.as_bytes()].concat()));
            }
            (None, Some(text)) if name == "Statement" => {
                inputs.push(("partiql", text.as_bytes().to_vec()));
            }
            _ if name == "Item" => {
                if let Ok(item) = Item::from_json(member) {
                    inputs.push(("item", ItemBytes::encode(&item).as_slice().to_vec()));
                }
            }
            _ => collect(member, inputs),
        }
    }
}
