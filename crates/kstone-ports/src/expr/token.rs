//! Cuts an expression into tokens, and words the syntax errors that name one.

use std::ops::Range;

/// What a token is. Letters in any case make a keyword, in every kind of expression.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TokenKind {
    Name,
    /// `#name`
    NamePlaceholder,
    /// `:value`
    ValuePlaceholder,
    /// `0`, or digits that do not begin with 0.
    Number,
    And,
    Or,
    Not,
    Between,
    In,
    Set,
    Remove,
    Add,
    Delete,
    Open,
    Close,
    OpenBracket,
    CloseBracket,
    Dot,
    Comma,
    Plus,
    Minus,
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    /// A character that no expression has.
    Unknown,
    /// After the last token.
    End,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Token {
    pub(super) kind: TokenKind,
    start: u16,
    end: u16,
}

impl Token {
    pub(super) fn start(self) -> usize {
        usize::from(self.start)
    }

    fn range(self) -> Range<usize> {
        usize::from(self.start)..usize::from(self.end)
    }
}

/// An expression as tokens. There is always a token to look at: the last one is
/// [`TokenKind::End`].
#[derive(Debug)]
pub(super) struct Tokens<'t> {
    text: &'t str,
    tokens: Vec<Token>,
    at: usize,
}

/// The longest expression of a request.
pub(super) const EXPRESSION_BYTES_MAX: usize = 4096;

/// The longest text at all: positions fit 16 bits. What a PartiQL statement of 8192 characters
/// stands for is longer than an expression may be, but not that long.
pub(super) const TEXT_BYTES_MAX: usize = u16::MAX as usize;

impl<'t> Tokens<'t> {
    /// `text` has at most [`TEXT_BYTES_MAX`] bytes.
    pub(super) fn new(text: &'t str) -> Self {
        debug_assert!(text.len() <= TEXT_BYTES_MAX);
        let mut tokens = Vec::with_capacity(text.len() / 3 + 2);
        let mut rest = text;
        loop {
            rest = rest.trim_start_matches([' ', '\t', '\r', '\n']);
            let start = text.len() - rest.len();
            let (kind, length) = first_token(rest);
            tokens.push(Token { kind, start: start as u16, end: (start + length) as u16 });
            if kind == TokenKind::End {
                return Tokens { text, tokens, at: 0 };
            }
            rest = &rest[length..];
        }
    }

    /// The token to be read next.
    pub(super) fn peek(&self) -> Token {
        self.tokens[self.at]
    }

    /// The token after the next one.
    pub(super) fn peek_second(&self) -> Token {
        self.tokens[(self.at + 1).min(self.tokens.len() - 1)]
    }

    /// Reads a token. The end stays where it is.
    pub(super) fn next(&mut self) -> Token {
        let token = self.peek();
        self.at = (self.at + 1).min(self.tokens.len() - 1);
        token
    }

    /// Reads the next token if it is of this kind.
    pub(super) fn take(&mut self, kind: TokenKind) -> Option<Token> {
        (self.peek().kind == kind).then(|| self.next())
    }

    /// Reads the next token, which must be of this kind.
    pub(super) fn expect(&mut self, kind: TokenKind) -> Result<Token, String> {
        self.take(kind).ok_or_else(|| self.syntax_error())
    }

    pub(super) fn text_of(&self, token: Token) -> &'t str {
        &self.text[token.range()]
    }

    /// What DynamoDB says of a next token that cannot be there: the token, and the text from the
    /// token before it to the one after it.
    pub(super) fn syntax_error(&self) -> String {
        let token = self.peek();
        let shown = if token.kind == TokenKind::End { "<EOF>" } else { self.text_of(token) };
        let start = self.at.checked_sub(1).map_or(0, |before| self.tokens[before].range().start);
        let end = match self.tokens.get(self.at + 1) {
            Some(after) if after.kind != TokenKind::End => after.range().end,
            _ => self.text.len(),
        };
        format!("Syntax error; token: \"{shown}\", near: \"{}\"", &self.text[start..end])
    }
}

/// The kind and the length of the token at the beginning of `rest`.
fn first_token(rest: &str) -> (TokenKind, usize) {
    let bytes = rest.as_bytes();
    let Some(&first) = bytes.first() else { return (TokenKind::End, 0) };
    let word = |from: usize| {
        let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
        from + bytes[from..].iter().take_while(|byte| is_part(byte)).count()
    };
    let followed_by = |second: u8| bytes.get(1) == Some(&second);
    match first {
        // A name has no `_` in front: DynamoDB stops at it.
        b'a'..=b'z' | b'A'..=b'Z' => {
            let length = word(1);
            (keyword(&rest[..length]), length)
        }
        b'#' if word(1) > 1 => (TokenKind::NamePlaceholder, word(1)),
        b':' if word(1) > 1 => (TokenKind::ValuePlaceholder, word(1)),
        b'0' => (TokenKind::Number, 1),
        b'1'..=b'9' => {
            (TokenKind::Number, bytes.iter().take_while(|byte| byte.is_ascii_digit()).count())
        }
        b'(' => (TokenKind::Open, 1),
        b')' => (TokenKind::Close, 1),
        b'[' => (TokenKind::OpenBracket, 1),
        b']' => (TokenKind::CloseBracket, 1),
        b'.' => (TokenKind::Dot, 1),
        b',' => (TokenKind::Comma, 1),
        b'+' => (TokenKind::Plus, 1),
        b'-' => (TokenKind::Minus, 1),
        b'=' => (TokenKind::Equal, 1),
        b'<' if followed_by(b'>') => (TokenKind::NotEqual, 2),
        b'<' if followed_by(b'=') => (TokenKind::LessOrEqual, 2),
        b'<' => (TokenKind::Less, 1),
        b'>' if followed_by(b'=') => (TokenKind::GreaterOrEqual, 2),
        b'>' => (TokenKind::Greater, 1),
        _ => (TokenKind::Unknown, rest.chars().next().map_or(1, char::len_utf8)),
    }
}

fn keyword(word: &str) -> TokenKind {
    const KEYWORDS: [(&str, TokenKind); 9] = [
        ("AND", TokenKind::And),
        ("OR", TokenKind::Or),
        ("NOT", TokenKind::Not),
        ("BETWEEN", TokenKind::Between),
        ("IN", TokenKind::In),
        ("SET", TokenKind::Set),
        ("REMOVE", TokenKind::Remove),
        ("ADD", TokenKind::Add),
        ("DELETE", TokenKind::Delete),
    ];
    KEYWORDS
        .iter()
        .find(|(keyword, _)| keyword.eq_ignore_ascii_case(word))
        .map_or(TokenKind::Name, |(_, kind)| *kind)
}
