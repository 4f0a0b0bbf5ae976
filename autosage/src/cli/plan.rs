//! An agent's plan as a person reads it: in one line where it changed, and as a block of steps.

use super::prose::{clean, counted};
use tools::{Plan, Stage, Step};

/// How far it is: `plan · 1 of 3 steps done · mend it`.
pub fn line(plan: &Plan) -> String {
    let all = counted(plan.items.len() as u64, "step");
    let head = match plan.items.len() {
        0 => return "plan · none any more".to_owned(),
        _ => format!("plan · {} of {all} done", plan.count(Stage::Done)),
    };
    let at = |stage| plan.items.iter().find(move |step| step.status == stage);
    match at(Stage::Doing).or_else(|| at(Stage::Pending)) {
        Some(step) => format!("{head} · {}", clean(&step.text)),
        None => head,
    }
}

/// At most `most` of its steps, a line each: those around the first that is not done.
pub fn steps(plan: &Plan, most: usize) -> Vec<(Stage, String)> {
    let all = plan.items.len();
    let open = plan.items.iter().position(|step| step.status != Stage::Done).unwrap_or(all);
    let from = open.saturating_sub(1).min(all.saturating_sub(most));
    let shown = &plan.items[from..all.min(from + most)];
    let mark = |step: &Step| match step.status {
        Stage::Done => '✓',
        Stage::Doing => '›',
        Stage::Pending => '·',
    };
    let mut lines: Vec<_> = shown.iter().map(|step| (step.status, format!("{} {}", mark(step), clean(&step.text)))).collect();
    let more = all - from - shown.len();
    if let (Some(last), 1..) = (lines.last_mut(), more) {
        *last = (Stage::Pending, format!("… {}", counted(more as u64 + 1, "more step")));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::{Expect, expect};

    fn plan(stages: &str) -> Plan {
        let stage = |letter| match letter {
            'x' => Stage::Done,
            '>' => Stage::Doing,
            _ => Stage::Pending,
        };
        let step = |(at, letter)| Step { text: format!("step {}", at + 1), status: stage(letter) };
        Plan { items: stages.chars().enumerate().map(step).collect() }
    }

    fn check(stages: &str, most: usize, expected: Expect) {
        let plan = plan(stages);
        let lines: Vec<String> = steps(&plan, most).into_iter().map(|(_, line)| line).collect();
        expected.assert_eq(&[vec![line(&plan)], lines].concat().join("\n"));
    }

    #[test]
    fn plans() {
        check("", 4, expect!["plan · none any more"]);
        check(
            "x>.",
            4,
            expect![[r#"
            plan · 1 of 3 steps done · step 2
            ✓ step 1
            › step 2
            · step 3"#]],
        );
        check(
            "xx..",
            4,
            expect![[r#"
            plan · 2 of 4 steps done · step 3
            ✓ step 1
            ✓ step 2
            · step 3
            · step 4"#]],
        );
        check(
            "xxx",
            4,
            expect![[r#"
            plan · 3 of 3 steps done
            ✓ step 1
            ✓ step 2
            ✓ step 3"#]],
        );
        check(
            "xxxx>...",
            4,
            expect![[r#"
            plan · 4 of 8 steps done · step 5
            ✓ step 4
            › step 5
            · step 6
            … 2 more steps"#]],
        );
        check(
            "xxxxx>.",
            4,
            expect![[r#"
            plan · 5 of 7 steps done · step 6
            ✓ step 4
            ✓ step 5
            › step 6
            · step 7"#]],
        );
        check(
            ">.........",
            3,
            expect![[r#"
            plan · 0 of 10 steps done · step 1
            › step 1
            · step 2
            … 8 more steps"#]],
        );
    }

    #[test]
    fn a_step_is_made_harmless() {
        let step = Step { text: "\x1b]0;gone\x07".to_owned(), status: Stage::Doing };
        let plan = Plan { items: vec![step] };
        assert!(!line(&plan).contains('\x1b') && !steps(&plan, 3)[0].1.contains('\x07'));
    }
}
