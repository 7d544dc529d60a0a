//! Splits the text of a statement into tokens. Comments and white space end here.

use crate::error::Result;
use crate::partiql::ast::At;
use crate::partiql::malformed;

/// One word, literal or sign of a statement, with its place.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Token {
    pub kind: TokenKind,
    pub at: At,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum TokenKind {
    /// A word without quotes: a keyword if it is [`reserved`], else a name.
    Word(String),
    /// A name in double quotes.
    Quoted(String),
    /// Text in single quotes.
    String(String),
    /// A number as it was written, without a sign.
    Number(String),
    /// `?`
    Parameter,
    /// An operator or a bracket.
    Sign(&'static str),
    /// After the last token.
    End,
}

/// Signs, longest first: `<<` is never two `<`.
const SIGNS: [&str; 27] = [
    "<<", ">>", "<>", "<=", ">=", "!=", "||", "(", ")", "[", "]", "{", "}", ",", ".", ":", ";",
    "=", "<", ">", "+", "-", "*", "/", "%", "@", "!",
];

/// All tokens of a statement, with [`TokenKind::End`] last.
pub(super) fn tokens(text: &str) -> Result<Vec<Token>> {
    let mut lexer = Lexer { rest: text, line: 1, column: 1 };
    let mut tokens = Vec::new();
    loop {
        lexer.skip_blank()?;
        let (line, column, before) = (lexer.line, lexer.column, lexer.rest);
        let kind = lexer.next()?;
        let taken = &before[..before.len() - lexer.rest.len()];
        let length = u32::try_from(taken.chars().count()).unwrap_or(u32::MAX);
        let end = kind == TokenKind::End;
        tokens.push(Token { kind, at: At { line, column, length } });
        if end {
            return Ok(tokens);
        }
    }
}

struct Lexer<'a> {
    rest: &'a str,
    line: u32,
    column: u32,
}

impl<'a> Lexer<'a> {
    fn skip_blank(&mut self) -> Result<()> {
        loop {
            if self.rest.starts_with("--") {
                let end = self.rest.find('\n').unwrap_or(self.rest.len());
                self.take(end);
            } else if self.rest.starts_with("/*") {
                let Some(end) = self.rest.find("*/") else { return Err(malformed("")) };
                self.take(end + 2);
            } else {
                match self.rest.chars().next() {
                    Some(c) if c.is_whitespace() => self.take(c.len_utf8()),
                    _ => return Ok(()),
                };
            }
        }
    }

    fn next(&mut self) -> Result<TokenKind> {
        let Some(first) = self.rest.chars().next() else { return Ok(TokenKind::End) };
        let digit_after_dot =
            first == '.' && self.rest[1..].starts_with(|c: char| c.is_ascii_digit());
        match first {
            '\'' => Ok(TokenKind::String(self.quoted('\'')?)),
            '"' => Ok(TokenKind::Quoted(self.quoted('"')?)),
            '?' => {
                self.take(1);
                Ok(TokenKind::Parameter)
            }
            c if c.is_ascii_digit() || digit_after_dot => self.number(),
            c if is_word_start(c) => {
                let end = self.rest.find(|c| !is_word(c)).unwrap_or(self.rest.len());
                Ok(TokenKind::Word(self.take(end).to_owned()))
            }
            _ => {
                let sign = SIGNS.iter().find(|sign| self.rest.starts_with(**sign));
                let Some(sign) = sign else { return Err(malformed("")) };
                self.take(sign.len());
                Ok(TokenKind::Sign(sign))
            }
        }
    }

    /// Text between quotes; a quote inside it is written twice.
    fn quoted(&mut self, quote: char) -> Result<String> {
        self.take(1);
        let mut text = String::new();
        loop {
            let Some(end) = self.rest.find(quote) else { return Err(malformed("")) };
            text.push_str(self.take(end));
            self.take(1);
            if !self.rest.starts_with(quote) {
                return Ok(text);
            }
            text.push(quote);
            self.take(1);
        }
    }

    fn number(&mut self) -> Result<TokenKind> {
        let text = self.rest.as_bytes();
        let digits = |from: usize| {
            text[from..].iter().position(|c| !c.is_ascii_digit()).map_or(text.len(), |n| from + n)
        };
        let mut end = digits(0);
        let mut decimals = 0;
        if text.get(end) == Some(&b'.') {
            let after = digits(end + 1);
            decimals = after - end - 1;
            end = after;
        }
        if matches!(text.get(end), Some(b'e' | b'E')) {
            let sign = usize::from(matches!(text.get(end + 1), Some(b'+' | b'-')));
            let after = digits(end + 1 + sign);
            // DynamoDB keeps a number as digits and a scale of 32 bits.
            let exponent: Option<i32> = self.rest[end + 1..after].parse().ok();
            let scale = exponent
                .and_then(|exponent| i32::try_from(decimals as i64 - i64::from(exponent)).ok());
            if scale.is_none() {
                return Err(malformed(""));
            }
            end = after;
        }
        if self.rest[end..].starts_with(is_word) {
            return Err(malformed(""));
        }
        Ok(TokenKind::Number(self.take(end).to_owned()))
    }

    fn take(&mut self, bytes: usize) -> &'a str {
        let (taken, rest) = self.rest.split_at(bytes);
        self.rest = rest;
        for c in taken.chars() {
            if c == '\n' {
                self.line += 1;
                self.column = 1;
            } else {
                self.column += 1;
            }
        }
        taken
    }
}

fn is_word_start(c: char) -> bool {
    c.is_ascii_alphabetic() || c == '_' || c == '$'
}

fn is_word(c: char) -> bool {
    is_word_start(c) || c.is_ascii_digit()
}

/// Whether a word is a keyword, which names nothing unless it is quoted.
pub(super) fn reserved(word: &str) -> bool {
    word.len() <= LONGEST_RESERVED
        && RESERVED.binary_search(&word.to_ascii_uppercase().as_str()).is_ok()
}

const LONGEST_RESERVED: usize = 17;

/// PartiQL's keywords: another list than the reserved words of DynamoDB's expressions. Sorted.
const RESERVED: [&str; 242] = [
    "ABSOLUTE",
    "ACTION",
    "ADD",
    "ALL",
    "ALLOCATE",
    "ALTER",
    "AND",
    "ANY",
    "ARE",
    "AS",
    "ASC",
    "ASSERTION",
    "AT",
    "AUTHORIZATION",
    "AVG",
    "BAG",
    "BEGIN",
    "BETWEEN",
    "BIT",
    "BIT_LENGTH",
    "BLOB",
    "BOOL",
    "BOOLEAN",
    "BY",
    "CASCADE",
    "CASCADED",
    "CASE",
    "CAST",
    "CATALOG",
    "CHAR",
    "CHARACTER",
    "CHARACTER_LENGTH",
    "CHAR_LENGTH",
    "CHECK",
    "CLOB",
    "CLOSE",
    "COALESCE",
    "COLLATE",
    "COLLATION",
    "COLUMN",
    "COMMIT",
    "CONFLICT",
    "CONNECT",
    "CONNECTION",
    "CONSTRAINT",
    "CONSTRAINTS",
    "CONTINUE",
    "CONVERT",
    "CORRESPONDING",
    "COUNT",
    "CREATE",
    "CROSS",
    "CURRENT",
    "CURRENT_DATE",
    "CURRENT_TIME",
    "CURRENT_TIMESTAMP",
    "CURRENT_USER",
    "CURSOR",
    "DATE",
    "DATE_ADD",
    "DATE_DIFF",
    "DEALLOCATE",
    "DEC",
    "DECIMAL",
    "DECLARE",
    "DEFAULT",
    "DEFERRABLE",
    "DEFERRED",
    "DELETE",
    "DESC",
    "DESCRIBE",
    "DESCRIPTOR",
    "DIAGNOSTICS",
    "DISCONNECT",
    "DISTINCT",
    "DO",
    "DOMAIN",
    "DOUBLE",
    "DROP",
    "ELSE",
    "END",
    "ESCAPE",
    "EXCEPT",
    "EXCEPTION",
    "EXEC",
    "EXECUTE",
    "EXISTS",
    "EXTERNAL",
    "EXTRACT",
    "FALSE",
    "FETCH",
    "FIRST",
    "FLOAT",
    "FOR",
    "FOREIGN",
    "FOUND",
    "FROM",
    "FULL",
    "GET",
    "GLOBAL",
    "GO",
    "GOTO",
    "GRANT",
    "GROUP",
    "HAVING",
    "IDENTITY",
    "IMMEDIATE",
    "IN",
    "INDEX",
    "INDICATOR",
    "INITIALLY",
    "INNER",
    "INPUT",
    "INSENSITIVE",
    "INSERT",
    "INT",
    "INTEGER",
    "INTERSECT",
    "INTERVAL",
    "INTO",
    "IS",
    "ISOLATION",
    "JOIN",
    "KEY",
    "LANGUAGE",
    "LAST",
    "LEFT",
    "LET",
    "LEVEL",
    "LIKE",
    "LIMIT",
    "LIST",
    "LOCAL",
    "LOWER",
    "MATCH",
    "MAX",
    "MIN",
    "MISSING",
    "MODIFIED",
    "MODULE",
    "NAMES",
    "NATIONAL",
    "NATURAL",
    "NCHAR",
    "NEW",
    "NEXT",
    "NO",
    "NOT",
    "NOTHING",
    "NULL",
    "NULLIF",
    "NUMERIC",
    "OCTET_LENGTH",
    "OF",
    "OLD",
    "ON",
    "ONLY",
    "OPEN",
    "OPTION",
    "OR",
    "ORDER",
    "OUTER",
    "OUTPUT",
    "OVERLAPS",
    "PAD",
    "PARTIAL",
    "PIVOT",
    "POSITION",
    "PRECISION",
    "PREPARE",
    "PRESERVE",
    "PRIMARY",
    "PRIOR",
    "PRIVILEGES",
    "PROCEDURE",
    "PUBLIC",
    "READ",
    "REAL",
    "REFERENCES",
    "RELATIVE",
    "REMOVE",
    "RESTRICT",
    "RETURNING",
    "REVOKE",
    "RIGHT",
    "ROLLBACK",
    "ROWS",
    "SCHEMA",
    "SCROLL",
    "SECTION",
    "SELECT",
    "SESSION",
    "SESSION_USER",
    "SET",
    "SEXP",
    "SIZE",
    "SMALLINT",
    "SOME",
    "SPACE",
    "SQL",
    "SQLCODE",
    "SQLERROR",
    "SQLSTATE",
    "STRING",
    "STRUCT",
    "SUBSTRING",
    "SUM",
    "SYMBOL",
    "SYSTEM_USER",
    "TABLE",
    "TEMPORARY",
    "THEN",
    "TIME",
    "TIMESTAMP",
    "TO",
    "TRANSACTION",
    "TRANSLATE",
    "TRANSLATION",
    "TRIM",
    "TRUE",
    "TUPLE",
    "UNION",
    "UNIQUE",
    "UNKNOWN",
    "UNPIVOT",
    "UPDATE",
    "UPPER",
    "USAGE",
    "USER",
    "USING",
    "VALUE",
    "VALUES",
    "VARCHAR",
    "VARYING",
    "VIEW",
    "WHEN",
    "WHENEVER",
    "WHERE",
    "WITH",
    "WORK",
    "WRITE",
    "ZONE",
];
