//! The messages are what DynamoDB answers to these texts.

use crate::expr::{
    parse_condition as condition, parse_projection as projection, parse_update as update,
};

fn syntax(token: &str, near: &str) -> String {
    format!("Syntax error; token: \"{token}\", near: \"{near}\"")
}

#[track_caller]
fn check<T: std::fmt::Debug>(
    parse: fn(&str) -> Result<T, String>,
    text: &str,
    expected: Result<(), String>,
) {
    let parsed = parse(text);
    assert_eq!(parsed.as_ref().map(|_| ()).map_err(Clone::clone), expected, "{text}: {parsed:?}");
}

#[test]
fn a_syntax_error_of_a_condition_names_the_token_and_its_neighbours() {
    for (text, token, near) in [
        ("things are not gonna be ok", "are", "things are not"),
        ("a > 4", "4", "> 4"),
        ("attribute_exists(Pictures-RearView)", "-", "Pictures-RearView"),
        ("attribute_exists(\"Pictures.RearView\")", "\"", "(\"Pictures"),
        ("attribute_exists(Pictures..RearView)", ".", "..RearView"),
        ("attribute_exists(Pi#ctures.RearView)", "#ctures", "Pi#ctures."),
        ("attribute_exists(asdf[a])", "a", "[a]"),
        ("a in b, c", "b", "in b,"),
        ("a > between", "between", "> between"),
        ("a in (b,c,)", ")", ",)"),
        ("a in ()", ")", "()"),
        ("(a)between(b.(c.d))and(c)", "(", ".(c"),
        ("(a)between(b.c.d)and((c)", "<EOF>", ")"),
        ("#$.b > a", "#", "#$"),
        ("a > :things.stuff", ".", ":things.stuff"),
        ("b[:a] > a", ":a", "[:a]"),
        ("ü > a", "ü", "ü >"),
        ("(a)between(b.c[4.5].#d)and(:a)", ".", "4.5"),
        ("size(a).b > a", ".", ").b"),
        ("(size(a)).b > a", ".", ").b"),
        ("((a.b)).c = d", ".", ").c"),
        ("a =", "<EOF>", "="),
        ("a", "<EOF>", "a"),
        ("a = b and", "<EOF>", "and"),
        ("a = b)", ")", "b)"),
        ("(a = b", "<EOF>", "b"),
        ("a == b", "=", "== b"),
        ("a = = b", "=", "= = b"),
        ("a b c d", "b", "a b c"),
        ("not", "<EOF>", "not"),
        ("not a", "<EOF>", "a"),
        ("a or b", "or", "a or b"),
        ("(a) and b = c", "and", ") and b"),
        ("(a = b) = c", "=", ") = c"),
        ("a = (b = c)", "=", "b = c"),
        ("size((a = b)) = c", "=", "a = b"),
        ("   ", "<EOF>", "   "),
        ("a !! b", "!", "a !!"),
        ("a = :", ":", "= :"),
        ("a[01] = b", "1", "01]"),
        ("1a = b", "1", "1a"),
        ("a = -1", "-", "= -1"),
        ("foo() = a", ")", "() ="),
        ("a between b or c", "or", "b or c"),
        ("a.b.", "<EOF>", "."),
        ("a] = b", "]", "a] ="),
        ("AND = b", "AND", "AND ="),
        ("remove=b", "remove", "remove="),
        ("a.and = b", "and", ".and ="),
        ("a b ", "b", "a b "),
        (" = a", "=", " = a"),
        ("  a b", "b", "a b"),
    ] {
        check(condition, text, Err(syntax(token, near)));
    }
}

#[test]
fn a_syntax_error_of_an_update_names_the_token_and_its_neighbours() {
    for (text, token, near) in [
        ("INVALID SYNTAX HERE", "INVALID", "INVALID SYNTAX"),
        ("set a", "<EOF>", "a"),
        ("set a=set", "set", "=set"),
        ("remove a = b", "=", "a = b"),
        ("delete a if_not_exist(b)", "if_not_exist", "a if_not_exist("),
        ("add abort b", "b", "abort b"),
        ("set :a = b", ":a", "set :a ="),
        ("set a = b * c", "*", "b * c"),
        ("SET a = if_not_exist(a, 100)", "100", ", 100)"),
        ("SET if_not_exist(a, b) = a", "(", "if_not_exist(a"),
        ("set (a = (b + c))", "(", "set (a"),
        ("set a = (b.c).d + e", ".", ").d"),
        ("set a = b + c + d", "+", "c + d"),
        ("set a = :v + (b + c)", "+", "b + c"),
        ("set a = list_append(a+b, c)", "+", "a+b"),
        ("set a = b, ", "<EOF>", ", "),
        ("set a = b , remove c", "remove", ", remove c"),
        ("set a = b remove", "<EOF>", "remove"),
        ("remove a,,b", ",", ",,b"),
        ("add a (:v)", "(", "a (:v"),
        ("set a=:b:c", ":c", ":b:c"),
        ("set a = b remove c remove d e", "e", "d e"),
    ] {
        check(update, text, Err(syntax(token, near)));
    }
}

#[test]
fn a_syntax_error_of_a_projection_names_the_token_and_its_neighbours() {
    for (text, token, near) in [
        ("!!!", "!", "!!"),
        ("a,", "<EOF>", ","),
        ("a,b c d", "c", "b c d"),
        ("a[0", "<EOF>", "0"),
        ("(a)", "(", "(a"),
        ("a[0]b", "b", "]b"),
        ("a.1", "1", ".1"),
        (":a", ":a", ":a"),
        ("size(a)", "(", "size(a"),
        ("a, SET", "SET", ", SET"),
    ] {
        check(projection, text, Err(syntax(token, near)));
    }
}

#[test]
fn parentheses_are_redundant_only_directly_inside_others() {
    for text in [
        "((a = b) and c = d)",
        "(a) = b",
        "((a)=(b))",
        "(a = b and (c = d))",
        "not (a = b)",
        "(not (a = b))",
        "a in ((b))",
        "attribute_exists((a))",
        "(attribute_exists(a))",
        "not not a = b",
        "a . b [ 0 ] = c",
    ] {
        check(condition, text, Ok(()));
    }
    for text in [
        "((a = b))",
        "(a = b) and ((c = d))",
        "((a)) = b",
        "not ((a = b))",
        "((not (a = b)))",
        "a between ((b)) and c",
        "a in (((b)), c)",
        "attribute_exists(((a)))",
        "((attribute_exists(a)))",
        "status = b and ((foo(c)))",
    ] {
        let redundant = "The expression has redundant parentheses;";
        check(condition, text, Err(redundant.to_owned()));
    }
    check(update, "set a = ((b.c.d)+(e))", Ok(()));
    for text in ["set a = ((b))", "set a = (((b) - (c)))", "set a = list_append((a),((b)))"] {
        check(update, text, Err("The expression has redundant parentheses;".to_owned()));
    }
}

#[test]
fn of_several_complaints_the_first_in_the_text_is_told() {
    let unknown = |name| format!("Invalid function name; function: {name}");
    let reserved = |name| format!("Attribute name is a reserved keyword; reserved keyword: {name}");
    let misused = |name| {
        format!(
            "The function is not allowed to be used this way in an expression; function: {name}"
        )
    };
    for (text, message) in [
        ("foo(status)", unknown("foo")),
        ("attRIbute_exIsts((views), #a)", unknown("attRIbute_exIsts")),
        ("status = foo(a)", reserved("status")),
        (":a < abOrT", reserved("abOrT")),
        ("a.b.status = c", reserved("status")),
        ("size(status)", misused("size")),
        ("a = attribute_exists(status)", misused("attribute_exists")),
        ("attribute_exists(status) = foo(b)", misused("attribute_exists")),
        ("size(contains(a, b)) > a", misused("contains")),
        ("a in (b, attribute_exists(things))", misused("attribute_exists")),
        ("size(a) and a = b", misused("size")),
        (
            "if_not_exists(a,status)=b",
            "The function is not allowed in a condition expression; function: if_not_exists"
                .to_owned(),
        ),
        (
            "a[2147483648].status = b",
            "List index is not within the allowable range; index: [2147483648]".to_owned(),
        ),
    ] {
        check(condition, text, Err(message));
    }
    for (text, message) in [
        ("set #c = :c set abOrt = a", reserved("abOrt")),
        ("set #c = if_not_exist(:c) set c = d", unknown("if_not_exist")),
        ("set a = list_append(a,b) + c", misused("list_append")),
        ("set a = if_not_exists(a,list_append(b,c))", misused("list_append")),
        (
            "set a=size(status)",
            "The function is not allowed in an update expression; function: size".to_owned(),
        ),
        (
            "remove #d set a = b remove e",
            "The \"REMOVE\" section can only be used once in an update expression;".to_owned(),
        ),
    ] {
        check(update, text, Err(message));
    }
    check(projection, "a, b.Name", Err(reserved("Name")));
    check(condition, "a[2147483647] = b", Ok(()));
}

#[test]
fn an_expression_has_at_most_4096_bytes_and_at_least_one() {
    let long = format!("a = {}", "b".repeat(4092));
    check(condition, &long, Ok(()));
    let message = "Expression size has exceeded the maximum allowed size; expression size: 4097";
    check(condition, &format!("{long}b"), Err(message.to_owned()));
    let empty = "The expression can not be empty;";
    check(condition, "", Err(empty.to_owned()));
    check(update, "", Err(empty.to_owned()));
    check(projection, "", Err(empty.to_owned()));
}

#[test]
fn nesting_that_could_exhaust_the_stack_is_refused() {
    let parentheses = |count: usize| format!("{}a = b{}", "(".repeat(count), ")".repeat(count));
    let redundant = "The expression has redundant parentheses;";
    check(condition, &parentheses(250), Err(redundant.to_owned()));
    check(condition, &parentheses(2000), Err(redundant.to_owned()));
    let calls = format!("{}a{} = b", "size(".repeat(600), ")".repeat(600));
    check(condition, &calls, Err(super::too_many_operators(301)));
    let deep = format!("{}a = b{}", "(".repeat(290), " and c = d)".repeat(290));
    check(condition, &deep, Ok(()));
    check(condition, &format!("{}a = b", "not ".repeat(1000)), Ok(()));
}

#[test]
fn a_name_does_not_begin_with_an_underscore() {
    let stops = |near: &str| Err(format!("Syntax error; token: \"_\", near: \"{near}\""));
    check(condition, "_a = :y", stops("_a"));
    check(condition, "a = _b", stops("= _b"));
    check(projection, "a._b", stops("._b"));
    check(update, "SET _ = :y", stops("SET _ ="));
    check(condition, "a_b_ = #_c", Ok(()));
}
