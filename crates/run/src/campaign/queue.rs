//! Chooses the next trial: fairly between agents, within the limits of each model.

use std::collections::{HashMap, VecDeque};

/// Waiting attempts, by agent.
#[derive(Debug)]
pub(super) struct Queue {
    agents: Vec<VecDeque<Waiting>>,
    /// The model of each agent; agents without one are never held back.
    models: Vec<Option<String>>,
    running: HashMap<String, usize>,
    per_model: usize,
    next: usize,
}

/// A waiting attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Waiting {
    /// Its index among the trials of the run.
    pub trial: usize,
    pub attempt: u32,
}

impl Queue {
    /// An empty queue for agents with these models; at most `per_model` trials may use a model at once.
    pub(super) fn new(models: Vec<Option<String>>, per_model: usize) -> Self {
        let agents = models.iter().map(|_| VecDeque::new()).collect();
        Self { agents, models, running: HashMap::new(), per_model, next: 0 }
    }

    /// Adds an attempt after the others of its agent.
    pub(super) fn push(&mut self, agent: usize, waiting: Waiting) {
        self.agents[agent].push_back(waiting);
    }

    /// Adds an attempt before the others of its agent.
    pub(super) fn push_first(&mut self, agent: usize, waiting: Waiting) {
        self.agents[agent].push_front(waiting);
    }

    /// The next attempt: of the next agent in turn whose model is free.
    pub(super) fn pop(&mut self) -> Option<(usize, Waiting)> {
        for offset in 0..self.agents.len() {
            let agent = (self.next + offset) % self.agents.len();
            let free = self.models[agent]
                .as_ref()
                .is_none_or(|model| self.running.get(model).copied().unwrap_or(0) < self.per_model);
            if !free {
                continue;
            }
            if let Some(waiting) = self.agents[agent].pop_front() {
                if let Some(model) = &self.models[agent] {
                    *self.running.entry(model.clone()).or_default() += 1;
                }
                self.next = (agent + 1) % self.agents.len();
                return Some((agent, waiting));
            }
        }
        None
    }

    /// Reports that an attempt of this agent has ended.
    pub(super) fn done(&mut self, agent: usize) {
        if let Some(count) = self.models[agent].as_ref().and_then(|model| self.running.get_mut(model)) {
            *count = count.saturating_sub(1);
        }
    }

    /// All waiting attempts, regardless of the limits of models.
    pub(super) fn drain(&mut self) -> Vec<Waiting> {
        self.agents.iter_mut().flat_map(|waiting| waiting.drain(..)).collect()
    }

    pub(super) fn len(&self) -> usize {
        self.agents.iter().map(VecDeque::len).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waiting(trial: usize) -> Waiting {
        Waiting { trial, attempt: 1 }
    }

    #[test]
    fn agents_take_turns_and_models_have_limits() {
        let model = |name: &str| Some(name.to_owned());
        let mut queue = Queue::new(vec![model("a"), model("b"), model("a"), None], 2);
        for agent in 0..4 {
            for trial in 0..3 {
                queue.push(agent, waiting(agent * 10 + trial));
            }
        }
        let mut taken = Vec::new();
        while let Some((agent, _)) = queue.pop() {
            taken.push(agent);
        }
        assert_eq!(taken, [0, 1, 2, 3, 1, 3, 3], "two of model a, two of b, all without a model");
        assert_eq!(queue.len(), 5);
        queue.done(2);
        queue.push_first(2, waiting(99));
        assert_eq!(queue.pop().unwrap().0, 0, "the next in turn with a free model");
        queue.done(0);
        assert_eq!(queue.pop().unwrap(), (2, waiting(99)));
        assert_eq!(queue.pop(), None);
    }
}
