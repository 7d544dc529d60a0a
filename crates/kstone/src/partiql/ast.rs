//! The syntax tree of a statement. [`parse`](crate::partiql::parse) builds it, `Display` writes
//! it back as text that parses to the same tree.

/// Where a token stands: line and column from 1, and its length, in characters. DynamoDB's
/// messages end with it.
///
/// Two trees are equal when they say the same, wherever it stood: all places are equal.
#[derive(Debug, Clone, Copy, Default)]
pub struct At {
    /// The line.
    pub line: u32,
    /// The column of the first character.
    pub column: u32,
    /// How many characters.
    pub length: u32,
}

impl PartialEq for At {
    fn eq(&self, _: &At) -> bool {
        true
    }
}

impl Eq for At {}

impl std::fmt::Display for At {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}:{}", self.line, self.column, self.length)
    }
}

/// A statement with the number of its parameters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parsed {
    /// What it does.
    pub command: Command,
    /// How many `?` it has.
    pub parameters: usize,
}

/// What a statement does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Command {
    /// Reads items.
    Select(Select),
    /// Writes a new item.
    Insert(Insert),
    /// Changes an item.
    Update(Update),
    /// Deletes an item.
    Delete(Delete),
    /// In a transaction: checks that an item is there and meets a condition.
    Exists(Select),
}

/// A table, or one of its indexes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Source {
    /// The table's name.
    pub table: String,
    /// The index's name.
    pub index: Option<String>,
}

/// `SELECT … FROM … WHERE … ORDER BY …`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Select {
    /// What to return of each item; `None` is `*`.
    pub projection: Option<Vec<Expr>>,
    /// Where to read.
    pub source: Source,
    /// Which items.
    pub condition: Option<Expr>,
    /// In what order.
    pub order: Vec<Order>,
}

/// One term of an `ORDER BY`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Order {
    /// By what.
    pub by: Expr,
    /// From the greatest down.
    pub descending: bool,
}

/// `INSERT INTO … VALUE {…}`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Insert {
    /// The table's name.
    pub table: String,
    /// The item.
    pub item: Expr,
}

/// `UPDATE … SET … REMOVE … WHERE … RETURNING …`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Update {
    /// The table.
    pub source: Source,
    /// What to change, in order.
    pub changes: Vec<Change>,
    /// Which item, and what it must be like.
    pub condition: Option<Expr>,
    /// What to return.
    pub returning: Option<Returning>,
}

/// One change of an [`Update`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// `SET path = value`
    Set(Path, Expr),
    /// `REMOVE path`
    Remove(Path),
}

/// `DELETE FROM … WHERE … RETURNING …`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delete {
    /// The table.
    pub source: Source,
    /// Which item, and what it must be like.
    pub condition: Option<Expr>,
    /// What to return.
    pub returning: Option<Returning>,
}

/// `RETURNING ALL|MODIFIED OLD|NEW *`
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Returning {
    /// Only the attributes that changed.
    pub modified: bool,
    /// As the item was before.
    pub old: bool,
}

/// An attribute, or a part of one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Path {
    /// The attribute's name.
    pub root: String,
    /// The way into it.
    pub steps: Vec<Step>,
}

/// One step into a map or a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// `.name` or `['name']`
    Name(String),
    /// `[n]`
    Index(u32),
}

/// An expression with its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Expr {
    /// What it is.
    pub kind: ExprKind,
    /// The token that makes it what it is: an operator's sign, a function's name.
    pub at: At,
}

/// What an expression can be. The grammar is wider than what DynamoDB runs, because its answer to
/// the rest depends on where it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ExprKind {
    /// `null`
    Null,
    /// `MISSING`
    Missing,
    /// `true` or `false`
    Bool(bool),
    /// A number as it was written, without a sign.
    Number(String),
    /// `'text'`
    String(String),
    /// `?`, counted from 0.
    Parameter(usize),
    /// An attribute.
    Path(Path),
    /// `[a, b]` or `(a, b)`
    List(Vec<Expr>),
    /// `<<a, b>>`
    Set(Vec<Expr>),
    /// `{'a': b}`
    Map(Vec<(Expr, Expr)>),
    /// `name(a, b)`; the name is in lower case.
    Call(String, Vec<Expr>),
    /// `name(*)`
    CallAll(String),
    /// `a.*`
    Everything(Path),
    /// `a AND b AND …`: two or more.
    And(Vec<Expr>),
    /// `a OR b OR …`: two or more.
    Or(Vec<Expr>),
    /// `NOT a`
    Not(Box<Expr>),
    /// `-a`
    Negative(Box<Expr>),
    /// `+a`
    Positive(Box<Expr>),
    /// A comparison or a calculation.
    Binary(BinaryOp, Box<Expr>, Box<Expr>),
    /// `a BETWEEN b AND c`
    Between(Box<Expr>, Box<Expr>, Box<Expr>),
    /// `a IN [b, c]`; one or more.
    In(Box<Expr>, Vec<Expr>),
    /// `a IS type`, with the type's name from `TYPES`.
    Is(Box<Expr>, &'static str),
}

/// The operators between two expressions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BinaryOp {
    /// `=`
    Eq,
    /// `<>` or `!=`
    Ne,
    /// `<`
    Lt,
    /// `<=`
    Le,
    /// `>`
    Gt,
    /// `>=`
    Ge,
    /// `LIKE`
    Like,
    /// `||`
    Concat,
    /// `+`
    Add,
    /// `-`
    Sub,
    /// `*`
    Mul,
    /// `/`
    Div,
    /// `%`
    Mod,
}

impl BinaryOp {
    /// How it is written.
    pub fn sign(self) -> &'static str {
        match self {
            BinaryOp::Eq => "=",
            BinaryOp::Ne => "<>",
            BinaryOp::Lt => "<",
            BinaryOp::Le => "<=",
            BinaryOp::Gt => ">",
            BinaryOp::Ge => ">=",
            BinaryOp::Like => "like",
            BinaryOp::Concat => "||",
            BinaryOp::Add => "+",
            BinaryOp::Sub => "-",
            BinaryOp::Mul => "*",
            BinaryOp::Div => "/",
            BinaryOp::Mod => "%",
        }
    }

    /// Whether it compares two values.
    pub fn compares(self) -> bool {
        matches!(
            self,
            BinaryOp::Eq | BinaryOp::Ne | BinaryOp::Lt | BinaryOp::Le | BinaryOp::Gt | BinaryOp::Ge
        )
    }
}

/// Type names after `IS`: each way to write one, and the name that stands in the tree.
pub(super) const TYPES: [(&str, &str); 31] = [
    ("MISSING", "MISSING"),
    ("NULL", "NULL"),
    ("BOOL", "BOOLEAN"),
    ("BOOLEAN", "BOOLEAN"),
    ("BLOB", "BLOB"),
    ("STRING", "STRING"),
    ("NUMERIC", "NUMERIC"),
    ("STRUCT", "STRUCT"),
    ("TUPLE", "TUPLE"),
    ("LIST", "LIST"),
    ("BAG", "BAG"),
    ("SEXP", "SEXP"),
    ("SYMBOL", "SYMBOL"),
    ("CLOB", "CLOB"),
    ("INT", "INTEGER"),
    ("INT4", "INT4"),
    ("INT8", "INT8"),
    ("INTEGER", "INTEGER"),
    ("SMALLINT", "SMALLINT"),
    ("FLOAT", "FLOAT"),
    ("REAL", "REAL"),
    ("DOUBLE PRECISION", "DOUBLE PRECISION"),
    ("DEC", "DECIMAL"),
    ("DECIMAL", "DECIMAL"),
    ("CHAR", "CHARACTER"),
    ("CHARACTER", "CHARACTER"),
    ("CHARACTER VARYING", "CHARACTER VARYING"),
    ("VARCHAR", "CHARACTER VARYING"),
    ("TIMESTAMP", "TIMESTAMP"),
    ("DATE", "DATE"),
    ("TIME", "TIME"),
];
