package e2e_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/packages/param"
	"github.com/openai/openai-go/v3/shared"
)

const question = "Tell me a story."

// asked returns a chat of one question, to be answered with the likeliest tokens.
func asked(question string, tokens int64) openai.ChatCompletionNewParams {
	return openai.ChatCompletionNewParams{
		Model: modelName, Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage(question)},
		Temperature: openai.Float(0), MaxCompletionTokens: openai.Int(tokens),
	}
}

// gathered returns the answer that the client assembles from a stream, and the number of
// chunks.
func gathered(ctx context.Context, c *openai.Client, p openai.ChatCompletionNewParams) (*openai.ChatCompletion, int, error) {
	stream := c.Chat.Completions.NewStreaming(ctx, p)
	defer stream.Close()
	var all openai.ChatCompletionAccumulator
	chunks := 0
	for stream.Next() {
		chunks++
		if !all.AddChunk(stream.Current()) {
			return nil, chunks, errors.New("a chunk does not go with those before it")
		}
	}
	return &all.ChatCompletion, chunks, stream.Err()
}

func TestChat(t *testing.T) {
	s := serve(t)
	want := run(t, question, "--max-tokens", "30")
	got, err := s.client().Chat.Completions.New(t.Context(), asked(question, 30))
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Choices) != 1 || got.Choices[0].Message.Content != want.Text || got.Choices[0].FinishReason != want.FinishReason || got.Choices[0].Index != 0 {
		t.Errorf("choices %+v, want %q", got.Choices, want.Text)
	}
	if u := got.Usage; u.PromptTokens != want.Usage.Prompt || u.CompletionTokens != want.Usage.Answer || u.TotalTokens != want.Usage.Prompt+want.Usage.Answer {
		t.Errorf("usage %+v, want %+v", u, want.Usage)
	}
	if got.Model != modelName || got.Object != "chat.completion" || got.Choices[0].Message.Role != "assistant" || got.Created == 0 || got.ID == "" {
		t.Errorf("the answer is %s", got.RawJSON())
	}
	again, err := s.client().Chat.Completions.New(t.Context(), asked(question, 30))
	if err != nil {
		t.Fatal(err)
	}
	if again.ID == got.ID || again.Choices[0].Message.Content != want.Text || again.Usage.PromptTokensDetails.CachedTokens == 0 {
		t.Errorf("asked again it is %s", again.RawJSON())
	}
}

func TestConversation(t *testing.T) {
	s := serve(t)
	p := asked(question, 12)
	p.Messages = []openai.ChatCompletionMessageParamUnion{
		openai.SystemMessage("Be brief."), openai.UserMessage("Hello!"), openai.AssistantMessage("Hello to you."),
		openai.UserMessage([]openai.ChatCompletionContentPartUnionParam{openai.TextContentPart(question)}),
	}
	whole, err := s.client().Chat.Completions.New(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	alone, err := s.client().Chat.Completions.New(t.Context(), asked(question, 12))
	if err != nil {
		t.Fatal(err)
	}
	if whole.Usage.PromptTokens <= alone.Usage.PromptTokens+10 || whole.Choices[0].Message.Content == alone.Choices[0].Message.Content {
		t.Errorf("the messages before the last make no difference: %s and %s", whole.RawJSON(), alone.RawJSON())
	}
}

func TestChatStream(t *testing.T) {
	s := serve(t)
	want := run(t, question, "--max-tokens", "30")
	p := asked(question, 30)
	p.StreamOptions.IncludeUsage = openai.Bool(true)
	stream := s.client().Chat.Completions.NewStreaming(t.Context(), p)
	defer stream.Close()
	var text strings.Builder
	var last openai.ChatCompletionChunk
	reasons, pieces := []string{}, 0
	for first := true; stream.Next(); first = false {
		last = stream.Current()
		if first && (len(last.Choices) != 1 || last.Choices[0].Delta.Role != "assistant") {
			t.Errorf("the first chunk is %s", last.RawJSON())
		}
		for _, c := range last.Choices {
			if c.Delta.Content != "" {
				pieces++
			}
			text.WriteString(c.Delta.Content)
			if c.FinishReason != "" {
				reasons = append(reasons, c.FinishReason)
			}
		}
	}
	if err := stream.Err(); err != nil {
		t.Fatal(err)
	}
	if text.String() != want.Text || !slices.Equal(reasons, []string{want.FinishReason}) {
		t.Errorf("got %q, ended by %q, want %q", &text, reasons, want.Text)
	}
	if pieces < 2 {
		t.Errorf("the answer came in %d pieces", pieces)
	}
	if u := last.Usage; len(last.Choices) != 0 || u.PromptTokens != want.Usage.Prompt || u.CompletionTokens != want.Usage.Answer {
		t.Errorf("the last chunk is %s", last.RawJSON())
	}
}

func TestChoices(t *testing.T) {
	s := serve(t)
	p := asked(question, 15)
	p.N, p.Seed, p.Temperature = openai.Int(3), openai.Int(5), openai.Float(1)
	whole, err := s.client().Chat.Completions.New(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	texts := map[string]bool{}
	for i, c := range whole.Choices {
		texts[c.Message.Content] = true
		if c.Index != int64(i) || c.FinishReason != "length" {
			t.Errorf("choice %d is %s", i, c.RawJSON())
		}
	}
	if len(whole.Choices) != 3 || len(texts) != 3 || whole.Usage.CompletionTokens != 45 {
		t.Errorf("choices %s, want three that differ", whole.RawJSON())
	}
	streamed, _, err := gathered(t.Context(), s.client(), p)
	if err != nil {
		t.Fatal(err)
	}
	for i, c := range streamed.Choices {
		if c.Message.Content != whole.Choices[i].Message.Content {
			t.Errorf("choice %d as a stream is %q, and %q else", i, c.Message.Content, whole.Choices[i].Message.Content)
		}
	}
	if len(streamed.Choices) != 3 {
		t.Errorf("%d choices as streams", len(streamed.Choices))
	}
}

func TestLogProbs(t *testing.T) {
	s := serve(t)
	p := asked(question, 10)
	p.Logprobs, p.TopLogprobs = openai.Bool(true), openai.Int(4)
	whole, err := s.client().Chat.Completions.New(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	scores := whole.Choices[0].Logprobs.Content
	var bytes []byte
	for _, token := range scores {
		for _, b := range token.Bytes {
			bytes = append(bytes, byte(b))
		}
		if len(token.TopLogprobs) != 4 || token.TopLogprobs[0].Token != token.Token || token.TopLogprobs[0].Logprob != token.Logprob || !(token.Logprob < 0) {
			t.Errorf("the likeliest token is not the one taken: %s", token.RawJSON())
		}
		if !slices.IsSortedFunc(token.TopLogprobs, func(a, b openai.ChatCompletionTokenLogprobTopLogprob) int {
			switch {
			case a.Logprob > b.Logprob:
				return -1
			case a.Logprob < b.Logprob:
				return 1
			}
			return 0
		}) {
			t.Errorf("the likeliest are not in order: %s", token.RawJSON())
		}
	}
	if len(scores) != 10 || string(bytes) != whole.Choices[0].Message.Content {
		t.Errorf("%d tokens that say %q, want 10 that say %q", len(scores), bytes, whole.Choices[0].Message.Content)
	}
	streamed, _, err := gathered(t.Context(), s.client(), p)
	if err != nil {
		t.Fatal(err)
	}
	if got := streamed.Choices[0].Logprobs.Content; len(got) != 10 || got[9].Token != scores[9].Token || got[9].Logprob != scores[9].Logprob || got[9].TopLogprobs[3].Token != scores[9].TopLogprobs[3].Token {
		t.Errorf("as a stream the scores are %+v", got)
	}
}

func TestSeeds(t *testing.T) {
	s := serve(t)
	answer := func(seed param.Opt[int64]) string {
		p := asked(question, 20)
		p.Temperature, p.Seed = openai.Float(1), seed
		got, err := s.client().Chat.Completions.New(t.Context(), p)
		if err != nil {
			t.Fatal(err)
		}
		return got.Choices[0].Message.Content
	}
	seven := answer(openai.Int(7))
	if again := answer(openai.Int(7)); again != seven {
		t.Errorf("seed 7 answers %q, and then %q", seven, again)
	}
	if eight := answer(openai.Int(8)); eight == seven {
		t.Errorf("seeds 7 and 8 answer %q", seven)
	}
	none := param.Opt[int64]{}
	if a, b := answer(none), answer(none); a == b {
		t.Errorf("without a seed it answers %q twice", a)
	}
}

func TestStop(t *testing.T) {
	s := serve(t)
	words := strings.Fields(run(t, question, "--max-tokens", "30").Text)
	stop := words[8]
	before, _, _ := strings.Cut(run(t, question, "--max-tokens", "30").Text, stop)
	for name, union := range map[string]openai.ChatCompletionNewParamsStopUnion{
		"a string": {OfString: openai.String(stop)},
		"a list":   {OfStringArray: []string{"no such text", stop}},
	} {
		p := asked(question, 30)
		p.Stop = union
		whole, err := s.client().Chat.Completions.New(t.Context(), p)
		if err != nil {
			t.Fatal(err)
		}
		if c := whole.Choices[0]; c.Message.Content != before || c.FinishReason != "stop" {
			t.Errorf("%s: %q, ended by %s, want %q", name, c.Message.Content, c.FinishReason, before)
		}
		streamed, _, err := gathered(t.Context(), s.client(), p)
		if err != nil {
			t.Fatal(err)
		}
		if c := streamed.Choices[0]; c.Message.Content != before || c.FinishReason != "stop" {
			t.Errorf("%s as a stream: %q, ended by %s, want %q", name, c.Message.Content, c.FinishReason, before)
		}
	}
}

// TestBias checks the effect of a bias on the tokens.
func TestBias(t *testing.T) {
	s := serve(t)
	likeliest := run(t, question, "--max-tokens", "1").Tokens[0]
	bias := map[string]int64{}
	bias[itoa(likeliest)] = -100
	p := asked(question, 1)
	p.LogitBias = bias
	got, err := s.client().Chat.Completions.New(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	want := run(t, question, "--max-tokens", "1", "--logit-bias", itoa(likeliest)+"=-100")
	if text := got.Choices[0].Message.Content; text != want.Text || want.Tokens[0] == likeliest {
		t.Errorf("got %q, want %q", text, want.Text)
	}
}

// TestManyStreams checks that simultaneous streams have the text that each has alone.
func TestManyStreams(t *testing.T) {
	s := serve(t, "--parallel", "8")
	const streams = 48
	ask := func(i int) openai.ChatCompletionNewParams {
		return asked(strings.Repeat(question+" ", i%5+1)+itoa(int64(i)), 40)
	}
	want := make([]string, streams)
	for i := range want {
		got, err := s.client().Chat.Completions.New(t.Context(), ask(i))
		if err != nil {
			t.Fatal(err)
		}
		want[i] = got.Choices[0].Message.Content
	}
	type result struct {
		i    int
		text string
		err  error
	}
	results := make(chan result)
	for i := range streams {
		go func() {
			got, _, err := gathered(t.Context(), s.client(), ask(i))
			r := result{i: i, err: err}
			if err == nil {
				r.text = got.Choices[0].Message.Content
			}
			results <- r
		}()
	}
	for range streams {
		if r := <-results; r.err != nil || r.text != want[r.i] {
			t.Errorf("stream %d: %v, %q, want %q", r.i, r.err, r.text, want[r.i])
		}
	}
}

// TestCancellation checks that a client that leaves ends its own answer and no other.
func TestCancellation(t *testing.T) {
	s := serve(t, "--parallel", "2")
	other := make(chan error, 1)
	want := run(t, question, "--max-tokens", "400")
	go func() {
		got, _, err := gathered(t.Context(), s.client(), asked(question, 400))
		if err == nil && got.Choices[0].Message.Content != want.Text {
			err = errors.New("the other answer is " + got.Choices[0].Message.Content)
		}
		other <- err
	}()
	for range 5 {
		ctx, cancel := context.WithCancel(t.Context())
		p := asked(question+" Again.", 900)
		stream := s.client().Chat.Completions.NewStreaming(ctx, p)
		for range 3 {
			if !stream.Next() {
				t.Fatalf("the stream ended: %v", stream.Err())
			}
		}
		cancel()
		for stream.Next() {
		}
		if err := stream.Err(); !errors.Is(err, context.Canceled) {
			t.Errorf("a stream that was left ends with %v", err)
		}
		_ = stream.Close()
	}
	if err := <-other; err != nil {
		t.Error(err)
	}
	for s.metric("vllm:num_requests_running") > 0 { // at most until the time of the test is over
		if t.Context().Err() != nil {
			t.Fatal("answers that nobody reads go on")
		}
	}
	got, err := s.client().Chat.Completions.New(t.Context(), asked(question, 400))
	if err != nil || got.Choices[0].Message.Content != want.Text {
		t.Errorf("afterwards: %v, %v", err, got)
	}
}

// TestNoTools uses a model whose chat template does not support tools.
func TestNoTools(t *testing.T) {
	s := serve(t)
	p := asked(question, 5)
	p.Tools = []openai.ChatCompletionToolUnionParam{openai.ChatCompletionFunctionTool(shared.FunctionDefinitionParam{Name: "weather"})}
	for _, choice := range []string{"auto", "required"} {
		p.ToolChoice = openai.ChatCompletionToolChoiceOptionUnionParam{OfAuto: openai.String(choice)}
		_, err := s.client().Chat.Completions.New(t.Context(), p)
		refusal(t, err, 400, "tools", "template")
	}
	p.ToolChoice = openai.ChatCompletionToolChoiceOptionUnionParam{OfAuto: openai.String("none")}
	got, err := s.client().Chat.Completions.New(t.Context(), p)
	if want := run(t, question, "--max-tokens", "5"); err != nil || got.Choices[0].Message.Content != want.Text {
		t.Errorf("without a choice of them: %v, %v, want %q", err, got, want.Text)
	}
}
