//! Checks the constraints of members. All violations, ten at most, are listed in one error, in the
//! order of the schemas.

use crate::error::Fault;
use crate::input_schema::printed::printed;
use crate::input_schema::{Input, MapRules, Member, Rule, Shape, TableNameCheck};
use crate::json::Json;

const ERRORS_MAX: usize = 10;
const ARN_LENGTH_MAX: usize = 1024;

pub(super) fn check(input: &Input, body: &Json<'_>) -> Result<(), Fault> {
    check_table_name(input.table_name, body)?;
    let mut violations = Violations { messages: Vec::new() };
    check_members(body, input.members, &Path::Top, &mut violations);
    violations.into_result()
}

/// Checks the table name. If it is invalid, that alone is reported.
fn check_table_name(kind: TableNameCheck, body: &Json<'_>) -> Result<(), Fault> {
    let least = match kind {
        TableNameCheck::Ordinary => return Ok(()),
        TableNameCheck::IfPresent | TableNameCheck::Required => 1,
        TableNameCheck::NewTable => 3,
    };
    let Some(name) = body.text("TableName") else {
        return match kind {
            TableNameCheck::IfPresent => Ok(()),
            _ => Err(Fault::validation(
                "The parameter 'TableName' is required but was not present in the request",
            )),
        };
    };
    if kind != TableNameCheck::NewTable && name.starts_with("arn:") && name.len() <= ARN_LENGTH_MAX
    {
        return Ok(());
    }
    let rules = [Rule::MinLength(least), Rule::MaxLength(255), Rule::NamePattern];
    match rules.into_iter().find(|rule| !rule.holds_for_text(name)) {
        None => Ok(()),
        Some(broken) => {
            let mut violations = Violations { messages: Vec::new() };
            violations.add_text(name, "tableName", broken.demand());
            violations.into_result()
        }
    }
}

struct Violations {
    messages: Vec<String>,
}

impl Violations {
    fn is_full(&self) -> bool {
        self.messages.len() >= ERRORS_MAX
    }

    fn add_text(&mut self, value: &str, path: &str, demand: String) {
        self.messages
            .push(format!("Value '{value}' at '{path}' failed to satisfy constraint: {demand}"));
    }

    fn add(&mut self, value: &Json<'_>, shape: &Shape, path: &Path<'_>, demand: String) {
        if !self.is_full() {
            self.add_text(&printed(value, shape), &path.to_string(), demand);
        }
    }

    fn add_missing(&mut self, path: &Path<'_>) {
        if !self.is_full() {
            self.messages.push(format!(
                "Value null at '{path}' failed to satisfy constraint: Member must not be null"
            ));
        }
    }

    fn into_result(self) -> Result<(), Fault> {
        let count = self.messages.len();
        if count == 0 {
            return Ok(());
        }
        let plural = if count == 1 { "" } else { "s" };
        let list = self.messages.join("; ");
        Err(Fault::validation(format!("{count} validation error{plural} detected: {list}")))
    }
}

/// The path to a value, printed as `keySchema.1.member.keyType`.
enum Path<'p> {
    Top,
    Member(&'p Path<'p>, &'static str),
    Element(&'p Path<'p>, usize),
    Entry(&'p Path<'p>, &'p str),
}

impl std::fmt::Display for Path<'_> {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Path::Top => Ok(()),
            Path::Member(parent, name) => {
                if !matches!(parent, Path::Top) {
                    write!(out, "{parent}.")?;
                }
                out.write_str(&lower_first(name))
            }
            Path::Element(parent, at) => write!(out, "{parent}.{}.member", at + 1),
            Path::Entry(parent, key) => write!(out, "{parent}.{key}.member"),
        }
    }
}

/// The name of a member as constraint errors print it: with a lower-case first letter.
pub(super) fn lower_first(name: &str) -> String {
    let mut characters = name.chars();
    match characters.next() {
        Some(first) => first.to_ascii_lowercase().to_string() + characters.as_str(),
        None => String::new(),
    }
}

fn check_members(
    value: &Json<'_>,
    members: &'static [Member],
    path: &Path<'_>,
    violations: &mut Violations,
) {
    for member in members {
        match value.get(member.name) {
            None if member.required => violations.add_missing(&Path::Member(path, member.name)),
            None => {}
            Some(given) => {
                check_value(given, &member.shape, &Path::Member(path, member.name), violations);
            }
        }
    }
}

fn check_value(value: &Json<'_>, shape: &Shape, path: &Path<'_>, violations: &mut Violations) {
    if violations.is_full() {
        return;
    }
    match shape {
        Shape::Boolean | Shape::Value => {}
        Shape::Text(rules) | Shape::Integer(rules) | Shape::Long(rules) => {
            check_rules(value, shape, rules, path, violations);
        }
        Shape::List(of, rules) => {
            check_rules(value, shape, rules, path, violations);
            if !matches!(of, Shape::Value) {
                for (at, one) in value.elements().iter().enumerate() {
                    check_value(one, of, &Path::Element(path, at), violations);
                }
            }
        }
        Shape::Map(of, rules) => {
            check_map_rules(value, shape, rules, path, violations);
            if !matches!(of, Shape::Value) {
                for (key, one) in value.members() {
                    check_value(one, of, &Path::Entry(path, key), violations);
                }
            }
        }
        Shape::Structure(_, members) => check_members(value, members, path, violations),
    }
}

fn check_map_rules(
    value: &Json<'_>,
    shape: &Shape,
    rules: &MapRules,
    path: &Path<'_>,
    violations: &mut Violations,
) {
    check_rules(value, shape, rules.whole, path, violations);
    let members = value.members();
    if !rules.keys.is_empty() {
        for (key, _) in members {
            if rules.keys.iter().any(|rule| !rule.holds_for_text(key)) {
                let demand = format!("Map keys must satisfy constraint: {}", all(rules.keys));
                violations.add(value, shape, path, demand);
            }
        }
    }
    if !rules.values.is_empty() {
        for (_, one) in members {
            if rules.values.iter().any(|rule| !rule.holds_for(one)) {
                let demand = format!("Map value must satisfy constraint: {}", all(rules.values));
                violations.add(value, shape, path, demand);
            }
        }
    }
}

fn check_rules(
    value: &Json<'_>,
    shape: &Shape,
    rules: &[Rule],
    path: &Path<'_>,
    violations: &mut Violations,
) {
    for rule in rules.iter().filter(|rule| !rule.holds_for(value)) {
        violations.add(value, shape, path, rule.demand());
    }
}

fn all(rules: &[Rule]) -> String {
    let demands: Vec<String> = rules.iter().map(|rule| rule.demand()).collect();
    format!("[{}]", demands.join(", "))
}

impl Rule {
    fn holds_for(self, value: &Json<'_>) -> bool {
        match value {
            Json::Str(text) => self.holds_for_text(text),
            Json::List(elements) => self.holds_for_length(elements.len()),
            Json::Object(members) => self.holds_for_length(members.len()),
            Json::Int(_) | Json::Float(_) => match (self, value.as_integer()) {
                (Rule::Min(least), Some(number)) => number >= least,
                (Rule::Max(most), Some(number)) => number <= most,
                _ => true,
            },
            Json::Null | Json::Bool(_) => true,
        }
    }

    fn holds_for_text(self, text: &str) -> bool {
        match self {
            Rule::NamePattern => {
                let in_names = |byte: u8| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte);
                !text.is_empty() && text.bytes().all(in_names)
            }
            Rule::OneOf(values) => values.contains(&text),
            // Length counts characters, which are no more than bytes: count only if it matters.
            Rule::MinLength(least) => text.len() >= least && text.chars().count() >= least,
            Rule::MaxLength(most) => text.len() <= most || text.chars().count() <= most,
            Rule::Min(_) | Rule::Max(_) => true,
        }
    }

    fn holds_for_length(self, length: usize) -> bool {
        match self {
            Rule::MinLength(least) => length >= least,
            Rule::MaxLength(most) => length <= most,
            _ => true,
        }
    }

    fn demand(self) -> String {
        match self {
            Rule::MinLength(n) => format!("Member must have length greater than or equal to {n}"),
            Rule::MaxLength(n) => format!("Member must have length less than or equal to {n}"),
            Rule::Min(n) => format!("Member must have value greater than or equal to {n}"),
            Rule::Max(n) => format!("Member must have value less than or equal to {n}"),
            Rule::NamePattern => {
                "Member must satisfy regular expression pattern: [a-zA-Z0-9_.-]+".to_owned()
            }
            Rule::OneOf(values) => {
                format!("Member must satisfy enum value set: [{}]", values.join(", "))
            }
        }
    }
}
