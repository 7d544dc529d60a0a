//! Writes a statement's tree as text. Every name is quoted and every operand that is not a plain
//! term stands in parentheses, so that the text parses to the same tree.

use std::fmt::{Display, Formatter, Result, Write};

use crate::partiql::ast::{
    Change, Command, Delete, Expr, ExprKind, Insert, Order, Parsed, Path, Returning, Select,
    Source, Step, Update,
};

impl Display for Parsed {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        self.command.fmt(f)
    }
}

impl Display for Command {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        match self {
            Command::Select(select) => select.fmt(f),
            Command::Insert(insert) => insert.fmt(f),
            Command::Update(update) => update.fmt(f),
            Command::Delete(delete) => delete.fmt(f),
            Command::Exists(select) => write!(f, "EXISTS({select})"),
        }
    }
}

impl Display for Select {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        f.write_str("SELECT ")?;
        match &self.projection {
            None => f.write_char('*')?,
            Some(paths) => list(f, paths)?,
        }
        write!(f, " FROM {}", self.source)?;
        condition(f, self.condition.as_ref())?;
        if !self.order.is_empty() {
            f.write_str(" ORDER BY ")?;
            list(f, &self.order)?;
        }
        Ok(())
    }
}

impl Display for Order {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        write!(f, "{}{}", self.by, if self.descending { " DESC" } else { " ASC" })
    }
}

impl Display for Insert {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        f.write_str("INSERT INTO ")?;
        quoted(f, &self.table, '"')?;
        write!(f, " VALUE {}", self.item)
    }
}

impl Display for Update {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        write!(f, "UPDATE {}", self.source)?;
        for change in &self.changes {
            match change {
                Change::Set(path, value) => write!(f, " SET {path} = {value}")?,
                Change::Remove(path) => write!(f, " REMOVE {path}")?,
            }
        }
        condition(f, self.condition.as_ref())?;
        returning(f, self.returning)
    }
}

impl Display for Delete {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        write!(f, "DELETE FROM {}", self.source)?;
        condition(f, self.condition.as_ref())?;
        returning(f, self.returning)
    }
}

impl Display for Returning {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        let what = if self.modified { "MODIFIED" } else { "ALL" };
        write!(f, "{what} {} *", if self.old { "OLD" } else { "NEW" })
    }
}

impl Display for Source {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        quoted(f, &self.table, '"')?;
        if let Some(index) = &self.index {
            f.write_char('.')?;
            quoted(f, index, '"')?;
        }
        Ok(())
    }
}

impl Display for Path {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        quoted(f, &self.root, '"')?;
        for step in &self.steps {
            match step {
                Step::Name(name) => {
                    f.write_char('.')?;
                    quoted(f, name, '"')?;
                }
                Step::Index(index) => write!(f, "[{index}]")?,
            }
        }
        Ok(())
    }
}

impl Display for Expr {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        match &self.kind {
            ExprKind::Null => f.write_str("null"),
            ExprKind::Missing => f.write_str("MISSING"),
            ExprKind::Bool(value) => value.fmt(f),
            ExprKind::Number(text) => f.write_str(text),
            ExprKind::String(text) => quoted(f, text, '\''),
            ExprKind::Parameter(_) => f.write_char('?'),
            ExprKind::Path(path) => path.fmt(f),
            ExprKind::Everything(path) => write!(f, "{path}.*"),
            ExprKind::List(elements) => enclosed(f, "[", elements, "]"),
            ExprKind::Set(elements) => enclosed(f, "<<", elements, ">>"),
            ExprKind::Map(entries) => {
                f.write_char('{')?;
                for (n, (name, value)) in entries.iter().enumerate() {
                    write!(f, "{}{}: {value}", if n == 0 { "" } else { ", " }, Term(name))?;
                }
                f.write_char('}')
            }
            ExprKind::Call(name, arguments) => {
                quoted(f, name, '"')?;
                enclosed(f, "(", arguments, ")")
            }
            ExprKind::CallAll(name) => {
                quoted(f, name, '"')?;
                f.write_str("(*)")
            }
            ExprKind::And(parts) => chain(f, parts, " AND "),
            ExprKind::Or(parts) => chain(f, parts, " OR "),
            ExprKind::Not(inner) => write!(f, "NOT {}", Term(inner)),
            ExprKind::Negative(inner) => write!(f, "-{}", Term(inner)),
            ExprKind::Positive(inner) => write!(f, "+{}", Term(inner)),
            ExprKind::Binary(op, left, right) => {
                write!(f, "{} {} {}", Term(left), op.sign(), Term(right))
            }
            ExprKind::Between(value, low, high) => {
                write!(f, "{} BETWEEN {} AND {}", Term(value), Term(low), Term(high))
            }
            ExprKind::In(value, options) => {
                write!(f, "{} IN ", Term(value))?;
                enclosed(f, "[", options, "]")
            }
            ExprKind::Is(value, kind) => write!(f, "{} IS {kind}", Term(value)),
        }
    }
}

/// An operand: in parentheses unless it holds together by itself.
struct Term<'a>(&'a Expr);

impl Display for Term<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        match &self.0.kind {
            ExprKind::And(_)
            | ExprKind::Or(_)
            | ExprKind::Not(_)
            | ExprKind::Negative(_)
            | ExprKind::Positive(_)
            | ExprKind::Binary(..)
            | ExprKind::Between(..)
            | ExprKind::In(..)
            | ExprKind::Is(..) => write!(f, "({})", self.0),
            _ => self.0.fmt(f),
        }
    }
}

fn condition(f: &mut Formatter<'_>, condition: Option<&Expr>) -> Result {
    condition.map_or(Ok(()), |condition| write!(f, " WHERE {condition}"))
}

fn returning(f: &mut Formatter<'_>, returning: Option<Returning>) -> Result {
    returning.map_or(Ok(()), |returning| write!(f, " RETURNING {returning}"))
}

fn chain(f: &mut Formatter<'_>, parts: &[Expr], between: &str) -> Result {
    for (n, part) in parts.iter().enumerate() {
        write!(f, "{}{}", if n == 0 { "" } else { between }, Term(part))?;
    }
    Ok(())
}

fn enclosed(f: &mut Formatter<'_>, open: &str, elements: &[Expr], close: &str) -> Result {
    f.write_str(open)?;
    list(f, elements)?;
    f.write_str(close)
}

fn list<T: Display>(f: &mut Formatter<'_>, elements: &[T]) -> Result {
    for (n, element) in elements.iter().enumerate() {
        write!(f, "{}{element}", if n == 0 { "" } else { ", " })?;
    }
    Ok(())
}

fn quoted(f: &mut Formatter<'_>, text: &str, quote: char) -> Result {
    f.write_char(quote)?;
    for c in text.chars() {
        if c == quote {
            f.write_char(quote)?;
        }
        f.write_char(c)?;
    }
    f.write_char(quote)
}
