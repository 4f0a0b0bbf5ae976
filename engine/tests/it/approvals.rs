//! What a call may do that wants more than is granted, one line a case.

use crate::story::{Story, started};
use engine::{Next, Standing, decide, standing};
use expect_test::{Expect, expect};
use trace::{Answer, ApprovalAsked, Approve, Delivery, Grant, Limits, Seq, Started, Terms, What};

const NETWORK: &str = r#"bash {"command":"curl x","network":true,"why":"to fetch"}"#;

fn write(paths: &[&str]) -> Grant {
    Grant { write: paths.iter().map(Into::into).collect(), ..Grant::default() }
}

fn network() -> Grant {
    Grant { network: true, ..Grant::default() }
}

fn terms(approve: Approve, allow: Grant) -> Terms {
    Terms { approve, allow, read_only: false }
}

/// A run on these terms whose last reply makes this call.
fn called(terms: Terms, grant: Grant, call: &str) -> Story {
    Story::of(Started { terms, grant, ..started(Limits::default(), Vec::new()) }).called(&[call])
}

/// The call that wants something was asked about.
fn asked(mut story: Story, wants: Grant) -> (Story, Seq) {
    let call = story.progress.open_calls().next().unwrap().clone();
    let asked = ApprovalAsked { id: call.id, tool: call.tool, raw: call.raw, wants, why: "to fetch".into() };
    let seq = story.note(Some(call.reply), What::ApprovalAsked(asked));
    (story, seq)
}

fn answered(story: Story, asked: Seq, answer: Answer) -> Story {
    story.delivered(Delivery::Approval { asked, answer, by: "test".into() })
}

fn session(story: Story, terms: Terms) -> Story {
    let text = "new session".to_owned();
    story.delivered(Delivery::Session { text, model: None, backend: None, terms: Some(Box::new(terms)), fallback: None })
}

/// What stands about the first open call.
fn told(story: &Story) -> String {
    let call = story.progress.open_calls().next().unwrap();
    match standing(&story.progress, call) {
        Standing::Held => "held".to_owned(),
        Standing::Wished(wish) => format!("wished: {}", wish.wants),
        Standing::Asks(wants) => format!("asks: {wants}"),
        Standing::Pending(seq) => format!("pending: {seq}"),
        Standing::Allowed { wants, by } => format!("allowed by {by}: {wants}"),
        Standing::Denied(words) => format!("denied: {words}"),
    }
}

fn say(story: &Story, expected: Expect) {
    expected.assert_eq(&told(story));
}

#[test]
fn what_lies_within_the_grant_is_not_asked_for() {
    let call = |write: &str| format!(r#"bash {{"command":"x","write":["{write}"],"why":"y"}}"#);
    let ask = || terms(Approve::Ask, Grant::default());
    let deny = || terms(Approve::Deny, Grant::default());
    say(&called(deny(), Grant::default(), &call("a/b")), expect!["held"]);
    say(&called(deny(), Grant::default(), &call("/w/a")), expect!["held"]);
    // Where somebody can be asked, it is seen first whether a link leads out.
    say(&called(ask(), Grant::default(), &call("/w/a")), expect!["wished: writing /w/a"]);
    say(&called(ask(), Grant::default(), &call("/w/../etc")), expect!["wished: writing /w/../etc"]);
    say(&called(ask(), Grant::default(), &call("/data")), expect!["wished: writing /data"]);
    say(&called(deny(), write(&["/data"]), &call("/data/x")), expect!["held"]);
    say(&called(ask(), network(), NETWORK), expect!["held"]);
    say(&called(ask(), Grant::default(), NETWORK), expect!["wished: the network"]);
    // Without a reason, or of a tool that is not there, it is no wish but a mistake.
    say(&called(ask(), Grant::default(), r#"bash {"command":"x","network":true}"#), expect!["held"]);
    say(&called(ask(), Grant::default(), r#"read {"path":"x","network":true,"why":"y"}"#), expect!["held"]);
}

#[test]
fn terms_say_what_becomes_of_a_wish() {
    let of = |approve, allow| called(terms(approve, allow), Grant::default(), NETWORK);
    say(&of(Approve::Wait, Grant::default()), expect!["wished: the network"]);
    say(&of(Approve::Auto, network()), expect!["wished: the network"]);
    let denied = of(Approve::Deny, Grant::default());
    say(
        &denied,
        expect![
            "denied: Not run: the network is not granted, and nobody is asked. A person allows it with --grant network, or is asked with --approve wait. Do without it, or say that it is needed."
        ],
    );
    assert_eq!(told(&of(Approve::Auto, Grant::default())), told(&denied));
    assert_eq!(told(&of(Approve::Auto, write(&["/data"]))), told(&denied));
    let host = Started {
        facts: trace::Facts { backend: "host".into(), ..Default::default() },
        ..started(Limits::default(), Vec::new())
    };
    say(&Story::of(host).called(&[NETWORK]), expect!["held"]);
}

#[test]
fn nothing_runs_before_the_answer_and_only_what_was_allowed_after_it() {
    let (story, seq) = asked(called(terms(Approve::Ask, Grant::default()), Grant::default(), NETWORK), network());
    say(&story, expect!["pending: 2"]);
    assert_eq!(decide(&story.progress), Next::Wait);
    let story = story.message("meanwhile").session();
    say(&story, expect!["pending: 2"]);
    let again = || Story { progress: story.progress.clone(), events: story.events.clone() };
    say(&answered(again(), Seq(1), Answer::Once), expect!["pending: 2"]);
    let once = answered(again(), seq, Answer::Once);
    say(&once, expect!["allowed by test: the network"]);
    assert!(!once.progress.grant().network);
    say(&answered(once, seq, Answer::No), expect!["allowed by test: the network"]);
    let run = answered(again(), seq, Answer::Run);
    say(&run, expect!["allowed by test: the network"]);
    assert!(run.progress.grant().network);
    let no = answered(again(), seq, Answer::No);
    say(&no, expect!["denied: Not run: the person said no to the network. Do without it, or say why nothing else will do."]);
    say(
        &answered(no, seq, Answer::Run),
        expect!["denied: Not run: the person said no to the network. Do without it, or say why nothing else will do."],
    );
    say(
        &session(again(), terms(Approve::Deny, Grant::default())),
        expect![
            "denied: Not run: the network is not granted, and nobody is asked. A person allows it with --grant network, or is asked with --approve wait. Do without it, or say that it is needed."
        ],
    );
    say(&session(again(), terms(Approve::Auto, network())), expect!["allowed by auto: the network"]);
    say(&session(again(), terms(Approve::Wait, Grant::default())), expect!["pending: 2"]);
}

#[test]
fn an_answer_for_one_call_is_spent_with_it_and_one_for_the_run_is_not() {
    let ask = || called(terms(Approve::Ask, Grant::default()), Grant::default(), NETWORK);
    let after = |answer| {
        let (story, seq) = asked(ask(), network());
        answered(story, seq, answer).began(0).observed(0, trace::Status::Ok).called(&[NETWORK])
    };
    say(&after(Answer::Once), expect!["wished: the network"]);
    say(&after(Answer::Run), expect!["held"]);
    // An answer to a question whose call was ended before it came.
    let (story, seq) = asked(ask(), network());
    let story = answered(story.delivered(Delivery::Interrupt).began(0).observed(0, trace::Status::Interrupted), seq, Answer::Run);
    assert!(!story.progress.grant().network);
}

#[test]
fn a_run_that_only_reads_writes_nothing_whatever_is_allowed() {
    let reads = |allow| Terms { approve: Approve::Ask, allow, read_only: true };
    let call = r#"bash {"command":"x","write":["a"],"why":"y"}"#;
    let denied = called(reads(Grant::default()), Grant::default(), call);
    say(
        &denied,
        expect![
            "denied: Not run: writing /w/a is not possible while this run only reads; a person ends that with --read-only=no. Go on with the plan."
        ],
    );
    assert_eq!(told(&called(reads(write(&["/w"])), Grant::default(), call)), told(&denied));
    // Nor is anything that was asked before it only read.
    for answer in [Answer::Once, Answer::Run] {
        let story = called(terms(Approve::Wait, Grant::default()), Grant::default(), call);
        let (story, seq) = asked(story, write(&["/w/a"]));
        let story = answered(session(story, reads(Grant::default())), seq, answer);
        assert_eq!((told(&story), story.progress.grant()), (told(&denied), &Grant::default()));
    }
    say(&called(reads(Grant::default()), Grant::default(), NETWORK), expect!["wished: the network"]);
    let story = called(reads(Grant::default()), Grant::default(), call);
    assert!(story.progress.system().contains("The workspace can be read and not written"));
}

#[test]
fn an_agent_is_told_what_it_was_granted() {
    let mut started = started(Limits::default(), Vec::new());
    started.grant = Grant { network: true, write: vec!["/out".into()], secrets: vec!["TOKEN".into()], ..Grant::default() };
    let mut story = Story::begin(Limits::default(), Vec::new());
    assert!(!story.progress.system().contains("Beyond the workspace"));
    story.note(None, What::Started(Box::new(started)));
    let told = "Beyond the workspace, commands have the network, writing /out, the variables TOKEN.";
    assert!(story.progress.system().contains(told), "{}", story.progress.system());
}

#[test]
fn a_path_below_the_home_folder_is_looked_up_where_a_ceiling_lists_paths() {
    let call = r#"bash {"command":"x","write":["~/out"],"why":"y"}"#;
    let of = |allow| called(terms(Approve::Auto, allow), Grant::default(), call);
    say(&of(write(&["/home/me/out"])), expect!["wished: writing ~/out"]);
    say(
        &of(network()),
        expect![[r#"
        denied: Not run: writing ~/out is not granted, and nobody is asked. A person allows it with --grant write=~/out, or is asked with --approve wait. Do without it, or say that it is needed."#]],
    );
}
