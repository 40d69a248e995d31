"""The flags: what each does, how to do a thing by one, defaults, values and examples."""

from random import Random

from . import names
from .conversation import Exchange, assistant, user
from .facts import Fact, Facts
from .flag_phrases import PHRASES
from .frames import FRAMES
from .grammar import fill, held_pair, literal, pick, split
from .noise import noisy

# The commands that share the flags of a scope of flag_phrases. Other scopes are commands.
SHARED_BY = {
    "model": ["run", "serve", "logits", "eval", "bench model"],
    "checks": ["run", "serve", "logits", "eval"],
    "run and serve": ["run", "serve"],
    "structured": ["run", "grammar"],
    "white space": ["run", "serve", "grammar"],
}

# Flags that mean different things in different commands.
_SHARED = ("--json", "--seed", "--verbose", "--tools", "--api-key")

_KIND = {
    "N": "a whole number", "K": "a whole number", "T": "a number from 0 on", "P": "a number from 0 to 1", "R": "a number",
    "SIZE": "a size such as 8GiB", "TIME": "a time such as 30s or 10m", "D": "a time such as 30s or 5m", "FILE": "the name of a file",
    "TEXT": "a text", "NAME": "a name", "ADDRESS": "an address such as 0.0.0.0", "ORIGIN": "an origin such as https://example.org, or *",
    "URL": "an address such as http://localhost:4318", "FILE.json": "the name of a JSON file, or - for standard input",
    "FILE.safetensors": "the name of a safetensors file", "MODEL": "another model", "KEY": "a key",
    "ID=BIAS": "a token's id and a bias, such as 42=-inf", "B,...": "numbers separated by commas, such as 1,4,16", "P,...": "numbers from 0 to 1 separated by commas, such as 0,0.7", "HEAD,...": "mtp, eagle or eagle=FOLDER",
    "LENGTHS": "a number, or uniform:64:256 or lognormal:200:0.8", "JSON": "a JSON object",
    "auto|f32|f8": "auto, f32 or f8", "auto|cpu|cuda": "auto, cpu or cuda, or cuda:1 for the GPU with the number 1",
    "auto|f16|q8|f8|f32": "auto, f16, q8, f8 or f32", "SIZE|FRACTION": "a size such as 16GiB, or a part of the GPU's memory such as 0.5", "auto|always|never": "auto, always or never",
    "text|json|none": "text, json or none", "chat|completions": "chat or completions", "PROPOSER": "auto, off, suffix, mtp, eagle, eagle=FOLDER or draft=MODEL", "HOST:PORT": "an address and a port such as 10.0.0.7:8080", "KIND": "natural, compact or any",
    "PATTERN": "a regular expression", "FILE|FOLDER|store": "a YAML file, a folder, or store", "REVISION": "a branch, a tag or a commit", "HOST": "a host such as localhost:5000",
    "SWEEP": "concurrency or rate, or a range such as rate:2:32", "X": "a number", "TIMES": "latencies such as ttft=500ms,itl=50ms",
}  # fmt: skip


def flag_marks(flag: str) -> list[str]:
    """The ways in which an answer can name the flag and no longer one."""
    return [flag + end for end in " `.,;:="]


def _spell(flag: str, about: dict) -> str:
    value = about["value"]
    if "|" in value:
        return literal(f"{flag} {value}")
    return literal(f"{flag} {value}".rstrip())


def _topics(scope: str, flag: str, about: dict) -> list[str]:
    word = flag[2:]
    # A name alone stands for the flag of the first scope that has it.
    shared = flag in _SHARED or scope != next(s for s, rows in PHRASES.items() if flag in rows)
    topics = []
    if not shared:
        topics += [flag, f"`{flag}`", f"the {{flag|option}} {flag}", f"the {flag} {{flag|option|switch}}", flag]
        if "-" in word or scope in SHARED_BY or scope == "serve":
            topics.append(f"the flag {word}")
    command = {"bench model": "bench"}.get(scope, scope if scope not in SHARED_BY else "run")
    if "short" in about and not (word == "verbose"):
        topics.append(f"{about['short']} {{in|of}} {{realizar |}}{command}")
    if scope not in SHARED_BY:
        topics += [f"{flag} {{in|of}} {{realizar |}}{command}", f"realizar {command} {flag}", f"{flag} of the command {command}"]
    if shared and scope == "run":
        topics += [f"{flag} when I run a model", f"{flag} for an answer"]
    return topics


def _facts() -> list[Fact]:
    facts = []
    phrased = {(command, flag) for scope, rows in PHRASES.items() for command in SHARED_BY.get(scope, [scope]) for flag in rows}
    phrased_once = {f for scope in SHARED_BY for f in PHRASES[scope]}
    missing = {(c, f) for c in names.COMMANDS for f in names.flags_of(c) if (c, f) not in phrased and f not in phrased_once}
    if missing:
        raise names.UnknownName(f"no phrases for {sorted(missing)}")
    for scope, rows in PHRASES.items():
        commands = SHARED_BY.get(scope, [scope])
        head = commands[0]
        known = names.COMMANDS[head]["flags"]
        for flag, (keys, goals) in rows.items():
            about = known[flag]
            spell, meaning = _spell(flag, about), literal(about["meaning"])
            examples = [literal(names.COMMANDS[c]["flags"][flag]["example"]) for c in commands]
            example = "{" + "|".join(examples) + "}"
            named = f"`realizar {'bench' if scope == 'bench model' else scope}`"
            what_must = [flag_marks(flag), keys]
            must = [flag_marks(flag)]
            if scope == "run":
                by = f"{{Use|Add}} `{spell}`: it {meaning}."
            elif scope in SHARED_BY:
                by = f"{{Use|Add}} `{spell}`: it {meaning}."
            else:
                by = f"Use `{spell}` of {named}: it {meaning}."
                if len(names.commands_with(flag)) > 1:  # else the flag says which command
                    must.append(named[1:-1])
            weight = 1.5 if scope in ("run", "serve") or scope in SHARED_BY else 1.0
            facts.append(Fact(
                f"{scope} {flag} how", [f"{by} For example: `{example}`", f"{by}\n\n`{example}`"], must, goals=goals,
                goal_frames="do flag", flag=flag, command=head, weight=weight * 1.6,
            ))  # fmt: skip
            what = [f"`{spell}` {meaning}.", f"`{spell}` {meaning}. For example: `{example}`"]
            if scope not in SHARED_BY and (scope != "run" or flag in _SHARED):
                what = [f"In {named}, {w}" for w in what]
            topics = _topics(scope, flag, about)
            facts.append(Fact(
                f"{scope} {flag} what", what, what_must, topics=topics, topic_frames="what does", flag=flag, command=head,
                weight=weight,
            ))  # fmt: skip
            facts.append(Fact(
                f"{scope} {flag} example", [f"`{example}`", f"For example: `{example}`"], [flag_marks(flag)], topics=topics,
                topic_frames="example", flag=flag, command=head, weight=0.5,
            ))  # fmt: skip
            if about["default"]:
                facts.append(_default(scope, flag, about, topics))
            facts.append(_values(scope, flag, about, topics))
    for flag in sorted(names.ALL_FLAGS - names.GLOBAL_FLAGS):
        having = names.commands_with(flag)
        text = having[0] if len(having) == 1 else ", ".join(having[:-1]) + " and " + having[-1]
        plural = "the command" if len(having) == 1 else "the commands"
        facts.append(Fact(
            f"where {flag}", [f"`{flag}` is a flag of {plural} {text}.", f"{text} {'has' if len(having) == 1 else 'have'} `{flag}`."],
            [_command_marks(c) for c in having], topics=[flag, f"`{flag}`", f"the flag {flag}"], topic_frames="where", flag=flag, command=having[0], weight=0.4,
        ))  # fmt: skip
    return facts


def _command_marks(command: str):
    """What says in a list of commands that this one is among them."""
    return ["bench model", "bench,", "bench and", "bench has", "bench have", "bench."] if command == "bench model" else command


def _default(scope: str, flag: str, about: dict, topics: list[str]) -> Fact:
    default = literal(about["default"])
    says = [f"The default of `{flag}` is {default}.", f"Without `{flag}` the default holds: {default}."]
    must = [about["default"]]
    if about["default"] == "off":
        says = [f"`{flag}` is a switch: it is off unless you give it.", f"`{flag}` is off by default."]
        must = ["off"]
    elif about["default"] == "required":
        says = [f"`{flag}` has no default: `realizar {scope}` needs it."]
        must = [["no default", "needs"]]
    elif about["default"] == "none":
        says = [f"`{flag}` has no default: without it there is none.", f"Without `{flag}` there is none."]
        must = [["no default", "none"]]
    return Fact(
        f"{scope} {flag} default", says, must, topics=topics, topic_frames="default", flag=flag,
        command=SHARED_BY.get(scope, [scope])[0], weight=0.6,
    )  # fmt: skip


def _values(scope: str, flag: str, about: dict, topics: list[str]) -> Fact:
    value = about["value"]
    if not value:
        says, must = [f"`{flag}` takes no value: it is a switch."], ["no value"]
    else:
        kind = _KIND[value]
        if flag == "--now":
            kind = "a time such as 2025-06-15T12:34:56"
        elif value == "FILE" and flag in ("--ids", "--json", "--text"):
            kind = "the name of a file, or - for standard " + ("output" if flag == "--json" else "input")
        elif value == "TEXT" and flag in ("--check", "--parse"):
            kind = "a text, or - for standard input"
        elif flag == "--allow-host":
            kind = "a name, or *"
        says, must = [f"`{flag}` takes {literal(kind)}."], [kind]
    return Fact(
        f"{scope} {flag} values", says, must, topics=topics, topic_frames="values", flag=flag,
        command=SHARED_BY.get(scope, [scope])[0], weight=0.5,
    )  # fmt: skip


def _general() -> list[Fact]:
    flag, option = "{flag|option|switch}", "{flags|options}"
    return [
        Fact("json everywhere", [
            "`--json` writes results as JSON. run, inspect, list, show, eval, bench, top, doctor and others have it; in bench serve it takes the name of a file.",
        ], ["inspect", "doctor"], topics=["--json", "`--json`", "the flag --json", "the --json flag"], topic_frames="what does", flag="--json", command="run"),
        Fact("seed everywhere", [
            "`--seed N` makes what is random repeatable: in run the same seed gives the same answer, in bench serve it sends the same requests, and in synth it chooses the weights.",
        ], ["same"], topics=["--seed", "`--seed`", "the flag --seed", "the --seed flag"], topic_frames="what does", flag="--seed", command="run"),
        Fact("verbose everywhere", [
            "`--verbose` says more: in run the timings and the seed, and in version how the program was built.",
        ], ["timings"], topics=["--verbose", "`--verbose`", "the flag --verbose", "-v"], topic_frames="what does", flag="--verbose", command="run"),
        Fact("help flag", [
            "`--help`, or `-h` for short, shows what a command does and its common flags; `--help-all` shows all flags: `realizar run --help`",
            "Every command has `--help`, with examples and the common flags, and `--help-all`, with all of them: `realizar serve --help-all`",
        ], ["--help", "--help-all"], asks=[
            f"where {{do|can}} I find all {option}?", f"how do I see {{the|all}} {option} {{of a command|there are|}}?", "is there a {help|manual|man page}?",
            f"list {{all |the |}}{option}{{ of a command|}}", "how do I get help {on a command|for a command|}?", "what does --help do?",
            "what is -h?", f"which {option} are there?", f"what {option} does {{a|the}} command have?", "show me the help",
            "where is the documentation of the {commands|flags}?", f"I don't know the {option}.", "help for a command", "how do I learn more about a command?",
        ], ),
        Fact("help-all flag", [
            "`--help-all` shows all flags of a command and more help; `--help` shows the common ones: `realizar serve --help-all`",
        ], ["--help-all", "all flags"], topics=["--help-all", "`--help-all`", "the flag --help-all"], topic_frames="what does", asks=[
            f"where are the other {option}?", f"--help does not show all {option}", f"how do I see {{all|every one of the|the rare|the other}} {option} of a command?", "what is the difference between --help and --help-all?",
            f"the {flag} is not in --help", "is there more help?", "longer help?", "--help or --help-all?", f"where is the full list of {option}?",
        ]),
        Fact("short flags", [
            "The short flags are `-h` for `--help`, `-n` for tokens, `-c` for the context, `-t` for threads, `-s` for the seed, `-v` for `--verbose`, `-p`, `-d` and `-r` in bench, and `-c` and `-n` in bench serve for running requests and requests.",
        ], ["-h", "-v"], asks=[
            f"{{which|what}} short {option} are there?", f"are there {{short|one-letter|abbreviated}} {option}?", "short forms of flags?",
            f"do the {option} have short forms?", "is there a shorter way to write flags?", "list the short flags",
        ]),
        Fact("flag n short", [
            "In `realizar run`, `-n` is short for `--max-tokens`; in `realizar bench` for `--tokens`, and in `realizar bench serve` for `--requests`.",
        ], ["--max-tokens", "--tokens", "--requests"], topics=["-n", "the short flag -n", "`-n`"], topic_frames="what does"),
        Fact("flag p short", ["In `realizar bench`, `-p` is short for `--prompt`: the prompt tokens of the prefill test."], ["--prompt"],
             topics=["-p", "the short flag -p", "`-p`"], topic_frames="what does"),
        Fact("flag d short", ["In `realizar bench`, `-d` is short for `--depth`: the tokens in the context before the decode test."], ["--depth"],
             topics=["-d", "the short flag -d", "`-d`"], topic_frames="what does"),
        Fact("flag r short", ["In `realizar bench`, `-r` is short for `--runs`: the measured runs of each test."], ["--runs"],
             topics=["-r", "the short flag -r", "`-r`"], topic_frames="what does"),
        Fact("flag c short", ["`-c` is short for `--context`; in `realizar bench serve` it is short for `--concurrency`, the number of running requests."], ["--context", "--concurrency"],
             topics=["-c", "the short flag -c", "`-c`"], topic_frames="what does"),
        Fact("flag s short", ["`-s` is short for `--seed` in `realizar run`."], ["--seed"], topics=["-s", "the short flag -s", "`-s`"], topic_frames="what does"),
        Fact("flag t short", ["`-t` is short for `--threads`: the number of compute threads."], ["--threads"], topics=["-t", "the short flag -t", "`-t`"], topic_frames="what does"),
        Fact("flag y short", ["In `realizar rm`, `-y` is short for `--yes`: it removes without asking."], ["--yes"], topics=["-y", "the short flag -y", "`-y`"], topic_frames="what does"),
        Fact("flag q short", ["In `realizar pull`, `-q` is short for `--quiet`: it shows no progress."], ["--quiet"], topics=["-q", "the short flag -q", "`-q`"], topic_frames="what does"),
        Fact("unknown flag error", [
            "The command has no such flag: `--help-all` behind the command lists those that it has.",
        ], ["--help-all"], asks=[
            "it says unknown flag{. why?|}", "{I get|there is} the error unknown flag", "error: unknown flag{. what now?|}", "what does unknown flag mean?",
            "realizar: unknown flag", "why is my flag unknown?", "my flag is not {known|accepted}", "unknown flag, what to do?",
        ]),
        Fact("flag order", [
            "The order of the flags makes no difference: they may stand before or behind the model and the prompt.",
        ], ["order"], asks=[
            f"does the order of {option} matter?", f"do {option} have to come {{first|last}}?", f"where do I put the {option}?",
            f"must the {option} stand {{before|after}} the model?", "in which order do I write flags?",
        ]),
        Fact("several stops", [
            "Give the flag several times, as in `realizar run model.gguf \"Hello\" --stop END --stop STOP`. `--stop`, `--logit-bias`, `--served-model-name`, `--cors`, `--allow-host` and `--allow-registry` are repeatable.",
        ], ["--stop"], asks=[
            "can I give a flag {twice|several times|more than once}?", "{which|what} flags may be {repeated|given several times}?", "how do I give {several|two|multiple} stop {strings|texts|sequences}?",
            "more than one stop {string|text|sequence}?", "can there be several {stop strings|values of --stop}?",
        ]),
    ]  # fmt: skip


FACTS = Facts("flags", _facts())
GENERAL = Facts("flags", _general())

# Questions whether a command has a flag. Combinations are kept from training.
_HAS = [
    "does {realizar |}<c> have {the flag |}<f>?", "can I use <f> with {realizar |}<c>?", "is <f> a flag of {realizar |}<c>?",
    "does <f> work with <c>?", "may I give <f> to {realizar |}<c>?", "can {realizar |}<c> take <f>?", "<f> with <c>?",
    "is there {a|the} flag <f> in {realizar |}<c>?", "will {realizar |}<c> accept <f>?", "does the command <c> know <f>?",
    "<c> <f>: is that possible?", "can <f> be used {together |}with <c>?", "is it allowed to write realizar <c> <f>?", "has {realizar |}<c> a flag <f>?", "is there <f> in {realizar |}<c>?", "does {realizar |}<c> know <f>?",
    "does {realizar |}<c> support <f>?", "does {realizar |}<c> take <f>?", "is <f> allowed {in|with|for} {realizar |}<c>?", "<f> in <c>?", "can <c> use <f>?", "<c> with <f>?",
    "may <f> be given to <c>?", "is <f> there in {realizar |}<c>?", "do <c> and <f> go together?", "does <f> belong to {realizar |}<c>?", "could I use <f> in <c>?", "is <f> possible with <c>?",
]  # fmt: skip
_HAS_TRAIN, _HAS_HELD = split(_HAS)


def _has_answer(command: str, flag: str) -> tuple[str, list, list]:
    # What has the flag comes first, so that the verdict can be read off it.
    having = names.commands_with(flag)
    belongs = f"`{flag}` is a flag of " + (having[0] if len(having) == 1 else ", ".join(having[:-1]) + " and " + having[-1])
    if flag in names.flags_of(command):
        meaning = names.flags_of(command)[flag]["meaning"]
        return f"{belongs}. So yes, `realizar {command}` has it: it {meaning}.", [["yes,", "yes:"]], ["so no", "no:"]
    return f"{belongs}. So no, `realizar {command}` does not have it.", [["no,", "no:"]], ["yes,", "yes:"]


_COMMANDS = [c for c in names.COMMANDS if c != "help"]
_FLAGS = sorted(names.ALL_FLAGS - names.GLOBAL_FLAGS)


def _has_pair(rng: Random) -> tuple[str, str]:
    command = pick(rng, _COMMANDS)
    own = list(names.COMMANDS[command]["flags"])
    return command, pick(rng, own if own and rng.random() < 0.5 else _FLAGS)


def _has_held(command: str, flag: str) -> bool:
    # Where a flag has one command or two, training would say no wherever it says anything.
    return len(names.commands_with(flag)) > 2 and held_pair("has", command, flag)


def has_flag(rng: Random) -> Exchange:
    """Whether a command has a flag."""
    command, flag = _has_pair(rng)
    while _has_held(command, flag):
        command, flag = _has_pair(rng)
    question = fill(pick(rng, _HAS_TRAIN), rng, c=command, f=flag)
    return Exchange("flags", [user(noisy(rng, question)), assistant(_has_answer(command, flag)[0])])


def held_has_flag(rng: Random, count: int) -> list[Exchange]:
    """Such questions for the trained model."""
    out: list[Exchange] = []
    while len(out) < count:
        command, flag = _has_pair(rng)
        held = _has_held(command, flag)
        if not held and rng.random() < 0.8:
            continue
        frame = pick(rng, _HAS_TRAIN if held else _HAS_HELD or _HAS_TRAIN)
        answer, must, must_not = _has_answer(command, flag)
        question = noisy(rng, fill(frame, rng, c=command, f=flag))
        out.append(Exchange("flags of commands", [user(question), assistant(answer)], must, must_not, held="pair" if held else "frame"))
    return out


# Flags of other programs, with what does the same here.
_FOREIGN = {
    "--n-gpu-layers": "--device", "-ngl": "--device", "--gpu-layers": "--device", "--ctx-size": "--context",
    "--n-predict": "--max-tokens", "--max-new-tokens": "--max-tokens", "--num-predict": "--max-tokens",
    "--cache-type-k": "--kv-cache", "--cache-type-v": "--kv-cache", "--kv-cache-dtype": "--kv-cache", "--grammar-file": "--grammar", "--schema": "--json-schema",
    "--speculative-config": "--speculative", "--draft-max": "--speculative-tokens", "--num-speculative-tokens": "--speculative-tokens", "--models-dir": "--models",
    "--guided-json": "--json-schema", "--sleep-idle-seconds": "--keep-alive", "--trusted-hosts": "--allow-host", "--config-file": "--config",
    "--max-model-len": "--context", "--gpu-memory-utilization": "--gpu-memory", "--max-num-seqs": "--parallel",
    "--repeat-penalty": "--repetition-penalty", "--typical": "--typical-p", "--n-threads": "--threads",
    "--system-prompt": "--system", "--alias": "--served-model-name", "--reverse-prompt": "--stop", "--temp": "--temperature",
    "--swap-space": "--kv-host", "--num-ctx": "--context", "--np": "--parallel", "--api-key-path": "--api-key-file",
    "--dtype": "--activations", "--max-length": "--max-tokens", "--random-seed": "--seed", "--listen": "--host",
    "--ssl-certfile": "--tls-cert", "--ssl-keyfile": "--tls-key", "--allowed-origins": "--cors", "--stop-sequence": "--stop",
    "--num-threads": "--threads", "--system-message": "--system", "--max-context": "--context", "--gpu": "--device",
}  # fmt: skip
_MADE_UP = (
    "fast slow turbo magic auto-tune best quality level style color colour theme output input format debug simulate"
    " save load save-all beam beams width depth-first layers experts adapter lora rope-scale mirostat tensor-parallel-size draft-model mmproj image audio"
    " language translate think reasoning budget history resume session user name title retry batch-size train epochs"
    " learning-rate merge quantize convert download update upgrade proxy cache-dir home settings split-gpus email color-mode"
).split()
_UNKNOWN_ASKS = [
    "what does <x> do?", "what is <x>?", "explain <x>", "how do I use <x>?", "is there a flag <x>?", "does realizar have <x>?",
    "what is <x> for?", "what about <x>?", "<x>?", "can I use <x>?", "tell me about <x>", "does run take <x>?",
    "what's <x>?", "give me an example of <x>", "what is the default of <x>?", "which command has <x>?", "where is <x>?",
]  # fmt: skip


def unknown_flag(rng: Random) -> Exchange:
    """A flag that there is not."""
    if rng.random() < 0.5:
        foreign = pick(rng, list(_FOREIGN))
        flag = _FOREIGN[foreign]
        command = names.commands_with(flag)[0]
        meaning = names.flags_of(command)[flag]["meaning"]
        answer = f"realizar has no such flag. What comes near is `{flag}`: it {meaning}."
    else:
        word = pick(rng, _MADE_UP)
        if rng.random() < 0.3:
            word += "-" + pick(rng, _MADE_UP)
        foreign = "--" + word
        if foreign in names.ALL_FLAGS:
            foreign += "er"
        answer = pick(rng, (
            "realizar has no such flag. `realizar run --help-all` lists those of run.",
            "There is no such flag. Each command lists its flags with `--help-all`.",
        ))  # fmt: skip
    # Half of the frames are those of the flags that there are, so that no frame says which it is.
    frames = _UNKNOWN_ASKS if rng.random() < 0.5 else FRAMES[pick(rng, ("what does", "default", "example", "values", "where"))][0]
    question = fill(pick(rng, frames), rng, x=foreign)
    return Exchange("flags", [user(noisy(rng, question)), assistant(answer)])
