//! The words every crate shares, and the append-only record they form.
//!
//! A run is a folder: `trace.jsonl` (one event a line, chained and sealed), `blobs/<digest>`, `lock`, `inbox/`.
//! One process owns a run and appends to it ([`Record`]); anyone may read it without a lock ([`Reading`]) and
//! leave something for the owner in its inbox ([`inbox`]). Nothing here knows models, tools or prompts.

mod anew;
mod approval;
mod archive;
mod blobs;
mod budget;
mod call;
mod clock;
mod content;
mod durability;
mod event;
mod folded;
mod glance;
mod grant;
mod ids;
pub mod inbox;
mod line;
mod lock;
mod outcome;
mod picture;
mod read;
mod record;
mod reply;
pub mod secrets;
mod started;

pub use approval::{Answer, ApprovalAsked, Approve, Terms, UnknownWord};
pub use archive::{ArchiveError, Archived, Imported, export, import, is_imported, run_of, vouch};
pub use blobs::{Blobs, Contents};
pub use budget::{Cost, Limits, LongPrice, NanoUsd, Price, Usage};
pub use call::{Called, Child, FileSeen, Observed, Sight, Status, ToolCall};
pub use clock::{Clock, Ids, Millis, Pause, Timestamp};
pub use content::{Part, blobs_of, text_of};
pub use durability::{Durability, UnknownDurability};
pub use event::{Asked, Delivered, Delivery, Event, Granted, Recovered, Switched, Verdict, Verified, What};
pub use folded::{Folded, Method};
pub use glance::{Extent, Glance};
pub use grant::Grant;
pub use ids::{AgentPath, CallId, Digest, RunId, Seq};
pub use line::{Damage, VERSION};
pub use lock::{Held, Owner, hold, owner};
pub use outcome::{Exhausted, Finished, Outcome, Unavailable};
pub use picture::{LARGEST_PICTURE, Picture, PictureError};
pub use read::{Condition, Neighbour, Reading};
pub use record::{Moment, Observer, Record, RecordError, blobs};
pub use reply::{Attempt, Fault, FaultClass, Replied, Said, Stop, Timing};
pub use secrets::Secrets;
pub use started::{
    Check, CheckResult, Facts, HarnessRef, LargeImages, ModelSpec, Program, ProjectFile, Started, Task, ToolSpec, UNKNOWN_WINDOW,
    Unread,
};
