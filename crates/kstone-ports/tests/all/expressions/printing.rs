//! Trees print as text that parses to the same tree, and nothing that is asked of any item panics.

use kstone_ports::expr::ast::{
    Action, Call, Comparator, Condition, Operand, Path, Projection, Segment, SetValue, Update,
};
use kstone_ports::expr::{
    Binder, ExpressionCache, Function, Kind, parse_condition, parse_projection, parse_update,
};
use kstone_ports::items::Placeholders;
use kstone_ports::value::{Item, ItemBytes, Value};
use proptest::collection::vec;
use proptest::prelude::*;

fn name() -> impl Strategy<Value = String> {
    // Short, so that trees meet in the items; none is reserved.
    prop_oneof![Just("a"), Just("b"), Just("c1"), Just("x_")].prop_map(str::to_owned)
}

fn path() -> impl Strategy<Value = Path> {
    let named = prop_oneof![
        3 => name().prop_map(Segment::Name),
        1 => name().prop_map(|name| Segment::Placeholder(format!("#{name}"))),
    ];
    let step = prop_oneof![named.clone(), (0_u32..4).prop_map(Segment::Index)];
    (named, vec(step, 0..3))
        .prop_map(|(first, rest)| Path { segments: std::iter::once(first).chain(rest).collect() })
}

fn value_key() -> impl Strategy<Value = String> {
    prop_oneof![Just(":s"), Just(":n"), Just(":l"), Just(":ss")].prop_map(str::to_owned)
}

fn plain_operand() -> impl Strategy<Value = Operand> {
    prop_oneof![path().prop_map(Operand::Path), value_key().prop_map(Operand::Value)]
}

fn operand() -> impl Strategy<Value = Operand> {
    let size = path().prop_map(|path| {
        let arguments = vec![Operand::Path(path)];
        Operand::Call(Call { function: Function::Size, arguments })
    });
    prop_oneof![4 => plain_operand(), 1 => size]
}

fn comparator() -> impl Strategy<Value = Comparator> {
    prop_oneof![
        Just(Comparator::Equal),
        Just(Comparator::NotEqual),
        Just(Comparator::Less),
        Just(Comparator::LessOrEqual),
        Just(Comparator::Greater),
        Just(Comparator::GreaterOrEqual),
    ]
}

fn condition() -> impl Strategy<Value = Condition> {
    let function = prop_oneof![
        Just(Function::AttributeExists),
        Just(Function::AttributeNotExists),
        Just(Function::AttributeType),
        Just(Function::BeginsWith),
        Just(Function::Contains),
    ];
    let call = (function, vec(operand(), 1..4))
        .prop_map(|(function, arguments)| Condition::Call(Call { function, arguments }));
    let leaf = prop_oneof![
        (comparator(), operand(), operand())
            .prop_map(|(comparator, left, right)| Condition::Compare(comparator, left, right)),
        (operand(), operand(), operand())
            .prop_map(|(value, low, high)| Condition::Between(value, low, high)),
        (operand(), vec(operand(), 1..4)).prop_map(|(value, list)| Condition::In(value, list)),
        call,
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            vec(inner.clone(), 2..4).prop_map(Condition::And),
            vec(inner.clone(), 2..4).prop_map(Condition::Or),
            inner.prop_map(|inner| Condition::Not(Box::new(inner))),
        ]
    })
}

fn set_value() -> impl Strategy<Value = SetValue> {
    let if_not_exists = (path(), plain_operand()).prop_map(|(path, otherwise)| {
        let arguments = vec![Operand::Path(path), otherwise];
        Operand::Call(Call { function: Function::IfNotExists, arguments })
    });
    let inner = prop_oneof![plain_operand(), if_not_exists];
    let list_append = (inner.clone(), inner.clone()).prop_map(|(first, second)| {
        let arguments = vec![first, second];
        Operand::Call(Call { function: Function::ListAppend, arguments })
    });
    prop_oneof![
        prop_oneof![inner.clone(), list_append].prop_map(SetValue::Operand),
        (inner.clone(), inner.clone()).prop_map(|(left, right)| SetValue::Sum(left, right)),
        (inner.clone(), inner).prop_map(|(left, right)| SetValue::Difference(left, right)),
    ]
}

fn update() -> impl Strategy<Value = Update> {
    let sets = vec((path(), set_value()).prop_map(|(path, value)| Action::Set(path, value)), 0..3);
    let removes = vec(path().prop_map(Action::Remove), 0..3);
    let adds = vec((path(), value_key()).prop_map(|(path, key)| Action::Add(path, key)), 0..3);
    let deletes =
        vec((path(), value_key()).prop_map(|(path, key)| Action::Delete(path, key)), 0..3);
    (sets, removes, adds, deletes, 0_usize..4)
        .prop_map(|(sets, removes, adds, deletes, first)| {
            let mut sections = [sets, removes, adds, deletes];
            sections.rotate_left(first);
            Update { actions: sections.into_iter().flatten().collect() }
        })
        .prop_filter("an update has an action", |update| !update.actions.is_empty())
}

fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        prop_oneof![Just(""), Just("a"), Just("ab"), Just("S")].prop_map(Value::from),
        (-3_i64..4).prop_map(Value::from),
        any::<bool>().prop_map(Value::from),
        Just(Value::Null),
        Just(Value::B(bytes::Bytes::from_static(b"ab"))),
        Just(Value::string_set(vec!["a".to_owned(), "b".to_owned()]).unwrap()),
    ];
    leaf.prop_recursive(3, 12, 4, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(Value::L),
            vec((name(), inner), 0..4)
                .prop_map(|entries| Value::M(entries.into_iter().collect::<Item>())),
        ]
    })
}

fn any_item() -> impl Strategy<Value = Item> {
    vec((name(), any_value()), 0..4).prop_map(|entries| entries.into_iter().collect())
}

fn placeholders(values: &[Value]) -> Placeholders {
    let names = ["a", "b", "c1", "x_"].map(|name| (format!("#{name}"), name.to_owned()));
    let keys = [":s", ":n", ":l", ":ss"].map(str::to_owned);
    Placeholders {
        names: Some(names.into()),
        values: Some(keys.into_iter().zip(values.iter().cloned()).collect()),
    }
}

proptest! {
    #[test]
    fn a_printed_condition_parses_to_the_same_tree(tree in condition()) {
        prop_assert_eq!(parse_condition(&tree.to_string()), Ok(tree));
    }

    #[test]
    fn a_printed_update_parses_to_the_same_tree(tree in update()) {
        prop_assert_eq!(parse_update(&tree.to_string()), Ok(tree));
    }

    #[test]
    fn a_printed_projection_parses_to_the_same_tree(paths in vec(path(), 1..5)) {
        let tree = Projection { paths };
        prop_assert_eq!(parse_projection(&tree.to_string()), Ok(tree));
    }

    #[test]
    fn any_text_is_parsed_or_refused(text in "[ a-c#:0-9().,\\[\\]<>=+!é-]{0,40}") {
        let _ = (parse_condition(&text), parse_update(&text), parse_projection(&text));
    }

    #[test]
    fn any_words_are_parsed_or_refused(words in vec(
        prop_oneof![
            Just("a"), Just("#b"), Just(":c"), Just("("), Just(")"), Just("["), Just("]"), Just("1"),
            Just("."), Just(","), Just("="), Just("<"), Just("+"), Just("AND"), Just("OR"),
            Just("NOT"), Just("IN"), Just("BETWEEN"), Just("SET"), Just("REMOVE"), Just("size"),
            Just("contains"), Just("if_not_exists"),
        ],
        0..30,
    )) {
        let text = words.join(" ");
        if let Ok(tree) = parse_condition(&text) {
            prop_assert_eq!(parse_condition(&tree.to_string()), Ok(tree));
        }
        if let Ok(tree) = parse_update(&text) {
            prop_assert_eq!(parse_update(&tree.to_string()), Ok(tree));
        }
    }

    #[test]
    fn a_condition_and_its_contrary_divide_all_items(
        tree in condition(),
        item in any_item(),
        values in vec(any_value(), 4),
    ) {
        let cache = ExpressionCache::new(2);
        let placeholders = placeholders(&values);
        let mut binder = Binder::new(&cache, &placeholders).unwrap();
        let contrary = Condition::Not(Box::new(tree.clone()));
        let item = ItemBytes::encode(&item);
        if let Ok(bound) = binder.condition(Kind::Filter, &tree.to_string()) {
            let contrary = binder.condition(Kind::Filter, &contrary.to_string()).unwrap();
            let held = bound.matches(Some(item.as_ref())).unwrap();
            prop_assert_eq!(contrary.matches(Some(item.as_ref())).unwrap(), !held);
        }
    }

    #[test]
    fn an_update_changes_an_item_wholly_or_not_at_all(
        tree in update(),
        item in any_item(),
        values in vec(any_value(), 4),
    ) {
        let cache = ExpressionCache::new(2);
        let placeholders = placeholders(&values);
        let mut binder = Binder::new(&cache, &placeholders).unwrap();
        if let Ok(bound) = binder.update(&tree.to_string()) {
            let mut after = item.clone();
            if bound.apply(&mut after).is_err() {
                prop_assert_eq!(&after, &item);
            }
            let untouched = |name: &str| !bound.top_level_names().any(|touched| touched == name);
            for (name, value) in item.iter().filter(|(name, _)| untouched(name)) {
                prop_assert_eq!(after.get(name), Some(value));
            }
            let touched = bound.touched_new(ItemBytes::encode(&after).as_ref());
            prop_assert!(touched.as_ref().check().is_ok());
        }
    }
}
