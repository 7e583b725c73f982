"""The worker of `aec-bench eval run`: plays rollouts of installed `verifiers` environments for a parent process."""
