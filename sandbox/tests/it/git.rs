//! The walls inside repositories: commits work; what git would run or believe outside cannot be written.

use crate::support::{Folders, present, run};
use sandbox::{Environment, Kind};

const IDENTITY: &str = "export GIT_AUTHOR_NAME=n GIT_AUTHOR_EMAIL=e GIT_COMMITTER_NAME=n GIT_COMMITTER_EMAIL=e";

/// Sets repositories up with the host's own git.
async fn prepare(folders: &Folders, text: &str) -> Environment {
    let host = folders.environment(Kind::Host).await.unwrap();
    let ran = run(&host, &format!("set -e; {IDENTITY}; export GIT_CONFIG_GLOBAL=/dev/null; {text}")).await;
    assert!(ran.succeeded(), "{}", ran.output);
    host
}

async fn succeeds(environment: &Environment, text: &str) {
    let ran = run(environment, &format!("{IDENTITY}; {text}")).await;
    assert!(ran.succeeded(), "{text}: {}", ran.output);
}

async fn fails(environment: &Environment, text: &str) {
    let ran = run(environment, text).await;
    assert!(!ran.succeeded(), "{text}: {}", ran.output);
}

/// Ways to make the person's git run or believe something. `G` is the git folder.
const ATTACKS: [&str; 8] = [
    "echo '#!/bin/sh' >G/hooks/pre-commit",
    "mv G/hooks G/h2 && mkdir G/hooks && touch G/hooks/pre-commit",
    "echo '[core] fsmonitor = x' >>G/config",
    "git config -f G/config core.fsmonitor x",
    "rm -f G/config && echo '[core] fsmonitor = x' >G/config",
    "mv G G2 && cp -r G2 G && touch G/hooks/post-checkout && rm -r G/hooks/post-checkout",
    "rm -f G/commondir && mkdir -p evil/objects evil/refs && echo ../evil >G/commondir && rm -f G/commondir",
    "ln -sf evil G/hooks/x && rm G/hooks/x",
];

async fn attack(folders: &Folders, git: &str) {
    for text in ATTACKS {
        let text = text.replace("G2", &format!("{git}2")).replace("G/", &format!("{git}/")).replace("G ", &format!("{git} "));
        // Each does what it is to do where nothing is in its way; on a copy, so that one does not spoil the next.
        let host = folders.environment(Kind::Host).await.unwrap();
        let there = format!("rm -rf ../copy && cp -a . ../copy && cd ../copy && {text}");
        let ran = run(&host, &there).await;
        assert!(ran.succeeded(), "on the host: {text}: {}", ran.output);
        let native = folders.environment(Kind::Native).await.unwrap();
        fails(&native, &text).await;
    }
}

#[tokio::test]
async fn the_repository_of_the_workspace_is_guarded() {
    if !present("git") {
        return;
    }
    let folders = Folders::new();
    prepare(&folders, "git init -q; echo a >f; git add f; git commit -qm one; rm -rf .git/hooks; mkdir .git/hooks").await;
    attack(&folders, ".git").await;
    let environment = folders.environment(Kind::Native).await.unwrap();
    succeeds(&environment, "echo b >>f && git commit -qam two && git branch new && git checkout -q new && git gc -q").await;
    succeeds(
        &environment,
        "git fsck && test -z \"$(git status --porcelain)\" && git log --format=%s | diff - <(echo two; echo one)",
    )
    .await;
}

#[tokio::test]
async fn missing_hooks_cannot_be_made_and_nothing_is_left() {
    if !present("git") {
        return;
    }
    let folders = Folders::new();
    prepare(&folders, "git init -q; rm -rf .git/hooks").await;
    let (one, two) = (folders.environment(Kind::Native).await.unwrap(), folders.environment(Kind::Native).await.unwrap());
    for environment in [&one, &two] {
        fails(environment, "touch .git/hooks/pre-commit").await;
        fails(environment, "echo ../evil >.git/commondir").await;
    }
    let placeholder = folders.path("workspace/.git/commondir");
    one.close().await;
    assert!(placeholder.exists(), "the other environment needs it");
    fails(&two, "rm .git/commondir").await;
    // Dropped, not closed: it is taken away all the same.
    drop(two);
    assert!(!placeholder.exists());
}

#[tokio::test]
async fn the_repository_of_a_worktree_is_guarded() {
    if !present("git") {
        return;
    }
    let folders = Folders::new();
    prepare(&folders, "cd ..; rmdir workspace; git init -q main; cd main; echo a >f; git add f; git commit -qm one; git worktree add -q ../workspace").await;
    let main = folders.path("main");
    let environment = folders.environment(Kind::Native).await.unwrap();
    succeeds(&environment, "echo b >>f && git commit -qam two && test -z \"$(git status --porcelain)\"").await;
    fails(&environment, "echo 'gitdir: evil' >.git").await;
    fails(&environment, "mv .git x").await;
    fails(&environment, &format!("cat {}/f", main.display())).await;
    for file in ["hooks/pre-commit", "config", "commondir", "worktrees/workspace/commondir", "worktrees/workspace/gitdir"] {
        fails(&environment, &format!("echo x >>{}/.git/{file}", main.display())).await;
    }
    let host = folders.environment(Kind::Host).await.unwrap();
    succeeds(&host, "git -C ../main log --all --format=%s | grep -q two").await;
}

#[tokio::test]
async fn a_gitfile_that_was_planted_opens_no_other_repository() {
    if !present("git") {
        return;
    }
    let folders = Folders::new();
    prepare(&folders, "cd ..; git init -q other; echo secret >other/.git/description").await;
    folders.write("workspace/.git", &format!("gitdir: {}/.git\n", folders.path("other").display()));
    let host = folders.environment(Kind::Host).await.unwrap();
    succeeds(&host, "cat \"$(git rev-parse --git-dir)/description\"").await;
    let environment = folders.environment(Kind::Native).await.unwrap();
    fails(&environment, &format!("cat {}/.git/description", folders.path("other").display())).await;
}

#[tokio::test]
async fn repositories_of_submodules_are_guarded() {
    if !present("git") {
        return;
    }
    let folders = Folders::new();
    let add = "git -c protocol.file.allow=always submodule --quiet add ../library vendor/sub";
    let text = format!(
        "cd ..; git init -q library; cd library; touch f; git add f; git commit -qm one; cd ../workspace; git init -q; {add}; git commit -qm all"
    );
    prepare(&folders, &text).await;
    attack(&folders, ".git/modules/vendor/sub").await;
    let environment = folders.environment(Kind::Native).await.unwrap();
    succeeds(&environment, "cd vendor/sub && echo b >>f && git commit -qam two && cd ../.. && git commit -qam sub").await;
    for text in [
        "echo 'gitdir: evil' >vendor/sub/.git",
        "mv vendor/sub/.git x",
        "mv .git/modules .git/m2",
        "mv .git/modules/vendor .git/modules/v2",
    ] {
        fails(&environment, text).await;
    }
}

#[tokio::test]
async fn a_git_folder_that_is_a_link_leads_nowhere_new() {
    let folders = Folders::new();
    folders.write("secret/config", "secret");
    std::os::unix::fs::symlink("../secret", folders.path("workspace/.git")).unwrap();
    let host = folders.environment(Kind::Host).await.unwrap();
    succeeds(&host, "grep secret .git/config").await;
    let environment = folders.environment(Kind::Native).await.unwrap();
    fails(&environment, "grep secret .git/config").await;
}

#[tokio::test]
async fn commits_carry_the_persons_name_and_nothing_else_of_their_configuration() {
    if !present("git") {
        return;
    }
    let folders = Folders::new();
    folders.write("person/.gitconfig", "[user]\n\tname = A \"B\"\n\temail = a@b.c\n[credential]\n\thelper = store\n");
    prepare(&folders, "git init -q; touch f; git add f").await;
    let mut plan = folders.plan(trace::Grant::default());
    plan.user_home = Some(folders.path("person"));
    let environment = sandbox::Sandbox::start(Kind::Native, crate::support::program()).unwrap().environment(&plan).await.unwrap();
    let ran = run(&environment, "git commit -qm one && git log --format='%an <%ae>' && git config --get credential.helper").await;
    assert_eq!(ran.told(), "A B <a@b.c>\nexit 1\n");
}
