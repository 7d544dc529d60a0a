//! Every way to find the items, each compared with the same choice made from a plain list.

use kstone::ops::Query;
use kstone::{Database, Item};
use kstone_base::time::{Date, Timestamp};
use kstone_workflows::read::{
    Comparison, ReadError, all, all_of_any_kind, compare_metrics, get_albums_by_execution,
    get_execution_with_albums, get_running_executions, one,
};
use kstone_workflows::{
    Album, AnyEntity, Entity, Execution, ExecutionStatus, Metrics, Task, TaskStatus, WorkflowType,
    requests, sample,
};

use crate::support::{Machine, TABLE, check_before_and_after_a_reopen, moment, put};

const NOW: &str = "2025-02-01T00:00:00Z";
const IMAGES: u32 = 40;

/// The sample, by kind.
struct Model {
    executions: Vec<Execution>,
    albums: Vec<Album>,
    tasks: Vec<Task>,
    metrics: Vec<Metrics>,
}

fn entities() -> Vec<AnyEntity> {
    sample(moment("2025-01-15T10:30:00Z"), IMAGES).unwrap()
}

fn items() -> Vec<Item> {
    entities().iter().map(|entity| entity.to_item().unwrap()).collect()
}

fn model() -> Model {
    let mut model = Model { executions: vec![], albums: vec![], tasks: vec![], metrics: vec![] };
    for entity in entities() {
        match entity {
            AnyEntity::Execution(execution) => model.executions.push(execution),
            AnyEntity::Album(album) => model.albums.push(album),
            AnyEntity::Task(task) => model.tasks.push(task),
            AnyEntity::Metrics(metrics) => model.metrics.push(metrics),
        }
    }
    model
}

/// A query finds what the model has, in the order of the index, in one page and in many.
#[track_caller]
fn check<E, K>(db: &Database, request: Query, expected: Vec<&E>, order: impl Fn(&E) -> K)
where
    E: Entity + Clone + PartialEq + std::fmt::Debug,
    K: Ord,
{
    assert!(!expected.is_empty(), "the sample has nothing to find");
    let mut expected: Vec<E> = expected.into_iter().cloned().collect();
    expected.sort_by_key(&order);
    assert_eq!(all::<E>(db, request.clone()).unwrap(), expected);
    let in_pages = Query { limit: Some(3), ..request.clone() };
    assert_eq!(all::<E>(db, in_pages).unwrap(), expected);
    expected.reverse();
    assert_eq!(all::<E>(db, Query { backward: true, ..request }).unwrap(), expected);
}

fn range() -> std::ops::RangeInclusive<Timestamp> {
    moment("2025-01-16T00:00:00Z")..=moment("2025-01-17T11:59:59Z")
}

#[test]
fn executions_are_found_by_id_type_status_date_range_and_context() {
    let model = model();
    check_before_and_after_a_reopen(NOW, &items(), |db| {
        for expected in &model.executions {
            let request = requests::execution_by_id(TABLE, &expected.execution_id);
            assert_eq!(one::<Execution>(db, &request).unwrap().as_ref(), Some(expected));
        }
        let missing = requests::execution_by_id(TABLE, "exec-999");
        assert_eq!(one::<Execution>(db, &missing).unwrap(), None);
        for engine in WorkflowType::ALL.iter().copied() {
            let of_engine = || model.executions.iter().filter(|e| e.workflow_type == engine);
            check(db, requests::executions_by_type(TABLE, engine), of_engine().collect(), |e| {
                (e.status.as_str(), e.created_at)
            });
            for status in ExecutionStatus::ALL.iter().copied() {
                check(
                    db,
                    requests::executions_by_status(TABLE, engine, status),
                    of_engine().filter(|e| e.status == status).collect(),
                    |e| e.created_at,
                );
            }
            let status = ExecutionStatus::Completed;
            check(
                db,
                requests::executions_by_date_range(TABLE, engine, status, range()),
                of_engine()
                    .filter(|e| e.status == status && range().contains(&e.created_at))
                    .collect(),
                |e| e.created_at,
            );
        }
    });
}

#[test]
fn the_context_of_an_execution_holds_its_albums_itself_and_its_task_in_that_order() {
    let model = model();
    check_before_and_after_a_reopen(NOW, &items(), |db| {
        for execution in &model.executions {
            let (engine, id) = (execution.workflow_type, &execution.execution_id);
            let mut albums: Vec<&Album> =
                model.albums.iter().filter(|album| album.execution_id == *id).collect();
            albums.sort_by_key(|album| album.album_index);
            let mut expected: Vec<AnyEntity> =
                albums.into_iter().cloned().map(AnyEntity::Album).collect();
            expected.push(AnyEntity::Execution(execution.clone()));
            let tasks = model.tasks.iter().filter(|task| task.execution_id == *id);
            expected.extend(tasks.cloned().map(AnyEntity::Task));
            let request = requests::execution_context(TABLE, engine, id);
            assert_eq!(all_of_any_kind(db, request).unwrap(), expected);
            let other = WorkflowType::ALL.iter().find(|other| **other != engine).unwrap();
            let request = requests::execution_context(TABLE, *other, id);
            assert_eq!(all_of_any_kind(db, request).unwrap(), []);
        }
    });
}

#[test]
fn albums_are_found_by_id_prefix_and_context() {
    let model = model();
    check_before_and_after_a_reopen(NOW, &items(), |db| {
        for album in &model.albums {
            let (engine, id, index) = (album.workflow_type, &album.execution_id, album.album_index);
            let request = requests::album_by_index(TABLE, id, index);
            assert_eq!(one::<Album>(db, &request).unwrap().as_ref(), Some(album));
            let request = requests::album_in_context(TABLE, engine, id, index);
            assert_eq!(all::<Album>(db, request).unwrap(), std::slice::from_ref(album));
        }
        // The first two executions have twelve albums.
        for execution in &model.executions[..4] {
            let (engine, id) = (execution.workflow_type, &execution.execution_id);
            let albums = || model.albums.iter().filter(|album| album.execution_id == *id);
            check(db, requests::albums_by_prefix(TABLE, id), albums().collect(), |album| {
                format!("album-{}", album.album_index)
            });
            check(
                db,
                requests::albums_in_context(TABLE, engine, id),
                albums().collect(),
                |album| album.album_index,
            );
        }
    });
}

#[test]
fn tasks_are_found_by_id_pending_status_date_range_and_execution() {
    let model = model();
    check_before_and_after_a_reopen(NOW, &items(), |db| {
        for task in &model.tasks {
            let request = requests::task_by_id(TABLE, &task.task_id);
            assert_eq!(one::<Task>(db, &request).unwrap().as_ref(), Some(task));
            let request =
                requests::tasks_by_execution(TABLE, task.workflow_type, &task.execution_id);
            assert_eq!(all::<Task>(db, request).unwrap(), std::slice::from_ref(task));
        }
        let pending = model.tasks.iter().filter(|task| task.status == TaskStatus::Pending);
        let pending: Vec<&Task> = pending.collect();
        for engine in WorkflowType::ALL {
            assert!(pending.iter().any(|task| task.workflow_type == *engine));
        }
        // Two tasks, one of each engine, are made in the same second: then the key decides.
        check(db, requests::pending_tasks(TABLE), pending, |task| {
            (task.created_at, task.task_id.clone())
        });
        for engine in WorkflowType::ALL.iter().copied() {
            for status in TaskStatus::ALL.iter().copied() {
                let chosen = || {
                    let tasks = model.tasks.iter();
                    tasks.filter(move |t| t.workflow_type == engine && t.status == status)
                };
                check(
                    db,
                    requests::tasks_by_status(TABLE, engine, status),
                    chosen().collect(),
                    |task| task.created_at,
                );
                check(
                    db,
                    requests::tasks_by_date_range(TABLE, engine, status, range()),
                    chosen().filter(|task| range().contains(&task.created_at)).collect(),
                    |task| task.created_at,
                );
            }
        }
    });
}

#[test]
fn metrics_are_found_by_day_comparison_type_and_date_range() {
    let model = model();
    check_before_and_after_a_reopen(NOW, &items(), |db| {
        for metrics in &model.metrics {
            let request = requests::metrics_of_day(TABLE, metrics.date, metrics.workflow_type);
            assert_eq!(one::<Metrics>(db, &request).unwrap().as_ref(), Some(metrics));
            let of_day = model.metrics.iter().filter(|other| other.date == metrics.date);
            check(
                db,
                requests::metrics_to_compare(TABLE, metrics.date),
                of_day.collect(),
                |metrics| metrics.workflow_type.as_str(),
            );
        }
        for engine in WorkflowType::ALL.iter().copied() {
            let of_engine = || model.metrics.iter().filter(|m| m.workflow_type == engine);
            check(db, requests::metrics_by_type(TABLE, engine), of_engine().collect(), |metrics| {
                metrics.created_at
            });
            check(
                db,
                requests::metrics_by_date_range(TABLE, engine, range()),
                of_engine().filter(|m| range().contains(&m.created_at)).collect(),
                |metrics| metrics.created_at,
            );
        }
    });
}

#[test]
fn get_execution_with_albums_has_the_albums_in_numeric_order() {
    let model = model();
    check_before_and_after_a_reopen(NOW, &items(), |db| {
        for execution in &model.executions {
            let id = &execution.execution_id;
            let found = get_execution_with_albums(db, TABLE, id).unwrap().unwrap();
            assert_eq!(&found.execution, execution);
            let albums = model.albums.iter().filter(|album| album.execution_id == *id);
            assert_eq!(found.albums, albums.cloned().collect::<Vec<_>>());
            assert!(found.albums.is_sorted_by_key(|album| album.album_index));
        }
        let twelve = get_execution_with_albums(db, TABLE, "exec-001").unwrap().unwrap();
        assert_eq!(twelve.albums.len(), 12);
        assert_eq!(get_execution_with_albums(db, TABLE, "exec-999").unwrap(), None);
    });
}

#[test]
fn get_running_executions_get_albums_by_execution_and_compare_metrics_agree_with_the_model() {
    let model = model();
    check_before_and_after_a_reopen(NOW, &items(), |db| {
        for engine in WorkflowType::ALL.iter().copied() {
            let running = model.executions.iter().filter(|execution| {
                execution.workflow_type == engine && execution.status == ExecutionStatus::Running
            });
            let running: Vec<Execution> = running.cloned().collect();
            assert!(!running.is_empty());
            assert_eq!(get_running_executions(db, TABLE, engine).unwrap(), running);
        }
        for execution in &model.executions {
            let (engine, id) = (execution.workflow_type, &execution.execution_id);
            let albums = model.albums.iter().filter(|album| album.execution_id == *id);
            assert_eq!(
                get_albums_by_execution(db, TABLE, engine, id).unwrap(),
                albums.cloned().collect::<Vec<_>>()
            );
        }
        let day: Date = "2025-01-16".parse().unwrap();
        let of = |engine| {
            let mut metrics = model.metrics.iter();
            metrics.find(|m| m.date == day && m.workflow_type == engine).cloned()
        };
        let expected = Comparison {
            step_functions: of(WorkflowType::StepFunctions),
            durable_functions: of(WorkflowType::DurableFunctions),
        };
        assert!(expected.step_functions.is_some() && expected.durable_functions.is_some());
        assert_eq!(compare_metrics(db, TABLE, day).unwrap(), expected);
        let quiet = "1999-12-31".parse().unwrap();
        assert_eq!(compare_metrics(db, TABLE, quiet).unwrap(), Comparison::default());
    });
}

#[test]
fn an_item_moves_in_the_indexes_when_its_status_changes() {
    let model = model();
    check_before_and_after_a_reopen(NOW, &items(), |db| {
        let engine = WorkflowType::StepFunctions;
        let waiting = model.executions.iter().find(|execution| {
            execution.workflow_type == engine && execution.status == ExecutionStatus::Waiting
        });
        let waiting = waiting.unwrap();
        let is_found = |status| {
            let request = requests::executions_by_status(TABLE, engine, status);
            let found = all::<Execution>(db, request).unwrap();
            found.iter().any(|execution| execution.execution_id == waiting.execution_id)
        };
        assert!(is_found(ExecutionStatus::Waiting) && !is_found(ExecutionStatus::Running));
        let running = Execution { status: ExecutionStatus::Running, ..waiting.clone() };
        put(db, &running.to_item().unwrap());
        assert!(!is_found(ExecutionStatus::Waiting) && is_found(ExecutionStatus::Running));
        put(db, &waiting.to_item().unwrap());
    });
}

#[test]
fn an_item_that_lacks_an_attribute_of_an_index_is_not_in_it() {
    let model = model();
    check_before_and_after_a_reopen(NOW, &items(), |db| {
        let mut all_of_gsi3: usize = 0;
        for kind in ["execution", "album", "task", "metrics"] {
            let found = db
                .table(TABLE)
                .query_index("GSI3", "entityType = :kind", [(":kind", kind)])
                .unwrap();
            if kind == "album" {
                assert_eq!(found, [], "an album has no status");
            }
            all_of_gsi3 += found.len();
        }
        let expected = model.executions.len() + model.tasks.len() + model.metrics.len();
        assert_eq!(all_of_gsi3, expected);
    });
}

#[test]
fn a_task_is_gone_from_the_table_and_the_indexes_when_its_time_to_live_is_over() {
    let mut task = model().tasks.into_iter().find(|t| t.status == TaskStatus::Pending).unwrap();
    let (last, gone) = (moment("2025-01-31T23:59:59Z"), moment("2025-02-01T00:00:01Z"));
    task.ttl = Some(moment("2025-02-01T00:00:00Z"));
    let is_found = |db: &Database| {
        let by_id = one::<Task>(db, &requests::task_by_id(TABLE, &task.task_id)).unwrap();
        let pending = all::<Task>(db, requests::pending_tasks(TABLE)).unwrap();
        assert_eq!(pending, Vec::from_iter(by_id.clone()), "table and index agree");
        by_id.is_some()
    };
    let machine = Machine::at(&task.created_at.to_string());
    let db = machine.open_with_items(&[task.to_item().unwrap()]);
    assert!(is_found(&db));
    machine.set_clock(last);
    assert!(is_found(&db));
    drop(db);
    let db = machine.open();
    assert!(is_found(&db));
    machine.set_clock(gone);
    assert!(!is_found(&db));
    drop(db);
    assert!(!is_found(&machine.open()));
}

#[test]
fn an_item_that_is_no_valid_entity_is_named_in_the_error() {
    let album = model().albums.into_iter().next().unwrap();
    let item = album.to_item().unwrap().with("year", 1492);
    check_before_and_after_a_reopen(NOW, &[item], |db| {
        let request = requests::albums_by_prefix(TABLE, &album.execution_id);
        let error = all::<Album>(db, request).unwrap_err();
        assert!(matches!(&error, ReadError::Stored { invalid, .. } if invalid.field == "year"));
        let says = "item exec-001 / album-1: year must be from 1900 to 2100, not 1492";
        assert_eq!(error.to_string(), says);
    });
}
