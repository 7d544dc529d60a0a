//! Reads answers of learners from a table in ASSISTments form, in the order in which they were
//! given.

use std::collections::HashMap;
use std::io::Read;

use crate::evaluate::EvaluateError;
use crate::evaluate::rows::Rows;

/// One answer. Learners, skills and items are numbers, given out in the order of appearance, so
/// that millions of answers fit into memory.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Answer {
    /// Who answered.
    pub learner: u32,
    /// What it was about.
    pub skill: u32,
    /// The question.
    pub item: u32,
    /// Whether the answer was right.
    pub correct: bool,
    /// Of simulated learners only: what can be known of nobody else.
    pub truth: Option<Truth>,
}

/// What the simulation knew when it drew an answer.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Truth {
    /// How able the learner was in the skill at that moment, in logits.
    pub ability: f32,
    /// The chance of a right answer to this item.
    pub chance: f32,
}

/// The answers of a file.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Answers {
    /// In the order in which they were given.
    pub answers: Vec<Answer>,
    /// How many learners there are.
    pub learners: u32,
    /// How many skills.
    pub skills: u32,
    /// How many items.
    pub items: u32,
    /// What was not used.
    pub left_out: LeftOut,
}

/// Rows that were not used, and why.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize)]
pub struct LeftOut {
    /// No skill is named.
    pub without_skill: u64,
    /// `correct` is neither 0 nor 1, or no learner is named.
    pub unclear: u64,
    /// The same answer again, listed once for each of several skills. It counts under the first: a
    /// second prediction would be made knowing the answer.
    pub repeated: u64,
}

/// Where the columns are.
struct Columns {
    learner: usize,
    skill: Option<usize>,
    item: Option<usize>,
    correct: usize,
    order: Option<usize>,
    ability: Option<usize>,
    chance: Option<usize>,
}

impl Columns {
    fn of(header: &[String]) -> Result<Columns, EvaluateError> {
        let find = |names: &[&str]| {
            let is = |name: &&str| header.iter().position(|cell| cell.eq_ignore_ascii_case(name));
            names.iter().find_map(is)
        };
        let needed =
            |name: &'static str, found| Option::ok_or(found, EvaluateError::MissingColumn { name });
        Ok(Columns {
            learner: needed("user_id", find(&["user_id", "studentId", "student_id"]))?,
            skill: find(&["skill_id", "skill_name", "skill", "sequence_id"]),
            item: find(&["problem_id", "item_id", "problemId"]),
            correct: needed("correct", find(&["correct"]))?,
            order: find(&["order_id", "log_id", "end_time_ms"]),
            ability: find(&["true_ability"]),
            chance: find(&["true_chance"]),
        })
    }
}

/// Gives each name a number.
#[derive(Default)]
struct Numbers {
    by_name: HashMap<String, u32>,
}

impl Numbers {
    fn of(&mut self, name: &str) -> u32 {
        if let Some(number) = self.by_name.get(name) {
            return *number;
        }
        let number = self.count();
        self.by_name.insert(name.to_owned(), number);
        number
    }

    fn count(&self) -> u32 {
        u32::try_from(self.by_name.len()).unwrap_or(u32::MAX)
    }
}

/// Reads a table with the columns `user_id` and `correct`, and if there are any, `skill_id` or
/// `skill_name`, `problem_id` and `order_id`, in any order and among any others. Without a skill
/// column everything is one skill; without `problem_id` a skill is one item; without `order_id` the
/// rows are taken to be in order. The text is never held whole: an answer takes 40 bytes.
pub fn read_answers(table: impl Read) -> Result<Answers, EvaluateError> {
    let (mut rows, mut fields) = (Rows::new(table), Vec::new());
    if !rows.next(&mut fields)? {
        return Err(EvaluateError::Empty);
    }
    let columns = Columns::of(&fields)?;
    let (mut learners, mut skills, mut items) =
        (Numbers::default(), Numbers::default(), Numbers::default());
    let mut left_out = LeftOut::default();
    let mut answers: Vec<(u64, Answer)> = Vec::new();
    while rows.next(&mut fields)? {
        let cell = |at: usize| fields.get(at).map(String::as_str).unwrap_or_default();
        let number = |at: Option<usize>| at.and_then(|at| cell(at).parse::<f32>().ok());
        let learner = cell(columns.learner);
        let Some(correct) = truth_of(cell(columns.correct)).filter(|_| !learner.is_empty()) else {
            left_out.unclear += 1;
            continue;
        };
        let skill = columns.skill.map_or("everything", cell);
        if is_nothing(skill) {
            left_out.without_skill += 1;
            continue;
        }
        let item = match columns.item.map(cell) {
            Some(item) if !is_nothing(item) => items.of(item),
            _ => items.of(&format!("any of {skill}")),
        };
        let order = match columns.order.map(cell) {
            Some(order) => order_of(order)
                .ok_or(EvaluateError::Order { line: rows.line(), found: order.to_owned() })?,
            None => answers.len() as u64,
        };
        let truth = match (number(columns.ability), number(columns.chance)) {
            (Some(ability), Some(chance)) => Some(Truth { ability, chance }),
            _ => None,
        };
        let (learner, skill) = (learners.of(learner), skills.of(skill));
        answers.push((order, Answer { learner, skill, item, correct, truth }));
    }
    // Stable: of rows with the same number the first stays first.
    answers.sort_by_key(|(order, _)| *order);
    let before = answers.len();
    if columns.order.is_some() && columns.item.is_some() {
        answers.dedup_by(|(order, answer), (first_order, first)| {
            order == first_order && (answer.learner, answer.item) == (first.learner, first.item)
        });
    }
    left_out.repeated = (before - answers.len()) as u64;
    if answers.is_empty() {
        return Err(EvaluateError::Empty);
    }
    Ok(Answers {
        answers: answers.into_iter().map(|(_, answer)| answer).collect(),
        learners: learners.count(),
        skills: skills.count(),
        items: items.count(),
        left_out,
    })
}

/// Some of the public files have been through a program that writes whole numbers as `1.0`.
fn truth_of(text: &str) -> Option<bool> {
    match text {
        "1" | "1.0" | "true" | "True" | "TRUE" => Some(true),
        "0" | "0.0" | "false" | "False" | "FALSE" => Some(false),
        _ => None,
    }
}

fn is_nothing(text: &str) -> bool {
    matches!(text, "" | "NA" | "NaN" | "nan" | "NULL" | "null" | "\\N")
}

fn order_of(text: &str) -> Option<u64> {
    let whole = text.split_once('.').map_or(text, |(whole, _)| whole);
    whole.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Answers {
        read_answers(text.as_bytes()).unwrap()
    }

    #[test]
    fn columns_may_come_in_any_order_and_rows_too() {
        let answers = read(
            "correct,skill_name,order_id,teacher,user_id,problem_id\n\
             1,Fractions,20,t,ada,p1\n\
             0,Fractions,10,t,bob,p1\n\
             1.0,\"Area, Circle\",15,t,ada,p2\n",
        );
        let seen: Vec<_> =
            answers.answers.iter().map(|a| (a.learner, a.skill, a.item, a.correct)).collect();
        assert_eq!(seen, [(1, 0, 0, false), (0, 1, 1, true), (0, 0, 0, true)]);
        assert_eq!((answers.learners, answers.skills, answers.items), (2, 2, 2));
    }

    #[test]
    fn what_cannot_be_used_is_left_out_and_counted() {
        let answers = read(
            "user_id,skill_id,correct,order_id,problem_id\n\
             a,,1,1,p\na,NA,1,2,p\na,s,0.5,3,p\n,s,1,4,p\na,s,1,5,p\na,t,1,5,p\na,s,1,6,p\n",
        );
        assert_eq!(answers.answers.len(), 2);
        assert_eq!(answers.left_out, LeftOut { without_skill: 2, unclear: 2, repeated: 1 });
    }

    #[test]
    fn without_skills_items_and_order_the_rest_is_enough() {
        let answers = read("user_id,correct\na,1\nb,0\na,1\n");
        assert_eq!(answers.answers.len(), 3);
        assert_eq!((answers.skills, answers.items), (1, 1));
    }

    #[test]
    fn a_file_that_says_too_little_is_refused_with_what_it_lacks() {
        let refused = |text: &str| read_answers(text.as_bytes()).unwrap_err().to_string();
        assert!(refused("user_id,skill_id\n").contains("`correct`"));
        assert!(refused("correct\n1\n").contains("`user_id`"));
        assert!(refused("user_id,correct,order_id\na,1,soon\n").contains("line 2"));
        assert_eq!(refused(""), refused("user_id,correct\n"));
    }
}
