//! What `doctor` is told about this machine.

use sandbox::{Program, Sandbox, SandboxError};

#[test]
fn every_step_is_tried_and_a_failure_comes_with_a_way_out() {
    let probes = sandbox::probe_with(crate::support::program());
    let names: Vec<&str> = probes.iter().map(|probe| probe.name.as_str()).collect();
    assert_eq!(names, ["bash", "namespaces", "Landlock", "seccomp", "seccomp notification", "control groups"]);
    for probe in probes {
        assert!(!probe.detail.is_empty());
        assert_eq!(probe.ok, probe.fix.is_none(), "{probe:?}");
    }
}

#[test]
fn a_program_that_never_entered_is_refused_with_that_sentence() {
    let Err(error) = Sandbox::start(sandbox::Kind::Native, Program::Current) else { panic!("it was started") };
    assert!(matches!(error, SandboxError::NotEntered));
    let probes = sandbox::probe_native();
    assert!(probes[0].detail.contains("`enter` is not the first statement"), "{probes:?}");
}
