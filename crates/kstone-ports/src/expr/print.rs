//! Prints expression trees as text. Parsing the text gives the same tree again.

use std::fmt::{Display, Formatter, Result};

use crate::expr::ast::{
    Action, Call, Comparator, Condition, Operand, Path, Projection, Segment, SetValue, Update,
};
use crate::expr::function::Function;

impl Display for Path {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        for (at, segment) in self.segments.iter().enumerate() {
            match segment {
                Segment::Name(name) | Segment::Placeholder(name) => {
                    write!(f, "{}{name}", if at == 0 { "" } else { "." })?;
                }
                Segment::Index(index) => write!(f, "[{index}]")?,
            }
        }
        Ok(())
    }
}

impl Display for Operand {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        match self {
            Operand::Path(path) => path.fmt(f),
            Operand::Value(name) => f.write_str(name),
            Operand::Call(call) => call.fmt(f),
        }
    }
}

impl Display for Function {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        f.write_str(self.name())
    }
}

impl Display for Call {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        write!(f, "{}(", self.function)?;
        separated(f, &self.arguments, ", ")?;
        f.write_str(")")
    }
}

impl Display for Comparator {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        f.write_str(self.as_str())
    }
}

impl Display for Condition {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        match self {
            Condition::And(parts) => joined(f, parts, " AND ", |part| {
                matches!(part, Condition::And(_) | Condition::Or(_))
            }),
            Condition::Or(parts) => {
                joined(f, parts, " OR ", |part| matches!(part, Condition::Or(_)))
            }
            Condition::Not(inner) => match **inner {
                Condition::And(_) | Condition::Or(_) => write!(f, "NOT ({inner})"),
                _ => write!(f, "NOT {inner}"),
            },
            Condition::Compare(comparator, left, right) => {
                write!(f, "{left} {comparator} {right}")
            }
            Condition::Between(value, low, high) => write!(f, "{value} BETWEEN {low} AND {high}"),
            Condition::In(value, list) => {
                write!(f, "{value} IN (")?;
                separated(f, list, ", ")?;
                f.write_str(")")
            }
            Condition::Call(call) => call.fmt(f),
        }
    }
}

impl Display for SetValue {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        match self {
            SetValue::Operand(operand) => operand.fmt(f),
            SetValue::Sum(left, right) => write!(f, "{left} + {right}"),
            SetValue::Difference(left, right) => write!(f, "{left} - {right}"),
        }
    }
}

impl Display for Update {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        let mut section = "";
        for (at, action) in self.actions.iter().enumerate() {
            let of_action = match action {
                Action::Set(..) => "SET",
                Action::Remove(_) => "REMOVE",
                Action::Add(..) => "ADD",
                Action::Delete(..) => "DELETE",
            };
            if of_action == section {
                f.write_str(", ")?;
            } else {
                write!(f, "{}{of_action} ", if at == 0 { "" } else { " " })?;
                section = of_action;
            }
            match action {
                Action::Set(path, value) => write!(f, "{path} = {value}")?,
                Action::Remove(path) => path.fmt(f)?,
                Action::Add(path, value) | Action::Delete(path, value) => {
                    write!(f, "{path} {value}")?;
                }
            }
        }
        Ok(())
    }
}

impl Display for Projection {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        separated(f, &self.paths, ", ")
    }
}

fn separated(f: &mut Formatter<'_>, items: &[impl Display], separator: &str) -> Result {
    joined(f, items, separator, |_| false)
}

fn joined<T: Display>(
    f: &mut Formatter<'_>,
    items: &[T],
    separator: &str,
    needs_parentheses: impl Fn(&T) -> bool,
) -> Result {
    for (at, item) in items.iter().enumerate() {
        if at > 0 {
            f.write_str(separator)?;
        }
        if needs_parentheses(item) { write!(f, "({item})")? } else { item.fmt(f)? }
    }
    Ok(())
}
