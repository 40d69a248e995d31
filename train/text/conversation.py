"""Conversations, and how the chat template of the model writes them.

CHAT_TEMPLATE is the template in Jinja, which goes into the tokenizer's files. render
does the same, faster; text/check.py holds the two together.
"""

import json
from dataclasses import dataclass, field

TOOLS_INTRO = (
    'To call a tool, answer <tool_call>{"name": NAME, "arguments": {...}}</tool_call>. The tools, one a line:\n'
)

CHAT_TEMPLATE = """\
{%- set first = messages[0] if messages else none -%}
{%- set system = first is not none and first.role in ['system', 'developer'] -%}
{%- if tools -%}
    {{- '<|im_start|>system\\n' -}}
    {%- if system -%}
        {{- first.content + '\\n\\n' -}}
    {%- endif -%}
    {{- 'To call a tool, answer <tool_call>{"name": NAME, "arguments": {...}}</tool_call>. The tools, one a line:\\n' -}}
    {%- for tool in tools -%}
        {{- (tool.function if tool.function is defined else tool) | tojson -}}
        {%- if not loop.last -%}{{- '\\n' -}}{%- endif -%}
    {%- endfor -%}
    {{- '<|im_end|>\\n' -}}
{%- elif system -%}
    {{- '<|im_start|>system\\n' + first.content + '<|im_end|>\\n' -}}
{%- endif -%}
{%- for message in messages -%}
    {%- if loop.first and system -%}
    {%- elif message.role in ['user', 'system', 'developer'] -%}
        {%- set role = 'user' if message.role == 'user' else 'system' -%}
        {{- '<|im_start|>' + role + '\\n' + message.content + '<|im_end|>\\n' -}}
    {%- elif message.role == 'assistant' -%}
        {{- '<|im_start|>assistant\\n' -}}
        {%- if message.content -%}{{- message.content -}}{%- endif -%}
        {%- if message.tool_calls -%}
            {%- for call in message.tool_calls -%}
                {%- set function = call.function if call.function is defined else call -%}
                {{- '<tool_call>{"name": "' + function.name + '", "arguments": ' -}}
                {%- if function.arguments is string -%}{{- function.arguments -}}{%- else -%}{{- function.arguments | tojson -}}{%- endif -%}
                {{- '}</tool_call>' -}}
            {%- endfor -%}
        {%- endif -%}
        {{- '<|im_end|>\\n' -}}
    {%- elif message.role == 'tool' -%}
        {{- '<|im_start|>tool\\n<tool_response>' + message.content + '</tool_response><|im_end|>\\n' -}}
    {%- else -%}
        {{- raise_exception('The roles are system, user, assistant and tool, not ' + message.role) -}}
    {%- endif -%}
{%- endfor -%}
{%- if add_generation_prompt -%}
    {{- '<|im_start|>assistant\\n' -}}
{%- endif -%}
"""


def to_json(value) -> str:
    """JSON as transformers' tojson writes it."""
    return json.dumps(value, ensure_ascii=False)


def system(text: str) -> dict:
    return {"role": "system", "content": text}


def user(text: str) -> dict:
    return {"role": "user", "content": text}


def assistant(text: str) -> dict:
    return {"role": "assistant", "content": text}


def call(name: str, arguments: dict) -> dict:
    """An assistant's message that calls a tool."""
    function = {"name": name, "arguments": arguments}
    return {"role": "assistant", "content": "", "tool_calls": [{"type": "function", "function": function}]}


def response(text: str) -> dict:
    """What came of a call."""
    return {"role": "tool", "content": text}


def call_text(name: str, arguments: dict) -> str:
    """A call as the model writes it."""
    return f'<tool_call>{{"name": "{name}", "arguments": {to_json(arguments)}}}</tool_call>'


def render(messages: list[dict], tools: list[dict] | None = None, prompt: bool = False) -> str:
    """The conversation as the chat template writes it."""
    out = []
    rest = messages
    first = messages[0] if messages and messages[0]["role"] == "system" else None
    if first is not None:
        rest = messages[1:]
    if tools:
        out.append("<|im_start|>system\n")
        if first is not None:
            out.append(first["content"] + "\n\n")
        out.append(TOOLS_INTRO)
        out.append("\n".join(to_json(t["function"]) for t in tools))
        out.append("<|im_end|>\n")
    elif first is not None:
        out.append("<|im_start|>system\n" + first["content"] + "<|im_end|>\n")
    for m in rest:
        role = m["role"]
        if role == "tool":
            out.append("<|im_start|>tool\n<tool_response>" + m["content"] + "</tool_response><|im_end|>\n")
            continue
        out.append("<|im_start|>" + role + "\n" + m["content"])
        for c in m.get("tool_calls", ()):
            out.append(call_text(c["function"]["name"], c["function"]["arguments"]))
        out.append("<|im_end|>\n")
    if prompt:
        out.append("<|im_start|>assistant\n")
    return "".join(out)


@dataclass(slots=True)
class Exchange:
    """A question with its answer, or a few of them that belong together.

    messages end with the answer. must is what a right answer holds: texts, or lists
    of texts of which one is enough, in any case of letters; must_not what it does not.
    exact is the answer itself where only that is right, and data what is right as JSON.
    """

    kind: str
    messages: list[dict]
    must: list = field(default_factory=list)
    must_not: list = field(default_factory=list)
    exact: str | None = None
    data: object = None
    tools: list[dict] | None = None
    held: str = ""  # what of it training never has: "wording", "frame", "pair", or nothing
    flag: str = ""  # and the command that it is about, for what is asked next
    command: str = ""

    def question(self) -> list[dict]:
        """The messages before the answer."""
        return self.messages[:-1]

    def answer(self) -> str:
        """The answer as the model writes it."""
        m = self.messages[-1]
        calls = (call_text(c["function"]["name"], c["function"]["arguments"]) for c in m.get("tool_calls", ()))
        return m["content"] + "".join(calls)


def right(exchange: dict, answer: str) -> bool:
    """Whether an answer is right by the marks of a held-out question."""
    text = " ".join(answer.lower().split())
    if exchange.get("exact") is not None:
        return " ".join(answer.split()) == " ".join(exchange["exact"].split())
    if exchange.get("data") is not None:
        return _same_data(exchange["data"], answer)
    for want in exchange.get("must", ()):
        alternatives = [want] if isinstance(want, str) else want
        if not any(" ".join(a.lower().split()) in text for a in alternatives):
            return False
    return not any(bad.lower() in text for bad in exchange.get("must_not", ()))


def _same_data(want, answer: str) -> bool:
    body = answer.strip()
    if isinstance(want, dict) and set(want) == {"name", "arguments"} and body.startswith("<tool_call>"):
        if not body.endswith("</tool_call>"):
            return False
        body = body.removeprefix("<tool_call>").removesuffix("</tool_call>")
    try:
        return json.loads(body) == want
    except ValueError:
        return False
