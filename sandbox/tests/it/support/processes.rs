//! Processes as the whole machine sees them: marked, looked for, waited for; and programs that are installed or not.

use std::path::Path;
use std::time::Duration;

/// Longer than anything here takes on a loaded machine; a test that meets it fails.
pub const LONG: Duration = Duration::from_secs(60);

/// Whether a process with this command line exists anywhere on the machine.
pub fn is_running(marker: &str) -> bool {
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    entries.map(|entry| entry.path().join("cmdline")).any(|path| cmdline(&path).is_some_and(|line| line.contains(marker)))
}

fn cmdline(path: &Path) -> Option<String> {
    Some(String::from_utf8_lossy(&std::fs::read(path).ok()?).replace('\0', " "))
}

/// A number of seconds for `sleep` that no other test uses, so that its process can be found by it.
pub fn mark() -> String {
    use std::sync::atomic::{AtomicU32, Ordering};
    static NEXT: AtomicU32 = AtomicU32::new(0);
    format!("70{:03}.{}", NEXT.fetch_add(1, Ordering::Relaxed), std::process::id())
}

/// Waits until something holds; fails if it does not within [`LONG`].
pub async fn until(mut holds: impl AsyncFnMut() -> bool) {
    let waited = tokio::time::timeout(LONG, async {
        while !holds().await {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    });
    waited.await.expect("it came to hold in time");
}

/// Whether a program is installed. Where it is not, the test says so and ends, unless `AUTOSAGE_REQUIRE` names it.
pub fn present(program: &str) -> bool {
    let found = ["/usr/bin", "/bin", "/usr/local/bin"].iter().any(|folder| Path::new(folder).join(program).exists());
    if !found {
        #[allow(clippy::disallowed_methods, reason = "the variable is the interface of the test runner")]
        let required = std::env::var("AUTOSAGE_REQUIRE").unwrap_or_default();
        assert!(!required.split([',', ' ']).any(|name| name == program), "{program} is required and missing");
        #[allow(clippy::print_stdout, reason = "what was not tested has to be seen")]
        {
            println!("skipped: no {program}");
        }
    }
    found
}
