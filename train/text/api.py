"""The HTTP API: endpoints, fields, errors, headers, metrics, and how a client is set up."""

from .facts import Fact, Facts
from .grammar import literal

# Endpoint, what it is for, and what somebody wants who needs it.
_ENDPOINTS = [
    ("POST /v1/chat/completions", "answers the next message of a conversation, in the form of the model's own chat template",
     ["{send|post} {a chat|a conversation|messages} {over HTTP|to the server|}", "chat over HTTP", "get the next message of a conversation {over HTTP|from the server}", "ask the server a question"]),
    ("POST /v1/completions", "continues a text",
     ["continue a text {over HTTP|with the server}", "{send|post} a raw prompt to the server", "complete a text {over HTTP|with the server}"]),
    ("POST /v1/responses", "is the same as a chat in the form of OpenAI's newer API; nothing is kept of a response",
     ["use {OpenAI's newer API|the Responses API}", "{send|post} a response request"]),
    ("POST /v1/embeddings", "makes vectors of texts",
     ["{make|get|compute} {embeddings|vectors|an embedding} {over HTTP|from the server|with the server}", "embed texts {over HTTP|with the server}"]),
    ("POST /tokenize", "gives the token ids of a prompt or a conversation",
     ["{count|get} tokens {over HTTP|with the server|from the server}", "tokenize {a prompt|text} over HTTP", "get token ids from the server"]),
    ("POST /detokenize", "gives the text of token ids",
     ["turn ids into text {over HTTP|with the server}", "detokenize over HTTP"]),
    ("POST /v1/chat/completions/render", "shows the prompt and the token ids that a chat request becomes, without running the model",
     ["see the prompt that a chat request becomes {on the server|over HTTP}", "render the chat template over HTTP", "see what the model gets of a chat request"]),
    ("GET /v1/models", "lists the names that the model is served under",
     ["list the models of {the|a} server", "see which {model|models} {the|a} server has", "get the model names over HTTP"]),
    ("GET /health", "says 200 as long as the process is there",
     ["{check|see} whether the server {is alive|lives|is up}", "make a liveness probe", "health check the server"]),
    ("GET /ready", "says 200 when the model is loaded and a request would be let in",
     ["{check|see} whether the server is ready", "make a readiness probe", "{wait|see} {until|when} the model is loaded{ on the server|}"]),
    ("GET /metrics", "gives the metrics for Prometheus",
     ["{get|scrape|read} {the |}metrics", "monitor the server{ with Prometheus| with Grafana|}", "connect Prometheus", "see how busy the server is", "watch the {load|queue} of the server"]),
]  # fmt: skip

# Field, what it takes, its default, what it does.
_FIELDS = [
    ("model", "a string", "none: it must be given", "names the model"),
    ("stream", "true or false", "false", "sends the answer piece by piece"),
    ("stream_options", "an object", "none", "asks for usage in a stream, by include_usage"),
    ("n", "a whole number from 1 to 128", "1", "asks for so many answers"),
    ("temperature", "a number from 0 to 2", "what the model's makers recommend, or 1", "makes likely tokens likelier below 1 and less likely above"),
    ("top_p", "a number above 0, to 1", "what the model's makers recommend, or 1", "keeps the likeliest tokens whose probabilities add up to it"),
    ("typical_p", "a number above 0, to 1", "what the model's makers recommend, or 1", "keeps tokens that surprise about as much as expected"),
    ("min_p", "a number from 0 to 1", "what the model's makers recommend, or 0", "keeps tokens at least so many times as likely as the likeliest"),
    ("top_k", "a whole number from 1, or -1 or 0 for all tokens", "what the model's makers recommend, or 0", "keeps so many of the likeliest tokens"),
    ("repetition_penalty", "a number from 0.01 to 100", "what the model's makers recommend, or 1", "makes tokens of the prompt and the answer less likely"),
    ("presence_penalty", "a number from -2 to 2", "0", "makes tokens that the answer has less likely, once each"),
    ("frequency_penalty", "a number from -2 to 2", "0", "makes tokens less likely the more often the answer has them"),
    ("seed", "a whole number of 64 bits", "a random one", "makes the choice of tokens repeatable"),
    ("stop", "a string, or a list of up to 64", "none", "ends the answer before a text"),
    ("stop_token_ids", "a list of token ids", "none", "ends the answer at one of these tokens"),
    ("logit_bias", "an object of numbers from -100 to 100 by token id", "none", "makes single tokens likelier or less likely"),
    ("min_tokens", "a whole number from 0", "0", "keeps the answer from ending before so many tokens"),
    ("ignore_eos", "true or false", "false", "goes on past the model's end tokens"),
    ("priority", "a whole number from -2147483647", "0", "orders requests: lower ones go first"),
    ("cache_salt", "a string", "the cache is shared", "keeps what the cache holds apart from that of other salts"),
    ("prompt_logprobs", "a whole number from 0 to 20", "none", "asks for the log-probabilities of the prompt"),
    ("messages", "a list of messages", "none: it must be given", "is the conversation"),
    ("tools", "a list of tools of type function", "none", "describes functions that the model may call"),
    ("max_completion_tokens", "a whole number from 1", "until the context is full", "ends the answer after so many tokens"),
    ("max_tokens", "a whole number from 1, and from 0 in completions", "until the context is full, and 16 in completions", "ends the answer after so many tokens"),
    ("logprobs", "true or false in chats, a number from 0 to 5 in completions", "none", "asks for log-probabilities of the answer"),
    ("top_logprobs", "a whole number from 0 to 20", "0", "asks for the likeliest tokens beside each chosen one"),
    ("chat_template_kwargs", "an object of values for the chat template", "none", "gives values to the chat template"),
    ("documents", "a list of objects for the chat template", "none", "gives documents to a chat template that knows them"),
    ("echo", "true or false", "false", "puts the prompt in front of the continuation"),
    ("prompt", "a string, a list of strings, a list of token ids, or a list of such lists", "none: it must be given", "is the text to continue"),
    ("parse_special", "true or false", "false", "lets special tokens in the prompt count"),
    ("input", "a string, or a list", "none: it must be given", "is what a response or embeddings are made of"),
    ("instructions", "a string", "none", "becomes the first message, of the role system, in a response"),
    ("max_output_tokens", "a whole number from 1", "until the context is full", "ends a response after so many tokens"),
    ("encoding_format", '"float" or "base64"', '"float"', "says how embeddings are written"),
    ("pooling", '"mean", "last" or "cls"', "what the model's files say, or else the last token", "says which tokens count for an embedding"),
    ("store", "false", "false", "is there for OpenAI's clients: nothing is kept"),
    ("user", "anything", "none", "changes nothing"),
    ("return_token_strs", "true or false", "false", "asks /tokenize for the tokens' texts, too"),
]  # fmt: skip

# Status, code, meaning, way out.
_ERRORS = [
    ("400", "body_incomplete", "the body ended early", "Send all of it."),
    ("400", "body_timeout", "the body took too long to arrive", "Send it faster, or in smaller requests."),
    ("400", "context_length_exceeded", "the prompt is longer than the context", "Shorten it, or start the server with a larger `--context`; the message has both numbers."),
    ("400", "invalid_json", "the body is not the JSON that is wanted", "Look at the place that the message names."),
    ("400", "invalid_utf8", "the body has bytes that are no UTF-8", "Send UTF-8."),
    ("400", "invalid_value", "a field has a value that it does not take", "The message and `param` name the field."),
    ("400", "missing_required_parameter", "a field is missing", "`param` names it."),
    ("400", "not_enough_memory", "the cache has no room for this request even alone", "Ask for less, or start the server with more `--memory`, or on a GPU `--gpu-memory`."),
    ("400", "unknown_parameter", "a field is not known", "Leave it out; `param` names it."),
    ("400", "unsupported_parameter", "a field or its value would change the answer and is not supported", "Leave it out; `param` names it."),
    ("401", "missing_api_key", "the request bears no key", "Send the header `Authorization: Bearer KEY`."),
    ("401", "invalid_api_key", "the key is not known", "Use one of those in the file of `--api-key-file`."),
    ("403", "origin_not_allowed", "the web page may not use the server", "Start the server with `--cors` and the page's origin."),
    ("404", "model_not_found", "no model is served under this name", "`GET /v1/models` lists the names, and `--served-model-name` sets them."),
    ("404", "not_found", "there is nothing at this address", "The endpoints begin with /v1 for the most part."),
    ("413", "body_too_large", "the body is larger than may be", "`--max-body` sets the limit."),
    ("422", "no_chat_template", "the model has no chat template", "Use `/v1/completions`."),
    ("422", "no_pooling", "the model's files do not say one way to pool", "Choose one with the field `pooling`."),
    ("422", "no_tokenizer", "the model has no tokenizer", "It takes token ids alone."),
    ("422", "refused_by_template", "the chat template refused the messages", "Its own words are the message; often roles must alternate."),
    ("422", "template_failed", "the chat template failed on the messages", "Try others, or look at it with `realizar template`."),
    ("429", "queue_full", "too many answers wait already", "Ask again after the seconds in `Retry-After`; `--max-queue` sets the limit."),
    ("500", "not_finite", "the model computed something that is no number", "Check the file: it may be damaged."),
    ("500", "server_error", "the server failed", "The log says more under the request's id."),
    ("503", "closed", "the model was closed", "Start the server again."),
    ("503", "draining", "the server is going to stop", "Ask another one, or later."),
    ("503", "loading", "the model is being loaded", "Wait until `/ready` says 200."),
    ("503", "request_timeout", "the request took longer than it may", "`--request-timeout` sets the limit."),
]  # fmt: skip

_METRICS = [
    ("vllm:num_requests_running", "answers that have memory in the cache"),
    ("vllm:num_requests_waiting", "answers that wait for memory in the cache"),
    ("vllm:kv_cache_usage_perc", "the share of the cache that answers hold, from 0 to 1"),
    ("vllm:time_to_first_token_seconds", "the time from the request to an answer's first token"),
    ("vllm:inter_token_latency_seconds", "the time from one token of an answer to the next"),
    ("vllm:e2e_request_latency_seconds", "the time from the request to the end of an answer"),
    ("vllm:request_queue_time_seconds", "the time from the request to an answer's first step"),
    ("vllm:request_prefill_time_seconds", "the time from an answer's first step to its first token"),
    ("vllm:request_decode_time_seconds", "the time from an answer's first token to its last"),
    ("vllm:prompt_tokens_total", "the tokens of prompts"),
    ("vllm:generation_tokens_total", "the tokens that were chosen"),
    ("vllm:prefix_cache_queries_total", "the tokens that the cache was asked for"),
    ("vllm:prefix_cache_hits_total", "the tokens that the cache held"),
    ("vllm:num_preemptions_total", "answers that lost their memory to others and went on later"),
    ("vllm:request_success_total", "answers that ended, by their reason"),
    ("realizar_steps_total", "steps of the model"),
    ("realizar_computed_tokens_total", "tokens of prompts that were computed"),
    ("realizar_cache_pages", "pages of the cache"),
    ("realizar_cache_evictions_total", "pages that were forgotten to make room"),
    ("realizar_answers_admitted", "answers that were let in and have not ended"),
    ("realizar_http_requests_total", "requests by route and code"),
    ("realizar_http_request_seconds", "the seconds that requests took, by route"),
    ("realizar_http_panics_total", "requests that ended in a panic"),
]  # fmt: skip

_CURL = (
    "curl localhost:8080/v1/chat/completions -H 'Content-Type: application/json' "
    '-d \'{"model": "small", "messages": [{"role": "user", "content": "Why is the sky blue?"}]}\''
)


def _endpoints() -> list[Fact]:
    facts = []
    for address, does, goals in _ENDPOINTS:
        path = address.split()[1]
        facts.append(Fact(
            f"endpoint {path} how", [f"Use `{address}`: it {does}.", f"`{address}` {does}."], [path + "`"], goals=goals, weight=1.5,
        ))  # fmt: skip
        facts.append(Fact(
            f"endpoint {path} what", [f"`{address}` {does}."], [does[:28]], topics=[path, f"`{path}`", f"the endpoint {path}", address, f"{path} {{on|of}} the server"], topic_frames="what does",
        ))  # fmt: skip
    return facts


def _fields() -> list[Fact]:
    facts = []
    for name, takes, default, does in _FIELDS:
        topics = [f"the field {name}", f"`{name}` in a request", f"the request field {name}", f"{name} in the {{API|HTTP API|body}}", f"the field `{name}` of a request"]
        if "_" in name:
            topics += [name, f"`{name}`"]
        facts.append(Fact(
            f"field {name}", [f"The field `{name}` {does}. It takes {literal(takes)}.", f"In a request, `{name}` {does}. It takes {literal(takes)}."], [does[:24]], topics=topics, topic_frames="what does",
        ))  # fmt: skip
        facts.append(Fact(
            f"field {name} default", [f"Where `{name}` is left out, it is {literal(default)}." if not default.startswith("none") else f"`{name}` has no default{': it must be given' if 'must' in default else ''}."],
            [[default, "no default"]], topics=topics, topic_frames="default", weight=0.4,
        ))  # fmt: skip
        facts.append(Fact(f"field {name} values", [f"`{name}` takes {literal(takes)}."], [takes], topics=topics, topic_frames="values", weight=0.4))
    return facts


def _errors() -> list[Fact]:
    facts = []
    for status, code, means, way in _ERRORS:
        facts.append(Fact(
            f"error {code}", [f"`{code}`, with status {status}, means that {means}. {way}", f"The error `{code}` (status {status}) says that {means}. {way}"], [means[:24], status],
            topics=[code, f"the error {code}", f"`{code}`", f"the code {code}"],
            asks=[f"{{I get|the server says|the server answers}} {{the error |}}{code}", f"why do I get {code}?", f"how do I {{fix|solve|avoid}} {code}?", f"error {code}: what now?", f"what {{status|HTTP status}} has {code}?", f"my request fails with {code}"],
        ))  # fmt: skip
    by_status: dict[str, list[str]] = {}
    for status, code, _, _ in _ERRORS:
        by_status.setdefault(status, []).append(code)
    kinds = {
        "400": "the request is wrong, too long or too large for memory", "401": "a key is missing or wrong", "403": "a web page may not use the server", "404": "the model's name or the address is not known",
        "413": "the body is larger than `--max-body` allows", "422": "the model or its template cannot do it", "429": "the queue is full: ask again after `Retry-After` seconds", "500": "the server failed; its log says more",
        "503": "the server is loading, stopping, or the request took too long",
    }  # fmt: skip
    for status, means in kinds.items():
        codes = by_status[status]
        listed = " The codes are " + ", ".join(f"`{c}`" for c in codes) + "." if 1 < len(codes) < 6 else f" The code is `{codes[0]}`." if len(codes) == 1 else ""
        facts.append(Fact(
            f"status {status}", [f"{status} means that {means}.{listed}"], [means[:20]], topics=[f"status {status}", f"HTTP {status}", f"error {status}", f"a {status}", f"the status {status}"],
            asks=[f"{{I get|the server answers}} {status}", f"why do I get {{a |status |HTTP |}}{status}?", f"the server {{returns|says}} {status}"],
        ))  # fmt: skip
    return facts


def _metrics() -> list[Fact]:
    facts = []
    for name, means in _METRICS:
        phrase = means.removeprefix("the ")
        facts.append(Fact(
            f"metric {name}", [f"The metric `{name}` is {means}.", f"`{name}`: {means}."], [means[:24]], topics=[name, f"the metric {name}", f"`{name}`"], weight=0.5,
        ))  # fmt: skip
        facts.append(Fact(
            f"metric of {name}", [f"`{name}`"], [name], asks=[f"{{which|what}} metric {{is|counts|has|shows}} {phrase}?", f"name the metric for {phrase}", f"how do I see {phrase} in /metrics?", f"metric for {phrase}?", f"is there a metric for {phrase}?"], weight=0.5,
        ))  # fmt: skip
    return facts


def _general() -> list[Fact]:
    curl = literal(_CURL)
    return [
        Fact("api", ["The server speaks OpenAI's API with some of vLLM's additions: chats, completions, responses, embeddings, /tokenize and /detokenize, and /metrics. docs/api.md has every field."], ["openai", "embeddings"],
             topics=["the HTTP API", "the API", "the API of the server"], asks=["{which|what} endpoints {are there|does the server have|does it have}?", "list the endpoints", "what can I ask the server over HTTP?", "which API does serve speak?", "is {the server|it} compatible with OpenAI?", "endpoints?", "what API does the server have?"], weight=3),
        Fact("curl", [f"`{curl}`"], ["curl", "/v1/chat/completions"], asks=["how do I {ask|call|use} the server with curl?", "{show|give} me a curl {example|command}", "what does a request look like?", "an example of a request?", "how do I send a request{ by hand| from the shell|}?", "curl example", "example of a chat request?"],
             goals=["{send|make} a request with curl", "test the server from the {shell|command line}", "call the server from {a shell script|bash}"], weight=2),
        Fact("base url", ["Set the client's base URL to `http://localhost:8080/v1`; any key will do where the server has none."], ["http://localhost:8080/v1"], asks=["{which|what} base URL {do I set|does the client need}?", "what is the URL of the {API|server}?", "what is the base_url for the openai {client|package|library}?", "base URL?", "where is the API?"],
             goals=["use {OpenAI's client|the openai package|the openai library|an OpenAI client}{ with realizar| with the server|}", "connect {my app|a client|Open WebUI|a chat UI|LangChain|the Python client} to {the server|realizar}", "point a client at the server"], weight=2),
        Fact("server address", ["`realizar serve` listens on 127.0.0.1, port 8080: http://127.0.0.1:8080. `--host` and `--port` change it."], ["8080"], asks=["{which|what} port {is the default|does the server use|does serve listen on}?", "on which address does the server listen?", "where does the server listen?", "what is the address of the server?", "default port?", "localhost which port?"], weight=2),
        Fact("api keys", ["Put the keys into a file, one a line, and start `realizar serve model.gguf --api-key-file keys.txt`. Clients send `Authorization: Bearer KEY`."], ["--api-key-file"], asks=["how do API keys work?", "how do clients send {the|a} key?", "where do I put the API keys?", "how is the server protected?", "what does the key file look like?", "is there authentication?", "what format has the key file?"], weight=2),
        Fact("keys reload", ["Send SIGHUP: the key file and the certificate are read again, without a restart."], ["sighup"], goals=["{change|add|replace|renew} {keys|an API key|the certificate} {without a restart|while the server runs}", "reload the {keys|certificate|key file}"], asks=["what does SIGHUP do?", "do I have to restart the server for {new keys|a new certificate}?", "does it read the key file again?"]),
        Fact("no key", ["/health, /ready and /metrics want no key."], ["/health"], asks=["{which|what} endpoints need no key?", "does {/metrics|/health|/ready} need a key?", "can Prometheus scrape without a key?", "are the metrics protected?"]),
        Fact("shutdown", ["SIGTERM or Ctrl-C ends the server: new requests are refused, those under way are finished within `--drain-timeout`, and the exit code is 0. A second one ends it at once."], ["sigterm"], goals=["{stop|end|shut down|quit} the server", "stop the server {cleanly|without losing answers}"], asks=["what happens on SIGTERM?", "how does the server shut down?", "what does Ctrl-C do to the server?", "is there a graceful shutdown?"], weight=2),
        Fact("loading", ["The address answers from the start: /health says that the process is there, and everything else is 503 with `Retry-After` while the model loads."], ["503"], asks=["what does the server answer while the model {loads|is being loaded}?", "why 503 at the start?", "when can I send requests after the start?", "is the server there while it loads?"]),
        Fact("strict", ["A request is read strictly: a field that is not known, or that would change the answer and is not supported, is an error that names it. Nothing is ignored or cut silently."], ["error"], asks=["what happens {with|to} unknown fields?", "are unknown fields ignored?", "does the server ignore fields that it does not know?", "why is my field {refused|an error}?", "is the API strict?"]),
        Fact("error form", ["An error is an object `error` with message, type, param, code and request_id; `param` names the field that is wrong."], ["code", "param"], asks=["what do errors look like?", "what is the form of an error?", "how are errors reported {over HTTP|by the API|by the server}?", "which field is wrong in my request?", "what is param in an error?"]),
        Fact("error types", ["The types are invalid_request_error, authentication_error, rate_limit_error, overloaded_error and server_error."], ["rate_limit_error"], asks=["{which|what} types of errors are there?", "what is the type of an error?", "error types?", "list the error types"]),
        Fact("retry", ["With 429 and 503 the header `Retry-After` says after how many seconds to ask again."], ["retry-after"], asks=["when should I retry?", "what is Retry-After?", "how long should I wait after a 429?", "how do clients know when to ask again?", "after how many seconds may I try again?"]),
        Fact("request id", ["`X-Request-Id` names a request: up to 128 letters, digits and -_.: from the client, or one that the server makes. It is in the answer and in the log."], ["x-request-id"], topics=["X-Request-Id", "the header X-Request-Id", "a request id"], asks=["how do I find a request in the log?", "can I name a request?"]),
        Fact("trace level", ["`X-Trace-Level` asks for timings in the answer: brick, step or layer."], ["timings"], topics=["X-Trace-Level", "the header X-Trace-Level"], asks=["how do I get timings {in the answer|over HTTP|of a request}?", "which trace levels are there?", "how do I see the time of each layer over HTTP?"]),
        Fact("traceparent", ["`Traceparent` names the trace that a request belongs to, as W3C's Trace Context has it; it is in the log and the answer."], ["trace"], topics=["Traceparent", "the header Traceparent"]),
        Fact("authorization", ["`Authorization: Bearer KEY` gives the key where the server was started with `--api-key-file`."], ["bearer"], topics=["Authorization", "the header Authorization"], asks=["which header has the key?"]),
        Fact("headers", ["Requests may have `Authorization`, `X-Request-Id`, `X-Trace-Level` and `Traceparent`; answers have `X-Request-Id`, `X-Trace-Id` and, with 429 and 503, `Retry-After`."], ["x-request-id"], asks=["{which|what} headers {are there|does the server know|can I send}?", "list the headers", "headers of the API?"]),
        Fact("roles", ["The roles of messages are system, developer, user, assistant and tool."], ["assistant", "tool"], asks=["{which|what} roles {are there|can messages have|does the API know}?", "what is the role of a message?", "roles of messages?", "is there a developer role?"]),
        Fact("finish reason", ["`finish_reason` is stop where the model ended its answer or a stop text came, and length where the limit or the context did."], ["length"], topics=["finish_reason", "the finish reason"], asks=["why did the answer end?", "which finish reasons are there?", "how do I know that an answer was cut at its length?"]),
        Fact("usage", ["`usage` has prompt_tokens, completion_tokens, total_tokens and the cached tokens of the prompt."], ["prompt_tokens"], topics=["usage in an answer", "the field usage"], asks=["how do I see how many tokens a request took?", "where are the token counts?", "does the API count tokens?"]),
        Fact("stream usage", ["Set `stream_options` to an object with include_usage true."], ["include_usage"], asks=["how do I get {usage|token counts} {in|with|of} a stream?", "usage in streams?", "include_usage?"]),
        Fact("stream how", ["Set `stream` to true: the answer comes as server-sent events, at last `data: [DONE]`."], ["stream"], goals=["{stream|get|receive} {an answer|the answer|answers} {piece by piece|token by token|as a stream}{ from the server| over HTTP|}", "{turn on|use|enable} streaming{ over HTTP| in the API|}"], asks=["does the server stream?", "how do streams end?", "what does a stream look like?"], weight=2),
        Fact("responses kept", ["No: nothing is kept of a response. `store` is false, and what needs an earlier response is an error; send the conversation so far as `input`."], ["nothing is kept"], asks=["does {the server|/v1/responses} keep responses?", "can I use previous_response_id?", "are conversations stored on the server?", "does the server remember my conversation?", "is there a conversation state on the server?"]),
        Fact("default sampling", ["Where a request does not say, the model's makers' recommendation holds, or else a temperature of 1."], ["recommend"], asks=["what is the default temperature {of the server|over HTTP|in the API}?", "how are tokens chosen when a request says nothing?", "what sampling does the server use by default?"]),
        Fact("prometheus names", ["The metrics have the names that vLLM gave them, such as `vllm:num_requests_running`, so that dashboards made for it work; realizar's own begin with realizar_."], ["vllm"], asks=["{which|what} metrics {are there|does the server have}?", "what are the metrics called?", "do vLLM dashboards work?", "list the metrics", "metrics?", "is there a Grafana dashboard?"], weight=2),
        Fact("several models", ["A server has one model. Start a second `realizar serve` with another `--port` for another model."], ["--port"], asks=["can {one|a} server {have|serve} {several|two|many} models?", "how do I serve {two|several} models?", "more than one model on a server?", "can I switch models on the server?"]),
        Fact("parallel default", ["serve has 64 answers under way at one time on a GPU and 16 on the CPU; `--parallel` sets it."], ["64", "16"], asks=["how many {requests|users|answers} {can|does} {the server|serve} {handle|take|answer} at {once|one time}?", "how many clients at the same time?", "what is the default of parallel for serve?"]),
        Fact("docker", ["The binary needs nothing else, so any image that has libc will do. Give the container its GPUs with Docker's own option for it."], ["container"], asks=["can I run it in {Docker|a container|Kubernetes}?", "is there a {Docker image|container}?", "docker?", "how do I use it with {Docker|Kubernetes}?"]),
        Fact("fields", ["docs/api.md has all fields. The common ones are `model`, `messages`, `max_tokens`, `temperature`, `top_p`, `stop`, `seed`, `stream` and `n`."], ["messages", "max_tokens"], asks=["{which|what} fields {does a chat request have|are there|can I send}?", "list the fields of a request", "what can I set in a request?", "parameters of a chat request?"]),
        Fact("api limit answer", ["Set `max_tokens` or `max_completion_tokens` in the request."], ["max_tokens"], asks=["how do I limit the length of an answer {over HTTP|in the API|in a request}?", "which field limits the answer?", "how do I make answers shorter {over HTTP|in a request}?"]),
        Fact("prompt too long http", ["It is refused with status 400 and the code `context_length_exceeded`; the message has both numbers."], ["context_length_exceeded"], asks=["what does the server do with {a prompt that is too long|too long prompts}?", "what happens over HTTP if my prompt exceeds the context?", "which error comes when the prompt is too long?"]),
    ]  # fmt: skip


FACTS = Facts("http api", _endpoints() + _fields() + _errors() + _metrics())
GENERAL = Facts("http api", _general())
