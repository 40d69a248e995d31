"""What the command says when it fails, what that means, and the way out."""

from .facts import Fact, Facts


def _facts() -> list[Fact]:
    return [
        Fact("no such file", ["There is no such file: check the path, or pull the model by its name, as in `realizar pull hf:org/repo`. `realizar list` shows the models on this machine."], ["check", "realizar pull"], asks=[
            "there is no file model.gguf; want a file, or a name such as hf:org/repo (realizar pull)", "realizar: there is no file {model.gguf|./tiny.gguf|a.gguf}", "it says that there is no file",
            "no such file or directory", "it says no such file or directory", "my model is not found", "realizar cannot find my {model|file}", "file not found, what now?", "what does no such file or directory mean?", "why is the file not found?", "it does not find the gguf",
        ]),
        Fact("not a name", ["The word is neither a file nor a short name. Use the whole name, as in `realizar run hf:org/repo`, or make a short one with `realizar cp`; `realizar list` shows what is there."], ["realizar cp", "realizar list"], asks=[
            "small is neither a file nor the name of a model", "it says neither a file nor the name of a model", "my short name is not known", "the name of my model is not known", "realizar does not know the name", "what does neither a file nor the name of a model mean?",
        ], weight=2),
        Fact("not on this machine", ["Fetch it with `realizar pull` and the same name, or give run or serve the flag `--pull`. Nothing is downloaded unless you ask."], ["realizar pull", "--pull"], asks=[
            "hf:org/repo is not on this machine", "the model is not on this machine", "it says not on this machine; realizar pull fetches it", "why is my model not downloaded by itself?", "serve says that the model is not on this machine", "run does not download the model",
        ], weight=2),
        Fact("exceeds context", ["The prompt is longer than the context; the error has both numbers. Shorten it, or open the model with a larger `--context`."], ["--context"], asks=[
            "the prompt exceeds the context", "it says the prompt exceeds the context", "the prompt exceeds the context: the prompt is 5000 tokens long, the context 4096", "my prompt is too long", "what does the prompt exceeds the context mean?", "how do I fix the prompt exceeds the context?", "prompt too long error", "ErrContext, what now?", "the context is too small for my text",
        ], weight=2),
        Fact("not enough memory", ["The model does not fit. The error says what would: a smaller `--context`, a larger `--memory` or `--gpu-memory`, or `--kv-cache q8`."], ["--context", "--memory"], asks=[
            "not enough memory", "it says not enough memory", "{realizar|it} runs out of memory", "error not enough memory{. what now?|}", "how do I fix not enough memory?", "out of memory", "my model does not fit into memory", "my model is too {big|large} for my {machine|GPU|RAM}", "what does not enough memory mean?", "OOM, what to do?", "CUDA out of memory",
            "how do I make {my|the} model fit?", "not enough RAM",
        ], weight=2),
        Fact("cuda not usable", ["There is no usable NVIDIA driver: install NVIDIA's driver, or give the container its GPUs. `realizar doctor` says what is missing."], ["driver", "doctor"], asks=[
            "the device cannot be used", "no usable NVIDIA driver", "libcuda.so.1: cannot open shared object file", "it does not find {CUDA|my GPU|the driver}", "cuda is not found", "why {is my GPU not used|does realizar not use my GPU|is the GPU ignored}?", "--device cuda fails", "error: no usable NVIDIA driver. what do I do?", "my GPU is not {found|seen|detected|working}",
            "the GPU does not work", "GPU not working in the container", "what does no usable NVIDIA driver mean?",
        ], weight=2),
        Fact("on the cpu note", ["`--device auto` chose the CPU, for the reason in the note. `--device cuda` makes it an error, and `realizar doctor` checks the GPU."], ["doctor"], asks=[
            "it says on the CPU:", "why does it run on the CPU?", "realizar: on the CPU", "what does the note on the CPU mean?", "it uses the CPU although I have a GPU", "why not the GPU?",
        ]),
        Fact("no gpu visible", ["The driver finds no GPU. See whether nvidia-smi does, and whether the container was started with the GPU."], ["nvidia-smi"], asks=[
            "no NVIDIA GPU is visible", "it says that no NVIDIA GPU is visible", "the driver finds no GPU", "no GPU is visible in the container", "what does no NVIDIA GPU is visible mean?",
        ]),
        Fact("not in this build", ["This build has no such device: `--device` takes auto, cpu, or, in a build with CUDA, cuda and cuda:1."], ["build"], asks=[
            "device cuda is not in this build", "it says not in this build", "my build has no CUDA", "what does not in this build mean?", "device gpu is not in this build",
        ]),
        Fact("unknown architecture", ["realizar does not run this kind of model. The error names the nearest that it does; docs/models.md lists all."], ["docs/models.md"], asks=[
            "the architecture is not known", "unknown architecture", "it does not know the architecture of my model", "ErrArchitecture", "architecture not supported", "what does unknown architecture mean?", "my model has an unknown architecture",
        ]),
        Fact("not a model", ["The file is neither GGUF nor safetensors; a page that asks to log in looks like that, too. A folder needs its weights, and for safetensors config.json and tokenizer.json."], ["gguf", "safetensors"], asks=[
            "not a model", "it says that my file is no model", "the file is not a GGUF file", "what does ErrNotModel mean?", "my file is not recognised", "it does not open my file", "why can it not open my folder?",
        ]),
        Fact("damaged file", ["The file is probably an incomplete download. `realizar pull` resumes and checks it, and `realizar verify` compares models with their digests."], ["realizar pull", "realizar verify"], asks=[
            "it is probably an incomplete download", "the file ends before its last tensor", "a header is longer than the file",
            "the file is damaged", "unexpected end of file", "the file ends early", "my GGUF file is {broken|truncated|incomplete}", "tensor lies beyond the end of the file", "what if the download was cut?", "is my file corrupt?",
        ]),
        Fact("not finite error", ["The model computed a value that is not a number, in the layer that the error names. The file may be damaged; `--activations f32` and `--kv-cache f32` rule out too few bits."], ["layer"], asks=[
            "not finite", "the model computed NaN", "error: not finite in layer 3", "what does not finite mean?", "ErrNotFinite", "it says NaN or infinity", "nan in the output",
        ]),
        Fact("no template error", ["The model has no usable chat template: it is a base model. `realizar run --raw` and `/v1/completions` continue a text."], ["--raw"], asks=[
            "the model has no usable chat template", "no chat template", "my model has no chat template", "what if a model has no chat template?", "ErrNoTemplate", "the model has no template", "can I use a model without a chat template?",
        ]),
        Fact("no tokenizer error", ["The model has no usable tokenizer, so it takes token ids only; `realizar logits` runs them."], ["token ids"], asks=[
            "no usable tokenizer", "the model has no tokenizer", "ErrNoTokenizer", "what does no usable tokenizer mean?", "tokenizer missing",
        ]),
        Fact("pre-tokenizer error", ["The GGUF file names no known pre-tokenizer: name it with `--pre-tokenizer`, such as `--pre-tokenizer qwen2`."], ["--pre-tokenizer"], asks=[
            "unknown pre-tokenizer", "the pre-tokenizer is {missing|not known|unknown}", "error about {the|tokenizer.ggml.pre|a} pre-tokenizer", "what does unknown pre-tokenizer mean?", "tokenizer.ggml.pre is missing", "how do I fix an unknown pre-tokenizer?", "my old GGUF has no pre-tokenizer",
        ], weight=2),
        Fact("port in use", ["Another program listens there, perhaps another `realizar serve`: `--port` takes another port, and 0 a free one."], ["--port"], asks=[
            "port 8080 of 127.0.0.1 is in use; --port takes another one, and 0 a free one", "port 8080 of 127.0.0.1 is in use",
            "address already in use", "bind: address already in use", "port 8080 is {taken|used|in use}", "the port is in use", "the server does not start because of the port", "what does address already in use mean?", "port conflict",
        ], weight=2),
        Fact("tls together", ["`--tls-cert` and `--tls-key` go together: give both."], ["--tls-cert", "--tls-key"], asks=[
            "--tls-cert and --tls-key go together, it says. what is wrong?", "why does serve refuse my certificate?", "serve wants --tls-key", "I gave --tls-cert and it fails", "https does not start",
        ]),
        Fact("file exists", ["The file exists already: `--force` replaces it."], ["--force"], asks=[
            "synth.gguf exists; --force replaces it",
            "synth says that the file exists", "the output file exists already", "synth: file exists", "synth does not overwrite my file", "why does synth refuse to write?",
        ]),
        Fact("connection refused", ["No server listens there: start `realizar serve`, and check `--host` and `--port`. Other machines reach it with `--host 0.0.0.0`."], ["--host"], asks=[
            "connection refused", "I cannot connect to the server", "the server is not reachable", "curl: connection refused", "clients cannot connect from another machine", "why can't I reach the server from outside?", "the server does not answer from another computer", "works on localhost but not from {my phone|another machine}",
        ], weight=2),
        Fact("no server at", ["No server listens at this address: start one with `realizar serve model.gguf`, or give top or bench serve the address of another."], ["realizar serve"], asks=[
            "no server at http://127.0.0.1:8080", "realizar top says no server at", "bench serve says that there is no server", "no server at the address", "top finds no server", "what does no server at mean?",
        ]),
        Fact("no prompt", ["`realizar run` got no prompt: give it as an argument, or pipe it in. On a terminal it opens a chat."], ["argument"], asks=[
            "no prompt: standard input is empty", "it says no prompt", "run says that standard input is empty", "what does standard input is empty mean?", "run in a script says no prompt",
        ]),
        Fact("unknown field", ["Leave the field out, or start the server with `--lenient`, which ignores unknown fields."], ["--lenient"], asks=[
            "unknown field; remove it", "the server says unknown field", "my client sends a field that the server does not know", "unknown field in my request", "the server refuses my client because of a field",
        ]),
        Fact("cors error", ["A web page of another origin asks: `--cors` with its origin allows it, as in `realizar serve model.gguf --cors https://example.org`"], ["--cors"], asks=[
            "web pages of https://example.org may not use this server", "may not use this server; --cors allows others", "CORS error in the browser", "my web page may not use the server", "blocked by CORS",
        ]),
        Fact("host error", ["The request calls the server by a name that it does not have: `--allow-host` adds the name."], ["--allow-host"], asks=[
            "the server does not answer to the name llm.example.org", "the server does not answer to the name", "it refuses my host name", "403 behind a proxy", "--allow-host adds names, it says",
        ]),
        Fact("key error", ["The key is not in the file of `--api-key-file`. Clients send `Authorization: Bearer KEY`."], ["--api-key-file"], asks=[
            "the server does not know this API key", "it does not know my key", "my API key is refused", "401 although I send a key", "wrong API key",
        ]),
        Fact("nothing at address", ["The path is wrong: the base URL of OpenAI's clients ends in /v1; those of Anthropic's and Ollama's clients have no path."], ["/v1"], asks=[
            "there is nothing at this address", "the server says that there is nothing at this address", "404 from my client", "404 page for every request", "wrong base URL",
        ]),
        Fact("registry refuses", ["Check the name. Private and gated repositories need `HF_TOKEN`, and registries the credentials of docker login."], ["hf_token"], asks=[
            "pull fails with 401", "the hub has no such repository, or it is private", "the hub has no such repository", "the registry has no such model or tag", "pull says that the repository does not exist", "the hub refuses my pull", "I cannot pull a gated model", "access denied by Hugging Face", "pull does not find the repository",
        ]),
        Fact("no server responds", ["The hub or registry cannot be reached: check the network and the name. `HTTPS_PROXY` names a proxy, and `HF_ENDPOINT` a mirror of the hub."], ["https_proxy"], asks=[
            "no server responds", "pull says that no server responds", "pull cannot reach Hugging Face", "my network needs a proxy for pull", "I am behind a proxy and pull fails", "can I use a mirror of the hub?", "what is HF_ENDPOINT?", "how do I pull through a proxy?",
        ]),
        Fact("hub offline", ["`HF_HUB_OFFLINE` is set, so nothing is pulled: unset it."], ["unset"], asks=["HF_HUB_OFFLINE is set; unset it", "it is not pulled: HF_HUB_OFFLINE is set", "what is HF_HUB_OFFLINE?", "pull says that HF_HUB_OFFLINE is set", "why is my model not pulled?"]),
        Fact("demo built in", ["demo is built in: there is nothing to pull. `realizar run demo` runs it."], ["built in"], asks=["how do I pull demo?", "demo is built in: there is nothing to pull", "realizar pull demo fails", "where do I download demo?", "pull demo?"]),
        Fact("no such quantisation", ["The repository has no such quantisation; the error lists those that there are. Put one of them behind the name, as in hf:org/repo:Q8_0."], ["lists"], asks=["no such model: there is no Q4_K_M; there are Q8_0", "there is no Q4_K_M in the repository", "pull says that there is no such quantisation", "the repository lacks Q4_K_M", "which quantisations does a repository have?"]),
        Fact("schema refused", ["The error names the keyword and its place: simplify the schema there. `realizar grammar --json-schema schema.json` checks it."], ["realizar grammar"], asks=[
            "my JSON schema is refused", "the schema cannot be enforced", "the server refuses my schema", "it says that a keyword is not supported", "my grammar is refused", "error in my schema",
        ]),
        Fact("bad output", ["Check that it is an instruct model with the right template, that `--temperature` is not too high, and that the quantisation is not too small. Files of synth give random words."], ["--temperature"], asks=[
            "{my|the} model {says|writes} {nonsense|garbage|rubbish}", "the output is {garbage|nonsense|gibberish}", "the answers make no sense", "why does {it|the model} write random words?", "gibberish output", "the model answers badly",
        ]),
        Fact("repeats", ["Try `--repetition-penalty 1.1`, or `--frequency-penalty 0.5`, and a `--temperature` above 0."], ["--repetition-penalty"], asks=[
            "{my|the} model {repeats itself|is in a loop|repeats the same sentence}", "the answer repeats forever", "it loops", "why does the model repeat itself?", "it says the same thing again and again", "the output is repetitive",
        ], weight=2),
        Fact("never stops", ["Limit it with `--max-tokens`, or end it at a text with `--stop`."], ["--max-tokens"], asks=[
            "the answer never {ends|stops}", "the model does not stop", "it writes forever", "the answer is endless", "generation does not end", "why does it not stop?",
        ]),
        Fact("cut answer", ["It reached `--max-tokens` or the end of the context: raise the one, or set a larger `--context`. The finish reason is length then."], ["--max-tokens", "--context"], asks=[
            "{my|the} answer is cut off", "the answer ends in the middle{ of a sentence|}", "the output stops too early", "why does the answer stop in the middle?", "incomplete answer", "the text is not finished",
        ]),
        Fact("different answers", ["The tokens are sampled at random: set `--seed`, or `--temperature 0`."], ["--seed"], asks=[
            "I get {different answers|another answer} each time", "answers differ from run to run", "why is the answer different each time?", "the output is not reproducible", "results change every time",
        ]),
        Fact("wrong usage", ["Exit code 2 means that the command line is invalid; the message says why, and `--help` behind the command shows examples."], ["--help"], asks=[
            "it says See realizar run --help", "wrong usage", "my command line is wrong", "the command line is refused", "expected a command, what now?",
        ]),
        Fact("slow prompts", ["The prefill of a long prompt takes arithmetic: `realizar bench model.gguf` measures it as pp512. A prefix that was read before is found in the cache."], ["bench"], asks=[
            "reading the prompt is slow", "long prompts take forever", "the first token takes long", "it waits long before the first word", "why is a long prompt slow?",
        ]),
    ]  # fmt: skip


FACTS = Facts("errors", _facts())
