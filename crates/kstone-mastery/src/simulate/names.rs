//! Invented names of simulated learners.

const FIRST: [&str; 40] = [
    "Amara", "Ben", "Chiara", "Dmitri", "Elif", "Farid", "Greta", "Hiro", "Ines", "Jonas", "Kofi",
    "Leila", "Mateo", "Nadia", "Oskar", "Priya", "Quentin", "Rosa", "Samir", "Tereza", "Umar",
    "Vera", "Wanda", "Xenia", "Yara", "Zoltan", "Aiko", "Bruno", "Carmen", "David", "Esther",
    "Felix", "Gabriel", "Hanna", "Ivo", "Jamila", "Kasper", "Lucia", "Mira", "Noah",
];

const LAST: [&str; 37] = [
    "Abdi",
    "Becker",
    "Costa",
    "Duarte",
    "Eriksen",
    "Fischer",
    "Garcia",
    "Haddad",
    "Ivanova",
    "Jansen",
    "Kowalska",
    "Lindqvist",
    "Mensah",
    "Novak",
    "Okafor",
    "Petrov",
    "Quispe",
    "Rossi",
    "Sato",
    "Tanaka",
    "Usman",
    "Vargas",
    "Weber",
    "Xu",
    "Yilmaz",
    "Zhang",
    "Almeida",
    "Bauer",
    "Chen",
    "Dubois",
    "Ekström",
    "Farkas",
    "Gruber",
    "Horvath",
    "Iqbal",
    "Jovanovic",
    "Kaya",
];

/// The name of the learner with this number: another for each of the first 1480.
pub(super) fn name(number: usize) -> String {
    // Neither length divides the other, so the pairs repeat only after their product.
    let first = FIRST.get(number % FIRST.len()).copied().unwrap_or_default();
    let last = LAST.get(number % LAST.len()).copied().unwrap_or_default();
    format!("{first} {last}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_learners_of_a_school_have_the_same_name() {
        let mut names: Vec<String> = (0..1480).map(name).collect();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), 1480);
    }
}
