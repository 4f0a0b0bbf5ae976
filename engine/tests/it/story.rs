//! Events in few words, for tests.

use engine::{Harness, Progress};
use std::collections::BTreeMap;
use std::sync::OnceLock;
use trace::{
    AgentPath, CallId, Called, Check, CheckResult, Contents, Cost, Delivered, Delivery, Digest, Event, Fault, FaultClass, Limits,
    ModelSpec, Observed, Part, Picture, Price, Replied, Said, Seq, Started, Status, Stop, Task, Timestamp, Timing, ToolSpec,
    Usage, Verdict, Verified, What,
};

/// A run's first event: three tools, a model of which a reply may have 1,000 tokens, two claims.
pub fn started(limits: Limits, checks: Vec<Check>) -> Started {
    let tool = |name: &str, read_only| ToolSpec {
        name: name.to_owned(),
        description: String::new(),
        parameters: serde_json::json!({"type": "object"}),
        read_only,
    };
    Started {
        run: "test".parse().unwrap(),
        task: Task { parts: vec![Part::text("do it")], workspace: "/w".into(), checks },
        harness: trace::HarnessRef { name: "default".into(), digest: trace::Digest::of(b""), files: BTreeMap::new() },
        tools: vec![tool("bash", false), tool("read", true), tool("submit", false)],
        project: Vec::new(),
        unread: Vec::new(),
        facts: trace::Facts::default(),
        model: model(),
        fallback: Vec::new(),
        limits,
        max_claims: 2,
        grant: trace::Grant::default(),
        terms: trace::Terms::default(),
        program: trace::Program::default(),
        output_schema: None,
        labels: BTreeMap::new(),
    }
}

/// The schema of an answer that can be enforced everywhere.
pub fn schema() -> serde_json::Value {
    let count = serde_json::json!({"count": {"type": "integer"}});
    serde_json::json!({"type": "object", "properties": count, "required": ["count"], "additionalProperties": false})
}

/// A priced model that speaks OpenAI's chat.
pub fn model() -> ModelSpec {
    ModelSpec {
        id: "openai-compatible/m".into(),
        name: "m".into(),
        wire: "openai-chat".into(),
        provider: "openai-compatible".into(),
        base_url: None,
        max_output: 1000,
        context: None,
        effort: None,
        reasons: None,
        price: Some(Price { input: 3, cached: 1, cache_write: 4, output: 15, long: None }),
        images: None,
        max_images: None,
        large_images: None,
        structured: None,
        table: None,
    }
}

/// A check.
pub fn check() -> Check {
    Check { command: "true".into(), timeout_ms: 1 }
}

/// An answer to a request.
pub fn replied(parts: Vec<Said>, stop: Stop, usage: Usage) -> Replied {
    let cost = Cost::NanoUsd(trace::NanoUsd(usage.input * 3 + usage.output * 15));
    Replied {
        parts,
        stop,
        usage,
        estimated: false,
        cost,
        served: None,
        request_id: None,
        timing: Timing::default(),
        attempts: Vec::new(),
        raw: None,
        redacted: false,
    }
}

/// A call, without anything in it.
pub fn called() -> Called {
    Called {
        id: CallId::new(Seq(0), 0),
        provider_id: String::new(),
        tool: String::new(),
        tool_digest: None,
        raw: String::new(),
        arguments: None,
        grant: None,
        approved_by: None,
    }
}

/// A run without a disk, told event by event.
#[derive(Clone)]
pub struct Story {
    pub progress: Progress,
    pub events: Vec<Event>,
}

/// The head of a PNG, which is as much of it as anybody reads here.
pub fn png() -> [u8; 29] {
    *b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\x02\x80\0\0\x01\xe0\x08\x06\0\0\0"
}

/// The same of a larger one.
fn large_png() -> [u8; 29] {
    *b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\x08\x00\0\0\x01\xe0\x08\x06\0\0\0"
}

/// The head of a GIF, with bytes to the end of a base64 group.
fn gif() -> [u8; 15] {
    *b"GIF89a\x10\0\x09\0\0\0\0\0\0"
}

/// The contents of every story: three pictures.
fn kept() -> &'static (tempfile::TempDir, Contents) {
    static KEPT: OnceLock<(tempfile::TempDir, Contents)> = OnceLock::new();
    KEPT.get_or_init(|| {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("blobs")).unwrap();
        let blobs = trace::blobs(folder.path());
        blobs.put(&png()).unwrap();
        blobs.put(&large_png()).unwrap();
        blobs.put(&gif()).unwrap();
        let contents = blobs.contents();
        (folder, contents)
    })
}

/// The picture that stories have, and one whose bytes they have lost.
pub fn pictures() -> [Part; 2] {
    let picture = Picture::of(&png()).unwrap();
    [png().to_vec(), Vec::new()].map(|bytes| Part::Image { blob: Digest::of(&bytes), picture: picture.clone() })
}

/// A picture of 2048 pixels from left to right.
pub fn large_picture() -> Part {
    Part::Image { blob: Digest::of(&large_png()), picture: Picture::of(&large_png()).unwrap() }
}

/// A picture of a kind that is not taken everywhere.
pub fn gif_picture() -> Part {
    Part::Image { blob: Digest::of(&gif()), picture: Picture::of(&gif()).unwrap() }
}

/// The usual harness, but that two calls of a reply are served.
pub fn frugal() -> Harness {
    static FRUGAL: OnceLock<Harness> = OnceLock::new();
    let made = || {
        let folder = tempfile::tempdir().unwrap();
        for (path, bytes) in Harness::embedded().unwrap().files() {
            let path = folder.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, bytes).unwrap();
        }
        let path = folder.path().join("loop.toml");
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(text.contains("max_calls = 50"));
        std::fs::write(&path, text.replace("max_calls = 50", "max_calls = 2")).unwrap();
        Harness::load(folder.path()).unwrap()
    };
    FRUGAL.get_or_init(made).clone()
}

impl Story {
    /// A run that has begun.
    pub fn begin(limits: Limits, checks: Vec<Check>) -> Story {
        Story::of(started(limits, checks))
    }

    /// A run that has begun so.
    pub fn of(started: Started) -> Story {
        Story::with(Harness::embedded().unwrap(), started)
    }

    /// A run that has begun so, with this harness.
    pub fn with(harness: Harness, started: Started) -> Story {
        let mut story = Story { progress: Progress::new(harness, kept().1.clone()), events: Vec::new() };
        story.note(None, What::Started(Box::new(started)));
        story
    }

    /// Something happened, ten milliseconds after the last event.
    pub fn note(&mut self, cause: Option<Seq>, what: What) -> Seq {
        let seq = Seq(self.events.len() as u64);
        let event = Event { seq, at: Timestamp::from_unix_millis(0), ms: seq.0 * 10, agent: AgentPath::root(), cause, what };
        self.progress.fold(&event);
        self.events.push(event);
        seq
    }

    /// The model said words.
    pub fn said(mut self, text: &str) -> Story {
        self.reply(vec![Said::Text { text: text.into() }], Stop::End);
        self
    }

    /// The model made calls, each `tool arguments`; all have the id `x`.
    pub fn called(mut self, calls: &[&str]) -> Story {
        let call = |call: &&str| {
            let (name, arguments) = call.split_once(' ').unwrap();
            Said::Call { id: "x".into(), name: name.into(), arguments: arguments.into() }
        };
        self.reply(calls.iter().map(call).collect(), Stop::Calls);
        self
    }

    /// There was no usable answer.
    pub fn fault(mut self, class: FaultClass) -> Story {
        let fault = Fault { class, status: None, request_id: None, message: "trouble".into() };
        self.reply(Vec::new(), Stop::Error(fault));
        self
    }

    /// The model answered so.
    pub fn replied(mut self, parts: Vec<Said>, stop: Stop) -> Story {
        self.reply(parts, stop);
        self
    }

    fn reply(&mut self, parts: Vec<Said>, stop: Stop) {
        let usage = Usage { input: 100, output: 10, ..Usage::default() };
        self.note(None, What::Replied(replied(parts, stop, usage)));
    }

    /// The call at `index` of the last reply began.
    pub fn began(mut self, index: usize) -> Story {
        let call = self.progress.open_calls().find(|call| call.id == CallId::new(call.reply, index)).unwrap().clone();
        let arguments = serde_json::from_str(&call.raw).ok();
        let called = Called {
            id: call.id,
            provider_id: call.provider_id,
            tool: call.tool,
            tool_digest: None,
            raw: call.raw,
            arguments,
            grant: None,
            approved_by: None,
        };
        self.note(Some(call.reply), What::Called(called));
        self
    }

    /// The call at `index` of the last reply came to this.
    pub fn observed(self, index: usize, status: Status) -> Story {
        self.told(index, status, "seen")
    }

    /// The call at `index` of the last reply came to this, and the agent was told so.
    pub fn told(mut self, index: usize, status: Status, words: &str) -> Story {
        let call = self.progress.open_calls().find(|call| call.id == CallId::new(call.reply, index)).unwrap().clone();
        self.note(call.called, What::Observed(Observed::words(call.id, status, words)));
        self
    }

    /// The checks said this.
    pub fn verified(mut self, verdict: Verdict) -> Story {
        let passed = verdict == Verdict::Pass;
        let check = CheckResult { command: "true".into(), passed, exit_code: Some(1), timed_out: false, output: "no".into() };
        self.note(None, What::Verified(Verified { verdict, checks: vec![check], misfit: None, took_ms: 1 }));
        self
    }

    /// Something came from outside.
    pub fn delivered(mut self, what: Delivery) -> Story {
        self.note(None, What::Delivered(Delivered { name: String::new(), what }));
        self
    }

    /// A person said something.
    pub fn message(self, text: &str) -> Story {
        self.delivered(Delivery::Message { parts: vec![Part::text(text)] })
    }

    /// The next model of the list took over, as was decided.
    pub fn switched(mut self) -> Story {
        let engine::Next::Switch { at, to } = engine::decide(&self.progress) else { panic!("there is no reason to switch") };
        self.note(at, What::Switched(to));
        self
    }

    /// A later session went on.
    pub fn session(self) -> Story {
        self.delivered(Delivery::Session { text: "new session".into(), model: None, backend: None, terms: None, fallback: None })
    }
}
