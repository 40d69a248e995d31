"""What people want who need a flag, in their words.

For each flag the words of which a right explanation has at least one, and what one
may want to do, as templates of phrases that follow "how do I". A scope is a command, or
several that share a flag ("model": all commands that run a model).
"""

RUN: dict[str, tuple[list[str], list[str]]] = {
    "--system": (["system message"], [
        "{give|pass|send} {the model |}instructions {before the conversation|first|up front}",
        "set {a|the} system {prompt|message}",
        "{tell|instruct} the model {how|in which style} to answer",
        "make {it|the model} {always |}answer {in French|like a pirate|in one sentence|as a teacher}",
        "{add|use|define|specify} {a|my own} system {prompt|message|instruction}",
        "give the {assistant|model|bot} a {role|persona|character|personality}",
        "change {the way|how} the model {behaves|talks|speaks} {from the start|in the chat|}",
        "put {rules|guidelines|instructions} {in front of|before} the {chat|conversation|question}",
        "say {once and for all|at the beginning} how {the answers|replies} should {be|look|sound}",
        "have instructions that {hold for the whole chat|come before my prompt}",
    ]),
    "--raw": (["template"], [
        "{run|use} {a prompt|the model} without {the|its} chat template",
        "continue {a text|the prompt|a sentence} as it is",
        "{skip|disable|leave out|turn off|bypass|avoid} the chat template",
        "{complete|go on with|continue} a {text|story} instead of {answering|chatting}",
        "use {a base model|plain completion|text completion}",
        "{send|give} the {raw|bare|exact|literal} prompt to the model",
        "make special tokens in {my|the} prompt count",
        "write the {chat markup|template's tokens|special tokens} {myself|by hand} in the prompt",
        "get {plain|pure|raw} {continuation|completion} of {a|my} text",
    ]),
    "--json": (["json"], [
        "get the {answer|answers|output} of {realizar |}run as JSON",
        "make run {write|print|output} JSON",
        "have {answers|the answer of run} in a {machine readable|machine-readable} {form|format}",
        "{parse|process|read} the answer {in|with} a {script|program}",
        "{write|print} one JSON object for each answer",
        "see the {finish reason|usage|token counts} of an answer {as JSON|in JSON|}",
        "pipe the {answer|result|output} of run into jq",
    ]),
    "--verbose": (["timings"], [
        "see how {long|much time} {the answer|an answer|run} {took|takes|needed}",
        "{show|print|display|get} {the timings|timings|the times|statistics} of {an answer|run|a run}",
        "{see|know|find out} how {fast|slow|quick} an answer was",
        "make run {more verbose|say more|talkative}",
        "{see|find out|print} {which|what} random seed was {used|taken}",
        "see tokens per second {of|after} an answer",
        "{measure|time} {a single|one} answer",
    ]),
    "--trace-timing": (["each token"], [
        "{see|know|find out} {what|how long} {each|every|a} token {took|takes|costs}",
        "{see|find out|know} where the time {of|to|until} the first token {goes|went|is spent}",
        "{trace|time|measure} {the tokens|each token|every token|loading and prefill} {of an answer|}",
        "{see|get} {the phases|the parts} of the time to {the |}first token",
        "{see|know} how long {open, load and compile|loading|opening and loading|compiling kernels} {takes|take|took}",
        "get {timings|the time} {per|of each|by} token",
    ]),
    "--profile": (["kernels and layers"], [
        "{profile|analyse} {a step|an answer|the kernels|the model|a run}",
        "{see|find out|know} {which|what} {kernel|operation|layer} {takes|needs} the most time",
        "{write|get|make} a {trace|profile} for {Chrome|Chrome's viewer|Perfetto|chrome://tracing}",
        "{time|measure} {every|each} {operation|kernel|layer} {by itself|}",
        "{see|get} {a table of kernels|the bandwidth of each kernel|the time by layer}",
        "{find|see} {the slowest|slow} {kernels|operations|layers}",
    ]),
    "--n": (["n answers"], [
        "get {several|three|more than one|multiple|a few|many|5|two} {answers|replies|completions} {to one prompt|at once|}",
        "have the model answer {three times|twice|several times|more than once}",
        "{generate|make|choose|write} {several|multiple|4|different} {answers|alternatives|versions|variants}",
        "{compare|see} {different|alternative} answers to the same {question|prompt}",
        "set {the number of answers|how many answers I get|how many answers there are}",
        "{ask|answer} the same prompt several times in one go",
    ]),
    "--max-tokens": (["most tokens in the answer"], [
        "{limit|restrict|cap|bound} the {length|size} of {the|an} {answer|reply|output|response}",
        "{limit|restrict|cap} the number of {tokens|words} in the {answer|output|reply}",
        "make {the answer|answers|replies} {shorter|short|brief}",
        "{stop|end|cut} {the answer|generation|it|the output} after {100|50|200|32|n|500} tokens",
        "{set|choose|change} the {maximum|largest} {length|number of tokens} of {an|the} answer",
        "keep {answers|the answer|the output|replies} from {getting|becoming|being} too long",
        "get at most {64|100|20|a hundred} tokens",
        "keep the model from {talking|writing|going on} {forever|endlessly|too long}",
        "say how many tokens {the model|it} may {write|generate|produce} at most",
        "have {a maximum|an upper limit} {of|for} {generated|new} tokens",
    ]),
    "--min-tokens": (["fewest tokens"], [
        "make {the answer|answers|replies} longer",
        "{force|get} {longer|long} {answers|replies|output}",
        "set {a|the} {minimum|least|smallest} {length|number of tokens} {of|for} {an|the} answer",
        "keep {the model|it} from {ending|stopping|finishing} too {early|soon}",
        "get at least {50|100|200|n} tokens",
        "{prevent|avoid} {answers that are too short|too short answers|short replies}",
        "have {a minimum|a lower limit} {of|for} {generated|new} tokens",
        "make sure that an answer has {enough|no fewer than 20|at least 30} tokens",
    ]),
    "--temperature": (["likelier", "likely"], [
        "make {the answer|answers|it|the output} {more|less} {random|creative|varied|wild|predictable}",
        "{set|change|choose|lower|raise|adjust} the temperature",
        "{control|change|set|tune|influence} {the randomness|how random the answers are|creativity}",
        "get {more creative|more varied|less boring|more surprising|wilder} {answers|output|text}",
        "{always|only} {take|get|choose} the {likeliest|most likely|most probable} token",
        "make the model {more creative|deterministic|less random|greedy|bolder}",
        "use greedy {decoding|choice|sampling}",
        "{sample|choose tokens} with more {randomness|chance|freedom}",
        "{flatten|sharpen|reshape} the {distribution|probabilities} of the tokens",
        "get {another|a different} answer each time",
    ]),
    "--top-k": (["likeliest"], [
        "choose among the {40|20|50|10|k} {likeliest|most likely|most probable} tokens",
        "{use|set|turn on|enable} top-k{ sampling|}",
        "{sample|choose|pick} {only |}from the {best|top} {k|40|ten|100} tokens",
        "{limit|restrict} the choice to {a number of|the 30|a fixed number of|K} {likeliest|best} tokens",
        "keep {only |}the k {best|likeliest|top} candidates {for each token|at each step|}",
        "set {how many|the number of} {likely|candidate} tokens {are|to be} considered",
        "cut off all but {the first|a certain number of|50} {candidates|tokens}",
    ]),
    "--typical-p": (["entropy"], [
        "{use|set|turn on|enable} typical sampling",
        "choose tokens that surprise {about |}as much as {is |}{expected|to be expected}",
        "use locally typical {sampling|decoding}",
        "choose {typical|neither too likely nor too unlikely} tokens",
        "keep tokens of {typical|expected|average} {surprise|information}",
        "{set|change} typical p",
    ]),
    "--top-p": (["total probability"], [
        "{use|set|turn on|enable} {nucleus|top-p} sampling",
        "choose among {the likeliest |}tokens whose probabilities add up to {0.9|0.95|p|0.8|90 percent}",
        "{set|change} top-p",
        "{sample|choose} from the {nucleus|top 90 percent} {of probability|of the tokens|}",
        "{limit|restrict} the choice by {total|summed|cumulative} probability",
        "cut off the {tail|least likely part} by {cumulative|summed} probability",
        "keep the smallest set of tokens {with a given|of a certain} total probability",
    ]),
    "--min-p": (["at least p times"], [
        "{use|set|turn on|enable} min-p{ sampling|}",
        "{drop|remove|exclude|leave out} tokens that are much less likely than the {likeliest|best}",
        "set a {minimum|lowest} probability {relative to|compared with} the {likeliest|best|top} token",
        "keep {only |}tokens at least {0.05|p|0.1} times as likely as the {likeliest|best|top} one",
        "cut off tokens by {relative|their relative} {probability|likelihood}",
        "filter tokens {against|by comparison with} the {best|likeliest} one",
    ]),
    "--repetition-penalty": (["less likely"], [
        "{avoid|prevent|reduce|stop} repetition{s|} of {what is in the prompt|words of the prompt and the answer}",
        "{use|set|add} a {repetition|repeat} penalty",
        "{make|keep} {the model|it} {repeat itself less|from repeating itself|from repeating the prompt}",
        "{punish|penalise|discourage} {repeated tokens|repetition|tokens that are already in the prompt or the answer}",
        "{stop|prevent|avoid} the {model|answer} {from looping|going in circles|saying the same thing again and again}",
        "get {less repetitive|more diverse} text",
        "{reduce|fight} {loops|repetition}",
    ]),
    "--presence-penalty": (["once"], [
        "{use|set|add} a presence penalty",
        "make tokens {that the answer already has|already used in the answer} less likely, {once each|no matter how often they were used}",
        "{encourage|get} new {topics|subjects|words} in {the|an} answer",
        "{punish|penalise} tokens that {are present|have appeared at all|were there at least once} in the answer",
        "{push|nudge} the model to {talk about|use} {something new|new words|new things}",
        "lower the {score|logit} of each token that has {been used|appeared} {already|}, by a fixed amount",
    ]),
    "--frequency-penalty": (["each occurrence"], [
        "{use|set|add} a frequency penalty",
        "make tokens less likely the {more often|more} they {were used|appear|are used} {in the answer|}",
        "{punish|penalise} {frequent tokens|tokens by how often they appear|words by their count} {in the answer|}",
        "{punish|penalise} a word more each time it {comes|appears|is used}",
        "lower the {score|logit} of tokens in proportion to {their count|how often they came}",
        "{avoid|reduce} {overused words|words that come too often|using the same word many times}",
    ]),
    "--logit-bias": (["logit"], [
        "{forbid|ban|block|exclude} a {certain |single |particular |}token",
        "{make|keep} {a|one|some} {token|tokens} {likelier|less likely|from being chosen} by {its id|id}",
        "{use|set|add} a logit bias",
        "{add|give} a bias to {a|the logit of a|one} token",
        "{keep|stop} the model from {ever |}{using|saying|choosing} {a token|token 42|a particular token}",
        "{favour|prefer|boost|push} {a token|certain tokens|token 100}",
        "change the {logits|scores} of {single|some|certain} tokens",
    ]),
    "--seed": (["same seed", "repeatable"], [
        "get the same {answer|output|text} {again|every time|each time|twice}",
        "make {the answer|answers|sampling|the output|a random answer} {repeatable|reproducible|the same each time}",
        "{set|fix|choose} {the seed|a seed|the random seed} {of an answer|for run|of run|}",
        "{reproduce|repeat} {an answer|a random answer|a result|an earlier answer}",
        "have the same tokens {chosen|picked} {again|each time|every time}",
        "{seed|initialise|start} the random {number generator|choice} {of run|}",
        "{fix|pin|freeze} the randomness",
    ]),
    "--stop": (["before text"], [
        "{end|stop|cut} {the answer|it|the output} {at|before|when it comes to} a {certain |given |}{text|word|string}",
        "{use|set|add|give} {a stop|stop} {string|sequence|word|text}{s|}",
        "{stop|end} {generation|generating|the answer} at {a newline|the word END|a marker|'###'|a blank line}",
        "make the model stop {when|as soon as|once} it {writes|says|prints} {something|a word|a certain word|'User:'}",
        "{have|define} a {text|string|marker} that ends the answer",
        "{stop|finish} before {a|the} {keyword|delimiter|marker}",
    ]),
    "--tools": (["may call"], [
        "{give|offer} the model {tools|functions} in {run|the terminal}",
        "let {the model|run} {call tools|call functions|use a tool}",
        "{pass|name} {a list|a file} of tools {to run|on the command line|}",
        "{try|test} {tool calls|function calling} {with run|in the terminal|without a server}",
        "{see|get} the tool calls {of a model|that a model makes} as JSON {lines|}",
    ]),
}  # fmt: skip

MODEL: dict[str, tuple[list[str], list[str]]] = {
    "--activations": (["arithmetic"], [
        "compute {in|with} float32{ throughout| everywhere|}",
        "{choose|change|set} the numbers {that the model computes with|to compute with}",
        "{use|get} {full|the highest|the best|higher} {precision|accuracy}{ of the arithmetic|}",
        "{turn off|switch off|disable|avoid} {8-bit|8 bit|quantised} activations",
        "{compute|calculate} {more precisely|more exactly|as exactly as possible}",
        "{set|change} the activations{ to f32|}",
        "get {more exact|float32} {results|activations|logits}",
        "have the products in {float32|f32} {and not|instead of} {in |}8 bits",
        "{compute|calculate} {in|with} FP8{ on an H100| on the GPU|}",
        "{use|get|turn on} {FP8|f8} activations",
        "make {prompts|prefill} faster {in|with} FP8",
    ]),
    "--threads": (["threads"], [
        "{set|change|limit|choose} the number of {threads|cores|CPU threads}",
        "use {all|four|only 2|8|fewer|more} {cores|threads|CPU cores|processors}",
        "{use|take} {less|fewer} {of the processor|cores|CPU}",
        "leave {some |a few |}cores {free |}for {other programs|something else}",
        "{say|tell realizar} how many {threads|cores} {it may use|to use|work}",
        "make it {use|run on} {a single thread|one core|multiple threads|half of the cores}",
        "control {the parallelism on the CPU|CPU usage|how many cores work}",
    ]),
    "--device": (["where the model runs"], [
        "run {a|the|my} model on {the|a|my} {GPU|graphics card|video card}",
        "use {the GPU|my graphics card|CUDA|an NVIDIA GPU|my NVIDIA card}",
        "run {a|the} model on the {CPU|processor}{ and not on the GPU|}",
        "{choose|select|set|change} {the device|where the model runs}",
        "use the {second|other|first} {GPU|graphics card}",
        "{force|make} realizar {to use|use} the {CPU|GPU|processor}",
        "{not use|ignore|avoid|disable} the GPU",
        "{move|put|place|offload} the model {to|on} the {GPU|card}",
        "{speed it up|make it faster} with {a GPU|my graphics card}",
        "pick {one of|between} {several|two} GPUs",
    ]),
    "--context": (["prompt and answer"], [
        "{set|change|increase|enlarge|reduce|limit} the {context|context length|context window|context size}",
        "use {longer|long|larger} {prompts|texts|documents}",
        "{make|have} {the context|room for} {larger|more tokens|8192 tokens|smaller}",
        "{fit|put} {a longer|a long|a bigger} {prompt|document|text|conversation} into {it|the model|the context}",
        "{set|say} how many tokens a prompt and its answer may have {together|in all}",
        "{get|use} a {context|window} of {4096|32768|8k|16k} tokens",
        "save memory {with|by} a {smaller|shorter} context",
        "allow {more|at most 2048|fewer} tokens {of prompt and answer|in one conversation}",
    ]),
    "--parallel": (["running requests"], [
        "{answer|serve|handle|work on} {several|many|more|multiple} {requests|users|prompts|answers} at {once|one time|the same time}",
        "{set|limit|change} how many {answers|requests} {are|may be} under way at {one|a} time",
        "{allow|have} {more|16|fewer|many} {answers|requests} {in parallel|at the same time|at once}",
        "{run|do} {requests|answers} {in parallel|concurrently}",
        "{set|raise|lower} the {concurrency|parallelism|number of slots} of {the|a} server",
        "{limit|bound} {the batch|the number of sequences} {that run|} together",
    ]),
    "--kv-cache": (["format of the kv cache"], [
        "{halve|reduce|shrink|save} the {memory of the cache|cache|KV cache|memory of keys and values}",
        "{quantise|quantize|compress} the {KV cache|cache|keys and values}",
        "{keep|store} keys and values in {8 bits|fewer bits|q8|float16|float32|f16}",
        "{choose|set|change} the {format|type|precision|numbers} of the {KV cache|cache}",
        "{make|get} the {KV |}cache {smaller|more exact|take less memory|in f32}",
        "have an 8-bit cache",
        "{use|set} q8 for the cache",
    ]),
    "--memory": (["host memory"], [
        "{limit|bound|restrict|cap} {the memory|how much memory|the RAM} {it takes|realizar takes|used|that is used|}",
        "use {less|at most 8 GiB of|no more than 4GiB of|more} {memory|RAM}",
        "{set|give} a {memory limit|limit for memory|budget of memory|memory budget}",
        "{keep|stop} realizar from {taking|using|eating} {too much|all the|all} memory",
        "{say|tell it} how much {memory|RAM} {may be taken|it may take|it can use}",
        "{reserve|allow} {more|16GiB of|less} memory for {weights, cache and a step|the cache}",
        "run {in|with} little {memory|RAM}",
    ]),
    "--kv-host": (["host memory"], [
        "{keep|put|move|spill|swap} {parts of |}the cache {in|into|to} {the host's memory|RAM|main memory|host memory|system memory}",
        "{lend|give} the cache {memory of the host|the host's memory|some RAM}",
        "use {RAM|host memory|main memory|CPU memory} for {parts of the cache|the cache|keys and values}",
        "{offload|swap out} {the KV cache|keys and values} {to the host|to RAM|}",
        "{keep|save} {old |}{prefixes|pages of the cache} {that the GPU has no room for|beyond the GPU's memory}",
        "extend the cache {beyond|past} the memory of the {GPU|device|card}",
    ]),
    "--pre-tokenizer": (["pre-tokenizer"], [
        "open a GGUF file {whose|with a} {pre-tokenizer that is missing|pre-tokenizer is unknown|unknown pre-tokenizer|pre-tokenizer is missing}",
        "{choose|name|set|override|give} the {pre-tokenizer|pretokenizer|pre tokenizer}",
        "{fix|get around|solve} an error about {an unknown|a missing} pre-tokenizer",
        "tell realizar how a GGUF file {splits|cuts} text {before|into words before} the tokenizer",
        "use {an old|a} GGUF file {that does not say its|without a} pre-tokenizer",
        "use the {qwen2|llama-bpe|gpt-2} pre-tokenizer for a file",
    ]),
    "--gpu-memory": (["gpu memory"], [
        "{limit|bound|restrict|cap} {the GPU memory|the memory of the GPU|VRAM|the card's memory|how much VRAM}{ it takes| that is used|}",
        "use {at most|no more than|only} {16GiB|half|8 GiB|0.5} of {the GPU's memory|VRAM|the GPU|the card}",
        "{leave|keep} {room|memory|VRAM} on the GPU for {others|another program|something else}",
        "{run|use} a model that is {larger|bigger} than {the GPU|the GPU's memory|my VRAM|the card}",
        "{say|set|choose} how much {GPU memory|VRAM} {may be taken|it may take|realizar gets|it can use}",
        "{share|split} {a|the|one} GPU {between|among} {two models|several programs|programs}",
        "give {a model|realizar} {half|a part|a fraction} of the GPU",
        "set {the|a} {fraction|share|limit} of GPU memory",
    ]),
    "--split": (["divide a model"], [
        "{choose|say|set} how {several |two |}GPUs {divide|split|share} {a|the} model",
        "give each GPU {some of the layers|its own layers|whole layers}{ instead of a share of each|}",
        "{use|turn on|run with} {pipeline parallelism|pipelines of layers|layers on several GPUs}",
        "{run|split} a model on GPUs {without NVLink|without fast links|that do not reach each other's memory}",
        "{choose|switch} between tensor and pipeline parallelism",
    ]),
    "--stream-weights": (["stream from host memory"], [
        "stream {the |}{weights|layers} {from the host|to the GPU|through the GPU|from RAM}{ in every step|}",
        "{run|fit|use} a model that {does not fit|is too large|has no room} {on|for} {the GPU|my card|VRAM}{ layer by layer|}",
        "{turn off|forbid|prevent|avoid|disable} {streaming of weights|weight streaming|the streaming of layers}",
        "{offload|keep} {layers|weights|parts of the model} {to|in} {the host|RAM|host memory|main memory}",
        "{make|have} {weights|layers} {come|go} to the GPU {one after the other|in turn|layer by layer}",
        "get an error {instead of|rather than} {streaming|slow streaming} {where|when} the model does not fit{ on the GPU|}",
        "{always|never} stream {weights|layers}",
    ]),
}  # fmt: skip

CHECKS: dict[str, tuple[list[str], list[str]]] = {
    "--check-argmax": (["again on the cpu"], [
        "{check|verify|test} {the tokens|which tokens} {that |}the {GPU|device} chooses",
        "{check|verify|prove} that {the GPU|the device|the sampler} {takes|chooses} the {likeliest|right} token",
        "choose {tokens|every token} {on the host|on the CPU} too",
        "{compare|check} the {argmax|choice} of the {GPU|device} with {that of the host|the host's|the CPU's}",
        "find out {whether|if} the {GPU|device} {samples|chooses} {right|wrong|correctly}",
    ]),
    "--check-reference": (["every operation"], [
        "{compare|check|verify} {the GPU|each operation|every kernel|all kernels|the kernels} {with|against} the {CPU|reference|processor's reference}",
        "{find|see|name} {the first|the|which} {operation|kernel|layer} that {is wrong|drifts|computes wrong numbers|goes wrong}",
        "{debug|find} {wrong numbers|a wrong kernel|a broken kernel|bad output of the GPU}",
        "{check|test} {each layer|every operation|the first steps} {against|with} a reference",
        "{prove|make sure} that {a kernel|every kernel|the GPU} {is right|computes right}",
    ]),
}  # fmt: skip

SERVE: dict[str, tuple[list[str], list[str]]] = {
    "--host": (["listen"], [
        "make the server {reachable|available|accessible} from {other machines|the network|outside|other computers}",
        "{listen|have the server listen} on {all addresses|0.0.0.0|every address|another address|all interfaces}",
        "{set|change|choose} the {address|host|interface} {of the server|to listen on|that serve listens on}",
        "{open|expose} the server to {the network|my local network|other hosts|the LAN}",
        "bind {the server |}to {an address|0.0.0.0|another interface}",
        "reach the server from {my phone|another computer|another machine}",
        "say where the server listens",
    ]),
    "--port": (["port"], [
        "{change|set|choose} the port{ of the server| to listen on|}",
        "{serve|listen|run the server} on {another port|port 9000|port 80|a different port|port 3000}",
        "use {another|a different|a free|a random|some other} port {for the server|}",
        "{avoid|fix} {a|the} conflict of ports",
        "start {two servers|a second server} on {one|the same} machine",
        "run the server somewhere else than on 8080",
        "let the {system|server} {take|find|choose} a free port",
    ]),
    "--served-model-name": (["name of a single model"], [
        "{change|set|choose} the {name of the model|model's name} {that requests use|in the API|for requests|on the server}",
        "{give|serve} the {served |}model {another|under another|a different|a second} name",
        "{rename|name} the model {for clients|on the server|in the API}",
        "have {two|several} names for {the|one} {served |}model",
        "make clients {that ask for gpt-4|with a fixed model name} work",
        "{serve|offer} a model as {small|assistant|gpt-4}",
        "use an alias for the {served |}model",
    ]),
    "--api-key-file": (["keys"], [
        "{protect|secure} the server with {a key|keys|an API key|a password}",
        "{ask|require} {clients|requests} {for|to have} {a key|an API key}",
        "{use|set|add|require} {API keys|an API key|keys} {on|for} the server",
        "{let|allow} only {people|clients|users} with a key {in|use the server}",
        "{add|turn on|enable} authentication{ to the server|}",
        "keep {strangers|others|unknown people} {out|from using my server}",
        "tell the server which {keys|API keys} are {valid|good|known}",
        "restrict who may use the server",
    ]),
    "--tls-cert": (["certificate"], [
        "serve {over |}{https|HTTPS|TLS}",
        "{use|set up|turn on|enable|have} {https|HTTPS|TLS|SSL|encryption}{ on the server|}",
        "{encrypt|secure} the {traffic|connection} {to|of|with} the server",
        "{give|use|install} {a|my} certificate {on|for|to} the server",
        "{run|start} the server with {a certificate|TLS|my own certificate}",
        "make the server speak {https|TLS}",
        "let clients connect {with|over|by} {https|TLS|SSL}",
    ]),
    "--tls-key": (["key"], [
        "{give|pass|name} the {private key|key of the certificate|certificate's key} {to the server|for https|of TLS|}",
        "set the {file of the |}private key for {https|TLS}",
        "tell the server where the certificate's {private |}key is",
        "use {my|a} private key {with|for} TLS",
    ]),
    "--cors": (["scripts"], [
        "{allow|let} {a web page|scripts of a web page|a website|browsers} {to use|use} the server",
        "{set|allow|enable|turn on} CORS",
        "call the server from {a browser|JavaScript in a page|a web app|a web page}",
        "{allow|permit} {an origin|all origins|cross-origin requests|requests from https://example.org}",
        "fix the {CORS error|origin_not_allowed error|error origin_not_allowed}",
        "{have|make} {my web app|my page|a front end in the browser} talk to the server",
        "send the {CORS headers|Access-Control-Allow-Origin header}",
    ]),
    "--manage-models": (["lets clients"], [
        "{let|allow} clients {to |}{fetch|pull|download} models",
        "{make|have} {ollama pull|/api/pull|Ollama's pull} work {on|with} the server",
        "{allow|enable|turn on} {/api/delete|/api/create|/api/copy|deleting models by the API}",
        "{let|allow} {programs|users|clients} {to |}{manage|delete|add} models over {HTTP|the API}",
        "fix the {models_not_managed error|error models_not_managed}",
    ]),
    "--allow-registry": (["registry"], [
        "{let|allow} clients {to |}pull from {my own|another|a private} registry",
        "{name|set|choose} {registries|the registries|web servers} that clients may {name|pull from|push to}",
        "{allow|permit} {another|a local} registry for {pulls|pushes} of clients",
        "{have|let} clients push models to {a|my} registry",
    ]),
    "--max-queue": (["wait"], [
        "{limit|bound|set|change} {the queue|the length of the queue|how many requests wait|the number of waiting answers}",
        "{refuse|reject|turn away} requests when {too many wait|the queue is full|there are too many}",
        "set how many {answers|requests} may {wait|wait for their turn|queue}",
        "make the {queue|waiting line} of the server {longer|shorter|bounded}",
        "{let|allow} {more|fewer} requests {to wait|in the queue|wait for their turn}",
        "protect the server {against|from} {too many|a flood of} requests",
    ]),
    "--max-body": (["largest body"], [
        "{limit|set|change|raise} the {size of requests|largest request|maximum size of a request|request size}",
        "{allow|accept|take} {larger|bigger|huge} {requests|bodies}",
        "fix {the error body_too_large|error 413|a 413}",
        "{refuse|reject} requests that are too {large|big}",
        "{limit|bound} the {body|bodies} of requests",
        "set how {large|big} a request may be",
    ]),
    "--request-timeout": (["time limit for a request"], [
        "{limit|bound|set} {the time of a request|how long a request may take|the longest time of a request}",
        "{end|abort|stop|give up} requests {that take too long|after 10 minutes|on the server that take too long}",
        "{set|add} a {timeout|time limit} for requests {to the server|of the server|on the server}",
        "{make|let} {long|slow} requests {fail|end} after {some time|a while|a minute}",
        "keep {a request|one request} from {running|taking} forever",
        "fix the error request_timeout",
    ]),
    "--write-timeout": (["read a piece"], [
        "{drop|cut off|disconnect} clients that do not read {their answer|their answers|}",
        "{limit|set} how long a client may leave {its answer|a piece of its answer} unread",
        "set {a|the} timeout for {slow readers|writes|clients that read slowly|writing to clients}",
        "deal with clients that {stop reading|read too slowly|hang}",
        "give slow {clients|readers} more time to read",
    ]),
    "--target-itl": (["between tokens"], [
        "keep {long prompts|prompts} from {slowing down|holding up} {other answers|streams}",
        "{set|bound|limit} the {gap|time|latency} between tokens {of the server|when prompts are read|}",
        "{make|have} streams {smoother|stutter less} while {prompts are read|others send long prompts}",
    ]),
    "--replicas": (["copies"], [
        "run {several|two|more} copies of {a model|the model|one model}",
        "{use|serve with} {two|several|all} GPUs for {more throughput|more requests} of {a model|one model}",
        "{put|load} {a model|the same model} on {each GPU|every GPU|several GPUs}",
    ]),
    "--sse-keep-alive": (["comment"], [
        "keep {connections|streams} {open|alive} while {requests|they} wait",
        "{send|have} comments on {silent|waiting} streams",
        "stop {a proxy|proxies} from {closing|cutting off} {streams|requests} that wait",
    ]),
    "--drain-timeout": (["sigterm"], [
        "{set|limit|change} how long {answers under way|the server|running answers} may take {after SIGTERM|when it is stopped|when the server ends|at shutdown}",
        "{shut down|stop} {the server |}{gracefully|cleanly}{ with more time|}",
        "give {answers|requests} under way more time {when the server stops|at shutdown|after SIGTERM}",
        "{make|let} the server {end|stop|exit} {faster|sooner} {after SIGTERM|at shutdown|when asked to}",
        "set the time {for draining|of draining|that draining may take}",
        "wait longer for {running|unfinished} {answers|requests} {at|before} the end of the server",
    ]),
    "--log": (["request log"], [
        "{change|set|choose} {the format of the log|the server's log|how requests are logged|the log format}",
        "{write|get} the {server's |}log {as|in} JSON",
        "{turn off|switch off|disable|silence} the {server's |}log{ of requests|}",
        "have {JSON logs|structured logs|no log lines|a quiet server}",
        "log requests {as|in} JSON",
        "{stop|keep} the server {from writing|writing} a line for each request",
    ]),
    "--models": (["more models"], [
        "serve {all|all the} models {in|of} a {folder|directory}",
        "serve {every|each} model that {is on this machine|I have pulled|realizar list shows}",
        "{describe|list} {the models|several models} of {the|a} server in a file",
        "give {a model|each model} {aliases|other names|its own context|its own settings}",
        "{load|preload} a model when the server starts",
    ]),
    "--keep-alive": (["idle time"], [
        "{unload|put away} {a model|models} {that nobody uses|that is not used}{ for a while| for ten minutes|}",
        "{keep|hold} {a model|models} {for a while|for ten minutes} {when|after} nobody uses {it|them}",
        "{set|choose} how long {a model|an idle model} stays{ in memory|}",
        "{give back|free} the memory of {idle models|models that nobody uses}",
    ]),
    "--lenient": (["unknown fields"], [
        "{accept|take|allow} {unknown fields|fields that are not known|extra fields}{ of requests|}",
        "{leave out|skip|ignore} {unknown fields|fields that the server does not know}",
        "{be|make the server} {lenient|less strict} {with|about} {unknown fields|fields of clients}",
        "{serve|support} a client that sends {extra|unknown|private} fields",
    ]),
    "--log-prompts": (["text of requests"], [
        "{see|log|write down|record} {the prompts|what users ask|what requests say|the text of requests}{ in the log|}",
        "{put|have|include} {prompts|messages|the content of requests} in{to|} the log",
        "{find out|check} what people {ask|send to} {the|my} server",
        "log the {content|text|prompts} of requests{, too|}",
        "debug what {a client|an app} {really |}sends",
    ]),
    "--kv-events": (["kv cache", "zeromq"], [
        "{publish|send|tell} {KV events|KV cache events|events of the KV cache}{ to a router| to routers| over ZeroMQ|}",
        "tell {a router|routers|a gateway} what the {KV cache|prefix cache|cache} {holds|has}",
        "{connect|use} {the server|realizar} {to|with} a router {that knows prefixes|that is aware of prefixes|of llm-d}",
        "{turn on|enable|set up} {KV events|cache events}",
        "{send|publish} what is in the cache over {ZeroMQ|ZMQ}",
    ]),
    "--kv-events-server": (["names this server"], [
        "{set|choose|give} the {name|address} of {the|this} server in {KV events|the events of the cache}",
        "say {how|by which address} routers know {this server|the server}",
        "{name|set} the {address|host and port} that {KV events|cache events} {have|carry|give}",
    ]),
    "--kv-transfer": (["kv cache", "other servers"], [
        "{send|transfer|move} the KV cache of {prompts|a prompt} {to another server|to other servers|between servers}",
        "{separate|split|take apart} prefill and decode{ on two servers| on several servers|}",
        "{prefill|compute} prompts on one server and {answer|decode} {them |}on another",
        "{turn on|enable|set up} transfers of {the KV cache|KV pages}",
    ]),
    "--kv-transfer-key-file": (["secret"], [
        "{set|give|name} the {secret|key|key file} of {KV transfers|transfers of the KV cache}",
        "{protect|secure|authenticate} {KV transfers|transfers of the KV cache}",
        "{share|set} {the secret|a key} that servers {use|have} {to send|for sending} {the KV cache|KV pages} {to each other|around}",
    ]),
    "--kv-transfer-server": (["other servers reach"], [
        "{set|choose|give} the address {by which|at which} other servers {reach|find} KV transfers{ of this server|}",
        "{say|tell} where other servers {get|fetch|take} the KV cache {of this server|from}",
        "{name|set} the {host and port|address} of {this server|the server} {for|in} {KV transfers|transfers of the KV cache}",
    ]),
    "--otlp-endpoint": (["opentelemetry"], [
        "{send|export} {spans|traces} to {OpenTelemetry|a collector|an OpenTelemetry collector|Jaeger}",
        "{use|set up|turn on|enable} {tracing|OpenTelemetry|distributed tracing|OTLP}",
        "{trace|follow} requests {with|by} {OpenTelemetry|OTLP|spans}",
        "connect {the server|realizar} {to|with} {an OpenTelemetry|a tracing} collector",
        "name the {collector|address of the collector|OTLP endpoint}",
    ]),
    "--no-ui": (["no web page"], [
        "{turn off|disable|hide|remove} {the web page|the page|the chat page|the web interface|the UI}{ of the server|}",
        "serve {the API|requests} without {a|the} {web page|page|UI|web interface}",
        "{keep|stop} the server from {showing|serving} a page {to browsers|at /|in the browser}",
        "have {no page|nothing for browsers} at /",
    ]),
    "--config": (["settings from file"], [
        "{configure|set up} the server {by|with|from} a {file|YAML file|configuration file}",
        "{use|read|load} {a configuration file|a settings file|settings from a file|a config}{ for the server|}",
        "{keep|put|write} the {flags|settings} of the server in{to|} a file",
        "{change|reload} settings {without a restart|while the server runs}",
        "start the server without {many|a long list of} flags",
    ]),
    "--print-config": (["settings in effect"], [
        "{see|print|show|list} {the settings|the configuration|all settings}{ of the server| in effect|}",
        "{see|find out|know} where a setting {comes from|is from}",
        "{check|test|debug} {the configuration|a configuration file|the settings} {of the server|before the start|without starting}",
        "see {whether|which} {a flag|the environment|the file} {wins|sets a value}",
    ]),
    "--json": (["each setting"], [
        "get the settings {of the server|of serve|in effect} as JSON",
        "make {serve|--print-config} {write|print} JSON",
        "read the {configuration|settings} of serve in a {script|program}",
    ]),
    "--ollama-port": (["second port"], [
        "{listen|serve|answer} on {Ollama's port|port 11434} {as well|too|}",
        "{serve|support} {clients of Ollama|Ollama clients|programs made for Ollama}{ at their port| without configuration|}",
        "{open|use|have} a second port{ for Ollama| for clients of Ollama|}",
        "{replace|stand in for} Ollama{ on this machine|}",
        "{let|make} {Ollama's clients|programs for Ollama} find the server",
    ]),
    "--allow-host": (["host header"], [
        "{reach|call|use} the server {by|under} {a name|a host name|its DNS name|llm.example.org}",
        "{allow|accept|add} {a host name|a Host header|another name of the server|any host name}",
        "fix the {host_not_allowed error|error host_not_allowed}",
        "{put|run} the server behind {a proxy|a reverse proxy|nginx} {with its own name|that keeps the Host header}",
        "{protect|guard} {the server |}against DNS rebinding",
    ]),
    "--max-connections": (["most connections"], [
        "{limit|bound|set|raise} {the number of connections|how many connections there are|connections}{ to the server| of the server|}",
        "{allow|accept|have} {more|fewer|at most 1000} connections{ at a time|}",
        "protect the server {against|from} too many connections",
        "set {the maximum of connections|the most connections}",
    ]),
    "--max-connections-per-address": (["from one address"], [
        "{limit|bound} {the connections|how many connections there are} {of|from} {one|a single|each} {address|client|IP address}",
        "{keep|stop} one client from {taking all connections|opening too many connections}",
        "{allow|accept} {only 100|fewer|more} connections per {address|client|IP}",
        "{share|divide} connections among {addresses|clients}",
    ]),
    "--request-memory": (["host memory of all requests"], [
        "{limit|bound} the memory {of requests|that requests take|that requests hold}",
        "{limit|bound} {what|how much memory} {bodies|texts and tokens|large requests} {take|hold} together",
        "fix {the error memory_full|the error request_too_large}",
        "{give|allow} requests {more|less} memory",
        "protect the server {from|against} requests that {take too much|fill the} memory",
    ]),
    "--first-token-timeout": (["first token"], [
        "{limit|bound|set} {how long a request waits for its first token|the time to the first token}",
        "{end|give up|refuse} requests {that wait too long|whose first token does not come}",
        "set a {timeout|time limit} for the first token",
        "fix the error first_token_timeout",
        "{shed|drop} requests that are {stuck in the queue|too late}",
    ]),
}  # fmt: skip

INSPECT: dict[str, tuple[list[str], list[str]]] = {
    "--devices": (["devices"], [
        "{see|show|find out} {what|how much} each of {two|several|4} {devices|GPUs} would hold{ of a model|}",
        "see how a model {is|would be} {divided|split} {over|among|between} {several |}{devices|GPUs}",
        "{see|show|plan} {the parts of a model|a model in parts} for {two|several} {devices|GPUs}",
        "find out {whether|if} a model fits {on|into} {several|two|8} {devices|GPUs} together",
    ]),
    "--replicas": (["copies"], [
        "{see|show|find out} {what|how much memory} {two|several|N} copies of a model {take|need}",
        "{plan|estimate} the memory {of|for} {two|several|more} copies of {a|one} model",
        "find out {whether|if} {copies|two copies} of a model fit on {two|several} GPUs",
    ]),
    "--tensors": (["tensors"], [
        "{list|see|show|print|display} {the|all} tensors {of a model|of a file|in a file|in a model file}",
        "{find out|see} {which|what} tensors {a file|a model|a GGUF file} {has|holds|contains}",
        "see the {names|shapes|types|shapes and types} of {the tensors|all weights|the weights}",
        "get a list of {the weights|tensors|all tensors}",
        "check the dtype of {each|a|every} tensor",
    ]),
    "--metadata": (["metadata"], [
        "{list|see|show|print|read|display} the metadata {of a model|of a GGUF file|of a file|}",
        "see the {keys and values|GGUF keys|key-value pairs} {of a GGUF file|in a GGUF file|of a model file}",
        "{see|look at|print} the config.json {of a model|as realizar sees it}",
        "{find out|read} {the rope base|the author|general.name|what the GGUF header says|the header} {of a file|of a model|in a file}",
    ]),
    "--plan": (["program"], [
        "{see|show|print} the {program|plan} {that runs a model|of a model|that a model becomes}",
        "see {which|what} kernels {run a model|a model is made of|are used} on a GPU",
        "{see|show} the operations {of a model|that run a model}",
        "look at {the plan|the execution plan|what realizar computes} {of a model|for a model|}",
        "{print|list} the steps {that a model is computed by|of the computation}",
    ]),
    "--json": (["json object"], [
        "get the {description of a model|output of inspect|result of inspect} as JSON",
        "make inspect {write|print|output} JSON",
        "read {the output of inspect|what inspect says} in a {script|program}",
        "pipe inspect into jq",
    ]),
}  # fmt: skip

TOKENIZE: dict[str, tuple[list[str], list[str]]] = {
    "--special": (["around a text"], [
        "add {the token for the beginning|a BOS token|the beginning token|what the tokenizer puts around a text} {when tokenizing|to the ids|}",
        "{tokenize|tokenise} {with|including} {special tokens|the BOS token|begin and end tokens}",
        "have tokenize add special tokens",
        "get {BOS and EOS|the BOS token|begin and end tokens} {in|into} the token ids",
    ]),
    "--jsonl": (["one json string per line", "json string per line"], [
        "{tokenize|tokenise} {many|several|a lot of|thousands of} texts{ at once| in one go|}",
        "{tokenize|tokenise} {a file|texts} with one {text|JSON string} {per|on each|in each} line",
        "{give|feed} tokenize {one text per line|many strings|JSON lines}",
        "use JSON lines with tokenize",
        "get one array of ids {per|for each} line",
    ]),
    "--decode": (["ids"], [
        "turn {token ids|ids|tokens|token numbers} {back |}into text",
        "{decode|detokenize|detokenise} {token ids|ids|tokens|a list of ids}",
        "see {which|what} text {some ids|these token ids|a list of ids} {are|is|stand for|stands for}",
        "{convert|translate} ids {back |}to text",
        "get the {text|words} {of|for|from} {token ids|token numbers|ids}",
    ]),
}  # fmt: skip

TEMPLATE: dict[str, tuple[list[str], list[str]]] = {
    "--vars": (["variables"], [
        "{give|pass} {variables|messages|the conversation|tools} to {the|a} {chat template|template}",
        "{set|name} the variables {of|for} {the|a} template",
        "tell the template {which|what} messages {there are|to render}",
        "render a template with {my own|a file of} {messages|variables}",
        "read the template's variables from {a file|standard input}",
    ]),
    "--now": (["current time"], [
        "{set|fix|change} the {date|time|present time} {that a template sees|of a template|for a template}",
        "render a template {as of|at|for} {another|a certain|a fixed} {date|day|time}",
        "make a template {believe|think} that it is {another day|2025|tomorrow}",
        "{freeze|pin} the {time|clock} {of|for} {a|the} template",
    ]),
    "--parse": (["parses"], [
        "{parse|take apart|split} {an answer|the text of an assistant|a model's output} {by|with} {its|the} template",
        "{see|find} the {tool calls|reasoning} in {an answer|the text of a model}",
        "{turn|convert} {the text of an answer|what a model wrote} into a message",
        "{test|check|try} how {tool calls|thoughts|answers} are {parsed|read|recognised}",
    ]),
    "--tools": (["--parse"], [
        "tell template which tools {an answer may call|the text may call}",
        "{give|pass} {tools|a list of tools} to {realizar |}template",
        "parse calls of {my own|given} tools {with|in} template",
    ]),
}  # fmt: skip

LOGITS: dict[str, tuple[list[str], list[str]]] = {
    "--ids": (["token ids"], [
        "{give|pass} {token ids|ids} to {the command logits|realizar logits|logits}",
        "name the file of token ids for {logits|the logits command}",
        "tell logits which tokens to {run|compute|read}",
        "feed {the logits command|logits} from standard input",
    ]),
    "--out": (["write"], [
        "{choose|set|name|say} {where|the file to which} {the logits|logits} are written",
        "{save|write|store} {the logits|logits} {in|into|to} a {file|safetensors file}",
        "name the output file of {logits|the logits command}",
    ]),
}  # fmt: skip

EVAL: dict[str, tuple[list[str], list[str]]] = {
    "--text": (["text to predict"], [
        "{give|name|choose|set} the text {that is|to be} {predicted|measured with|evaluated} {by eval|in eval|for eval|}",
        "tell eval {which|what} {file|text} to {read|use|measure with}",
        "{evaluate|measure} a model on {my own|a given|some} {text|file|book}",
        "compute {the perplexity|perplexity} {on|of|over} {a file|my text|a text}",
        "{choose|pick} the {data|corpus|file} for {eval|a perplexity measurement|perplexity}",
    ]),
    "--stride": (["window"], [
        "{set|change} {the stride|how far the window moves|by how much the window moves} {of eval|in eval|when measuring perplexity|}",
        "{move|slide} the window {by|over the text by} {512|256|a number of|fewer} tokens in eval",
        "{give|let} {each|every} token {in eval |}{more|less} context {in eval|when perplexity is measured|in the windows}",
        "make eval {faster|more exact} with {larger|smaller} steps of the window",
        "{overlap|set the overlap of} the windows {of|in} eval",
    ]),
    "--against": (["divergence"], [
        "compare {two models|a quantised model with the original|two quantisations|a model with another} {on a text|by KL divergence|in eval|}",
        "{measure|see|find out} how much {a quantisation|quantisation|Q4_K_M} {loses|changes a model|costs in quality}",
        "{compute|get|measure} the KL divergence {between|of} two {models|quantisations}",
        "{see|measure} how often two models {agree|have the same likeliest token|choose the same token}",
        "{measure|compute} top-1 agreement",
        "check whether {a smaller|the 4-bit|a quantised} {model|file} is as good as {the original|the large one|F16}",
        "compare Q4_K_M {against|with} F16",
    ]),
    "--json": (["json object"], [
        "get the results of eval as JSON",
        "make eval {write|print|output} JSON",
        "read {perplexity|the results of eval} in a {script|program}",
    ]),
}  # fmt: skip

BENCH: dict[str, tuple[list[str], list[str]]] = {
    "--prompt": (["prompt"], [
        "{set|change} the length of the prompt {in bench|that bench reads|for bench|in a benchmark}",
        "{measure|benchmark} {the reading of|prefill of|prompts of} {1024|a longer|256|a long} {tokens|prompt}",
        "{leave out|skip} the prompt test {of|in} bench",
        "measure {prefill|prompt processing} with {another|a different} {length|number of tokens}",
    ]),
    "--tokens": (["tokens"], [
        "{set|change} how many tokens are {chosen|generated|decoded} {in bench|by bench|in a benchmark}",
        "{measure|benchmark} {decoding|the decoding|the generation} of {256|more|64|512} tokens",
        "{leave out|skip} the {decode|decoding|generation} test {of|in} bench",
        "make bench {generate|decode} {more|fewer} tokens",
    ]),
    "--depth": (["before"], [
        "{measure|benchmark} decoding {after|with|behind} {a long context|8192 tokens|many tokens|4096 tokens of context}",
        "{set|change} how many tokens {a sequence holds|come} before {decoding is measured|the measurement|the benchmark}",
        "see how {speed|decoding} {drops|changes} with {a longer context|depth|the length of the context}",
        "bench with a {filled|full|deep|long} context",
    ]),
    "--batch": (["batch sizes"], [
        "{measure|benchmark} {several|8|many|16} sequences at {one time|once}",
        "{measure|see} the {throughput|speed} {of|with} {batches|a batch|several sequences together}",
        "bench {batch sizes|different batch sizes|a batch of 8}",
        "see how {decoding scales|the speed grows} with {the batch|more sequences}",
    ]),
    "--runs": (["runs"], [
        "{repeat|run} each {test|benchmark|measurement} {more often|ten times|several times|5 times}",
        "{set|change} {the number of runs|how often bench measures|how many runs bench makes}",
        "get {steadier|more reliable|better} {figures|numbers|medians} from bench",
    ]),
    "--json": (["json object"], [
        "get the {figures|results|output} of bench as JSON",
        "make bench {write|print|output} JSON",
        "{save|process} benchmark results {in|with} a {script|program}",
    ]),
    "--write": (["decode of the text"], [
        "{measure|benchmark|see} {speculative decoding|what speculative decoding gives|the gain of speculative decoding}",
        "{compare|time} decode with {and without|} speculative decoding",
        "{measure|time} the decode of {a given text|my own text|a file|a given answer}",
        "{bench|measure} {an edit of a text|the writing of a file}",
    ]),
    "--speculative": (["heads"], [
        "{measure|bench|time} {the proposals of |}{a head|an EAGLE-3 head|heads}",
        "{measure|bench} {speculative decoding with |}{multi-token prediction|mtp|EAGLE|an EAGLE head}",
        "{compare|bench} a head {with|and} suffixes {on|for} a text",
        "see {how much|whether} {an EAGLE-3 head|the head of a model|multi-token prediction} {gains|pays}",
    ]),
    "--right": (["probability"], [
        "{measure|bench|see} {what|how much} wrong proposals cost",
        "{measure|bench} proposals that are right with {a given|some} probability",
        "{bench|measure} speculative decoding with an oracle{ that is right for 7 of 10 tokens|}",
        "see the cost of proposals that are always wrong",
    ]),
    "--read": (["text of the prompt"], [
        "{choose|give|set} the prompt {text |}for {bench --write|the text that bench writes}",
        "{bench|measure} an answer {to|after} {a prompt of my own|a given text|a file}",
        "name the text {before|in front of} the one that {bench|bench --write} decodes",
    ]),
    "--speculative-tokens": (["tokens to propose"], [
        "set {how many tokens|the number of tokens that} {bench|bench --write} proposes",
        "{bench|measure} speculative decoding with {8|more|fewer} proposed tokens",
        "fix the number of proposed tokens {in|for} bench",
    ]),
}  # fmt: skip

BENCH_SERVE: dict[str, tuple[list[str], list[str]]] = {
    "--model": (["model to request"], [
        "{choose|name|say} {which model|the model that} bench serve asks for",
        "load test one of {several|many} models of a server",
        "{name|set} the model {in|for} bench serve",
    ]),
    "--endpoint": (["endpoint"], [
        "{measure|load test|benchmark} {completions|plain completions} {instead of|and not} chats",
        "{choose|set|change} the {kind of request|endpoint} {of|in|for} bench serve",
        "send completions {with|from} bench serve",
    ]),
    "--api-key": (["key"], [
        "{measure|load test|benchmark} a server {that wants|that asks for|with} {a key|an API key}",
        "{give|pass} {a key|the key|an API key} to bench serve",
        "authenticate {bench serve|a load test}",
    ]),
    "--concurrency": (["running"], [
        "{keep|have} {64|many|several|32} requests under way {in bench serve|in a load test|while measuring a server}",
        "{set|change} {how many users|the number of users|the concurrency} {of a load test|in bench serve|}",
        "load test {a server |}with {100|many|several} {users|clients|concurrent requests}",
        "measure a server under {many|concurrent} requests",
    ]),
    "--rate": (["per second"], [
        "send {5|10|a number of|a fixed number of} requests {a|per} second {to a server|in a load test|with bench serve}",
        "{measure|load test} a server at {a given|a fixed|a certain} rate",
        "simulate users who do not wait for each other",
        "{use|have} {Poisson|random} arrivals in {bench serve|a load test}",
    ]),
    "--requests": (["requests"], [
        "{set|change} {how many requests|the number of requests} {bench serve sends|a load test sends|in bench serve}",
        "send {1000|10000|more} requests {in all |}{with bench serve|in a load test|to measure a server}",
        "make {a load test|bench serve} longer by {more|the number of} requests",
    ]),
    "--duration": (["for this time"], [
        "{run|make} {a load test|bench serve} for {5 minutes|two minutes|an hour|a given time}",
        "{set|limit} {the time of|how long} {a load test|bench serve}{ runs|}",
        "load test a server for {30 seconds|some time|10 minutes}",
    ]),
    "--sweep": (["more load"], [
        "find out how {much|many users|many requests} a server {can take|takes|withstands}",
        "{raise|increase} the load {step by step|in steps} {until|till} the server is {saturated|full}",
        "{plot|measure} throughput {against|over} latency {of a server|}",
        "{sweep|go through} {rates|several rates|the concurrency} in {bench serve|a load test}",
    ]),
    "--trace-speed": (["fast"], [
        "replay a trace {faster|10 times as fast|more slowly}",
        "{speed up|slow down} the trace of {a load test|bench serve}",
        "{change|set} how fast a trace {is replayed|passes}",
    ]),
    "--trace": (["trace"], [
        "replay {a trace|a trace file|recorded arrivals} {in bench serve|in a load test|}",
        "send requests {as|like} in a trace of {Azure|Mooncake|a real server}",
        "{load test|measure} a server with {a trace|real arrivals and lengths}",
    ]),
    "--timeout": (["abandons"], [
        "give up requests that {do not end|take too long|hang} in {bench serve|a load test}",
        "set {a|the} timeout {of requests in|for|in} {bench serve|a load test}",
        "stop waiting for {slow|stuck} requests {in|during} a load test",
    ]),
    "--json": (["file"], [
        "{save|write} the results of {bench serve|a load test} {as|in} JSON",
        "get {JSON|a JSON file} from bench serve",
        "make bench serve {write|output} JSON",
    ]),
    "--svg": (["plots"], [
        "{draw|plot|get|make} a {picture|plot|chart|graph|diagram} of {a load test|the latencies|latencies|throughput}",
        "{see|visualise|plot} latencies and throughput over time",
        "have bench serve {draw|plot|make} {a picture|a chart|an SVG file}",
    ]),
    "--slo": (["meet these latencies"], [
        "measure {the goodput|goodput} {of a server|}",
        "count the answers {within|that keep} {an SLO|an objective|a service level objective|a latency target}",
        "{set|give} {an objective|a target} for {latencies|the first token} in {bench serve|a load test}",
    ]),
    "--prompt-tokens": (["tokens in a prompt"], [
        "set {the length of prompts|how long prompts are} in {bench serve|a load test}",
        "send prompts of {random|mixed|different|a given} {lengths|length} to a server {to measure it|in a load test}",
        "{use|have} {longer|uniform|lognormal} prompts in {bench serve|a load test}",
    ]),
    "--answer-tokens": (["most tokens in an answer"], [
        "set {the length of answers|how long answers are} in {bench serve|a load test}",
        "ask for answers of {random|mixed|different|a given} {lengths|length} in {bench serve|a load test}",
        "{use|have} {longer|shorter} answers in {bench serve|a load test}",
    ]),
    "--shared-prefix": (["begin"], [
        "{measure|load test} {prefix caching|the prefix cache|shared prefixes|a shared system prompt} {of a server|}",
        "{have|let} prompts {in a load test |of bench serve |}begin with the same tokens",
        "simulate a common system prompt in {bench serve|a load test}",
    ]),
    "--prefixes": (["shared prefixes"], [
        "use {several|4|a number of|different} shared {prefixes|beginnings} in {bench serve|a load test}",
        "set how many {shared |common |}{beginnings|prefixes} there are in {bench serve|a load test}",
        "simulate several system prompts in {bench serve|a load test}",
    ]),
    "--seed": (["same requests"], [
        "repeat {a load test|bench serve} with the same requests",
        "make {a load test|bench serve} {repeatable|reproducible}",
        "send the same requests again {with bench serve|in a load test}",
        "set the seed of {bench serve|a load test}",
    ]),
    "--ignore-eos": (["full length"], [
        "make answers {in a load test |in bench serve |}{go on to their full length|not end early|as long as asked for}",
        "have answers of {exactly|fixed} length in {bench serve|a load test}",
        "ignore the end token in {bench serve|a load test}",
    ]),
    "--fields": (["every request"], [
        "add {fields|my own fields|a temperature|parameters} to {the requests|every request} of {bench serve|a load test}",
        "send {extra|additional} fields {in|with} bench serve",
        "take a field out of the requests of bench serve",
    ]),
}  # fmt: skip

TOP: dict[str, tuple[list[str], list[str]]] = {
    "--interval": (["between updates"], [
        "{change|set|choose} how often top {reads|looks|refreshes|updates}",
        "have top {refresh|update|look} {every 5 seconds|less often|more often|slower|faster}",
        "set the {interval|pace} of top",
    ]),
    "--once": (["one interval"], [
        "{print|get} one view of {top|a server} {and end|as plain text|}",
        "{use|run} top in a {script|cron job|log}",
        "have top {end after one view|not stay open|print once}",
    ]),
    "--json": (["each interval"], [
        "get {the numbers|what top shows|the output} of top as JSON",
        "make top {write|print|output} JSON",
        "{read|process} {the numbers of top|what top shows} in a {script|program}",
    ]),
    "--api-key": (["api key"], [
        "{use|give|send} {a key|an API key} {with|in|for} top",
        "watch a server that {asks for|needs|wants} {a key|an API key} with top",
        "let top {use|send} a key",
    ]),
}  # fmt: skip

SYNTH: dict[str, tuple[list[str], list[str]]] = {
    "--seed": (["random weights"], [
        "get other random weights from synth",
        "choose the random weights {of|in} {synth|a synthetic model}",
        "set the seed of {synth|a synthetic model}",
    ]),
    "--force": (["existing file"], [
        "{overwrite|replace} {the file|an existing file|the output} {of|with} synth",
        "make synth {replace|overwrite} {a file|its output}",
        "write a synthetic model over an {old|existing} {file|one}",
    ]),
}  # fmt: skip

DOCTOR: dict[str, tuple[list[str], list[str]]] = {
    "--device": (["device to check"], [
        "check only {one|the second|a certain} {GPU|device} with doctor",
        "have doctor check {the CPU alone|the GPU alone|one device|cuda:1}",
        "choose what doctor {checks|looks at}",
    ]),
    "--json": (["check"], [
        "get the {checks|findings|output|result} of doctor as JSON",
        "make doctor {write|print|output} JSON",
        "read {doctor's checks|what doctor finds} in a {script|program}",
    ]),
    "--tune": (["fastest"], [
        "{tune|optimise|calibrate} {realizar|the kernels|products} {for|to} {my GPU|this GPU|the GPU}",
        "{measure|find|choose} the fastest kernels{ of my GPU| of the GPU|}",
        "{make|have} {the GPU|products of weights} faster by {measuring|tuning}",
        "{use|make|get} {measured|tuned} {kernels|choices of kernels}{ instead of estimates|}",
    ]),
}  # fmt: skip

VERSION: dict[str, tuple[list[str], list[str]]] = {
    "--verbose": (["how the program was built"], [
        "see what realizar was built from",
        "{see|find out} {which|what} {kernels|CPU kernels|instructions} {realizar|it} {uses|computes with}{ on this machine|}",
        "get {details|more details} {about|of} the version",
        "{see|know} whether {AVX-512|AVX2|NEON} is used",
    ]),
}  # fmt: skip

RUN_AND_SERVE: dict[str, tuple[list[str], list[str]]] = {
    "--speculative": (["speculative decoding"], [
        "{turn on|use|enable|switch on} speculative decoding{ on a GPU|}",
        "{turn off|avoid|disable|switch off} speculative decoding",
        "{propose|guess|check} several tokens in one step",
        "make {edits of a text|answers that repeat the prompt|the rewriting of code} faster",
        "{choose|set|change} {who proposes tokens|how tokens are proposed|the speculative mode}",
        "{use|set} suffix {decoding|proposals}",
        "{use|set|choose|name} a draft model",
        "have a {small|smaller|faster} model propose {the |}tokens",
    ]),
    "--speculative-tokens": (["tokens to propose"], [
        "{set|limit|change|fix} how many tokens {are proposed|speculative decoding proposes}{ in a step|}",
        "propose {more|fewer|8|4} tokens in {each|a} step",
        "{set|change} the {number|length} of {proposals|proposed tokens|draft tokens}",
        "{tune|control} the length of {proposals|speculation}",
    ]),
    "--pull": (["not on this machine"], [
        "{run|serve} a model {that I have not pulled yet|that is not here yet|and download it first}",
        "{download|pull|fetch} {the|a} model {when|as} {I run it|it starts|the server starts}",
        "{start|run|serve} a model from {Hugging Face|the hub|Ollama's registry} in one {go|command|step}",
        "{pull|fetch} {a missing model|what is missing} {by itself|automatically}",
    ]),
}  # fmt: skip

STRUCTURED: dict[str, tuple[list[str], list[str]]] = {
    "--json-schema": (["json schema"], [
        "{get|force|have} {an answer|answers|output} {that fits|by|in} a JSON Schema",
        "{use|enforce|apply} {a JSON schema|a schema|structured output}{ in the terminal| with run|}",
        "{make|force} {the model|it} {write|give|answer in} {valid JSON|JSON of a given form|JSON with certain fields}",
        "{hold|constrain|restrict} {the answer|the text} to {a schema|JSON}",
        "{check|test|see} whether a {JSON Schema|schema} can be enforced",
    ]),
    "--regex": (["regular expression"], [
        "{get|force|have} {an answer|output} that matches a {regular expression|regex|pattern}",
        "{use|enforce|apply} a {regular expression|regex}",
        "{hold|constrain|restrict} {the answer|the text} to a {pattern|regular expression|regex}",
        "{make|force} {the model|it} {to answer|answer} {only digits|yes or no|with a date|with a number}",
        "{check|test} a regular expression for answers",
    ]),
    "--grammar": (["grammar"], [
        "{use|enforce|apply} a {grammar|GBNF grammar|GBNF file|Lark grammar}",
        "{hold|constrain|restrict} {the answer|the text} {to|by} a grammar",
        "{make|force} {the model|it} {follow|to follow|keep to} a {grammar|syntax}",
        "{check|test} a {GBNF|Lark|llama.cpp} grammar",
        "{use|give} a {.gbnf|GBNF|Lark} file",
    ]),
}  # fmt: skip

WHITE_SPACE: dict[str, tuple[list[str], list[str]]] = {
    "--json-whitespace": (["white space"], [
        "{get|have|write} {compact|dense|minified} JSON{ in answers| from the model|}",
        "{leave out|avoid|set|choose} {the |}{white space|spaces|indentation} in JSON{ answers|}",
        "{allow|let} the model {to write|write} any white space in JSON",
        "save tokens {with|by} JSON without spaces",
    ]),
}  # fmt: skip

PULL: dict[str, tuple[list[str], list[str]]] = {
    "--revision": (["branch, tag or commit"], [
        "pull {a certain|another|an older} {revision|version|commit|branch|tag} of a {repository|model}",
        "{pin|fix|choose} the {revision|commit|version} of a {model|repository}{ that I pull|}",
        "{download|pull} a model from a {branch|tag|commit}",
    ]),
    "--quiet": (["no progress"], [
        "{hide|turn off|silence} the progress {of a pull|of pull|of a download}",
        "pull {quietly|in silence|without progress}",
        "have pull {write|print} the path alone",
    ]),
    "--json": (["progress"], [
        "get the progress of {pull|a pull|a download} as JSON",
        "make pull {write|print|output} JSON",
        "{read|follow} a {pull|download} in a {script|program}",
    ]),
    "--connections": (["parallel connections"], [
        "{pull|download} with {more|fewer|4|one} {parallel |}connections",
        "{make|have} {a pull|a download} {faster|slower} {by|with} {more|fewer} connections",
        "set {how many|the number of} connections {pull opens|of a pull|of pull}",
    ]),
}  # fmt: skip

LIST: dict[str, tuple[list[str], list[str]]] = {
    "--json": (["each model"], [
        "get the {list of models|models on this machine} as JSON",
        "make {realizar |}list {write|print|output} JSON",
        "read the list of models in a {script|program}",
    ]),
}  # fmt: skip

SHOW: dict[str, tuple[list[str], list[str]]] = {
    "--json": (["json object"], [
        "get {what is known of a model|the description of a pulled model|the output of show} as JSON",
        "make {realizar |}show {write|print|output} JSON",
        "read {the output of show|a model's digests} in a {script|program}",
    ]),
}  # fmt: skip

RM: dict[str, tuple[list[str], list[str]]] = {
    "--yes": (["without asking"], [
        "remove a model without {being asked|a question|confirming}",
        "{use|run} rm in a {script|cron job}",
        "{keep|stop} rm from asking",
        "{confirm|say yes to} {rm|the question of rm}{ in advance|}",
    ]),
}  # fmt: skip

GC: dict[str, tuple[list[str], list[str]]] = {
    "--dry-run": (["would be removed"], [
        "{see|list|know} what gc {would remove|removes}{ before it does|}",
        "{try|run} gc without removing {anything|files}",
        "{check|preview} {gc|what gc does}",
    ]),
    "--json": (["each file"], [
        "get {what gc removes|the files that gc removes} as JSON",
        "make gc {write|print|output} JSON",
        "read {the output of gc|what gc removed} in a {script|program}",
    ]),
}  # fmt: skip

GRAMMAR: dict[str, tuple[list[str], list[str]]] = {
    "--check": (["fits"], [
        "{check|see|test} whether {a text|an answer|some JSON} fits {a schema|a grammar|a regular expression}",
        "{find|see} where a text {fails|breaks the grammar|does not fit}",
        "{test|validate} {JSON|a text} {against|with} a {JSON Schema|schema|grammar}",
        "give {realizar |}grammar a text to check",
    ]),
    "--json": (["json object"], [
        "get the {verdict|result} of {realizar |}grammar as JSON",
        "make {realizar |}grammar {write|print|output} JSON",
        "read {the result of grammar|the verdict of a check} in a {script|program}",
    ]),
    "--exact": (["order of the schema"], [
        "check JSON {exactly |}{as answers are constrained|as the model writes it}",
        "check {the order of properties|white space|order and white space} of JSON, too",
        "{make|be} {a check|the check} of JSON {strict|exact}",
    ]),
}  # fmt: skip

PHRASES = {
    "run": RUN, "model": MODEL, "checks": CHECKS, "run and serve": RUN_AND_SERVE, "structured": STRUCTURED, "white space": WHITE_SPACE,
    "serve": SERVE, "inspect": INSPECT, "pull": PULL, "list": LIST, "show": SHOW, "rm": RM, "gc": GC,
    "tokenize": TOKENIZE, "template": TEMPLATE, "grammar": GRAMMAR,
    "logits": LOGITS, "eval": EVAL, "bench model": BENCH, "bench serve": BENCH_SERVE, "top": TOP, "synth": SYNTH,
    "doctor": DOCTOR, "version": VERSION,
}  # fmt: skip
