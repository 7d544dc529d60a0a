//! Conditions and filters with real names and values.

use std::sync::Arc;

use crate::expr::ast::{Call, Comparator, Condition, Operand};
use crate::expr::bind::Bindings;
use crate::expr::function::Function;
use crate::expr::path::DocumentPath;
use crate::value::{EncodedValue, Value};

/// How many operands `IN` can have.
const IN_OPERANDS_MAX: usize = 100;

/// A condition that can be asked of an item. Cloning it is cheap.
#[derive(Debug, Clone)]
pub struct BoundCondition {
    pub(super) root: Arc<Predicate>,
    /// How many paths it has.
    pub(super) paths: usize,
}

/// What holds for an item or does not.
#[derive(Debug)]
pub(super) enum Predicate {
    /// Holds when all do: always, when there are none.
    And(Vec<Predicate>),
    Or(Vec<Predicate>),
    Not(Box<Predicate>),
    Compare(Comparator, Term, Term),
    Between(Term, Term, Term),
    In(Term, Vec<Term>),
    Exists(DocumentPath),
    NotExists(DocumentPath),
    /// The type's name as DynamoDB has it.
    HasType(Term, &'static str),
    BeginsWith(Term, Term),
    Contains(Term, Term),
}

/// An operand.
#[derive(Debug)]
pub(super) enum Term {
    Path(DocumentPath),
    Value(EncodedValue),
    Size(Box<Term>),
}

/// The names of the types, in the order in which DynamoDB lists them in a message.
const TYPE_NAMES: [&str; 10] = ["B", "NULL", "SS", "BOOL", "L", "BS", "N", "NS", "S", "M"];

impl BoundCondition {
    pub(super) fn of(root: Predicate) -> Self {
        let mut paths = Vec::new();
        root.collect_paths(&mut paths);
        let paths = paths.len();
        BoundCondition { root: Arc::new(root), paths }
    }

    pub(super) fn bind(tree: &Condition, bindings: &mut Bindings<'_>) -> Result<Self, String> {
        predicate(tree, bindings).map(BoundCondition::of)
    }

    /// Every path in it, in the order of the text.
    pub fn paths(&self) -> impl Iterator<Item = &DocumentPath> {
        let mut paths = Vec::new();
        self.root.collect_paths(&mut paths);
        paths.into_iter()
    }

    /// The names of the attributes that it looks at; one may come several times.
    pub fn top_level_names(&self) -> impl Iterator<Item = &str> {
        self.paths().map(DocumentPath::attribute_name)
    }
}

impl Predicate {
    fn collect_paths<'c>(&'c self, paths: &mut Vec<&'c DocumentPath>) {
        match self {
            Predicate::And(parts) | Predicate::Or(parts) => {
                parts.iter().for_each(|part| part.collect_paths(paths));
            }
            Predicate::Not(inner) => inner.collect_paths(paths),
            Predicate::Compare(_, left, right)
            | Predicate::BeginsWith(left, right)
            | Predicate::Contains(left, right) => {
                paths.extend([left, right].into_iter().filter_map(Term::path));
            }
            Predicate::Between(value, low, high) => {
                paths.extend([value, low, high].into_iter().filter_map(Term::path));
            }
            Predicate::In(value, list) => {
                paths.extend(value.path());
                paths.extend(list.iter().filter_map(Term::path));
            }
            Predicate::Exists(path) | Predicate::NotExists(path) => paths.push(path),
            Predicate::HasType(value, _) => paths.extend(value.path()),
        }
    }
}

impl Term {
    fn path(&self) -> Option<&DocumentPath> {
        match self {
            Term::Path(path) => Some(path),
            Term::Value(_) => None,
            Term::Size(inner) => inner.path(),
        }
    }
}

/// A term, with what is known of it before an item is seen.
struct Bound<'v> {
    term: Term,
    /// Its value, if the request gives it.
    value: Option<&'v Value>,
}

impl Bound<'_> {
    fn type_name(&self) -> Option<&'static str> {
        match self.term {
            Term::Path(_) => None,
            Term::Value(_) => self.value.map(Value::type_name),
            Term::Size(_) => Some("N"),
        }
    }

    fn as_path(&self) -> Option<&DocumentPath> {
        match &self.term {
            Term::Path(path) => Some(path),
            _ => None,
        }
    }
}

fn predicate(tree: &Condition, bindings: &mut Bindings<'_>) -> Result<Predicate, String> {
    let all = |parts: &[Condition], bindings: &mut Bindings<'_>| {
        parts.iter().map(|part| predicate(part, bindings)).collect::<Result<Vec<_>, _>>()
    };
    Ok(match tree {
        Condition::And(parts) => Predicate::And(all(parts, bindings)?),
        Condition::Or(parts) => Predicate::Or(all(parts, bindings)?),
        Condition::Not(inner) => Predicate::Not(Box::new(predicate(inner, bindings)?)),
        Condition::Compare(comparator, left, right) => {
            let bound = [bind(left, bindings)?, bind(right, bindings)?];
            if !matches!(comparator, Comparator::Equal | Comparator::NotEqual) {
                check_types(comparator.as_str(), &bound, &["S", "N", "B"])?;
            }
            check_distinct(comparator.as_str(), &bound)?;
            let [left, right] = bound.map(|bound| bound.term);
            Predicate::Compare(*comparator, left, right)
        }
        Condition::Between(value, low, high) => {
            let bound = [bind(value, bindings)?, bind(low, bindings)?, bind(high, bindings)?];
            check_types("BETWEEN", &bound, &["S", "N", "B"])?;
            check_distinct("BETWEEN", &bound)?;
            check_bounds(bound[1].value, bound[2].value)?;
            let [value, low, high] = bound.map(|bound| bound.term);
            Predicate::Between(value, low, high)
        }
        Condition::In(value, list) => {
            let mut bound = vec![bind(value, bindings)?];
            for operand in list {
                bound.push(bind(operand, bindings)?);
            }
            if list.len() > IN_OPERANDS_MAX {
                return Err(format!(
                    "The IN operator is provided with too many operands; number of operands: {}",
                    list.len()
                ));
            }
            check_distinct("IN", &bound)?;
            let mut terms = bound.into_iter().map(|bound| bound.term);
            match terms.next() {
                Some(value) => Predicate::In(value, terms.collect()),
                None => Predicate::Or(Vec::new()),
            }
        }
        Condition::Call(call) => holds(call, bindings)?,
    })
}

/// A function that holds or does not.
fn holds(call: &Call, bindings: &mut Bindings<'_>) -> Result<Predicate, String> {
    let function = call.function.name();
    let arguments = bind_arguments(call, bindings)?;
    check_distinct(function, &arguments)?;
    let mut arguments = arguments.into_iter();
    let first = arguments.next().ok_or_else(|| wrong_count(call))?;
    let mut second = || arguments.next().ok_or_else(|| wrong_count(call));
    Ok(match call.function {
        Function::AttributeExists => Predicate::Exists(document_path(call.function, first)?),
        Function::AttributeNotExists => Predicate::NotExists(document_path(call.function, first)?),
        Function::AttributeType => {
            let wanted = second()?;
            let Some(Value::S(name)) = wanted.value else {
                let all = "{NS,SS,L,BS,N,M,B,BOOL,NULL,S}";
                return Err(wrong_type(function, wanted.type_name().unwrap_or(all)));
            };
            let known = TYPE_NAMES.into_iter().find(|known| known == name).ok_or_else(|| {
                let all = TYPE_NAMES.join(",");
                format!("Invalid attribute type name found; type: {name}, valid types: {{{all}}}")
            })?;
            Predicate::HasType(first.term, known)
        }
        Function::BeginsWith => {
            let bound = [first, second()?];
            check_types(function, &bound, &["S", "B"])?;
            let [whole, prefix] = bound.map(|bound| bound.term);
            Predicate::BeginsWith(whole, prefix)
        }
        Function::Contains => Predicate::Contains(first.term, second()?.term),
        // The parser lets none of these be a condition.
        Function::Size | Function::IfNotExists | Function::ListAppend => {
            return Err(wrong_count(call));
        }
    })
}

fn bind<'v>(operand: &Operand, bindings: &mut Bindings<'v>) -> Result<Bound<'v>, String> {
    Ok(match operand {
        Operand::Path(path) => Bound { term: Term::Path(bindings.path(path)?), value: None },
        Operand::Value(key) => {
            let value = bindings.value(key)?;
            Bound { term: Term::Value(bindings.encoded(key)?), value: Some(value) }
        }
        Operand::Call(call) => {
            // The parser lets only `size` be an operand.
            let mut arguments = bind_arguments(call, bindings)?;
            let argument = arguments.pop().ok_or_else(|| wrong_count(call))?;
            if let Some(type_name @ ("N" | "BOOL" | "NULL")) = argument.type_name() {
                return Err(wrong_type(call.function.name(), type_name));
            }
            Bound { term: Term::Size(Box::new(argument.term)), value: None }
        }
    })
}

fn bind_arguments<'v>(call: &Call, bindings: &mut Bindings<'v>) -> Result<Vec<Bound<'v>>, String> {
    let mut arguments = Vec::with_capacity(call.arguments.len());
    for argument in &call.arguments {
        arguments.push(bind(argument, bindings)?);
    }
    match arguments.len() == call.function.arity() {
        true => Ok(arguments),
        false => Err(wrong_count(call)),
    }
}

fn document_path(function: Function, bound: Bound<'_>) -> Result<DocumentPath, String> {
    match bound.term {
        Term::Path(path) => Ok(path),
        _ => Err(needs_path(function)),
    }
}

fn check_types(operator: &str, bound: &[Bound<'_>], allowed: &[&str]) -> Result<(), String> {
    let types = bound.iter().filter_map(Bound::type_name);
    match types.into_iter().find(|type_name| !allowed.contains(type_name)) {
        Some(type_name) => Err(wrong_type(operator, type_name)),
        None => Ok(()),
    }
}

/// The first operand must not be one of the others.
fn check_distinct(operator: &str, bound: &[Bound<'_>]) -> Result<(), String> {
    let mut paths = bound.iter().map(Bound::as_path);
    match paths.next() {
        Some(Some(first)) if paths.any(|path| path == Some(first)) => Err(format!(
            "The first operand must be distinct from the remaining operands for this operator or \
             function; operator: {operator}, first operand: {first}"
        )),
        _ => Ok(()),
    }
}

/// The bounds of `BETWEEN`, if the request gives both.
fn check_bounds(low: Option<&Value>, high: Option<&Value>) -> Result<(), String> {
    let (Some(low), Some(high)) = (low, high) else { return Ok(()) };
    let requirement = if low.type_name() != high.type_name() {
        "same data type for lower and upper bounds"
    } else if is_greater(low, high) {
        "upper bound to be greater than or equal to lower bound"
    } else {
        return Ok(());
    };
    Err(format!(
        "The BETWEEN operator requires {requirement}; lower bound operand: AttributeValue: {}, \
         upper bound operand: AttributeValue: {}",
        shown(low),
        shown(high)
    ))
}

/// Whether `a` comes after `b`, both strings, numbers or byte strings.
pub(super) fn is_greater(a: &Value, b: &Value) -> bool {
    match (a.scalar(), b.scalar()) {
        (Some(a), Some(b)) => a.compare(b).is_some_and(|order| order.is_gt()),
        _ => false,
    }
}

/// A string, number or byte string as DynamoDB shows it in a message.
fn shown(value: &Value) -> String {
    match value {
        Value::S(text) => format!("{{S:{text}}}"),
        Value::N(number) => format!("{{N:{number}}}"),
        Value::B(bytes) => {
            let length = bytes.len();
            format!("{{B:java.nio.HeapByteBuffer[pos=0 lim={length} cap={length}]}}")
        }
        other => format!("{{{}}}", other.type_name()),
    }
}

pub(super) fn wrong_type(operator: &str, type_name: &str) -> String {
    format!(
        "Incorrect operand type for operator or function; operator or function: {operator}, \
         operand type: {type_name}"
    )
}

pub(super) fn wrong_count(call: &Call) -> String {
    format!(
        "Incorrect number of operands for operator or function; operator or function: {}, number \
         of operands: {}",
        call.function,
        call.arguments.len()
    )
}

pub(super) fn needs_path(function: Function) -> String {
    format!("Operator or function requires a document path; operator or function: {function}")
}
