//! Random expressions with their placeholders: mostly right, sometimes slightly wrong.

use serde_json::{Map, Value as Json, json};

use super::schema::{self, ATTRIBUTES, Index, KeyAttribute, Table, key_value, natural_type};
use crate::dice::Dice;

/// The expressions of one request: they share placeholders.
pub struct Expressions<'a> {
    dice: &'a Dice,
    names: Map<String, Json>,
    values: Map<String, Json>,
}

const COMPARATORS: &[&str] = &["=", "<>", "<", "<=", ">", ">="];
const TYPE_NAMES: &[&str] = &["S", "N", "B", "BOOL", "NULL", "L", "M", "SS", "NS", "BS", "X"];

impl<'a> Expressions<'a> {
    /// None yet.
    pub fn new(dice: &'a Dice) -> Self {
        Expressions { dice, names: Map::new(), values: Map::new() }
    }

    /// Adds the placeholders to the request that has the expressions.
    pub fn finish(mut self, body: &mut Json) {
        let dice = self.dice;
        if dice.fault(40) {
            self.values.insert(":unused".to_owned(), json!({"S": "a"}));
        }
        if dice.fault(60) {
            self.names.insert("#unused".to_owned(), json!("n"));
        }
        for (map, is_names) in [(&mut self.names, true), (&mut self.values, false)] {
            if dice.fault(50) && !map.is_empty() {
                let at = dice.below(map.len());
                let Some(placeholder) = map.keys().nth(at).cloned() else { continue };
                match dice.below(3) {
                    0 => drop(map.remove(&placeholder)),
                    1 if is_names => drop(map.insert(placeholder, json!(""))),
                    1 => drop(map.insert(placeholder, schema::broken_value(dice))),
                    _ => {
                        let value = map.remove(&placeholder).unwrap_or(Json::Null);
                        map.insert(placeholder[1..].to_owned(), value);
                    }
                }
            }
        }
        if !self.names.is_empty() || dice.fault(80) {
            body["ExpressionAttributeNames"] = Json::Object(self.names);
        }
        if !self.values.is_empty() || dice.fault(80) {
            body["ExpressionAttributeValues"] = Json::Object(self.values);
        }
    }

    /// A name as text: as it is, or by a placeholder.
    fn name(&mut self, name: &str) -> String {
        if self.dice.one_in(3) {
            let placeholder = format!("#{name}");
            self.names.insert(placeholder.clone(), json!(name));
            placeholder
        } else {
            name.to_owned()
        }
    }

    /// A value as text.
    fn value(&mut self, value: Json) -> String {
        let placeholder = format!(":v{}", self.values.len());
        self.values.insert(placeholder.clone(), value);
        placeholder
    }

    /// A path, and the name that says what type is there.
    fn path(&mut self) -> (String, &'static str) {
        let dice = self.dice;
        match dice.below(16) {
            0 | 1 => (format!("{}.{}", self.name("m"), self.name("x")), "x"),
            2 => (format!("{}.{}", self.name("m"), self.name("n")), "n"),
            3 => (format!("{}[{}]", self.name("l"), dice.below(4)), "s"),
            4 => (format!("{}.{}[{}]", self.name("m"), self.name("l"), dice.below(3)), "n"),
            5 => (format!("{}[0].{}", self.name("l"), self.name("x")), "x"),
            6 => (self.name("absent"), "n"),
            7 if dice.fault(4) => (self.name("status"), "s"),
            8 if dice.fault(3) => (self.name(*dice.pick(&["pk", "sk"])), "s"),
            _ => {
                let (name, _) = *dice.pick(ATTRIBUTES);
                (self.name(name), name)
            }
        }
    }

    /// A value of the type that a path has, mostly.
    fn value_like(&mut self, name: &str) -> String {
        let value = if self.dice.fault(30) {
            schema::value_for(self.dice, "absent")
        } else {
            schema::value_of(self.dice, natural_type(name), 2)
        };
        self.value(value)
    }

    /// Paths of which none is part of another, mostly.
    fn distinct_paths(
        &mut self,
        count: usize,
        used: &mut Vec<String>,
    ) -> Vec<(String, &'static str)> {
        let mut paths = Vec::new();
        while paths.len() < count {
            let (path, name) = self.path();
            let end = path.find(['.', '[']).unwrap_or(path.len());
            let first = path[..end].trim_start_matches('#').to_owned();
            if !used.contains(&first) || self.dice.fault(30) {
                used.push(first);
                paths.push((path, name));
            }
        }
        paths
    }

    fn operand(&mut self) -> (String, &'static str) {
        let (path, name) = self.path();
        match self.dice.below(12) {
            0 => (format!("size({path})"), "n"),
            1 => (self.value_like(name), name),
            _ => (path, name),
        }
    }

    /// A condition or filter.
    pub fn condition(&mut self) -> String {
        let text = self.condition_at(2);
        broken(self.dice, text)
    }

    fn condition_at(&mut self, depth: usize) -> String {
        let dice = self.dice;
        match dice.below(if depth > 0 { 15 } else { 10 }) {
            0..4 => {
                let (left, name) = self.operand();
                let comparator = match is_ordered(name) || dice.fault(20) {
                    true => dice.pick(COMPARATORS),
                    false => dice.pick(&COMPARATORS[..2]),
                };
                let right = match dice.below(6) {
                    0 => self.operand().0,
                    _ => self.value_like(name),
                };
                format!("{left} {comparator} {right}")
            }
            4 => format!("attribute_exists({})", self.path().0),
            5 => format!("attribute_not_exists({})", self.path().0),
            6 => {
                let kind = match dice.below(12) {
                    0 => self.value(json!({"N": "1"})),
                    _ => self.value(json!({"S": dice.pick(TYPE_NAMES)})),
                };
                format!("attribute_type({}, {kind})", self.path().0)
            }
            7 => {
                let path = self.path().0;
                let name = if dice.fault(12) { "n" } else { *dice.pick(&["s", "b"]) };
                format!("begins_with({path}, {})", self.value_like(name))
            }
            8 => {
                let (path, name) = self.path();
                let element = match natural_type(name) {
                    "SS" => "s",
                    "NS" => "n",
                    "BS" => "b",
                    _ => name,
                };
                format!("contains({path}, {})", self.value_like(element))
            }
            9 => {
                let (path, name) = self.operand();
                match dice.one_in(2) && (is_ordered(name) || dice.fault(12)) {
                    true => {
                        let [mut low, mut high] = bounds(natural_type(name));
                        if dice.fault(12) {
                            std::mem::swap(&mut low, &mut high);
                        }
                        format!("{path} BETWEEN {} AND {}", self.value(low), self.value(high))
                    }
                    false => {
                        let count = 1 + dice.below(3);
                        let values: Vec<String> =
                            (0..count).map(|_| self.value_like(name)).collect();
                        format!("{path} IN ({})", values.join(", "))
                    }
                }
            }
            10 => format!("NOT {}", self.condition_at(depth - 1)),
            11 => format!("({})", self.condition_at(depth - 1)),
            choice => {
                let joint = if choice == 12 { "OR" } else { "AND" };
                let left = self.condition_at(depth - 1);
                format!("{left} {joint} {}", self.condition_at(depth - 1))
            }
        }
    }

    /// A list of paths.
    pub fn projection(&mut self) -> String {
        let count = 1 + self.dice.below(3);
        let paths = self.distinct_paths(count, &mut Vec::new());
        let paths: Vec<String> = paths.into_iter().map(|(path, _)| path).collect();
        broken(self.dice, paths.join(", "))
    }

    /// An update.
    pub fn update(&mut self) -> String {
        let dice = self.dice;
        let (mut clauses, mut used) = (Vec::new(), Vec::new());
        for keyword in ["SET", "REMOVE", "ADD", "DELETE"] {
            if !(dice.one_in(3) || keyword == "SET" && dice.one_in(2)) {
                continue;
            }
            let actions: Vec<String> =
                (0..=dice.below(2)).filter_map(|_| self.action(keyword, &mut used)).collect();
            if actions.is_empty() {
                continue;
            }
            clauses.push(format!("{keyword} {}", actions.join(", ")));
        }
        if clauses.is_empty() {
            clauses.extend(self.action("SET", &mut used).map(|action| format!("SET {action}")));
        }
        broken(dice, clauses.join(" "))
    }

    /// An action of a clause; none if it would change what another one does.
    fn action(&mut self, keyword: &str, used: &mut Vec<String>) -> Option<String> {
        let dice = self.dice;
        Some(match keyword {
            "SET" => {
                let (path, name) = self.distinct_paths(1, used).pop()?;
                let value = match dice.below(10) {
                    0 | 1 => {
                        let sign = dice.pick(&["+", "-"]);
                        let operand = self.set_operand("n");
                        format!("{operand} {sign} {}", self.set_operand("n"))
                    }
                    2 => {
                        let first = self.set_operand("l");
                        format!("list_append({first}, {})", self.set_operand("l"))
                    }
                    _ => self.set_operand(name),
                };
                format!("{path} = {value}")
            }
            "REMOVE" => self.distinct_paths(1, used).pop()?.0,
            _ => {
                let name = match (keyword, dice.fault(12)) {
                    (_, true) => *dice.pick(&["s", "l", "t", "m"]),
                    ("ADD", _) => *dice.pick(&["n", "ss", "ns", "bs", "absent", "k2"]),
                    _ => *dice.pick(&["ss", "ns", "bs"]),
                };
                if used.iter().any(|other| other == name) && !dice.fault(12) {
                    return None;
                }
                used.push(name.to_owned());
                format!("{} {}", self.name(name), self.value_like(name))
            }
        })
    }

    fn set_operand(&mut self, name: &str) -> String {
        match self.dice.below(10) {
            0 => self.path().0,
            1 => self.name(name),
            2 => {
                let path = self.path().0;
                format!("if_not_exists({path}, {})", self.value_like(name))
            }
            _ => self.value_like(name),
        }
    }

    /// A condition on the keys of a table or index.
    pub fn key_condition(&mut self, table: &Table, index: Option<&Index>) -> String {
        let dice = self.dice;
        let table_range: Vec<KeyAttribute> = table.range.into_iter().collect();
        let (hash, range): (&[KeyAttribute], &[KeyAttribute]) = match index {
            Some(index) => (index.hash, index.range),
            None => (&[table.hash], &table_range),
        };
        let mut clauses = Vec::new();
        for (name, kind) in hash {
            if dice.fault(60) {
                continue;
            }
            let comparator = if dice.fault(60) { *dice.pick(COMPARATORS) } else { "=" };
            let value = self.value(key_value(dice, kind));
            clauses.push(format!("{} {comparator} {value}", self.name(name)));
        }
        let given = if dice.one_in(3) { 0 } else { dice.below(range.len() + 1) };
        for (at, (name, kind)) in range.iter().take(given).enumerate() {
            let is_last = at + 1 == given;
            let name = self.name(name);
            let value = self.value(key_value(dice, kind));
            clauses.push(match dice.below(if is_last || dice.fault(20) { 8 } else { 1 }) {
                0..5 => format!("{name} {} {value}", dice.pick(&["=", "<", "<=", ">", ">="])),
                5 | 6 if *kind != "N" || dice.fault(10) => format!("begins_with({name}, {value})"),
                _ => {
                    let [low, high] = bounds(kind);
                    self.values.insert(value.clone(), low);
                    format!("{name} BETWEEN {value} AND {}", self.value(high))
                }
            });
        }
        if dice.fault(40) {
            clauses.push(self.condition_at(0));
        }
        if dice.one_in(4) {
            clauses.reverse();
        }
        broken(dice, clauses.join(" AND "))
    }
}

/// Whether values of the type that an attribute mostly has can be greater and smaller.
fn is_ordered(name: &str) -> bool {
    matches!(natural_type(name), "S" | "N" | "B")
}

/// A lower and an upper bound.
pub fn bounds(kind: &str) -> [Json; 2] {
    match kind {
        "S" => [json!({"S": "a"}), json!({"S": "b"})],
        "B" => [json!({"B": "YQ=="}), json!({"B": "Yg=="})],
        _ => [json!({"N": "1"}), json!({"N": "10"})],
    }
}

/// The text, or once in a while the text with one token wrong.
pub fn broken(dice: &Dice, text: String) -> String {
    if !dice.fault(20) {
        return text;
    }
    let mut tokens = tokens(&text);
    if tokens.is_empty() {
        return text;
    }
    let at = dice.below(tokens.len());
    let next = (at + 1) % tokens.len();
    match dice.below(6) {
        0 => drop(tokens.remove(at)),
        1 => {
            let again = tokens[at].clone();
            tokens.insert(at, again);
        }
        2 => tokens.swap(at, next),
        3 => tokens.truncate(at),
        4 => tokens[at] = (*dice.pick(WRONG)).to_owned(),
        _ => tokens.insert(at, (*dice.pick(WRONG)).to_owned()),
    }
    tokens.join(" ")
}

const WRONG: &[&str] = &[
    "AND",
    "OR",
    "NOT",
    "(",
    ")",
    ",",
    "=",
    "<",
    "SET",
    "REMOVE",
    "[0]",
    "[x]",
    ".",
    "#undefined",
    ":undefined",
    "size",
    "contains",
    "foo(a)",
    "name",
    "1",
    "'a'",
    "&",
    "between",
    "+",
    "99999",
];

/// Words, numbers, signs, and what is in quotes.
fn tokens(text: &str) -> Vec<String> {
    let mut tokens: Vec<String> = Vec::new();
    let mut goes_on = false;
    let mut quote = None;
    for character in text.chars() {
        let is_word = character.is_alphanumeric() || "_#:".contains(character);
        match tokens.last_mut() {
            Some(token) if quote.is_some() || (is_word && goes_on) => token.push(character),
            _ if character == ' ' => {}
            _ => tokens.push(character.into()),
        }
        goes_on = is_word;
        quote = match quote {
            Some(end) if end == character => None,
            None if "'\"".contains(character) => Some(character),
            other => other,
        };
    }
    tokens
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_taken_apart_into_words_and_signs() {
        assert_eq!(tokens("a.#b[10]>= :c"), ["a", ".", "#b", "[", "10", "]", ">", "=", ":c"]);
        assert_eq!(tokens("FROM \"a b\".c='d '"), ["FROM", "\"a b\"", ".", "c", "=", "'d '"]);
    }

    #[test]
    fn a_seed_gives_the_same_expressions_again() {
        let write = |seed| {
            let dice = Dice::new(seed);
            let mut expressions = Expressions::new(&dice);
            let mut body = json!({"a": expressions.condition(), "b": expressions.update()});
            expressions.finish(&mut body);
            body
        };
        assert_eq!(write(7), write(7));
        assert_ne!(write(7), write(8));
    }
}
