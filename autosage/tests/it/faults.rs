//! Every fault that the scripted model of the benches can serve, on every wire and through the real binary. A run meets one
//! after the other, so that each is met in the middle of a conversation and is seen to leave nothing behind.

use crate::support::mock::{self, Mock, Request};
use crate::support::server::Wire;
use crate::support::{Place, on_every_wire};
use serde_json::Value;
use std::collections::BTreeSet;
use trace::{Event, Replied, Said, Status, What, text_of};

/// What passes: the request is made again, the model is told, or there is nothing wrong at all. In the order in which they are
/// served, a step each.
const PASSING: [&str; 27] = [
    "cut",
    "cutclean",
    "stall",
    "slowheaders",
    "err",
    "err429",
    "badjson",
    "malformed",
    "dupid",
    "dupid1",
    "emptyid",
    "parallel",
    "textcall",
    "empty",
    "length",
    "408",
    "409",
    "425",
    "429",
    "500",
    "502",
    "503",
    "504",
    "529",
    "429date",
    "429text",
    "html",
];
/// Those after which the same request is made again, with what is written down of each: what broke off is no answer, and
/// neither is one without words and calls.
const AGAIN: [(&str, &str); 19] = [
    ("cut", "the stream broke"),
    ("cutclean", "the stream"),
    ("stall", "the stream broke"),
    // In the words of each provider.
    ("err", ""),
    ("err429", "Please try again in 0.2s"),
    // Where a malformed call has no word of its own, it is one whose arguments are not JSON.
    ("malformed", "MALFORMED_FUNCTION_CALL"),
    ("empty", "the reply holds neither words nor a call"),
    ("408", "took too long"),
    ("409", "met another one"),
    ("425", "Too early"),
    ("429", "Too many requests"),
    ("500", "had an error"),
    ("502", "did not answer"),
    ("503", "overloaded"),
    ("504", "took too long"),
    ("529", "Overloaded"),
    ("429date", "Too many requests"),
    ("429text", "Please try again in 0.2s"),
    ("html", "an HTML page"),
];

/// What ends a turn of the user: how often it is served, the outcome, the exit code, and what the reason says.
const LASTING: [(&str, usize, &str, i32, &str); 8] = [
    ("400", 1, "infrastructure", 4, "400: The request is not valid"),
    ("401", 1, "infrastructure", 4, "Check the key in TEST_KEY"),
    ("403", 1, "infrastructure", 4, "Check the key in TEST_KEY"),
    ("404", 1, "infrastructure", 4, "Check the model's name"),
    ("413", 1, "context_full", 1, "does not fit the model's window"),
    ("context", 1, "context_full", 1, "does not fit the model's window"),
    ("empty", 3, "infrastructure", 4, "the reply holds neither words nor a call"),
    ("nocall", 1, "done", 0, ""),
];

fn arguments(wire: Wire, base_url: &str) -> Vec<&str> {
    let keyed: &[&str] = if wire == Wire::Chat { &["--key-env", "TEST_KEY"] } else { &[] };
    [&wire.arguments(base_url)[..], keyed, &["--config", "none", "--json"]].concat()
}

fn replied(events: &[Event]) -> Vec<&Replied> {
    events.iter().filter_map(|event| if let What::Replied(replied) = &event.what { Some(replied) } else { None }).collect()
}

/// How each call of `bash` ended, and the number that it printed.
fn printed(events: &[Event]) -> Vec<(Status, String)> {
    let of = |event: &Event| match &event.what {
        What::Observed(observed) => Some((observed.status, text_of(&observed.content).trim().to_owned())),
        _ => None,
    };
    let submitted = (Status::Ok, "Accepted.".to_owned());
    events.iter().filter_map(of).filter(|told| *told != submitted).collect()
}

/// The words of the one fault that each of these requests met, in order.
fn errors(events: &[Event]) -> Vec<String> {
    let failed = |replied: &&Replied| replied.attempts.len() > 1;
    let error = |replied: &Replied| match &replied.attempts[..] {
        [first, _] => first.error.clone().unwrap(),
        more => panic!("one failure was expected: {more:?}"),
    };
    replied(events).into_iter().filter(failed).map(error).collect()
}

#[test]
fn a_b10_d_every_fault_that_passes_is_served_and_leaves_nothing_behind() {
    let place = Place::new("faults-passing");
    let faults: Vec<String> = PASSING.iter().enumerate().map(|(at, fault)| format!("--fault={fault}@{}", at + 1)).collect();
    let options = ["--turns", "30", "--stall-s", "0.3", "--retry-after", "0.2", "--reasoning"];
    let options: Vec<&str> = options.into_iter().chain(faults.iter().map(String::as_str)).collect();
    let Some(mock) = Mock::start(&place, &options) else { return };
    on_every_wire(|wire| {
        let place = Place::new(&format!("faults-passing-{wire:?}"));
        let (url, work) = (mock.base_url(wire), place.work().display().to_string());
        let called =
            place.start(&[&["run", &format!("go on {wire:?}"), "--workspace", &work], &arguments(wire, &url)[..]].concat());
        let requests = mock.requests(wire);
        assert_eq!(mock.served(wire), PASSING, "{wire:?}: every fault was served: {called:?}");
        assert_eq!(called.code, 0, "{wire:?}: {called:?}");
        assert_eq!(requests.iter().filter_map(Request::wrong).collect::<Vec<_>>(), [""; 0], "{wire:?}");
        let events = place.events();
        let says: Vec<&str> =
            AGAIN.iter().filter(|(fault, _)| *fault != "malformed" || wire == Wire::Gemini).map(|(_, words)| *words).collect();
        let errors = errors(&events);
        assert_eq!(errors.len(), says.len(), "{wire:?}: {errors:#?}");
        errors.iter().zip(says).for_each(|(error, words)| assert!(error.contains(words), "{wire:?}: {error}, not {words}"));
        // Each step was taken once and in order, but for those whose arguments were no JSON.
        let no_json = |step: usize| step == 7 || (step == 8 && wire != Wire::Gemini);
        let twice = [10, 12];
        let steps = (1..=30).flat_map(|step| {
            let second = twice.contains(&step).then(|| format!("{step}b"));
            std::iter::once((step, step.to_string())).chain(second.map(|second| (step, second)))
        });
        let printed = printed(&events);
        for ((step, words), (status, told)) in steps.zip(&printed) {
            match no_json(step) {
                true => assert!(*status == Status::Failed && told.starts_with("Nothing was run: "), "{wire:?}: {told}"),
                false => assert_eq!((*status, told), (Status::Ok, &words), "{wire:?}"),
            }
        }
        assert_eq!(printed.len(), 32);
        let cut =
            replied(&events).iter().flat_map(|replied| &replied.parts).filter(|part| matches!(part, Said::Cut { .. })).count();
        assert_eq!(cut, 1, "{wire:?}: the call that the limit cut");
        // A turn is a request to think, however often it is made (bug case B10).
        let asked = events.iter().filter(|event| matches!(event.what, What::Asked(_))).count();
        let retries: usize = replied(&events).iter().map(|replied| replied.attempts.len() - 1).sum();
        assert_eq!(requests.len(), asked + retries);
        let Some(What::Finished(finished)) = events.last().map(|event| &event.what) else { panic!("no end") };
        assert_eq!(finished.turns, asked as u64, "{wire:?}");
    });
}

#[test]
fn a_b_d_every_fault_that_lasts_ends_the_turn_with_its_reason_and_the_run_goes_on() {
    let place = Place::new("faults-lasting");
    let faults = LASTING.iter().enumerate().map(|(at, (fault, times, ..))| format!("--fault={fault}@{}x{times}", at + 1));
    let options: Vec<String> = ["--turns", "10"].into_iter().map(str::to_owned).chain(faults).collect();
    let Some(mock) = Mock::start(&place, &options.iter().map(String::as_str).collect::<Vec<_>>()) else { return };
    on_every_wire(|wire| {
        let place = Place::new(&format!("faults-lasting-{wire:?}"));
        let (url, work) = (mock.base_url(wire), place.work().display().to_string());
        let (arguments, task) = (arguments(wire, &url), format!("go on {wire:?}"));
        let mut expected = Vec::new();
        for (at, (fault, times, outcome, exit, words)) in LASTING.into_iter().enumerate() {
            let begin: &[&str] = if at == 0 { &["run", &task, "--workspace", &work] } else { &["resume", "--last", "-m", "on"] };
            let called = place.start(&[begin, &arguments[..]].concat());
            expected.extend(std::iter::repeat_n(fault, times));
            assert_eq!(mock.served(wire), expected, "{wire:?}: {fault} was served: {called:?}");
            let last: Value = serde_json::from_str(called.out.lines().last().unwrap()).unwrap();
            assert_eq!((called.code, last["outcome"].as_str()), (exit, Some(outcome)), "{wire:?} {fault}: {last}");
            assert!(last["reason"].as_str().unwrap_or_default().contains(words), "{wire:?} {fault}: {last}");
        }
        let called = place.start(&[&["resume", "--last", "-m", "on"], &arguments[..]].concat());
        assert_eq!(called.code, 0, "{wire:?}: {called:?}");
        let requests = mock.requests(wire);
        assert_eq!(mock.served(wire), expected, "{wire:?}: nothing more was served");
        assert_eq!(requests.iter().filter_map(Request::wrong).collect::<Vec<_>>(), [""; 0], "{wire:?}");
    });
}

/// A fault that the script of the benches learns needs a row above.
#[test]
fn every_fault_that_the_script_knows_is_served_here() {
    let Some(known) = mock::faults() else { return };
    let here: BTreeSet<String> = PASSING.into_iter().chain(LASTING.map(|row| row.0)).map(str::to_owned).collect();
    assert_eq!(here, known.into_iter().collect());
}
