//! Text to trees. What depends on the text alone is checked here, in DynamoDB's order: the syntax,
//! then redundant parentheses, then functions, reserved words and list indexes as they come in the
//! text, then repeated sections. What depends on the placeholders is checked when they are bound.
//!
//! Errors are the part of DynamoDB's message that follows `Invalid SomethingExpression: `.

mod condition;
#[cfg(test)]
mod tests;
mod update;

use crate::expr::ast::{Call, Condition, Operand, Path, Projection, Segment, Update};
use crate::expr::function::Function;
use crate::expr::reserved::is_reserved;
use crate::expr::token::{TokenKind, Tokens};

/// The greatest list index that a path can have.
const INDEX_MAX: u32 = i32::MAX as u32;

/// How deep parentheses and calls can be in each other. Each level costs an operator, unless its
/// parentheses are redundant, and DynamoDB takes 300 operators: nothing that it takes is deeper.
const NESTING_MAX: usize = 300;

/// Reads a condition, filter or key condition.
pub(super) fn condition(text: &str, bytes_max: usize) -> Result<Condition, String> {
    let mut parser = Parser::new(text, bytes_max, Grammar::Condition)?;
    let condition = parser.condition()?;
    parser.finish()?;
    Ok(condition)
}

/// Reads an update.
pub(super) fn update(text: &str, bytes_max: usize) -> Result<Update, String> {
    let mut parser = Parser::new(text, bytes_max, Grammar::Update)?;
    let (update, repeated) = parser.update()?;
    parser.finish()?;
    match repeated {
        None => Ok(update),
        Some(section) => {
            Err(format!("The \"{section}\" section can only be used once in an update expression;"))
        }
    }
}

/// Reads a projection.
pub(super) fn projection(text: &str, bytes_max: usize) -> Result<Projection, String> {
    let mut parser = Parser::new(text, bytes_max, Grammar::Projection)?;
    let mut paths = vec![parser.path()?];
    while parser.tokens.take(TokenKind::Comma).is_some() {
        paths.push(parser.path()?);
    }
    parser.finish()?;
    Ok(Projection { paths })
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Grammar {
    Condition,
    Update,
    Projection,
}

#[derive(Debug)]
struct Parser<'t> {
    tokens: Tokens<'t>,
    grammar: Grammar,
    nesting: usize,
    has_redundant_parentheses: bool,
    /// The complaint about the earliest place of the text; it counts once the syntax is known to
    /// be right.
    complaint: Option<(usize, String)>,
}

/// An operand, with what a caller needs to know to judge it.
struct ParsedOperand {
    operand: Operand,
    /// Where the operand itself begins, inside its parentheses.
    start: usize,
    in_parentheses: bool,
}

impl<'t> Parser<'t> {
    fn new(text: &'t str, bytes_max: usize, grammar: Grammar) -> Result<Self, String> {
        if text.is_empty() {
            return Err("The expression can not be empty;".to_owned());
        }
        if text.len() > bytes_max {
            return Err(format!(
                "Expression size has exceeded the maximum allowed size; expression size: {}",
                text.len()
            ));
        }
        let tokens = Tokens::new(text);
        let (has_redundant_parentheses, complaint) = (false, None);
        Ok(Parser { tokens, grammar, nesting: 0, has_redundant_parentheses, complaint })
    }

    /// Nothing may follow. Tells what was noticed on the way.
    fn finish(mut self) -> Result<(), String> {
        self.tokens.expect(TokenKind::End)?;
        if self.has_redundant_parentheses {
            return Err("The expression has redundant parentheses;".to_owned());
        }
        self.complaint.map_or(Ok(()), |(_, message)| Err(message))
    }

    fn complain(&mut self, start: usize, message: impl FnOnce() -> String) {
        if self.complaint.as_ref().is_none_or(|(earlier, _)| start < *earlier) {
            self.complaint = Some((start, message()));
        }
    }

    fn path(&mut self) -> Result<Path, String> {
        let mut segments = vec![self.name()?];
        loop {
            if self.tokens.take(TokenKind::Dot).is_some() {
                segments.push(self.name()?);
            } else if self.tokens.take(TokenKind::OpenBracket).is_some() {
                segments.push(self.index()?);
                self.tokens.expect(TokenKind::CloseBracket)?;
            } else {
                return Ok(Path { segments });
            }
        }
    }

    fn name(&mut self) -> Result<Segment, String> {
        if let Some(token) = self.tokens.take(TokenKind::NamePlaceholder) {
            return Ok(Segment::Placeholder(self.tokens.text_of(token).to_owned()));
        }
        let token = self.tokens.expect(TokenKind::Name)?;
        let name = self.tokens.text_of(token);
        if is_reserved(name) {
            self.complain(token.start(), || {
                format!("Attribute name is a reserved keyword; reserved keyword: {name}")
            });
        }
        Ok(Segment::Name(name.to_owned()))
    }

    fn index(&mut self) -> Result<Segment, String> {
        let token = self.tokens.expect(TokenKind::Number)?;
        let digits = self.tokens.text_of(token);
        let index = digits.parse().ok().filter(|index| *index <= INDEX_MAX);
        if index.is_none() {
            self.complain(token.start(), || {
                format!("List index is not within the allowable range; index: [{digits}]")
            });
        }
        Ok(Segment::Index(index.unwrap_or(INDEX_MAX)))
    }

    /// An operand, perhaps in parentheses.
    fn operand(&mut self) -> Result<ParsedOperand, String> {
        let token = self.tokens.peek();
        let start = token.start();
        let operand = match token.kind {
            TokenKind::Open => {
                let inner = self.nested(Self::operand)?;
                self.has_redundant_parentheses |= inner.in_parentheses;
                return Ok(ParsedOperand { in_parentheses: true, ..inner });
            }
            TokenKind::ValuePlaceholder => {
                self.tokens.next();
                Operand::Value(self.tokens.text_of(token).to_owned())
            }
            TokenKind::Name if self.tokens.peek_second().kind == TokenKind::Open => {
                Operand::Call(self.call()?)
            }
            _ => Operand::Path(self.path()?),
        };
        Ok(ParsedOperand { operand, start, in_parentheses: false })
    }

    /// An operand of an operator or an argument of a function: not every function can be one.
    fn inner_operand(&mut self) -> Result<Operand, String> {
        let parsed = self.operand()?;
        self.check_inner(&parsed.operand, parsed.start);
        Ok(parsed.operand)
    }

    fn check_inner(&mut self, operand: &Operand, start: usize) {
        if let Operand::Call(call) = operand
            && !call.function.is_operand()
        {
            self.complain(start, || misused(call.function));
        }
    }

    /// A function's name and what it is given. The next token is a name, and then `(`.
    fn call(&mut self) -> Result<Call, String> {
        let token = self.tokens.next();
        let name = self.tokens.text_of(token);
        let function = Function::named(name);
        match function {
            None => {
                self.complain(token.start(), || format!("Invalid function name; function: {name}"))
            }
            Some(function) if function.is_of_updates() != (self.grammar == Grammar::Update) => {
                let place =
                    if self.grammar == Grammar::Update { "an update" } else { "a condition" };
                self.complain(token.start(), || {
                    format!("The function is not allowed in {place} expression; function: {name}")
                });
            }
            Some(_) => {}
        }
        let arguments = self.nested(Self::operands)?;
        // Any function will do for an unknown one: the complaint is made.
        Ok(Call { function: function.unwrap_or(Function::Size), arguments })
    }

    /// One or more operands with commas between them.
    fn operands(&mut self) -> Result<Vec<Operand>, String> {
        let mut operands = vec![self.inner_operand()?];
        while self.tokens.take(TokenKind::Comma).is_some() {
            operands.push(self.inner_operand()?);
        }
        Ok(operands)
    }

    /// `(`, something, `)`.
    fn nested<T>(
        &mut self,
        inside: impl FnOnce(&mut Self) -> Result<T, String>,
    ) -> Result<T, String> {
        self.tokens.expect(TokenKind::Open)?;
        if self.nesting == NESTING_MAX {
            return Err(if self.tokens.peek().kind == TokenKind::Open {
                "The expression has redundant parentheses;".to_owned()
            } else {
                too_many_operators(NESTING_MAX + 1)
            });
        }
        self.nesting += 1;
        let result = inside(self)?;
        self.nesting -= 1;
        self.tokens.expect(TokenKind::Close)?;
        Ok(result)
    }
}

fn misused(function: Function) -> String {
    format!(
        "The function is not allowed to be used this way in an expression; function: {function}"
    )
}

/// Told after everything else that is wrong with an expression.
pub(super) fn too_many_operators(count: usize) -> String {
    format!("The expression contains too many operators; operator count: {count}")
}
