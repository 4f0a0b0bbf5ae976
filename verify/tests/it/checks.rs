//! Checks behind real walls: what passes, what fails, and what stays unjudged.

use crate::room::{CAPS, check, environment};
use expect_test::{Expect, expect};
use trace::{CheckResult, Verdict};

fn told(judged: &(Verdict, Vec<CheckResult>), expected: Expect) {
    let line = |result: &CheckResult| {
        let ending = match (result.timed_out, result.exit_code) {
            (true, _) => "timed out".to_owned(),
            (false, code) => format!("{code:?}"),
        };
        format!("{} {ending} {:?}\n", if result.passed { "passed" } else { "failed" }, result.output)
    };
    expected.assert_eq(&format!("{:?}\n{}", judged.0, judged.1.iter().map(line).collect::<String>()));
}

#[tokio::test]
async fn the_work_is_judged_where_it_lies() {
    let folders = tempfile::tempdir().unwrap();
    let Some(environment) = environment(&folders).await else { return };
    std::fs::write(folders.path().join("workspace/done"), "yes\n").unwrap();
    told(
        &verify::verify(
            &[check("cat done", 60_000), check("test -f done", 60_000)],
            &environment,
            CAPS,
            &trace::Secrets::of_nothing(),
        )
        .await,
        expect![[r#"
        Pass
        passed Some(0) "yes\n"
        passed Some(0) ""
    "#]],
    );
    told(
        &verify::verify(
            &[check("cat done; exit 1", 60_000), check("true", 60_000)],
            &environment,
            CAPS,
            &trace::Secrets::of_nothing(),
        )
        .await,
        expect![[r#"
        Fail
        failed Some(1) "yes\n"
        passed Some(0) ""
    "#]],
    );
    told(
        &verify::verify(&[], &environment, CAPS, &trace::Secrets::of_nothing()).await,
        expect![[r#"
        Pass
    "#]],
    );
}

#[tokio::test]
async fn a_check_that_takes_too_long_is_not_found_or_killed_fails() {
    let folders = tempfile::tempdir().unwrap();
    let Some(environment) = environment(&folders).await else { return };
    let checks = [check("echo begun; sleep 71241", 500), check("nosuchcheck", 60_000), check("kill -9 $$", 60_000)];
    told(
        &verify::verify(&checks, &environment, CAPS, &trace::Secrets::of_nothing()).await,
        expect![[r#"
        Fail
        failed timed out "begun\n"
        failed Some(127) "bash: line 1: nosuchcheck: command not found\n"
        failed None ""
    "#]],
    );
}

#[tokio::test]
async fn a_long_output_is_capped() {
    let folders = tempfile::tempdir().unwrap();
    let Some(environment) = environment(&folders).await else { return };
    told(
        &verify::verify(&[check("seq 100000; false", 60_000)], &environment, CAPS, &trace::Secrets::of_nothing()).await,
        expect![[r#"
        Fail
        failed Some(1) "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\n12\n13\n14\n15\n16\n17\n18\n19\n20\n21\n22\n23\n24\n25\n26\n27\n28\n29\n30\n31\n32\n33\n34\n35\n36\n3\n[… 588,695 bytes left out …]\n84\n99985\n99986\n99987\n99988\n99989\n99990\n99991\n99992\n99993\n99994\n99995\n99996\n99997\n99998\n99999\n100000\n"
    "#]],
    );
}
