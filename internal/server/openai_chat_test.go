package server_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/realizar/realizar"
	"github.com/realizar/realizar/chat"
	"github.com/realizar/realizar/internal/modeltest"
	"github.com/realizar/realizar/internal/server"
)

// answerJSON is a chat's answer, or a chunk of it, or completions.
type answerJSON struct {
	ID, Object, Model string
	Created           int64
	Choices           []choiceJSON
	Usage             *usageJSON
	PromptLogProbs    []map[string]promptScoreJSON `json:"prompt_logprobs"`
	Error             *failure
}

type choiceJSON struct {
	Index          int
	Message, Delta struct {
		Role    string
		Content string
	}
	Text         string
	LogProbs     *scoresJSON `json:"logprobs"`
	FinishReason *string     `json:"finish_reason"`

	PromptLogProbs []map[string]promptScoreJSON `json:"prompt_logprobs"`
}

type scoresJSON struct {
	Content []struct {
		Token   string
		LogProb float64
		Bytes   []byte64
		Top     []struct {
			Token   string
			LogProb float64
		} `json:"top_logprobs"`
	}
	Tokens  []string
	Own     []*float64           `json:"token_logprobs"`
	Top     []map[string]float64 `json:"top_logprobs"`
	Offsets []int                `json:"text_offset"`
}

// byte64 is a byte that JSON writes as a number.
type byte64 int

type promptScoreJSON struct {
	LogProb float64
	Rank    *int
	Decoded string `json:"decoded_token"`
}

type usageJSON struct {
	Prompt     int `json:"prompt_tokens"`
	Completion int `json:"completion_tokens"`
	Total      int `json:"total_tokens"`
	Details    struct {
		Cached int `json:"cached_tokens"`
	} `json:"prompt_tokens_details"`
}

// whole reads an answer that is not a stream.
func (r reply) whole(t testing.TB) answerJSON {
	t.Helper()
	var a answerJSON
	if err := json.Unmarshal([]byte(r.body), &a); err != nil || r.status != 200 {
		t.Fatalf("%d %s: %v", r.status, r.body, err)
	}
	return a
}

// streamed is what a stream sent.
type streamed struct {
	chunks []answerJSON
	done   bool
	texts  map[int]string // by choice
	reason map[int]string
	usage  *usageJSON
}

// stream sends a request whose answer is a stream, and reads all of it.
func (s *service) stream(path, body string) (streamed, error) {
	resp, err := s.Client().Post(s.URL+path, "application/json", strings.NewReader(body))
	if err != nil {
		return streamed{}, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != 200 {
		data, err := io.ReadAll(resp.Body)
		return streamed{}, fmt.Errorf("%d %s %w", resp.StatusCode, data, err)
	}
	if got := resp.Header.Get("Content-Type"); !strings.HasPrefix(got, "text/event-stream") {
		return streamed{}, fmt.Errorf("Content-Type %q", got)
	}
	return readStream(resp.Body)
}

func readStream(r io.Reader) (streamed, error) {
	all := streamed{texts: map[int]string{}, reason: map[int]string{}}
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		data, ok := strings.CutPrefix(lines.Text(), "data: ")
		switch {
		case lines.Text() == "", lines.Text() == ":":
			continue
		case !ok || all.done:
			return all, fmt.Errorf("a line %q", lines.Text())
		case data == "[DONE]":
			all.done = true
			continue
		}
		var chunk answerJSON
		if err := json.Unmarshal([]byte(data), &chunk); err != nil {
			return all, fmt.Errorf("%s: %w", data, err)
		}
		if chunk.Error != nil {
			return all, fmt.Errorf("an error in the stream: %s", chunk.Error.Message)
		}
		all.chunks = append(all.chunks, chunk)
		for _, c := range chunk.Choices {
			if all.reason[c.Index] != "" {
				return all, fmt.Errorf("choice %d goes on after its end: %s", c.Index, data)
			}
			all.texts[c.Index] += c.Delta.Content + c.Text
			if c.FinishReason != nil {
				all.reason[c.Index] = *c.FinishReason
			}
		}
		if chunk.Usage != nil {
			all.usage = chunk.Usage
		}
	}
	return all, lines.Err()
}

// chatBody is a chat request of one message.
func chatBody(text string, more string) string {
	quoted, _ := json.Marshal(text)
	if more != "" {
		more = "," + more
	}
	return fmt.Sprintf(`{"model":"small","messages":[{"role":"user","content":%s}]%s}`, quoted, more)
}

func TestChat(t *testing.T) {
	s := serve(t, server.Config{}, realizar.Options{})
	message := strings.Repeat("hello ", 20) // of several pages of the cache
	a := s.post("/v1/chat/completions", chatBody(message, `"max_tokens":12,"temperature":0`)).whole(t)
	want := expected(t, s.model, message, 12)
	if a.Object != "chat.completion" || a.Model != name || !strings.HasPrefix(a.ID, "chatcmpl-") || len(a.Choices) != 1 {
		t.Fatalf("%+v", a)
	}
	c := a.Choices[0]
	if c.Message.Role != "assistant" || c.Message.Content != want || value(c.FinishReason) != "length" || c.LogProbs != nil {
		t.Errorf("%+v, want %q", c, want)
	}
	if u := a.Usage; u.Completion != 12 || u.Prompt == 0 || u.Total != u.Prompt+u.Completion {
		t.Errorf("%+v", u)
	}
	stream, err := s.stream("/v1/chat/completions", chatBody(message, `"max_tokens":12,"temperature":0,"stream":true,"stream_options":{"include_usage":true}`))
	if err != nil {
		t.Fatal(err)
	}
	if stream.texts[0] != want || stream.reason[0] != "length" || !stream.done {
		t.Errorf("%+v, want %q", stream, want)
	}
	first, last := stream.chunks[0], stream.chunks[len(stream.chunks)-1]
	if d := first.Choices[0].Delta; d.Role != "assistant" || first.Object != "chat.completion.chunk" {
		t.Errorf("the first chunk is %+v", first)
	}
	if u := last.Usage; len(last.Choices) != 0 || u == nil || u.Completion != 12 || u.Details.Cached == 0 {
		t.Errorf("the last chunk is %+v, want the usage, with cached tokens", last)
	}
	for _, chunk := range stream.chunks {
		if chunk.ID != first.ID {
			t.Errorf("ids %q and %q", first.ID, chunk.ID)
		}
	}
}

// expected is the greedy answer to a message, from the model itself.
func expected(t testing.TB, m *realizar.Model, text string, tokens int) string {
	t.Helper()
	var out strings.Builder
	for e, err := range m.Chat(t.Context(), chatOf(text, tokens)) {
		if err != nil {
			t.Fatal(err)
		}
		out.WriteString(e.Text)
	}
	return out.String()
}

func chatOf(text string, tokens int) *realizar.ChatRequest {
	return &realizar.ChatRequest{
		Messages:   []chat.Message{{Role: "user", Content: text}},
		Generation: realizar.Generation{MaxTokens: &tokens},
	}
}

func TestChatChoices(t *testing.T) {
	s := serve(t, server.Config{}, realizar.Options{})
	more := `"max_tokens":8,"n":3,"seed":-5,"temperature":1.5`
	a := s.post("/v1/chat/completions", chatBody("hello", more)).whole(t)
	stream, err := s.stream("/v1/chat/completions", chatBody("hello", more+`,"stream":true`))
	if err != nil {
		t.Fatal(err)
	}
	if len(a.Choices) != 3 || len(stream.texts) != 3 || a.Usage.Completion != 24 {
		t.Fatalf("%+v, %+v", a, stream)
	}
	for i, c := range a.Choices {
		if c.Index != i || stream.texts[i] != c.Message.Content {
			t.Errorf("choice %d is %q, in a stream %q", i, c.Message.Content, stream.texts[i])
		}
	}
	if a.Choices[0].Message.Content == a.Choices[1].Message.Content {
		t.Error("two choices are the same")
	}
	// Without a seed answers differ.
	seen := map[string]bool{}
	for range 4 {
		seen[s.post("/v1/chat/completions", chatBody("hello", `"max_tokens":8`)).whole(t).Choices[0].Message.Content] = true
	}
	if len(seen) < 2 {
		t.Errorf("four answers without a seed are %v", seen)
	}
}

func TestChatStop(t *testing.T) {
	s := serve(t, server.Config{}, realizar.Options{})
	text := expected(t, s.model, "hello", 12)
	stop := string([]rune(text)[4:6])
	before, _, _ := strings.Cut(text, stop)
	quoted, _ := json.Marshal(stop)
	for _, stop := range []string{string(quoted), `["never there", ` + string(quoted) + `]`} {
		a := s.post("/v1/chat/completions", chatBody("hello", `"max_tokens":12,"temperature":0,"stop":`+stop)).whole(t)
		if c := a.Choices[0]; c.Message.Content != before || value(c.FinishReason) != "stop" {
			t.Errorf("stop %s: %+v, want %q", stop, c, before)
		}
	}
}

func TestChatLogProbs(t *testing.T) {
	s := serve(t, server.Config{}, realizar.Options{})
	more := `"max_tokens":6,"temperature":0,"logprobs":true,"top_logprobs":3`
	a := s.post("/v1/chat/completions", chatBody("hello", more)).whole(t)
	scores := a.Choices[0].LogProbs.Content
	if len(scores) != 6 {
		t.Fatalf("%d scores, want 6", len(scores))
	}
	var bytes []byte
	for i, score := range scores {
		if len(score.Top) != 3 || score.Top[0].LogProb != score.LogProb || score.Top[0].Token != score.Token || score.LogProb >= 0 || score.Top[1].LogProb > score.LogProb {
			t.Errorf("score %d is %+v; the likeliest was chosen", i, score)
		}
		for _, b := range score.Bytes {
			bytes = append(bytes, byte(b))
		}
	}
	if got := strings.ToValidUTF8(string(bytes), ""); got != strings.ReplaceAll(a.Choices[0].Message.Content, "\uFFFD", "") {
		t.Errorf("the tokens are %q, the text %q", got, a.Choices[0].Message.Content)
	}
	stream, err := s.stream("/v1/chat/completions", chatBody("hello", more+`,"stream":true`))
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, chunk := range stream.chunks {
		for _, c := range chunk.Choices {
			if c.LogProbs != nil {
				for _, score := range c.LogProbs.Content {
					if score.LogProb != scores[n].LogProb {
						t.Errorf("score %d is %v in the stream, %v else", n, score.LogProb, scores[n].LogProb)
					}
					n++
				}
			}
		}
	}
	if n != 6 {
		t.Errorf("%d scores in the stream", n)
	}
	a = s.post("/v1/chat/completions", chatBody("hello", `"max_tokens":1,"temperature":0,"prompt_logprobs":1`)).whole(t)
	if len(a.PromptLogProbs) != a.Usage.Prompt || a.PromptLogProbs[0] != nil || len(a.PromptLogProbs[1]) == 0 {
		t.Errorf("prompt_logprobs of %d tokens: %+v", a.Usage.Prompt, a.PromptLogProbs)
	}
}

// What steers the choice is heard: each of these answers differs from the greedy one,
// or is made greedy.
func TestChatSampling(t *testing.T) {
	s := serve(t, server.Config{}, realizar.Options{})
	greedy := expected(t, s.model, "hello", 8)
	tok, err := s.model.Tokenizer()
	if err != nil {
		t.Fatal(err)
	}
	prompt, err := s.model.ChatPrompt(t.Context(), chatOf("hello", 1), 0)
	if err != nil {
		t.Fatal(err)
	}
	var first int32
	for e, err := range s.model.Generate(t.Context(), &realizar.Request{PromptTokens: prompt.Tokens, Generation: realizar.Generation{MaxTokens: new(1)}}) {
		if err != nil {
			t.Fatal(err)
		}
		first = append([]int32{first}, e.Tokens...)[len(e.Tokens)]
	}
	for more, same := range map[string]bool{
		`"temperature":0`: true, `"top_k":1`: true, `"top_p":0.0001`: true, `"min_p":1`: true,
		`"temperature":2,"seed":3`:                                      false,
		fmt.Sprintf(`"temperature":0,"logit_bias":{"%d":-100}`, first):  false,
		fmt.Sprintf(`"temperature":0,"stop_token_ids":[%d]`, first):     false,
		`"temperature":0,"repetition_penalty":100`:                      false,
		`"temperature":0,"min_tokens":8,"ignore_eos":true,"priority":7`: true,
	} {
		a := s.post("/v1/chat/completions", chatBody("hello", `"max_tokens":8,`+more)).whole(t)
		if got := a.Choices[0].Message.Content; (got == greedy) != same {
			t.Errorf("%s: %q, the greedy answer is %q (its first token %q)", more, got, greedy, tok.Decode([]int32{first}, false))
		}
	}
}

func TestChatErrors(t *testing.T) {
	s := serve(t, server.Config{}, realizar.Options{})
	for _, test := range []struct {
		body   string
		status int
		param  string
		code   string
	}{
		{``, 400, "", "invalid_json"},
		{`{`, 400, "", "invalid_json"},
		{`[]`, 400, "", "invalid_json"},
		{`{"model":"small"} x`, 400, "", "invalid_json"},
		{"{\"model\":\"\xff\"}", 400, "", "invalid_utf8"},
		{`{"model":"\ud83d"}`, 400, "", "invalid_utf8"},
		{`{"model":"small","messages":` + strings.Repeat("[", 100000) + `}`, 400, "messages", "invalid_json"},
		{`{"model":"small"}`, 400, "messages", "missing_required_parameter"},
		{`{"model":"small","messages":[]}`, 400, "messages", "invalid_value"},
		{`{"model":"small","model":"small"}`, 400, "model", "invalid_value"},
		{strings.Replace(chatBody("hi", ""), "small", "large", 1), 404, "model", "model_not_found"},
		{chatBody("hi", `"frobnicate":1`), 400, "frobnicate", "unknown_parameter"},
		{chatBody("hi", `"Temperature":1`), 400, "Temperature", "unknown_parameter"},
		{chatBody("hi", `"temperature":2.5`), 400, "temperature", "invalid_value"},
		{chatBody("hi", `"temperature":"hot"`), 400, "temperature", "invalid_value"},
		{chatBody("hi", `"top_p":0`), 400, "top_p", "invalid_value"},
		{chatBody("hi", `"n":0`), 400, "n", "invalid_value"},
		{chatBody("hi", `"n":1.5`), 400, "n", "invalid_value"},
		{chatBody("hi", `"max_tokens":0`), 400, "max_tokens", "invalid_value"},
		{chatBody("hi", `"max_tokens":3,"max_completion_tokens":4`), 400, "max_tokens", "invalid_value"},
		{chatBody("hi", `"min_tokens":5,"max_tokens":3`), 400, "min_tokens", "invalid_value"},
		{chatBody("hi", `"stop":[""]`), 400, "stop", "invalid_value"},
		{chatBody("hi", `"top_logprobs":2`), 400, "top_logprobs", "invalid_value"},
		{chatBody("hi", `"logprobs":true,"top_logprobs":21`), 400, "top_logprobs", "invalid_value"},
		{chatBody("hi", `"logit_bias":{"x":1}`), 400, "logit_bias", "invalid_value"},
		{chatBody("hi", `"logit_bias":{"1":1,"01":2}`), 400, "logit_bias", "invalid_value"},
		{chatBody("hi", `"logit_bias":{"+1":1}`), 400, "logit_bias", "invalid_value"},
		{chatBody("hi", `"logit_bias":{"-0":1}`), 400, "logit_bias", "invalid_value"},
		{chatBody("hi", `"logit_bias":{"1":101}`), 400, "logit_bias", "invalid_value"},
		{chatBody("hi", `"logit_bias":{"99999":1}`), 400, "logit_bias", "invalid_value"},
		{chatBody("hi", `"stop_token_ids":[null]`), 400, "stop_token_ids", "invalid_value"},
		{chatBody("hi", `"max_tokens":-2`), 400, "max_tokens", "invalid_value"},
		{chatBody("hi", `"max_tokens":4.5`), 400, "max_tokens", "invalid_value"},
		{chatBody("hi", `"seed":1.5`), 400, "seed", "invalid_value"},
		{chatBody("hi", `"stream":true,"stream_options":{"continuous_usage_stats":true}`), 400, "stream_options.continuous_usage_stats", "unsupported_parameter"},
		{chatBody("hi", `"response_format":"json"`), 400, "response_format", "invalid_value"},
		{chatBody("hi", `"tools":[{"type":"function","function":{"name":"f"}}]`), 400, "tools", "invalid_value"},
		{chatBody("hi", `"tools":[{"type":"function","function":{"name":"f","strict":1}}]`), 400, "tools[0].function.strict", "invalid_value"},
		{`{"model":"small","messages":[` + strings.Repeat("0,", 1<<17) + `0]}`, 400, "messages", "invalid_value"},
		{`{"model":"small","messages":[{"role":"user"}]}`, 400, "messages[0].content", "missing_required_parameter"},
		{`{"model":"small","messages":[{"content":"hi"}]}`, 400, "messages[0].role", "missing_required_parameter"},
		{`{"model":"small","messages":[{"role":"user","content":"hi","tool_calls":[{"function":{"name":"f"}}]}]}`, 400, "messages[0].tool_calls", "invalid_value"},
		{`{"model":"small","messages":[{"role":"user","content":"hi","reasoning":"x"}]}`, 400, "messages[0].reasoning", "invalid_value"},
		{`{"model":"small","messages":[{"role":"user","content":"hi","tool_call_id":"x"}]}`, 400, "messages[0].tool_call_id", "invalid_value"},
		{`{"model":"small","messages":[{"role":"tool","content":"hi"}]}`, 400, "messages[0].tool_call_id", "missing_required_parameter"},
		{`{"model":"small","messages":[{"role":"assistant","refusal":"no"}]}`, 400, "messages[0].refusal", "unsupported_parameter"},
		{`{"model":"small","messages":[{"role":"assistant","tool_calls":[{"type":"x","function":{"name":"f"}}]}]}`, 400, "messages[0].tool_calls", "unsupported_parameter"},
		{`{"model":"small","messages":[{"role":"assistant","tool_calls":[{"id":"x"}]}]}`, 400, "messages[0].tool_calls[0].function.name", "missing_required_parameter"},
		{`{"model":"small","messages":[{"role":"assistant","tool_calls":[{"function":{"name":"f","arguments":"[1"}}]},{"role":"user","content":"x"}]}`, 400, "messages", "invalid_value"},
		{`{"model":"small","messages":[{"role":"user","content":[{"text":"x"}]}]}`, 400, "messages[0].content[0].type", "missing_required_parameter"},
		{chatBody("hi", `"tools":[{"type":"function","function":{}}]`), 400, "tools[0].function.name", "missing_required_parameter"},
		{chatBody("hi", `"tools":[{"type":"function","function":{"name":"f","parameters":[]}}]`), 400, "tools[0].function.parameters", "invalid_value"},
		{chatBody("hi", `"seed":"x"`), 400, "seed", "invalid_value"},
		{chatBody("hi", `"stream":1`), 400, "stream", "invalid_value"},
		{chatBody("hi", `"stream":true,"prompt_logprobs":1`), 400, "prompt_logprobs", "invalid_value"},
		{chatBody("hi", `"chat_template_kwargs":{"a":1,"a":2}`), 400, "chat_template_kwargs.a", "invalid_value"},
		{`{"model":"small","messages":[{"role":"king","content":"hi"}]}`, 400, "messages[0].role", "invalid_value"},
		{`{"model":"small","messages":[{"role":"user","content":7}]}`, 400, "messages[0].content", "invalid_value"},
		{`{"model":"small","messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"x"}}]}]}`, 400, "messages[0].content", "unsupported_parameter"},
		{`{"model":"small","messages":[{"role":"user","content":[{"type":"text","txt":""}]}]}`, 400, "messages[0].content[0].txt", "unknown_parameter"},
		{`{"model":"small","messages":[{"role":"assistant","tool_calls":[{"function":{"name":3}}]}]}`, 400, "messages[0].tool_calls[0].function.name", "invalid_value"},
		{`{"model":"small","messages":[{"role":"tool","content":"4","tool_call_id":"x"}]}`, 422, "messages", "refused_by_template"},
		{chatBody(strings.Repeat("x ", 300), ""), 400, "messages", "context_length_exceeded"},
	} {
		r := s.post("/v1/chat/completions", test.body)
		e := r.fails(t, test.status, test.param, test.code)
		if test.param != "" && test.param != "messages" && !strings.Contains(e.Message, test.param[strings.LastIndex(test.param, ".")+1:]) {
			t.Errorf("%q does not name %q", e.Message, test.param)
		}
		if e.RequestID == "" || e.RequestID != r.header.Get("X-Request-Id") {
			t.Errorf("request_id %q, X-Request-Id %q", e.RequestID, r.header.Get("X-Request-Id"))
		}
	}
	e := s.post("/v1/chat/completions", chatBody(strings.Repeat("x ", 300), `"stream":true`)).fails(t, 400, "messages", "context_length_exceeded")
	if !strings.Contains(e.Message, "256") || !strings.Contains(e.Message, "618") {
		t.Errorf("%q does not have both numbers", e.Message)
	}
}

// Fields that change nothing are taken, and null is as if the field were not there.
func TestChatAccepted(t *testing.T) {
	s := serve(t, server.Config{}, realizar.Options{})
	want := expected(t, s.model, "hello", 4)
	for _, more := range []string{
		`"user":"me","metadata":{"a":"b"},"store":true,"service_tier":"auto","safety_identifier":"x","prompt_cache_key":"y"`,
		`"stop":null,"temperature":0,"n":null,"tools":null,"response_format":null,"logit_bias":null,"stream_options":null,"seed":null`,
		`"temperature":0,"cache_prompt":true,"id_slot":0,"timings_per_token":true,"keep_alive":"5m","stream_options":{"include_usage":true}`,
		`"temperature":0,"n":1.0,"top_k":40.0,"seed":5.00`,
		`"response_format": { "type" : "text" },"modalities":["text"],"tool_choice":"none","tools":[{"type":"function","function":{"name":"f"}}]`,
		`"max_completion_tokens":4,"parallel_tool_calls":true,"skip_special_tokens":true`,
	} {
		if !strings.Contains(more, `"temperature"`) {
			more += `,"temperature":0`
		}
		a := s.post("/v1/chat/completions", chatBody("hello", more+`,"max_tokens":4`)).whole(t)
		if got := a.Choices[0].Message.Content; got != want {
			t.Errorf("%s: %q, want %q", more, got, want)
		}
	}
	// Parts are one text, and a developer's message is the system's.
	one := s.post("/v1/chat/completions", `{"model":"small","max_tokens":4,"temperature":0,"messages":[{"role":"developer","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]},{"role":"user","content":"hi"}]}`).whole(t)
	other := s.post("/v1/chat/completions", `{"model":"small","max_tokens":4,"temperature":0,"messages":[{"role":"system","content":"a\nb"},{"role":"user","content":"hi"}]}`).whole(t)
	if one.Choices[0].Message != other.Choices[0].Message || one.Usage.Prompt != other.Usage.Prompt {
		t.Errorf("%+v, %+v", one, other)
	}
}

// A template that takes tools is given them, and the calls of the conversation.
func TestChatTools(t *testing.T) {
	const template = `{% if tools %}{% for t in tools %}[{{ t.function.name }}]{% endfor %}{% endif %}` +
		`{% for m in messages %}{{ m.role }}:{{ m.content }}{% for c in m.tool_calls or [] %}({{ c.function.name }} {{ c.function.arguments.x }}){% endfor %}{% endfor %}`
	s := serve(t, server.Config{}, realizar.Options{}, modeltest.Template(template))
	conversation := `{"model":"small","max_tokens":1,"temperature":0,"messages":[{"role":"user","content":"hi"},` +
		`{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"f","arguments":"{\"x\":12}"}}]},` +
		`{"role":"tool","tool_call_id":"c1","content":"4"}]`
	without := s.post("/v1/chat/completions", conversation+`}`).whole(t)
	with := s.post("/v1/chat/completions", conversation+`,"tools":[{"type":"function","function":{"name":"fg","parameters":{"type":"object"}}}]}`).whole(t)
	if got := with.Usage.Prompt - without.Usage.Prompt; got != len("[fg]") {
		t.Errorf("the tools are %d tokens of the prompt, want %d", got, len("[fg]"))
	}
	if want := len("user:hiassistant:(f 12)tool:4"); without.Usage.Prompt < want-8 || without.Usage.Prompt > want {
		t.Errorf("a prompt of %d tokens, want about %d", without.Usage.Prompt, want)
	}
}

// What looks like a special token in a message is text: its characters are tokens of
// their own.
func TestTypedSpecialTokens(t *testing.T) {
	s := serve(t, server.Config{}, realizar.Options{})
	plain := s.post("/v1/chat/completions", chatBody("xxxxxxxxxx", `"max_tokens":1`)).whole(t)
	typed := s.post("/v1/chat/completions", chatBody("<|im_end|>", `"max_tokens":1`)).whole(t)
	if plain.Usage.Prompt != typed.Usage.Prompt {
		t.Errorf("a prompt of %d tokens, with 10 plain characters %d", typed.Usage.Prompt, plain.Usage.Prompt)
	}
}

func TestRequestID(t *testing.T) {
	s := serve(t, server.Config{}, realizar.Options{})
	for sent, same := range map[string]bool{"abc-1.2:3_Z": true, "": false, "a b": false, strings.Repeat("x", 129): false} {
		r, err := http.NewRequest(http.MethodGet, s.URL+"/v1/models", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("X-Request-Id", sent)
		if got := s.send(r).header.Get("X-Request-Id"); got == "" || (got == sent) != same {
			t.Errorf("X-Request-Id %q for %q", got, sent)
		}
	}
}
