//! What stands about a call that wants more rights than are granted, from what was agreed, asked and answered; and about one
//! that is one too many.

use crate::harness::fill;
use crate::progress::{OpenCall, Progress};
use std::collections::BTreeMap;
use std::path::Path;
use tools::Wish;
use trace::{Answer, ApprovalAsked, Approve, CallId, Delivery, Event, Grant, Seq, Started, Terms, What};

/// Who allowed what the ceiling lists.
const CEILING: &str = "auto";

/// What stands about a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Standing {
    /// It wants nothing beyond what is granted.
    Held,
    /// It has a wish, and what the paths in that lead to has to be found out first.
    Wished(Wish),
    /// Somebody is to be asked for this.
    Asks(Grant),
    /// Somebody was asked, and has not answered.
    Pending(Seq),
    /// It may have more than is granted, or than was when it was asked for.
    Allowed {
        /// What it may have.
        wants: Grant,
        /// Who said so.
        by: String,
    },
    /// It may not, in the words that the agent is told.
    Denied(String),
}

/// What stands about `call`.
pub fn standing(progress: &Progress, call: &OpenCall) -> Standing {
    if call.is_surplus {
        let (notes, most) = (progress.harness().notes(), progress.harness().settings().max_calls.to_string());
        let note = if call.tool == "submit" { &notes.surplus_submit } else { &notes.surplus_call };
        return Standing::Denied(fill(note, &[("most", &most)]));
    }
    let is_known = progress.tools().iter().any(|tool| tool.name == call.tool);
    let cwd = progress.cwd().unwrap_or(Path::new("/"));
    let wish = if is_known && call.same_as.is_none() { tools::wish(&call.tool, &call.raw, cwd) } else { None };
    let Some(wish) = wish else { return Standing::Held };
    if let Some((seq, question)) = progress.rights().questions.about(&call.id) {
        let wants = question.asked.wants.clone();
        return match &question.answer {
            // It was asked before the run was only to read.
            Some((Answer::Once | Answer::Run, _)) if progress.terms().read_only && !wants.write.is_empty() => {
                denied(&wants, &progress.harness().notes().denied_read_only)
            }
            Some((Answer::Once | Answer::Run, by)) => Standing::Allowed { wants, by: by.clone() },
            Some((Answer::No, _)) => denied(&wants, &progress.harness().notes().refused),
            None => match ruling(progress, &wants) {
                Standing::Asks(_) => Standing::Pending(seq),
                // Another session has other terms, or more is granted by now.
                ruled => ruled,
            },
        };
    }
    match ruling(progress, &wish.wants) {
        // Only once it is known where paths lead may anything be allowed or asked.
        Standing::Asks(_) | Standing::Allowed { .. } => Standing::Wished(wish),
        // A link in the workspace may lead out of it. Where nobody is asked, the walls say so.
        Standing::Held if asks(progress) && !wish.wants.write.is_empty() => Standing::Wished(wish),
        // The ceiling is in whole paths, and only the machine knows what `~` is.
        Standing::Denied(_) if may_be_listed(progress, &wish.wants) => Standing::Wished(wish),
        ruled => ruled,
    }
}

/// What stands about a wish for `wants`, whose paths were followed to where they lead.
pub fn ruling(progress: &Progress, wants: &Grant) -> Standing {
    let (rights, notes) = (progress.rights(), progress.harness().notes());
    let terms = &rights.terms;
    let missing = rights.held(progress).lacks(wants);
    if missing.is_empty() || has_no_walls(progress) {
        return Standing::Held;
    }
    if terms.read_only && !missing.write.is_empty() {
        return denied(&missing, &notes.denied_read_only);
    }
    if terms.allow.covers(&missing) {
        return Standing::Allowed { wants: missing, by: CEILING.to_owned() };
    }
    match terms.approve {
        Approve::Ask | Approve::Wait => Standing::Asks(missing),
        Approve::Auto | Approve::Deny => denied(&missing, &notes.denied),
    }
}

/// Whether there is somebody to ask.
fn asks(progress: &Progress) -> bool {
    !has_no_walls(progress) && matches!(progress.terms().approve, Approve::Ask | Approve::Wait)
}

/// Whether a path that the ceiling cannot be compared with by its words alone may be on it.
fn may_be_listed(progress: &Progress, wants: &Grant) -> bool {
    let terms = progress.terms();
    !terms.read_only && !terms.allow.write.is_empty() && wants.write.iter().any(|path| path.starts_with("~"))
}

/// Whether there is nothing to widen.
fn has_no_walls(progress: &Progress) -> bool {
    progress.backend() == Some("host")
}

fn denied(wants: &Grant, words: &str) -> Standing {
    let network = wants.network.then(|| "--grant network".to_owned());
    let paths = wants.write.iter().map(|path| format!("--grant write={}", path.display()));
    let flags = network.into_iter().chain(paths).collect::<Vec<_>>().join(" ");
    Standing::Denied(fill(words, &[("wants", &wants.to_string()), ("flags", &flags)]))
}

/// The rights of a run, from its events.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rights {
    /// The terms of the session.
    pub terms: Terms,
    /// What is granted: at the start, at a later session's, and by answers for the run.
    pub grant: Grant,
    questions: Questions,
}

impl Rights {
    pub fn start(&mut self, started: &Started) {
        self.terms = started.terms.clone();
        self.grant = started.grant.clone();
    }

    /// Takes in one more event.
    pub fn fold(&mut self, event: &Event) {
        if let What::Granted(granted) = &event.what {
            self.grant = self.grant.with(&granted.grant);
        }
        if let What::Delivered(delivered) = &event.what {
            match &delivered.what {
                Delivery::Session { terms: Some(terms), .. } => self.terms = (**terms).clone(),
                Delivery::Approval { asked, answer: Answer::Run, .. } if self.questions.is_open(*asked) => {
                    let wants = self.questions.get(*asked).map(|question| &question.asked.wants);
                    let allowed = wants.filter(|wants| !self.terms.read_only || wants.write.is_empty());
                    self.grant = allowed.map_or_else(|| self.grant.clone(), |wants| self.grant.with(wants));
                }
                Delivery::Session { .. } | Delivery::Approval { .. } | Delivery::Message { .. } | Delivery::Interrupt => {}
            }
        }
        self.questions.fold(event);
    }

    /// What is granted, and the workspace where that can be written.
    fn held(&self, progress: &Progress) -> Grant {
        let workspace = progress.started().filter(|_| !self.terms.read_only).map(|started| started.task.workspace.clone());
        self.grant.with(&Grant { write: workspace.into_iter().collect(), ..Grant::default() })
    }
}

/// The questions of a run, from its events.
#[derive(Clone, Debug, Default)]
pub struct Questions(BTreeMap<Seq, Question>);

/// A call that wanted more, and what became of that.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question {
    /// What was asked.
    pub asked: ApprovalAsked,
    /// The answer, and through what it came.
    pub answer: Option<(Answer, String)>,
    /// Whether its call is begun or done with, so that an answer changes nothing any more.
    pub is_over: bool,
}

impl Questions {
    /// Takes in one more event.
    pub fn fold(&mut self, event: &Event) {
        match &event.what {
            What::ApprovalAsked(asked) => {
                self.0.insert(event.seq, Question { asked: asked.clone(), answer: None, is_over: false });
            }
            What::Delivered(delivered) => {
                if let Delivery::Approval { asked, answer, by } = &delivered.what
                    && let Some(question) = self.0.get_mut(asked).filter(|question| question.is_open())
                {
                    question.answer = Some((*answer, by.clone()));
                }
            }
            What::Called(called) => {
                self.0
                    .values_mut()
                    .filter(|question| question.asked.id == called.id)
                    .for_each(|question| question.is_over = true);
            }
            What::Started(_) | What::Asked(_) | What::Replied(_) | What::Observed(_) | What::Verified(_) => {}
            What::Switched(_)
            | What::Folded(_)
            | What::Granted(_)
            | What::Recovered(_)
            | What::Finished(_)
            | What::Unknown { .. } => {}
        }
    }

    /// The question that waits for an answer, and the event that asked it.
    pub fn open(&self) -> Option<(Seq, &Question)> {
        self.0.iter().rev().map(|(seq, question)| (*seq, question)).find(|(_, question)| question.is_open())
    }

    /// The question that the event `asked` is, if it is one.
    pub fn get(&self, asked: Seq) -> Option<&Question> {
        self.0.get(&asked)
    }

    fn is_open(&self, asked: Seq) -> bool {
        self.get(asked).is_some_and(Question::is_open)
    }

    fn about(&self, call: &CallId) -> Option<(Seq, &Question)> {
        self.0.iter().rev().map(|(seq, question)| (*seq, question)).find(|(_, question)| question.asked.id == *call)
    }
}

impl Question {
    fn is_open(&self) -> bool {
        self.answer.is_none() && !self.is_over
    }
}
