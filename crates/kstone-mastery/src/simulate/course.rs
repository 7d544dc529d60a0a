//! The simulated curriculum: a first course in programming. Each skill has three lessons, a dozen
//! practice items, a piece of work and a quiz.

use crate::simulate::Chance;

/// A skill, with the mistakes that are typical of it.
pub(super) struct Skill {
    pub id: &'static str,
    pub mistakes: [&'static str; 3],
}

/// In the order in which they are taught.
pub(super) const SKILLS: [Skill; 10] = [
    Skill { id: "variables", mistakes: ["name_error", "type_error", "unused_value"] },
    Skill { id: "conditions", mistakes: ["wrong_branch", "syntax_error", "assignment_in_test"] },
    Skill { id: "loops", mistakes: ["off_by_one", "endless_loop", "wrong_range"] },
    Skill { id: "functions", mistakes: ["missing_return", "wrong_arguments", "name_error"] },
    Skill { id: "lists", mistakes: ["index_error", "shared_list", "off_by_one"] },
    Skill { id: "strings", mistakes: ["type_error", "index_error", "encoding_error"] },
    Skill { id: "dictionaries", mistakes: ["key_error", "changed_while_read", "type_error"] },
    Skill { id: "files", mistakes: ["file_not_found", "not_closed", "encoding_error"] },
    Skill { id: "debugging", mistakes: ["assertion_error", "wrong_result", "name_error"] },
    Skill { id: "recursion", mistakes: ["endless_recursion", "missing_base_case", "wrong_result"] },
];

pub(super) const ITEMS_PER_SKILL: usize = 12;
pub(super) const LESSONS_PER_SKILL: usize = 3;

/// What stands in keys and events.
pub(super) fn item_id(skill: &Skill, item: usize) -> String {
    format!("{}-{:02}", skill.id, item + 1)
}

/// How hard the items are, in logits, easiest at about -1.5. Later skills are a little harder.
#[derive(Debug, Clone)]
pub(super) struct Difficulties {
    by_skill: Vec<Vec<f64>>,
}

impl Difficulties {
    /// Of this many skills with this many items each.
    pub(super) fn draw(chance: &mut Chance, skills: usize, items: usize) -> Difficulties {
        let of_skill = |skill: usize| {
            let middle =
                0.6 * (skill as f64 / skills.max(1) as f64 - 0.5) + chance.normal(0.0, 0.2);
            (0..items).map(|_| chance.normal(middle, 0.8)).collect()
        };
        Difficulties { by_skill: (0..skills).map(of_skill).collect() }
    }

    /// Of one item.
    pub(super) fn of(&self, skill: usize, item: usize) -> f64 {
        self.by_skill.get(skill).and_then(|items| items.get(item)).copied().unwrap_or(0.0)
    }
}
