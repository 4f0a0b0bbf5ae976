//! How many pictures a request holds, and what stands in the place of those that are too many.

use crate::story::{Story, large_picture, model, pictures, started};
use engine::{Next, decide};
use expect_test::{Expect, expect};
use trace::{CallId, Delivered, Delivery, LargeImages, Limits, ModelSpec, Observed, Part, Seq, Started, Status, Switched, What};

/// A run with a model that takes so many pictures.
fn begin(max_images: Option<u64>, large_images: Option<LargeImages>) -> Story {
    let model = ModelSpec { max_images, large_images, context: Some(1_000_000), ..model() };
    Story::of(Started { model, ..started(Limits::default(), Vec::new()) })
}

fn small() -> Part {
    pictures()[0].clone()
}

/// The agent reads this.
fn read(story: Story, picture: Part) -> Story {
    let mut story = story.called(&["read {\"path\":\"x\"}"]).began(0);
    let call = story.progress.open_calls().next().unwrap();
    let (id, at): (CallId, Option<Seq>) = (call.id.clone(), call.called);
    let mut observed = Observed::words(id, Status::Ok, "a picture");
    observed.content.push(picture);
    story.note(at, What::Observed(observed));
    story
}

fn message(mut story: Story, parts: Vec<Part>) -> Story {
    story.note(None, What::Delivered(Delivered { name: String::new(), what: Delivery::Message { parts } }));
    story
}

/// The messages of the next request.
fn messages(story: &Story) -> String {
    let Next::Think(request) = decide(&story.progress) else { panic!("nothing is asked") };
    let end = request.body.rfind("],\"max_tokens\"").unwrap();
    request.body[..end].to_owned()
}

/// How many pictures each request holds that goes out after a step, and whether it extends the one before.
fn say(story: Story, steps: impl IntoIterator<Item = Part>, expected: Expect) -> Story {
    let (mut before, mut told) = (messages(&story), String::new());
    let story = steps.into_iter().fold(story, |story, picture| {
        let story = read(story, picture);
        let now = messages(&story);
        let how = if now.starts_with(&before) { "" } else { " anew" };
        told.push_str(&format!("{}{how}\n", now.matches("iVBORw0KGgo").count()));
        before = now;
        story
    });
    expected.assert_eq(&told);
    story
}

#[test]
fn the_oldest_go_together_so_that_the_next_ones_extend_the_prompt() {
    let nine = || (0..9).map(|_| small());
    say(
        begin(None, None),
        nine(),
        expect![[r#"
        1
        2
        3
        4
        5
        6
        7
        8
        9
    "#]],
    );
    let story = say(
        begin(Some(4), None),
        nine(),
        expect![[r#"
        1
        2
        3
        4
        2 anew
        3
        4
        2 anew
        3
    "#]],
    );
    let words = "[picture 640×480 png, 29 bytes: no longer shown, for a request holds 4 pictures at most; read output:";
    assert_eq!(messages(&story).matches(words).count(), 6);
    say(
        begin(Some(1), None),
        nine().take(3),
        expect![[r#"
        1
        1 anew
        1 anew
    "#]],
    );
}

#[test]
fn what_the_model_has_not_seen_yet_stays_as_far_as_it_may() {
    let story = message(read(begin(Some(4), None), small()), (0..3).map(|_| small()).collect());
    assert_eq!(messages(&story).matches("iVBORw0KGgo").count(), 4);
    let story = message(begin(Some(4), None), (0..7).map(|_| small()).collect());
    let body = messages(&story);
    assert_eq!((body.matches("iVBORw0KGgo").count(), body.matches("read output:1 shows it again").count()), (4, 3));
}

#[test]
fn a_large_picture_makes_room_and_leaves_it_again() {
    let large = Some(LargeImages { above: 2000, most: 2 });
    let steps = [small(), small(), small(), large_picture(), small(), small(), small(), small()];
    say(
        begin(Some(6), large),
        steps,
        expect![[r#"
        1
        2
        3
        1 anew
        2
        2 anew
        3
        4
    "#]],
    );
}

#[test]
fn another_model_has_its_own_limit() {
    let mut story = say(
        begin(None, None),
        (0..5).map(|_| small()),
        expect![[r#"
        1
        2
        3
        4
        5
    "#]],
    );
    let other = ModelSpec { max_images: Some(3), ..model() };
    story.note(None, What::Switched(Switched { model: Box::new(other), why: "trouble".into() }));
    assert_eq!(messages(&story).matches("iVBORw0KGgo").count(), 2, "half of what it takes");
    let roomy = ModelSpec { max_images: None, ..model() };
    story.note(None, What::Switched(Switched { model: Box::new(roomy), why: "trouble".into() }));
    assert_eq!(messages(&story).matches("iVBORw0KGgo").count(), 2, "what went is words for whoever comes after");
}
