"""An environment of engineering tasks, each judged by its own verifier.

`load_environment` is for `verifiers` up to 0.3; later versions find the taskset through `__all__`. Each part is
imported only on demand, because the installed version supports only one of the two.
"""

from __future__ import annotations

from typing import Any

__all__ = ["AecBenchEnv", "AecBenchTaskset", "load_environment"]


def load_environment(
    split: str | None = "train",
    difficulty: str | list[str] | None = None,
    num_examples: int | None = None,
    seed: int | None = None,
    harness: str | None = None,
    **kwargs: Any,
) -> Any:
    """Tasks as a `verifiers` environment; see the package's README for the arguments."""
    from . import v0

    return v0.load_environment(
        {
            "split": split,
            "difficulty": difficulty,
            "num_examples": num_examples,
            "seed": seed,
            "harness": harness,
            **kwargs,
        }
    )


def __getattr__(name: str) -> Any:
    if name not in ("AecBenchEnv", "AecBenchTaskset"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        from . import v1
    except ImportError as error:
        raise AttributeError(f"{name} needs verifiers 0.3.1 or later: {error}") from error
    return getattr(v1, name)
