//! Parses the text of a statement: the clauses here, expressions in
//! [`expression`](super::expression).

use crate::error::{Error, Result};
use crate::partiql::ast::{
    At, Change, Command, Delete, Expr, ExprKind, Insert, Order, Parsed, Path, Returning, Select,
    Source, Step, Update,
};
use crate::partiql::lexer::{Token, TokenKind, reserved, tokens};
use crate::partiql::malformed;

/// The longest statement, in characters.
pub const STATEMENT_MAX: usize = 8192;

/// Parses one statement.
///
/// Never panics and never recurses deeper than a fixed bound, whatever the text.
///
/// ```
/// let parsed = kstone::partiql::parse("select * from Music where Artist = ?")?;
/// assert_eq!(parsed.parameters, 1);
/// assert_eq!(parsed.to_string(), r#"SELECT * FROM "Music" WHERE "Artist" = ?"#);
/// # Ok::<(), kstone::Error>(())
/// ```
pub fn parse(text: &str) -> Result<Parsed> {
    let length = text.chars().count();
    if length == 0 || length > STATEMENT_MAX {
        let (shown, bound) = match length {
            0 => ("", "greater than or equal to 1".to_owned()),
            _ => (text, format!("less than or equal to {STATEMENT_MAX}")),
        };
        return Err(Error::validation(format!(
            "1 validation error detected: Value '{shown}' at 'statement' failed to satisfy \
             constraint: Member must have length {bound}"
        )));
    }
    let mut parser = Parser { tokens: tokens(text)?, next: 0, depth: 0, links: 0, parameters: 0 };
    let command = parser.statement()?;
    parser.take_sign(";");
    if parser.peek() != &TokenKind::End {
        return Err(malformed("Unexpected token after expression"));
    }
    Ok(Parsed { command, parameters: parser.parameters })
}

pub(super) struct Parser {
    tokens: Vec<Token>,
    next: usize,
    /// How many expressions the next one stands inside.
    pub(super) depth: usize,
    /// How many operators continued a chain such as `a + b + c`.
    pub(super) links: usize,
    pub(super) parameters: usize,
}

impl Parser {
    fn statement(&mut self) -> Result<Command> {
        if self.take_word("SELECT") {
            return Ok(Command::Select(self.select()?));
        }
        if self.take_word("INSERT") {
            return Ok(Command::Insert(self.insert()?));
        }
        if self.take_word("UPDATE") {
            return Ok(Command::Update(self.update()?));
        }
        if self.take_word("DELETE") {
            return Ok(Command::Delete(self.delete()?));
        }
        if self.take_word("FROM") {
            return Ok(Command::Update(self.update_from_first()?));
        }
        if self.at_word("EXISTS") && self.peek_after(1) == &TokenKind::Sign("(") {
            self.advance();
            self.advance();
            if !self.take_word("SELECT") {
                return Err(malformed("Expected data manipulation"));
            }
            let select = self.select()?;
            self.expect_sign(")", "RIGHT_PAREN")?;
            return Ok(Command::Exists(select));
        }
        if self.at_word("NOT") && self.peek_after(1) == &TokenKind::Word("EXISTS".into()) {
            return Err(Error::validation("Unsupported operation in transaction."));
        }
        for (word, operation) in [("CREATE", "Create"), ("DROP", "Drop")] {
            if self.take_word(word) {
                let what = if self.at_word("INDEX") { "Index" } else { "Table" };
                return Err(Error::validation(format!("Unsupported operation: {operation}{what}")));
            }
        }
        Err(malformed("Expected data manipulation"))
    }

    /// After `SELECT`.
    fn select(&mut self) -> Result<Select> {
        for word in ["DISTINCT", "ALL"] {
            if self.take_word(word) && word == "DISTINCT" {
                return Err(Error::validation("Unsupported token in expression: DISTINCT"));
            }
        }
        if self.at_word("VALUE") || self.at_word("PIVOT") {
            return Err(Error::validation(
                "Select projection doesn't support value or pivot keywords",
            ));
        }
        let projection = if self.take_sign("*") {
            if self.at_sign(",") {
                return Err(Error::validation(
                    "Other attributes should not be present in the projection when '*' is used.",
                ));
            }
            None
        } else {
            let mut paths = vec![self.projected()?];
            while self.take_sign(",") {
                paths.push(self.projected()?);
            }
            Some(paths)
        };
        if !self.take_word("FROM") {
            return Err(malformed("Expected FROM after SELECT list"));
        }
        let source = self.select_source()?;
        let condition = self.condition()?;
        if self.at_word("GROUP") {
            return Err(Error::validation("Unsupported clause: GROUP BY"));
        }
        for word in ["HAVING", "LIMIT"] {
            if self.take_word(word) {
                let at = self.place();
                return Err(Error::validation(format!("Unsupported clause: {word} at {at}")));
            }
        }
        let order = self.order()?;
        if self.take_word("LIMIT") {
            let at = self.place();
            return Err(Error::validation(format!("Unsupported clause: LIMIT at {at}")));
        }
        Ok(Select { projection, source, condition, order })
    }

    fn projected(&mut self) -> Result<Expr> {
        let path = self.expression()?;
        self.refuse_alias()?;
        Ok(path)
    }

    /// The table or index of a `SELECT`, where PartiQL allows any expression.
    fn select_source(&mut self) -> Result<Source> {
        let expression = self.expression()?;
        let ExprKind::Path(path) = expression.kind else {
            return Err(Error::validation("Unexpected from source"));
        };
        self.refuse_alias()?;
        if self.at_sign(",") {
            return Err(Error::validation(
                "Only select from a single table or index is supported.",
            ));
        }
        source(path)
    }

    fn order(&mut self) -> Result<Vec<Order>> {
        let mut order = Vec::new();
        if !self.take_word("ORDER") {
            return Ok(order);
        }
        if !self.take_word("BY") {
            return Err(malformed("Expected BY"));
        }
        loop {
            let by = self.expression()?;
            let descending = !self.take_word("ASC") && self.take_word("DESC");
            order.push(Order { by, descending });
            if !self.take_sign(",") {
                return Ok(order);
            }
        }
    }

    /// After `INSERT`.
    fn insert(&mut self) -> Result<Insert> {
        if !self.take_word("INTO") {
            return Err(malformed("Unexpected keyword"));
        }
        let Source { table, index: None } = source(self.simple_path()?)? else {
            return Err(Error::validation(
                "FROM clause may only contain a single table name in data manipulation statements",
            ));
        };
        if self.at_word("VALUES") || self.at_sign("<<") {
            return Err(Error::validation(
                "Unsupported operation: Inserting multiple items in a single statement is not \
                 supported, use \"INSERT INTO tableName VALUE item\" instead",
            ));
        }
        if !self.take_word("VALUE") {
            return Err(malformed(match self.peek() {
                TokenKind::End => "Unexpected term",
                _ => "Unexpected token after expression",
            }));
        }
        let item = self.expression()?;
        if self.at_word("AT") {
            return Err(Error::validation("AT is not supported in insert statements."));
        }
        if self.at_word("RETURNING") {
            return Err(Error::validation("RETURNING is not supported in INSERT"));
        }
        Ok(Insert { table, item })
    }

    /// After `UPDATE`.
    fn update(&mut self) -> Result<Update> {
        let source = source(self.simple_path()?)?;
        self.refuse_alias()?;
        let changes = self.changes()?;
        let condition = self.condition()?;
        let returning = self.returning()?;
        Ok(Update { source, changes, condition, returning })
    }

    /// PartiQL's other way to write an update: `FROM table WHERE … SET …`, after `FROM`.
    fn update_from_first(&mut self) -> Result<Update> {
        let source = source(self.simple_path()?)?;
        self.refuse_alias()?;
        let condition = self.condition()?;
        let changes = self.changes()?;
        let returning = self.returning()?;
        Ok(Update { source, changes, condition, returning })
    }

    /// After `DELETE`.
    fn delete(&mut self) -> Result<Delete> {
        if !self.take_word("FROM") {
            return Err(malformed("Expected FROM"));
        }
        let source = source(self.simple_path()?)?;
        self.refuse_alias()?;
        let condition = self.condition()?;
        let returning = self.returning()?;
        Ok(Delete { source, condition, returning })
    }

    fn changes(&mut self) -> Result<Vec<Change>> {
        let mut changes = Vec::new();
        loop {
            if self.take_word("SET") {
                loop {
                    let path = self.simple_path()?;
                    if !self.take_sign("=") {
                        return Err(malformed("Expected EQ"));
                    }
                    changes.push(Change::Set(path, self.expression()?));
                    if !self.take_sign(",") {
                        break;
                    }
                }
            } else if self.take_word("REMOVE") {
                changes.push(Change::Remove(self.simple_path()?));
            } else if changes.is_empty() {
                return Err(malformed("Expected data manipulation"));
            } else {
                return Ok(changes);
            }
        }
    }

    fn condition(&mut self) -> Result<Option<Expr>> {
        if self.take_word("WHERE") { self.expression().map(Some) } else { Ok(None) }
    }

    fn returning(&mut self) -> Result<Option<Returning>> {
        if !self.take_word("RETURNING") {
            return Ok(None);
        }
        let modified = self.take_word("MODIFIED");
        if !modified && !self.take_word("ALL") {
            return Err(malformed("Expected ALL or MODIFIED in a returning clause"));
        }
        let old = self.take_word("OLD");
        if !old && !self.take_word("NEW") {
            return Err(malformed("Expected OLD or NEW in a returning clause"));
        }
        if !self.take_sign("*") {
            return Err(Error::validation(
                "Expected '*' after ( MODIFIED | ALL ) ( NEW | OLD ) in RETURNING clause",
            ));
        }
        if self.at_sign(",") {
            return Err(Error::validation(
                "Invalid syntax with multiple returning elements in RETURNING clause",
            ));
        }
        Ok(Some(Returning { modified, old }))
    }

    /// A name with steps, where no other expression may stand.
    fn simple_path(&mut self) -> Result<Path> {
        let root = match self.peek() {
            TokenKind::Quoted(name) => name.clone(),
            TokenKind::Word(name) if !reserved(name) => name.clone(),
            _ => return Err(malformed("Expected identifier for simple path")),
        };
        self.advance();
        match self.path_from(root)?.kind {
            ExprKind::Path(path) => Ok(path),
            _ => Err(malformed("Invalid path dot component for simple path")),
        }
    }

    fn refuse_alias(&mut self) -> Result<()> {
        let named = match self.peek() {
            TokenKind::Quoted(_) => true,
            TokenKind::Word(word) => !reserved(word) || word.eq_ignore_ascii_case("AS"),
            _ => false,
        };
        if named { Err(Error::validation("Aliasing is not supported")) } else { Ok(()) }
    }

    pub(super) fn peek(&self) -> &TokenKind {
        self.peek_after(0)
    }

    pub(super) fn peek_after(&self, tokens: usize) -> &TokenKind {
        self.tokens.get(self.next + tokens).map_or(&TokenKind::End, |token| &token.kind)
    }

    /// The place of the next token.
    pub(super) fn place(&self) -> At {
        self.tokens.get(self.next).map_or(At::default(), |token| token.at)
    }

    /// The place of the token before the next.
    pub(super) fn place_before(&self) -> At {
        let before = self.next.checked_sub(1).and_then(|before| self.tokens.get(before));
        before.map_or(At::default(), |token| token.at)
    }

    pub(super) fn advance(&mut self) {
        self.next += 1;
    }

    pub(super) fn at_word(&self, word: &str) -> bool {
        matches!(self.peek(), TokenKind::Word(next) if next.eq_ignore_ascii_case(word))
    }

    pub(super) fn at_sign(&self, sign: &str) -> bool {
        matches!(self.peek(), TokenKind::Sign(next) if *next == sign)
    }

    pub(super) fn take_word(&mut self, word: &str) -> bool {
        let found = self.at_word(word);
        self.next += usize::from(found);
        found
    }

    pub(super) fn take_sign(&mut self, sign: &str) -> bool {
        let found = self.at_sign(sign);
        self.next += usize::from(found);
        found
    }

    pub(super) fn expect_sign(&mut self, sign: &str, name: &str) -> Result<()> {
        if self.take_sign(sign) { Ok(()) } else { Err(malformed(&format!("Expected {name}"))) }
    }
}

/// A path read as the name of a table and perhaps of its index.
fn source(path: Path) -> Result<Source> {
    let mut steps = path.steps.into_iter();
    let index = match steps.next() {
        None => None,
        Some(Step::Name(name)) => Some(name),
        Some(Step::Index(_)) => {
            return Err(Error::validation("Invalid list expression in source."));
        }
    };
    if steps.next().is_some() {
        return Err(Error::validation(
            "A path may contain at most 2 components in the FROM clause",
        ));
    }
    Ok(Source { table: path.root, index })
}
