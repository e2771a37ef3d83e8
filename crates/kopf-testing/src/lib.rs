//! Engine, embedded server and a controlled clock in three lines: fixtures, faults, torture, assertions.
