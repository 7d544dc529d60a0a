//! Conditions and filters.

use serde_json::{Value as Json, json};

use crate::expressions::support::{assert_refused, encoded, filter, item};

fn values() -> Json {
    json!({
        ":s": {"S": "héllo😀"}, ":h": {"S": "hé"}, ":n": {"N": "10"}, ":n1": {"N": "1"},
        ":n5": {"N": "5"}, ":n7": {"N": "7"}, ":m": {"M": {"k": {"S": "v"}}},
        ":mx": {"M": {"x": {"N": "1.0"}}}, ":ss": {"SS": ["b", "a"]}, ":ssr": {"SS": ["a"]},
        ":b": {"B": "bc"}, ":b1": {"B": "ab"}, ":bo": {"BOOL": true}, ":nu": {"NULL": true},
        ":e": {"S": ""}, ":l": {"L": [{"S": "x"}]}, ":a": {"S": "a"}, ":x": {"S": "x"},
        ":M": {"S": "M"}, ":XX": {"S": "XX"}, ":ns": {"NS": ["1"]}, ":bs": {"BS": ["a"]},
    })
}

fn names() -> Json {
    json!({"#a": "a", "#s": "s", "#odd": "odd.name[0]"})
}

/// Whether the filter lets the sample item pass.
#[track_caller]
fn holds(text: &str) -> bool {
    let sample = item(&json!({
        "s": {"S": "héllo😀"}, "n": {"N": "10"}, "m": {"M": {"x": {"N": "1"}}},
        "l": {"L": [{"S": "x"}, {"N": "1"}, {"M": {"k": {"S": "v"}}}, {"SS": ["a", "b"]}]},
        "ss": {"SS": ["a", "b"]}, "ns": {"NS": ["1", "2"]}, "bs": {"BS": ["ab"]},
        "b": {"B": "abcd"}, "bo": {"BOOL": true}, "nu": {"NULL": true}, "es": {"S": ""},
        "odd.name[0]": {"S": "x"},
    }));
    let bound = filter(text, &names(), &values()).unwrap_or_else(|error| panic!("{text}: {error}"));
    bound.matches(Some(encoded(&sample).as_ref())).unwrap()
}

#[track_caller]
fn refused(text: &str, message: &str) {
    assert_refused(filter(text, &names(), &values()), "FilterExpression", message);
}

#[test]
fn conditions_hold_as_they_do_in_dynamodb() {
    for text in [
        "#s = :s",
        "s <> n",
        "s <> :n",
        "m = :mx",
        "ss = :ss",
        "bo = :bo",
        "nu = :nu",
        "bo <> :nu",
        "es = :e",
        "es < :s",
        "n >= :n",
        ":n1 < n",
        ":n = :n",
        "m.x = :n1",
        "l[0] = :x",
        "#odd = :x",
        "n between :n1 and :n",
        "n between :n and :n",
        "n in (:n1, :n)",
        "n in (s, :n)",
        "ss in (:ss)",
        "attribute_exists(nu)",
        "attribute_exists(l[3])",
        "attribute_not_exists(q)",
        "attribute_type(m, :M)",
        "attribute_type(:m, :M)",
        "begins_with(s, :h)",
        "begins_with(b, :b1)",
        "begins_with(s, :e)",
        "begins_with(:s, es)",
        "contains(s, :h)",
        "contains(s, :e)",
        "contains(ss, :a)",
        "contains(ns, :n1)",
        "contains(bs, :b1)",
        "contains(b, :b)",
        "contains(l, :x)",
        "contains(l, :n1)",
        "contains(l, :m)",
        "contains(l, :ss)",
        "size(b) < :n5",
        "size(es) < :n1",
        "size(m) = :n1",
        "size(s) > size(ss)",
        "n = :n and (s = :a or not bo = :nu)",
        "s = :a or n = :n and bo = :bo",
        "not s = :a and n = :n",
    ] {
        assert!(holds(text), "{text}");
    }
    for text in [
        "m <> :mx",
        "ss <> :ss",
        "ss = :ssr",
        "l = :l",
        "n < :s",
        "n > :s",
        "bo < nu",
        "l[9] = :x",
        "l[0].a = :x",
        "m[0] = :x",
        "s.x = :x",
        "n between s and :n",
        "attribute_exists(l[4])",
        "attribute_exists(m.y)",
        "begins_with(s, :b)",
        "begins_with(n, :h)",
        "contains(s, :n)",
        "contains(ss, :e)",
        "contains(ns, :a)",
        "contains(bs, :b)",
        "contains(m, :x)",
        "contains(n, :n1)",
        "contains(ss, :ssr)",
        "size(nu) = :n1",
        "not (n = :n and bo = :bo)",
        "s = :s and (n = :n1 or bo = :nu)",
    ] {
        assert!(!holds(text), "{text}");
    }
}

#[test]
fn what_is_missing_differs_from_everything_and_has_no_order() {
    for text in ["q <> :s", "q <> z", "not q = :s", "size(q) <> :n1", "size(n) <> :n1"] {
        assert!(holds(text), "{text}");
    }
    for text in [
        "q = :s",
        "q = z",
        "size(q) = :n1",
        "q < :n",
        "n between q and :n",
        "n in (q)",
        "q in (z)",
        "contains(q, :x)",
        "begins_with(q, :h)",
        "attribute_type(q, :M)",
    ] {
        assert!(!holds(text), "{text}");
    }
}

#[test]
fn without_an_item_a_condition_sees_no_attributes() {
    let absent = filter("attribute_not_exists(pk)", &json!({}), &json!({})).unwrap();
    assert!(absent.matches(None).unwrap());
    let present = filter("attribute_exists(pk)", &json!({}), &json!({})).unwrap();
    assert!(!present.matches(None).unwrap());
}

#[test]
fn operands_of_the_wrong_type_are_refused() {
    let wrong = |operator: &str, type_name: &str| {
        format!(
            "Incorrect operand type for operator or function; operator or function: {operator}, \
             operand type: {type_name}"
        )
    };
    for (placeholder, type_name) in [
        (":bo", "BOOL"),
        (":nu", "NULL"),
        (":l", "L"),
        (":m", "M"),
        (":ss", "SS"),
        (":ns", "NS"),
        (":bs", "BS"),
    ] {
        for operator in ["<", "<=", ">", ">="] {
            refused(&format!("a {operator} {placeholder}"), &wrong(operator, type_name));
        }
        refused(&format!("a between {placeholder} and :n"), &wrong("BETWEEN", type_name));
        refused(&format!("begins_with(a, {placeholder})"), &wrong("begins_with", type_name));
        refused(&format!("attribute_type(a, {placeholder})"), &wrong("attribute_type", type_name));
    }
    refused("begins_with(:n, a)", &wrong("begins_with", "N"));
    refused("begins_with(a, size(a))", &wrong("begins_with", "N"));
    refused("size(:n) = :n", &wrong("size", "N"));
    refused("size(size(a)) > :n", &wrong("size", "N"));
    refused("attribute_not_exists(size(:n))", &wrong("size", "N"));
    refused("size(:bo) > a", &wrong("size", "BOOL"));
    refused("attribute_type(a, b)", &wrong("attribute_type", "{NS,SS,L,BS,N,M,B,BOOL,NULL,S}"));
    refused(
        "attribute_type(a, :XX)",
        "Invalid attribute type name found; type: XX, valid types: \
         {B,NULL,SS,BOOL,L,BS,N,NS,S,M}",
    );
}

#[test]
fn between_wants_bounds_of_one_type_in_order() {
    refused(
        "a between :n5 and :n1",
        "The BETWEEN operator requires upper bound to be greater than or equal to lower bound; \
         lower bound operand: AttributeValue: {N:5}, upper bound operand: AttributeValue: {N:1}",
    );
    refused(
        "a between :n and :a",
        "The BETWEEN operator requires same data type for lower and upper bounds; lower bound \
         operand: AttributeValue: {N:10}, upper bound operand: AttributeValue: {S:a}",
    );
    filter("a between :a and b", &names(), &values()).unwrap();
    filter("a between size(b) and :a", &names(), &values()).unwrap();
}

#[test]
fn the_first_operand_must_be_distinct_from_the_others() {
    for (text, operator, path) in [
        ("a = a", "=", "[a]"),
        ("#a <> a", "<>", "[a]"),
        ("((a=a) OR (a=a))", "=", "[a]"),
        ("a in (b, a)", "IN", "[a]"),
        ("a between :n and a", "BETWEEN", "[a]"),
        ("contains(ab.bc[1].a, ab.bc[1].#a)", "contains", "[ab, bc, [1], a]"),
        ("attribute_type(a, a)", "attribute_type", "[a]"),
    ] {
        refused(
            text,
            &format!(
                "The first operand must be distinct from the remaining operands for this operator \
                 or function; operator: {operator}, first operand: {path}"
            ),
        );
    }
    for text in ["size(a) = size(a)", "a between b and b", "a.b = a", ":a = :a"] {
        filter(text, &names(), &values()).unwrap();
    }
}

#[test]
fn functions_check_the_number_of_their_operands_and_want_paths() {
    for (text, function, count) in [
        ("attribute_exists(things, a) and a=b", "attribute_exists", 2),
        ("attribute_type(things)", "attribute_type", 1),
        ("begins_with(things, size(a), b)", "begins_with", 3),
        ("contains(things)", "contains", 1),
        ("size(things, a) > b", "size", 2),
    ] {
        refused(
            text,
            &format!(
                "Incorrect number of operands for operator or function; operator or function: \
                 {function}, number of operands: {count}"
            ),
        );
    }
    for (text, function) in [
        ("attribute_exists(:a) and a=a", "attribute_exists"),
        ("attribute_not_exists(size(:a))", "attribute_not_exists"),
    ] {
        let message = format!(
            "Operator or function requires a document path; operator or function: {function}"
        );
        refused(text, &message);
    }
}

#[test]
fn limits_on_operators_operands_and_nesting_are_told_with_their_counts() {
    let many = |count: usize| vec!["a = :a"; count].join(" and ");
    filter(&many(150), &names(), &values()).unwrap();
    refused(&many(151), "The expression contains too many operators; operator count: 301");
    filter(&format!("{}a = b", "not ".repeat(299)), &names(), &values()).unwrap();
    refused(
        &format!("{}a = b", "not ".repeat(300)),
        "The expression contains too many operators; operator count: 301",
    );
    let list = |count: usize| format!("a in ({})", vec![":a"; count].join(","));
    filter(&list(100), &names(), &values()).unwrap();
    refused(
        &list(101),
        "The IN operator is provided with too many operands; number of operands: 101",
    );
    let deep = |steps: usize| format!("a{} = b", ".x".repeat(steps - 1));
    filter(&deep(32), &names(), &values()).unwrap();
    refused(&deep(33), "The document path has too many nesting levels; nesting levels: 33");
}

#[test]
fn a_condition_tells_which_attributes_it_looks_at() {
    let bound = filter("#s = b.c and size(d[0]) > e", &names(), &values()).unwrap();
    assert_eq!(bound.top_level_names().collect::<Vec<_>>(), ["s", "b", "d", "e"]);
    let nested: Vec<&str> =
        bound.paths().filter(|path| path.is_nested()).map(|path| path.attribute_name()).collect();
    assert_eq!(nested, ["b", "d"]);
}

#[test]
fn a_condition_with_many_paths_finds_the_same_as_one_with_few() {
    for (part, expected) in [
        ("n = :n AND m.x = :n1 AND l[0] = :x", true),
        ("n = :n AND attribute_not_exists(zz) AND attribute_not_exists(a)", true),
        ("n = :n AND m.x = :n5 AND l[0] = :x", false),
        ("#odd = :x AND size(l) > :n1 AND attribute_exists(ss)", true),
    ] {
        assert_eq!(holds(part), expected, "{part}");
        assert_eq!(holds(&[part; 9].join(" AND ")), expected, "nine times {part}");
    }
}

#[test]
fn contains_looks_for_bytes_inside_bytes() {
    for (whole, part, expected) in [
        ("abcd", "bc", true),
        ("abcd", "abcd", true),
        ("abcd", "", true),
        ("abcd", "bd", false),
        ("aab", "ab", true),
        ("ab", "abc", false),
    ] {
        let bound = filter("contains(b, :p)", &json!({}), &json!({":p": {"B": part}})).unwrap();
        let item = item(&json!({"b": {"B": whole}}));
        let found = bound.matches(Some(encoded(&item).as_ref())).unwrap();
        assert_eq!(found, expected, "{part} in {whole}");
    }
}
