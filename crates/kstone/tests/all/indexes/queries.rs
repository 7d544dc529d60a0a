//! Queries with random conditions on every index, compared with a filter over the items.

use std::cmp::Ordering;

use kstone::ops::{KeyCondition, Query};
use kstone::table::{IndexProjection, IndexSpec, KeyAttribute, KeySchema, KeyType};
use kstone::{Database, Item, Value, placeholders};

use crate::indexes::agreement::{implied, order};
use crate::indexes::table::{
    Machine, TABLE, compare, compare_by, create, create_index, describe, index,
};
use crate::indexes::table::{late_index, put, query};
use crate::indexes::workload::{Dice, draw_item, pool};

/// A condition on one attribute.
#[derive(Debug)]
struct Clause {
    name: String,
    op: &'static str,
    values: Vec<Value>,
}

impl Clause {
    fn draw(dice: &Dice, attribute: &KeyAttribute, ops: &[&'static str]) -> Self {
        let ops: Vec<_> =
            ops.iter().filter(|op| **op != "begins_with" || attribute.kind != KeyType::N).collect();
        let op = **dice.pick(&ops);
        let pool = pool(&attribute.name);
        let mut values = vec![dice.pick(&pool).clone()];
        if op == "BETWEEN" {
            values.push(dice.pick(&pool).clone());
            values.sort_by(compare);
        }
        Clause { name: attribute.name.clone(), op, values }
    }

    fn text(&self, n: usize) -> String {
        match self.op {
            "BETWEEN" => format!("#n{n} BETWEEN :v{n}a AND :v{n}b"),
            "begins_with" => format!("begins_with(#n{n}, :v{n}a)"),
            op => format!("#n{n} {op} :v{n}a"),
        }
    }

    fn holds(&self, item: &Item) -> bool {
        let value = item.get(&self.name).unwrap();
        let order = compare(value, &self.values[0]);
        match self.op {
            "=" => order == Ordering::Equal,
            "<" => order == Ordering::Less,
            "<=" => order != Ordering::Greater,
            ">" => order == Ordering::Greater,
            ">=" => order != Ordering::Less,
            "BETWEEN" => {
                order != Ordering::Less && compare(value, &self.values[1]) != Ordering::Greater
            }
            "begins_with" => match (value, &self.values[0]) {
                (Value::S(text), Value::S(prefix)) => text.starts_with(prefix.as_str()),
                (Value::B(bytes), Value::B(prefix)) => bytes.starts_with(prefix),
                other => panic!("{other:?}"),
            },
            op => panic!("{op}"),
        }
    }
}

/// All partition key attributes, and some of the first sort key attributes: all but the last of
/// them by equality.
fn draw_clauses(dice: &Dice, key: &KeySchema) -> Vec<Clause> {
    let mut clauses: Vec<Clause> =
        key.hash.iter().map(|attribute| Clause::draw(dice, attribute, &["="])).collect();
    let some = &key.range[..dice.below(key.range.len() + 1)];
    for (n, attribute) in some.iter().enumerate() {
        let ops: &[&'static str] = match n + 1 == some.len() {
            true => &["=", "<", "<=", ">", ">=", "BETWEEN", "begins_with"],
            false => &["="],
        };
        clauses.push(Clause::draw(dice, attribute, ops));
    }
    clauses
}

fn request(index: Option<&IndexSpec>, clauses: &[Clause], dice: &Dice) -> Query {
    let text: Vec<String> = clauses.iter().enumerate().map(|(n, c)| c.text(n)).collect();
    let mut signs = Vec::new();
    for (n, clause) in clauses.iter().enumerate() {
        signs.push((format!("#n{n}"), Value::from(clause.name.as_str())));
        for (value, part) in clause.values.iter().zip(["a", "b"]) {
            signs.push((format!(":v{n}{part}"), value.clone()));
        }
    }
    Query {
        table: TABLE.to_owned(),
        index: index.map(|index| index.name.clone()),
        key_condition: Some(KeyCondition::Text(text.join(" AND "))),
        placeholders: placeholders(signs),
        limit: *dice.pick(&[None, None, Some(1), Some(3)]),
        backward: dice.chance(50),
        ..Query::default()
    }
}

/// Asks many random questions of the table, as an index of itself, and of all its indexes.
fn ask(db: &Database, dice: &Dice, items: &[Item]) -> usize {
    let spec = describe(db).spec;
    let table = index("", spec.key.clone(), IndexProjection::All);
    let mut answered = 0;
    for source in std::iter::once(&table).chain(&spec.local).chain(&spec.global) {
        let everything = implied(&spec.key, source, items);
        for _ in 0..300 {
            let clauses = draw_clauses(dice, &source.key);
            let index = Some(source).filter(|source| !source.name.is_empty());
            let request = request(index, &clauses, dice);
            let mut expected: Vec<Item> = everything
                .iter()
                .filter(|item| clauses.iter().all(|clause| clause.holds(item)))
                .cloned()
                .collect();
            expected.sort_by(|a, b| compare_by(order(&spec.key, source), a, b));
            if request.backward {
                expected.reverse();
            }
            answered += usize::from(expected.len() > 1);
            let found = query(db, request.clone());
            assert_eq!(found, expected, "{request:?}");
        }
    }
    answered
}

#[test]
fn a_query_of_any_index_finds_what_a_filter_over_the_items_finds() {
    let dice = Dice::new(1);
    let machine = Machine::new();
    let db = machine.open();
    create(&db);
    for _ in 0..300 {
        let mut item = draw_item(&dice, 0);
        item.remove("ttl");
        put(&db, item);
    }
    db.update_table(TABLE, &create_index(late_index())).unwrap();
    db.run_background().unwrap();
    let items = crate::indexes::table::scan(&db, TABLE, None);
    assert_eq!(items.len(), 36, "every key was written");
    let answered = ask(&db, &dice, &items);
    assert!(answered > 300, "the answers were not all trivial: {answered}");
    db.engine().compact().unwrap();
    ask(&db, &dice, &items);
}
