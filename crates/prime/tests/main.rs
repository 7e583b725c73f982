//! Prime from outside: its API, its program, and rollouts of every generation. One executable, because linking takes
//! longer than most tests.

mod real_cli;
mod rollouts;
mod service;
