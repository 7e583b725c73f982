//! Model calls.
