//! Expressions as trees, with their placeholders still in them. A tree depends on the text alone,
//! so it is shared by all requests that send the same text.

use crate::expr::function::Function;

/// A document path as written: an attribute's name, then names in maps and places in lists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Path {
    /// The first is never a [`Segment::Index`].
    pub segments: Vec<Segment>,
}

/// One step of a [`Path`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Segment {
    /// A name as it is.
    Name(String),
    /// `#name`, with its sign.
    Placeholder(String),
    /// A place in a list.
    Index(u32),
}

/// What an operator or a function works on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Operand {
    /// What the item has there.
    Path(Path),
    /// `:value`, with its sign.
    Value(String),
    /// What a function gives.
    Call(Call),
}

/// A function with its arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    /// The function.
    pub function: Function,
    /// One at least.
    pub arguments: Vec<Operand>,
}

/// The comparison operators.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Comparator {
    /// `=`
    Equal,
    /// `<>`
    NotEqual,
    /// `<`
    Less,
    /// `<=`
    LessOrEqual,
    /// `>`
    Greater,
    /// `>=`
    GreaterOrEqual,
}

/// A condition, filter or key condition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Condition {
    /// Two or more, all of which hold.
    And(Vec<Condition>),
    /// Two or more, one of which holds.
    Or(Vec<Condition>),
    /// The contrary.
    Not(Box<Condition>),
    /// A comparison.
    Compare(Comparator, Operand, Operand),
    /// The first is not less than the second and not greater than the third.
    Between(Operand, Operand, Operand),
    /// The first equals one of the others.
    In(Operand, Vec<Operand>),
    /// A function that holds or does not.
    Call(Call),
}

/// What `SET` assigns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SetValue {
    /// The operand itself.
    Operand(Operand),
    /// `a + b`
    Sum(Operand, Operand),
    /// `a - b`
    Difference(Operand, Operand),
}

/// One change that an update makes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// `SET path = value`
    Set(Path, SetValue),
    /// `REMOVE path`
    Remove(Path),
    /// `ADD path :value`
    Add(Path, String),
    /// `DELETE path :value`
    Delete(Path, String),
}

/// An update: its sections in the order of the text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Update {
    /// The actions of a section are next to each other, and each section is there once.
    pub actions: Vec<Action>,
}

/// A projection: the paths to return.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Projection {
    /// One at least.
    pub paths: Vec<Path>,
}

impl Comparator {
    /// As it is written.
    pub fn as_str(self) -> &'static str {
        match self {
            Comparator::Equal => "=",
            Comparator::NotEqual => "<>",
            Comparator::Less => "<",
            Comparator::LessOrEqual => "<=",
            Comparator::Greater => ">",
            Comparator::GreaterOrEqual => ">=",
        }
    }
}

impl Action {
    /// Where the change happens.
    pub fn target(&self) -> &Path {
        match self {
            Action::Set(path, _)
            | Action::Remove(path)
            | Action::Add(path, _)
            | Action::Delete(path, _) => path,
        }
    }
}

impl Operand {
    fn operators(&self) -> usize {
        match self {
            Operand::Path(_) | Operand::Value(_) => 0,
            Operand::Call(call) => call.operators(),
        }
    }
}

impl Call {
    fn operators(&self) -> usize {
        1 + self.arguments.iter().map(Operand::operators).sum::<usize>()
    }
}

impl Condition {
    /// How many operators and functions there are. DynamoDB takes 300.
    pub fn operators(&self) -> usize {
        match self {
            Condition::And(parts) | Condition::Or(parts) => {
                parts.len() - 1 + parts.iter().map(Condition::operators).sum::<usize>()
            }
            Condition::Not(inner) => 1 + inner.operators(),
            Condition::Compare(_, left, right) => 1 + left.operators() + right.operators(),
            Condition::Between(value, low, high) => {
                1 + value.operators() + low.operators() + high.operators()
            }
            Condition::In(value, list) => {
                1 + value.operators() + list.iter().map(Operand::operators).sum::<usize>()
            }
            Condition::Call(call) => call.operators(),
        }
    }
}

impl Update {
    /// How many operators and functions there are. DynamoDB takes 300.
    pub fn operators(&self) -> usize {
        let of_action = |action: &Action| match action {
            Action::Set(_, SetValue::Operand(operand)) => operand.operators(),
            Action::Set(_, SetValue::Sum(left, right) | SetValue::Difference(left, right)) => {
                1 + left.operators() + right.operators()
            }
            Action::Remove(_) | Action::Add(..) | Action::Delete(..) => 0,
        };
        self.actions.iter().map(of_action).sum()
    }
}
