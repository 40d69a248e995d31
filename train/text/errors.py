"""What the command says when it fails, what that means, and the way out."""

from .facts import Fact, Facts


def _facts() -> list[Fact]:
    return [
        Fact("no such file", ["The model's file is not there: check its name and the folder that you are in."], ["check"], asks=[
            "no such file or directory", "it says no such file or directory", "realizar: modelfile: stat model.gguf: no such file or directory", "my model is not found", "realizar cannot find my {model|file}", "file not found, what now?", "what does no such file or directory mean?", "why is the file not found?", "it does not find the gguf",
        ]),
        Fact("exceeds context", ["The prompt is longer than the context. Shorten it, or open the model with a larger `--context`."], ["--context"], asks=[
            "the prompt exceeds the context", "it says the prompt exceeds the context", "error: the prompt is 5000 tokens long, the context 4096", "my prompt is too long", "what does the prompt exceeds the context mean?", "how do I fix the prompt exceeds the context?", "prompt too long error", "ErrContext, what now?", "the context is too small for my text",
        ], weight=2),
        Fact("not enough memory", ["The memory at hand is too small. The message says what would fit: a smaller `--context`, a larger `--memory` or `--gpu-memory`, or `--kv-cache q8`."], ["--context", "--memory"], asks=[
            "not enough memory", "it says not enough memory", "{realizar|it} runs out of memory", "error not enough memory{. what now?|}", "how do I fix not enough memory?", "out of memory", "my model does not fit into memory", "my model is too {big|large} for my {machine|GPU|RAM}", "what does not enough memory mean?", "OOM, what to do?", "CUDA out of memory",
            "how do I make {my|the} model fit?", "not enough RAM",
        ], weight=2),
        Fact("cuda not usable", ["No usable NVIDIA driver was found: install NVIDIA's driver, or give the container its devices. `realizar doctor` says what is missing."], ["driver", "doctor"], asks=[
            "the device cannot be used", "no usable NVIDIA driver", "libcuda.so.1: cannot open shared object file", "it does not find {CUDA|my GPU|the driver}", "cuda is not found", "why {is my GPU not used|does realizar not use my GPU|is the GPU ignored}?", "--device cuda fails", "error: no usable NVIDIA driver. what do I do?", "my GPU is not {found|seen|detected|working}",
            "the GPU does not work", "GPU not working in the container", "what does no usable NVIDIA driver mean?",
        ], weight=2),
        Fact("on the cpu note", ["A GPU was passed over, for the reason that the note gives; `--device cuda` makes that an error, and `realizar doctor` checks the GPU."], ["doctor"], asks=[
            "it says on the CPU:", "why does it run on the CPU?", "realizar: on the CPU", "what does the note on the CPU mean?", "it uses the CPU although I have a GPU", "why not the GPU?",
        ]),
        Fact("unknown architecture", ["The file's architecture is not one that realizar knows: it runs LLaMA, Mistral, Qwen2 and Qwen3."], ["llama", "qwen3"], asks=[
            "the architecture is not known", "unknown architecture", "it does not know the architecture of my model", "ErrArchitecture", "architecture not supported", "what does unknown architecture mean?", "my model has an unknown architecture",
        ]),
        Fact("not a model", ["The file is no GGUF or safetensors file. A folder must hold config.json and the safetensors files."], ["gguf", "safetensors"], asks=[
            "not a model", "it says that my file is no model", "the file is not a GGUF file", "what does ErrNotModel mean?", "my file is not recognised", "it does not open my file", "why can it not open my folder?",
        ]),
        Fact("damaged file", ["The file is damaged or incomplete: download it again and compare its size."], ["download it again"], asks=[
            "the file is damaged", "unexpected end of file", "the file ends early", "my GGUF file is {broken|truncated|incomplete}", "tensor lies beyond the end of the file", "what if the download was cut?", "is my file corrupt?",
        ]),
        Fact("not finite error", ["The model computed a value that is no number, in the layer that the error names. The file may be damaged; `--activations f32` and `--kv-cache f32` rule out too few bits."], ["layer"], asks=[
            "not finite", "the model computed NaN", "error: not finite in layer 3", "what does not finite mean?", "ErrNotFinite", "it says NaN or infinity", "nan in the output",
        ]),
        Fact("no template error", ["The model has no chat template, so it is a base model: run continues the prompt, as with `--raw`; over HTTP use `/v1/completions`."], ["--raw"], asks=[
            "no chat template", "my model has no chat template", "what if a model has no chat template?", "ErrNoTemplate", "the model has no template", "can I use a model without a chat template?",
        ]),
        Fact("no tokenizer error", ["The model has no tokenizer that can be used, so it takes token ids only; `realizar logits` runs them."], ["token ids"], asks=[
            "no usable tokenizer", "the model has no tokenizer", "ErrNoTokenizer", "what does no usable tokenizer mean?", "tokenizer missing",
        ]),
        Fact("pre-tokenizer error", ["The GGUF file does not say a pre-tokenizer that is known: name it with `--pre-tokenizer`, such as `--pre-tokenizer qwen2`."], ["--pre-tokenizer"], asks=[
            "unknown pre-tokenizer", "the pre-tokenizer is {missing|not known|unknown}", "error about {the|tokenizer.ggml.pre|a} pre-tokenizer", "what does unknown pre-tokenizer mean?", "tokenizer.ggml.pre is missing", "how do I fix an unknown pre-tokenizer?", "my old GGUF has no pre-tokenizer",
        ], weight=2),
        Fact("port in use", ["Another program listens on that port: choose another with `--port`, or `--port 0` for a free one."], ["--port"], asks=[
            "address already in use", "bind: address already in use", "port 8080 is {taken|used|in use}", "the port is in use", "the server does not start because of the port", "what does address already in use mean?", "port conflict",
        ], weight=2),
        Fact("tls together", ["`--tls-cert` and `--tls-key` go together: give both."], ["--tls-cert", "--tls-key"], asks=[
            "--tls-cert and --tls-key go together, it says. what is wrong?", "why does serve refuse my certificate?", "serve wants --tls-key", "I gave --tls-cert and it fails", "https does not start",
        ]),
        Fact("file exists", ["synth does not replace a file unless `--force` is given."], ["--force"], asks=[
            "synth says that the file exists", "the output file exists already", "synth: file exists", "synth does not overwrite my file", "why does synth refuse to write?",
        ]),
        Fact("connection refused", ["No server listens there: start `realizar serve`, and check `--host` and `--port`. From other machines it takes `--host 0.0.0.0`."], ["--host"], asks=[
            "connection refused", "I cannot connect to the server", "the server is not reachable", "curl: connection refused", "clients cannot connect from another machine", "why can't I reach the server from outside?", "the server does not answer from another computer", "works on localhost but not from {my phone|another machine}",
        ], weight=2),
        Fact("bad output", ["Check that it is the right template and an instruct model, that `--temperature` is not too high, and that the quantisation is not too small. Random words come from files made by synth."], ["--temperature"], asks=[
            "{my|the} model {says|writes} {nonsense|garbage|rubbish}", "the output is {garbage|nonsense|gibberish}", "the answers make no sense", "why does {it|the model} write random words?", "gibberish output", "the model answers badly",
        ]),
        Fact("repeats", ["Try `--repetition-penalty 1.1`, or `--frequency-penalty 0.5`, and a `--temperature` above 0."], ["--repetition-penalty"], asks=[
            "{my|the} model {repeats itself|is in a loop|repeats the same sentence}", "the answer repeats forever", "it loops", "why does the model repeat itself?", "it says the same thing again and again", "the output is repetitive",
        ], weight=2),
        Fact("never stops", ["Bound it with `--max-tokens`, or end it at a text with `--stop`."], ["--max-tokens"], asks=[
            "the answer never {ends|stops}", "the model does not stop", "it writes forever", "the answer is endless", "generation does not end", "why does it not stop?",
        ]),
        Fact("cut answer", ["It reached `--max-tokens` or the end of the context: raise the one or set a larger `--context`. finish_reason is length then."], ["--max-tokens", "--context"], asks=[
            "{my|the} answer is cut off", "the answer ends in the middle{ of a sentence|}", "the output stops too early", "why does the answer stop in the middle?", "incomplete answer", "the text is not finished",
        ]),
        Fact("different answers", ["Tokens are chosen at random there: set `--seed`, or `--temperature 0`."], ["--seed"], asks=[
            "I get {different answers|another answer} each time", "answers differ from run to run", "why is the answer different each time?", "the output is not reproducible", "results change every time",
        ]),
        Fact("wrong usage", ["Exit code 2 means that the command line makes no sense; the message says what, and `--help` behind the command shows what is right."], ["--help"], asks=[
            "it says See realizar run --help", "wrong usage", "my command line is wrong", "the command line is refused", "expected a command, what now?",
        ]),
        Fact("slow prompts", ["Long prompts are read at the machine's speed of multiplying: `realizar bench model.gguf` shows it as pp512. What was read once is found in the cache again."], ["bench"], asks=[
            "reading the prompt is slow", "long prompts take forever", "the first token takes long", "it waits long before the first word", "why is a long prompt slow?",
        ]),
    ]  # fmt: skip


FACTS = Facts("errors", _facts())
