//! Parsing statements and writing them back.

use proptest::prelude::*;

use crate::partiql::ast::*;
use crate::partiql::lexer::reserved;
use crate::partiql::parse;

/// Parses, and answers with the text that the tree is written as.
fn printed(text: &str) -> String {
    parse(text).map_or_else(|error| format!("refused: {error}"), |parsed| parsed.to_string())
}

fn refusal(text: &str) -> String {
    parse(text).expect_err(text).to_string()
}

fn malformed(text: &str) -> String {
    let message = refusal(text);
    let detail = message.strip_prefix("Statement wasn't well formed, can't be processed: ");
    detail.unwrap_or_else(|| panic!("{text}: {message}")).to_owned()
}

#[test]
fn a_select_is_read_in_all_its_clauses() {
    for (text, expected) in [
        ("select * from t", r#"SELECT * FROM "t""#),
        ("SELECT * FROM \"a-b\".\"i.x\";", r#"SELECT * FROM "a-b"."i.x""#),
        (
            "SELECT a, b.c[0]['d e'] FROM t.i WHERE a=1 ORDER BY a DESC, b",
            r#"SELECT "a", "b"."c"[0]."d e" FROM "t"."i" WHERE "a" = 1 ORDER BY "a" DESC, "b" ASC"#,
        ),
        (
            "SELECT * FROM t WHERE a IN (1, ?) AND b NOT IN ['x'] OR NOT c BETWEEN -1 AND .5e3",
            r#"SELECT * FROM "t" WHERE (("a" IN [1, ?]) AND (NOT ("b" IN ['x']))) OR (NOT ("c" BETWEEN (-1) AND .5e3))"#,
        ),
        (
            "SELECT * FROM t WHERE begins_with(\"a\", 'it''s') AND SIZE(b) != 2 AND c IS NOT MISSING",
            r#"SELECT * FROM "t" WHERE "begins_with"("a", 'it''s') AND ("size"("b") <> 2) AND (NOT ("c" IS MISSING))"#,
        ),
        (
            "SELECT * FROM t -- a note\nWHERE a /* another */ = <<'b', 'c'>> --",
            r#"SELECT * FROM "t" WHERE "a" = <<'b', 'c'>>"#,
        ),
        ("SELECT/**/* FROM t WHERE (a = true)", r#"SELECT * FROM "t" WHERE "a" = true"#),
    ] {
        assert_eq!(printed(text), expected, "{text}");
    }
}

#[test]
fn writes_are_read_in_all_their_clauses() {
    for (text, expected) in [
        (
            "insert into t value {'a': 1, 'b': [null, {'c': <<1>>}], 'd': ?}",
            r#"INSERT INTO "t" VALUE {'a': 1, 'b': [null, {'c': <<1>>}], 'd': ?}"#,
        ),
        (
            "UPDATE t SET a=a+1, b[2]=list_append(b, [?]) REMOVE c.d WHERE k='x' RETURNING ALL OLD *",
            r#"UPDATE "t" SET "a" = "a" + 1 SET "b"[2] = "list_append"("b", [?]) REMOVE "c"."d" WHERE "k" = 'x' RETURNING ALL OLD *"#,
        ),
        (
            "from t where k = 1 set a = 2 remove b returning modified new *",
            r#"UPDATE "t" SET "a" = 2 REMOVE "b" WHERE "k" = 1 RETURNING MODIFIED NEW *"#,
        ),
        ("DELETE FROM t WHERE k=n-1-2", r#"DELETE FROM "t" WHERE "k" = (("n" - 1) - 2)"#),
        (
            "EXISTS(SELECT * FROM t WHERE k = 1 AND a IS NULL)",
            r#"EXISTS(SELECT * FROM "t" WHERE ("k" = 1) AND ("a" IS NULL))"#,
        ),
    ] {
        assert_eq!(printed(text), expected, "{text}");
    }
}

#[test]
fn parameters_are_counted_in_the_order_they_stand() {
    let parsed = parse("UPDATE t SET a = ? WHERE b = ? AND c = '?' AND d IN [?, ?]").unwrap();
    assert_eq!(parsed.parameters, 4);
    let Command::Update(update) = parsed.command else { panic!("not an update") };
    assert!(
        matches!(&update.changes[0], Change::Set(_, value) if value.kind == ExprKind::Parameter(0))
    );
}

#[test]
fn a_statement_that_breaks_off_or_goes_on_is_refused_with_what_was_expected() {
    for (text, detail) in [
        ("SLECT * FROM t", "Expected data manipulation"),
        ("UPDATE a-b SET c=1", "Expected data manipulation"),
        ("SELECT * FROM", "Unexpected term"),
        ("SELECT * FROM t WHERE", "Unexpected term"),
        ("SELECT * FROM t WHERE;", "Unexpected term"),
        ("SELECT * FROM t WHERE NOT", "Unexpected term"),
        ("SELECT * FROM t WHERE (", "Unexpected term"),
        ("UPDATE t SET a = 1 WHERE", "Unexpected term"),
        ("SELECT * FROM t WHERE a = 1 AND", "Missing right-hand side expression of infix operator"),
        ("SELECT * FROM t WHERE a = 1 OR", "Missing right-hand side expression of infix operator"),
        ("SELECT * FROM t WHERE ORDER BY a", "Unexpected keyword"),
        ("SELECT * FROM t WHERE IS NULL", "Unexpected operator"),
        ("SELECT * FROM t WHERE a = LIKE", "Unexpected operator"),
        ("SELECT * FROM t WHERE a = 1 foo", "Unexpected token after expression"),
        ("SELECT * FROM t WHERE a = 1 e5", "Unexpected token after expression"),
        ("SELECT * FROM t WHERE a = 1)", "Unexpected token after expression"),
        ("SELECT * FROM t WHERE a = 1; SELECT * FROM t", "Unexpected token after expression"),
        ("SELECT * FROM t ORDER BY a WHERE a = 1", "Unexpected token after expression"),
        ("DELETE FROM t WHERE a = 1 ORDER BY a", "Unexpected token after expression"),
        ("INSERT INTO t VALUE {'a': 1} foo", "Unexpected token after expression"),
        ("INSERT INTO t x VALUE {'a': 1}", "Unexpected token after expression"),
        ("FROM t SET c = 1 WHERE a = 1", "Unexpected token after expression"),
        ("DELETE FROM", "Expected identifier for simple path"),
        ("DELETE FROM WHERE a = 1", "Expected identifier for simple path"),
        ("SELECT * FROM t WHERE a IS FOO", "Expected type name"),
        ("SELECT * FROM t WHERE m.inner = 1", "Invalid path dot component"),
        ("SELECT user FROM t", "Unexpected keyword"),
        ("SELECT * FROM t WHERE a = 1e2147483648", ""),
        ("SELECT * FROM t WHERE a = 1.5e-2147483647", ""),
        ("SELECT * FROM t WHERE a = 1 # note", ""),
        ("SELECT * FROM t WHERE a = 1 /* note", ""),
        ("SELECT * FROM t WHERE a = 'x", ""),
        ("SELECT * FROM \"t", ""),
        ("SELECT * FROM t WHERE a = 0x12", ""),
    ] {
        assert_eq!(malformed(text), detail, "{text}");
    }
}

#[test]
fn what_dynamodb_leaves_out_of_partiql_is_refused_in_its_words() {
    for (text, message) in [
        ("SELECT * FROM t x WHERE a = 1", "Aliasing is not supported"),
        ("SELECT * FROM t AS x", "Aliasing is not supported"),
        ("SELECT a AS b FROM t", "Aliasing is not supported"),
        ("UPDATE t x SET a = 1", "Aliasing is not supported"),
        ("DELETE FROM t x", "Aliasing is not supported"),
        ("SELECT * FROM t, u", "Only select from a single table or index is supported."),
        ("SELECT * FROM a.b.c", "A path may contain at most 2 components in the FROM clause"),
        ("SELECT * FROM a.\"\"", "Path component cannot be an empty string"),
        ("SELECT * FROM \"\"", "Path component cannot be an empty string"),
        ("SELECT * FROM 't'", "Unexpected from source"),
        ("SELECT a FROM t GROUP BY a", "Unsupported clause: GROUP BY"),
        ("SELECT a FROM t WHERE a=1 LIMIT 2", "Unsupported clause: LIMIT at 1:33:1"),
        (
            "SELECT l[-1] FROM t",
            "List index is not within the allowable range; index: [-1] at 1:11:1",
        ),
        ("SELECT l[1.5] FROM t", "Unexpected path component at 1:10:3"),
        ("CREATE TABLE t", "Unsupported operation: CreateTable"),
        (
            "INSERT INTO t VALUE {'a': 1} RETURNING ALL OLD *",
            "RETURNING is not supported in INSERT",
        ),
        (
            "INSERT INTO t.i VALUE {'a': 1}",
            "FROM clause may only contain a single table name in data manipulation statements",
        ),
        (
            "DELETE FROM t RETURNING ALL OLD a",
            "Expected '*' after ( MODIFIED | ALL ) ( NEW | OLD ) in RETURNING clause",
        ),
        (
            "SELECT * FROM t WHERE a IN ?",
            "IN operator must have a left hand argument of type Variable Reference and right hand argument of type Seq with at least one member",
        ),
    ] {
        assert_eq!(refusal(text), message, "{text}");
    }
}

#[test]
fn a_statement_has_1_to_8192_characters() {
    assert!(refusal("").ends_with("Member must have length greater than or equal to 1"));
    let text = |length: usize| {
        let start = "SELECT * FROM t WHERE a = '";
        format!("{start}{}'", "ä".repeat(length - start.len() - 1))
    };
    assert!(parse(&text(8192)).is_ok());
    assert!(refusal(&text(8193)).ends_with("Member must have length less than or equal to 8192"));
}

#[test]
fn deep_and_long_expressions_are_refused_before_they_can_hurt() {
    let start = "SELECT * FROM t WHERE ";
    for text in [
        format!("{start}{}a", "(".repeat(8000)),
        format!("{start}{}a", "NOT ".repeat(2000)),
        format!("{start}a = {}1", "- ".repeat(4000)),
        format!("{start}a = {}", "[".repeat(8000)),
        format!("{start}a{}", "[a".repeat(4000)),
    ] {
        assert_eq!(refusal(&text), "Nesting Levels have exceeded supported limits");
    }
    for sign in ["+", "*", "="] {
        let text = format!("{start}a{}", format!("{sign}1").repeat(4000));
        assert!(refusal(&text).starts_with("The expression contains too many operators"));
    }
    // These are lists in the tree, so their length costs no depth.
    assert!(parse(&format!("{start}a{}", " AND a".repeat(1000))).is_ok());
    assert!(parse(&format!("{start}a IN (1{})", ",1".repeat(4000))).is_ok());
}

fn name() -> impl Strategy<Value = String> {
    prop_oneof!["[a-z]{1,4}", "[ -~]{1,6}", Just("select".to_owned()), Just("ü\n\"'".to_owned())]
}

fn path() -> impl Strategy<Value = Path> {
    let step = prop_oneof![name().prop_map(Step::Name), any::<u32>().prop_map(Step::Index)];
    (name(), prop::collection::vec(step, 0..3)).prop_map(|(root, steps)| Path { root, steps })
}

fn expr() -> impl Strategy<Value = Expr> {
    let leaf = prop_oneof![
        Just(ExprKind::Null),
        Just(ExprKind::Missing),
        any::<bool>().prop_map(ExprKind::Bool),
        "(0|[1-9][0-9]{0,5})(\\.[0-9]{1,3})?([eE][+-]?[0-9]{1,3})?".prop_map(ExprKind::Number),
        "\\.[0-9]{1,3}".prop_map(ExprKind::Number),
        "(?s:.){0,8}".prop_map(ExprKind::String),
        path().prop_map(ExprKind::Path),
        path().prop_map(ExprKind::Everything),
        name().prop_map(|name| ExprKind::CallAll(name.to_ascii_lowercase())),
        Just(ExprKind::Parameter(0)),
    ];
    let leaf = leaf.prop_map(|kind| Expr { kind, at: At::default() });
    leaf.prop_recursive(5, 40, 4, |inner| {
        let boxed = || inner.clone().prop_map(Box::new);
        let several = |least: usize| prop::collection::vec(inner.clone(), least..4);
        let op = prop::sample::select(vec![
            BinaryOp::Eq,
            BinaryOp::Ne,
            BinaryOp::Lt,
            BinaryOp::Le,
            BinaryOp::Gt,
            BinaryOp::Ge,
            BinaryOp::Like,
            BinaryOp::Concat,
            BinaryOp::Add,
            BinaryOp::Sub,
            BinaryOp::Mul,
            BinaryOp::Div,
            BinaryOp::Mod,
        ]);
        let kind = prop::sample::select(TYPES.map(|(_, kind)| kind).to_vec());
        prop_oneof![
            several(0).prop_map(ExprKind::List),
            several(0).prop_map(ExprKind::Set),
            prop::collection::vec((inner.clone(), inner.clone()), 0..3).prop_map(ExprKind::Map),
            (name(), several(0))
                .prop_map(|(name, some)| ExprKind::Call(name.to_ascii_lowercase(), some)),
            several(2).prop_map(ExprKind::And),
            several(2).prop_map(ExprKind::Or),
            boxed().prop_map(ExprKind::Not),
            boxed().prop_map(ExprKind::Negative),
            boxed().prop_map(ExprKind::Positive),
            (op, boxed(), boxed()).prop_map(|(op, a, b)| ExprKind::Binary(op, a, b)),
            (boxed(), boxed(), boxed()).prop_map(|(a, b, c)| ExprKind::Between(a, b, c)),
            (boxed(), several(1)).prop_map(|(a, options)| ExprKind::In(a, options)),
            (boxed(), kind).prop_map(|(a, kind)| ExprKind::Is(a, kind)),
        ]
        .prop_map(|kind| Expr { kind, at: At::default() })
    })
}

fn source() -> impl Strategy<Value = Source> {
    (name(), prop::option::of(name())).prop_map(|(table, index)| Source { table, index })
}

fn command() -> impl Strategy<Value = Command> {
    let returning = || {
        prop::option::of((any::<bool>(), any::<bool>()))
            .prop_map(|some| some.map(|(modified, old)| Returning { modified, old }))
    };
    let condition = || prop::option::of(expr());
    let order = (expr(), any::<bool>()).prop_map(|(by, descending)| Order { by, descending });
    let select = (
        prop::option::of(prop::collection::vec(expr(), 1..3)),
        source(),
        condition(),
        prop::collection::vec(order, 0..3),
    )
        .prop_map(|(projection, source, condition, order)| Select {
            projection,
            source,
            condition,
            order,
        })
        .boxed();
    let change = prop_oneof![
        (path(), expr()).prop_map(|(path, value)| Change::Set(path, value)),
        path().prop_map(Change::Remove),
    ];
    prop_oneof![
        select.clone().prop_map(Command::Select),
        select.prop_map(Command::Exists),
        (name(), expr()).prop_map(|(table, item)| Command::Insert(Insert { table, item })),
        (source(), prop::collection::vec(change, 1..3), condition(), returning()).prop_map(
            |(source, changes, condition, returning)| {
                Command::Update(Update { source, changes, condition, returning })
            }
        ),
        (source(), condition(), returning()).prop_map(|(source, condition, returning)| {
            Command::Delete(Delete { source, condition, returning })
        }),
    ]
}

/// The same text with every `?` counted as the parser counts it.
fn renumbered(text: &str) -> Command {
    parse(text).unwrap_or_else(|error| panic!("{text}: {error}")).command
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn what_is_printed_parses_to_the_same_statement(command in command()) {
        // All parameters of a made-up tree have the number 0: compare the second printing.
        let text = command.to_string();
        let parsed = renumbered(&text);
        prop_assert_eq!(&parsed.to_string(), &text);
        prop_assert_eq!(&renumbered(&parsed.to_string()), &parsed);
        if !text.contains('?') {
            prop_assert_eq!(parsed, command);
        }
    }

    #[test]
    fn no_text_makes_the_parser_panic(text in "(SELECT|UPDATE t SET|INSERT INTO|FROM|WHERE|[a-z]+|'[^']*'|[0-9.e]+|[ -~]|<<|>>| |ü){0,40}") {
        let _ = parse(&text);
    }

    #[test]
    fn a_statement_with_one_character_changed_is_read_or_refused(
        command in command(), at in any::<prop::sample::Index>(), with in any::<char>(),
    ) {
        let mut text: Vec<char> = command.to_string().chars().collect();
        let at = at.index(text.len());
        text[at] = with;
        let _ = parse(&text.into_iter().collect::<String>());
    }
}

#[test]
fn keywords_are_known_in_any_case() {
    for word in ["select", "SELECT", "Key", "order", "zone", "current_timestamp"] {
        assert!(reserved(word), "{word}");
    }
    for word in ["data", "name", "status", "pk", "zones", "character_lengths"] {
        assert!(!reserved(word), "{word}");
    }
}
