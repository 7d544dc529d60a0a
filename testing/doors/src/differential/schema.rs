//! The tables that requests are about, and the values that are put into them.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Map, Value as Json, json};

use crate::dice::Dice;

/// A key attribute: its name and type.
pub type KeyAttribute = (&'static str, &'static str);

/// An index.
#[derive(Debug)]
pub struct Index {
    /// Its name.
    pub name: &'static str,
    /// The attributes of its partition key.
    pub hash: &'static [KeyAttribute],
    /// The attributes of its sort key.
    pub range: &'static [KeyAttribute],
    /// Whether it shares the table's partition key.
    pub is_local: bool,
    /// `ALL`, `KEYS_ONLY`, or `INCLUDE` of `n` and `s`.
    pub projection: &'static str,
}

/// A table.
#[derive(Debug)]
pub struct Table {
    /// Its name.
    pub name: &'static str,
    /// The partition key.
    pub hash: KeyAttribute,
    /// The sort key.
    pub range: Option<KeyAttribute>,
    /// Its indexes.
    pub indexes: &'static [Index],
}

/// Every kind of key, and every kind of index.
pub const TABLES: &[Table] = &[
    Table { name: "plain", hash: ("pk", "S"), range: None, indexes: &[] },
    Table {
        name: "sorted",
        hash: ("pk", "S"),
        range: Some(("sk", "S")),
        indexes: &[
            Index {
                name: "local",
                hash: &[("pk", "S")],
                range: &[("k2", "N")],
                is_local: true,
                projection: "KEYS_ONLY",
            },
            Index {
                name: "global",
                hash: &[("k1", "S")],
                range: &[("k2", "N")],
                is_local: false,
                projection: "ALL",
            },
            Index {
                name: "keys",
                hash: &[("k1", "S")],
                range: &[],
                is_local: false,
                projection: "KEYS_ONLY",
            },
        ],
    },
    Table { name: "numbers", hash: ("pk", "N"), range: Some(("sk", "B")), indexes: &[] },
    Table {
        name: "wide",
        hash: ("pk", "S"),
        range: Some(("sk", "N")),
        indexes: &[
            Index {
                name: "several",
                hash: &[("k1", "S"), ("k2", "N")],
                range: &[("k3", "S"), ("sk", "N")],
                is_local: false,
                projection: "ALL",
            },
            Index {
                name: "some",
                hash: &[("k3", "S")],
                range: &[("k2", "N")],
                is_local: false,
                projection: "INCLUDE",
            },
        ],
    },
];

impl Table {
    /// The attributes of the primary key.
    pub fn key(&self) -> impl Iterator<Item = KeyAttribute> + '_ {
        [self.hash].into_iter().chain(self.range)
    }

    /// The body of its CreateTable request.
    pub fn create(&self) -> Json {
        let mut defined: Vec<KeyAttribute> = self.key().collect();
        let (mut locals, mut globals) = (Vec::new(), Vec::new());
        for index in self.indexes {
            for attribute in index.hash.iter().chain(index.range) {
                if !defined.contains(attribute) {
                    defined.push(*attribute);
                }
            }
            let mut projection = json!({"ProjectionType": index.projection});
            if index.projection == "INCLUDE" {
                projection["NonKeyAttributes"] = json!(["n", "s"]);
            }
            let described = json!({
                "IndexName": index.name,
                "KeySchema": key_schema(index.hash, index.range),
                "Projection": projection,
            });
            if index.is_local { locals.push(described) } else { globals.push(described) }
        }
        let range: Vec<KeyAttribute> = self.range.into_iter().collect();
        let mut body = json!({
            "TableName": self.name,
            "BillingMode": "PAY_PER_REQUEST",
            "KeySchema": key_schema(&[self.hash], &range),
            "AttributeDefinitions": defined
                .iter()
                .map(|(name, kind)| json!({"AttributeName": name, "AttributeType": kind}))
                .collect::<Vec<_>>(),
        });
        if !locals.is_empty() {
            body["LocalSecondaryIndexes"] = json!(locals);
        }
        if !globals.is_empty() {
            body["GlobalSecondaryIndexes"] = json!(globals);
        }
        body
    }
}

fn key_schema(hash: &[KeyAttribute], range: &[KeyAttribute]) -> Json {
    let part = |kind: &'static str| {
        move |(name, _): &KeyAttribute| -> Json { json!({"AttributeName": name, "KeyType": kind}) }
    };
    hash.iter().map(part("HASH")).chain(range.iter().map(part("RANGE"))).collect()
}

/// The attributes that items have beside their keys, with the types they mostly have.
pub const ATTRIBUTES: &[KeyAttribute] = &[
    ("n", "N"),
    ("s", "S"),
    ("b", "B"),
    ("t", "BOOL"),
    ("z", "NULL"),
    ("l", "L"),
    ("m", "M"),
    ("ss", "SS"),
    ("ns", "NS"),
    ("bs", "BS"),
    ("k1", "S"),
    ("k2", "N"),
    ("k3", "S"),
];

/// The type that an attribute mostly has.
pub fn natural_type(name: &str) -> &'static str {
    let known = ATTRIBUTES.iter().find(|(attribute, _)| *attribute == name);
    match name {
        "x" => "S",
        "y" => "L",
        _ => known.map_or("N", |(_, kind)| kind),
    }
}

const STRINGS: &[&str] = &["a", "b", "ab", "abc", "c", "", "ä", "Z", "10", "9", "a b", "\"'"];
const NUMBERS: &[&str] = &[
    "0",
    "1",
    "2",
    "3",
    "-1",
    "10",
    "1.5",
    "0.10",
    "-0",
    "1e2",
    "100",
    "-2.50",
    "1E-3",
    "+7",
    "007",
    "12345678901234567890123456789012345678",
    "0.00000000000000000000000000000000000001",
    "9.9e125",
    "1e-130",
    "-1e-130",
];
const BROKEN_NUMBERS: &[&str] = &[
    "",
    "abc",
    "1e126",
    "1e-131",
    "123456789012345678901234567890123456789",
    " 1",
    "1 ",
    "NaN",
    "0x10",
    "1,5",
    "--1",
    "1e",
    "Infinity",
];
const BYTES: &[&[u8]] = &[b"a", b"b", b"ab", b"", b"\x00", b"\xff\x01", b"abc"];

fn string(dice: &Dice) -> Json {
    json!(dice.pick(STRINGS))
}

fn number(dice: &Dice) -> Json {
    // Small ones meet each other, which is what comparisons and sets need.
    let few = if dice.one_in(3) { NUMBERS } else { &NUMBERS[..6] };
    json!(dice.pick(few))
}

fn bytes(dice: &Dice) -> Json {
    json!(BASE64_STANDARD.encode(dice.pick(BYTES)))
}

fn distinct(dice: &Dice, make: impl Fn(&Dice) -> Json) -> Json {
    let mut elements: Vec<Json> = Vec::new();
    for _ in 0..=dice.below(3) {
        let element = make(dice);
        if !elements.contains(&element) {
            elements.push(element);
        }
    }
    json!(elements)
}

/// A value of a type.
pub fn value_of(dice: &Dice, kind: &str, depth: usize) -> Json {
    let content = match kind {
        "S" => string(dice),
        "N" => number(dice),
        "B" => bytes(dice),
        "BOOL" => json!(dice.one_in(2)),
        "NULL" => json!(true),
        "SS" => distinct(dice, string),
        // Two spellings of one number are a duplicate; that is for the broken ones.
        "NS" => distinct(dice, |dice| json!(dice.pick(&["1", "2", "3", "-5", "2.5"]))),
        "BS" => distinct(dice, bytes),
        "L" if depth > 0 => (0..dice.below(4)).map(|_| value(dice, depth - 1)).collect(),
        "M" if depth > 0 => {
            let mut members = Map::new();
            for name in ["x", "y", "n", "l"] {
                if dice.one_in(2) {
                    let kind = natural_type(name);
                    members.insert(name.to_owned(), value_of(dice, kind, depth - 1));
                }
            }
            Json::Object(members)
        }
        "L" => json!([]),
        _ => json!({}),
    };
    json!({kind: content})
}

const TYPES: &[&str] = &["S", "N", "B", "BOOL", "NULL", "L", "M", "SS", "NS", "BS"];

/// A value of any type.
pub fn value(dice: &Dice, depth: usize) -> Json {
    value_of(dice, *dice.pick(TYPES), depth)
}

/// A value that is refused, in one of the ways in which values are.
pub fn broken_value(dice: &Dice) -> Json {
    match dice.below(14) {
        0 => json!({"N": dice.pick(BROKEN_NUMBERS)}),
        1 => json!({"SS": []}),
        2 => json!({"NS": []}),
        3 => json!({"BS": []}),
        4 => json!({"NS": ["1", "1.0"]}),
        5 => json!({"SS": ["a", "b", "a"]}),
        6 => json!({"NS": ["1", dice.pick(BROKEN_NUMBERS)]}),
        7 => json!({}),
        8 => json!({"S": "a", "N": "1"}),
        9 => json!({"NULL": false}),
        10 => json!({"X": "a"}),
        11 => json!({"M": {"x": {"N": dice.pick(BROKEN_NUMBERS)}}}),
        12 => json!({"L": [{"SS": []}]}),
        _ => json!({"BS": ["YQ==", "YQ=="]}),
    }
}

/// A value for an attribute: of its natural type, mostly.
pub fn value_for(dice: &Dice, name: &str) -> Json {
    if dice.fault(60) {
        broken_value(dice)
    } else if name.starts_with('k') {
        key_value(dice, natural_type(name))
    } else if dice.one_in(10) {
        value(dice, 2)
    } else {
        value_of(dice, natural_type(name), 2)
    }
}

/// A value for a key attribute.
pub fn key_value(dice: &Dice, kind: &str) -> Json {
    if dice.fault(80) {
        return match dice.below(3) {
            0 => broken_value(dice),
            1 => value(dice, 1),
            _ => value_of(dice, kind, 0),
        };
    }
    match kind {
        "S" => json!({"S": dice.pick(&["a", "b", "c", "ab"])}),
        "N" => json!({"N": dice.pick(&["1", "2", "-3", "10", "0.5"])}),
        _ => {
            json!({"B": BASE64_STANDARD.encode(dice.pick(&BYTES[..3]))})
        }
    }
}

/// A primary key.
pub fn key(dice: &Dice, table: &Table) -> Json {
    let mut key = Map::new();
    for (name, kind) in table.key() {
        key.insert(name.to_owned(), key_value(dice, kind));
    }
    if dice.fault(30) {
        match dice.below(3) {
            0 => drop(key.remove(table.hash.0)),
            1 => drop(key.insert("n".to_owned(), json!({"N": "1"}))),
            _ => drop(key.insert("sk".to_owned(), value(dice, 1))),
        }
    }
    Json::Object(key)
}

/// An item.
pub fn item(dice: &Dice, table: &Table) -> Json {
    let mut item = key(dice, table);
    if let Some(item) = item.as_object_mut() {
        for (name, _) in ATTRIBUTES {
            if dice.one_in(2) {
                item.insert((*name).to_owned(), value_for(dice, name));
            }
        }
    }
    item
}

/// A table, any.
pub fn table(dice: &Dice) -> &'static Table {
    dice.pick(TABLES)
}
