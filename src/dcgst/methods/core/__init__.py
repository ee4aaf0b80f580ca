"""What all methods share: settings, problem, self-training state, result, runner."""
