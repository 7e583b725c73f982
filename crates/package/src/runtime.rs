//! The Python sources that every package contains. They are the same in all packages; only `tasks.json` differs.

/// Path in the module, and text.
pub(crate) const FILES: [(&str, &str); 14] = [
    ("__init__.py", include_str!("../../../python/environment/__init__.py")),
    ("core.py", include_str!("../../../python/environment/core.py")),
    ("interpreter.py", include_str!("../../../python/environment/interpreter.py")),
    ("judge.py", include_str!("../../../python/environment/judge.py")),
    ("launcher.py", include_str!("../../../python/environment/launcher.py")),
    ("loading.py", include_str!("../../../python/environment/loading.py")),
    ("room.py", include_str!("../../../python/environment/room.py")),
    ("tools.py", include_str!("../../../python/environment/tools.py")),
    ("tree.py", include_str!("../../../python/environment/tree.py")),
    ("v0.py", include_str!("../../../python/environment/v0.py")),
    ("v0_workspace.py", include_str!("../../../python/environment/v0_workspace.py")),
    ("v1.py", include_str!("../../../python/environment/v1.py")),
    ("v1_tools.py", include_str!("../../../python/environment/v1_tools.py")),
    ("workspace.py", include_str!("../../../python/environment/workspace.py")),
];
