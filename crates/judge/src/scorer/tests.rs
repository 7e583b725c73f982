//! Tests of the scorer as a whole.
