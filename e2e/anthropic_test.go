package e2e_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"
	"github.com/anthropics/anthropic-sdk-go/packages/param"
)

// anthropic returns Anthropic's client for the server. It does not retry.
func (s *server) anthropic(options ...option.RequestOption) *anthropic.Client {
	c := anthropic.NewClient(append([]option.RequestOption{
		option.WithoutEnvironmentDefaults(), option.WithBaseURL(s.url), option.WithAPIKey(key), option.WithMaxRetries(0),
	}, options...)...)
	return &c
}

// messaged returns a conversation of one question, to be answered with the likeliest tokens.
func messaged(question string, tokens int64) anthropic.MessageNewParams {
	return anthropic.MessageNewParams{
		Model: modelName, MaxTokens: tokens, Temperature: anthropic.Float(0),
		Messages: []anthropic.MessageParam{anthropic.NewUserMessage(anthropic.NewTextBlock(question))},
	}
}

// accumulated returns the message that the client assembles from a stream, and the types of
// the events.
func accumulated(ctx context.Context, c *anthropic.Client, p anthropic.MessageNewParams) (m anthropic.Message, kinds []string, err error) {
	stream := c.Messages.NewStreaming(ctx, p)
	defer stream.Close()
	for stream.Next() {
		e := stream.Current()
		kinds = append(kinds, e.Type)
		if err := m.Accumulate(e); err != nil {
			return m, kinds, err
		}
	}
	return m, kinds, stream.Err()
}

func TestMessages(t *testing.T) {
	s := serve(t)
	want := run(t, question, "--max-tokens", "30")
	got, err := s.anthropic().Messages.New(t.Context(), messaged(question, 30))
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Content) != 1 || got.Content[0].Type != "text" || got.Content[0].Text != want.Text || got.StopReason != anthropic.StopReasonMaxTokens || got.Model != modelName || got.ID == "" {
		t.Errorf("the message is %s, want %q", got.RawJSON(), want.Text)
	}
	if u := got.Usage; u.InputTokens+u.CacheReadInputTokens != want.Usage.Prompt || u.OutputTokens != want.Usage.Answer || u.CacheCreationInputTokens != 0 {
		t.Errorf("usage %s, want %+v", u.RawJSON(), want.Usage)
	}
	streamed, kinds, err := accumulated(t.Context(), s.anthropic(), messaged(question, 30))
	if err != nil {
		t.Fatal(err)
	}
	if len(streamed.Content) != 1 || streamed.Content[0].Text != want.Text || streamed.StopReason != got.StopReason || streamed.Usage.OutputTokens != 30 || streamed.Usage.CacheReadInputTokens == 0 || streamed.Usage.InputTokens+streamed.Usage.CacheReadInputTokens != want.Usage.Prompt {
		t.Errorf("as a stream it is %s, want %q", streamed.RawJSON(), want.Text)
	}
	if len(kinds) < 8 || kinds[0] != "message_start" || kinds[len(kinds)-1] != "message_stop" || kinds[len(kinds)-2] != "message_delta" {
		t.Errorf("the events are %q", kinds)
	}
	// The client gives the beginning of the answer.
	begun := messaged(question, 12)
	begun.Messages = append(begun.Messages, anthropic.NewAssistantMessage(anthropic.NewTextBlock("Once upon a time")))
	whole, err := s.anthropic().Messages.New(t.Context(), begun)
	if err != nil || len(whole.Content) != 1 || whole.Usage.InputTokens+whole.Usage.CacheReadInputTokens <= want.Usage.Prompt || strings.HasPrefix(whole.Content[0].Text, "Once") {
		t.Errorf("an answer goes on with %s (%v)", whole.RawJSON(), err)
	}
	if streamed, _, err := accumulated(t.Context(), s.anthropic(), begun); err != nil || len(streamed.Content) != 1 || streamed.Content[0].Text != whole.Content[0].Text {
		t.Errorf("as a stream an answer goes on with %s, want %s (%v)", streamed.RawJSON(), whole.RawJSON(), err)
	}
	// A system prompt and earlier messages.
	p := messaged(question, 12)
	p.System = []anthropic.TextBlockParam{{Text: "Be brief.", CacheControl: anthropic.NewCacheControlEphemeralParam()}}
	p.Messages = append([]anthropic.MessageParam{anthropic.NewUserMessage(anthropic.NewTextBlock("Hello!")), streamed.ToParam()}, p.Messages...)
	longer, err := s.anthropic().Messages.New(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	count, err := s.anthropic().Messages.CountTokens(t.Context(), anthropic.MessageCountTokensParams{Model: modelName, Messages: p.Messages, System: anthropic.MessageCountTokensParamsSystemUnion{OfTextBlockArray: p.System}})
	if err != nil {
		t.Fatal(err)
	}
	if n := longer.Usage.InputTokens + longer.Usage.CacheReadInputTokens; count.InputTokens != n || n < want.Usage.Prompt+40 {
		t.Errorf("the prompt is counted as %d tokens, and ran as %d", count.InputTokens, n)
	}
	// The beta endpoint, with the key in the other header.
	beta, err := s.anthropic(option.WithHeaderDel("X-Api-Key"), option.WithHeader("Authorization", "Bearer "+key)).Beta.Messages.New(t.Context(), anthropic.BetaMessageNewParams{
		Model: modelName, MaxTokens: 30, Temperature: anthropic.Float(0), Betas: []anthropic.AnthropicBeta{"nothing-2030-01-01"},
		Messages: []anthropic.BetaMessageParam{anthropic.NewBetaUserMessage(anthropic.NewBetaTextBlock(question))},
	})
	if err != nil || beta.Content[0].Text != want.Text {
		t.Errorf("%v, %s", err, beta.RawJSON())
	}
}

func TestMessageStops(t *testing.T) {
	s := serve(t)
	text := run(t, question, "--max-tokens", "30").Text
	stop := strings.Fields(text)[8]
	before, _, _ := strings.Cut(text, stop)
	p := messaged(question, 30)
	p.StopSequences = []string{"no such text", stop}
	whole, err := s.anthropic().Messages.New(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	streamed, _, err := accumulated(t.Context(), s.anthropic(), p)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range []*anthropic.Message{whole, &streamed} {
		if m.Content[0].Text != before || m.StopReason != anthropic.StopReasonStopSequence || m.StopSequence != stop {
			t.Errorf("%s, want %q before %q", m.RawJSON(), before, stop)
		}
	}
}

// city is a tool that takes a city.
var city = anthropic.ToolUnionParam{OfTool: &anthropic.ToolParam{
	Name: "weather", Description: anthropic.String("Says what the weather is like."),
	InputSchema: anthropic.ToolInputSchemaParam{Properties: map[string]any{"city": map[string]any{"type": "string", "enum": []string{"Oslo", "Rome"}}}, Required: []string{"city"}, ExtraFields: map[string]any{"additionalProperties": false}},
}}

// TestMessageTools lets the model call a tool, gives it the result, and lets it answer.
func TestMessageTools(t *testing.T) {
	s := serveModel(t, demo)
	p := messaged("What is the weather like in Oslo?", 200)
	p.Tools = []anthropic.ToolUnionParam{city}
	p.ToolChoice = anthropic.ToolChoiceUnionParam{OfAny: &anthropic.ToolChoiceAnyParam{DisableParallelToolUse: anthropic.Bool(true)}}
	for turn := range 3 {
		m, _, err := accumulated(t.Context(), s.anthropic(), p)
		if err != nil {
			t.Fatal(err)
		}
		call := m.Content[len(m.Content)-1]
		var input struct{ City string }
		if err := json.Unmarshal(call.Input, &input); err != nil || m.StopReason != anthropic.StopReasonToolUse || call.Name != "weather" || input.City != "Oslo" && input.City != "Rome" {
			t.Fatalf("turn %d: %s (%v)", turn, m.RawJSON(), err)
		}
		if turn > 0 && m.Usage.CacheReadInputTokens == 0 {
			t.Errorf("turn %d: %s", turn, m.Usage.RawJSON())
		}
		p.Messages = append(p.Messages, m.ToParam(), anthropic.NewUserMessage(anthropic.NewToolResultBlock(call.ID, "rain", turn == 1)))
	}
	p.ToolChoice = anthropic.ToolChoiceUnionParam{OfNone: &anthropic.ToolChoiceNoneParam{}}
	m, err := s.anthropic().Messages.New(t.Context(), p)
	if err != nil || m.StopReason == anthropic.StopReasonToolUse || len(m.Content) > 0 && m.Content[0].Type != "text" {
		t.Errorf("%v, %s", err, m.RawJSON())
	}
}

// TestMessageToolLoop lets the model decide whether to call a tool.
func TestMessageToolLoop(t *testing.T) {
	s := serveDemo(t)
	p := messaged(weatherQuestion, 100)
	p.Model = demo
	p.Tools = []anthropic.ToolUnionParam{{OfTool: &anthropic.ToolParam{
		Name: "get_weather", Description: anthropic.String("The weather of a city."), Strict: anthropic.Bool(true),
		InputSchema: anthropic.ToolInputSchemaParam{Properties: map[string]any{"city": map[string]any{"type": "string"}}, Required: []string{"city"}, ExtraFields: map[string]any{"additionalProperties": false}},
	}}}
	m, _, err := accumulated(t.Context(), s.anthropic(), p)
	if err != nil || m.StopReason != anthropic.StopReasonToolUse || len(m.Content) == 0 {
		t.Fatalf("%v, %s", err, m.RawJSON())
	}
	call := m.Content[len(m.Content)-1]
	isParis(t, call.Name, string(call.Input))
	p.Messages = append(p.Messages, m.ToParam(), anthropic.NewUserMessage(anthropic.NewToolResultBlock(call.ID, `{"temperature": 21}`, false)))
	m, _, err = accumulated(t.Context(), s.anthropic(), p)
	if err != nil || m.StopReason != anthropic.StopReasonEndTurn || len(m.Content) != 1 || !strings.Contains(m.Content[0].Text, "21") || m.Usage.CacheReadInputTokens == 0 {
		t.Errorf("%v, %s", err, m.RawJSON())
	}
}

func TestMessageForm(t *testing.T) {
	s := serveModel(t, demo)
	p := messaged("Which city is it?", 100)
	p.OutputConfig.Format.Schema = map[string]any{"type": "object", "properties": map[string]any{"city": map[string]any{"enum": []string{"Oslo", "Rome"}}}, "required": []string{"city"}, "additionalProperties": false}
	m, err := s.anthropic().Messages.New(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	var got struct{ City string }
	if err := json.Unmarshal([]byte(m.Content[0].Text), &got); err != nil || got.City == "" {
		t.Errorf("%s: %v", m.RawJSON(), err)
	}
}

func TestMessageThinking(t *testing.T) {
	s := serveModel(t, thinker(t))
	p := messaged("Tell me a story.", 60)
	p.Thinking = anthropic.ThinkingConfigParamUnion{OfEnabled: &anthropic.ThinkingConfigEnabledParam{BudgetTokens: 12}}
	m, _, err := accumulated(t.Context(), s.anthropic(), p)
	if err != nil {
		t.Fatal(err)
	}
	if len(m.Content) != 2 || m.Content[0].Type != "thinking" || m.Content[0].Thinking == "" || m.Content[0].Signature == "" || m.Content[1].Text == "" || m.Usage.OutputTokensDetails.ThinkingTokens == 0 {
		t.Fatalf("%s", m.RawJSON())
	}
	count := func(messages ...anthropic.MessageParam) int64 {
		t.Helper()
		got, err := s.anthropic().Messages.CountTokens(t.Context(), anthropic.MessageCountTokensParams{Model: modelName, Messages: messages})
		if err != nil {
			t.Fatal(err)
		}
		return got.InputTokens
	}
	shown := count(append(p.Messages, m.ToParam())...)
	p.Thinking.OfEnabled.Display = anthropic.ThinkingConfigEnabledDisplayOmitted
	omitted, _, err := accumulated(t.Context(), s.anthropic(), p)
	if err != nil {
		t.Fatal(err)
	}
	if c := omitted.Content; len(c) != 2 || c[0].Thinking != "" || c[0].Signature == m.Content[0].Signature || c[1].Text != m.Content[1].Text {
		t.Errorf("%s", omitted.RawJSON())
	}
	if got := count(append(p.Messages, omitted.ToParam())...); got != shown {
		t.Errorf("with the thought %d tokens, with its signature %d", shown, got)
	}
	p.Thinking = anthropic.ThinkingConfigParamUnion{OfDisabled: &anthropic.ThinkingConfigDisabledParam{}}
	if m, err := s.anthropic().Messages.New(t.Context(), p); err != nil || len(m.Content) != 1 || m.Content[0].Type != "text" {
		t.Errorf("%v, %s", err, m.RawJSON())
	}
}

func TestMessageErrors(t *testing.T) {
	s := serve(t)
	fails := func(name string, p anthropic.MessageNewParams, status int, kind anthropic.ErrorType, says string, options ...option.RequestOption) {
		t.Helper()
		_, whole := s.anthropic().Messages.New(t.Context(), p, options...)
		stream := s.anthropic().Messages.NewStreaming(t.Context(), p, options...)
		for stream.Next() {
			t.Errorf("%s: an event %s", name, stream.Current().RawJSON())
		}
		for _, err := range []error{whole, stream.Err()} {
			var e *anthropic.Error
			if !errors.As(err, &e) {
				t.Errorf("%s: %v is no error of the API", name, err)
			} else if e.StatusCode != status || e.Type() != kind || e.RequestID == "" || !strings.Contains(e.RawJSON(), says) {
				t.Errorf("%s: status %d, type %q, request %q: %s", name, e.StatusCode, e.Type(), e.RequestID, e.RawJSON())
			}
		}
	}
	fails("a wrong key", messaged(question, 5), 401, "authentication_error", "API key", option.WithAPIKey("wrong"))
	p := messaged(question, 5)
	p.Model = "third"
	fails("another model", p, 404, "not_found_error", modelName)
	fails("a long prompt", messaged(strings.Repeat("word ", 2000), 5), 400, "invalid_request_error", "prompt is too long")
	p = messaged(question, 5)
	p.Temperature = anthropic.Float(3)
	fails("a temperature", p, 400, "invalid_request_error", "0 to 2")
	p = messaged(question, 5)
	p.Tools = []anthropic.ToolUnionParam{{OfWebSearchTool20250305: &anthropic.WebSearchTool20250305Param{}}}
	fails("a tool of the server", p, 400, "invalid_request_error", "web_search_20250305")
	p = messaged(question, 5)
	p.Messages[0].Content = append(p.Messages[0].Content, anthropic.NewImageBlockBase64("image/png", "AAAA"))
	fails("an image", p, 400, "invalid_request_error", `\"image\" is not supported`)
	fails("an unknown field", messaged(question, 5), 400, "invalid_request_error", "wings", option.WithJSONSet("wings", 2))
	p = messaged(question, 5)
	p.Messages = append(p.Messages, anthropic.NewAssistantMessage(anthropic.NewTextBlock("Once")))
	p.Thinking = anthropic.ThinkingConfigParamOfEnabled(1024)
	fails("a thought amid an answer", p, 400, "invalid_request_error", "role user")
	p = messaged(question, 5)
	p.Thinking = param.Override[anthropic.ThinkingConfigParamUnion](json.RawMessage(`{"type": "between_tools"}`))
	fails("thoughts between tools", p, 400, "invalid_request_error", "thinking.type")
}

// TestMessageCancel checks that a client that leaves a stream does not harm another stream.
func TestMessageCancel(t *testing.T) {
	s := serve(t, "--parallel", "2")
	want := run(t, question, "--max-tokens", "300").Text
	other := make(chan string)
	go func() {
		m, _, err := accumulated(t.Context(), s.anthropic(), messaged(question, 300))
		if err != nil || len(m.Content) != 1 {
			other <- "an error"
			return
		}
		other <- m.Content[0].Text
	}()
	for range 5 {
		stream := s.anthropic().Messages.NewStreaming(t.Context(), messaged(question+" Again.", 900))
		for i := 0; i < 4 && stream.Next(); i++ {
		}
		if err := stream.Close(); err != nil {
			t.Error(err)
		}
	}
	if got := <-other; got != want {
		t.Errorf("the other stream says %q, want %q", got, want)
	}
}
