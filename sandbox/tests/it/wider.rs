//! Environments that differ in their rights: read only, wider, side by side.

use crate::support::{Folders, program, run};
use sandbox::{Access, Environment, EnvironmentSpec, Kind, Sandbox, SandboxError};
use std::path::{Path, PathBuf};
use trace::Grant;

fn entries(folder: &Path) -> Vec<PathBuf> {
    std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect()
}

#[tokio::test]
async fn a_workspace_that_is_only_read_is_not_changed() {
    for kind in [Kind::Native, Kind::Reduced] {
        let folders = Folders::new();
        folders.write("workspace/note", "as it was");
        folders.write("workspace/.git/HEAD", "ref: refs/heads/main\n");
        let spec = EnvironmentSpec { access: Access::Read, ..folders.spec(Grant::default()) };
        let environment = Sandbox::start(kind, program()).unwrap().environment(&spec).await.unwrap();
        let attack = "echo new >note; echo new >other; mkdir folder; mv note moved; rm note; chmod 777 note; echo x >.git/hooks/a; \
                      mount -o remount,rw .; ln note hard; touch note";
        run(&environment, attack).await;
        let kept = run(&environment, "cat note; echo home >~/x && echo tmp >\"$TMPDIR\"/x && echo written").await;
        assert_eq!(kept.output, "as it waswritten\n", "{kind}");
        let mut names: Vec<_> = entries(&folders.workspace());
        names.sort();
        assert_eq!(names, [folders.path("workspace/.git"), folders.path("workspace/note")], "{kind}");
        assert_eq!(entries(&folders.path("workspace/.git")).len(), 1, "{kind}: nothing is put beside HEAD");
        environment.close().await;
    }
}

#[tokio::test]
async fn host_cannot_keep_a_workspace_from_being_written() {
    let folders = Folders::new();
    let spec = EnvironmentSpec { access: Access::Read, ..folders.spec(Grant::default()) };
    let error = Sandbox::start(Kind::Host, program()).unwrap().environment(&spec).await.err().unwrap().to_string();
    assert!(error.ends_with("cannot be read only: the sandbox `host` has no walls to keep it from being written"), "{error}");
}

#[tokio::test]
async fn what_is_wanted_is_resolved_and_what_became_a_link_is_refused() {
    let folders = Folders::new();
    let (real, other) = (folders.write("data/file", "x").parent().unwrap().to_owned(), folders.path("other"));
    std::fs::create_dir(&other).unwrap();
    let link = folders.path("link");
    std::os::unix::fs::symlink(&real, &link).unwrap();
    let spec = EnvironmentSpec { user_home: Some(folders.path("")), ..folders.spec(Grant::default()) };
    let write = |path: &Path| Grant { write: vec![path.to_owned()], ..Grant::default() };
    let resolved = |path: &Path| spec.resolve(&write(path)).map(|grant| grant.write[0].clone());
    let refused = |path: &Path| resolved(path).unwrap_err().to_string();
    assert_eq!(resolved(&link).unwrap(), real);
    assert_eq!(resolved(&real.join("../link/file")).unwrap(), real.join("file"));
    assert_eq!(resolved(Path::new("~/data")).unwrap(), real);
    for (path, words) in [
        (folders.path("missing"), "No such file"),
        ("/".into(), "whole file system"),
        ("/proc/self".into(), "kernel"),
        (folders.path(""), "home folder"),
        (folders.path("run/home"), "never shown"),
        ("/dev/null".into(), "kernel"),
    ] {
        assert!(refused(&path).contains(words), "{}: {}", path.display(), refused(&path));
    }
    // Asked for, agreed on, and exchanged before it is used.
    let asked = resolved(&real).unwrap();
    std::fs::rename(&real, folders.path("away")).unwrap();
    std::os::unix::fs::symlink(&other, &real).unwrap();
    let wider = EnvironmentSpec { grant: write(&asked), ..spec.clone() };
    for kind in [Kind::Native, Kind::Reduced] {
        let error = Sandbox::start(kind, program()).unwrap().environment(&wider).await.err().unwrap().to_string();
        assert!(error.contains("a link leads from it to"), "{error}");
    }
}

#[tokio::test]
async fn what_would_show_a_hidden_folder_once_it_is_made_is_refused() {
    let folders = Folders::new();
    std::fs::create_dir(folders.path("config")).unwrap();
    let (config, secret) = (folders.path("config"), folders.path("config/autosage"));
    let write = Grant { write: vec![config.clone()], ..Grant::default() };
    let read = Grant { read: vec![config.clone()], ..Grant::default() };
    for kind in [Kind::Native, Kind::Reduced] {
        for grant in [&write, &read] {
            let spec = EnvironmentSpec { hidden: vec![folders.path("run"), secret.clone()], ..folders.spec(grant.clone()) };
            let error = Sandbox::start(kind, program()).unwrap().environment(&spec).await.err().unwrap().to_string();
            assert!(error.contains(&format!("it would show {}, which is never shown", secret.display())), "{kind}: {error}");
            assert!(spec.resolve(grant).unwrap_err().to_string().contains("never shown"), "{kind}");
        }
    }
    // Once it is there, nothing stands for it.
    std::fs::create_dir(&secret).unwrap();
    folders.write("config/autosage/config.toml", "model = \"x\"\n");
    let spec = EnvironmentSpec { hidden: vec![folders.path("run"), secret.clone()], ..folders.spec(write) };
    let environment = Sandbox::start(Kind::Native, program()).unwrap().environment(&spec).await.unwrap();
    let attack = format!("echo new >{}/config.toml; echo other >{}/other", secret.display(), config.display());
    run(&environment, &attack).await;
    assert_eq!(std::fs::read_to_string(secret.join("config.toml")).unwrap(), "model = \"x\"\n");
    assert_eq!(std::fs::read_to_string(config.join("other")).unwrap(), "other\n");
    environment.close().await;
}

#[tokio::test]
async fn environments_that_share_names_give_none_twice() {
    let folders = Folders::new();
    let spec = folders.spec(Grant::default());
    let sandbox = Sandbox::start(Kind::Native, program()).unwrap();
    let one = sandbox.environment(&spec).await.unwrap();
    let other = sandbox
        .environment(&EnvironmentSpec { grant: Grant { network: true, ..Grant::default() }, ..spec.clone() })
        .await
        .unwrap();
    for environment in [&one, &other] {
        assert!(run(environment, "sleep 300 & echo started >>~/shared; touch /tmp/shared").await.succeeded());
    }
    let named = async |environment: &Environment| environment.children().await.unwrap().remove(0).name;
    assert_eq!((named(&one).await, named(&other).await), ("c1".to_owned(), "c2".to_owned()));
    assert!(matches!(other.stop("c1").await, Err(SandboxError::NoChild(_))));
    assert_eq!(run(&other, "cat ~/shared").await.output, "started\nstarted\n", "one home for both");
    other.close().await;
    assert_eq!(named(&one).await, "c1", "what runs in one environment does not end with another");
    one.close().await;
}
