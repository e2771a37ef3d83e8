//! Tests that the arguments are consistent.

use clap::CommandFactory as _;

use super::Arguments;

#[test]
fn the_arguments_are_consistent() {
    Arguments::command().debug_assert();
}
