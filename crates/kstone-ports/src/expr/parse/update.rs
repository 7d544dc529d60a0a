//! Updates: `SET`, `REMOVE`, `ADD` and `DELETE`, each once and in any order.

use super::Parser;
use crate::expr::ast::{Action, Operand, SetValue, Update};
use crate::expr::token::TokenKind;

const SECTIONS: [(TokenKind, &str); 4] = [
    (TokenKind::Set, "SET"),
    (TokenKind::Remove, "REMOVE"),
    (TokenKind::Add, "ADD"),
    (TokenKind::Delete, "DELETE"),
];

struct ParsedValue {
    value: SetValue,
    /// Where a value that is one operand begins.
    start: usize,
    in_parentheses: bool,
}

impl Parser<'_> {
    /// The update, and the first section that is there a second time.
    pub(super) fn update(&mut self) -> Result<(Update, Option<&'static str>), String> {
        let mut actions = Vec::new();
        let mut seen = Vec::new();
        let mut repeated = None;
        loop {
            let kind = self.tokens.peek().kind;
            let Some((_, name)) = SECTIONS.into_iter().find(|(section, _)| *section == kind) else {
                return match seen.is_empty() {
                    true => Err(self.tokens.syntax_error()),
                    false => Ok((Update { actions }, repeated)),
                };
            };
            self.tokens.next();
            if seen.contains(&kind) {
                repeated = repeated.or(Some(name));
            }
            seen.push(kind);
            actions.push(self.action(kind)?);
            while self.tokens.take(TokenKind::Comma).is_some() {
                actions.push(self.action(kind)?);
            }
        }
    }

    fn action(&mut self, section: TokenKind) -> Result<Action, String> {
        let path = self.path()?;
        Ok(match section {
            TokenKind::Set => {
                self.tokens.expect(TokenKind::Equal)?;
                Action::Set(path, self.set_value()?.value)
            }
            TokenKind::Remove => Action::Remove(path),
            TokenKind::Add => Action::Add(path, self.value_placeholder()?),
            _ => Action::Delete(path, self.value_placeholder()?),
        })
    }

    fn value_placeholder(&mut self) -> Result<String, String> {
        let token = self.tokens.expect(TokenKind::ValuePlaceholder)?;
        Ok(self.tokens.text_of(token).to_owned())
    }

    /// An operand, or two with `+` or `-` between them, perhaps in parentheses.
    fn set_value(&mut self) -> Result<ParsedValue, String> {
        let first = if self.tokens.peek().kind == TokenKind::Open {
            let inner = self.nested(Self::set_value)?;
            self.has_redundant_parentheses |= inner.in_parentheses;
            ParsedValue { in_parentheses: true, ..inner }
        } else {
            let parsed = self.operand()?;
            let value = SetValue::Operand(parsed.operand);
            ParsedValue { value, start: parsed.start, in_parentheses: parsed.in_parentheses }
        };
        let operator: fn(Operand, Operand) -> SetValue = match self.tokens.peek().kind {
            TokenKind::Plus => SetValue::Sum,
            TokenKind::Minus => SetValue::Difference,
            _ => return Ok(first),
        };
        let ParsedValue { value: SetValue::Operand(left), start, .. } = first else {
            return Err(self.tokens.syntax_error());
        };
        self.tokens.next();
        self.check_inner(&left, start);
        let value = operator(left, self.inner_operand()?);
        Ok(ParsedValue { value, start, in_parentheses: false })
    }
}
