//! The program from outside. All these tests are one executable, because linking many takes longer than running them.

mod cli;
mod container;
mod eval;
mod evolve;
mod harbor;
mod harness;
mod judge;
mod library;
mod prime;
mod prime_loop;
mod readers;
mod report;
mod room;
mod run;
mod slurm;
mod web;
