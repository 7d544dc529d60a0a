//! What is refused, and in which words.

use kstone::Error;

use crate::partiql::{database, refusal, run};

#[test]
fn statements_that_do_not_make_sense_are_refused_in_dynamodbs_words() {
    let db = database();
    let incomplete = "Where clause does not contain a mandatory equality on all key attributes";
    let mismatch = "Key attribute's data type should match its data type in table's schema: Key ";
    for (text, message) in [
        ("UPDATE notes SET n=1 WHERE pk='a'", incomplete),
        ("UPDATE notes SET n=1", incomplete),
        ("UPDATE notes SET n=1 WHERE pk='a' AND sk>1", incomplete),
        ("UPDATE notes SET n=1 WHERE (pk='a' AND sk=1) OR n=1", incomplete),
        ("DELETE FROM notes WHERE pk='a'", incomplete),
        ("FROM users SET c=1", incomplete),
        (
            "UPDATE notes SET n=1 WHERE pk='a' AND sk=1 AND pk='b'",
            "Multiple conditions on same key pk. Only single item Update/Insert/Delete are supported",
        ),
        ("UPDATE notes SET n=1 WHERE pk=1 AND sk=1", &format!("{mismatch}pk")),
        ("SELECT * FROM notes WHERE pk=1", &format!("{mismatch}pk")),
        ("SELECT * FROM notes WHERE pk='a' AND sk='x'", &format!("{mismatch}sk")),
        ("SELECT * FROM notes WHERE pk='a' AND begins_with(sk, 'x')", &format!("{mismatch}sk")),
        (
            "UPDATE notes.\"by-g\" SET n=1 WHERE pk='a'",
            "This operation is not supported on an index",
        ),
        (
            "UPDATE notes SET sk=2 WHERE pk='a' AND sk=1",
            "One or more parameter values were invalid: Cannot update attribute sk. This attribute is part of the key",
        ),
        (
            "UPDATE notes SET n=nope WHERE pk='a' AND sk=1",
            "The provided expression refers to an attribute that does not exist in the item",
        ),
        (
            "UPDATE notes SET n=n*2 WHERE pk='a' AND sk=1",
            "Unsupported operator in Update Expression. Operator: *",
        ),
        ("UPDATE notes SET n=foo(n) WHERE pk='a' AND sk=1", "Unrecognized function: foo at 1:20:3"),
        (
            "UPDATE notes SET n=size(l) WHERE pk='a' AND sk=1",
            "The function is not allowed in an update expression; function: size",
        ),
        (
            "UPDATE notes SET t=set_add(ss, <<'x'>>) WHERE pk='a' AND sk=1",
            "The first argument to SET_ADD must equal the assignment value at 1:20:7",
        ),
        (
            "UPDATE notes SET ss=set_add(ss, 'x') WHERE pk='a' AND sk=1",
            "The second argument to SET_ADD must be a value with type SET at 1:29:2",
        ),
        (
            "UPDATE notes SET ss=set_add(ss) WHERE pk='a' AND sk=1",
            "SET_ADD must have exactly two arguments at 1:21:7",
        ),
        (
            "UPDATE notes SET n=set_add(n, <<1>>) WHERE pk='a' AND sk=1",
            "An operand in the update expression has an incorrect data type",
        ),
        (
            "DELETE FROM users WHERE pk='x' RETURNING MODIFIED OLD *",
            "Invalid returning clause: RETURNING MODIFIED OLD *. Only RETURNING ALL OLD * is allowed in DELETE statements.",
        ),
        ("SELECT m.x, x FROM notes", "Duplicate identifiers in select clause: x"),
        ("SELECT COUNT(*) FROM notes", "Unexpected path component at 1:8:5"),
        ("SELECT my-attr FROM notes", "Unexpected path component at 1:10:1"),
        ("SELECT m.* FROM notes", "Changing item's hierarchy while reading isn't supported"),
        (
            "SELECT * FROM notes WHERE n",
            "WHERE clause must contain an expression that resolves to a boolean",
        ),
        ("SELECT * FROM notes WHERE pk='a' AND g", "The arguments to AND/OR must be Expressions"),
        ("SELECT * FROM notes WHERE NOT n", "The argument to NOT must be a Type or Expression"),
        ("SELECT * FROM notes WHERE n = NOT ?", "The argument to NOT must be a Type or Expression"),
        ("SELECT * FROM notes WHERE n = MISSING", "MISSING must be compared using IS operator"),
        (
            "SELECT * FROM notes WHERE n + 1 = 11",
            "Unsupported operator in Condition Expression. Operator: +",
        ),
        (
            "SELECT * FROM notes WHERE n LIKE 'a%'",
            "Unsupported operator in Condition Expression. Operator: like",
        ),
        ("SELECT * FROM notes WHERE EXISTS(n)", "Unrecognized function: exists at 1:27:6"),
        (
            "SELECT * FROM notes WHERE attribute_exists('ss')",
            "Operator or function requires a document path; operator or function: attribute_exists",
        ),
        (
            "SELECT * FROM notes WHERE attribute_exists()",
            "Incorrect number of operands for operator or function; operator or function: attribute_exists, number of operands: 0",
        ),
        (
            "SELECT * FROM notes WHERE n < true",
            "Incorrect operand type for operator or function; operator or function: <, operand type: BOOL",
        ),
        (
            "SELECT * FROM notes WHERE pk=''",
            "One or more parameter values are not valid. The AttributeValue for a key attribute cannot contain an empty string value. Key: pk",
        ),
        (
            "SELECT * FROM notes WHERE pk.x='a'",
            "Key attributes must be scalars; list random access '[]' and map lookup '.' are not allowed: Key pk",
        ),
        // The statement's own mistakes come before that there is no such table.
        (
            "SELECT * FROM nowhere WHERE n < true",
            "Incorrect operand type for operator or function; operator or function: <, operand type: BOOL",
        ),
        (
            "EXISTS(SELECT * FROM notes WHERE pk='a' AND sk=1)",
            "EXISTS can only be used in ExecuteTransaction write requests.",
        ),
    ] {
        assert_eq!(refusal(&db, text), message, "{text}");
    }
    for text in ["SELECT * FROM nowhere WHERE pk='a'", "INSERT INTO nowhere VALUE {'pk': 'a'}"] {
        let result = run(&db, text);
        assert!(
            matches!(&result, Err(Error::NotFound(message)) if message == "Requested resource not found")
        );
    }
}

#[test]
fn a_select_names_50_partitions_at_most() {
    let db = database();
    let select = |partitions: usize| {
        let values: Vec<String> = (0..partitions).map(|n| format!("'{n}'")).collect();
        format!("SELECT * FROM notes WHERE pk IN [{}]", values.join(","))
    };
    assert!(run(&db, &select(50)).is_ok());
    let message = "Too many decomposed read operations for a given query.";
    assert_eq!(refusal(&db, &select(51)), message);
}
