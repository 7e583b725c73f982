//! `direct`: one prompt, one answer, no tools. The answer is the content of the task's output file.

use aec_judge::settle::order::last_word;
use aec_model::message::{Message, Request, Role};

use super::{End, PreparedAgent, Rollout, TrialContext};

/// Calls the model once.
pub async fn run(context: &mut TrialContext) -> Rollout {
    let instruction = context.task.instruction.clone();
    let system = system_prompt(context.agent.system_prompt.as_deref(), &context.task.output_path);
    context.begin(Some(system), &instruction);
    let request = request(&context.agent, &instruction, &context.task.output_path);
    let rollout = match context.call(&request).await {
        Ok(reply) => {
            let text = reply.text();
            let mut rollout = Rollout::new(End::Done);
            rollout.final_text = last_word(&text, reply.tool_calls().next().is_some()).map(str::to_owned);
            rollout.resolved_model = reply.model;
            rollout
        }
        Err(failure) => Rollout::new(context.failed(failure)),
    };
    rollout.with("turns_used", 1).with("max_turns", 1)
}

/// The one request of an agent.
pub(crate) fn request(agent: &PreparedAgent, instruction: &str, output_path: &str) -> Request {
    let system = system_prompt(agent.system_prompt.as_deref(), output_path);
    Request {
        messages: vec![Message::text(Role::System, system), Message::text(Role::User, instruction)],
        sampling: agent.parameters.sampling.clone(),
        ..Request::default()
    }
}

/// The instructions for this harness. The experiment's own prompt comes first.
pub fn system_prompt(own: Option<&str>, output_path: &str) -> String {
    let note = format!(
        "You have no tools and cannot write files. Your reply is saved as {output_path} exactly as you write it, and that \
         file is what is judged. Reply with the content of the file and nothing else."
    );
    match own {
        Some(own) => format!("{}\n\n{note}", own.trim_end()),
        None => note,
    }
}
