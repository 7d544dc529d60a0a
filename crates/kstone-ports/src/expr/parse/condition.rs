//! Conditions, filters and key conditions.

use super::{Parser, misused};
use crate::expr::ast::{Comparator, Condition, Operand};
use crate::expr::function::Function;
use crate::expr::token::TokenKind;

/// What a pair of parentheses holds is known only after it was read: `(a) = b`, `(a = b)`.
enum Node {
    Condition(Condition),
    Operand(Operand, usize),
}

struct Parsed {
    node: Node,
    in_parentheses: bool,
}

impl Parser<'_> {
    /// A whole condition.
    pub(super) fn condition(&mut self) -> Result<Condition, String> {
        let parsed = self.expression()?;
        self.holds(parsed)
    }

    /// Conditions with `AND` and `OR` between them, or an operand alone.
    fn expression(&mut self) -> Result<Parsed, String> {
        let mut alternatives = Vec::new();
        let mut parts = Vec::new();
        loop {
            let parsed = self.term()?;
            let joint = self.tokens.peek().kind;
            let goes_on = matches!(joint, TokenKind::And | TokenKind::Or);
            if !goes_on && parts.is_empty() && alternatives.is_empty() {
                return Ok(parsed);
            }
            parts.push(self.holds(parsed)?);
            if joint != TokenKind::And {
                let part = one_or(std::mem::take(&mut parts), Condition::And);
                alternatives.push(part);
            }
            if !goes_on {
                let node = Node::Condition(one_or(alternatives, Condition::Or));
                return Ok(Parsed { node, in_parentheses: false });
            }
            self.tokens.next();
        }
    }

    /// A comparison, a function, something in parentheses, or the contrary of such.
    fn term(&mut self) -> Result<Parsed, String> {
        let mut negations = 0_usize;
        while self.tokens.take(TokenKind::Not).is_some() {
            negations += 1;
        }
        let parsed = self.comparison()?;
        if negations == 0 {
            return Ok(parsed);
        }
        let mut condition = self.holds(parsed)?;
        for _ in 0..negations {
            condition = Condition::Not(Box::new(condition));
        }
        Ok(Parsed { node: Node::Condition(condition), in_parentheses: false })
    }

    fn comparison(&mut self) -> Result<Parsed, String> {
        let first = self.atom()?;
        let token = self.tokens.peek();
        let Parsed { node: Node::Operand(left, start), .. } = first else { return Ok(first) };
        let condition = match token.kind {
            TokenKind::Between => {
                self.tokens.next();
                self.check_inner(&left, start);
                let low = self.inner_operand()?;
                self.tokens.expect(TokenKind::And)?;
                Condition::Between(left, low, self.inner_operand()?)
            }
            TokenKind::In => {
                self.tokens.next();
                self.check_inner(&left, start);
                Condition::In(left, self.nested(Self::operands)?)
            }
            kind => match comparator(kind) {
                Some(comparator) => {
                    self.tokens.next();
                    self.check_inner(&left, start);
                    Condition::Compare(comparator, left, self.inner_operand()?)
                }
                None => {
                    return Ok(Parsed { node: Node::Operand(left, start), ..first });
                }
            },
        };
        Ok(Parsed { node: Node::Condition(condition), in_parentheses: false })
    }

    fn atom(&mut self) -> Result<Parsed, String> {
        if self.tokens.peek().kind == TokenKind::Open {
            let inner = self.nested(Self::expression)?;
            self.has_redundant_parentheses |= inner.in_parentheses;
            return Ok(Parsed { in_parentheses: true, ..inner });
        }
        let parsed = self.operand()?;
        let node = Node::Operand(parsed.operand, parsed.start);
        Ok(Parsed { node, in_parentheses: parsed.in_parentheses })
    }

    /// What was read as something that holds or does not. A path or a value alone is neither:
    /// the operator is missing at the next token.
    fn holds(&mut self, parsed: Parsed) -> Result<Condition, String> {
        match parsed.node {
            Node::Condition(condition) => Ok(condition),
            Node::Operand(Operand::Call(call), start) => {
                if call.function == Function::Size {
                    self.complain(start, || misused(call.function));
                }
                Ok(Condition::Call(call))
            }
            Node::Operand(..) => Err(self.tokens.syntax_error()),
        }
    }
}

fn comparator(kind: TokenKind) -> Option<Comparator> {
    Some(match kind {
        TokenKind::Equal => Comparator::Equal,
        TokenKind::NotEqual => Comparator::NotEqual,
        TokenKind::Less => Comparator::Less,
        TokenKind::LessOrEqual => Comparator::LessOrEqual,
        TokenKind::Greater => Comparator::Greater,
        TokenKind::GreaterOrEqual => Comparator::GreaterOrEqual,
        _ => return None,
    })
}

/// The only one, or all of them together.
fn one_or(mut parts: Vec<Condition>, several: fn(Vec<Condition>) -> Condition) -> Condition {
    match parts.len() {
        1 => parts.remove(0),
        _ => several(parts),
    }
}
