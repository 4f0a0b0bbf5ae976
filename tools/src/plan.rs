//! `plan`: the list that an agent keeps of what it is about to do. Each call of it replaces the list.

use crate::arguments::{Arguments, Builtin};
use crate::names::counted;
use serde::Deserialize;

/// The most steps of a plan.
pub(crate) const MOST: usize = 50;
/// The most characters of a step.
pub(crate) const LONGEST: usize = 200;

/// What an agent is about to do, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct Plan {
    /// The steps; none, once there is nothing left to plan.
    pub items: Vec<Step>,
}

/// One step of a plan.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Step {
    /// What is to be done: one line.
    pub text: String,
    /// How far it is.
    pub status: Stage,
}

/// How far a step is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    /// Not begun.
    Pending,
    /// Under way.
    Doing,
    /// Done.
    Done,
}

/// The plan that the call of `tool` with the arguments `raw` makes; nothing where it is no call of `plan`, or not usable.
pub fn plan(tool: &str, raw: &str) -> Option<Plan> {
    if tool != Builtin::Plan.name() {
        return None;
    }
    match Builtin::Plan.parse(&serde_json::from_str(raw).ok()?) {
        Ok(Arguments::Plan(plan)) => Some(plan),
        _ => None,
    }
}

impl Plan {
    /// This plan with each step on one line, unless there are too many or one is too long or empty.
    pub(crate) fn checked(mut self) -> Result<Plan, String> {
        if self.items.len() > MOST {
            return Err(format!("there are {}; a plan has at most {MOST}", counted(self.items.len(), "item")));
        }
        for (at, step) in self.items.iter_mut().enumerate() {
            step.text = step.text.split_whitespace().collect::<Vec<_>>().join(" ");
            match step.text.chars().count() {
                0 => return Err(format!("item {} has no text", at + 1)),
                long if long > LONGEST => {
                    return Err(format!("item {} has {long} characters; a text has at most {LONGEST}", at + 1));
                }
                _ => {}
            }
        }
        Ok(self)
    }

    /// How many of its steps are at `stage`.
    pub fn count(&self, stage: Stage) -> usize {
        self.items.iter().filter(|step| step.status == stage).count()
    }

    /// What the agent is told: it has the list itself in its call.
    pub(crate) fn told(&self) -> String {
        match self.items.len() {
            0 => "no plan".to_owned(),
            all => format!("{} of {} done", self.count(Stage::Done), counted(all, "step")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::{Expect, expect};
    use serde_json::{Value, json};

    fn check(arguments: Value, expected: Expect) {
        let said = match Builtin::Plan.parse(&arguments) {
            Ok(Arguments::Plan(plan)) => {
                let steps: Vec<String> = plan.items.iter().map(|step| format!("{:?} {:?}", step.status, step.text)).collect();
                format!("{}: {}", plan.told(), steps.join(", "))
            }
            Ok(other) => format!("{other:?}"),
            Err(why) => why,
        };
        expected.assert_eq(&said);
    }

    fn step(text: &str, status: &str) -> Value {
        json!({"text": text, "status": status})
    }

    #[test]
    fn a_plan_replaces_the_one_before() {
        check(json!({"items": []}), expect!["no plan: "]);
        check(
            json!({"items": [step("look", "done"), step(" mend\n it ", "doing"), step("test", "pending")]}),
            expect![[r#"1 of 3 steps done: Done "look", Doing "mend it", Pending "test""#]],
        );
        assert_eq!(plan("plan", r#"{"items": [{"text": "a", "status": "done"}]}"#).unwrap().count(Stage::Done), 1);
        assert_eq!(plan("bash", r#"{"items": []}"#), None);
        assert_eq!(plan("plan", "{"), None);
    }

    #[test]
    fn what_is_no_plan_is_refused_with_what_is_expected() {
        let takes = r#" plan takes {"items": [{"status": "pending", "doing" or "done", "text": text}, …]}"#;
        let refused = |arguments: Value, expected: Expect| {
            let why = Builtin::Plan.parse(&arguments).unwrap_err();
            expected.assert_eq(why.strip_suffix(takes).unwrap_or(&why));
        };
        refused(json!({}), expect![["`items` is missing."]]);
        refused(
            json!({"items": "look"}),
            expect![[r#"`items` is "look"; expected: [{"status": "pending", "doing" or "done", "text": text}, …]."#]],
        );
        refused(
            json!({"items": [step("look", "todo")]}),
            expect![[
                r#"`items` is [{"status":"todo","text":"look"}]; expected: [{"status": "pending", "doing" or "done", "text": text}, …]."#
            ]],
        );
        refused(
            json!({"items": [{"text": "look"}]}),
            expect![[r#"`items` is [{"text":"look"}]; expected: [{"status": "pending", "doing" or "done", "text": text}, …]."#]],
        );
        refused(
            json!({"items": [{"text": "look", "status": "done", "who": "me"}]}),
            expect![[
                r#"`items` is [{"status":"done","text":"look","who":"me"}]; expected: [{"status": "pending", "doing" or "done", "text": text}, …]."#
            ]],
        );
        refused(json!({"items": [step(" \n", "doing")]}), expect![["item 1 has no text."]]);
        refused(
            json!({"items": [step("a", "doing"), step(&"é".repeat(201), "doing")]}),
            expect![["item 2 has 201 characters; a text has at most 200."]],
        );
        refused(json!({"items": vec![step("a", "done"); 51]}), expect![["there are 51 items; a plan has at most 50."]]);
    }
}
