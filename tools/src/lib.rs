//! What an agent can do to its workspace.
//!
//! A [`Toolbox`] holds what a model may call: [`builtin`] makes one of `bash`, `read`, `write`, `edit`, `search`, `find`,
//! `plan` and `submit` with the words of a harness. [`Toolbox::serve`] answers a call with an observation and never with an error: a
//! wrong argument, a missing file or a failed command is what the agent is told. Nothing here opens a file of the workspace
//! or starts a process: all of it happens inside an environment of `sandbox`, whose table of operations is [`OPS`].
//!
//! The pure parts are `edit` and `reindent` (what an edit changes), `window` (which lines are shown), `names` (any file's
//! name as text), `plan`, `schema` and `arguments`; `inside` holds what runs behind the walls; `bash`, `files` and `outputs` ask
//! for it and put it into words; `spill` keeps whole outputs as blobs of the run.

mod arguments;
mod bash;
mod edit;
mod files;
mod find;
mod inside;
mod names;
mod outputs;
mod plan;
mod reindent;
mod room;
mod schema;
mod search;
mod specs;
mod spill;
mod toolbox;
mod window;
mod wish;

pub use plan::{Plan, Stage, Step, plan};
pub use room::{Caps, Lasting, Output, Room};
pub use specs::ToolsError;
pub use toolbox::{Toolbox, builtin};
pub use wish::{Wish, wish};

/// Everything that can be done inside an environment: the file operations of `sandbox`, and those of the tools.
pub const OPS: sandbox::Ops = &joined();

const fn joined() -> [(&'static str, sandbox::Op); sandbox::file::OPS.len() + inside::OPS.len()] {
    let mut all = [sandbox::file::OPS[0]; sandbox::file::OPS.len() + inside::OPS.len()];
    let mut at = 0;
    while at < all.len() {
        let first = sandbox::file::OPS.len();
        all[at] = if at < first { sandbox::file::OPS[at] } else { inside::OPS[at - first] };
        at += 1;
    }
    all
}

#[cfg(test)]
mod tests {
    #[test]
    fn no_two_operations_share_a_name() {
        let names: std::collections::BTreeSet<&str> = super::OPS.iter().map(|(name, _)| *name).collect();
        assert_eq!(names.len(), super::OPS.len());
    }
}
