//! Random writes, and then a comparison of everything with everything.

use crate::indexes::agreement::{check, check_engine_tables, check_indexes};
use crate::indexes::table::{Machine, TABLE, create, scan};
use crate::indexes::workload::{Dice, Model, Step, key_of, run};

fn sorted(mut items: Vec<kstone::Item>) -> Vec<kstone::Item> {
    items.sort_by_key(|item| format!("{:?}", key_of(item)));
    items
}

#[test]
fn after_random_writes_table_indexes_and_stream_agree_with_the_model() {
    let mut refused = 0;
    for seed in 0..16 {
        let dice = Dice::new(seed);
        let machine = Machine::new();
        let mut db = machine.open();
        create(&db);
        let mut model = Model::new();
        let mut steps = Vec::new();
        for n in 0..100 {
            let step = Step::draw(&dice, model.now_ms());
            let expected = model.step(&step);
            steps.push(step);
            let done = run(&machine, &db, steps.last().unwrap()).unwrap();
            assert_eq!(done, expected, "seed {seed}, step {n}: {:?}", steps.last());
            refused += usize::from(!done);
            // Also while something has expired and is not reclaimed.
            let items = sorted(scan(&db, TABLE, None));
            assert_eq!(items, sorted(model.items()), "seed {seed}, step {n}: {:?}", steps.last());
            if n % 9 == 0 {
                check_indexes(&db, TABLE, &items);
            }
            if n % 40 == 20 {
                drop(db);
                db = machine.open();
            }
        }
        db.run_background().unwrap();
        assert_eq!(sorted(check(&db)), sorted(model.items()), "seed {seed}");
        check_engine_tables(&db);
    }
    assert!(refused > 40, "conditions were refused, too: {refused}");
}
