//! Parses expressions: conditions, values and paths.

use crate::error::{Error, Result};
use crate::partiql::ast::{BinaryOp, Expr, ExprKind, Path, Step, TYPES};
use crate::partiql::lexer::{TokenKind, reserved};
use crate::partiql::malformed;
use crate::partiql::parser::Parser;

/// How deep expressions may stand inside each other, and how many operators may continue chains.
/// Together they bound the depth of the tree, so that walking it cannot exhaust the stack.
/// DynamoDB's items nest 32 deep, and its conditions have 300 operators at most.
const DEPTH_MAX: usize = 64;
const LINKS_MAX: usize = 300;

/// Keywords that stand between operands or before one.
const OPERATOR_WORDS: [&str; 7] = ["AND", "OR", "NOT", "IS", "IN", "LIKE", "BETWEEN"];

const IN_NEEDS_A_LIST: &str = "IN operator must have a left hand argument of type Variable \
    Reference and right hand argument of type Seq with at least one member";

impl Parser {
    /// Any expression.
    pub(super) fn expression(&mut self) -> Result<Expr> {
        self.nested(|parser| parser.chain("OR", ExprKind::Or, Self::conjunction))
    }

    fn conjunction(&mut self) -> Result<Expr> {
        self.chain("AND", ExprKind::And, Self::negation)
    }

    fn chain(
        &mut self,
        word: &str,
        join: fn(Vec<Expr>) -> ExprKind,
        part: fn(&mut Self) -> Result<Expr>,
    ) -> Result<Expr> {
        let first = part(self)?;
        if !self.at_word(word) {
            return Ok(first);
        }
        let at = self.place();
        let mut parts = vec![first];
        while self.take_word(word) {
            self.need_right_side()?;
            parts.push(part(self)?);
        }
        Ok(Expr { kind: join(parts), at })
    }

    fn negation(&mut self) -> Result<Expr> {
        let at = self.place();
        if !self.take_word("NOT") {
            return self.comparison();
        }
        let inner = self.nested(Self::negation)?;
        Ok(Expr { kind: ExprKind::Not(Box::new(inner)), at })
    }

    /// Comparisons, `IN`, `IS`, `LIKE` and `BETWEEN`, from left to right.
    fn comparison(&mut self) -> Result<Expr> {
        let mut left = self.sum()?;
        let mut first = true;
        loop {
            let at = self.place();
            let start = self.peek_after(usize::from(self.at_word("NOT")));
            let kind = match start {
                TokenKind::Word(word) => word.to_ascii_uppercase(),
                TokenKind::Sign(sign) => (*sign).to_owned(),
                _ => return Ok(left),
            };
            let negated = self.at_word("NOT");
            let comparison = match kind.as_str() {
                "=" | "<>" | "!=" | "<" | "<=" | ">" | ">=" if negated => None,
                "=" => Some(BinaryOp::Eq),
                "<>" | "!=" => Some(BinaryOp::Ne),
                "<" => Some(BinaryOp::Lt),
                "<=" => Some(BinaryOp::Le),
                ">" => Some(BinaryOp::Gt),
                ">=" => Some(BinaryOp::Ge),
                "LIKE" => Some(BinaryOp::Like),
                "BETWEEN" | "IN" => None,
                "IS" if !negated => None,
                _ => return Ok(left),
            };
            if !first {
                self.link()?;
            }
            first = false;
            self.next_operator(negated)?;
            let (kind, negated) = match (comparison, kind.as_str()) {
                (Some(op), _) => {
                    (ExprKind::Binary(op, Box::new(left), Box::new(self.sum()?)), negated)
                }
                (None, "BETWEEN") => {
                    let low = self.sum()?;
                    if !self.take_word("AND") {
                        return Err(malformed("Expected AND after BETWEEN"));
                    }
                    self.need_right_side()?;
                    let high = self.sum()?;
                    let kind = ExprKind::Between(Box::new(left), Box::new(low), Box::new(high));
                    (kind, negated)
                }
                (None, "IN") => (ExprKind::In(Box::new(left), self.options()?), negated),
                (None, "IS") => {
                    let negated = self.take_word("NOT");
                    (ExprKind::Is(Box::new(left), self.type_name()?), negated)
                }
                _ => return Err(malformed("Unexpected operator")),
            };
            left = Expr { kind, at };
            if negated {
                left = Expr { kind: ExprKind::Not(Box::new(left)), at };
            }
        }
    }

    /// Steps over `NOT` and the operator, to the right side.
    fn next_operator(&mut self, negated: bool) -> Result<()> {
        if negated {
            self.advance();
        }
        self.advance();
        self.need_right_side()
    }

    /// What follows `IN`: `(a, b)`, `[a, b]` or `<<a, b>>`.
    fn options(&mut self) -> Result<Vec<Expr>> {
        let options = if self.take_sign("(") {
            self.elements(")", "RIGHT_PAREN", false)?
        } else {
            match self.sum()?.kind {
                ExprKind::List(options) | ExprKind::Set(options) => options,
                _ => return Err(Error::validation(IN_NEEDS_A_LIST)),
            }
        };
        if options.is_empty() { Err(Error::validation(IN_NEEDS_A_LIST)) } else { Ok(options) }
    }

    fn type_name(&mut self) -> Result<&'static str> {
        let TokenKind::Word(word) = self.peek() else {
            return Err(malformed("Expected type name"));
        };
        let mut name = word.to_ascii_uppercase();
        self.advance();
        for (first, second) in [("DOUBLE", "PRECISION"), ("CHARACTER", "VARYING")] {
            if name == first && self.take_word(second) {
                name = format!("{first} {second}");
            }
        }
        let found = TYPES.iter().find(|(written, _)| *written == name);
        found.map(|(_, kind)| *kind).ok_or_else(|| malformed("Expected type name"))
    }

    fn sum(&mut self) -> Result<Expr> {
        let signs = [("||", BinaryOp::Concat), ("+", BinaryOp::Add), ("-", BinaryOp::Sub)];
        self.calculation(&signs, |parser| {
            let signs = [("*", BinaryOp::Mul), ("/", BinaryOp::Div), ("%", BinaryOp::Mod)];
            parser.calculation(&signs, Self::signed)
        })
    }

    fn calculation(
        &mut self,
        signs: &[(&str, BinaryOp)],
        operand: fn(&mut Self) -> Result<Expr>,
    ) -> Result<Expr> {
        let mut left = operand(self)?;
        let mut first = true;
        while let Some((_, op)) = signs.iter().find(|(sign, _)| self.at_sign(sign)) {
            if !first {
                self.link()?;
            }
            first = false;
            let at = self.place();
            self.advance();
            self.need_right_side()?;
            let right = operand(self)?;
            left = Expr { kind: ExprKind::Binary(*op, Box::new(left), Box::new(right)), at };
        }
        Ok(left)
    }

    fn signed(&mut self) -> Result<Expr> {
        let at = self.place();
        if self.take_sign("-") {
            let inner = self.nested(Self::signed)?;
            return Ok(Expr { kind: ExprKind::Negative(Box::new(inner)), at });
        }
        if self.take_sign("+") {
            let inner = self.nested(Self::signed)?;
            return Ok(Expr { kind: ExprKind::Positive(Box::new(inner)), at });
        }
        self.term()
    }

    fn term(&mut self) -> Result<Expr> {
        let at = self.place();
        let kind = match self.peek().clone() {
            TokenKind::String(text) => ExprKind::String(text),
            TokenKind::Number(text) => ExprKind::Number(text),
            TokenKind::Parameter => {
                self.parameters += 1;
                ExprKind::Parameter(self.parameters - 1)
            }
            TokenKind::Quoted(name) => {
                self.advance();
                return self.name(name);
            }
            TokenKind::Word(word) => return self.word(word),
            TokenKind::Sign("(") => {
                self.advance();
                let mut elements = self.elements(")", "RIGHT_PAREN", false)?;
                return match elements.len() {
                    1 => Ok(elements.remove(0)),
                    _ => Ok(Expr { kind: ExprKind::List(elements), at }),
                };
            }
            TokenKind::Sign("[") => {
                self.advance();
                let elements = self.elements("]", "RIGHT_BRACKET", true)?;
                return Ok(Expr { kind: ExprKind::List(elements), at });
            }
            TokenKind::Sign("<<") => {
                self.advance();
                let elements = self.elements(">>", "RIGHT_DOUBLE_ANGLE_BRACKET", true)?;
                return Ok(Expr { kind: ExprKind::Set(elements), at });
            }
            TokenKind::Sign("{") => {
                self.advance();
                return Ok(Expr { kind: ExprKind::Map(self.entries()?), at });
            }
            TokenKind::Sign(")" | "]" | "}" | ">>" | ";" | "," | ":" | "." | "@")
            | TokenKind::End => return Err(malformed("Unexpected term")),
            TokenKind::Sign(_) => return Err(malformed("Unexpected operator")),
        };
        self.advance();
        Ok(Expr { kind, at })
    }

    fn word(&mut self, word: String) -> Result<Expr> {
        let at = self.place();
        let constant = match word.to_ascii_uppercase().as_str() {
            "NULL" => ExprKind::Null,
            "MISSING" => ExprKind::Missing,
            "TRUE" => ExprKind::Bool(true),
            "FALSE" => ExprKind::Bool(false),
            upper @ ("SELECT" | "CASE" | "CAST") => {
                return Err(Error::validation(format!(
                    "Unsupported token in expression: {upper} at {at}"
                )));
            }
            upper => {
                let call = self.peek_after(1) == &TokenKind::Sign("(");
                if upper == "NOT" && self.peek_after(1) == &TokenKind::Parameter {
                    return Err(Error::validation(NOT_WHAT));
                }
                if OPERATOR_WORDS.contains(&upper) {
                    return Err(malformed("Unexpected operator"));
                }
                if reserved(upper) && !call {
                    return Err(malformed("Unexpected keyword"));
                }
                self.advance();
                return self.name(word);
            }
        };
        self.advance();
        Ok(Expr { kind: constant, at })
    }

    /// A function's call or a path, after its first name.
    fn name(&mut self, name: String) -> Result<Expr> {
        if !self.at_sign("(") {
            return self.path_from(name);
        }
        let at = self.place_before();
        self.advance();
        let name = name.to_ascii_lowercase();
        if self.take_sign("*") {
            self.expect_sign(")", "RIGHT_PAREN")?;
            return Ok(Expr { kind: ExprKind::CallAll(name), at });
        }
        let arguments = self.elements(")", "RIGHT_PAREN", true)?;
        Ok(Expr { kind: ExprKind::Call(name, arguments), at })
    }

    /// The steps of a path after its first name.
    pub(super) fn path_from(&mut self, root: String) -> Result<Expr> {
        let at = self.place_before();
        not_empty(&root)?;
        let mut steps = Vec::new();
        loop {
            if self.take_sign(".") {
                match self.peek().clone() {
                    TokenKind::Quoted(name) => steps.push(Step::Name(not_empty(&name)?)),
                    TokenKind::Word(name) if !reserved(&name) => steps.push(Step::Name(name)),
                    TokenKind::Sign("*") => {
                        self.advance();
                        let path = Path { root, steps };
                        return Ok(Expr { kind: ExprKind::Everything(path), at });
                    }
                    _ => return Err(malformed("Invalid path dot component")),
                }
                self.advance();
            } else if self.take_sign("[") {
                if self.at_sign("*") {
                    return Err(malformed("Invalid path component"));
                }
                let step = self.expression()?;
                steps.push(bracketed(&step)?);
                self.expect_sign("]", "RIGHT_BRACKET")?;
            } else {
                return Ok(Expr { kind: ExprKind::Path(Path { root, steps }), at });
            }
        }
    }

    /// Expressions between commas, up to a closing sign.
    fn elements(&mut self, close: &str, close_name: &str, may_be_empty: bool) -> Result<Vec<Expr>> {
        let mut elements = Vec::new();
        if may_be_empty && self.take_sign(close) {
            return Ok(elements);
        }
        loop {
            elements.push(self.expression()?);
            if !self.take_sign(",") {
                self.expect_sign(close, close_name)?;
                return Ok(elements);
            }
        }
    }

    fn entries(&mut self) -> Result<Vec<(Expr, Expr)>> {
        let mut entries = Vec::new();
        if self.take_sign("}") {
            return Ok(entries);
        }
        loop {
            let name = self.expression()?;
            self.expect_sign(":", "COLON")?;
            entries.push((name, self.expression()?));
            if !self.take_sign(",") {
                self.expect_sign("}", "RIGHT_CURLY")?;
                return Ok(entries);
            }
        }
    }

    fn need_right_side(&self) -> Result<()> {
        match self.peek() {
            TokenKind::End | TokenKind::Sign(";") => {
                Err(malformed("Missing right-hand side expression of infix operator"))
            }
            _ => Ok(()),
        }
    }

    fn nested(&mut self, parse: impl FnOnce(&mut Self) -> Result<Expr>) -> Result<Expr> {
        if self.depth == DEPTH_MAX {
            return Err(Error::validation("Nesting Levels have exceeded supported limits"));
        }
        self.depth += 1;
        let parsed = parse(self);
        self.depth -= 1;
        parsed
    }

    fn link(&mut self) -> Result<()> {
        self.links += 1;
        if self.links <= LINKS_MAX {
            return Ok(());
        }
        Err(Error::validation(format!(
            "The expression contains too many operators; operator count: {}",
            self.links
        )))
    }
}

/// `NOT` before something that is neither true nor false.
pub(super) const NOT_WHAT: &str = "The argument to NOT must be a Type or Expression";

/// What stands in brackets after a path: a list's index, or a name in a map.
fn bracketed(step: &Expr) -> Result<Step> {
    let (number, negative) = match &step.kind {
        ExprKind::String(name) => return Ok(Step::Name(not_empty(name)?)),
        ExprKind::Number(text) => (Some((text, step.at)), false),
        ExprKind::Negative(inner) => match &inner.kind {
            ExprKind::Number(text) => (Some((text, inner.at)), true),
            _ => (None, true),
        },
        ExprKind::Positive(inner) => match &inner.kind {
            ExprKind::Number(text) => (Some((text, inner.at)), false),
            _ => (None, false),
        },
        _ => (None, false),
    };
    let Some((text, at)) = number.filter(|(text, _)| text.bytes().all(|c| c.is_ascii_digit()))
    else {
        return Err(Error::validation(format!("Unexpected path component at {}", step.at)));
    };
    match text.parse::<u32>() {
        Ok(index) if !negative || index == 0 => Ok(Step::Index(index)),
        _ => Err(Error::validation(format!(
            "List index is not within the allowable range; index: [{}{text}] at {at}",
            if negative { "-" } else { "" }
        ))),
    }
}

fn not_empty(name: &str) -> Result<String> {
    match name {
        "" => Err(Error::validation("Path component cannot be an empty string")),
        name => Ok(name.to_owned()),
    }
}
