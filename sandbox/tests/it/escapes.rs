//! Ways out. Each is first shown to work without walls, against the same stand-in, and then to fail behind them.

use crate::support::{Folders, LONG, mark, present, run, until};
use sandbox::file::{self, Expected, Read, Write};
use sandbox::{Environment, Kind};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::net::{SocketAddr, UnixListener};
use std::path::{Path, PathBuf};
use trace::Grant;

const WALLED: [Kind; 2] = [Kind::Native, Kind::Reduced];

fn network() -> Grant {
    Grant { network: true, ..Grant::default() }
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

#[allow(clippy::print_stdout, reason = "what was not tested has to be seen")]
fn skipped(why: &str) {
    println!("skipped: {why}");
}

/// Shows that a script succeeds on the host and fails behind walls of these kinds with this grant.
async fn contained(folders: &Folders, kinds: &[Kind], grant: Grant, text: &str) {
    let host = folders.environment(Kind::Host).await.unwrap();
    let ran = run(&host, text).await;
    assert!(ran.succeeded(), "the stand-in does not work: {text}: {}", ran.told());
    for kind in kinds {
        let walled = folders.granted(*kind, grant.clone()).await.unwrap();
        let ran = run(&walled, text).await;
        assert!(!ran.succeeded(), "{kind}: {text}: {}", ran.told());
        assert!(ran.exit.code.is_some_and(|code| code < 125), "{kind}: it was not tried: {}", ran.told());
    }
}

/// A folder at a place where daemons put their sockets, as far as this user may.
fn socket_folder(name: &str) -> tempfile::TempDir {
    let places = ["/run", "/tmp"].iter().find_map(|place| tempfile::Builder::new().prefix(name).tempdir_in(place).ok());
    places.expect("/tmp can be written")
}

const CONNECT: &str = "perl -MSocket -e 'socket(S, AF_UNIX, SOCK_STREAM, 0) or die $!; connect(S, pack_sockaddr_un($ARGV[0] =~ s/^@/\\0/r)) or die $!'";

#[tokio::test]
async fn sockets_of_the_host_are_not_reached() {
    if !present("perl") {
        return;
    }
    for name in ["docker.sock", "agent.4711"] {
        let folder = socket_folder("autosage-test-");
        let path = folder.path().join(name);
        let _listener = UnixListener::bind(&path).unwrap();
        for grant in [Grant::default(), network()] {
            let text = format!("{CONNECT} {}", path.display());
            contained(&Folders::new(), &WALLED, grant, &text).await;
        }
    }
}

#[tokio::test]
async fn abstract_sockets_of_the_host_are_not_reached() {
    if !present("perl") {
        return;
    }
    let name = format!("autosage-test-{}", mark());
    let _listener = UnixListener::bind_addr(&SocketAddr::from_abstract_name(&name).unwrap()).unwrap();
    for grant in [Grant::default(), network()] {
        contained(&Folders::new(), &WALLED, grant, &format!("{CONNECT} @{name}")).await;
    }
}

#[tokio::test]
async fn the_network_is_reached_by_grant_only() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let text = format!(": </dev/tcp/127.0.0.1/{}", listener.local_addr().unwrap().port());
    let folders = Folders::new();
    contained(&folders, &WALLED, Grant::default(), &text).await;
    for kind in WALLED {
        let granted = folders.granted(kind, network()).await.unwrap();
        let ran = run(&granted, &text).await;
        assert!(ran.succeeded(), "{kind}: {}", ran.told());
    }
}

#[tokio::test]
async fn a_server_inside_is_reached_inside() {
    if !present("perl") {
        return;
    }
    let folders = Folders::new();
    let environment = folders.environment(Kind::Native).await.unwrap();
    let serve = "perl -MIO::Socket::INET -e '$s = IO::Socket::INET->new(Listen => 1, LocalAddr => q(127.0.0.1), LocalPort => 8080) or die $!; $s->accept' &";
    assert!(run(&environment, serve).await.succeeded());
    until(async || run(&environment, ": </dev/tcp/127.0.0.1/8080").await.succeeded()).await;
}

#[tokio::test]
async fn records_of_this_and_other_runs_are_not_seen() {
    let folders = Folders::new();
    for name in ["run/trace.jsonl", "other-run/trace.jsonl", "outside/notes"] {
        let path = folders.write(name, "{}");
        contained(&folders, &WALLED, Grant::default(), &format!("cat {}", path.display())).await;
        contained(&folders, &WALLED, Grant::default(), &format!("echo x >>{}", path.display())).await;
    }
    // Not even where the folder around them is granted.
    let around = Grant { read: vec![folders.path("")], ..Grant::default() };
    let path = folders.path("run/trace.jsonl");
    contained(&folders, &WALLED[..1], around.clone(), &format!("cat {}", path.display())).await;
    let refused = folders.granted(Kind::Reduced, around).await.err().unwrap().to_string();
    assert!(refused.contains("never shown"), "{refused}");
    // Nor where it is granted itself, or a part of it.
    for kind in WALLED {
        let inside = Grant { write: vec![folders.path("run")], ..Grant::default() };
        let refused = folders.granted(kind, inside).await.err().unwrap().to_string();
        assert!(refused.contains("never shown"), "{kind}: {refused}");
    }
}

#[tokio::test]
async fn links_lead_nowhere() {
    let folders = Folders::new();
    let secret = folders.write("outside/secret", "s");
    symlink(&secret, folders.path("workspace/file")).unwrap();
    symlink(folders.path("outside"), folders.path("workspace/folder")).unwrap();
    symlink(folders.path("outside/new"), folders.path("workspace/dangling")).unwrap();
    for text in
        ["cat file", "cat folder/secret", "echo x >>file", "echo x >dangling", "echo x >folder/new", "cat /../../$PWD/file"]
    {
        contained(&folders, &WALLED, Grant::default(), text).await;
    }
    for kind in WALLED {
        let environment = folders.environment(kind).await.unwrap();
        for path in ["file", "folder/secret", "../outside/secret"] {
            let ask = Read { path: path.into(), offset: 0, most: 100 };
            assert!(file::read(&environment, &ask, LONG).await.unwrap().is_err(), "{kind}: {path}");
        }
        for path in ["file", "folder/secret", "folder/other", "dangling"] {
            let ask = Write { path: path.into(), expected: Expected::Anything, bytes: b"x".to_vec() };
            assert!(file::write(&environment, &ask, LONG).await.unwrap().is_err(), "{kind}: {path}");
        }
        // What lies beside the workspace is a part of the private `/tmp` here; in `reduced` it cannot be written.
        let ask = Write { path: "../outside/other".into(), expected: Expected::Anything, bytes: b"x".to_vec() };
        assert_eq!(file::write(&environment, &ask, LONG).await.unwrap().is_ok(), kind == Kind::Native);
    }
    assert!(!folders.path("outside/other").exists());
}

#[tokio::test]
async fn what_is_granted_is_seen_and_no_more() {
    let folders = Folders::new();
    let (read, write) = (folders.write("outside/read/f", "r"), folders.write("outside/write/f", "w"));
    let grant =
        Grant { read: vec![folders.path("outside/read")], write: vec![folders.path("outside/write")], ..Grant::default() };
    for kind in WALLED {
        let environment = folders.granted(kind, grant.clone()).await.unwrap();
        let text = format!("cat {} {} && echo x >>{1}", read.display(), write.display());
        assert!(run(&environment, &text).await.succeeded(), "{kind}");
    }
    contained(&folders, &WALLED, grant, &format!("echo x >>{}", read.display())).await;
}

#[tokio::test]
async fn toolchains_of_the_person_are_read_only_and_secrets_unseen() {
    let folders = Folders::new();
    let tool = folders.write("person/.cargo/bin/greet", "#!/bin/sh\necho hello\n");
    std::fs::set_permissions(&tool, std::fs::Permissions::from_mode(0o755)).unwrap();
    folders.write("person/.cargo/registry/index", "cached\n");
    let secrets = [".cargo/credentials.toml", ".ssh/id_ed25519", ".aws/credentials", ".config/gh/hosts.yml", ".netrc"];
    for secret in secrets {
        folders.write(&format!("person/{secret}"), "key\n");
    }
    let mut spec = folders.spec(Grant::default());
    spec.user_home = Some(folders.path("person"));
    for kind in [Kind::Host, Kind::Native, Kind::Reduced] {
        let environment = sandbox::Sandbox::start(kind, crate::support::program()).unwrap().environment(&spec).await.unwrap();
        let person = folders.path("person");
        let ran = run(&environment, &format!("greet && cat {}/.cargo/registry/index", person.display())).await;
        assert_eq!(ran.told(), "hello\ncached\nexit 0\n", "{kind}");
        if kind != Kind::Host {
            assert!(!run(&environment, &format!("echo x >>{}", tool.display())).await.succeeded(), "{kind}");
        }
        for secret in secrets {
            let ran = run(&environment, &format!("cat {}/{secret}", person.display())).await;
            assert_eq!(ran.succeeded(), kind == Kind::Host, "{kind}: {secret}");
        }
        if kind == Kind::Native {
            assert!(
                run(&environment, "echo new >>~/.cargo/registry/index; echo more >~/.cargo/registry/other").await.succeeded()
            );
        }
    }
    assert_eq!(std::fs::read_to_string(folders.path("person/.cargo/registry/index")).unwrap(), "cached\n");
    assert!(!folders.path("person/.cargo/registry/other").exists());
}

/// A process outside every sandbox's walls, and its id.
async fn outsider(folders: &Folders) -> (Environment, String) {
    let host = folders.environment(Kind::Host).await.unwrap();
    let ran = run(&host, &format!("sleep {} >/dev/null & echo $!", mark())).await;
    (host, ran.output.trim().to_owned())
}

#[tokio::test]
async fn processes_outside_are_not_touched() {
    if !present("perl") {
        return;
    }
    let folders = Folders::new();
    let (host, outsider) = outsider(&folders).await;
    contained(&folders, &WALLED, Grant::default(), &format!("kill -0 {outsider}")).await;
    let (attach, detach) = (libc::PTRACE_ATTACH, libc::PTRACE_DETACH);
    let number = libc::SYS_ptrace;
    let trace = format!(
        "perl -e 'syscall({number}, {attach}, $ARGV[0], 0, 0) == 0 or die $!; wait; syscall({number}, {detach}, $ARGV[0], 0, 0)' {outsider}"
    );
    if run(&host, &trace).await.succeeded() {
        contained(&folders, &WALLED, Grant::default(), &trace).await;
    } else {
        skipped("this user may not trace its own processes (yama), so the stand-in does not work");
    }
    let secret = folders.write("outside/secret", "s");
    let root = format!("cat /proc/{outsider}/root{0} || cat /proc/1/root{0} || cat /proc/$PPID/root{0}", secret.display());
    contained(&folders, &WALLED, Grant::default(), &root).await;
    contained(&folders, &WALLED, Grant::default(), &format!("cat /proc/{outsider}/environ /proc/{outsider}/maps")).await;
}

#[tokio::test]
async fn processes_of_the_sandbox_itself_are_not_touched() {
    if !present("perl") {
        return;
    }
    let folders = Folders::new();
    let environment = folders.environment(Kind::Native).await.unwrap();
    let attach = format!("perl -e 'syscall({}, {}, $ARGV[0], 0, 0) == 0 or die $!' 1", libc::SYS_ptrace, libc::PTRACE_ATTACH);
    for text in [
        attach.as_str(),
        "kill -KILL 1; kill -0 1",
        "cat /proc/1/maps",
        "ls /proc/1/root/",
        "readlink /proc/1/fd/0",
        "cat /proc/1/fd/*",
    ] {
        let ran = run(&environment, text).await;
        assert!(!ran.succeeded(), "{text}: {}", ran.told());
    }
    assert!(environment.probe().await);
}

#[tokio::test]
async fn no_command_looks_into_another() {
    let folders = Folders::new();
    let look = |marker: &str| {
        format!(
            "for p in /proc/[0-9]*; do [ $p = /proc/$$ ] || cat $p/environ $p/task/*/environ; done 2>/dev/null | grep -aq {marker}"
        )
    };
    // Without walls it is seen; behind them the variables, as the memory that they lie in, are another command's own.
    for (kind, seen) in [(Kind::Host, true), (Kind::Native, false), (Kind::Reduced, false)] {
        let environment = folders.environment(kind).await.unwrap();
        let long = mark();
        let held = format!("HELD_{}", long.replace('.', "_"));
        let begin = format!("{held}=1 sleep {long} >/dev/null 2>&1 & until grep -aq {held} /proc/$!/environ; do :; done");
        let begun = run(&environment, &begin).await;
        assert!(begun.succeeded(), "{kind}: {}", begun.told());
        assert_eq!(run(&environment, &look(&held)).await.succeeded(), seen, "{kind}");
    }
}

#[tokio::test]
async fn a_debugger_works_inside() {
    if !present("gdb") {
        return;
    }
    let folders = Folders::new();
    let environment = folders.environment(Kind::Native).await.unwrap();
    let ran = run(&environment, "gdb -nx -batch -ex starti -ex bt --args /bin/echo hi 2>&1").await;
    assert!(ran.output.contains("#0"), "{}", ran.output);
}

#[tokio::test]
async fn set_id_programs_give_nothing() {
    if !is_root() {
        return skipped("a set-id program of another user can only be made by root");
    }
    let folders = Folders::new();
    let program = folders.path("workspace/whoami");
    std::fs::copy("/usr/bin/id", &program).unwrap();
    std::os::unix::fs::chown(&program, Some(65534), Some(65534)).unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o4755)).unwrap();
    contained(&folders, &WALLED, Grant::default(), "[ $(./whoami -u) = 65534 ]").await;
}

#[tokio::test]
async fn set_id_programs_are_not_made() {
    let folders = Folders::new();
    std::fs::copy("/usr/bin/id", folders.path("workspace/program")).unwrap();
    for text in ["chmod u+s program", "chmod 0755 program && install -m 4755 program other"] {
        contained(&folders, &WALLED, Grant::default(), text).await;
        std::fs::set_permissions(folders.path("workspace/program"), std::fs::Permissions::from_mode(0o755)).unwrap();
        let _made_on_the_host = std::fs::remove_file(folders.path("workspace/other"));
    }
}

#[tokio::test]
async fn set_group_id_programs_are_not_made_and_folders_are() {
    if !is_root() {
        return skipped("only root can give a file to a group it is not in");
    }
    let folders = Folders::new();
    std::fs::copy("/usr/bin/id", folders.path("workspace/program")).unwrap();
    std::fs::create_dir(folders.path("workspace/shared")).unwrap();
    std::os::unix::fs::chown(folders.path("workspace/shared"), None, Some(65534)).unwrap();
    std::fs::set_permissions(folders.path("workspace/shared"), std::fs::Permissions::from_mode(0o2777)).unwrap();
    for text in [
        "chown root:65534 program; chmod 2755 program; test -g program",
        "chmod 2755 program; chown :65534 program; chmod g+s program; test -g program",
        "cp program shared/program; chmod g+s shared/program; test -g shared/program",
    ] {
        contained(&folders, &WALLED, Grant::default(), text).await;
        std::fs::remove_file(folders.path("workspace/program")).unwrap();
        std::fs::copy("/usr/bin/id", folders.path("workspace/program")).unwrap();
    }
    for kind in WALLED {
        let walled = folders.environment(kind).await.unwrap();
        let text = "set -e; rm -rf shared/in own; mkdir shared/in own; test -g shared/in; chmod g+s own; touch shared/in/f; \
                    [ $(stat -c %g shared/in/f) = 65534 ]; tar -cf - own shared | (mkdir own/copy && tar -xpf - -C own/copy); \
                    test -g own/copy/own; test -f own/copy/shared/in/f";
        let ran = run(&walled, text).await;
        assert!(ran.succeeded(), "{kind}: {}", ran.told());
    }
}

#[tokio::test]
async fn what_the_kernel_tells_root_is_not_read() {
    if !is_root() {
        return skipped("only root is told by the kernel");
    }
    let folders = Folders::new();
    let files = ["iomem", "keys", "kpageflags", "slabinfo", "timer_list", "vmallocinfo"];
    for file in files.iter().map(|name| Path::new("/proc").join(name)).filter(|path| path.exists()) {
        let text = format!("head -c 8 {} | grep -qaz '' ", file.display());
        contained(&folders, &WALLED[..1], Grant::default(), &text).await;
    }
    let native = folders.environment(Kind::Native).await.unwrap();
    let ran =
        run(&native, "cat /proc/{meminfo,cpuinfo,stat,loadavg,uptime,mounts,self/status,sys/kernel/ostype} >/dev/null").await;
    assert!(ran.succeeded(), "{}", ran.told());
}

#[tokio::test]
async fn secrets_of_the_system_are_not_read() {
    if !is_root() {
        return skipped("only root can read the shadow file on the host");
    }
    contained(&Folders::new(), &WALLED, Grant::default(), "grep root /etc/shadow").await;
}

#[tokio::test]
async fn the_system_is_not_changed() {
    if !is_root() {
        return skipped("only root can change the system on the host");
    }
    let folders = Folders::new();
    for text in [
        "touch /etc/autosage-test && rm /etc/autosage-test",
        "touch /usr/autosage-test && rm /usr/autosage-test",
        "v=$(cat /proc/sys/kernel/core_pattern); echo \"$v\" >/proc/sys/kernel/core_pattern",
        "mknod device c 1 3 && rm device",
        "ls /sys/class/net/lo/address && : <>/dev/kmsg",
        "unshare -m true",
        "unshare -Ur true",
        "mkdir -p m && mount -t tmpfs none m && umount m && rmdir m",
        "renice -n -1 $$",
    ] {
        contained(&folders, &WALLED, Grant::default(), text).await;
    }
}

#[tokio::test]
async fn what_a_run_leaves_at_home_does_not_lead_the_next_environment_astray() {
    let folders = Folders::new();
    let outside = folders.path("outside");
    std::fs::create_dir(&outside).unwrap();
    folders.write("person/.cargo/bin/tool", "");
    folders.write("person/go/bin/other", "");
    let mut spec = folders.spec(Grant::default());
    spec.user_home = Some(folders.path("person"));
    symlink(&outside, folders.path("run/home/.cargo")).unwrap();
    folders.write("run/home/go", "a file");
    let next = sandbox::Sandbox::start(Kind::Native, crate::support::program()).unwrap().environment(&spec).await.unwrap();
    let ran = run(&next, "cd && echo .cargo/* && echo go/*").await;
    assert_eq!(ran.told(), ".cargo/bin\ngo/bin\nexit 0\n");
    assert_eq!(entries(&outside), Vec::<PathBuf>::new());
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect()
}
