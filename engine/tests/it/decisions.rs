//! What follows from what, one line a case.

mod refused;

use crate::story::{Story, check, frugal, pictures, started};
use engine::{Act, Claiming, Next, Standing, decide};
use expect_test::{Expect, expect};
use serde_json::json;
use trace::{
    Delivery, Exhausted, Fault, FaultClass, Finished, Limits, ModelSpec, Outcome, Said, Started, Status, Stop, Timestamp,
    Verdict, What,
};

fn begin() -> Story {
    Story::begin(Limits::default(), Vec::new())
}

fn checked() -> Story {
    Story::begin(Limits::default(), vec![check()])
}

/// The decision in few words.
fn say(next: &Next) -> String {
    let ids = |calls: &[engine::OpenCall]| calls.iter().map(|call| call.id.to_string()).collect::<Vec<_>>().join(" ");
    match next {
        Next::Think(request) => format!("think, {} tokens at most", request.asked.max_output),
        Next::Switch { at: Some(at), to } => format!("switch to {} after {at}: {}", to.model.id, to.why),
        Next::Switch { at: None, to } => format!("switch to {}: {}", to.model.id, to.why),
        Next::Fold(folded) => format!("fold from {} to {} tokens", folded.before, folded.after),
        Next::Act(Act::Serve(calls)) => format!("serve {}", ids(calls)),
        Next::Act(Act::Ask(call)) => format!("ask for {}", call.id),
        Next::Act(Act::Settle(calls)) => format!("settle {}", ids(calls)),
        Next::Wait => "wait".to_owned(),
        Next::Verify(Claiming::Reply(claim)) => format!("verify {:?}", claim.answer),
        Next::Verify(Claiming::Submit(call)) => format!("verify {}", call.id),
        Next::Finish(outcome) => match outcome.reason() {
            Some(reason) => format!("finish {}: {reason}", outcome.word()),
            None => format!("finish {}", outcome.word()),
        },
    }
}

fn after(story: &Story, expected: Expect) {
    expected.assert_eq(&say(&decide(&story.progress)));
}

fn limits(turns: u64) -> Limits {
    Limits { turns: Some(turns), ..Limits::default() }
}

#[test]
fn a_run_thinks_first_and_a_reply_without_calls_ends_it() {
    after(&begin(), expect!["think, 1000 tokens at most"]);
    after(&begin().said("done"), expect!["finish done"]);
    after(&checked().said("done"), expect![[r#"verify "done""#]]);
}

#[test]
fn a_refused_request_is_made_again_without_the_pictures_that_no_reply_followed() {
    let ask = |mut story: Story| {
        let Next::Think(request) = decide(&story.progress) else { panic!("{}", say(&decide(&story.progress))) };
        story.note(None, What::Asked(request.asked.clone()));
        (story, request.body)
    };
    let refuse = |story: Story, status| {
        let fault = Fault { class: FaultClass::Rejected, status: Some(status), request_id: None, message: "no".into() };
        story.replied(Vec::new(), Stop::Error(fault))
    };
    let look = |story: Story| story.delivered(Delivery::Message { parts: pictures()[..1].to_vec() });
    let (shown, told) = ("iVBORw0KGgo", "not shown, for the server refused it]");
    let holds = |body: &str| (body.contains(shown), body.contains(told));
    let ends = |story: Story| after(&story, expect!["finish infrastructure: no"]);
    for status in [400, 415, 422] {
        let (story, body) = ask(look(begin()));
        assert_eq!(holds(&body), (true, false));
        let (story, body) = ask(refuse(story, status));
        assert_eq!(holds(&body), (false, true), "{status}");
        // It was for the picture: it stays away, and the same one is not tried again.
        let (after_it, body) = ask(look(story.clone().said("I see none").session()));
        assert_eq!(holds(&body), (false, true));
        ends(refuse(after_it, status));
        // It was not for the picture, which is shown again once somebody goes on.
        let story = refuse(story, status);
        ends(story.clone());
        let (story, body) = ask(story.session());
        assert_eq!(holds(&body), (true, false));
        // A picture that a reply followed is no reason.
        ends(refuse(ask(story.said("a shape").message("and now?")).0, status));
    }
    ends(refuse(ask(look(begin())).0, 404));
    ends(refuse(ask(begin()).0, 400));
    // A picture that came after the request went out was not in it.
    ends(refuse(look(ask(begin()).0), 400));
}

#[test]
fn a_call_as_text_gets_one_nudge() {
    let call = "<tool_call>ls</tool_call>";
    after(&begin().said(call), expect!["think, 1000 tokens at most"]);
    after(
        &begin().said(call).said(call),
        expect!["finish failed: the model writes its calls as text, so nothing is run; try another"],
    );
    let made_one = begin().said(call).called(&["bash {}"]).began(0).observed(0, Status::Ok);
    after(&made_one.said(call), expect!["think, 1000 tokens at most"]);
    after(&begin().said(call).said(call).message("again").said(call), expect!["think, 1000 tokens at most"]);
}

#[test]
fn neighbours_that_only_read_are_served_together_and_submit_last() {
    let story = begin().called(&["read {}", "read {\"a\":1}", "bash {}", "read {}", "submit {}"]);
    after(&story, expect!["serve c1_0 c1_1"]);
    let story = story.began(0).began(1).observed(0, Status::Ok).observed(1, Status::Failed);
    after(&story, expect!["serve c1_2"]);
    let story = story.began(2).observed(2, Status::Denied);
    after(&story, expect!["serve c1_3"]);
    let story = story.began(3).observed(3, Status::Ok);
    after(&story, expect!["verify c1_4"]);
}

#[test]
fn what_a_dead_session_had_begun_is_settled_and_not_begun_again() {
    let story = begin().called(&["bash {}", "bash {\"b\":1}"]).began(0).session();
    after(&story, expect!["settle c1_0 c1_1"]);
    let story = begin().called(&["bash {}"]).began(0).session().observed(0, Status::Interrupted);
    after(&story, expect!["think, 1000 tokens at most"]);
}

#[test]
fn an_interrupt_settles_what_is_open_and_ends_the_turn() {
    let story = begin().called(&["bash {}"]).delivered(Delivery::Interrupt);
    after(&story, expect!["settle c1_0"]);
    let story = story.began(0).observed(0, Status::Interrupted);
    after(&story, expect!["finish interrupted"]);
    after(&begin().fault(FaultClass::Interrupted).delivered(Delivery::Interrupt), expect!["finish interrupted"]);
}

#[test]
fn a_message_that_comes_while_calls_are_open_stands_behind_their_observations() {
    let story = begin().called(&["bash {}"]).message("also this").began(0).observed(0, Status::Ok);
    let roles: Vec<&str> = story
        .progress
        .messages()
        .iter()
        .map(|message| match message {
            model::Message::User(_) => "user",
            model::Message::Reply { .. } => "reply",
            model::Message::Result { .. } => "result",
        })
        .collect();
    assert_eq!(roles, ["user", "reply", "result", "user"]);
}

#[test]
fn a_verdict_decides_what_a_claim_leads_to() {
    let claimed = || checked().said("done");
    after(&claimed().verified(Verdict::Pass), expect!["finish done"]);
    after(&claimed().verified(Verdict::Fail), expect!["think, 1000 tokens at most"]);
    let again = claimed().verified(Verdict::Fail).said("now").verified(Verdict::Fail);
    after(&again, expect!["finish failed: the checks still fail after the last claim"]);
    after(&again.message("try again").said("so"), expect![[r#"verify "so""#]]);
    let unjudged = claimed().verified(Verdict::Unjudged { reason: "no walls".into() });
    after(&unjudged, expect!["finish infrastructure: no walls"]);
}

#[test]
fn a_submit_that_is_accepted_ends_the_run_and_one_that_is_not_goes_on() {
    let submitted = || begin().called(&["submit {\"answer\":\"so\"}"]);
    after(&submitted(), expect!["verify c1_0"]);
    after(&submitted().began(0).observed(0, Status::Ok), expect!["finish done"]);
    let failed = checked().called(&["submit {}"]).began(0).verified(Verdict::Fail).observed(0, Status::Failed);
    after(&failed, expect!["think, 1000 tokens at most"]);
    after(&submitted().began(0).observed(0, Status::Interrupted), expect!["think, 1000 tokens at most"]);
}

#[test]
fn a_claim_that_was_judged_for_good_ends_the_run_whatever_follows_in_its_reply() {
    let twice = || checked().called(&["submit {\"answer\":\"a\"}", "submit {\"answer\":\"b\"}"]);
    let judged = |story: Story, verdict: Verdict, status| story.began(0).verified(verdict).observed(0, status);
    let passed = judged(twice(), Verdict::Pass, Status::Ok);
    after(&passed, expect!["settle c1_1"]);
    after(&passed.began(1).observed(1, Status::Interrupted), expect!["finish done"]);
    after(&judged(twice(), Verdict::Fail, Status::Failed), expect!["verify c1_1"]);
    // The same words again are not judged again, and take back nothing.
    let repeated = || checked().said("done").verified(Verdict::Fail).called(&["submit {}", "submit {}"]);
    let failed = judged(repeated(), Verdict::Fail, Status::Failed).began(1).observed(1, Status::Failed);
    after(&failed, expect!["finish failed: the checks still fail after the last claim"]);
    let unjudged = judged(repeated(), Verdict::Unjudged { reason: "no walls".into() }, Status::Failed);
    after(&unjudged.began(1).observed(1, Status::Failed), expect!["finish infrastructure: no walls"]);
}

#[test]
fn calls_beyond_those_of_a_reply_that_are_served_are_denied_whatever_they_are() {
    let story = || Story::with(frugal(), started(Limits::default(), Vec::new()));
    // A claim is none where other calls of its reply are not served.
    let claims = story().called(&["submit {\"answer\":\"a\"}", "bash {}", "submit {\"answer\":\"b\"}", "nothing {}"]);
    let standings: Vec<_> = claims.progress.open_calls().map(|call| engine::standing(&claims.progress, call)).collect();
    let call = "Not run: of the calls of one reply the first 2 are served. Send this one again if it is still needed.";
    let claim = "Not accepted: this reply makes more calls than the 2 that are served. See to the others, then claim again.";
    let denied = |words: &str| Standing::Denied(words.to_owned());
    assert_eq!(standings, [denied(claim), Standing::Held, denied(claim), denied(call)]);
    after(&claims, expect!["serve c1_0"]);
    let claims = claims.began(0).observed(0, Status::Denied).began(1).observed(1, Status::Ok);
    after(&claims, expect!["serve c1_2"]);
    let claims = claims.began(2).observed(2, Status::Denied).began(3).observed(3, Status::Denied);
    assert_eq!(claims.progress.answer(), None, "what is denied is no answer");
    after(&claims, expect!["think, 1000 tokens at most"]);
    // Nobody is asked for what is one too many, and a later reply has its own two.
    let wish = "bash {\"command\":\"ls\",\"network\":true,\"why\":\"to look\"}";
    let many =
        story().called(&["read {}", "read {\"a\":1}", wish]).began(0).observed(0, Status::Ok).began(1).observed(1, Status::Ok);
    after(&many, expect!["serve c1_2"]);
    let next = many.began(2).observed(2, Status::Denied).called(&["read {}", "read {\"a\":1}"]);
    assert!(next.progress.open_calls().all(|call| !call.is_surplus));
}

#[test]
fn calls_of_a_reply_that_the_provider_declined_are_not_served() {
    let call = Said::Call { id: String::new(), name: "bash".into(), arguments: "{}".into() };
    let story = begin().replied(vec![call], Stop::Refused);
    after(&story, expect!["settle c1_0"]);
    after(&story.began(0).observed(0, Status::Interrupted), expect!["finish refused: the provider declines this content"]);
}

#[test]
fn a_request_that_we_stopped_takes_nothing_from_a_recording() {
    assert_eq!(begin().said("a").fault(FaultClass::Interrupted).progress.replies(), 1);
    assert_eq!(begin().said("a").fault(FaultClass::Unavailable).progress.replies(), 2);
}

#[test]
fn trouble_with_the_model_ends_the_turn_by_its_kind() {
    let until = Timestamp::from_unix_millis(0);
    after(
        &begin().fault(FaultClass::ContextFull),
        expect![
            "finish context_full: trouble; nothing of the history can be folded; go on with a larger window (--context) or another model (--model)"
        ],
    );
    after(&begin().fault(FaultClass::Refused), expect!["finish refused: trouble"]);
    after(&begin().fault(FaultClass::Rejected), expect!["finish infrastructure: trouble"]);
    after(&begin().fault(FaultClass::Unavailable), expect!["finish infrastructure: trouble"]);
    after(&begin().fault(FaultClass::Paused { until }), expect!["finish paused: trouble"]);
    after(&begin().fault(FaultClass::Budget { which: Exhausted::Time }), expect!["finish budget: trouble"]);
    after(&begin().fault(FaultClass::Unavailable).session(), expect!["think, 1000 tokens at most"]);
}

/// A run that has two models to fall back on.
fn with_fallback() -> Story {
    let model = |id: &str, provider: &str| ModelSpec { id: id.into(), provider: provider.into(), ..crate::story::model() };
    let fallback = vec![model("openai/b", "openai"), model("anthropic/c", "anthropic")];
    Story::of(Started { fallback, ..crate::story::started(limits(9), Vec::new()) })
}

#[test]
fn a_model_that_is_not_to_be_had_is_fallen_back_from_in_the_order_of_the_list() {
    let until = Timestamp::from_unix_millis(0);
    after(&with_fallback().fault(FaultClass::Unavailable), expect!["switch to openai/b after 1: trouble"]);
    let second = with_fallback().fault(FaultClass::Unavailable).switched();
    after(&second, expect!["think, 1000 tokens at most"]);
    let last = second.fault(FaultClass::Paused { until });
    after(&last, expect!["switch to anthropic/c after 3: trouble"]);
    // It sticks, and a later session begins no list anew.
    let resumed = last.switched().session();
    assert_eq!(resumed.progress.model().unwrap().id, "anthropic/c");
    after(&resumed.fault(FaultClass::Unavailable), expect!["finish infrastructure: trouble"]);
    let message = "asked `a`: too long. It does not fit.".to_owned();
    let sentence = Fault { class: FaultClass::ContextFull, status: Some(413), request_id: None, message };
    after(
        &begin().replied(Vec::new(), Stop::Error(sentence)),
        expect![
            "finish context_full: asked `a`: too long. It does not fit; nothing of the history can be folded; go on with a larger window (--context) or another model (--model)"
        ],
    );
    // What the account or the name is refused for, another model may be given; what it is asked is the same everywhere.
    let refused = |status| {
        let fault = Fault { class: FaultClass::Rejected, status: Some(status), request_id: None, message: "no".into() };
        with_fallback().replied(Vec::new(), Stop::Error(fault))
    };
    for status in [401, 402, 403, 404, 429] {
        after(&refused(status), expect!["switch to openai/b after 1: no"]);
    }
    after(&refused(400), expect!["finish infrastructure: no"]);
    after(
        &with_fallback().fault(FaultClass::ContextFull),
        expect![
            "finish context_full: trouble; nothing of the history can be folded; go on with a larger window (--context) or another model (--model)"
        ],
    );
    after(&with_fallback().fault(FaultClass::Refused), expect!["finish refused: trouble"]);
}

#[test]
fn a_window_that_is_full_is_fallen_back_from_to_the_first_larger_one() {
    let of = |id: &str, context: u64| ModelSpec { id: id.into(), context: Some(context), ..crate::story::model() };
    let begin = |fallback: &[(&str, u64)]| {
        let fallback = fallback.iter().map(|(id, context)| of(id, *context)).collect();
        Story::of(Started { model: of("a", 8_000), fallback, ..crate::story::started(limits(9), Vec::new()) })
    };
    let long = "words ".repeat(10_000);
    let full = begin(&[("small", 8_000), ("larger", 12_000), ("largest", 100_000)]).message(&long);
    let why = expect![
        "switch to larger: about 20,506 tokens are to be sent, 1,000 more are kept for the reply, and the window has 8,000; nothing of the history can be folded"
    ];
    after(&full, why);
    let full = full.switched();
    let why = expect![
        "switch to largest: about 20,506 tokens are to be sent, 1,000 more are kept for the reply, and the window has 12,000; nothing of the history can be folded"
    ];
    after(&full, why);
    // It sticks; and one that was passed over is still there for the day on which this one is not to be had.
    let largest = full.switched().said("done").message("and now?");
    after(&largest, expect!["think, 1000 tokens at most"]);
    let small = largest.fault(FaultClass::Unavailable);
    after(&small, expect!["switch to small after 6: trouble"]);
    // What a server refuses counts as its window, whatever the table says; the reply that says so is the cause.
    let mut refused = begin(&[("small", 8_000)]);
    let Next::Think(request) = decide(&refused.progress) else { panic!("it fits") };
    refused.note(None, What::Asked(request.asked));
    let refused = refused.fault(FaultClass::ContextFull);
    after(&refused, expect!["switch to small after 2: trouble; nothing of the history can be folded"]);
    after(&refused.switched(), expect!["think, 1000 tokens at most"]);
}

#[test]
fn what_only_the_model_understands_that_said_it_is_left_out_from_the_switch_on() {
    let kept = [
        ("openai-chat", json!({"reasoning_in": "reasoning", "reasoning_details": [{"data": "c2ln"}]})),
        ("openai-responses", json!({"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "c2ln"})),
        ("anthropic-messages", json!({"type": "thinking", "thinking": "hm", "signature": "c2ln"})),
        ("gemini", json!({"on": "text", "thoughtSignature": "c2ln"})),
    ];
    for (wire, json) in kept {
        // Whoever serves all of them: an aggregator has models of many makers under its one name.
        let model = |name: &str| ModelSpec {
            id: format!("openrouter/{name}"),
            name: name.into(),
            wire: wire.into(),
            provider: "openrouter".into(),
            base_url: Some("https://one.example".into()),
            ..crate::story::model()
        };
        let is_sent = |next: ModelSpec| {
            let parts = vec![
                Said::Reasoning { text: "hm".into() },
                Said::Opaque { wire: wire.into(), json: json.clone() },
                Said::Text { text: "I look.".into() },
            ];
            let fallback = vec![ModelSpec { id: "next/m".into(), ..next }];
            let started = Started { model: model("maker/m-1"), fallback, ..crate::story::started(limits(9), Vec::new()) };
            let story = Story::of(started).replied(parts, Stop::End).message("and now?");
            let story = [story.clone(), story.fault(FaultClass::Unavailable).switched()];
            story.map(|story| match decide(&story.progress) {
                Next::Think(request) => request.body.contains("c2ln"),
                next => panic!("{wire}: {}", say(&next)),
            })
        };
        assert_eq!(is_sent(model("another/m")), [true, false], "{wire}");
        assert_eq!(is_sent(model("maker/m-1-20261101")), [true, false], "{wire}: a snapshot is another model");
        let elsewhere = ModelSpec { base_url: Some("https://two.example".into()), ..model("maker/m-1") };
        assert_eq!(is_sent(elsewhere), [true, false], "{wire}: what serves it there is not known");
        let same = ModelSpec { max_output: 2_000, ..model("maker/m-1") };
        assert_eq!(is_sent(same), [true, true], "{wire}");
    }
}

#[test]
fn a_lost_sandbox_ends_the_run_instead_of_paying_for_more() {
    let story = begin().called(&["bash {}", "bash {\"b\":1}"]).began(0).observed(0, Status::Unavailable);
    after(&story, expect!["settle c1_1"]);
    after(&story.began(1).observed(1, Status::Interrupted), expect!["finish infrastructure: seen"]);
}

#[test]
fn limits_end_a_run_before_a_request_that_does_not_fit() {
    after(&Story::begin(limits(0), Vec::new()), expect!["finish budget: 0 of 0 turns are used"]);
    let tokens = |tokens| Story::begin(Limits { tokens: Some(tokens), ..Limits::default() }, Vec::new());
    after(&tokens(700), expect!["finish budget: 0 of 700 tokens are used; the next request may need more than is left"]);
    // Half of what is left is kept, where it can be, for a request that fails on its way.
    after(&tokens(3600), expect!["think, 1000 tokens at most"]);
    after(&tokens(1200), expect!["think, 704 tokens at most"]);
    let time = Story::begin(Limits { time_ms: Some(20), ..Limits::default() }, Vec::new()).called(&["bash {}"]);
    after(&time, expect!["serve c1_0"]);
    let time = time.began(0);
    after(&time, expect!["settle c1_0"]);
    let claim =
        Story::begin(Limits { time_ms: Some(20), ..Limits::default() }, vec![check()]).said("done").message("wait").said("so");
    after(&claim, expect!["finish budget: 30 of 20 milliseconds of active time are used"]);
    after(&claim.verified(Verdict::Pass), expect!["finish done"]);
    after(&time.observed(0, Status::TimedOut), expect!["finish budget: 30 of 20 milliseconds of active time are used"]);
}

#[test]
fn a_run_that_ended_waits_until_something_comes() {
    let mut story = begin().said("done");
    let finished = Finished {
        run: "test".parse().unwrap(),
        outcome: Outcome::Done,
        answer: None,
        usage: Default::default(),
        cost_nano_usd: None,
        turns: 1,
        active_ms: 0,
    };
    story.note(None, What::Finished(finished));
    after(&story, expect!["wait"]);
    after(&story.message("and now?"), expect!["think, 1000 tokens at most"]);
}

#[test]
fn processes_that_checks_ended_are_told_of_once() {
    let child = trace::Child { name: "c1".into(), command: "sleep 9".into(), age_s: 0 };
    let mut story = checked().called(&["bash {}"]).began(0);
    let call = story.progress.open_calls().next().unwrap().clone();
    let observed = trace::Observed { children: vec![child], ..trace::Observed::words(call.id, Status::Ok, "started") };
    story.note(call.called, What::Observed(observed));
    let mut later = Story { progress: story.progress.clone(), events: story.events.clone() }.session();
    let told = |story: &Story| {
        let last = story.progress.messages().last().cloned();
        matches!(last, Some(model::Message::User(parts)) if model::text_of(&parts).contains("were ended for the checks"))
    };
    // A new session has told that they are gone.
    later = later.said("done").verified(Verdict::Pass);
    assert!(!told(&later));
    let story = story.said("done").verified(Verdict::Pass);
    assert!(told(&story));
    assert!(!told(&story.message("again").said("done").verified(Verdict::Pass)));
}

#[test]
fn a_call_is_not_begun_where_a_damaged_line_may_have_said_that_it_was() {
    let recovered = |run: Option<&str>| {
        let run = run.map(|run| run.parse().unwrap());
        What::Recovered(trace::Recovered { blob: trace::Digest::of(b""), bytes: 1, reason: "torn".into(), run })
    };
    let mut story = begin().called(&["bash {}", "read {}"]);
    after(&story, expect!["serve c1_0"]);
    story.note(None, recovered(None));
    after(&story, expect!["settle c1_0 c1_1"]);
    let mut story = begin().called(&["bash {}"]).began(0).observed(0, Status::Ok);
    story.note(None, recovered(Some("anew")));
    after(&story, expect!["think, 1000 tokens at most"]);
    assert_eq!(story.progress.run().unwrap().as_str(), "anew");
    assert!(story.progress.has_lost_its_end() && !story.session().progress.has_lost_its_end());
}

#[test]
fn the_last_plan_stands_until_another_replaces_it() {
    let plan = |status: &str| format!("plan {{\"items\":[{{\"text\":\"look\",\"status\":\"{status}\"}}]}}");
    let done = |story: &Story| story.progress.plan().count(tools::Stage::Done);
    let story = begin().called(&[&plan("done")]).began(0);
    assert!(story.progress.plan().items.is_empty(), "it is not a plan before it is one");
    let story =
        story.observed(0, Status::Ok).called(&["plan {\"items\":3}"]).began(0).observed(0, Status::Failed).message("and?");
    assert_eq!(done(&story), 1);
    let story =
        story.called(&[&plan("doing"), &plan("pending")]).began(0).observed(0, Status::Ok).began(1).observed(1, Status::Ok);
    assert_eq!((done(&story), story.progress.plan().items[0].status), (0, tools::Stage::Pending));
    let story = story.called(&["plan {\"items\":[]}"]).began(0).observed(0, Status::Ok);
    assert!(story.progress.plan().items.is_empty());
}
