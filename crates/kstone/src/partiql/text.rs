//! Writes a statement's clauses as DynamoDB's expressions, with placeholders for every name and value. So statements are run by the same code as everything else, and those that
//! differ in values only find their expressions parsed already.

use std::fmt::Write as _;

use crate::error::{Error, Result};
use crate::ops::Placeholders;
use crate::partiql::ast::{BinaryOp, Change, Expr, ExprKind, Path, Step};
use crate::partiql::expression::NOT_WHAT;
use crate::partiql::values::constant;
use crate::value::Value;

/// The functions of conditions that hold or do not, with how many arguments they take.
const PREDICATES: [(&str, usize); 5] = [
    ("attribute_exists", 1),
    ("attribute_not_exists", 1),
    ("attribute_type", 2),
    ("begins_with", 2),
    ("contains", 2),
];

/// Expression text as it is written.
#[derive(Debug)]
pub(super) struct ExpressionText<'p> {
    parameters: &'p [Value],
    names: Vec<(String, String)>,
    values: Vec<(String, Value)>,
}

impl<'p> ExpressionText<'p> {
    pub fn new(parameters: &'p [Value]) -> Self {
        ExpressionText { parameters, names: Vec::new(), values: Vec::new() }
    }

    /// What the placeholders of everything written stand for.
    pub fn placeholders(self) -> Placeholders {
        let some = |names: Vec<_>| (!names.is_empty()).then_some(names);
        Placeholders {
            names: some(self.names),
            values: (!self.values.is_empty()).then_some(self.values),
        }
    }

    /// The placeholder of a name.
    pub fn name(&mut self, name: &str) -> String {
        if let Some((placeholder, _)) = self.names.iter().find(|(_, known)| known == name) {
            return placeholder.clone();
        }
        let placeholder = format!("#n{}", self.names.len());
        self.names.push((placeholder.clone(), name.to_owned()));
        placeholder
    }

    fn value(&mut self, value: Value) -> String {
        let placeholder = format!(":v{}", self.values.len());
        self.values.push((placeholder.clone(), value));
        placeholder
    }

    fn path(&mut self, path: &Path) -> String {
        let mut text = self.name(&path.root);
        for step in &path.steps {
            // Writing to a string does not fail.
            let _ = match step {
                Step::Name(name) => write!(text, ".{}", self.name(name)),
                Step::Index(index) => write!(text, "[{index}]"),
            };
        }
        text
    }

    /// The `WHERE` clause as a whole.
    pub fn condition(&mut self, expr: &Expr) -> Result<String> {
        self.predicate(expr)?.ok_or_else(|| {
            Error::validation("WHERE clause must contain an expression that resolves to a boolean")
        })
    }

    /// Several conditions that must all hold.
    pub fn conjunction<'e>(&mut self, parts: impl Iterator<Item = &'e Expr>) -> Result<String> {
        let parts: Vec<String> = parts.map(|part| self.part(part)).collect::<Result<_>>()?;
        Ok(parts.join(" AND "))
    }

    /// A condition inside `AND` or `OR`, in parentheses where it needs them: DynamoDB refuses
    /// those that are redundant.
    fn part(&mut self, expr: &Expr) -> Result<String> {
        let Some(text) = self.predicate(expr)? else {
            return Err(Error::validation("The arguments to AND/OR must be Expressions"));
        };
        Ok(match expr.kind {
            ExprKind::And(_) | ExprKind::Or(_) => format!("({text})"),
            _ => text,
        })
    }

    /// An expression that holds or does not; `None` if it is a value.
    fn predicate(&mut self, expr: &Expr) -> Result<Option<String>> {
        Ok(Some(match &expr.kind {
            ExprKind::And(parts) => self.conjunction(parts.iter())?,
            ExprKind::Or(parts) => {
                let parts: Vec<String> =
                    parts.iter().map(|part| self.part(part)).collect::<Result<_>>()?;
                parts.join(" OR ")
            }
            ExprKind::Not(inner) => {
                let inner = self.predicate(inner)?.ok_or_else(|| Error::validation(NOT_WHAT))?;
                format!("NOT ({inner})")
            }
            ExprKind::Binary(op, left, right) if op.compares() => {
                if let Some(text) = self.truth(*op, left, right)? {
                    return Ok(Some(text));
                }
                format!("{} {} {}", self.operand(left)?, op.sign(), self.operand(right)?)
            }
            ExprKind::Between(value, low, high) => format!(
                "{} BETWEEN {} AND {}",
                self.operand(value)?,
                self.operand(low)?,
                self.operand(high)?
            ),
            ExprKind::In(value, options) => {
                let value = self.operand(value)?;
                let options: Vec<String> =
                    options.iter().map(|option| self.operand(option)).collect::<Result<_>>()?;
                format!("{value} IN ({})", options.join(", "))
            }
            ExprKind::Is(value, kind) => self.type_test(expr, value, kind)?,
            ExprKind::Call(name, _) if is_predicate(name) => self.call(expr)?,
            ExprKind::Call(..) | ExprKind::CallAll(_) => {
                self.call(expr)?;
                return Ok(None);
            }
            ExprKind::Binary(op, ..) => return Err(unsupported_in_condition(op.sign())),
            _ => return Ok(None),
        }))
    }

    /// A predicate that is compared with `true` or `false`.
    fn truth(&mut self, op: BinaryOp, left: &Expr, right: &Expr) -> Result<Option<String>> {
        let (predicate, truth) = match (&left.kind, &right.kind) {
            (_, ExprKind::Bool(truth)) => (left, *truth),
            (ExprKind::Bool(truth), _) => (right, *truth),
            _ => return Ok(None),
        };
        let negated = match op {
            BinaryOp::Eq => !truth,
            BinaryOp::Ne => truth,
            _ => return Ok(None),
        };
        let plain = match &predicate.kind {
            ExprKind::Call(name, _) => is_predicate(name),
            ExprKind::Between(..) | ExprKind::In(..) | ExprKind::Is(..) | ExprKind::Not(_) => true,
            ExprKind::And(_) | ExprKind::Or(_) => true,
            ExprKind::Binary(op, ..) => op.compares(),
            _ => false,
        };
        if !plain {
            return Ok(None);
        }
        let text = self.part(predicate)?;
        Ok(Some(match (negated, &predicate.kind) {
            (false, _) => text,
            (true, ExprKind::And(_) | ExprKind::Or(_)) => format!("NOT {text}"),
            (true, _) => format!("NOT ({text})"),
        }))
    }

    fn type_test(&mut self, expr: &Expr, value: &Expr, kind: &str) -> Result<String> {
        let ExprKind::Path(path) = &value.kind else {
            return Err(Error::validation(
                "The left hand side argument to IS must be a Variable Reference, Literal, or Path",
            ));
        };
        let kind = match kind {
            "MISSING" => return Ok(format!("attribute_not_exists({})", self.path(path))),
            "NULL" => "NULL",
            "BOOLEAN" => "BOOL",
            "BLOB" => "B",
            "STRING" => "S",
            "NUMERIC" => "N",
            "STRUCT" | "TUPLE" => "M",
            "LIST" => "L",
            other => {
                return Err(Error::validation(format!(
                    "Unsupported data type for IS operator: {other}. Supported data types are \
                     [MISSING, NULL, BOOLEAN, BLOB, STRING, NUMERIC, STRUCT, TUPLE, LIST] at {}",
                    expr.at
                )));
            }
        };
        let path = self.path(path);
        Ok(format!("attribute_type({path}, {})", self.value(kind.into())))
    }

    /// What a comparison or a function of a condition works on.
    fn operand(&mut self, expr: &Expr) -> Result<String> {
        if let Some(value) = constant(expr, self.parameters)? {
            return Ok(self.value(value));
        }
        match &expr.kind {
            ExprKind::Path(path) => Ok(self.path(path)),
            ExprKind::Call(..) | ExprKind::CallAll(_) => self.call(expr),
            ExprKind::Everything(_) => {
                Err(Error::validation("Unpivot path component like a.*.b are not supported"))
            }
            ExprKind::Binary(op, ..) => Err(unsupported_in_condition(op.sign())),
            ExprKind::Negative(_) => Err(unsupported_in_condition("-")),
            ExprKind::Positive(_) => Err(unsupported_in_condition("+")),
            ExprKind::Not(_) => Err(unsupported_in_condition("not")),
            _ => Err(Error::validation("The arguments to AND/OR must be Expressions")),
        }
    }

    /// A function of conditions.
    fn call(&mut self, expr: &Expr) -> Result<String> {
        let (name, arguments) = match &expr.kind {
            ExprKind::Call(name, arguments) => (name.as_str(), arguments.as_slice()),
            ExprKind::CallAll(name) => (name.as_str(), &[][..]),
            _ => ("", &[][..]),
        };
        let operands = match name {
            "size" => 1,
            "list_append" | "if_not_exists" => {
                return Err(Error::validation(format!(
                    "The function is not allowed in a condition expression; function: {name}"
                )));
            }
            name => match PREDICATES.iter().find(|(known, _)| *known == name) {
                Some((_, operands)) => *operands,
                None => return Err(unrecognized(name, expr)),
            },
        };
        check_operands(name, operands, arguments)?;
        let arguments: Vec<String> =
            arguments.iter().map(|argument| self.operand(argument)).collect::<Result<_>>()?;
        Ok(format!("{name}({})", arguments.join(", ")))
    }

    /// The `SET` and `REMOVE` clauses as an update expression.
    pub fn update(&mut self, changes: &[Change]) -> Result<String> {
        let mut sections: [(&str, Vec<String>); 4] = [
            ("SET", Vec::new()),
            ("REMOVE", Vec::new()),
            ("ADD", Vec::new()),
            ("DELETE", Vec::new()),
        ];
        for change in changes {
            let (section, text) = match change {
                Change::Remove(path) => (1, self.path(path)),
                Change::Set(path, value) => match self.set_change(path, value)? {
                    Some(change) => change,
                    None => {
                        let path = self.path(path);
                        (0, format!("{path} = {}", self.new_value(value)?))
                    }
                },
            };
            sections[section].1.push(text);
        }
        let sections = sections.iter().filter(|(_, changes)| !changes.is_empty());
        let sections: Vec<String> =
            sections.map(|(word, changes)| format!("{word} {}", changes.join(", "))).collect();
        Ok(sections.join(" "))
    }

    /// `set_add` and `set_delete`, which are sections of their own in an update expression.
    fn set_change(&mut self, path: &Path, value: &Expr) -> Result<Option<(usize, String)>> {
        let ExprKind::Call(name, arguments) = &value.kind else { return Ok(None) };
        let section = match name.as_str() {
            "set_add" => 2,
            "set_delete" => 3,
            _ => return Ok(None),
        };
        let upper = name.to_ascii_uppercase();
        let [first, second] = arguments.as_slice() else {
            return Err(Error::validation(format!(
                "{upper} must have exactly two arguments at {}",
                value.at
            )));
        };
        if !matches!(&first.kind, ExprKind::Path(first) if first == path) {
            return Err(Error::validation(format!(
                "The first argument to {upper} must equal the assignment value at {}",
                value.at
            )));
        }
        match constant(second, self.parameters)? {
            Some(set @ (Value::Ss(_) | Value::Ns(_) | Value::Bs(_))) => {
                let path = self.path(path);
                Ok(Some((section, format!("{path} {}", self.value(set)))))
            }
            _ => Err(Error::validation(format!(
                "The second argument to {upper} must be a value with type SET at {}",
                first.at
            ))),
        }
    }

    /// What an attribute is set to.
    fn new_value(&mut self, expr: &Expr) -> Result<String> {
        if let Some(value) = calculated(expr, self.parameters)? {
            return Ok(self.value(value));
        }
        match &expr.kind {
            ExprKind::Binary(op @ (BinaryOp::Add | BinaryOp::Sub), left, right) => {
                let left = self.new_operand(left)?;
                Ok(format!("{left} {} {}", op.sign(), self.new_operand(right)?))
            }
            ExprKind::Path(path) => Ok(self.path(path)),
            ExprKind::Call(name, arguments) => match name.as_str() {
                "list_append" | "if_not_exists" => {
                    check_operands(name, 2, arguments)?;
                    let arguments: Vec<String> = arguments
                        .iter()
                        .map(|argument| self.new_operand(argument))
                        .collect::<Result<_>>()?;
                    Ok(format!("{name}({})", arguments.join(", ")))
                }
                name if name == "size" || is_predicate(name) => Err(Error::validation(format!(
                    "The function is not allowed in an update expression; function: {name}"
                ))),
                name => Err(unrecognized(name, expr)),
            },
            ExprKind::CallAll(name) => Err(unrecognized(name, expr)),
            ExprKind::Binary(op, ..) => Err(unsupported_in_update(op.sign())),
            ExprKind::Negative(_) | ExprKind::Positive(_) => {
                let sign = if matches!(expr.kind, ExprKind::Negative(_)) { "-" } else { "+" };
                Err(wrong_operands(sign, 1))
            }
            ExprKind::Is(..) => {
                Err(Error::validation("IS operator is not supported in update expressions"))
            }
            ExprKind::And(_) => Err(unsupported_in_update("and")),
            ExprKind::Or(_) => Err(unsupported_in_update("or")),
            ExprKind::Not(_) => Err(unsupported_in_update("not")),
            ExprKind::Between(..) => Err(unsupported_in_update("between")),
            ExprKind::In(..) => Err(unsupported_in_update("in")),
            _ => Err(Error::validation("Unpivot path component like a.*.b are not supported")),
        }
    }

    /// A part of what an attribute is set to: an update expression does not calculate inside a
    /// calculation.
    fn new_operand(&mut self, expr: &Expr) -> Result<String> {
        if let ExprKind::Binary(op, ..) = &expr.kind
            && calculated(expr, self.parameters)?.is_none()
        {
            return Err(unsupported_in_update(op.sign()));
        }
        self.new_value(expr)
    }
}

/// The value of an expression without attributes: `1 + 2` is worked out here, because an update
/// expression adds two operands and no more.
fn calculated(expr: &Expr, parameters: &[Value]) -> Result<Option<Value>> {
    let ExprKind::Binary(op @ (BinaryOp::Add | BinaryOp::Sub), left, right) = &expr.kind else {
        return constant(expr, parameters);
    };
    let (Some(left), Some(right)) = (calculated(left, parameters)?, calculated(right, parameters)?)
    else {
        return Ok(None);
    };
    let number = |value: &Value| {
        value.as_number().ok_or_else(|| {
            Error::validation(format!(
                "Incorrect operand type for operator or function; operator or function: {}, \
                 operand type: {}",
                op.sign(),
                value.type_name()
            ))
        })
    };
    let (left, right) = (number(&left)?, number(&right)?);
    let result =
        if *op == BinaryOp::Add { left.checked_add(right) } else { left.checked_sub(right) };
    Ok(Some(Value::N(result?)))
}

fn is_predicate(name: &str) -> bool {
    PREDICATES.iter().any(|(known, _)| *known == name)
}

fn check_operands(name: &str, operands: usize, arguments: &[Expr]) -> Result<()> {
    if arguments.len() == operands { Ok(()) } else { Err(wrong_operands(name, arguments.len())) }
}

fn wrong_operands(name: &str, operands: usize) -> Error {
    Error::validation(format!(
        "Incorrect number of operands for operator or function; operator or function: {name}, \
         number of operands: {operands}"
    ))
}

fn unrecognized(name: &str, expr: &Expr) -> Error {
    Error::validation(format!("Unrecognized function: {name} at {}", expr.at))
}

fn unsupported_in_condition(sign: &str) -> Error {
    Error::validation(format!("Unsupported operator in Condition Expression. Operator: {sign}"))
}

fn unsupported_in_update(sign: &str) -> Error {
    Error::validation(format!("Unsupported operator in Update Expression. Operator: {sign}"))
}
