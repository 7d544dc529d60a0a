//! The functions of expressions.

/// A function that an expression can call. Names are case-sensitive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Function {
    /// `attribute_exists(path)`
    AttributeExists,
    /// `attribute_not_exists(path)`
    AttributeNotExists,
    /// `attribute_type(path, :type)`
    AttributeType,
    /// `begins_with(path, prefix)`
    BeginsWith,
    /// `contains(path, operand)`
    Contains,
    /// `size(path)`: the only one of a condition that is an operand.
    Size,
    /// `if_not_exists(path, operand)`, in updates.
    IfNotExists,
    /// `list_append(list, list)`, in updates.
    ListAppend,
}

impl Function {
    /// All of them.
    pub const ALL: [Function; 8] = [
        Function::AttributeExists,
        Function::AttributeNotExists,
        Function::AttributeType,
        Function::BeginsWith,
        Function::Contains,
        Function::Size,
        Function::IfNotExists,
        Function::ListAppend,
    ];

    /// The function of this name.
    pub fn named(name: &str) -> Option<Function> {
        Function::ALL.into_iter().find(|function| function.name() == name)
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Function::AttributeExists => "attribute_exists",
            Function::AttributeNotExists => "attribute_not_exists",
            Function::AttributeType => "attribute_type",
            Function::BeginsWith => "begins_with",
            Function::Contains => "contains",
            Function::Size => "size",
            Function::IfNotExists => "if_not_exists",
            Function::ListAppend => "list_append",
        }
    }

    /// How many arguments it takes.
    pub fn arity(self) -> usize {
        match self {
            Function::AttributeExists | Function::AttributeNotExists | Function::Size => 1,
            Function::AttributeType
            | Function::BeginsWith
            | Function::Contains
            | Function::IfNotExists
            | Function::ListAppend => 2,
        }
    }

    /// Whether it belongs to updates; the others belong to conditions.
    pub(super) fn is_of_updates(self) -> bool {
        matches!(self, Function::IfNotExists | Function::ListAppend)
    }

    /// Whether what it gives can be the operand of an operator or of another function.
    pub(super) fn is_operand(self) -> bool {
        matches!(self, Function::Size | Function::IfNotExists)
    }
}
