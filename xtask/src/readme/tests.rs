use super::commands;

#[test]
fn only_prompts_in_console_blocks_are_commands() {
    let text = "$ not this\n```console\n$ cargo run\nits output\n$ cargo test\n```\n```rust\n$ nor this\n```\n";
    assert_eq!(commands(text), ["cargo run", "cargo test"]);
}
