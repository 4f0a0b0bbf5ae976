//! What tests may miss on a machine, and the one line that brings it. Nothing is ever installed from here.

/// Component, as tests name it in `skipped: no X`, and what to do.
const REMEDIES: [(&str, &str); 6] = [
    ("git", "apt-get install -y git"),
    ("python3", "apt-get install -y python3"),
    ("unprivileged-user", "run the tests as root"),
    ("namespaces", "cargo run -- doctor"),
    ("landlock", "cargo run -- doctor"),
    ("cgroups", "cargo run -- doctor"),
];

/// What to do about a missing component, in one line.
pub fn remedy(component: &str) -> &'static str {
    let known = REMEDIES.iter().find(|(name, _)| *name == component);
    known.map_or("xtask/src/test/components.rs does not know how to get it", |(_, remedy)| *remedy)
}
