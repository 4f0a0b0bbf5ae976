//! The words of a harness: its `notes.toml`.

use serde::Deserialize;

macro_rules! notes {
    ($($(#[$doc:meta])* $name:ident),* $(,)?) => {
        /// `notes.toml`: what the engine tells an agent besides the observations of its tools.
        #[derive(Clone, Debug, Deserialize)]
        #[serde(deny_unknown_fields)]
        pub struct Notes {
            $($(#[$doc])* pub $name: String,)*
        }
    };
}

notes! {
    /// A call was written as text.
    text_call,
    /// A call was cut off by the length limit: `{name}`.
    cut_call,
    /// A reply without calls was cut off by the length limit.
    cut_text,
    /// Calls in a row brought nothing new: `{calls}`, `{call}` of them came to the same `{times}` times, `{left}` are left.
    circle,
    /// In the place of the middle of an old output: `{at}`.
    shortened,
    /// In the place of a stretch of the history: `{at}`, `{account}`.
    account,
    /// Above what the person said.
    account_said,
    /// Above the files that were read.
    account_read,
    /// Above the files that were changed.
    account_changed,
    /// Above the calls.
    account_ran,
    /// Above what was refused, and the checks that failed.
    account_refused,
    /// Above the plan.
    account_plan,
    /// A step of it: `{text}`, `{stage}`.
    account_step,
    /// A message of the person: `{words}`.
    account_words,
    /// A file: `{path}`, `{hash}`, `{at}`.
    account_file,
    /// A call or a check: `{call}`, `{ending}`, `{at}`.
    account_call,
    /// In the place of the middle of a long message of the person.
    account_cut,
    /// Above what is shown of an account that is not shown whole: `{lines}`.
    account_left_out,
    /// The claim holds.
    accepted,
    /// The claim does not hold: `{failed}`, `{total}`, `{left}`, `{results}`.
    checks_failed,
    /// The claim holds, and the checks ended processes that the agent had left.
    ended,
    /// What one check said: `{command}`, `{output}`, `{ending}`.
    check_result,
    /// A later session goes on with the run.
    session,
    /// The record was damaged, and what came after its last good line is lost.
    lost,
    /// A later session has other walls: `{backend}`.
    other_walls,
    /// What the person granted beyond the workspace: `{rights}`.
    granted,
    /// The workspace can only be read.
    read_only,
    /// The workspace can be written again.
    writable,
    /// A call wanted more than is granted, and nobody is asked: `{wants}`, `{flags}`.
    denied,
    /// A call wanted to write where the workspace is only read: `{wants}`.
    denied_read_only,
    /// A person said no: `{wants}`.
    refused,
    /// A call was going on when the run stopped.
    interrupted,
    /// A call had not begun when the run stopped.
    not_started,
    /// An unknown tool was called: `{name}`, `{tools}`.
    no_tool,
    /// A call stands beyond those of its reply that are served: `{most}`.
    surplus_call,
    /// A claim stands in a reply of which not all calls are served: `{most}`.
    surplus_submit,
    /// Calls of a reply are not even shown, each of which was denied: `{calls}`.
    unsent_calls,
    /// A call's arguments were not usable: `{why}`.
    bad_arguments,
    /// Above the project's own instructions: `{path}`.
    project_file,
    /// The form of the answer: `{schema}`.
    output_schema,
    /// The claim's answer does not have that form: `{why}`, `{left}`.
    misfit,
    /// A question of a program, whose answer has a form: `{schema}`.
    ask,
    /// The answer to it does not have that form: `{why}`.
    ask_misfit,
    /// A picture that the model is not sent: `{picture}`.
    unseen_picture,
    /// A picture that was refused with the request that held it: `{picture}`.
    refused_picture,
    /// A picture that is one too many for a request: `{picture}`, `{most}`, `{at}`.
    crowded_picture,
    /// A picture whose bytes the record has lost: `{picture}`.
    lost_picture,
    /// A file that is no picture: `{name}`, `{type}`.
    file,
    /// The surroundings, captured at the start: `{os}`, `{date}`, `{workspace}`, `{git}`, `{backend}`.
    facts,
}

/// `template` with each `{name}` of `words` replaced; a word's own braces are left alone.
pub fn fill(template: &str, words: &[(&str, &str)]) -> String {
    let mut text = String::with_capacity(template.len());
    let mut rest = template;
    while let Some(open) = rest.find('{') {
        text.push_str(&rest[..open]);
        let word = rest[open + 1..].find('}').and_then(|close| {
            let name = &rest[open + 1..open + 1 + close];
            words.iter().find(|(word, _)| *word == name).map(|(_, value)| (close, *value))
        });
        match word {
            Some((close, value)) => {
                text.push_str(value);
                rest = &rest[open + close + 2..];
            }
            None => {
                text.push('{');
                rest = &rest[open + 1..];
            }
        }
    }
    text + rest
}
