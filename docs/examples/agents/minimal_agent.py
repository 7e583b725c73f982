"""A whole agent in one file, with the standard library alone.

It asks its model once, runs the bash blocks of the answer, and lets the model write the output file from what they
printed. Run it with the harness `command`:

    agents:
      - name: minimal
        harness: command
        model: my-model
        parameters:
          command: python3 /agent/docs/examples/agents/minimal_agent.py
          files: [docs/examples/agents/minimal_agent.py]
"""

import json
import os
import re
import subprocess
import urllib.request

MODEL = os.environ["AGENT_MODEL"]
TIMEOUT = int(os.environ.get("AGENT_COMMAND_TIMEOUT", "120"))
INSTRUCTION = os.environ.get("AGENT_INSTRUCTION") or open("/agent/instruction.md", encoding="utf-8").read()


def ask(messages):
    """One call of the model, through the gateway that the harness opened."""
    body = {"model": MODEL, "max_tokens": int(os.environ.get("AGENT_MAX_TOKENS", "16384")), "messages": messages}
    request = urllib.request.Request(
        os.environ["OPENAI_BASE_URL"] + "/chat/completions",
        json.dumps(body).encode(),
        {"authorization": "Bearer " + os.environ["OPENAI_API_KEY"], "content-type": "application/json"},
    )
    with urllib.request.urlopen(request) as answer:
        return json.load(answer)["choices"][0]["message"]["content"]


def run(block):
    """What a block of bash prints."""
    done = subprocess.run(["bash", "-c", block], capture_output=True, text=True, timeout=TIMEOUT, check=False)
    return f"$ {block}{done.stdout}{done.stderr}[exit code: {done.returncode}]\n"


def main():
    messages = [{"role": "user", "content": INSTRUCTION}]
    if os.path.exists("/workspace/system_prompt.md"):
        messages.insert(0, {"role": "system", "content": open("/workspace/system_prompt.md", encoding="utf-8").read()})
    turns = 0
    while turns < int(os.environ.get("AGENT_MAX_TURNS", "10")):
        text = ask(messages)
        turns += 1
        blocks = re.findall(r"```bash\n(.*?)```", text, re.DOTALL)
        if not blocks:
            break
        messages.append({"role": "assistant", "content": text})
        messages.append({"role": "user", "content": "".join(run(block) for block in blocks)})
    with open("/workspace/agent_result.json", "w", encoding="utf-8") as result:
        json.dump({"status": "ok", "model": MODEL, "turns_used": turns}, result)


if __name__ == "__main__":
    main()
