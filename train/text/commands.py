"""The commands: what each is for, how to do a thing by one, and which there are."""

from . import names
from .facts import Fact, Facts
from .grammar import literal

# What people want who need a command, as phrases that follow "how do I", and the
# words of which a right explanation has at least one.
_GOALS: dict[str, tuple[list[str], list[str]]] = {
    "run": (["answers"], [
        "{ask|put a question to|question} {a|the|my} model{ something| a question|}", "{chat|talk|speak} {with|to} a model{ in the terminal|}",
        "{run|try|start|use} a {GGUF file|model|local model|language model}{ in the terminal| on my computer|}", "get an answer from a model",
        "{send|give} a prompt to a model", "{open|start|begin|have} {a|an interactive} {chat|conversation}{ in the terminal|}",
        "{generate|complete|continue} {text|a text} with a model", "{answer|run} a prompt from {standard input|a pipe}",
        "{pipe|feed} a file {into|to} a model", "{run|use} {Qwen3|llama|a Mistral model|qwen2.5} {locally|on my machine|on my laptop}",
        "{summarise|explain} {a file|a diff|a text} with a model", "have a conversation with a model", "try a model out",
    ]),
    "serve": (["http"], [
        "{serve|host} {a|the|my} model", "have a model served", "serve {models|my models}{ over HTTP|}", "start serving{ a model|}",
        "{serve|offer|host|publish} {a|the|my} model {over HTTP|as an API|on the network|to others|over the web}", "{start|run|open|launch|set up} {a|the|an API|an HTTP|an OpenAI compatible} server",
        "{use|reach|call} a model {over|through|by} {HTTP|an API|the OpenAI API}", "{give|offer} {my|other} {programs|apps|colleagues|clients} {access to a model|a model}",
        "{connect|use} {an OpenAI client|the openai package|a chat UI|LangChain} {with|to} {realizar|a local model}", "have {an|a local} OpenAI{-compatible|} {endpoint|API|server}",
        "{make|turn} a model {available to|into a service for} {many users|others|my team}", "{answer|take} requests {over HTTP|of many users|from a network}",
        "run realizar as a {service|server|daemon|backend}", "get {an|the} API for {my|a} {model|app}", "replace OpenAI's API {locally|with my own server}",
    ]),
    "inspect": (["describes"], [
        "{see|find out|know|look at} what {a model file|a GGUF file|a model|a safetensors file} {holds|contains|is|has in it}", "{find out|see|know|calculate|compute} how much {memory|RAM|VRAM} a model {takes|needs|uses}",
        "{see|find out} {the architecture|the parameters|the quantisation|the context length|the number of layers|the size} of a model", "{inspect|examine|describe|analyse|look into} a {model|file|GGUF file|model file}",
        "{check|see} whether a model fits {in memory|on my GPU|into RAM|on this machine}", "{show|get|print} {details|information|facts} {about|on|of} a {model|model file}",
        "plan the memory {of|for} a model", "{see|know} how many parameters a model has", "find out {whether|if} a file has a chat template", "estimate {memory|the memory of a model} {before loading|}",
    ]),
    "pull": (["downloads"], [
        "{download|pull|fetch|get} a model{ by name| by its name| from Hugging Face| from the hub|}", "{download|pull|get} {a model|Qwen3|a GGUF file} from {Hugging Face|the hub|Ollama's registry|an OCI registry|a web server}", "{get|have} {a model|Qwen3-0.6B} on {my machine|this machine|disk}",
        "{resume|continue} {an interrupted|a broken} {download|pull}", "{install|add} a model", "{pull|download} {an Ollama model|llama3.2 from Ollama|a gated model|a private model}", "get a model to {try|start with|run}",
    ]),
    "list": (["models on this machine"], [
        "{see|list|find out|know|show} {which|what} models {are on this machine|I have|are here|I have pulled|are downloaded}", "{list|see|show} {the|all|my} {models|downloaded models|pulled models}{ on this machine| on my disk|}", "see how {large|big} my models are",
        "{see|find} the names of my models", "{see|list} {models of Ollama|models of Hugging Face's tools} that {are here|realizar can run}",
    ]),
    "show": (["model on this machine"], [
        "{see|know|find out} {what is known|details} {of|about} a {pulled model|model on this machine|downloaded model}", "{see|find} the {digests|files|path|paths} of a {model|pulled model}", "{find out|see} where a {pulled |downloaded |}model {lies|is stored} {on disk|}",
        "describe a model {by name|that I have pulled|that is on this machine}",
    ]),
    "cp": (["another name"], [
        "give a model {another|a short|a second|my own} name", "{copy|duplicate} a model{ to a folder|}", "{make|set|use} {an alias|a short name|a nickname} {for|of} a model", "{rename|shorten the name of} a model", "{copy|export} the files of a pulled model",
        "{name|tag} a model for {a registry|a push}",
    ]),
    "rm": (["removes"], [
        "{remove|delete|get rid of|uninstall} {a model|models|a pulled model|a downloaded model}", "free {disk space|the disk} {of|from} a model", "{delete|remove} a {short name|model from the disk|model by name}", "{drop|erase} a model that I no longer {need|use}",
    ]),
    "gc": (["no model"], [
        "{clean up|tidy up|free} the {cache|disk|cache of models}", "{remove|delete} {incomplete|broken|unfinished} downloads", "{remove|delete} files that {no model uses|belong to no model|are left over}", "{collect|throw away} garbage{ of pulls|}", "free {disk space|space} {of|from} {old|unused} files",
    ]),
    "verify": (["digests"], [
        "{check|verify|test} {the files|the bytes|the digests|the integrity} of {a model|my models|all models}", "{find out|see|know} whether a {model|download|file} is {damaged|intact|complete|corrupt}", "{compare|check} a model {with|against} its {digest|digests|checksums}", "hash {a model|my models} again",
    ]),
    "push": (["oci registry"], [
        "{upload|push|publish|send} a model{ to a registry| to an OCI registry|}", "{share|distribute} a model {by|through|with} {a registry|an OCI registry}", "put a {model|GGUF file} into {a|an OCI|my} registry", "make {an OCI artifact|a ModelPack} of a model", "{upload|give} a model to {Docker Hub|a registry|localhost:5000}",
    ]),
    "grammar": (["checks"], [
        "{check|test|validate} {a JSON Schema|a schema|a grammar|a regular expression}", "{see|find out|know} {whether|if} {a schema|a grammar|my schema} {can be enforced|works|is supported}", "{check|see|test} {whether a text fits a schema|an answer by a grammar|JSON by a schema}",
        "{debug|try out} a {grammar|GBNF grammar|JSON Schema|schema}", "validate {an answer|a text|JSON} {by|with} a {schema|grammar|regular expression}",
    ]),
    "tokenize": (["token"], [
        "{turn|convert|split} {text|a text|a sentence} into {tokens|token ids}", "{tokenize|tokenise|encode} {a text|text|a file|a prompt}", "{count|know the number of} {the |}tokens {of|in} a {text|prompt|file}",
        "{see|find out|know} how {a|the} text is {tokenised|tokenized|split into tokens|cut into tokens}", "get {the |}{token ids|ids|tokens} of a {text|sentence|prompt|word}", "{try|test|use|check} {a|the} tokenizer",
        "see how many tokens {my|a} prompt has", "find {the id of a token|token ids}",
    ]),
    "template": (["template"], [
        "{render|test|try|fill in|check} a chat template", "{see|look at|find out} {what|which} {text|prompt} {a|the} chat template makes{ of messages|}", "see the {prompt|text} that {a conversation|messages} {becomes|turn into}",
        "{debug|try out} {a|my|the} {chat template|Jinja template|jinja file}", "{turn|convert|render} {messages|a conversation} into the {model's format|prompt}", "see the chat format of a model",
    ]),
    "logits": (["logits"], [
        "{write|get|save|compute|export|dump} {the |}logits{ of a model| of some tokens|}", "get the {raw|exact} {scores|outputs} of {a|the} model{ for each token|}", "{compare|check} the {numbers|logits} of realizar {with|against} another program",
        "{write|save} logits {to|into} a {safetensors |}file", "{get|see} the model's scores {for|after} each token id", "{verify|check} {the numerics|numerical results} of a model",
    ]),
    "eval": (["predicts"], [
        "{measure|find out|see|test} how {well|good} a model {predicts a text|is|predicts text}", "{measure|compute|get|calculate|evaluate} {the |}perplexity{ of a model| of a file| on a text|}", "{evaluate|judge|assess|rate} {the quality of |}a model{ on a text|}",
        "{measure|see|evaluate} {what|how much} {a quantisation|quantisation|quantizing|4-bit} {loses|costs|hurts}{ in quality|}", "compute bits per byte", "{compare|rank} the quality of {two|several} {models|quantisations}",
        "{check|see|test} {the quality|the accuracy} of a {quantised|4-bit|converted} {model|file}", "know which of two models is better{ on my texts| at my text|}",
    ]),
    "bench model": (["speed"], [
        "{measure|test|benchmark|check} {the speed of a model|how fast a model is|tokens per second|the speed|performance}{ on this machine| here|}", "{benchmark|time} {a model|my machine|my GPU|the CPU|prefill and decode}",
        "{find out|see|know} how {fast|many tokens a second} {a model|my computer|this machine|it} {is|runs|makes|gives}", "get {tokens per second|tok/s|speed figures}", "measure {prefill|decoding|prompt processing} {speed|}",
        "{see|measure} {whether|how far} {realizar|it} uses the {whole |}{bandwidth|machine}", "compare the speed of two {models|machines|formats}", "run a benchmark",
    ]),
    "bench serve": (["server"], [
        "{load test|stress test|benchmark|measure} {a server|my server|the server|an API|an endpoint}", "{measure|test|see|find out} how {a|the} server {answers|behaves} {under load|with many users|}", "measure {the latency|latencies|time to first token|throughput} of a server",
        "{send|fire} many requests {at|to} a server", "{simulate|imitate} {many users|users|load|traffic}{ on a server|}", "{find out|see} how many {users|requests} {a|my} server {can take|stands|handles}", "run a load test", "test {vLLM|another server|any OpenAI server} for speed",
    ]),
    "top": (["running server"], [
        "{watch|see|look at|observe|monitor} {a|my|the} {running |}server{ live| in the terminal|}", "{see|watch|find out|know} what {a|my|the} server is doing{ right now|}", "{see|watch} {the requests|tokens per second|the load|latencies} of {a|my|the} server{ live|}",
        "{have|get|open} a live view of {a|the|my} server", "{see|know|watch} how {busy|loaded} {a|the|my} {server|GPU} is", "{watch|see} {the cache|the queue|GPU memory|memory} of {a|the|my} server", "have something like {top|htop|nvidia-smi} for {realizar|a server|my server}",
        "{see|watch} the metrics of {a|the|my} server in {a|the} terminal", "see how many requests {are running|wait}{ on my server|}",
    ]),
    "synth": (["random weights"], [
        "{make|create|write|generate|get} a {model|file|GGUF file|model file} {of|with} random weights", "{make|create|get} a {synthetic|fake|dummy|test} model", "{measure|benchmark} {a machine |}without {downloading|a download of} {a model|weights}",
        "{test|try} the speed of {an 8B model|a large model} {without having it|without a download}", "get a {model file|GGUF file} for {testing|benchmarks|measurements}{ without a download|}", "make a model {in the shape of|like} {llama-3.1-8b|qwen3-8b|a real one}{ to measure|}",
    ]),
    "doctor": (["check"], [
        "{check|see|test|verify} {whether|that|if} {my GPU works|the GPU is found|CUDA works|my machine is fine|everything works|realizar sees my GPU}", "{check|test|diagnose|examine} {the GPU|the GPUs|my machine|the hardware|the driver|my system|my graphics card|the installation}",
        "find out why {the GPU is not used|CUDA does not work|my GPU is not found|there is no GPU}", "{solve|debug|find} {problems|a problem|trouble} {of|with} {the GPU|my card|CUDA|the driver}", "{see|find out} how fast {memory|the memory} is read", "{verify|check} that the {kernels|GPU} {compute|computes} right",
        "run a self test",
    ]),
    "completion": (["complete"], [
        "{complete|have completed} {commands|flags|commands and flags} {in|by} {my shell|bash|zsh|fish}", "{get|install|set up|turn on} {tab completion|shell completion|completions}", "make {Tab|the Tab key} work",
    ]),
    "man": (["manual"], [
        "{get|read|install|see|write} {a|the} {man page|manual page|manual}", "read about every command on one page",
    ]),
    "version": (["version"], [
        "{see|find out|show|print|get|know|check} {the version|which version I have|the version of realizar|what version this is|which version is installed}", "know how old {my|this} realizar is", "{tell|say} which {build|version} of realizar I {have|use}",
    ]),
    "help": (["help"], [
        "{get|show|see|read|print} {help|the help}{ for a command|}", "{find out|learn|see} {what a command does|how a command works|which commands there are|what the commands are}", "{list|see} {all |the |}commands", "get an explanation of a command",
    ]),
}  # fmt: skip

_EXTRA: dict[str, str] = {
    "run": " Without a prompt it opens a chat on a terminal.",
    "pull": " It writes the path of the model, and an interrupted pull resumes.",
    "list": " It shows those in the cache of the hub, of Ollama and of realizar.",
    "show": " It shows files, digests, the architecture and the memory.",
    "cp": " A short name is one word and copies nothing.",
    "rm": " On a terminal it asks first. Models of Ollama are removed by Ollama.",
    "gc": " Incomplete downloads are among them.",
    "verify": " Without a name it checks all models.",
    "push": " Credentials are those of docker login.",
    "grammar": " It says whether a text fits, may be continued, or fails at a byte.",
    "serve": " Without other flags it listens on 127.0.0.1, port 8080.",
    "inspect": " It reads none of the weights.",
    "tokenize": " The text comes from standard input.",
    "template": " The messages and other variables come from a JSON file.",
    "logits": " They are written as a safetensors file.",
    "eval": " With `--against` it compares two models.",
    "bench model": " The word model may be left out.",
    "bench serve": " The server is any with the endpoints of the OpenAI API.",
    "top": " It reads the metrics of the server, at /metrics, and nothing else.",
    "synth": " The file takes the memory and the time of the real model; the text that it generates has no meaning.",
    "doctor": " Each line is a check with its result: ok, failed or none.",
    "completion": " It knows bash, zsh and fish.",
    "man": "",
    "version": "",
    "help": " `--help` behind a command does the same.",
}  # fmt: skip


def _facts() -> list[Fact]:
    facts = []
    for name, (keys, goals) in _GOALS.items():
        c = names.COMMANDS[name]
        word = "bench" if name == "bench model" else name
        examples = "{" + "|".join(literal(e) for e in c["examples"] if "git diff" not in e) + "}"
        help_, extra, usage = literal(c["help"]), _EXTRA[name], literal(c["usage"])
        marks = [f"realizar {word}"]
        if name == "bench model":
            marks = [["realizar bench "]]
        not_ = ["bench serve"] if name == "bench model" else []
        examples_how = examples
        if name == "bench serve":
            marks = ["bench serve"]
        facts.append(Fact(
            f"{name} how", [f"Use `realizar {word}`, which {help_}. For example: `{examples_how}`", f"`realizar {word}` {help_}:\n\n`{examples_how}`"],
            marks, goals=goals, goal_frames="do command", command=name, weight=4, must_not=not_,
        ))  # fmt: skip
        topics = [
            f"realizar {word}", f"`realizar {word}`", f"the command {word}", f"the {word} command", f"{word}", f"`{word}`",
            f"the command realizar {word}", f"{word} in realizar",
        ]  # fmt: skip
        if name == "help":
            topics = topics[:4]
        facts.append(Fact(
            f"{name} what", [f"`realizar {word}` {help_}.{extra}", f"`realizar {word}` {help_}. For example: `{examples}`"],
            [f"realizar {word}", keys], topics=topics, topic_frames="what does", command=name, weight=3,
        ))  # fmt: skip
        facts.append(Fact(
            f"{name} usage", [f"`{usage}`. For example: `{examples}`"], [f"realizar {word}"], topics=topics, topic_frames="example", command=name,
        ))  # fmt: skip
        flags = list(c["flags"])
        if flags:
            shown = ", ".join(f"`{f}`" for f in flags[:-1]) + (f" and `{flags[-1]}`" if len(flags) > 1 else f"`{flags[-1]}`")
            if len(flags) > 16:  # a list that nobody reads to its end
                shown = ", ".join(f"`{f}`" for f in flags[:12]) + f" and {len(flags) - 12} more, which `realizar {word} --help` lists"
            facts.append(Fact(
                f"{name} flags", [f"`realizar {word}` has {shown}."], flags[: min(len(flags), 10)], topics=topics[:4], topic_frames="flags of",
                command=name,
            ))  # fmt: skip
    return facts


def _general() -> list[Fact]:
    words = ["bench" if c == "bench model" else c for c in names.COMMANDS if c != "bench serve"]
    every = ", ".join(words[:-1]) + " and " + words[-1]
    return [
        Fact("commands", [
            f"The commands are {every}. `realizar COMMAND --help` explains each.",
            f"realizar has the commands {every}.",
        ], ["serve", "inspect", "pull", "tokenize", "doctor", "synth", "eval"], asks=[
            "{which|what} commands {are there|does realizar have|does it have|exist|can I use}?", "{list|name|show|tell me} {the|all} commands", "what can I type after realizar?", "how many commands {are there|does realizar have}?",
            "what are the {commands|subcommands}{ of realizar|}?", "{give me|show} {a list of|an overview of} {the |}commands", "commands?", "which subcommands does realizar have?", "what are realizar's commands?",
            "overview of the commands", "what commands do you know?", "I need a list of all commands", "realizar commands", "what else is there besides run and serve?", "which commands can the program do?",
        ], weight=3),
        Fact("run or serve", [
            "`realizar run` answers in the terminal, one prompt or a chat. `realizar serve` answers requests over HTTP, of many clients at a time.",
        ], ["realizar run", "realizar serve"], asks=[
            "what is the difference between run and serve?", "run or serve?", "should I use run or serve?", "when do I use serve and when run?", "how does serve differ from run?", "do I need run or serve?", "serve vs run",
        ], weight=2),
        Fact("bench or bench serve", [
            "`realizar bench` measures the speed of a model on this machine; `realizar bench serve` sends requests to a server and measures its latencies.",
        ], ["bench serve", "machine"], asks=[
            "what is the difference between bench and bench serve?", "bench or bench serve?", "how does bench serve differ from bench?", "when do I use bench serve?", "bench vs bench serve", "bench model and bench serve: what is what?",
        ], weight=2),
        Fact("top or bench serve", [
            "`realizar top` watches a server and only reads its metrics; `realizar bench serve` sends requests to measure it.",
        ], ["metrics", "requests"], asks=[
            "what is the difference between top and bench serve?", "top or bench serve?", "does top send requests?", "top vs bench serve", "how does top differ from bench serve?", "does top slow the server down?",
        ]),
        Fact("eval or bench", [
            "`realizar eval` measures how well a model predicts a text, that is its quality; `realizar bench` measures its speed.",
        ], ["quality", "speed"], asks=[
            "what is the difference between {eval and bench|bench and eval}?", "eval or bench?", "bench vs eval", "does bench measure quality?", "does eval measure speed?", "how does eval differ from bench?",
        ], weight=2),
        Fact("run demo", [
            "`realizar run demo \"...\"` asks the small model that is inside the program: me. Nothing has to be downloaded.",
            "If no model is named, run and serve take demo, the small model inside the program: `realizar run demo \"What can you do?\"`",
        ], ["demo"], asks=[
            "what is demo?", "what does realizar run demo do?", "what is the model {called |}demo?", "can I {try|use} realizar without {a model|a download|downloading}?", "what {model|file} is taken when I name none?", "what happens {when I run realizar|with run|with serve} without a model?",
            "how do I {use|run|call|start} {the demo|the demo model|demo|the built-in model}?", "is there a built-in model?", "is a model included?", "does realizar come with a model?", "I have no model{. what can I do|, what now}?", "do I need {a model file|to download a model}{ to try it|}?",
            "how can I try it out {quickly|offline|at once}?", "what does realizar serve demo do?", "run without model?", "serve demo?", "which model is built in?",
        ], weight=4),
        Fact("bench without model word", [
            "The word model may be left out: `realizar bench model.gguf` is the same as `realizar bench model model.gguf`.",
        ], ["left out"], asks=[
            "what is bench model?", "is there a difference between realizar bench and realizar bench model?", "do I have to write bench model?", "realizar bench model or realizar bench?", "may I leave out the word model in bench?",
        ]),
        Fact("exit codes", [
            "The exit code is 0 for success, 1 for a failure, 2 for an invalid command line and 130 when interrupted.",
        ], ["130"], asks=[
            "{what|which} exit codes {are there|does realizar have|does it use}?", "what does exit code {1|2|130} mean?", "what is the exit {code|status} {of realizar|when it fails|after an error|}?", "how do I see in a script that it failed?", "exit codes", "meaning of the exit status?",
            "what does realizar return to the shell?",
        ], weight=2),
        Fact("output streams", [
            "Results go to standard output, messages to standard error.",
        ], ["standard output"], asks=[
            "where do results go?", "where does {the output|the answer} go?", "what is written to {standard error|stderr}?", "stdout or stderr?", "how do I {redirect|save} the {answer|output} {to|into} a file?", "does realizar write to stdout?",
        ]),
        Fact("model argument", [
            "MODEL is a GGUF or safetensors file, a folder with one, a name such as hf:org/repo, or demo, the built-in model.",
        ], ["gguf", "folder", "hf:org/repo"], asks=[
            "what can MODEL be?", "what is MODEL in the help?", "what do I write for MODEL?", "which files can I give as the model?", "can I give a folder as the model?", "what {kinds|kind} of model files can I {open|run|use}?", "how do I name the model?", "what goes in the place of MODEL?",
            "can the model be a {folder|directory}?", "what counts as a model?",
        ], weight=2),
        Fact("chat keys", [
            "In the chat, Enter sends, Alt-Enter or Ctrl-J begins a new line, the cursor keys recall earlier messages, Ctrl-C stops the answer and Ctrl-D leaves. /help lists the commands.",
        ], ["ctrl-d"], asks=[
            "which keys {are there|can I use|work} in the chat?", "how do I {leave|end|exit|quit|close} the chat?", "how do I {stop|interrupt} an answer in the chat?", "how do I {write|begin|get} a new line in the chat?", "what does {Ctrl-C|Ctrl-D|Ctrl-J|Alt-Enter} do{ in the chat|}?", "how can I get an earlier message back in the chat?", "keyboard shortcuts {of|in} the chat?", "quit chat", "how to leave?", "multi-line messages in the chat?",
        ], weight=2),
        Fact("chat commands", [
            "The commands of the chat are /help, /clear, /set, /show, /save, /load and /bye. /clear forgets the conversation, and /set temperature 0.7 changes a setting.",
        ], ["/clear", "/set"], asks=[
            "{which|what} commands {are there|can I use} in the chat?", "how do I {forget|clear|reset|restart} the conversation?", "what does {/clear|/set|/show|/save|/load|/bye|/help} do{ in the chat|}?", "how do I change the temperature in the chat?", "how do I {save|load|keep} a {conversation|chat}?",
            "slash commands of the chat?", "is there a command to clear the chat?", "how do I set {a parameter|the temperature} while I chat?", "list the commands of the chat",
        ], weight=2),
        Fact("chat history", [
            "Messages are kept for the next chat in the file that `REALIZAR_HISTORY` names; with `REALIZAR_HISTORY=off` none are kept.",
        ], ["realizar_history"], asks=[
            "where are the messages of {the chat|earlier chats} kept?", "how do I turn off the history of the chat?", "what is REALIZAR_HISTORY?", "does the chat keep a history?", "are my messages saved?", "history of the chat?",
        ]),
        Fact("chat several lines", [
            'Write """ before and after a message of several lines, or begin a new line with Alt-Enter or Ctrl-J.',
        ], ['"""'], asks=[
            "how do I {write|paste|send} a message of several lines{ in the chat|}?", "how do I paste a long text into the chat?", "what do three quotes do in the chat?", "multi-line input?",
        ]),
        Fact("chat start", [
            "On a terminal, `realizar run model.gguf` without a prompt opens a chat. It remembers the conversation.",
        ], ["chat"], asks=[
            "does {run|the chat} remember {the conversation|what I said}?", "what happens {if I give no prompt|without a prompt}?", "is there a chat mode?", "does realizar have a chat?", "interactive mode?", "run without a prompt?",
        ]),
        Fact("stdin", [
            "`realizar run` appends standard input to the prompt: `git diff | realizar run model.gguf \"Explain this change.\"`",
        ], ["standard input"], asks=[
            "can I pipe text into {realizar|run}?", "how do I {send|give} a file as {the |}prompt?", "does run read standard input?", "how do I use it in a pipe?", "{piping|pipes}?", "can the prompt come from {a file|stdin|another program}?", "how do I use realizar with git diff?",
        ]),
        Fact("names", [
            "A name is hf:org/repo for Hugging Face, ollama:model:tag for Ollama, oci://registry/name:tag, https://host/file.gguf#sha256=DIGEST, or a short name of your own.",
        ], ["hf:org/repo", "ollama:", "oci://"], asks=[
            "{which|what} names {can I pull|does pull take|do models have}?", "what does the name of a model look like?", "how do I name a model of {Hugging Face|Ollama|a registry}?", "what can NAME be?", "what is hf:org/repo?", "which registries can I pull from?", "what do I write for NAME?",
            "from where can I pull {models|a model}?", "forms of names?", "what is oci://?",
        ], weight=2),
        Fact("name of a quantisation", [
            "Put it behind the name: `realizar pull hf:org/repo:Q8_0`. Without it pull takes Q4_K_M, then Q8_0, then the first GGUF file, then safetensors.",
        ], ["q4_k_m", "q8_0"], asks=[
            "how do I pull {a certain|another|a} quantisation?", "which quantisation does pull take?", "how do I choose the quantisation {of a pull|when I pull}?", "how do I get Q8_0 and not Q4_K_M?", "which file of a repository is pulled?",
        ]),
        Fact("name of a revision", [
            "Put it behind @, as in hf:org/repo@v1, or use `--revision`: a branch, a tag or a commit.",
        ], ["@"], asks=[
            "how do I name a {branch|tag|commit|revision} of a {repository|model}?", "what does @ mean in a name?", "how do I pull an old version of a model?", "hf:org/repo@main?",
        ]),
        Fact("short name", [
            "`realizar cp hf:org/repo:Q4_K_M small` makes the short name small; every command takes it.",
        ], ["realizar cp"], asks=[
            "what is a short name?", "how do I make a short name{ for a model|}?", "can I give a model a nickname?", "is there an alias for models?", "the names are too long", "what is REALIZAR_ALIASES?",
        ], weight=2),
        Fact("interrupted pull", [
            "An interrupted pull resumes: run `realizar pull` with the same name again. Files get their names after a check of their digests.",
        ], ["resumes"], asks=[
            "my {download|pull} was interrupted", "does pull resume?", "can I {continue|resume} a download?", "do I have to download everything again?", "the connection broke during a pull", "what if a pull is interrupted?",
        ]),
        Fact("gated models", [
            "Set `HF_TOKEN`, or log in with the tools of Hugging Face: it is the key for private and gated repositories.",
        ], ["hf_token"], asks=[
            "how do I pull a {gated|private} model?", "what is HF_TOKEN?", "how do I give {pull|realizar} a token of Hugging Face?", "pull says that access is denied", "does pull need a login?", "key for Hugging Face?",
        ]),
        Fact("where models lie", [
            "Models of Hugging Face lie in the cache of its tools (HF_HUB_CACHE, HF_HOME), others in realizar's folder, ~/.cache/realizar, unless `REALIZAR_HOME` names another.",
        ], ["realizar_home", "hf_home"], asks=[
            "where {are|does realizar keep|does pull put} {the models|models|the files}?", "where are pulled models stored?", "in which folder are the models?", "what is {REALIZAR_HOME|HF_HOME|HF_HUB_CACHE}?", "can I keep models on another disk?", "how do I move the folder of models?",
        ], weight=2),
        Fact("models of ollama", [
            "Models of Ollama on this machine are found without a pull: `realizar list` shows them, and `realizar run ollama:llama3.2:1b` runs one.",
        ], ["realizar list"], asks=[
            "can I {use|run} the models of Ollama{ that I have|}?", "does realizar find {my|Ollama's} models?", "do I have to download again what Ollama has?", "run a model of Ollama?", "I have models in Ollama. can I use them?",
        ]),
        Fact("show or inspect", [
            "`realizar show` describes a model that has a name, with digests and paths; `realizar inspect` shows more, and takes files anywhere.",
        ], ["realizar show", "realizar inspect"], asks=[
            "what is the difference between {show and inspect|inspect and show}?", "show or inspect?", "inspect vs show", "when do I use show?",
        ]),
        Fact("rm or gc", [
            "`realizar rm` removes models by name; `realizar gc` removes files that belong to no model.",
        ], ["realizar rm", "realizar gc"], asks=[
            "what is the difference between {rm and gc|gc and rm}?", "rm or gc?", "gc vs rm", "how do I free disk space?", "my disk is full",
        ]),
        Fact("verdicts of grammar", [
            "`realizar grammar --check` says \"fits\", \"may be continued\" for the beginning of a text that fits, or \"fails at byte N\".",
        ], ["may be continued"], asks=[
            "what does {may be continued|fails at byte|fits} mean?", "what does {realizar |}grammar say?", "what are the verdicts of grammar?", "how do I read the output of grammar?",
        ]),
        Fact("synth shapes", [
            "synth knows qwen2.5-0.5b, qwen3-0.6b, llama-3.2-1b, qwen2.5-1.5b, llama-3.1-8b, qwen3-8b, llama-3.1-70b, moe-8of64, dense-2.5b, moe-20b, dense-20b, qwen3-30b-a3b, lfm2-1.2b, qwen3.5-4b, qwen3.5-35b-a3b and deepseek-v2-lite.",
        ], ["qwen3-0.6b", "llama-3.1-8b"], asks=[
            "{which|what} shapes {does synth know|are there|can synth make}?", "which models can synth {resemble|imitate|make}?", "what can I give synth for SHAPE?", "list the shapes of synth", "shapes for synth?", "which shape names are there?",
        ]),
        Fact("synth quants", [
            "synth writes TQ2_0, Q2_K, Q3_K_S, Q3_K_M, Q3_K_L, MXFP4, IQ4_XS, IQ4_NL, Q4_0, Q4_1, Q4_K_S, Q4_K_M, Q5_0, Q5_1, Q5_K_S, Q5_K_M, Q6_K, Q8_0, F16, BF16 and F32.",
        ], ["q4_k_m", "q8_0"], asks=[
            "{which|what} {quants|quantisations|formats} {does synth know|can synth write}?", "what can I give synth for QUANT?", "quants for synth?", "list the quants of synth", "in which formats does synth write weights?",
        ]),
        Fact("bench words", [
            "pp512 is the prefill of a prompt of 512 tokens and tg128 the decode of 128 tokens, both in tokens per second.",
        ], ["prefill", "tokens per second"], asks=[
            "what {is|does} {pp512|tg128}{ mean|}?", "what do pp512 and tg128 mean?", "explain the output of bench", "what are the numbers of bench?", "pp512?", "tg128?", "how do I read the output of bench?",
        ]),
        Fact("share of limit", [
            "The share of limit compares the rate with the limit of the machine, which the same run measures: memory bandwidth for decode, arithmetic for prefill.",
        ], ["limit of the machine"], asks=[
            "what is {the |}share of limit?", "what does share of limit mean{ in bench|}?", "share of limit in bench?", "what is the limit in the output of bench?", "why is the share of limit -?",
        ]),
    ]  # fmt: skip


FACTS = Facts("commands", _facts())
GENERAL = Facts("commands", _general())
