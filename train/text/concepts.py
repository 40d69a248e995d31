"""Words of the trade: files, formats, devices, numbers, sampling, what a model is made of."""

from .facts import Fact, Facts

# Formats of weights, with the bits for each weight that a mix of that name takes.
_BITS = {
    "Q2_K": "3.16", "Q3_K_S": "3.64", "Q3_K_M": "4.00", "Q3_K_L": "4.30", "MXFP4": "4.81", "IQ4_XS": "4.46", "IQ4_NL": "4.68",
    "Q4_0": "4.64", "Q4_1": "5.10", "Q4_K_S": "4.67", "Q4_K_M": "4.89", "Q5_0": "5.57", "Q5_1": "6.04", "Q5_K_S": "5.57",
    "Q5_K_M": "5.70", "Q6_K": "6.56", "Q8_0": "8.50", "F16": "16.00", "BF16": "16.00", "F32": "32.00",
}  # fmt: skip


def _formats() -> list[Fact]:
    facts = []
    for name, bits in _BITS.items():
        size = round(8.03 * float(bits) / 8, 1)
        if name in ("F16", "BF16", "F32"):
            what = {"F16": "half precision floats of 16 bits", "BF16": "floats of 16 bits with the range of float32", "F32": "floats of 32 bits, full precision"}[name]
            says = [f"{name} means {what}. A model of 8 billion parameters takes about {size} GB in it."]
            must = ["floats"]
        else:
            says = [f"{name} is a format of quantised weights with about {bits} bits for each weight. A model of 8 billion parameters takes about {size} GB in it."]
            must = [bits]
        facts.append(Fact(
            f"format {name}", says, must, topics=[name, f"the format {name}", f"{name} in a file name", f"the quantisation {name}"],
            asks=[f"how many bits {{has|does}} {name}{{ have| take|}}?", f"how {{big|large}} is an 8B model in {name}?", f"what does {name} {{mean|stand for}}?", f"how much memory does {name} take?", f"is {name} good?", f"should I {{use|take}} {name}?"],
        ))  # fmt: skip
    return facts


def _facts() -> list[Fact]:
    return [
        Fact("gguf", ["GGUF is llama.cpp's file format for models: weights, tokenizer, chat template and other metadata in one file."], ["file format", "llama.cpp"],
             topics=["GGUF", "a GGUF file", "gguf"], asks=["what does GGUF stand for?", "what is in a GGUF file?"]),
        Fact("safetensors", ["safetensors is a file format for tensors, in which most models are published; beside it lie config.json and tokenizer.json."], ["tensors"],
             topics=["safetensors", "a safetensors file", ".safetensors"]),
        Fact("hub folder", ["A model hub's folder has config.json, tokenizer.json and the weights in safetensors files. realizar opens it as it is: `realizar run ./Qwen3-0.6B`"], ["config.json"],
             topics=["a folder from a model hub", "a Hugging Face folder"], asks=["how do I {run|open|use} a {folder from Hugging Face|hub folder|downloaded folder}?", "which files must be in the folder?", "what does a model folder need?"]),
        Fact("quantisation", ["Quantisation stores weights in fewer bits, such as 4 instead of 16: the model takes less memory, runs faster and loses a little quality."], ["fewer bits"],
             topics=["quantisation", "quantization", "a quantised model", "a quant"], asks=["why {are models quantised|quantise a model}?", "what does quantised mean?", "does quantisation hurt quality?", "what is the point of 4-bit weights?"], weight=2),
        Fact("which quant", ["Q4_K_M is a good compromise: about 4.9 bits for each weight. Q8_0 is nearly as good as the original, Q2_K is the smallest."], ["q4_k_m"],
             asks=["{which|what} {quantisation|quantization|quant|format} {should I|shall I|do I} {use|take|choose|download}?", "which quant is {best|good|recommended}?", "what's the best quantisation?", "Q4 or Q8?", "recommend a {quantisation|format}", "Q4_K_M or Q8_0?", "which file of the many quants should I download?"], weight=2),
        Fact("native formats", ["Every weight format that llama.cpp writes. Q4_0 to Q8_0, Q2_K to Q6_K, IQ4_NL, IQ4_XS, MXFP4 and TQ2_0 stay quantised in memory; the others become floats."], ["q4_0", "mxfp4"],
             asks=["{which|what} {quantisations|quantizations|formats of weights|weight formats} {are supported|does realizar run|does it support}?", "does it support {Q4_K_M|IQ4_XS|MXFP4|IQ2_XXS|IQ1_S|Q8_0}?", "which formats are fast?", "list the quantisation formats", "are {IQ|K|ternary} quants supported?", "which GGUF formats can it read?"], weight=2),
        Fact("lower is faster", ["Yes: decode reads all weights for each token, so fewer bits mean fewer bytes and more tokens per second."], ["bytes"],
             asks=["is a smaller quantisation faster?", "does Q4 run faster than {Q8|F16}?", "why is a quantised model faster?", "are fewer bits faster?"]),
        Fact("kv cache", ["The KV cache keeps the keys and values of all tokens so far, so that they are not computed again. `--kv-cache q8` or f8 makes it half as large."], ["keys and values"],
             topics=["the KV cache", "a KV cache", "the cache of keys and values", "KV cache"], asks=["what are keys and values?", "why is there a cache?", "what is kept in the cache?"], weight=2),
        Fact("context", ["The context is the most tokens of prompt and answer together. `--context` sets it."], ["tokens"],
             topics=["the context", "a context window", "context length", "the context window"], weight=2),
        Fact("token", ["A token is a piece of text, a word or part of one, that the model reads and writes as a number."], ["piece"],
             topics=["a token", "tokens", "token"], asks=["how long is a token?", "is a token a word?"], weight=2),
        Fact("tokenizer", ["A tokenizer turns text into token ids and back. `realizar tokenize` shows what it does."], ["token ids"], topics=["a tokenizer", "the tokenizer", "tokenization", "tokenisation"]),
        Fact("pre-tokenizer", ["A pre-tokenizer cuts text into words before they are split into tokens. A GGUF file names it; `--pre-tokenizer NAME` names it if the name is missing or unknown."], ["words"],
             topics=["a pre-tokenizer", "the pre-tokenizer", "pre-tokenization"]),
        Fact("chat template", ["A chat template turns the messages of a conversation into the text that the model was trained with. It is written in Jinja and comes with the model."], ["messages"],
             topics=["a chat template", "the chat template", "chat templates"], weight=2),
        Fact("system prompt", ["A system prompt gives instructions that come before the conversation. `--system` sets it in run; in the API it is a message of the role system."], ["instructions"],
             topics=["a system prompt", "the system message", "a system message"]),
        Fact("prompt", ["A prompt is what you give to a model: a question or a text to continue."], ["question"], topics=["a prompt", "the prompt", "prompt"]),
        Fact("llm", ["A language model computes which token is likely to come next. A large one has billions of weights; I have 6.6 million."], ["next"],
             topics=["a language model", "an LLM", "a large language model", "LLM"], asks=["how does a language model work?", "how do LLMs work?"], weight=2),
        Fact("inference", ["Inference is running a trained model: it reads a prompt and generates one token after the other."], ["run"], topics=["inference", "an inference engine"]),
        Fact("weights", ["Weights are the numbers of a model that training has found; a file of a model is mostly weights."], ["numbers"], topics=["weights", "the weights of a model", "parameters", "a parameter of a model"]),
        Fact("open-weight", ["An open-weight model is one whose weights may be downloaded, so that you can run it on your own machine."], ["downloaded"], topics=["an open-weight model", "open weights", "open-weight"]),
        Fact("logit", ["A logit is the model's score of a token, before scores become probabilities. `realizar logits` writes them."], ["score"], topics=["a logit", "logits of a model", "the word logit"]),
        Fact("logprob", ["A log-probability is the logarithm of a token's probability: 0 means certain, and the more negative the less likely."], ["logarithm"], topics=["a log-probability", "logprobs", "log-probabilities", "a logprob"]),
        Fact("temperature concept", ["Temperature divides the logits before sampling: below 1 likely tokens become likelier, above 1 less so, and 0 always takes the likeliest."], ["likelier"],
             topics=["temperature", "the temperature", "sampling temperature"], asks=["{which|what} temperature should I use?", "what is a good temperature?", "what does a high temperature do?", "what is temperature 0?"], weight=2),
        Fact("greedy", ["Greedy choice always takes the likeliest token: `--temperature 0`. run does so if the model recommends nothing."], ["likeliest"], topics=["greedy decoding", "greedy sampling", "greedy choice"]),
        Fact("sampling", ["Sampling chooses the next token at random by its probability. `--temperature`, `--top-k`, `--top-p`, `--min-p` and `--typical-p` shape the choice."], ["random"], topics=["sampling", "random sampling", "sampling parameters"],
             asks=["which sampling parameters are there?", "how are tokens chosen?", "how does the model choose words?", "which samplers does realizar have?"], weight=2),
        Fact("sampling order", ["The order is: penalties and biases, temperature, top-k, typical, top-p, min-p."], ["temperature", "top-k"], asks=["in which order are the samplers applied?", "order of sampling?", "what comes first, top-k or top-p?", "what is the order of {the samplers|temperature and top-p|the filters}?"]),
        Fact("top-k or top-p", ["top-k keeps a fixed number of the likeliest tokens; top-p keeps as many as it takes for their probabilities to add up to P."], ["number", "add up"],
             asks=["what is the difference between {top-k and top-p|top-p and top-k}?", "top-k or top-p?", "should I use top-k or top-p?", "top-k vs top-p"]),
        Fact("presence or frequency", ["The presence penalty counts a token once, however often the answer has it; the frequency penalty grows with each time."], ["once"],
             asks=["what is the difference between {presence and frequency penalty|the presence penalty and the frequency penalty}?", "presence or frequency penalty?", "frequency penalty vs presence penalty", "which penalty should I use?"]),
        Fact("context or max-tokens", ["`--context` limits prompt and answer together, `--max-tokens` the answer alone."], ["--context", "--max-tokens"],
             asks=["what is the difference between --context and --max-tokens?", "--context or --max-tokens?", "context vs max-tokens", "does --max-tokens count the prompt?"]),
        Fact("memory or kv-host", ["`--memory` limits host memory, `--gpu-memory` GPU memory; `--kv-host` gives host memory to the KV cache of a GPU."], ["--memory", "--kv-host"],
             asks=["what is the difference between --memory and --kv-host?", "--memory or --kv-host?", "--memory vs --kv-host"]),
        Fact("memory or gpu-memory", ["`--memory` limits host memory, `--gpu-memory` limits GPU memory."], ["--memory", "--gpu-memory"],
             asks=["what is the difference between --memory and --gpu-memory?", "--memory or --gpu-memory?", "--memory vs --gpu-memory", "does --memory limit the GPU?"]),
        Fact("larger than the gpu", ["A model larger than the GPU streams: layers without room there are copied from host memory in every step while other layers run. `realizar inspect model.gguf --device cuda` says how fast that is."], ["layers", "host"],
             asks=["{can|does} {realizar|it} run a model that is {larger|bigger} than {the GPU|my GPU|the GPU's memory}?", "what if a model does not fit on the GPU?", "my model is larger than {my VRAM|the GPU|my card}", "does realizar {offload|stream} {layers|weights}?", "how does weight streaming work?", "what is weight streaming?", "is there CPU offloading?", "how fast is a model that does not fit on the GPU?", "what happens when the model is too large for the GPU?"], weight=2),
        Fact("experts stream", ["Of a mixture of experts, only the experts that tokens use are copied to the GPU."], ["experts"],
             asks=["how does streaming work for a mixture of experts?", "are all experts on the GPU?", "which experts stay on the GPU?", "can a large mixture of experts run on a small GPU?", "do experts stream?", "MoE larger than the GPU?"]),
        Fact("tls cert or key", ["`--tls-cert` names the certificate and `--tls-key` its key, both in PEM. They go together."], ["together"],
             asks=["what is the difference between --tls-cert and --tls-key?", "do I need both --tls-cert and --tls-key?", "can I use --tls-cert without --tls-key?", "--tls-cert and --tls-key go together?"]),
        Fact("timeouts", ["serve has four: `--request-timeout` for a request, `--first-token-timeout` for its first token, `--write-timeout` for a client that does not read, and `--drain-timeout` after SIGTERM."], ["--request-timeout", "--write-timeout", "--drain-timeout"],
             asks=["{which|what} timeouts {are there|does serve have|does the server have}?", "what is the difference between the timeouts?", "list the timeouts", "timeouts of the server?", "--request-timeout or --drain-timeout?"]),
        Fact("prefill", ["Prefill reads the tokens of the prompt, many at once; decode generates the tokens of the answer one after the other."], ["prompt"], topics=["prefill", "the prefill", "prompt processing"], asks=["what is the difference between prefill and decode?", "prefill vs decode"]),
        Fact("decode", ["Decode generates the tokens of the answer, one after the other. Each reads all weights once, so memory bandwidth is its limit."], ["one after the other"], topics=["decoding", "the decode phase", "decode"]),
        Fact("ttft", ["The time to first token is from the request to the first token of its answer: waiting in the queue, and prefill."], ["first token"], topics=["time to first token", "TTFT", "ttft", "the time to the first token"]),
        Fact("bandwidth", ["Memory bandwidth is how many bytes a second the machine reads. It limits decoding, since every token reads all weights."], ["bytes"], topics=["memory bandwidth", "bandwidth"], asks=["why does bandwidth matter?", "what limits decoding?", "why is decoding limited by memory?"]),
        Fact("perplexity", ["Perplexity says how well a model predicts a text: the lower the better. `realizar eval` measures it."], ["lower"], topics=["perplexity", "the perplexity of a model", "ppl"], weight=2),
        Fact("kl", ["KL divergence says how far the probabilities of one model are from those of another; 0 means equal. `realizar eval` measures it with `--against`."], ["probabilities"], topics=["KL divergence", "the KL divergence", "Kullback-Leibler divergence"]),
        Fact("top1", ["Top-1 agreement is how often two models have the same likeliest token. `realizar eval` measures it with `--against`."], ["same likeliest"], topics=["top-1 agreement", "top1 agreement"]),
        Fact("embedding", ["An embedding is a vector of numbers that stands for a text, so that texts of like meaning have vectors near each other. The server makes them at `/v1/embeddings`."], ["vector"], topics=["an embedding", "embeddings", "text embeddings"]),
        Fact("pooling", ["Pooling makes one vector of those of all tokens: their mean, the last, the first or the maximum. `pooling` in a request takes mean, last, cls or max."], ["mean"], topics=["pooling", "the pooling of embeddings"]),
        Fact("bf16", ["bfloat16 has 16 bits: the range of float32 with fewer digits."], ["16 bits"], topics=["bfloat16", "the type bfloat16"]),
        Fact("activations", ["Activations are the numbers between the layers of a model. With quantised weights they are in 8 bits on the CPU and in float16 on a GPU; `--activations f32` has float32 throughout, and `--activations f8` FP8 on an H100 or H200."], ["8 bits"], topics=["activations", "the activations of a model"]),
        Fact("layers", ["A layer of a model is attention and a feed-forward part; tokens go through one layer after the other."], ["attention"], topics=["a layer", "the layers of a model"]),
        Fact("attention", ["Attention lets each token look at the tokens before it and take from them what matters."], ["look"], topics=["attention", "self-attention", "the attention mechanism"]),
        Fact("gqa", ["Grouped-query attention shares keys and values between several query heads, so that the cache is smaller."], ["shares"], topics=["grouped-query attention", "GQA"]),
        Fact("rope", ["RoPE, rotary position embedding, turns queries and keys by their position so that attention knows distances."], ["position"], topics=["RoPE", "rotary position embedding", "rope"]),
        Fact("gpu", ["A GPU is a processor for graphics that also multiplies the matrices of language models fast."], ["fast"], topics=["a GPU", "GPU", "a graphics card"]),
        Fact("cpu", ["The CPU is a computer's main processor. realizar runs on it if there is no GPU, or with `--device cpu`."], ["processor"], topics=["a CPU", "CPU", "the processor"]),
        Fact("cuda", ["CUDA is NVIDIA's way to program its GPUs. `--device cuda` runs a model there."], ["nvidia"], topics=["CUDA", "cuda"]),
        Fact("vram", ["VRAM is the memory of a GPU. Weights that do not fit stream from host memory; `realizar inspect model.gguf --device cuda` says what a model takes."], ["memory"], topics=["VRAM", "GPU memory"], asks=["how much VRAM do I need?", "will my model fit on the GPU?", "how much GPU memory does a model take?"]),
        Fact("memory needs", ["About the size of the file, and the cache beside it: an 8B model in Q4_K_M takes 4.9 GB. `realizar inspect model.gguf` says it exactly."], ["inspect"], asks=["how much {memory|RAM} {do I need|does a model take|is needed}{ for an 8B model|}?", "how much RAM for a {7B|8B|1B|3B} model?", "will {llama|a model|an 8B model|Qwen} fit in {8|16|4} GB?", "what are the memory requirements?", "is 8 GB of RAM enough?"], weight=2),
        Fact("streaming", ["Streaming sends an answer piece by piece, as the model generates it. In the API, set `stream` to true."], ["piece"], topics=["streaming", "a stream", "streamed answers"]),
        Fact("openai dialect", ["OpenAI's API is a form of requests over HTTP that most programs for language models know. `realizar serve` has it, so their clients work."], ["http"], topics=["OpenAI's dialect", "the OpenAI API", "OpenAI's API", "an OpenAI compatible API"]),
        Fact("sse", ["Server-sent events are how a stream of an answer comes over HTTP: a line `data:` for each piece, at last `[DONE]`."], ["data:"], topics=["server-sent events", "SSE"]),
        Fact("seed concept", ["A seed starts the random choice: the same seed, request and model give the same answer."], ["same"], topics=["a seed", "a random seed"]),
        Fact("mmap", ["Model files are mapped into memory: the system reads pages as they are needed, so a model opens at once."], ["mapped"], topics=["mmap", "memory mapping", "mapped files"], asks=["does realizar use mmap?", "is the file loaded into memory?", "are model files mapped?"]),
        Fact("jinja", ["Jinja is the language in which chat templates are written. realizar has a renderer of its own that agrees with Jinja2."], ["templates"], topics=["Jinja", "jinja2", "a .jinja file"]),
        Fact("bos", ["The BOS token begins a text, the EOS token ends it. Which ids they have is the model's matter; `realizar inspect` shows the ids that end an answer."], ["begins"], topics=["a BOS token", "BOS", "EOS", "an EOS token", "the end token"]),
        Fact("speculative", ["Speculative decoding proposes the next tokens and checks several in one step; the answer is the same. `--speculative suffix` proposes what followed the last tokens earlier, and is the default on the CPU; `--speculative draft=MODEL` has a faster model propose."], ["--speculative", "same"], topics=["speculative decoding", "suffix decoding"], asks=["does realizar have speculative decoding?", "does speculative decoding change the answer?", "when does speculative decoding pay off?", "is there a draft model?", "are draft models supported?", "which tokens are proposed?", "is speculative decoding on by default?"], weight=2),
        Fact("tool calls", ["A tool call is a model's request to run a function that the caller described: it names the tool and gives its arguments as JSON."], ["function"], topics=["a tool call", "tool calls", "function calling", "tool use"]),
        Fact("json schema", ["A JSON schema says which fields a JSON object has and of what types. `--json-schema FILE` constrains an answer by one."], ["fields"], topics=["a JSON schema", "JSON schema"]),
        Fact("structured output", ["Structured output is an answer that is held to a JSON Schema, a regular expression or a grammar, token by token: `--json-schema`, `--regex` and `--grammar` in run, `response_format` over HTTP."], ["--json-schema", "--regex"], topics=["structured output", "constrained decoding", "guided decoding"], asks=["can realizar guarantee valid JSON?", "is an answer with a schema always valid?", "which grammars does realizar know?", "does realizar support {GBNF|Lark|grammars|JSON Schema}?"], weight=2),
        Fact("gbnf", ["GBNF is llama.cpp's notation of grammars; `--grammar` takes a file in it, or in Lark's notation."], ["llama.cpp"], topics=["GBNF", "a GBNF grammar", "a Lark grammar"]),
        Fact("which constraint", ["`--json-schema` takes a JSON Schema, `--regex` a regular expression, and `--grammar` a grammar in GBNF or in Lark's notation."], ["--json-schema", "--regex", "--grammar"], asks=["what is the difference between --json-schema and --grammar?", "--regex or --grammar?", "should I use a schema or a grammar?", "--json-schema or --regex?", "which flag constrains answers?", "how can answers be constrained?"]),
        Fact("json or json schema", ["`--json` writes the result of the command as JSON; `--json-schema` constrains what the model writes."], ["--json-schema", "constrains"], asks=["what is the difference between --json and --json-schema?", "--json or --json-schema?", "does --json make the model write JSON?", "--json vs --json-schema"]),
        Fact("q8 or f8", ["Both take about half the memory of f16. q8 is more accurate; f8 also holds heads whose width is a multiple of 16."], ["q8", "accurate"], asks=["what is the difference between {q8 and f8|f8 and q8}?", "q8 or f8?", "which KV cache is better, q8 or f8?", "is f8 as good as q8?", "should I use f8 for the cache?", "what is an f8 cache?"], topics=["f8", "--kv-cache f8", "an E4M3 cache"], weight=2),
        Fact("tuning", ["`realizar doctor --tune` measures which kernels are the fastest on the GPUs, and keeps the result for later runs. It changes no bit of an answer."], ["doctor --tune"], asks=["does tuning change answers?", "where is the result of doctor --tune?", "do I have to tune realizar?", "how long does doctor --tune take?", "what does tuning do?", "should I run doctor --tune?"], topics=["tuning", "the tuning of kernels"]),
        Fact("reasoning", ["A reasoning model writes a thought before its answer. The server gives it as reasoning_content; `reasoning_effort` says how much thought an answer is worth."], ["thought"], topics=["a reasoning model", "reasoning", "a thinking model"]),
        Fact("reranker", ["A reranker says how well documents answer a query. The server has `/v1/rerank` for models that were made for it."], ["query"], topics=["a reranker", "reranking"]),
        Fact("infill", ["Infill, or fill-in-the-middle, writes the text of a gap between two texts. The server has `/infill` for models that were trained for it."], ["gap"], topics=["infill", "fill-in-the-middle", "FIM"]),
        Fact("encoder", ["An encoder, such as BERT, reads a text as a whole and gives vectors, not text."], ["vectors"], topics=["an encoder", "BERT", "an encoder model"]),
        Fact("oci", ["An OCI registry keeps images and models by name and digest. `realizar pull` and `realizar push` take names such as oci://registry/name:tag."], ["registry"], topics=["an OCI registry", "OCI", "a ModelPack"]),
        Fact("digest", ["A digest, such as sha256, is a number computed from all bytes of a file. `realizar verify` compares models with theirs."], ["bytes"], topics=["a digest", "a checksum"]),
        Fact("hugging face", ["Hugging Face is a hub of models. `realizar pull hf:org/repo` downloads one of its repositories."], ["realizar pull"], topics=["Hugging Face", "the hub", "a model hub"]),
        Fact("alias", ["A short name is a name of your own for a model: `realizar cp hf:org/repo small`. On a server, `--served-model-name` names the model in requests."], ["realizar cp"], topics=["an alias", "an alias of a model"]),
        Fact("recurrent", ["A recurrent model, such as Mamba, keeps a state of fixed size in place of keys and values. realizar runs several, and hybrids with attention."], ["state"], topics=["a recurrent model", "Mamba", "a hybrid model"]),
        Fact("several gpus", ["Yes: `--device cuda:0,1` runs a model on two GPUs together, up to 8, and `--split` says whether each has a share of every layer or some of the layers. `--device cuda` takes as few GPUs as hold the model."], ["together"], asks=["can {realizar|it} use {several|two|many} GPUs{ for one model|}?", "is there tensor parallelism?", "multi GPU?", "how do I split a model {between|across|over} GPUs?", "does it support {tensor parallelism|pipeline parallelism|NVLink}?", "how do I use both of my GPUs?"], weight=2),
        Fact("lora", ["realizar has no adapters: merge a LoRA adapter into the model first, with other tools."], ["no adapters"], topics=["a LoRA adapter", "adapters"], asks=["does realizar support {LoRA adapters|adapters}?", "can I load a LoRA?"]),
        Fact("fine-tuning", ["Fine-tuning goes on training a model on texts of one's own. realizar does not do it: it runs models."], ["training"], topics=["fine-tuning", "finetuning"]),
        Fact("mixture", ["A mixture of experts is a model in which each token uses only some of the weights."], ["some of the weights"], topics=["a mixture of experts", "MoE"]),
        Fact("hallucination", ["A hallucination is an answer that sounds right and is wrong. Models choose likely words; check what matters."], ["wrong"], topics=["a hallucination", "hallucinations"], asks=["why do models {hallucinate|make things up|lie}?"]),
    ]  # fmt: skip


FACTS = Facts("concepts", _facts() + _formats())
