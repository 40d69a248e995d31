"""Command lines made of several flags: written from what is wanted, and explained."""

from random import Random

from . import names
from .conversation import Exchange, assistant, user
from .grammar import fill, held_pair, literal, pick, split
from .noise import noisy
from .pools import made_up

_MODELS = (
    "model.gguf", "./Qwen3-0.6B", "llama-3.2-1b-Q4_K_M.gguf", "qwen2.5-1.5b.gguf", "mistral-7b-Q8_0.gguf", "small.gguf", "./llama-3.1-8b",
    "my-model.gguf", "hf:org/repo:Q4_K_M", "hf:Qwen/Qwen3-0.6B-GGUF:Q8_0", "ollama:llama3.2:1b", "demo", "qwen3-8b-Q4_K_M.gguf", "./models/tiny", "chat.gguf", "8b.gguf", "model.safetensors", "./Qwen3-8B", "test.gguf",
)  # fmt: skip
_PROMPTS = (
    "Hello", "Why is the sky blue?", "Tell me a story.", "Name a colour.", "What is a token?", "Write a poem.", "Say hello in French.",
    "What is 2 + 2?", "Who are you?", "Explain gravity.", "Count to ten.", "Give me three names.",
)  # fmt: skip


# Numbers that a wish may have beside those in the tables.
_RANGES = {
    "--port": (1024, 65535), "--seed": (0, 9999), "--max-tokens": (5, 2000), "--threads": (1, 64), "--requests": (20, 5000), "--max-queue": (1, 5000),
    "--top-k": (2, 200), "--parallel": (2, 200), "--concurrency": (2, 500), "--rate": (1, 90), "--stride": (32, 2000), "--min-tokens": (2, 90),
    "--prompt": (16, 4000), "--tokens": (16, 999), "--depth": (64, 20000), "--runs": (2, 30), "--n": (2, 12), "--context": (256, 65536),
}  # fmt: skip


def _value(rng: Random, flag: str, choices: tuple[str, ...]) -> str:
    if flag in _RANGES and rng.random() < 0.4:
        return str(rng.randint(*_RANGES[flag]))
    return pick(rng, choices)


def _model(rng: Random) -> str:
    if rng.random() < 0.6:
        return pick(rng, _MODELS)
    name = made_up(rng)
    size = pick(rng, ("1b", "7b", "0.5b", "3b", "8b", "0.6b", "1.5b", "13b"))
    shape = pick(rng, ("{}.gguf", "{}-{}.gguf", "./{}-{}", "{}-{}-Q4_K_M.gguf", "{}-{}-Q8_0.gguf", "./models/{}", "~/{}.gguf", "/data/{}-{}", "{}_{}.gguf"))
    return shape.format(name, size)


# For each flag: how a wish says it, with <v> for the value, how an explanation says it, and the values.
_RUN = {
    "--temperature": (["{with |at |}{a |}temperature {of |}<v>", "temperature <v>", "the temperature {set to|at} <v>"], "at a temperature of <v>", ("0.7", "0.5", "1", "0", "0.2", "0.9", "1.2", "0.8", "0.3", "0.6", "1.5")),
    "--max-tokens": (["{with |}at most <v> tokens", "no more than <v> tokens", "a limit of <v> tokens", "{an answer of |}<v> tokens at most", "max <v> tokens", "stop after <v> tokens"], "with at most <v> tokens", ("100", "64", "50", "200", "32", "500", "20", "256", "10", "128", "1000")),
    "--min-tokens": (["at least <v> tokens", "no fewer than <v> tokens", "a minimum of <v> tokens"], "with at least <v> tokens", ("10", "20", "50", "100", "30")),
    "--top-k": (["top-k <v>", "{choosing |}among the <v> likeliest tokens", "a top-k of <v>", "top k set to <v>"], "among the <v> likeliest tokens", ("40", "20", "50", "10", "5", "100")),
    "--top-p": (["top-p <v>", "a top-p of <v>", "nucleus sampling {with|at} <v>"], "with top-p <v>", ("0.9", "0.95", "0.8", "0.5")),
    "--min-p": (["min-p <v>", "a min-p of <v>"], "with min-p <v>", ("0.05", "0.1", "0.02")),
    "--seed": (["seed <v>", "with {the |a |}seed {of |}<v>", "{the |}seed set to <v>"], "with the seed <v>", ("7", "42", "1", "123", "2025", "99", "5", "17")),
    "--n": (["<v> answers", "<v> {alternatives|versions|different answers}"], "<v> times", ("2", "3", "4", "5", "8")),
    "--repetition-penalty": (["a repetition penalty of <v>", "repetition penalty <v>"], "with a repetition penalty of <v>", ("1.1", "1.2", "1.05", "1.3")),
    "--presence-penalty": (["a presence penalty of <v>", "presence penalty <v>"], "with a presence penalty of <v>", ("0.5", "0.3", "1")),
    "--frequency-penalty": (["a frequency penalty of <v>", "frequency penalty <v>"], "with a frequency penalty of <v>", ("0.5", "0.3", "1")),
    "--json-schema": (["{constrained |}by the {JSON |}schema <v>", "{with |}the schema <v>", "JSON of the schema <v>"], "constrained by the JSON Schema in <v>", ("schema.json", "person.json", "book.json", "list.json")),
    "--regex": (["matching <v>", "{with |}the regular expression <v>", "{with |}the regex <v>"], "matching the regular expression <v>", ("'[0-9]+'", "'yes-no'", "'[a-z]+'", "'[0-9]{4}'")),
    "--grammar": (["{constrained |}by the grammar <v>", "{with |}the grammar <v>"], "constrained by the grammar in <v>", ("list.gbnf", "chess.gbnf", "date.lark")),
    "--tools": (["with the tools in <v>", "{with |}tools from <v>"], "with the tools in <v>", ("tools.json", "functions.json")),
    "--json": (["as JSON", "JSON output", "the output in JSON", "in JSON"], "as JSON", ("",)),
    "--verbose": (["with timings", "showing timings", "verbose", "and tell me how long it took"], "reporting timings and the seed", ("",)),
    "--raw": (["without {the|a} chat template", "raw", "as a raw continuation"], "without the chat template", ("",)),
}  # fmt: skip
_MODEL = {
    "--device": (["on <v>", "on device <v>"], "on <v>", ("cuda", "cpu", "cuda:1")),
    "--threads": (["{with |using |on |}<v> threads", "<v> cores"], "with <v> threads", ("2", "4", "8", "16", "6", "12")),
    "--context": (["a context of <v>{ tokens|}", "context <v>", "{with |}room for <v> tokens{ of context|}", "a <v> token context"], "with a context of <v> tokens", ("2048", "4096", "8192", "1024", "16384", "32768")),
    "--kv-cache": (["{a|the} KV cache in <v>", "kv cache <v>", "the cache as <v>"], "with the cache in <v>", ("q8", "f8", "f16", "f32")),
    "--memory": (["at most <v> of memory", "a memory limit of <v>", "no more than <v> of memory", "memory <v>"], "within <v> of memory", ("8GiB", "4GiB", "2GiB", "16GiB", "32GiB")),
    "--gpu-memory": (["at most <v> of {GPU memory|VRAM|the GPU's memory}", "GPU memory <v>", "<v> of VRAM"], "within <v> of GPU memory", ("8GiB", "16GiB", "24GiB", "40GiB", "0.5", "0.9")),
    "--stream-weights": (["stream weights <v>", "{with |}weights streamed <v>"], "with weights streamed <v>", ("always", "never")),
    "--speculative": (["{with |}speculative decoding <v>", "speculative <v>"], "with speculative decoding <v>", ("off", "suffix", "auto")),
    "--parallel": (["<v> running requests", "<v> in parallel", "up to <v> at once", "parallel <v>"], "with at most <v> running requests", ("4", "8", "16", "32", "64", "128")),
    "--activations": (["{with |}<v> activations", "activations {in |}<v>"], "with <v> activations", ("f32", "f8")),
    "--kv-host": (["<v> of host memory for the cache", "a host cache of <v>"], "with <v> of host memory for the cache", ("4GiB", "8GiB", "16GiB")),
}  # fmt: skip
_SERVE = {
    "--port": (["on port <v>", "port <v>", "listening on port <v>"], "on port <v>", ("9000", "80", "3000", "8000", "5000", "8081", "1234", "0", "443", "8888")),
    "--host": (["on {the |}{host |address |}<v>", "listening on <v>", "reachable at <v>"], "at the address <v>", ("0.0.0.0", "192.168.1.5", "10.0.0.7", "127.0.0.1")),
    "--served-model-name": (["under the name <v>", "named <v>", "{called|as} <v>"], "under the name <v>", ("small", "assistant", "gpt-4", "helper", "main", "bot")),
    "--api-key-file": (["with the keys in <v>", "API keys from <v>", "keys from <v>"], "requiring the keys in <v>", ("keys.txt", "secrets.txt", "/etc/keys")),
    "--ollama-port": (["{and |}Ollama's port <v>", "a second port <v> for Ollama"], "with <v> as a second port for clients of Ollama", ("11434",)),
    "--keep-alive": (["unloading {idle |}models after <v>", "a keep-alive of <v>"], "unloading idle models after <v>", ("5m", "10m", "30m", "1h")),
    "--lenient": (["lenient", "ignoring unknown fields"], "ignoring unknown fields", ("",)),
    "--pull": (["and pull it first", "pulling it first"], "pulling the model first if needed", ("",)),
    "--no-ui": (["without {the|a} {web |}page", "with no {web |}page"], "without a web page", ("",)),
    "--first-token-timeout": (["at most <v> to the first token", "a first token timeout of <v>"], "with at most <v> to the first token", ("10s", "30s", "1m")),
    "--max-queue": (["a queue of {at most |}<v>", "at most <v> waiting", "no more than <v> in the queue"], "with a queue of at most <v>", ("100", "10", "50", "500")),
    "--cors": (["open to pages of <v>", "CORS for <v>"], "open to scripts of <v>", ("https://example.org", "https://app.example.com", "*")),
    "--log": (["logs as <v>", "a <v> log", "log format <v>"], "with the log as <v>", ("json", "none", "text")),
    "--request-timeout": (["a request timeout of <v>", "requests limited to <v>", "at most <v> per request"], "with at most <v> for a request", ("10m", "1m", "30s", "5m", "2m")),
    "--drain-timeout": (["a drain timeout of <v>", "<v> to drain", "<v> for draining"], "with <v> for draining", ("10s", "1m", "2m", "5s")),
    "--max-body": (["requests of at most <v>", "bodies up to <v>"], "with requests of at most <v>", ("1MiB", "8MiB", "64MiB")),
}  # fmt: skip
_BENCH = {
    "--prompt": (["a prompt of <v>{ tokens|}", "prompts of <v> tokens"], "with a prompt of <v> tokens", ("256", "1024", "0", "128")),
    "--tokens": (["decoding <v> tokens", "<v> tokens of decode"], "decoding <v> tokens", ("64", "256", "512", "32")),
    "--depth": (["after <v> tokens", "at a depth of <v>", "depth <v>"], "after <v> tokens", ("8192", "4096", "1024", "2048")),
    "--runs": (["<v> runs", "repeated <v> times"], "with <v> runs", ("5", "10", "3", "7")),
    "--batch": (["batches of <v>", "batch sizes <v>", "<v> sequences at one time"], "with <v> sequences at one time", ("1,4,16", "8", "1,8", "16", "2,4")),
    "--json": (["as JSON", "JSON output"], "as JSON", ("",)),
}  # fmt: skip
_BENCH_SERVE = {
    "--concurrency": (["{with |}<v> {requests|users} at once", "<v> running requests", "a concurrency of <v>", "concurrency <v>"], "with <v> running requests", ("64", "8", "32", "100", "4")),
    "--requests": (["<v> requests{ in all|}", "sending <v> requests"], "with <v> requests", ("1000", "500", "10000", "200")),
    "--rate": (["<v> requests {a|per} second", "a rate of <v>"], "at <v> requests per second", ("5", "10", "2", "20", "50")),
    "--duration": (["for <v>", "lasting <v>", "a duration of <v>"], "for <v>", ("2m", "30s", "5m", "10m", "1m")),
    "--prompt-tokens": (["prompts of <v> tokens", "prompt tokens <v>"], "with prompts of <v> tokens", ("256", "512", "uniform:64:256", "lognormal:200:0.8")),
    "--answer-tokens": (["answers of <v> tokens", "answer tokens <v>"], "with answers of <v> tokens", ("128", "64", "256", "uniform:32:128")),
    "--svg": (["a plot in <v>", "plotting <v>", "a picture in <v>"], "with a plot in <v>", ("load.svg", "plot.svg", "out.svg")),
    "--json": (["results in <v>", "JSON in <v>"], "with the results in <v>", ("results.json", "out.json")),
    "--seed": (["seed <v>"], "with the seed <v>", ("7", "42", "1")),
    "--sweep": (["sweeping <v>", "a sweep of <v>"], "with a sweep of <v>", ("concurrency", "rate")),
    "--slo": (["an SLO of <v>", "counting answers within <v>"], "counting answers within <v>", ("ttft=500ms", "ttft=500ms,itl=50ms", "e2e=10s")),
    "--model": (["for the model <v>", "asking for model <v>"], "for the model <v>", ("small", "assistant", "main")),
}  # fmt: skip
_INSPECT = {
    "--context": (["a context of <v>{ tokens|}", "context <v>"], "for a context of <v> tokens", ("4096", "32768", "8192", "2048")),
    "--parallel": (["<v> running requests", "parallel <v>"], "for <v> running requests", ("8", "4", "16", "32")),
    "--device": (["on <v>", "for device <v>"], "for <v>", ("cuda", "cpu", "cuda:1")),
    "--kv-cache": (["the cache in <v>", "kv cache <v>"], "with the cache in <v>", ("q8", "f8", "f16", "f32")),
    "--tensors": (["with {the|all} tensors", "listing the tensors"], "listing the tensors", ("",)),
    "--metadata": (["with the metadata", "showing the metadata"], "listing the metadata", ("",)),
    "--plan": (["with the plan", "showing the plan"], "showing the plan", ("",)),
    "--json": (["as JSON", "JSON output"], "as JSON", ("",)),
}  # fmt: skip
_EVAL = {
    "--stride": (["a stride of <v>", "stride <v>"], "with a stride of <v>", ("256", "512", "128")),
    "--against": (["against <v>", "compared with <v>"], "against <v>", ("f16.gguf", "original.gguf", "./Qwen3-0.6B")),
    "--json": (["as JSON", "JSON output"], "as JSON", ("",)),
    "--context": (["a context of <v>{ tokens|}", "context <v>"], "with a context of <v> tokens", ("1024", "2048", "4096")),
    "--threads": (["{with |}<v> threads"], "with <v> threads", ("2", "4", "8")),
    "--device": (["on <v>"], "on <v>", ("cuda", "cpu")),
}  # fmt: skip

# Command: flags, what is wanted, what an explanation says, weight.
_KINDS = {
    "run": ({**_RUN, **_MODEL}, ["run <m>", "ask <m> <p>", "run <m> with the prompt <p>", "start <m>", "give <p> to <m>", "answer <p> with <m>"], "answers <p> with <m>", 5),
    "serve": ({**_SERVE, **_MODEL}, ["serve <m>", "{start|run} a server for <m>", "serve <m> over HTTP", "host <m>", "start the server with <m>"], "serves <m>", 4),
    "bench": ({**_BENCH, **{k: _MODEL[k] for k in ("--device", "--threads", "--kv-cache", "--activations")}}, ["bench <m>", "benchmark <m>", "measure the speed of <m>"], "measures the speed of <m>", 2),
    "bench serve": (_BENCH_SERVE, ["load test {the server|my server}", "bench the server", "measure the server{ at http://127.0.0.1:8080|}"], "measures the server", 2),
    "inspect": (_INSPECT, ["inspect <m>", "see what <m> holds", "describe <m>"], "describes <m>", 2),
    "eval": (_EVAL, ["eval <m> on <t>", "measure <m> on <t>", "perplexity of <m> on <t>", "evaluate <m> with the text <t>"], "measures how well <m> predicts <t>", 2),
}  # fmt: skip
# A phrase that begins so needs no "with".
_OWN_WORD = (
    "on ", "with ", "by ", "matching ", "constrained ", "ignoring ", "unloading ", "pulling ", "plotting ", "sweeping ", "counting ", "lenient", "verbose", "at ", "for ", "as ", "in ", "against ", "compared ", "showing ", "listing ", "after ", "up ", "listening ", "under ", "reachable ",
    "named ", "called ", "without ", "using ", "lasting ", "drawing ", "sending ", "asking ", "open ", "stop ", "and ", "repeated ", "choosing ", "decoding ",
)  # fmt: skip
_BAG = [k for k, v in _KINDS.items() for _ in range(v[3])]
_TEXTS = ("book.txt", "text.txt", "wiki.txt", "news.txt", "test.txt")

_WISH = [
    "{give me|write|show me} {the|a} command to <w>", "how do I <w>?", "what is the command to <w>?", "command line to <w>", "<w>", "I want to <w>", "what do I type to <w>?",
    "please write a command line to <w>", "I need to <w>. what is the command?", "what would the command be to <w>?", "how can I <w>?", "the command line to <w>, please",
    "can you give me the command line to <w>?", "build me a command: <w>", "help me to <w>", "I'd like to <w>", "make a command to <w>", "show the full command to <w>",
    "what must I write to <w>?", "write this as a realizar command: <w>", "which command line do I need to <w>?", "how would I <w>?", "turn this into a command line: <w>",
]  # fmt: skip
_EXPLAIN = [
    "what does <l> do?", "explain <l>", "{please |}explain the command <l>", "what happens with <l>?", "what is the meaning of <l>?", "what would <l> do?", "<l>: what is that?",
    "can you explain <l> to me?", "I found <l> in a script. what does it do?", "describe what <l> does", "tell me what <l> does", "what will happen if I type <l>?",
    "read this for me: <l>", "<l>", "a colleague sent me <l>. what does it do?", "explain this command line: <l>",
]  # fmt: skip
_WISH_TRAIN, _WISH_HELD = split(_WISH)
_EXPLAIN_TRAIN, _EXPLAIN_HELD = split(_EXPLAIN)


# Flags that are not given together.
_APART = (
    ("--n", "--json"), ("--json-schema", "--regex", "--grammar", "--tools", "--min-tokens"), ("--raw", "--tools"), ("--rate", "--sweep", "--duration", "--requests"),
    ("--sweep", "--concurrency"),
)  # fmt: skip


def _choose(rng: Random, command: str) -> list[str]:
    known = list(_KINDS[command][0])
    count = pick(rng, (1, 1, 2, 2, 2, 3, 3, 4))
    flags: list[str] = []
    for _ in range(count):
        flag = pick(rng, known)
        if flag in flags or any(flag in group and other in group for group in _APART for other in flags):
            continue
        flags.append(flag)
    return flags


def _is_held(command: str, flags: list[str]) -> bool:
    return len(flags) > 1 and held_pair(command, *sorted(flags))


def _build(rng: Random, command: str, flags: list[str]) -> tuple[str, dict[str, str], str, str]:
    """The wish, what stands in it for names and values, the command line, and what an explanation says."""
    rows, wishes, says, _ = _KINDS[command]
    model, text = _model(rng), pick(rng, _TEXTS)
    if command in ("inspect", "bench", "eval") and model == "demo":
        model = "model.gguf"
    quoted = f'"{pick(rng, _PROMPTS)}"'
    wish = pick(rng, wishes)
    line = f"realizar {command}"
    if command == "bench serve":
        line += " http://127.0.0.1:8080"
    else:
        line += f" {model}"
    if command == "run":
        line += f" {quoted if '<p>' in wish else chr(34) + 'Hello' + chr(34)}"
    if command == "eval":
        line += f" --text {text}"
    prompt = quoted if "<p>" in wish else '"Hello"'
    asked = fill(wish, rng, m="\x01", p="\x02", t="\x03")
    parts, told = [], []
    values: list[str] = []
    for flag in flags:
        phrases, explain, choices = rows[flag]
        value = _value(rng, flag, choices)
        if flag == "--cors" and value == "*":
            line += " --cors '*'"
        else:
            line += f" {flag} {value}".rstrip()
        values.append(value)
        parts.append(fill(pick(rng, phrases), rng, v=chr(4 + len(values))))
        told.append(explain.replace("<v>", value))
    if parts:
        joined = parts[0]
        for i, part in enumerate(parts[1:], 1):
            joined += (" and " if i == len(parts) - 1 else ", ") + part
        first = pick(rng, (" with ", ", ", " ")) if not parts[0].startswith(_OWN_WORD) else " "
        asked += first + joined
    marks = {"\x01": model, "\x02": prompt, "\x03": text, **{chr(4 + i): v for i, v in enumerate(values, 1)}}
    explanation = says.replace("<m>", model).replace("<p>", prompt).replace("<t>", text)
    if told:
        explanation += " " + (", ".join(told[:-1]) + " and " + told[-1] if len(told) > 1 else told[0])
    return asked, marks, line, f"It {explanation}."


def _unmark(text: str, marks: dict[str, str]) -> str:
    for mark, value in marks.items():
        text = text.replace(mark, value)
    return text


def write_line(rng: Random) -> Exchange:
    """A command line from what is wanted."""
    command = pick(rng, _BAG)
    flags = _choose(rng, command)
    while _is_held(command, flags):
        flags = _choose(rng, command)
    wish, marks, line, _ = _build(rng, command, flags)
    names.check(line)
    question = _unmark(noisy(rng, fill(pick(rng, _WISH_TRAIN), rng, w=literal(wish))), marks)
    return Exchange("command lines", [user(question), assistant(f"`{line}`")])


def explain_line(rng: Random) -> Exchange:
    """A command line explained."""
    command = pick(rng, _BAG)
    flags = _choose(rng, command)
    while _is_held(command, flags):
        flags = _choose(rng, command)
    _, _, line, says = _build(rng, command, flags)
    shown = f"`{line}`" if rng.random() < 0.7 else line
    question = noisy(rng, fill(pick(rng, _EXPLAIN_TRAIN), rng, l="\x01")).replace("\x01", shown)
    return Exchange("command lines", [user(question), assistant(says)])


def held(rng: Random, count: int) -> list[Exchange]:
    """Command lines for the trained model: half to write, half to explain."""
    out: list[Exchange] = []
    while len(out) < count:
        command = pick(rng, _BAG)
        flags = _choose(rng, command)
        is_held = _is_held(command, flags)
        if not is_held and rng.random() < 0.6:
            continue
        wish, marks, line, says = _build(rng, command, flags)
        if len(out) % 2:
            frames = _WISH_TRAIN if is_held else _WISH_HELD or _WISH_TRAIN
            question = _unmark(noisy(rng, fill(pick(rng, frames), rng, w=literal(wish))), marks)
            out.append(Exchange("command lines", [user(question), assistant(f"`{line}`")], _words(line), held="pair" if is_held else "frame"))
        else:
            frames = _EXPLAIN_TRAIN if is_held else _EXPLAIN_HELD or _EXPLAIN_TRAIN
            question = noisy(rng, fill(pick(rng, frames), rng, l="\x01")).replace("\x01", f"`{line}`")
            out.append(Exchange("command lines explained", [user(question), assistant(says)], exact=says, held="pair" if is_held else "frame"))
    return out


def _words(line: str) -> list[str]:
    """What a right command line holds: its head, and each flag with its value."""
    words = line.split(" --")
    return [words[0], *("--" + w for w in words[1:])]
