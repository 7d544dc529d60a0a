//! Literal values in a statement.

use crate::error::{Error, Result};
use crate::partiql::ast::{Expr, ExprKind};
use crate::value::{Item, Number, Value};

/// The value that an expression writes down or takes from a parameter; `None` if it is not that
/// kind of expression.
pub(super) fn constant(expr: &Expr, parameters: &[Value]) -> Result<Option<Value>> {
    match &expr.kind {
        ExprKind::Parameter(at) => parameters.get(*at).cloned().map(Some).ok_or_else(|| {
            Error::validation("Number of parameters in request and statement don't match.")
        }),
        ExprKind::Missing => Err(Error::validation("MISSING must be compared using IS operator")),
        _ => literal(expr, "root"),
    }
}

/// The item of an `INSERT`. Parameters stand for whole attributes only.
pub(super) fn item(expr: &Expr, parameters: &[Value]) -> Result<Item> {
    let ExprKind::Map(entries) = &expr.kind else {
        return Err(Error::validation(format!(
            "Unsupported format in item expression. Please use struct format {{...}} to express \
             item values for insert statement. at {}",
            expr.at
        )));
    };
    let mut item = Item::new();
    for (name_expr, value) in entries {
        let name = entry_name(name_expr, "root")?;
        if name.is_empty() {
            return Err(Error::validation("Path component cannot be an empty string"));
        }
        let value = match &value.kind {
            ExprKind::Missing => None,
            _ => constant(value, parameters)?,
        }
        .ok_or_else(|| unsupported(value, described(value, false), "root"))?;
        if item.insert(name, value).is_some() {
            return Err(duplicate(name, "root", name_expr));
        }
    }
    check_depth(Value::M(item)).map(|item| match item {
        Value::M(item) => item,
        _ => Item::new(),
    })
}

/// A literal. `path` says where it stands inside the value, as DynamoDB's messages do.
fn literal(expr: &Expr, path: &str) -> Result<Option<Value>> {
    Ok(Some(match &expr.kind {
        ExprKind::Null => Value::Null,
        ExprKind::Bool(value) => Value::Bool(*value),
        ExprKind::String(text) => Value::S(text.clone()),
        ExprKind::Number(_) | ExprKind::Negative(_) | ExprKind::Positive(_) => {
            return Ok(number(expr, path)?.map(|(number, _)| Value::N(number)));
        }
        ExprKind::Set(elements) => set(elements, path)?,
        ExprKind::List(elements) => {
            let mut list = Vec::with_capacity(elements.len());
            for (n, element) in elements.iter().enumerate() {
                list.push(inside(element, &format!("{path}[{n}]"))?);
            }
            check_depth(Value::L(list))?
        }
        ExprKind::Map(entries) => {
            let mut map = Item::new();
            for (name_expr, value) in entries {
                let name = entry_name(name_expr, path)?;
                let value = inside(value, &format!("{path}.{name}"))?;
                if map.insert(name, value).is_some() {
                    return Err(duplicate(name, path, name_expr));
                }
            }
            check_depth(Value::M(map))?
        }
        _ => return Ok(None),
    }))
}

/// A value inside a list or map: a literal and nothing else.
fn inside(expr: &Expr, path: &str) -> Result<Value> {
    literal(expr, path)?.ok_or_else(|| unsupported(expr, described(expr, true), path))
}

/// A number with its signs, and the text it was written as.
fn number(expr: &Expr, path: &str) -> Result<Option<(Number, String)>> {
    let mut negative = false;
    let mut inner = expr;
    loop {
        match &inner.kind {
            ExprKind::Negative(next) => {
                negative = !negative;
                inner = next;
            }
            ExprKind::Positive(next) => inner = next,
            ExprKind::Number(text) => {
                let text = format!("{}{text}", if negative { "-" } else { "" });
                let number = text
                    .parse()
                    .map_err(|error| Error::validation(format!("{error} under {path}")))?;
                return Ok(Some((number, text)));
            }
            _ => return Ok(None),
        }
    }
}

fn set(elements: &[Expr], path: &str) -> Result<Value> {
    let mut strings = Vec::new();
    let mut numbers = Vec::new();
    let mut written = Vec::new();
    for element in elements {
        if let ExprKind::String(text) = &element.kind {
            strings.push(text.clone());
        } else if let Some((number, text)) = number(element, path)? {
            numbers.push(number);
            written.push(text);
        }
    }
    if elements.is_empty() {
        return Err(Error::validation("Empty bags are not supported"));
    }
    if strings.len() == elements.len() {
        return Ok(Value::string_set(strings)?);
    }
    if numbers.len() == elements.len() {
        return Value::number_set(numbers).map_err(|_| {
            Error::validation(format!(
                "One or more parameter values were invalid: Input collection [{}] contains \
                 duplicates! under {path}",
                written.join(", ")
            ))
        });
    }
    Err(Error::validation(
        "Unsupported data type in Bag. DynamoDB only supports either numbers or strings in bags",
    ))
}

fn entry_name<'e>(expr: &'e Expr, path: &str) -> Result<&'e str> {
    match &expr.kind {
        ExprKind::String(name) => Ok(name),
        _ => Err(Error::validation(format!(
            "Tuple keys must be of type String. Actual type: {} under {path} at {}",
            described(expr, true),
            expr.at
        ))),
    }
}

fn duplicate(name: &str, path: &str, expr: &Expr) -> Error {
    Error::validation(format!("Duplicate keys in tuple. Key: {name} under {path} at {}", expr.at))
}

fn unsupported(expr: &Expr, what: String, path: &str) -> Error {
    Error::validation(format!("Unsupported data type: {what} under key {path} at {}", expr.at))
}

/// What DynamoDB calls an expression that is no value: inside a value by its kind, else by how it
/// is written.
fn described(expr: &Expr, by_kind: bool) -> String {
    match &expr.kind {
        ExprKind::Path(_) | ExprKind::Everything(_) if by_kind => "VariableReference".to_owned(),
        ExprKind::Path(path) | ExprKind::Everything(path) => path.root.clone(),
        ExprKind::Parameter(_) => "Parameter".to_owned(),
        ExprKind::Missing => "MISSING".to_owned(),
        ExprKind::Call(name, _) | ExprKind::CallAll(name) => name.clone(),
        ExprKind::Binary(op, ..) => op.sign().to_owned(),
        ExprKind::And(_) => "and".to_owned(),
        ExprKind::Or(_) => "or".to_owned(),
        ExprKind::Not(_) => "not".to_owned(),
        ExprKind::Negative(_) => "-".to_owned(),
        ExprKind::Positive(_) => "+".to_owned(),
        ExprKind::Between(..) => "between".to_owned(),
        ExprKind::In(..) => "in".to_owned(),
        ExprKind::Is(..) => "is".to_owned(),
        _ => "Literal".to_owned(),
    }
}

fn check_depth(value: Value) -> Result<Value> {
    if value.depth() > Value::DEPTH_MAX {
        return Err(Error::validation("Nesting Levels have exceeded supported limits"));
    }
    Ok(value)
}
