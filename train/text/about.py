"""realizar itself: what it is, what it runs, what it promises, how it is built and how fast it is."""

from .facts import Fact, Facts
from .grammar import literal

_IT = "{realizar|it|this program|this tool|this}"


def _facts() -> list[Fact]:
    return [
        Fact("what", [
            "realizar is an inference engine for open-weight language models, written in Go: one binary that runs GGUF and safetensors files on CPUs and NVIDIA GPUs.",
            "realizar runs open-weight language models and serves them over HTTP, from GGUF and safetensors files, on CPUs and NVIDIA GPUs. It is one Go binary, and a library too.",
        ], ["gguf", "language models"], topics=["realizar", "realizar", "this program", "this tool", "the program realizar"], asks=[
            f"what is {_IT} {{good |}}for?", f"what does {_IT} do?", "what can realizar do?", "what can I do with realizar?", "why would I use realizar?", "describe realizar in {a sentence|two sentences|a few words}", "what kind of software is realizar?",
            "what is an inference engine like realizar?", "explain realizar to a beginner", "what did I just install?", "tell me something about realizar", "introduce realizar", "who needs realizar?", "what's realizar all about?", "is realizar an inference engine?",
            "what problem does realizar solve?", "realizar in one sentence?",
        ], weight=5),
        Fact("name kinds", [
            "It is both: a program for the command line and a library for Go programs.",
        ], ["library"], asks=["is realizar a program or a library?", "is it a {library|program|tool}?", "can realizar be used as a library?", "program or library?", "do I use it from the command line or from code?"]),
        Fact("language", [
            "realizar is written in Go, without cgo. Its kernels are assembly for CPUs and CUDA C++ for GPUs.",
        ], ["go"], asks=[f"{{what|which}} {{programming |}}language is {_IT} {{written|made|programmed}} in?", f"is {_IT} written in {{Go|Rust|Python|C++|C|Java}}?", "in what language was realizar programmed?", f"does {_IT} use {{cgo|C|Python|C++|Rust}}?", "what is it coded in?", "why Go?",
            "is there Python in realizar?", "which language do the developers use?", "golang?"], weight=2),
        Fact("licence", [
            "realizar has the MIT licence.", "The licence is MIT: you may use realizar freely, change it and pass it on.",
        ], ["mit"], asks=[f"what is the {{licence|license}} of {_IT}?", f"{{which|what}} {{licence|license}} does {_IT} have?", f"under {{which|what}} {{licence|license}} is {_IT}?", f"is {_IT} {{open source|free|free software}}?", f"may I use {_IT} {{at work|commercially|in my product|for free}}?",
            f"how much does {_IT} cost?", "can I {change|fork|sell} it?", "is it MIT or GPL?", "do I have to pay for realizar?", "licence?", "license", "can I use realizar in a closed product?", "what does the license allow?"], weight=2),
        Fact("install", [
            "With Go 1.26: `go install ./cmd/realizar` in the repository. Nothing else is needed.", "Clone the repository and run `go install ./cmd/realizar`; Go 1.26 fetches the modules.",
        ], ["go install"], goals=[f"{{install|get|set up|build|compile}} {_IT}", "build realizar from source", "get started{ with realizar|}", "put realizar on my machine", "make the binary"], asks=[
            "how is realizar installed?", "what do I need to {install|build} realizar?", "installation?", "where do I get realizar?", "how do I compile it?", "install", "what are the requirements?", "which version of Go do I need?", "does it need {Python|a toolkit|CUDA toolkit|a C compiler} to build?",
        ], weight=2),
        Fact("needs", [
            "Nothing but the binary: no Python, no cgo, no CUDA toolkit. A GPU needs only NVIDIA's driver.",
        ], ["driver"], asks=["what does realizar depend on?", "does realizar need {Python|CUDA|a toolkit|libraries|PyTorch|Docker}?", "what are the dependencies{ of realizar|}?", "do I need to install CUDA?", "what must be installed {to run it|to use a GPU}?", "which libraries does it need?", "is PyTorch needed?",
            "does a GPU need the CUDA toolkit?", "is one file enough?"], weight=2),
        Fact("models", [
            "realizar runs some ninety architectures: Llama, Mistral, Qwen, Gemma, Phi, DeepSeek, gpt-oss, GLM and more. docs/models.md lists all.",
            "Some ninety architectures, among them Llama, Mistral, Qwen, Gemma, Phi, DeepSeek, gpt-oss and GLM: dense models, mixtures of experts, recurrent models and encoders. docs/models.md lists all.",
        ], ["llama", "mistral", "qwen", "docs/models.md"], asks=[f"{{which|what}} {{models|architectures|model families|language models}} {{does {_IT} {{run|support|know}}|are supported|can I run}}?", "can it run {llama|Qwen|Mistral|llama 3|Qwen3|qwen2.5}?", "does realizar support {Llama|Qwen3|Mistral|Qwen2}?", "list the supported {models|architectures}",
            "supported models?", "is {llama|qwen|mistral} supported?", "which families of models work?", "what models are compatible?", "what can be run with it?", "for which models is realizar made?"], weight=3),
        Fact("families", [
            "Yes: Gemma, Phi, DeepSeek, gpt-oss, GLM, Falcon, GPT-2, Granite, Mixtral, Mamba and BERT are among its architectures. docs/models.md lists all.",
        ], ["yes", "docs/models.md"], asks=["can it run {Gemma|Phi|GPT-2|Falcon|DeepSeek|Mamba|BERT|Granite|gpt-oss|Mixtral|GLM}?", "does realizar support {Gemma|Phi|GPT-2|DeepSeek|mixtures of experts|Mamba|encoders|GLM}?", "is {Gemma|Phi-3|a mixture of experts|Mamba|gpt-oss|DeepSeek} supported?", "does {Gemma|DeepSeek|Phi|gpt-oss} work?", "Gemma?", "DeepSeek?", "can realizar run mixtures of experts?", "does it run {recurrent|hybrid} models?"], weight=2),
        Fact("other architectures", [
            "There is no image input yet, and there are no adapters. The README says what is missing.",
        ], ["image", "readme"], asks=["what is not supported?", "what is missing in realizar?", "what can realizar not do{ yet|}?", "what are the limits of realizar?", "is there anything it cannot run?"], weight=2),
        Fact("formats", [
            "realizar opens GGUF files in every weight format that llama.cpp writes, and safetensors from F64 to BF16, FP8, GPTQ and AWQ: one file, shards, or a folder.",
        ], ["gguf", "safetensors"], asks=[f"{{which|what}} {{file formats|formats|files|kinds of files}} {{does {_IT} {{open|read|support}}|can {_IT} open}}?", "does realizar read {GGUF|safetensors|a folder from Hugging Face|GGML} files?", "can I use {a GGUF file|safetensors|a model from Hugging Face}?", "GGUF or safetensors?",
            "supported file formats?", "does it read {PyTorch|ONNX|pickle|.bin|.pt} files?", "can I open a folder?", "what file types can it load?"], weight=2),
        Fact("download", [
            "`realizar pull hf:org/repo` downloads a model by name, from Hugging Face, Ollama, an OCI registry or a web server. Nothing is downloaded unless you ask.",
            "Use `realizar pull`, as in `realizar pull hf:Qwen/Qwen3-0.6B-GGUF:Q8_0`; then every command takes the name. Nothing is downloaded unless you ask.",
        ], ["realizar pull"], asks=["where do I get {models|a model}?", "how do I download {a model|models}{ with realizar|}?", "can realizar download {models|a model}?", "does it {fetch|download} models from {Hugging Face|a hub|the internet|ollama}?", "is there a pull command?", "does run download the model?", "does realizar download anything by itself?", "how do I get a GGUF file?", "which model should I download?",
            "how do I pull a model?", "can I run a model by URL?", "can I give a hub name {like org/name|instead of a file}?"], weight=2),
        Fact("systems", [
            "realizar is built for Linux, macOS and Windows, on x86-64 and arm64.",
        ], ["macos"], asks=["does {realizar|it} run on {Windows|macOS|Linux|a Mac|ARM|arm64|a Raspberry Pi}?", "{which|what} {operating systems|platforms|systems} {are supported|does it run on}?", "is there a {Windows|Mac|Linux} version?", "can I use it on {my Mac|Windows|an ARM machine}?", "platforms?", "which OS?"]),
        Fact("devices", [
            "realizar runs models on CPUs and on NVIDIA GPUs. `--device` chooses: cpu, cuda, or auto, which takes a GPU if the model fits, else the CPU.",
        ], ["nvidia", "--device"], asks=["{on which|what} {devices|hardware} {does it run|are supported|can it run on}?", "does realizar {need|use|require} a GPU?", "do I need a {GPU|graphics card}?", "can it run without a GPU?", "CPU or GPU?", "does it work on {CPUs|the CPU} {alone|only|}?", "which hardware do I need?",
            "can realizar run on a {laptop|machine without a GPU}?", "{which|what} devices are there?"], weight=2),
        Fact("gpus", [
            "NVIDIA GPUs of compute capability 8.0 and later, with nothing but the driver. GPUs of other makers are not used.",
        ], ["nvidia", "driver"], asks=["which GPUs {are supported|does it use|work}?", "does it {support|run on|use} {AMD|Intel|Apple|AMD's|Radeon} {GPUs|cards}?", "which driver do I need{ for the GPU|}?", "is {Metal|ROCm|Vulkan|AMD|Apple silicon's GPU} supported?", "what capability must my GPU have?", "does my NVIDIA card work?",
            "which CUDA version is needed?", "can it use a {4090|H100|H200|3060|A100|T4}?"], weight=2),
        Fact("cpu kernels", [
            "On CPUs it has kernels for AVX-512, AVX2 and NEON, and plain Go elsewhere. `realizar version --verbose` says which are used.",
        ], ["avx2", "neon"], asks=["{which|what} {instructions|kernels|CPU features|SIMD instructions} {does it use|are there|are used}?", "does realizar use {AVX-512|AVX2|NEON|SIMD|VNNI}?", "does it need {AVX2|AVX-512|AVX}?", "which processors does it {support|run on}?", "does it run on an old CPU?", "is it fast on ARM?", "can it run without AVX?"]),
        Fact("force kernels", [
            "Set the variable `REALIZAR_CPU`: `REALIZAR_CPU=avx2` or `REALIZAR_CPU=generic` forces these kernels.",
        ], ["realizar_cpu"], goals=["{force|choose|use} {other|AVX2|generic|particular} {CPU |}kernels", "{turn off|avoid} AVX-512", "test {AVX2|the generic kernels|plain Go kernels}"], asks=["what is REALIZAR_CPU?", "what does REALIZAR_CPU do?", "which environment variables are there for the CPU?", "how do I set the instruction set?"]),
        Fact("environment", [
            "`REALIZAR_CPU` chooses the kernels of the CPU, `REALIZAR_API_KEY` is the key of bench serve and top, `REALIZAR_HOME` the folder of realizar, and each flag of serve has a variable, such as `REALIZAR_MAX_QUEUE`.",
        ], ["realizar_cpu", "realizar_api_key"], asks=["{which|what} environment variables {are there|does realizar read|does it use}?", "what is REALIZAR_API_KEY?", "environment variables?", "can I configure realizar by environment variables?", "list the environment variables"]),
        Fact("promises", [
            "Nothing is cut off silently. The same request and seed give the same tokens. What a user types is text. What hostile files, templates, prompts and requests can make it spend is bounded.",
        ], ["silently", "same"], asks=["what does realizar promise?", "what are {the|its} {promises|guarantees|principles}{ of realizar|}?", "what can I rely on?", "which guarantees are there?", "what is realizar held to?", "what makes realizar {special|different|trustworthy}?", "why should I trust it?"], weight=2),
        Fact("truncation", [
            "Nothing is cut off silently: a prompt that does not fit is an error with both numbers, and an answer says why it ended.",
        ], ["error"], asks=["is {my|a} prompt {truncated|cut off|shortened}{ when it is too long|}?", "what happens {when|if} {a|the|my} prompt is too long?", "does realizar truncate {prompts|anything|long prompts}?", "what if the context is full?", "are long prompts cut?", "does it drop old messages?", "what happens to prompts that do not fit?",
            "is anything truncated silently?"], weight=2),
        Fact("determinism", [
            "The same request and seed give the same tokens, to the bit: alone or in any batch, after preemption and cache hits, with speculative decoding and without.",
        ], ["same"], asks=["are {answers|results} {deterministic|reproducible|repeatable}?", "is {realizar|it} deterministic?", "do I get the same answer {twice|every time} {with the same seed|}?", "does {the load|who else is served|batching} change {my|the} answer?", "same seed, same answer?", "is a result the same on a busy server?", "does batching change results?",
            "can other users change what I get?", "are the tokens always the same?", "is sampling reproducible?"], weight=2),
        Fact("special text", [
            literal("What a user types is text: special tokens match only in what the chat template writes, so `<|im_end|>` in a message is plain text."),
        ], ["text"], asks=["can {a user|somebody} {inject|type} special tokens?", "is prompt injection by special tokens possible?", "what happens if a user types {im_end|a special token}?", "are special tokens in my prompt recognised?", "how are special tokens in messages treated?", "is typed markup dangerous?"]),
        Fact("hostile files", [
            "Files, templates, prompts and requests are treated as hostile: lengths are checked against the real size of the file, and what they can make it spend is bounded before it is spent. docs/security.md has more.",
        ], ["checked"], asks=["is it safe to open {unknown|untrusted|foreign} {files|models}?", "can a {model file|GGUF file|chat template} harm me?", "what about {broken|damaged|malicious} files?", "is realizar secure?", "what does realizar do against malicious models?", "are chat templates dangerous?", "can a bad file crash it?"]),
        Fact("accuracy", [
            "With float32 activations, logits agree with transformers to a relative error of at most 2.3e-6; tokens and prompts are equal to those of tokenizers, llama.cpp and Jinja2. docs/accuracy.md has more.",
        ], ["2.3e-6"], asks=["how {exact|accurate|precise|correct} is {realizar|it}?", "does it agree with {transformers|llama.cpp|PyTorch}?", "are the results right?", "how close are the logits to {transformers|those of transformers}?", "what is the numerical error?", "how was the correctness {checked|tested}?", "with what was realizar compared?",
            "can I trust the numbers?", "is the tokenizer the same as {Hugging Face's|that of tokenizers}?"], weight=2),
        Fact("accuracy 8 bit", [
            "With quantised weights and activations in 8 bits, the default, the error is 2.3e-2 to 2.5e-2, where llama.cpp has 2.3e-2 to 4.5e-2; with `--activations f32` it is at most 7.4e-7.",
        ], ["2.5e-2"], asks=["how large is the error {with|of} {8-bit|8 bit} activations?", "do 8-bit activations hurt?", "what do activations in 8 bits cost in accuracy?", "how exact are quantised models?", "is the default less exact than f32?"]),
        Fact("speed gpu", [
            "On one H200, llama-3.1-8b in Q4_K_M decodes at 525 tokens per second for one user and 16,100 for 256 users; ik_llama.cpp has 258 for one.",
        ], ["525", "16,100"], asks=["how fast is {realizar|it} on {a GPU|an H200|NVIDIA GPUs}?", "what is the speed on {a GPU|an H200}?", "how many tokens a second does {an 8B model|llama} make on a GPU?", "tokens per second on an H200?", "GPU speed?", "what are the figures for GPUs?", "is it faster than {ik_llama.cpp|llama.cpp} on a GPU?"], weight=2),
        Fact("speed cpu", [
            "On two cores with AVX-512, llama-3.2-1b in Q4_K_M decodes at 29 to 38 tokens per second, by machine and day, which is 75 to 90% of what the memory gives.",
        ], ["29 to 38"], asks=["how fast is {realizar|it} on {a CPU|the processor|two cores}?", "what is the speed on a CPU?", "how many tokens a second on {a CPU|a processor}?", "tokens per second on the CPU?", "CPU speed?", "is it fast without a GPU?", "what are the figures for CPUs?"], weight=2),
        Fact("speed question", [
            "It depends on the machine and the model: `realizar bench model.gguf` measures yours. On two cores a 1B model decodes at 29 to 38 tokens per second; on an H200 an 8B model decodes at 525.",
        ], ["bench"], asks=["how fast is realizar?", "is realizar fast?", "how {quick|fast} is it?", "what speed can I expect?", "how many tokens per second will I get?", "is it slow?", "performance?", "what about performance?", "how fast will my model be?", "is realizar faster than others?"], weight=2),
        Fact("slow", [
            "`realizar bench model.gguf` shows how near it is to the limit of the machine. A smaller quantisation such as Q4_K_M, a GPU with `--device cuda`, or a smaller model is faster.",
        ], ["bench"], goals=["make {it|realizar|my model|the model|answers} {faster|quicker|run faster}", "{speed up|accelerate} {it|realizar|my model|generation|decoding}", "{improve|increase} {the speed|performance|tokens per second}", "get more tokens per second"], asks=["why is it {so |}slow?", "it is {too|very|so} slow", "my model is slow", "generation is slow. what can I do?", "answers come slowly"]),
        Fact("llama.cpp", [
            "llama.cpp is another engine for GGUF files, written in C++. realizar reads the same files, is one Go binary without cgo, and its answers are the same to the bit in every batch. docs/comparison.md has more.",
        ], ["llama.cpp", "go"], asks=["how does realizar {compare with|differ from} llama.cpp?", "realizar or llama.cpp?", "what is the difference {to|between realizar and} llama.cpp?", "why not {use |}llama.cpp?", "is realizar better than llama.cpp?", "realizar vs llama.cpp", "does it use llama.cpp?", "is realizar based on llama.cpp?", "what about llama.cpp?"]),
        Fact("vllm", [
            "vLLM is a server for many GPUs, written in Python. realizar is one binary without Python for a CPU or the GPUs of one host; its server takes fields of vLLM and has metrics of the same names.",
        ], ["vllm", "binary"], asks=["how does realizar {compare with|differ from} vLLM?", "realizar or vLLM?", "what is the difference {to|between realizar and} vLLM?", "why not {use |}vLLM?", "is realizar better than vLLM?", "realizar vs vLLM", "is it like vLLM?", "what about vLLM?"]),
        Fact("ollama", [
            "Ollama is a program with a library of ready models. realizar has Ollama's API, pulls and runs its models, and never cuts a prompt: what does not fit is an error.",
        ], ["ollama", "api"], asks=["how does realizar {compare with|differ from} ollama?", "realizar or ollama?", "what is the difference {to|between realizar and} ollama?", "why not {use |}ollama?", "is realizar better than ollama?", "realizar vs ollama", "can it use ollama's models?", "what about ollama?", "is it like {ollama|LM Studio}?"]),
        Fact("transformers", [
            "transformers is a Python library for many kinds of models. realizar is one binary for running some of them fast, and its logits agree with those of transformers to 2.3e-6.",
        ], ["python"], asks=["how does realizar {compare with|differ from} transformers?", "realizar or transformers?", "what is the difference {to|between realizar and} {transformers|PyTorch}?", "why not {use |}{transformers|PyTorch}?", "realizar vs transformers", "what about Hugging Face transformers?"]),
        Fact("train", [
            "realizar runs models and does not train or fine-tune them.",
        ], ["does not train"], asks=["can realizar {train|fine-tune|finetune|teach} {a model|models|llama}?", "how do I {train|fine-tune} a model{ with realizar|}?", "is there {LoRA|training|fine-tuning}?", "does it support {training|fine-tuning|LoRA}?", "can I {train|fine-tune} my own model?", "fine tuning?"]),
        Fact("quantise files", [
            "realizar runs quantised files as they are and does not convert files; llama.cpp's tools write GGUF files in other formats.",
        ], ["convert"], asks=["can realizar {quantise|quantize|convert} a model?", "how do I {quantise|quantize|convert} a model{ to GGUF| to Q4_K_M|}?", "is there a {quantise|convert} command?", "how do I make a GGUF file {from safetensors|of my model}?", "can it convert safetensors to GGUF?"]),
        Fact("images", [
            "No: realizar works with text only. There is no image input yet.",
        ], ["text"], asks=["can {realizar|it} {read|see|make|generate|understand} {images|pictures|photos|audio|speech|video}?", "does realizar support {images|vision|audio|multimodal models|speech}?", "can I send {an image|a picture|audio}?", "image input?", "is there {vision|speech recognition}?"]),
        Fact("offline", [
            "realizar works offline. Nothing is downloaded unless you ask, as with `realizar pull`, and it sends your prompts nowhere.",
        ], ["offline"], asks=["does {realizar|it} work {offline|without internet|without a network}?", "does realizar send {data|my prompts|anything} {anywhere|to somebody|to the cloud}?", "is my data private?", "does it phone home?", "do I need the internet?", "is there telemetry?", "where do my prompts go?", "is everything local?", "does realizar collect data?"], weight=2),
        Fact("library ask", [
            literal("`m.Ask(ctx, \"What is 3 + 4?\")` returns the answer as a string; `m.Chat` and `m.Generate` give it in pieces and have every setting."),
        ], ["m.ask"], asks=["what is the simplest way to get an answer in Go?", "what does Ask do?", "how do I ask a model one question in Go?", "m.Ask or m.Chat?", "how do I get {an answer|a string} from the library?"]),
        Fact("library", [
            literal("Open a model with `realizar.Open(ctx, \"model.gguf\", realizar.Options{})` and loop over the events of `m.Chat` or `m.Generate`. `go doc github.com/realizar/realizar` has the rest."),
            literal("In Go: `m, err := realizar.Open(ctx, \"model.gguf\", realizar.Options{})`, then `for event, err := range m.Chat(ctx, request)`; close it with `m.Close()`."),
        ], ["realizar.open"], goals=["{use|call|embed} realizar {in|from|as a library in} {Go|my program|a Go program|my code}", "use the {Go |}{library|package|API of Go}", "open a model in Go", "write a Go program {with|that uses} realizar", "{import|integrate} realizar {in|into} {Go code|my application}"],
            asks=["is there a Go {API|package|library}?", "what does the library look like?", "show me {Go code|an example in Go|how the library is used}", "how do I use it in my own program?", "go package?", "Go example, please"], weight=2),
        Fact("library import", [
            "The package is `github.com/realizar/realizar`. A program that is to use NVIDIA GPUs also imports `github.com/realizar/realizar/cuda`.",
        ], ["github.com/realizar/realizar"], asks=["what is the import path?", "{which|what} package do I import?", "what is the Go module called?", "how do I use a GPU from the library?", "import path of realizar?", "what is the package for CUDA?"]),
        Fact("library cancel", [
            "Leave the loop or cancel the context: that stops the work and frees its memory.",
        ], ["context"], asks=["how do I {stop|cancel|abort} {an answer|a request|generation} {in the library|in Go|from Go code}?", "how is a request cancelled in Go?", "what happens when I leave the loop?", "does cancelling the context stop the work?"]),
        Fact("library concurrency", [
            "A model may be used by many goroutines at once.",
        ], ["goroutines"], asks=["is {a model|the library|the Model} {thread safe|safe for goroutines|safe for concurrent use}?", "can {several|many} goroutines use one model?", "may I share a model between goroutines?", "concurrent use of a model in Go?"]),
        Fact("library embed", [
            "`Model.Embed` makes vectors of texts, and the server does so at `/v1/embeddings`.",
        ], ["embed"], asks=["how do I {make|get|compute} {embeddings|vectors of texts|an embedding}{ in Go|}?", "does realizar {make|support|have} embeddings?", "embeddings?", "can it make {vectors|embeddings} of {text|texts|sentences}?", "vectors for semantic search?"]),
        Fact("library errors", [
            "Errors wrap values to compare with `errors.Is`: ErrArchitecture, ErrConfig, ErrTensor, ErrNotFinite, ErrClosed, ErrOptions, ErrRequest, ErrGrammar, ErrContext, ErrMemory, ErrDevice, ErrNoTokenizer, ErrNoTemplate and others.",
        ], ["errcontext", "errors.is"], asks=["{which|what} errors does the library {return|have}?", "how do I {check|recognise|handle} errors in Go?", "error values of the package?", "what is Err{Context|Memory|Device|Tensor}?", "how do I find out in Go that a prompt is too long?"]),
        Fact("library options", [
            "`realizar.Options` has Device, Threads, Context, Parallel, Memory, DeviceMemory, Cache, HostCache, Speculative and more; the zero value is good for most.",
        ], ["device", "threads", "context"], asks=["{which|what} options does {the library|realizar.Options|Open} have?", "what can I set when I open a model in Go?", "what is in realizar.Options?", "how do I choose the device in Go?", "options of Open?"]),
        Fact("library mask", [
            "Yes: `Generation.Grammar` holds an answer to a JSON Schema, a regular expression or a grammar, and `Generation.Mask` is a function that says before each token which may come next.",
        ], ["mask"], asks=["can I {steer|constrain|restrict} the answer by a grammar in Go?", "what is {the |}Mask{ of a request|}?", "how do I use a grammar with the library?", "constrained decoding in Go?"]),
        Fact("docs", [
            "docs/running.md is about running models, docs/serving.md about the server, docs/api.md has the HTTP API and docs/design.md the design. `go doc github.com/realizar/realizar` has the library.",
        ], ["docs/api.md"], asks=["where is the documentation?", "{which|what} documents {are there|should I read}?", "where can I read more{ about realizar|}?", "is there {a manual|documentation|a design document}?", "docs?", "where is the API described?", "how do I learn more{ about realizar|}?", "what is in docs?"]),
        Fact("test", [
            "`go test ./...` runs the tests in some minutes; `.ci/run` also runs long tests and those that need data.",
        ], ["go test"], goals=["{run|start} the tests", "test {realizar's code|a change of the code}", "check a change before I commit it"], asks=["how is realizar tested?", "are there tests?", "what is .ci/run?", "what does the CI do?"]),
        Fact("who made", [
            "realizar is made by its maintainers in the open, at github.com/realizar/realizar. I am a small model that comes with it.",
        ], ["maintainers"], asks=["who {made|wrote|develops|maintains|created|is behind} realizar?", "who are the authors of realizar?", "which company is behind realizar?", "is realizar made by {Google|OpenAI|Meta|a company}?", "where is the repository?", "where is the source{ code|}?", "who built this program?", "github?"]),
        Fact("bug", [
            "Open an issue at github.com/realizar/realizar, with the command, the message and what `realizar version --verbose` and `realizar doctor` say.",
        ], ["issue"], goals=["report a bug", "{tell|ask} the {developers|maintainers} {something|about a bug}", "get {help from people|support}", "suggest a feature", "contribute"], asks=["I found a bug", "where do I report bugs?", "who can help me with a problem?", "it crashed{, what now|}?", "is there support?"]),
        Fact("uninstall", ["Delete the binary, and the folder ~/.cache/realizar. Models of Hugging Face lie in the cache of its tools: `realizar rm` removes them."], ["delete"], goals=["{uninstall|remove|delete|get rid of} realizar"], asks=["where does realizar keep its files?", "does realizar write files?", "does it leave files on my machine?"]),
        Fact("size", ["realizar is one binary. The demo model inside of it has about 6.6 million parameters."], ["one binary"], asks=["how {big|large} is realizar?", "how much space does it take?", "how many files are there?", "size of the binary?"]),
        Fact("good first model", [
            "A small one is quick to try: `realizar pull hf:Qwen/Qwen3-0.6B-GGUF:Q8_0` takes 640 MB and runs on any machine. An 8B model in Q4_K_M takes about 5 GB.",
        ], ["qwen3-0.6b"], asks=["which model {should I|can I|shall I} {try|use|start with|take}{ first|}?", "recommend a model", "what is a good model{ to start with| for my laptop|}?", "which model is small?", "what's a good small model?", "suggest a model for a machine without GPU", "best model for beginners?"]),
        Fact("first token", [
            "The first time on a GPU, the driver compiles the kernels and keeps them for later runs. Later runs start without that.",
        ], ["compiles"], asks=["why does the {first|very first} {start|run} {on a GPU |}take {so |}long?", "how long until the first token?", "why is the first run on a GPU slow?", "how fast does it start?", "startup time?"]),
        Fact("tokenizer kinds", [
            "BPE, Unigram and WordPiece tokenizers, from tokenizer.json, GGUF files or tokenizer.model.",
        ], ["bpe", "unigram"], asks=["{which|what} tokenizers {are supported|does it know|work}?", "does it support {sentencepiece|BPE|Unigram|WordPiece}?", "can it read tokenizer.json?", "tokenizers?", "which kinds of tokenizers are there?"]),
        Fact("templates", [
            "The chat template of the model, in Jinja, is rendered as transformers does it: 44 templates of real models gave equal text.",
        ], ["jinja"], asks=["how are chat templates {rendered|handled}?", "does it support chat templates?", "does realizar understand Jinja?", "which chat templates work?", "are chat templates supported?"]),
        Fact("prefix cache", [
            "Requests share the prefixes of their prompts in the KV cache, in pages of 32 tokens: what a prompt has in common with an earlier one is not computed again, and the answer is the same to the bit.",
        ], ["common"], asks=["is there {prefix caching|a prefix cache|prompt caching}?", "does realizar cache prompts?", "how does prefix caching work{ in realizar|}?", "are common beginnings computed twice?", "is {a|my} long system prompt computed each time?"], topics=["the prefix cache", "prefix caching"]),
        Fact("batching", [
            "Running requests share each step, the KV cache and the prefixes of their prompts: batching is continuous.",
        ], ["share"], asks=["does realizar batch requests?", "is there continuous batching?", "how are many requests handled{ at once|}?", "what happens with several requests at {once|the same time}?", "can it serve several users at once?"], topics=["continuous batching"]),
        Fact("preemption", [
            "When the KV cache is full, an answer gives up its pages and goes on later; its tokens are the same as without the preemption.",
        ], ["later"], asks=["what happens when {the cache|memory} is full?", "what if the cache has no room{ for all answers|}?", "what is preemption?", "can an answer be interrupted?"], topics=["preemption"]),
        Fact("priority", [
            "Requests take a field `priority`: lower numbers go first.",
        ], ["priority"], asks=["can some requests go first?", "are there priorities?", "how do I {give|make} a request {a priority|more important}?", "priority of requests?", "can I prefer some users?"]),
    ]  # fmt: skip


FACTS = Facts("about realizar", _facts())
