"""What Harbor loads for aec-bench: an agent and a progress plugin. Both work under Harbor 0.24 and 0.25."""
