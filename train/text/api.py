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
    ("POST /v1/rerank", "says how well documents answer a query, by a model that was made for it",
     ["{rank|rerank|sort} documents {by a query|over HTTP|with the server}", "{score|compare} documents {against|with} a query", "use a reranker"]),
    ("POST /v1/messages", "answers the next message of a conversation, as Anthropic's API does",
     ["use {Anthropic's API|the Messages API|an Anthropic client|Anthropic's SDK}", "{send|post} a request of Anthropic's API", "{connect|use} Claude Code {with|to} the server"]),
    ("POST /v1/messages/count_tokens", "counts the tokens of a request of Anthropic's API",
     ["count tokens {as Anthropic's API does|for an Anthropic client|with Anthropic's API}", "know the tokens of a message of Anthropic's API"]),
    ("POST /api/chat", "answers the next message of a conversation, as Ollama's API does",
     ["use {Ollama's API|an Ollama client|Ollama's clients} for chats", "{send|post} a chat of Ollama's API", "chat as with Ollama over HTTP"]),
    ("POST /api/generate", "answers a prompt, as Ollama's API does",
     ["{send|post} a prompt {by|with} Ollama's API", "generate text {by|with} Ollama's API", "use Ollama's generate"]),
    ("POST /api/embed", "makes vectors of texts, as Ollama's API does",
     ["make embeddings {by|with} Ollama's API", "embed texts as Ollama does"]),
    ("GET /api/tags", "lists the served models, as Ollama's API does",
     ["list the models {by|with} Ollama's API", "see the models as a client of Ollama does"]),
    ("GET /api/ps", "lists the loaded models, as Ollama's API does",
     ["{list|see} {the loaded models|which models are loaded} {by|with} Ollama's API"]),
    ("POST /api/pull", "pulls a model, as Ollama's API does, with `--manage-models`",
     ["pull a model {over HTTP|by Ollama's API|from a client}", "{download|fetch} a model through the server"]),
    ("DELETE /api/delete", "deletes a model, as Ollama's API does, with `--manage-models`",
     ["delete a model {over HTTP|by Ollama's API|from a client}"]),
    ("POST /completion", "continues a prompt, as llama.cpp's server does",
     ["use {llama.cpp's API|a client of llama.cpp|llama.cpp's completion}", "continue a text as llama.cpp's server does"]),
    ("POST /infill", "fills the gap between two texts, as llama.cpp's server does",
     ["fill {a gap|the gap} {between two texts|in code|in a text}", "{complete|fill in} code in the middle", "use {an editor plug-in|fill-in-the-middle|FIM|llama.vim}", "complete code in {my|an} editor"]),
    ("POST /apply-template", "gives the conversation as the chat template writes it, as llama.cpp's server does",
     ["apply the chat template {over HTTP|as llama.cpp does}", "get the prompt of a conversation as llama.cpp's server gives it"]),
    ("GET /props", "gives the default settings, the context and the chat template, as llama.cpp's server does",
     ["{see|get} the {properties|default settings} of the server", "get the chat template of the server"]),
    ("GET /slots", "lists an entry for each answer that can run at the same time, as llama.cpp's server does",
     ["see the slots of the server", "see which slots are busy"]),
    ("GET /models", "lists the models and their states",
     ["{see|get} {the state|the states} of {a model|the models|each model} {over HTTP|on the server}", "see which models are loaded on the server"]),
    ("POST /models/load", "loads a model and answers when it is ready",
     ["load a model {over HTTP|on the server}", "have a model loaded before the first request"]),
    ("POST /models/unload", "unloads a model when its running requests have ended",
     ["unload a model {over HTTP|on the server}", "free the memory of a model on the server"]),
    ("GET /version", "gives the version of the server",
     ["{see|get} the version of the server{ over HTTP|}", "know which realizar the server runs"]),
    ("POST /tokenize", "gives the token ids of a prompt or a conversation",
     ["{count|get} tokens {over HTTP|with the server|from the server}", "tokenize {a prompt|text} over HTTP", "get token ids from the server"]),
    ("POST /detokenize", "gives the text of token ids",
     ["turn ids into text {over HTTP|with the server}", "detokenize over HTTP"]),
    ("POST /v1/chat/completions/render", "shows the prompt and the token ids that a chat request becomes, without running the model",
     ["see the prompt that a chat request becomes {on the server|over HTTP}", "render the chat template over HTTP", "see what the model gets of a chat request"]),
    ("GET /v1/models", "lists the names that models are served under",
     ["list the models of {the|a} server", "see which {model|models} {the|a} server has", "get the model names over HTTP"]),
    ("GET /health", "says 200 as long as the process is alive",
     ["{check|see} whether the server {is alive|lives|is up}", "make a liveness probe", "health check the server"]),
    ("GET /ready", "says 200 when the model is loaded and a request would be admitted",
     ["{check|see} whether the server is ready", "make a readiness probe", "{wait|see} {until|when} the model is loaded{ on the server|}"]),
    ("GET /metrics", "gives the metrics for Prometheus",
     ["{get|scrape|read} {the |}metrics", "monitor the server{ with Prometheus| with Grafana|}", "connect Prometheus", "see how busy the server is", "watch the {load|queue} of the server"]),
]  # fmt: skip

# Field, what it takes, its default, what it does.
_FIELDS = [
    ("model", "a string", "the model that is served", "names the model"),
    ("stream", "true or false", "false", "sends the answer piece by piece"),
    ("stream_options", "an object", "none", "asks for usage in a stream, by include_usage"),
    ("n", "a whole number from 1 to 128", "1", "asks for so many answers"),
    ("temperature", "a number from 0 to 2", "what the model recommends, or 1", "makes likely tokens likelier below 1 and less likely above"),
    ("top_p", "a number above 0, to 1", "what the model recommends, or 1", "keeps the likeliest tokens whose probabilities add up to it"),
    ("typical_p", "a number above 0, to 1", "what the model recommends, or 1", "keeps tokens that surprise about as much as expected"),
    ("min_p", "a number from 0 to 1", "what the model recommends, or 0", "keeps tokens at least so many times as likely as the likeliest"),
    ("top_k", "a whole number from 1, or -1 or 0 for all tokens", "what the model recommends, or 0", "keeps so many of the likeliest tokens"),
    ("repetition_penalty", "a number from 0.01 to 100", "what the model recommends, or 1", "makes tokens of the prompt and the answer less likely"),
    ("presence_penalty", "a number from -2 to 2", "0", "makes tokens that the answer has less likely, once each"),
    ("frequency_penalty", "a number from -2 to 2", "0", "makes tokens less likely the more often the answer has them"),
    ("seed", "a whole number of 64 bits", "a random one", "makes the choice of tokens repeatable"),
    ("stop", "a string, or a list of up to 64", "none", "ends the answer before a text"),
    ("stop_token_ids", "a list of token ids", "none", "ends the answer at one of these tokens"),
    ("logit_bias", "an object of numbers from -100 to 100 by token id", "none", "makes single tokens likelier or less likely"),
    ("speculative_tokens", "a whole number from 0 to 16", "as many as pay off", "bounds the tokens that speculative decoding proposes"),
    ("response_format", "an object of type json_schema, json_object, structural_tag or text", "free text", "says what the answer must be"),
    ("structured_outputs", "an object with json, regex, choice, grammar, json_object or structural_tag", "free text", "is vLLM's way to say what the answer must be"),
    ("guided_json", "a JSON schema", "free text", "constrains the answer by a JSON schema, under vLLM's older name"),
    ("guided_regex", "a regular expression", "free text", "constrains the answer by a regular expression, under vLLM's older name"),
    ("guided_choice", "a list of strings", "free text", "has the answer be one of the strings of a list"),
    ("guided_grammar", "a grammar in GBNF or in Lark's notation", "free text", "constrains the answer by a grammar, under vLLM's older name"),
    ("tool_choice", '"auto", "none", "required", or an object that names a tool', '"auto"', "says whether the model calls tools"),
    ("parallel_tool_calls", "true or false", "true", "says whether an answer may have several tool calls"),
    ("reasoning_effort", '"none", "minimal", "low", "medium", "high" or "xhigh"', "as much thought as the chat template has by itself", "says how much thought an answer is worth"),
    ("thinking_token_budget", "a whole number from 0", "no bound", "ends the thought after so many tokens"),
    ("continue_final_message", "true or false", "false", "has the answer go on with the last message"),
    ("dimensions", "a whole number from 1", "the model's own", "shortens an embedding to so many elements"),
    ("query", "a string", "none: it must be given", "is what documents are ranked by"),
    ("top_n", "a whole number from 1", "all documents", "says how many of the best documents are in the answer"),
    ("keep_alive", "a number of seconds, or a duration such as 5m", "what the server is set to", "says how long an idle model stays loaded, in Ollama's API"),
    ("num_ctx", "a whole number from 1 to the context that is loaded", "what is loaded", "says how much context a request of Ollama's API needs"),
    ("num_predict", "a whole number from 1, or -1 for no limit", "-1", "ends the answer after so many tokens in Ollama's API"),
    ("n_predict", "a whole number from 0, or -1 for no limit", "-1", "ends the answer after so many tokens in llama.cpp's API"),
    ("think", 'true, false, "low", "medium" or "high"', "as much thought as the chat template has by itself", "switches thought on and off in Ollama's API"),
    ("budget_tokens", "a whole number from 1", "no bound", "limits the thought in Anthropic's API"),
    ("input_prefix", "a string", "none: it must be given", "is the text before the gap that /infill fills"),
    ("input_suffix", "a string", "none: it must be given", "is the text behind the gap that /infill fills"),
    ("min_tokens", "a whole number from 0", "0", "keeps the answer from ending before so many tokens"),
    ("ignore_eos", "true or false", "false", "goes on past the model's end tokens"),
    ("priority", "a whole number from -2147483647", "0", "orders requests: lower ones go first"),
    ("cache_salt", "a string", "the cache is shared", "keeps cached tokens apart from those of other salts"),
    ("prompt_logprobs", "a whole number from 0 to 20", "none", "asks for the log-probabilities of the prompt"),
    ("messages", "a list of messages", "none: it must be given", "is the conversation"),
    ("tools", "a list of tools of type function", "none", "lists the functions that the model may call"),
    ("max_completion_tokens", "a whole number from 1, or -1 for no limit", "until the context is full", "ends the answer after so many tokens"),
    ("max_tokens", "a whole number from 1, or -1 for no limit", "until the context is full, and 16 in completions", "ends the answer after so many tokens"),
    ("logprobs", "true or false in chats, a number from 0 to 5 in completions", "none", "asks for log-probabilities of the answer"),
    ("top_logprobs", "a whole number from 0 to 20", "0", "asks for the likeliest tokens beside each token of the answer"),
    ("chat_template_kwargs", "an object of values for the chat template", "none", "gives values to the chat template"),
    ("documents", "a list of objects for the chat template, or of strings to rank", "none", "gives documents to the chat template, or to /v1/rerank"),
    ("echo", "true or false", "false", "puts the prompt in front of the continuation"),
    ("prompt", "a string, a list of strings, a list of token ids, or a list of such lists", "none: it must be given", "is the text to continue"),
    ("parse_special", "true or false", "false", "lets special tokens in the prompt count"),
    ("input", "a string, or a list", "none: it must be given", "is what a response or embeddings are made of"),
    ("instructions", "a string", "none", "becomes the first message, of the role system, in a response"),
    ("max_output_tokens", "a whole number from 1", "until the context is full", "ends a response after so many tokens"),
    ("encoding_format", '"float" or "base64"', '"float"', "says how embeddings are written"),
    ("pooling", '"mean", "last", "cls" or "max"', "what the model's files say, or else the last token", "says which tokens count for an embedding"),
    ("store", "anything", "none", "changes nothing: the server keeps no answers"),
    ("user", "anything", "none", "changes nothing"),
    ("return_token_strs", "true or false", "false", "asks /tokenize for the tokens' texts, too"),
]  # fmt: skip

# Status, code, meaning, way out.
_ERRORS = [
    ("400", "body_incomplete", "the body ended early", "Send all of it."),
    ("400", "body_timeout", "the body took too long to arrive", "Send it faster, or in smaller requests."),
    ("400", "context_length_exceeded", "the prompt is longer than the context", "Shorten it, or start the server with a larger `--context`; the message has both numbers."),
    ("400", "grammar_too_large", "the grammar of the answer takes too much memory or time", "Use a simpler schema or grammar."),
    ("400", "invalid_json", "the body is not the JSON that is wanted", "Look at the place that the message names."),
    ("400", "invalid_utf8", "the body has bytes that are no UTF-8", "Send UTF-8."),
    ("400", "invalid_value", "a field has a value that it does not take", "The message and `param` name the field."),
    ("400", "missing_required_parameter", "a field is missing", "`param` names it."),
    ("400", "not_enough_memory", "the cache has no room for this request even alone", "Ask for less, or start the server with more `--memory`, or on a GPU `--gpu-memory`."),
    ("400", "unknown_parameter", "a field is not known", "Leave it out, or start the server with `--lenient`; `param` names it."),
    ("400", "unsupported_parameter", "a field or its value would change the answer and is not supported", "Leave it out; `param` names it."),
    ("401", "missing_api_key", "the request bears no key", "Send the header `Authorization: Bearer KEY`."),
    ("401", "invalid_api_key", "the key is not known", "Use one of those in the file of `--api-key-file`."),
    ("403", "origin_not_allowed", "the web page may not use the server", "Start the server with `--cors` and the page's origin."),
    ("403", "host_not_allowed", "the server does not answer to this name", "Start the server with `--allow-host` and the name."),
    ("403", "models_not_managed", "clients may not change the models of the machine", "Start the server with `--manage-models`."),
    ("404", "model_not_found", "no model is served under this name", "`GET /v1/models` lists the names, and `--served-model-name` sets them."),
    ("404", "not_found", "there is nothing at this address", "Check the path: the base URL of a client of OpenAI's API ends in /v1."),
    ("413", "body_too_large", "the body is larger than allowed", "`--max-body` sets the limit."),
    ("413", "request_too_large", "the request takes more memory than all may hold together", "`--request-memory` sets the limit."),
    ("422", "no_chat_template", "the model has no chat template", "Use `/v1/completions`."),
    ("422", "no_pooling", "the model's files do not say one way to pool", "Choose one with the field `pooling`."),
    ("422", "no_tokenizer", "the model has no tokenizer", "It takes token ids alone."),
    ("422", "refused_by_template", "the chat template refused the messages", "Its own words are the message; often roles must alternate."),
    ("422", "unsuited_model", "the model is not made for what is asked of it", "Use another model: embeddings come from encoders, for example."),
    ("422", "template_failed", "the chat template failed on the messages", "Try others, or look at it with `realizar template`."),
    ("409", "model_in_use", "the model is loaded and cannot be deleted", "Unload it first with `POST /models/unload`."),
    ("429", "memory_full", "other requests hold the memory that this one takes", "Ask again later; `--request-memory` sets the limit."),
    ("429", "model_queue_full", "too many requests wait for models to be loaded", "Ask again after the seconds in `Retry-After`."),
    ("429", "queue_full", "too many answers wait already", "Ask again after the seconds in `Retry-After`; `--max-queue` sets the limit."),
    ("500", "not_finite", "the model computed something that is no number", "Check the file: it may be damaged."),
    ("500", "damaged_file", "the model's file cannot be read any more", "Check the file and the disk; `realizar verify` compares digests."),
    ("500", "server_error", "the server failed", "The log says more under the request's id."),
    ("503", "closed", "the model was closed", "Start the server again."),
    ("503", "draining", "the server is shutting down", "Ask another one, or later."),
    ("503", "first_token_timeout", "the first token took longer than it may", "`--first-token-timeout` sets the limit."),
    ("503", "loading", "the model is being loaded", "Wait until `/ready` says 200."),
    ("503", "model_failed", "the model cannot be loaded", "The log says why."),
    ("503", "model_memory", "there is no memory for the model", "The message has the numbers; `--memory` and `--gpu-memory` set the limit."),
    ("503", "model_unloaded", "the model was unloaded while it was being loaded", "Ask again."),
    ("503", "prepare_timeout", "grammar, chat template and tokenizer took longer than half a minute", "Use a simpler schema or a shorter prompt."),
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
    ("vllm:generation_tokens_total", "the tokens of answers"),
    ("vllm:prefix_cache_queries_total", "the tokens that were looked up in the cache"),
    ("vllm:prefix_cache_hits_total", "the tokens that were found in the cache"),
    ("vllm:num_preemptions_total", "answers that lost their memory to others and went on later"),
    ("vllm:spec_decode_num_draft_tokens_total", "tokens that speculative decoding proposed"),
    ("vllm:spec_decode_num_accepted_tokens_total", "proposed tokens that the model sampled itself"),
    ("vllm:request_success_total", "answers that ended, by their reason"),
    ("realizar_steps_total", "steps of the model"),
    ("realizar_computed_tokens_total", "tokens of prompts that were computed"),
    ("realizar_cache_pages", "pages of the cache"),
    ("realizar_cache_evictions_total", "pages that were dropped to make room"),
    ("realizar_answers_admitted", "answers that were admitted and have not ended"),
    ("realizar_model_state", "the state that a model is in"),
    ("realizar_model_loads_total", "times that a model was loaded"),
    ("realizar_model_evictions_total", "times that a model gave its memory to another"),
    ("realizar_models_memory_bytes", "the memory that is reserved for models"),
    ("realizar_request_memory_bytes", "the memory that requests hold"),
    ("realizar_connections_open", "open connections of clients"),
    ("realizar_step_seconds_total", "the seconds during which a step was running"),
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
            f"field {name} default", [f"If `{name}` is left out, the default holds: {literal(default)}." if not default.startswith("none") else f"`{name}` has no default{': it must be given' if 'must' in default else ''}."],
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
        "400": "the request is wrong, too long or too large for memory", "401": "a key is missing or wrong", "403": "a web page, a host name or a change of models is not allowed", "409": "the model is in use", "404": "the model's name or the address is not known",
        "413": "the request is larger than `--max-body` or `--request-memory` allows", "422": "the model or its template cannot do it", "429": "the queue or the memory is full: ask again after `Retry-After` seconds", "500": "the server failed; its log says more",
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
        Fact("api", ["The server has OpenAI's, Anthropic's, Ollama's and llama.cpp's APIs on one port: chats, completions, responses, embeddings, reranking, infill and metrics. docs/api.md has every field."], ["openai", "anthropic", "ollama", "embeddings"],
             topics=["the HTTP API", "the API", "the API of the server"], asks=["{which|what} endpoints {are there|does the server have|does it have}?", "list the endpoints", "what can I ask the server over HTTP?", "which API does serve speak?", "is {the server|it} compatible with OpenAI?", "endpoints?", "what API does the server have?"], weight=3),
        Fact("curl", [f"`{curl}`"], ["curl", "/v1/chat/completions"], asks=["how do I {ask|call|use} the server with curl?", "{show|give} me a curl {example|command}", "what does a request look like?", "an example of a request?", "how do I send a request{ by hand| from the shell|}?", "curl example", "example of a chat request?"],
             goals=["{send|make} a request with curl", "test the server from the {shell|command line}", "call the server from {a shell script|bash}"], weight=2),
        Fact("base url", ["Set the base URL of an OpenAI client to `http://localhost:8080/v1`; any key will do if the server requires none."], ["http://localhost:8080/v1"], asks=["{which|what} base URL {do I set|does the client need}?", "what is the URL of the {API|server}?", "what is the base_url for the openai {client|package|library}?", "base URL?", "where is the API?"],
             goals=["use {OpenAI's client|the openai package|the openai library|an OpenAI client}{ with realizar| with the server|}", "connect {my app|a client|Open WebUI|a chat UI|LangChain|the Python client} to {the server|realizar}", "point a client at the server"], weight=2),
        Fact("anthropic clients", ["Set `ANTHROPIC_BASE_URL` to `http://localhost:8080`, without /v1: the server has `/v1/messages`. docs/anthropic.md has every field."], ["http://localhost:8080", "/v1/messages"], asks=["does the server have Anthropic's API?", "which base URL does an Anthropic client need?", "can I use {Claude Code|Anthropic's SDK|an Anthropic client} with realizar?", "is there a Messages API?", "does realizar support {Anthropic|the Anthropic API}?", "what is ANTHROPIC_BASE_URL for realizar?"],
             goals=["use {Claude Code|Anthropic's SDK|an Anthropic client}{ with realizar| with the server|}", "point {Claude Code|an Anthropic client} at the server"], weight=2),
        Fact("ollama clients", ["Set `OLLAMA_HOST` to `http://localhost:8080`, or start the server with `--ollama-port 11434`: it has Ollama's API, such as `/api/chat`. docs/ollama.md has every field."], ["--ollama-port"], asks=["does the server have Ollama's API?", "can clients of Ollama use {the server|realizar}?", "is realizar compatible with Ollama?", "which address does a client of Ollama need?", "what is OLLAMA_HOST for realizar?", "does {/api/chat|/api/generate} work?"],
             goals=["use {Ollama's client|a program for Ollama|an Ollama client}{ with realizar| with the server|}", "point {an Ollama client|a program for Ollama} at the server"], weight=2),
        Fact("llama.cpp clients", ["Give them the server's address: it has llama.cpp's `/completion`, `/infill`, `/props` and `/slots`. docs/llamacpp.md has every field."], ["/infill"], asks=["does the server have llama.cpp's API?", "can clients of llama.cpp use {the server|realizar}?", "is serve compatible with llama-server?", "does {/infill|/completion|llama.vim} work?", "do editor plug-ins work with the server?"],
             goals=["use {a client of llama.cpp|llama.vim|an editor plug-in}{ with realizar| with the server|}"], weight=2),
        Fact("structured http", ["Send `response_format` of type json_schema with the schema: the answer is held to it token by token. vLLM's `structured_outputs` and llama.cpp's `grammar` work, too."], ["response_format"], goals=["get JSON {by|of|in} a schema {over HTTP|from the server|in the API}", "use {structured output|structured outputs|a JSON schema} {over HTTP|in a request|with the API}", "constrain {an answer|answers} {over HTTP|in a request|with the API}"], asks=["does the server support {structured output|structured outputs|JSON Schema|grammars|guided decoding}?", "what is response_format?", "can the API enforce a JSON schema?", "is there a JSON mode?"], weight=2),
        Fact("tools http", ["Send `tools` with the functions; `tool_choice` may be auto, none, required or one tool. Calls are held to the schemas of the tools, and come in `tool_calls`."], ["tools", "tool_choice"], goals=["{use|have|get} {tool calls|function calling} {over HTTP|in the API|with the server}", "let the model call {functions|tools} {over HTTP|in the API}"], asks=["does the server support {tool calls|function calling|tools}?", "how do tool calls work in the API?", "can I force a tool call?", "are tool calls valid JSON?", "which models can call tools?"], weight=2),
        Fact("reasoning http", ["The thought comes in `reasoning_content`; `reasoning_effort` says how much thought an answer is worth, and `thinking_token_budget` bounds it."], ["reasoning_content", "reasoning_effort"], goals=["{turn on|turn off|limit|switch off} {thinking|reasoning|thoughts}{ over HTTP| in the API|}", "get the {thought|reasoning} of a model"], asks=["where is the {thought|reasoning} of {an answer|a model}?", "does the server support {reasoning models|thinking|reasoning}?", "how do I make the model think less?", "reasoning models?", "can I limit the thinking of a model?"], weight=2),
        Fact("embeddings http", ["Send `input`, a text or a list of texts, to `POST /v1/embeddings`: each gets a vector of unit length. Ollama's `/api/embed` works, too."], ["/v1/embeddings"], asks=["how do embeddings work on the server?", "can the server make {embeddings|vectors}?", "which endpoint has embeddings?", "what do I send to get an embedding?"]),
        Fact("page", ["Open the address of the server in a browser, http://127.0.0.1:8080: the page lets you chat and watch the server. `--no-ui` turns it off."], ["browser"], asks=["is there a {web page|web interface|chat page|web UI|GUI}?", "can I chat in {the browser|a browser}?", "what is at / of the server?", "does realizar have a {GUI|web interface|user interface}?", "what can the page do?"], goals=["chat {in|with} {the|a} browser", "open the {page|web page|web interface} of the server"], topics=["the page", "the web page of the server"], weight=2),
        Fact("configuration file", ["`realizar serve --config serve.yaml` reads settings from a YAML file, which `REALIZAR_CONFIG` may name, too. The flag `--max-queue` is the key max-queue and the variable `REALIZAR_MAX_QUEUE`."], ["--config"], asks=["can {serve|the server} be configured by {a file|environment variables}?", "what is in a configuration file?", "which format has the configuration file?", "is there a config file?", "what is the variable for a flag?", "how do I set flags by environment variables?", "what is REALIZAR_CONFIG?"], weight=2),
        Fact("precedence", ["A flag overrides the environment, and the environment overrides the file. `realizar serve --print-config` shows the settings in effect."], ["--print-config"], asks=["which goes first, the flag or the file?", "does a flag override the {configuration file|environment}?", "what is the precedence of settings?", "flag, environment or file: which one counts?", "in which order are settings read?"]),
        Fact("settings reload", ["The file is read again when it changes and on SIGHUP. The log names settings that cannot change while the server runs."], ["sighup"], asks=["do I have to restart the server when the configuration {file |}changes?", "when is the configuration file read again?", "which settings can change while the server runs?", "does serve notice a change of its file?"]),
        Fact("models file", ["Each key is the name of a model, with source, aliases, pinned, preload, ttl and flags such as context as its settings: `realizar serve --models models.yaml`"], ["aliases"], asks=["what does the file of --models look like?", "what can a file of models have?", "how do I give a model an alias on the server?", "how do I {pin|preload} a model?", "which settings has a model in models.yaml?", "what is {pinned|preload|ttl} in models.yaml?"]),
        Fact("model memory", ["With several models, `--memory` or `--gpu-memory` limits all together. If a model does not fit, the server unloads one that is idle; while all are in use, requests wait."], ["unloads"], asks=["what happens when {the models do not fit|memory is full} with several models?", "how much memory do several models take?", "which model is unloaded?", "when is a model unloaded?", "do all models stay in memory?"]),
        Fact("server address", ["`realizar serve` listens on 127.0.0.1, port 8080: http://127.0.0.1:8080. `--host` and `--port` change it."], ["8080"], asks=["{which|what} port {is the default|does the server use|does serve listen on}?", "on which address does the server listen?", "where does the server listen?", "what is the address of the server?", "default port?", "localhost which port?"], weight=2),
        Fact("api keys", ["Put the keys into a file, one a line, and start `realizar serve model.gguf --api-key-file keys.txt`. Clients send `Authorization: Bearer KEY`."], ["--api-key-file"], asks=["how do API keys work?", "how do clients send {the|a} key?", "where do I put the API keys?", "how is the server protected?", "what does the key file look like?", "is there authentication?", "what format has the key file?"], weight=2),
        Fact("keys reload", ["Send SIGHUP: the key file and the certificate are read again, without a restart."], ["sighup"], goals=["{change|add|replace|renew} {keys|an API key|the certificate} {without a restart|while the server runs}", "reload the {keys|certificate|key file}"], asks=["what does SIGHUP do?", "do I have to restart the server for {new keys|a new certificate}?", "does it read the key file again?"]),
        Fact("no key", ["/health, /ready, /metrics and the page need no key."], ["/health"], asks=["{which|what} endpoints need no key?", "does {/metrics|/health|/ready} need a key?", "can Prometheus scrape without a key?", "are the metrics protected?"]),
        Fact("shutdown", ["SIGTERM or Ctrl-C stops the server: it refuses new requests, finishes running requests within `--drain-timeout`, and exits with 0. A second signal ends it at once."], ["sigterm"], goals=["{stop|end|shut down|quit} the server", "stop the server {cleanly|without losing answers}"], asks=["what happens on SIGTERM?", "how does the server shut down?", "what does Ctrl-C do to the server?", "is there a graceful shutdown?"], weight=2),
        Fact("loading", ["The server listens from the start: while the model loads, /health reports a live process and /ready says when requests are admitted; all others are refused with 503 and `Retry-After`."], ["503"], asks=["what does the server answer while the model {loads|is being loaded}?", "why 503 at the start?", "when can I send requests after the start?", "is the server there while it loads?"]),
        Fact("strict", ["An unknown field is an error that names it, and so is one that would change the answer and is not supported. `--lenient` ignores unknown fields instead."], ["error", "--lenient"], asks=["what happens {with|to} unknown fields?", "are unknown fields ignored?", "does the server ignore fields that it does not know?", "why is my field {refused|an error}?", "is the API strict?"]),
        Fact("error form", ["An error is an object `error` with message, type, param, code and request_id; `param` names the field that is wrong."], ["code", "param"], asks=["what do errors look like?", "what is the form of an error?", "how are errors reported {over HTTP|by the API|by the server}?", "which field is wrong in my request?", "what is param in an error?"]),
        Fact("error types", ["The types are invalid_request_error, authentication_error, rate_limit_error, overloaded_error and server_error."], ["rate_limit_error"], asks=["{which|what} types of errors are there?", "what is the type of an error?", "error types?", "list the error types"]),
        Fact("retry", ["With 429 and 503 the header `Retry-After` says after how many seconds to ask again."], ["retry-after"], asks=["when should I retry?", "what is Retry-After?", "how long should I wait after a 429?", "how do clients know when to ask again?", "after how many seconds may I try again?"]),
        Fact("request id", ["`X-Request-Id` names a request: up to 128 letters, digits and -_.: from the client, or one that the server makes. It is in the answer and in the log."], ["x-request-id"], topics=["X-Request-Id", "the header X-Request-Id", "a request id"], asks=["how do I find a request in the log?", "can I name a request?"]),
        Fact("trace level", ["`X-Trace-Level` asks for timings in the answer: brick, step or layer."], ["timings"], topics=["X-Trace-Level", "the header X-Trace-Level"], asks=["how do I get timings {in the answer|over HTTP|of a request}?", "which trace levels are there?", "how do I see the time of each layer over HTTP?"]),
        Fact("traceparent", ["`Traceparent` names the trace that a request belongs to, as W3C's Trace Context has it; it is in the log and the answer."], ["trace"], topics=["Traceparent", "the header Traceparent"]),
        Fact("authorization", ["`Authorization: Bearer KEY` gives the key where the server was started with `--api-key-file`."], ["bearer"], topics=["Authorization", "the header Authorization"], asks=["which header has the key?"]),
        Fact("headers", ["Requests may have `Authorization`, `X-Request-Id`, `X-Trace-Level` and `Traceparent`; answers have `X-Request-Id`, `X-Trace-Id`, `X-Left-Out` and, with 429 and 503, `Retry-After`."], ["x-request-id"], asks=["{which|what} headers {are there|does the server know|can I send}?", "list the headers", "headers of the API?"]),
        Fact("left out", ["`X-Left-Out` names what an answer does not take into account: tools that a model cannot have, and unknown fields with `--lenient`."], ["--lenient"], topics=["X-Left-Out", "the header X-Left-Out"]),
        Fact("roles", ["The roles of messages are system, developer, user, assistant and tool."], ["assistant", "tool"], asks=["{which|what} roles {are there|can messages have|does the API know}?", "what is the role of a message?", "roles of messages?", "is there a developer role?"]),
        Fact("finish reason", ["`finish_reason` is stop if the model ended its answer or a stop text came, length at the limit or the end of the context, and tool_calls if the answer calls tools."], ["length"], topics=["finish_reason", "the finish reason"], asks=["why did the answer end?", "which finish reasons are there?", "how do I know that an answer was cut at its length?"]),
        Fact("usage", ["`usage` has prompt_tokens, completion_tokens, total_tokens and the cached tokens of the prompt."], ["prompt_tokens"], topics=["usage in an answer", "the field usage"], asks=["how do I see how many tokens a request took?", "where are the token counts?", "does the API count tokens?"]),
        Fact("stream usage", ["Set `stream_options` to an object with include_usage true."], ["include_usage"], asks=["how do I get {usage|token counts} {in|with|of} a stream?", "usage in streams?", "include_usage?"]),
        Fact("stream how", ["Set `stream` to true: the answer comes as server-sent events, at last `data: [DONE]`."], ["stream"], goals=["{stream|get|receive} {an answer|the answer|answers} {piece by piece|token by token|as a stream}{ from the server| over HTTP|}", "{turn on|use|enable} streaming{ over HTTP| in the API|}"], asks=["does the server stream?", "how do streams end?", "what does a stream look like?"], weight=2),
        Fact("responses kept", ["No: the server keeps no responses and no conversations. Send the conversation so far as `input`."], ["keeps no responses"], asks=["does {the server|/v1/responses} keep responses?", "can I use previous_response_id?", "are conversations stored on the server?", "does the server remember my conversation?", "is there a conversation state on the server?"]),
        Fact("default sampling", ["What the model recommends, or else a temperature of 1; in Ollama's and llama.cpp's APIs 0.8."], ["recommends"], asks=["what is the default temperature {of the server|over HTTP|in the API}?", "how are tokens chosen when a request says nothing?", "what sampling does the server use by default?"]),
        Fact("prometheus names", ["The metrics have the names that vLLM gave them, such as `vllm:num_requests_running`, so that dashboards made for it work; realizar's own begin with realizar_."], ["vllm"], asks=["{which|what} metrics {are there|does the server have}?", "what are the metrics called?", "do vLLM dashboards work?", "list the metrics", "metrics?", "is there a Grafana dashboard?"], weight=2),
        Fact("several models", ["`realizar serve small.gguf large.gguf` serves several models, and `--models` those of a file, a folder or the store. Requests name one, which is loaded on demand."], ["--models"], asks=["can {one|a} server {have|serve} {several|two|many} models?", "how do I serve {two|several} models?", "more than one model on a server?", "can I switch models on the server?", "is there a router for models?", "does serve load models on demand?"], goals=["serve {several|two|many} models{ with one server|}", "switch between models {on the server|in requests}"], weight=2),
        Fact("parallel default", ["serve runs 64 requests at a time on a GPU and 16 on the CPU; `--parallel` sets the number."], ["64", "16"], asks=["how many {requests|users|answers} {can|does} {the server|serve} {handle|take|answer} at {once|one time}?", "how many clients at the same time?", "what is the default of parallel for serve?"]),
        Fact("docker", ["The binary needs nothing else, so any image will do as a container. Give it its GPUs with Docker's own option for them; settings may come from the environment."], ["container"], asks=["can I run it in {Docker|a container|Kubernetes}?", "is there a {Docker image|container}?", "docker?", "how do I use it with {Docker|Kubernetes}?"]),
        Fact("fields", ["docs/api.md has all fields. The common ones are `model`, `messages`, `max_tokens`, `temperature`, `top_p`, `stop`, `seed`, `stream` and `n`."], ["messages", "max_tokens"], asks=["{which|what} fields {does a chat request have|are there|can I send}?", "list the fields of a request", "what can I set in a request?", "parameters of a chat request?"]),
        Fact("api limit answer", ["Set `max_tokens` or `max_completion_tokens` in the request."], ["max_tokens"], asks=["how do I limit the length of an answer {over HTTP|in the API|in a request}?", "which field limits the answer?", "how do I make answers shorter {over HTTP|in a request}?"]),
        Fact("prompt too long http", ["It is refused with status 400 and the code `context_length_exceeded`; the message has both numbers."], ["context_length_exceeded"], asks=["what does the server do with {a prompt that is too long|too long prompts}?", "what happens over HTTP if my prompt exceeds the context?", "which error comes when the prompt is too long?"]),
    ]  # fmt: skip


FACTS = Facts("http api", _endpoints() + _fields() + _errors() + _metrics())
GENERAL = Facts("http api", _general())
