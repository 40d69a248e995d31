package e2e_test

import (
	"errors"
	"strconv"
	"strings"
	"testing"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/shared"
)

func itoa(n int64) string { return strconv.FormatInt(n, 10) }

// metric returns the value of the first gauge or counter with the given name.
func (s *server) metric(name string) float64 {
	s.t.Helper()
	for line := range strings.Lines(s.get("/metrics")) {
		if strings.HasPrefix(line, name+"{") {
			fields := strings.Fields(line)
			v, err := strconv.ParseFloat(fields[len(fields)-1], 64)
			if err != nil {
				s.t.Fatal(err)
			}
			return v
		}
	}
	s.t.Fatalf("there is no metric %s", name)
	return 0
}

// refusal checks an error of the API: its status, its field or code, and parts of its
// message.
func refusal(t *testing.T, err error, status int, names string, says ...string) {
	t.Helper()
	var e *openai.Error
	if !errors.As(err, &e) {
		t.Errorf("got %v, want an error of the API with status %d", err, status)
		return
	}
	if e.StatusCode != status || e.Param != names && e.Code != names || e.Type == "" {
		t.Errorf("got status %d, type %q, param %q, code %q, want %d and %s", e.StatusCode, e.Type, e.Param, e.Code, status, names)
	}
	for _, part := range says {
		if !strings.Contains(e.Message, part) {
			t.Errorf("the message is %q, without %q", e.Message, part)
		}
	}
}

func TestModels(t *testing.T) {
	s := serve(t, "--served-model-name", "second")
	list, err := s.client().Models.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(list.Data) != 2 || list.Data[0].ID != modelName || list.Data[1].ID != "second" || list.Data[0].Object != "model" {
		t.Errorf("models %s", list.RawJSON())
	}
	one, err := s.client().Models.Get(t.Context(), "second")
	if err != nil || one.ID != "second" || one.OwnedBy == "" || one.Created == 0 {
		t.Errorf("%v, %s", err, one.RawJSON())
	}
	p := asked(question, 5)
	p.Model = "second"
	if got, err := s.client().Chat.Completions.New(t.Context(), p); err != nil || got.Model != modelName {
		t.Errorf("by its second name: %v, %v", err, got)
	}
	_, err = s.client().Models.Get(t.Context(), "third")
	refusal(t, err, 404, "model_not_found", "third")
	p.Model = "third"
	_, err = s.client().Chat.Completions.New(t.Context(), p)
	refusal(t, err, 404, "model_not_found", "third", modelName)
}

func TestKeys(t *testing.T) {
	s := serve(t)
	for _, wrong := range []string{"open-sesam", key + "e", "x"} {
		_, err := s.client(option.WithAPIKey(wrong)).Chat.Completions.New(t.Context(), asked(question, 5))
		refusal(t, err, 401, "invalid_api_key")
	}
	_, err := s.client(option.WithHeaderDel("Authorization")).Models.List(t.Context())
	refusal(t, err, 401, "missing_api_key", "Authorization")
	if text := s.get("/health"); !strings.Contains(text, "ok") { // needs no key
		t.Errorf("/health says %q", text)
	}
}

func TestRefusals(t *testing.T) {
	s := serve(t)
	c := s.client()
	chat := func(change func(*openai.ChatCompletionNewParams), options ...option.RequestOption) error {
		p := asked(question, 5)
		change(&p)
		_, err := c.Chat.Completions.New(t.Context(), p, options...)
		return err
	}
	same := func(*openai.ChatCompletionNewParams) {}
	long := strings.Repeat("word ", 2000)
	tokens := run(t, question, "--max-tokens", "1").Usage.Prompt + int64(len(s.tokenize(long))-len(s.tokenize(question)))
	refusal(t, chat(func(p *openai.ChatCompletionNewParams) { p.Messages[0] = openai.UserMessage(long) }), 400, "context_length_exceeded", "1024", itoa(tokens))
	refusal(t, chat(func(p *openai.ChatCompletionNewParams) { p.Temperature = openai.Float(3) }), 400, "temperature", "0 to 2")
	refusal(t, chat(func(p *openai.ChatCompletionNewParams) { p.Messages = p.Messages[:0] }), 400, "messages")
	refusal(t, chat(func(p *openai.ChatCompletionNewParams) {
		p.ResponseFormat = openai.ChatCompletionNewParamsResponseFormatUnion{OfJSONSchema: &shared.ResponseFormatJSONSchemaParam{
			JSONSchema: shared.ResponseFormatJSONSchemaJSONSchemaParam{Name: "a", Schema: map[string]any{"type": "text"}},
		}}
	}), 400, "response_format.json_schema.schema", "text")
	refusal(t, chat(same, option.WithJSONSet("wings", 2)), 400, "wings")
	refusal(t, chat(same, option.WithJSONSet("logit_bias", map[string]int{"100000": 1})), 400, "logit_bias", "100000")
	refusal(t, chat(same, option.WithJSONSet("seed", "seven")), 400, "seed")
	// For a stream too, an error before the first event is an HTTP status.
	stream := c.Chat.Completions.NewStreaming(t.Context(), asked(long, 5))
	for stream.Next() {
	}
	refusal(t, stream.Err(), 400, "context_length_exceeded", "1024")
	if err := c.Get(t.Context(), "nowhere", nil, nil); err == nil {
		t.Error("there is something at an address that is none")
	} else {
		refusal(t, err, 404, "not_found")
	}
}

// TestFullQueue checks that a request for which the queue has no room is refused with a
// Retry-After, and that the client then repeats it.
func TestFullQueue(t *testing.T) {
	s := serve(t, "--parallel", "1", "--max-queue", "0")
	held := s.client().Chat.Completions.NewStreaming(t.Context(), asked(question, 900))
	defer held.Close()
	if !held.Next() {
		t.Fatal(held.Err())
	}
	var refused, answered int
	for range 3 {
		_, err := s.client().Chat.Completions.New(t.Context(), asked("Hello!", 1))
		var e *openai.Error
		switch {
		case err == nil: // the first answer has ended
			answered++
		case errors.As(err, &e) && e.StatusCode == 429 && e.Response.Header.Get("Retry-After") != "":
			refused++
		default:
			t.Errorf("got %v, want an answer or a refusal that says when to come back", err)
		}
	}
	if refused+answered != 3 {
		t.Errorf("%d refused, %d answered", refused, answered)
	}
	for held.Next() {
	}
	if err := held.Err(); err != nil {
		t.Error(err)
	}
	if _, err := s.client(option.WithMaxRetries(5)).Chat.Completions.New(t.Context(), asked("Hello!", 1)); err != nil {
		t.Error(err)
	}
}
