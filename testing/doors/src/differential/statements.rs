//! Random PartiQL.

use serde_json::{Map, Value as Json, json};

use super::expressions::{bounds, broken};
use super::schema::{self, ATTRIBUTES, Table, key_value, natural_type, value_for};
use crate::dice::Dice;

/// A statement and its parameters.
pub struct Statement<'a> {
    dice: &'a Dice,
    parameters: Vec<Json>,
}

impl<'a> Statement<'a> {
    /// A random one, as the members `Statement` and `Parameters` of a request.
    pub fn any(dice: &'a Dice) -> Json {
        let kind = dice.below(8);
        Statement::of_kind(dice, kind)
    }

    /// One that reads.
    pub fn select(dice: &'a Dice) -> Json {
        Statement::of_kind(dice, 0)
    }

    /// One that writes.
    pub fn write(dice: &'a Dice) -> Json {
        let kind = 4 + dice.below(4);
        Statement::of_kind(dice, kind)
    }

    fn of_kind(dice: &'a Dice, kind: usize) -> Json {
        let mut statement = Statement { dice, parameters: Vec::new() };
        let table = schema::table(dice);
        let text = match kind {
            0..4 => statement.text_of_select(table),
            4 => statement.text_of_insert(table),
            5 | 6 => statement.text_of_update(table),
            _ => statement.text_of_delete(table),
        };
        let mut body = json!({"Statement": broken(dice, text)});
        if dice.fault(40) {
            statement.parameters.pop();
        } else if dice.fault(60) {
            statement.parameters.push(json!({"S": "a"}));
        }
        if !statement.parameters.is_empty() {
            body["Parameters"] = json!(statement.parameters);
        }
        body
    }

    fn value(&mut self, value: Json) -> String {
        match literal(&value) {
            Some(text) if self.dice.one_in(2) => text,
            _ => {
                self.parameters.push(value);
                "?".to_owned()
            }
        }
    }

    fn key_clauses(&mut self, table: &Table) -> Vec<String> {
        let mut clauses = Vec::new();
        for (name, kind) in table.key() {
            if self.dice.fault(25) {
                continue;
            }
            let value = key_value(self.dice, kind);
            clauses.push(format!("{name} = {}", self.value(value)));
        }
        clauses
    }

    fn path(&self) -> (String, &'static str) {
        let dice = self.dice;
        match dice.below(10) {
            0 => ("m.x".to_owned(), "x"),
            1 => ("m.n".to_owned(), "n"),
            2 => (format!("l[{}]", dice.below(3)), "s"),
            3 => ("absent".to_owned(), "n"),
            _ => {
                let (name, _) = *dice.pick(ATTRIBUTES);
                match dice.one_in(4) {
                    true => (format!("\"{name}\""), name),
                    false => (name.to_owned(), name),
                }
            }
        }
    }

    fn condition(&mut self) -> String {
        let dice = self.dice;
        let (path, name) = self.path();
        let mut like = |name: &str| {
            let value = value_like(dice, name);
            self.value(value)
        };
        let is_ordered = matches!(natural_type(name), "S" | "N" | "B") || dice.fault(12);
        match dice.below(9) {
            0 => format!("{path} IS MISSING"),
            1 => format!("{path} IS NOT MISSING"),
            2 => format!("begins_with({path}, {})", like(*dice.pick(&["s", "b"]))),
            3 => format!("contains({path}, {})", like(name)),
            4 => format!("{path} IN [{}, {}]", like(name), like(name)),
            5 if is_ordered => {
                let [low, high] = bounds(natural_type(name));
                format!("{path} BETWEEN {} AND {}", self.value(low), self.value(high))
            }
            6 if is_ordered => format!("{path} {} {}", dice.pick(&["<", ">=", ">"]), like(name)),
            _ => format!("{path} {} {}", dice.pick(&["=", "<>", "!="]), like(name)),
        }
    }

    fn text_of_select(&mut self, table: &Table) -> String {
        let dice = self.dice;
        let columns = match dice.below(3) {
            0 => {
                let (one, other) = (self.path().0, self.path().0);
                let first = |path: &str| path.trim_matches('"').chars().next();
                match first(&one) == first(&other) && !dice.fault(20) {
                    true => one,
                    false => format!("{one}, {other}"),
                }
            }
            _ => "*".to_owned(),
        };
        let mut from = format!("\"{}\"", table.name);
        if !table.indexes.is_empty() && dice.one_in(4) {
            from = format!("{from}.\"{}\"", dice.pick(table.indexes).name);
        }
        let mut clauses = match dice.below(4) {
            0 => Vec::new(),
            _ => self.key_clauses(table),
        };
        if dice.one_in(3) {
            clauses.push(self.condition());
        }
        if clauses.is_empty() {
            format!("SELECT {columns} FROM {from}")
        } else {
            format!("SELECT {columns} FROM {from} WHERE {}", clauses.join(" AND "))
        }
    }

    fn text_of_insert(&mut self, table: &Table) -> String {
        let item = schema::item(self.dice, table);
        let members = item.as_object().cloned().unwrap_or_default();
        let members: Vec<String> = members
            .into_iter()
            .map(|(name, value)| format!("'{name}': {}", self.value(value)))
            .collect();
        format!("INSERT INTO \"{}\" VALUE {{{}}}", table.name, members.join(", "))
    }

    fn text_of_update(&mut self, table: &Table) -> String {
        let dice = self.dice;
        let mut actions = Vec::new();
        let mut used = Vec::new();
        for _ in 0..=dice.below(2) {
            let (path, name) = self.path();
            let first = path.trim_matches('"').chars().next();
            if used.contains(&first) && !dice.fault(20) {
                continue;
            }
            used.push(first);
            let value = value_like(dice, name);
            actions.push(match (dice.below(8), natural_type(name)) {
                (0, _) => format!("REMOVE {path}"),
                (1 | 2, "N") => format!("SET {path} = {path} + {}", self.value(value)),
                (1 | 2, "SS" | "NS" | "BS") => {
                    let function = dice.pick(&["set_add", "set_delete"]);
                    format!("SET {path} = {function}({path}, {})", self.value(value))
                }
                (1 | 2, "L") => {
                    format!("SET {path} = list_append({path}, {})", self.value(value))
                }
                _ => format!("SET {path} = {}", self.value(value)),
            });
        }
        let mut clauses = self.key_clauses(table);
        if dice.one_in(4) {
            clauses.push(self.condition());
        }
        let mut text = format!(
            "UPDATE \"{}\" {} WHERE {}",
            table.name,
            actions.join(" "),
            clauses.join(" AND ")
        );
        if dice.one_in(3) {
            let which = dice.pick(&["ALL OLD", "ALL NEW", "MODIFIED OLD", "MODIFIED NEW"]);
            text = format!("{text} RETURNING {which} *");
        }
        text
    }

    fn text_of_delete(&mut self, table: &Table) -> String {
        let mut clauses = self.key_clauses(table);
        if self.dice.one_in(4) {
            clauses.push(self.condition());
        }
        let returning = if self.dice.one_in(4) { " RETURNING ALL OLD *" } else { "" };
        format!("DELETE FROM \"{}\" WHERE {}{returning}", table.name, clauses.join(" AND "))
    }
}

/// A value of the attribute's type, mostly.
fn value_like(dice: &Dice, name: &str) -> Json {
    match dice.fault(30) {
        true => value_for(dice, "absent"),
        false => schema::value_of(dice, natural_type(name), 2),
    }
}

/// How a value is written in a statement, if it can be.
fn literal(value: &Json) -> Option<String> {
    let object: &Map<String, Json> = value.as_object()?;
    let (kind, content) = object.iter().next()?;
    Some(match kind.as_str() {
        "S" => format!("'{}'", content.as_str()?.replace('\'', "''")),
        "N" => content.as_str()?.to_owned(),
        "BOOL" => content.as_bool()?.to_string(),
        "NULL" => "NULL".to_owned(),
        "SS" => {
            let elements: Option<Vec<String>> =
                content.as_array()?.iter().map(|element| literal(&json!({"S": element}))).collect();
            format!("<<{}>>", elements?.join(", "))
        }
        "L" => {
            let elements: Option<Vec<String>> = content.as_array()?.iter().map(literal).collect();
            format!("[{}]", elements?.join(", "))
        }
        _ => return None,
    })
}
