//! What a shell carries on to the next: directory, exported variables, functions.

use crate::support::{Folders, Ran, run, run_command, script};
use expect_test::{Expect, expect};
use sandbox::{Command, Environment, Kind};

/// Runs `first`, and then `second` with what it left.
async fn carried(environment: &Environment, first: &str, second: &str) -> (Ran, Ran) {
    let first = run(environment, first).await;
    let command = Command { cwd: first.exit.cwd.clone().map(Into::into), shell: first.exit.shell.clone(), ..script(second) };
    let second = run_command(environment, &command).await;
    (first, second)
}

async fn check(first: &str, second: &str, expected: Expect) {
    let folders = Folders::new();
    std::fs::create_dir(folders.path("workspace/sub")).unwrap();
    let environment = folders.environment(Kind::Native).await.unwrap();
    let (first, second) = carried(&environment, first, second).await;
    let told = format!("{}cwd {:?}\n{:?}\n{}", first.told(), first.exit.cwd, first.exit.shell, second.told());
    expected.assert_eq(&told.replace(folders.workspace().to_str().unwrap(), "/W"));
}

#[tokio::test]
async fn directory_variables_and_functions_are_carried() {
    check(
        "cd sub; export A='x y\n\"z\"' LC_CTYPE=; B=local; unset CI; greet() { echo \"hello $1\"; }",
        "pwd; echo \"$A|$LC_CTYPE|${B-no}|${CI-unset}\"; greet you",
        expect![[r#"
            exit 0
            cwd Some("/W/sub")
            Some({"A": Some("x y\n\"z\""), "CI": None, "LC_CTYPE": Some(""), "OLDPWD": Some("/W"), "greet()": Some("greet () \n{ \n    echo \"hello $1\"\n}")})
            /W/sub
            x y
            "z"||no|unset
            hello you
            exit 0
        "#]],
    )
    .await;
}

#[tokio::test]
async fn a_script_that_exits_or_fails_is_carried_too() {
    check(
        "set -euo pipefail; export A=1; cd sub; exit 7",
        "echo $A; pwd",
        expect![[r#"
            exit 7
            cwd Some("/W/sub")
            Some({"A": Some("1"), "OLDPWD": Some("/W")})
            1
            /W/sub
            exit 0
        "#]],
    )
    .await;
    check(
        "set -ex; export A=1; false; echo never",
        "echo $A",
        expect![[r#"
            ++ export A=1
            ++ A=1
            ++ false
            exit 1
            cwd Some("/W")
            Some({"A": Some("1")})
            1
            exit 0
        "#]],
    )
    .await;
}

#[tokio::test]
async fn an_own_exit_trap_works_and_is_carried_where_the_script_ends() {
    check(
        "trap 'echo trapped' EXIT; export A=1",
        "echo $A",
        expect![[r#"
            trapped
            exit 0
            cwd Some("/W")
            Some({"A": Some("1")})
            1
            exit 0
        "#]],
    )
    .await;
    check(
        "trap 'echo trapped' EXIT; export A=1; exit 4",
        "echo ${A-lost}",
        expect![[r#"
            trapped
            exit 4
            cwd None
            None
            lost
            exit 0
        "#]],
    )
    .await;
}

#[tokio::test]
async fn a_shell_that_is_replaced_leaves_nothing() {
    check(
        "cd sub; exec echo replaced",
        "pwd",
        expect![[r#"
            replaced
            exit 0
            cwd None
            None
            /W
            exit 0
        "#]],
    )
    .await;
}

#[tokio::test]
async fn a_folder_that_is_gone_is_said() {
    check(
        "mkdir gone; cd gone; rmdir ../gone",
        "pwd",
        expect![[r#"
            exit 0
            cwd Some("/W/gone")
            Some({"OLDPWD": Some("/W")})
            bash: cd: /W/gone: No such file or directory (os error 2); now in /W
            /W
            exit 0
        "#]],
    )
    .await;
}

#[tokio::test]
async fn a_fresh_shell_leaves_nothing_to_carry() {
    check(
        ":",
        "declare -F | wc -l; set -- a b; echo $#; (exit 3); echo $?; echo $0",
        expect![[r#"
            exit 0
            cwd Some("/W")
            Some({})
            1
            2
            3
            bash
            exit 0
        "#]],
    )
    .await;
}

#[tokio::test]
async fn strange_shells_are_carried() {
    check(
        "IFS=:; set -f -u; printf() { :; }; export -f printf; exec >/dev/null; export A=$'*\\n\\e[1m\\'\\\\\"$'",
        "echo \"$A\" | cat -v; declare -F printf; bash -c 'declare -F printf'",
        expect![[r#"
            exit 0
            cwd Some("/W")
            Some({"A": Some("*\n\u{1b}[1m'\\\"$"), "printf()": Some("printf () \n{ \n    :\n}\ndeclare -fx printf")})
            *
            ^[[1m'\"$
            printf
            printf
            exit 0
        "#]],
    )
    .await;
}

#[tokio::test]
async fn too_much_to_carry_leaves_the_directory_only() {
    let folders = Folders::new();
    let environment = folders.environment(Kind::Native).await.unwrap();
    let ran = run(&environment, "for i in 1 2 3 4; do export BIG$i=$(head -c 100000 /dev/zero | tr '\\0' x); done").await;
    assert_eq!(ran.exit.code, Some(0));
    assert_eq!(ran.exit.cwd.as_deref(), folders.workspace().to_str());
    assert_eq!(ran.exit.shell, None);
    assert_eq!(ran.output, "[not carried to the next call: exported variables and functions are too large together]\n");
    // Just below the limit it is carried, though larger than what fits a message.
    let (first, second) = carried(&environment, "export BIG=$(head -c 100000 /dev/zero | tr '\\0' x)", "echo ${#BIG}").await;
    assert_eq!(first.exit.shell.unwrap()["BIG"].as_ref().unwrap().len(), 100_000);
    assert_eq!(second.told(), "100000\nexit 0\n");
}

#[tokio::test]
async fn a_variable_that_no_program_could_be_started_with_is_not_carried_and_that_is_said() {
    let folders = Folders::new();
    let environment = folders.environment(Kind::Native).await.unwrap();
    for size in [128 * 1024 - "X=".len(), 300_000, 9_000_000] {
        let first = format!("export X Y=kept; printf -v X %{size}s; cd /");
        let (first, second) = carried(&environment, &first, "echo ${X-unset} ${Y-unset}; pwd").await;
        let (said, carried) = match size {
            9_000_000 => ("exported variables and functions are too large together", "unset"),
            _ => ("X is too large", "kept"),
        };
        assert_eq!(first.output, format!("[not carried to the next call: {said}]\n"), "{size}");
        assert_eq!(second.told(), format!("unset {carried}\n/\nexit 0\n"), "{size}");
    }
    // The largest that fits.
    let (first, second) = carried(&environment, "export X; printf -v X %131069s", "echo ${#X}; true | cat").await;
    assert_eq!((first.told().as_str(), second.told().as_str()), ("exit 0\n", "131069\nexit 0\n"));
    // A state of an older record may hold what does not fit.
    let state = [("X".to_owned(), Some("x".repeat(200_000)))].into();
    let command = Command { shell: Some(state), ..script("echo ${X-unset}") };
    assert_eq!(run_command(&environment, &command).await.told(), "unset\nexit 0\n");
}

#[tokio::test]
async fn what_is_carried_stays_the_same_from_shell_to_shell() {
    let folders = Folders::new();
    let environment = folders.environment(Kind::Native).await.unwrap();
    let values = [
        "",
        " ",
        "a=b",
        "\"",
        "'",
        "\\",
        "$HOME `id` $(id)",
        "two\nlines\n",
        "\ttab\r\u{7f}\u{1b}[0m",
        "größer ☃ 🦀",
        "!#~*?[",
        "\\n\\101",
    ];
    let mut state: std::collections::BTreeMap<String, Option<String>> =
        values.iter().enumerate().map(|(number, value)| (format!("V{number}"), Some(value.to_string()))).collect();
    state.insert("PAGER".to_owned(), None);
    state.insert("f()".to_owned(), Some("f () \n{ \n    echo \"a\nb\"\n}".to_owned()));
    for _ in 0..2 {
        let command = Command { shell: Some(state.clone()), ..script(":") };
        assert_eq!(run_command(&environment, &command).await.exit.shell.unwrap(), state);
    }
}
