package realizar_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	"go.uber.org/goleak"

	"github.com/realizar/realizar"
	"github.com/realizar/realizar/chat"
	"github.com/realizar/realizar/internal/modeltest"
	"github.com/realizar/realizar/tokenizer"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// open opens a small model.
func open(t testing.TB, o realizar.Options, options ...modeltest.Option) *realizar.Model {
	t.Helper()
	m, err := realizar.Open(t.Context(), modeltest.Llama(t, options...), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	})
	return m
}

// An answer has the joined events of an answer.
type answer struct {
	text   string
	pieces []string
	tokens []int32
	finish *realizar.Finish

	logProbs []realizar.TokenLogProb

	reasoning string
	calls     []chat.ToolCall
}

// add adds an event.
func (a *answer) add(e realizar.Event) {
	a.text += e.Text
	a.pieces = append(a.pieces, e.Text)
	a.tokens = append(a.tokens, e.Tokens...)
	a.logProbs = append(a.logProbs, e.LogProbs...)
	a.finish = e.Finish
	a.reasoning += e.Reasoning
	for _, part := range e.ToolCalls {
		switch {
		case part.Broken:
			a.calls = a.calls[:len(a.calls)-1]
			continue
		case part.Name != "":
			a.calls = append(a.calls, chat.ToolCall{ID: part.ID, Name: part.Name})
		}
		last := &a.calls[len(a.calls)-1]
		last.Arguments = append(last.Arguments, part.Arguments...)
	}
}

func collect(events func(func(realizar.Event, error) bool)) (a answer, err error) {
	for e, err := range events {
		if err != nil {
			return a, err
		}
		if a.finish != nil {
			return a, errors.New("an event after the last")
		}
		a.add(e)
	}
	if a.finish == nil {
		return a, errors.New("the events ended without a last one")
	}
	return a, nil
}

func generate(t testing.TB, m *realizar.Model, r realizar.Request) answer {
	t.Helper()
	a, err := collect(m.Generate(t.Context(), &r))
	if err != nil {
		t.Fatal(err)
	}
	if a.finish.Usage.CompletionTokens != len(a.tokens) {
		t.Errorf("%d completion tokens are counted, %d were given", a.finish.Usage.CompletionTokens, len(a.tokens))
	}
	return a
}

func limit(n int) realizar.Generation { return realizar.Generation{MaxTokens: new(n)} }

func TestMaxTokens(t *testing.T) {
	m := open(t, realizar.Options{})
	whole := generate(t, m, realizar.Request{Prompt: "hello", Generation: limit(20)})
	for _, n := range []int{0, 1, 2, 20} {
		a := generate(t, m, realizar.Request{Prompt: "hello", Generation: limit(n)})
		if len(a.tokens) != n || !slices.Equal(a.tokens, whole.tokens[:n]) || a.finish.Reason != realizar.FinishLength {
			t.Errorf("at most %d tokens: %d, %q", n, len(a.tokens), a.finish.Reason)
		}
		if a.finish.Usage.PromptTokens == 0 {
			t.Errorf("at most %d tokens: the prompt is not counted", n)
		}
	}
	if _, err := collect(m.Generate(t.Context(), &realizar.Request{Prompt: "hello", Generation: limit(-1)})); !errors.Is(err, realizar.ErrRequest) {
		t.Errorf("-1 tokens: %v", err)
	}
}

func TestEndTokens(t *testing.T) {
	plain := open(t, realizar.Options{})
	free := realizar.Generation{MaxTokens: new(6), IgnoreEnd: true}
	want := generate(t, plain, realizar.Request{Prompt: "hello", Generation: free}).tokens
	third := slices.Index(want, want[2])
	for name, option := range map[string]modeltest.Option{
		"eos": modeltest.Metadata("tokenizer.ggml.eos_token_id", uint32(want[0])),
		"eot": modeltest.Metadata("tokenizer.ggml.eot_token_id", uint32(want[0])),
		"eom": modeltest.Metadata("tokenizer.ggml.eom_token_id", uint32(want[0])),
	} {
		m := open(t, realizar.Options{}, option)
		a := generate(t, m, realizar.Request{Prompt: "hello", Generation: limit(6)})
		if a.text != "" || len(a.tokens) != 1 || a.finish.Reason != realizar.FinishStop {
			t.Errorf("an end token (%s) first of all: %q, %v, %q", name, a.text, a.tokens, a.finish.Reason)
		}
		if a := generate(t, m, realizar.Request{Prompt: "hello", Generation: free}); !slices.Equal(a.tokens, want) {
			t.Errorf("end tokens (%s) ignored: %v, want %v", name, a.tokens, want)
		}
	}
	g := limit(6)
	g.StopTokens = []int32{want[2], 3}
	if a := generate(t, plain, realizar.Request{Prompt: "hello", Generation: g}); !slices.Equal(a.tokens, want[:third+1]) || a.finish.Reason != realizar.FinishStop {
		t.Errorf("a stop token: %v of %v", a.tokens, want)
	}
}

// generation_config.json may name one end token or several; each ends an answer.
func TestSeveralEndTokensOfAFolder(t *testing.T) {
	dir := modeltest.Hub(t)
	answerOf := func(ignore bool) answer {
		m, err := realizar.Open(t.Context(), dir, realizar.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = m.Close() }()
		return generate(t, m, realizar.Request{Prompt: "hello", Generation: realizar.Generation{MaxTokens: new(8), IgnoreEnd: ignore}})
	}
	free := answerOf(true).tokens
	for _, at := range []int{0, 3} {
		for _, ids := range []string{"%d", "[%d]", "[0, %d]", "[%d, 0]"} {
			config := fmt.Sprintf(`{"eos_token_id": `+ids+`}`, free[at])
			if err := os.WriteFile(filepath.Join(dir, "generation_config.json"), []byte(config), 0o644); err != nil {
				t.Fatal(err)
			}
			first := slices.IndexFunc(free, func(id int32) bool { return id == free[at] || id == 0 && len(ids) > 4 })
			if a := answerOf(false); !slices.Equal(a.tokens, free[:first+1]) || a.finish.Reason != realizar.FinishStop {
				t.Errorf("%s: %v of %v, %q", config, a.tokens, free, a.finish.Reason)
			}
		}
	}
}

// An end token outside the vocabulary is a stray end.
func TestStrayEnds(t *testing.T) {
	m := open(t, realizar.Options{}, modeltest.EndTokens(), modeltest.Metadata("tokenizer.ggml.eom_token_id", uint32(1<<20)))
	if got := m.StrayEnds(); !slices.Equal(got, []int32{1 << 20}) {
		t.Errorf("put aside are %v", got)
	}
}

// Recommended sampling is read from GGUF metadata and generation_config.json.
func TestDefaultSampling(t *testing.T) {
	dir := modeltest.Hub(t)
	for config, want := range map[string]*realizar.Sampling{
		`{"temperature": 0.7, "top_k": 20}`:                                            nil, // do_sample is false by default
		`{"do_sample": false, "temperature": 0.7}`:                                     {},
		`{"do_sample": false, "repetition_penalty": 1.05}`:                             {RepetitionPenalty: 1.05},
		`{"do_sample": true, "top_p": 0.8, "typical_p": 0.5, "repetition_penalty": 1}`: {Temperature: 1, TopP: 0.8, Typical: 0.5, RepetitionPenalty: 1},
	} {
		if err := os.WriteFile(filepath.Join(dir, "generation_config.json"), []byte(config), 0o644); err != nil {
			t.Fatal(err)
		}
		m, err := realizar.Open(t.Context(), dir, realizar.Options{})
		if err != nil {
			t.Fatal(err)
		}
		got, said := m.DefaultSampling()
		if said != (want != nil) || said && got != *want {
			t.Errorf("%s: %+v, %v, want %+v", config, got, said, want)
		}
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	}
}

// Recommended sampling with an invalid value is an error that names it.
func TestDefaultSamplingOutOfRange(t *testing.T) {
	dir := modeltest.Hub(t)
	refused := func(path, key string, value any) {
		t.Helper()
		m, err := realizar.Open(t.Context(), path, realizar.Options{})
		if err == nil {
			_ = m.Close()
		}
		if says := fmt.Sprintf("%s is %v", key, value); !errors.Is(err, realizar.ErrConfig) || !strings.Contains(fmt.Sprint(err), says) {
			t.Errorf("%s of %v: %v", key, value, err)
		}
		d, err := realizar.Describe(path)
		if err != nil || d.Sampling != nil || !strings.Contains(d.Problem, key) {
			t.Errorf("%s of %v: described as %+v, problem %q (%v)", key, value, d.Sampling, d.Problem, err)
		}
	}
	for text, value := range map[string]float64{"NaN": math.NaN(), "Infinity": math.Inf(1), "-Infinity": math.Inf(-1), "-0.5": -0.5, "1e7": 1e7} {
		for _, key := range []string{"temperature", "top_p", "min_p", "typical_p", "repetition_penalty"} {
			config := fmt.Sprintf(`{"do_sample": true, %q: %s}`, key, text)
			if err := os.WriteFile(filepath.Join(dir, "generation_config.json"), []byte(config), 0o644); err != nil {
				t.Fatal(err)
			}
			refused(dir, key, value)
		}
		for _, key := range []string{"general.sampling.temp", "general.sampling.top_p", "general.sampling.min_p"} {
			refused(modeltest.Llama(t, modeltest.Metadata(key, float32(value))), key, value)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "generation_config.json"), []byte(`{"do_sample": true, "top_k": -1, "top_p": 1.0}`), 0o644); err != nil {
		t.Fatal(err)
	}
	m, err := realizar.Open(t.Context(), dir, realizar.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if got, ok := m.DefaultSampling(); !ok || got != (realizar.Sampling{Temperature: 1, TopP: 1}) {
		t.Errorf("all tokens: %+v, %v", got, ok)
	}
	if err := m.Close(); err != nil {
		t.Error(err)
	}
}

// A configuration file that cannot be read is an error, not a model without end tokens.
func TestBrokenFilesBesideTheWeights(t *testing.T) {
	for name, is := range map[string]error{"generation_config.json": realizar.ErrConfig, "config.json": nil} {
		dir := modeltest.Hub(t)
		if err := os.WriteFile(filepath.Join(dir, name), []byte(`{"eos_token_id": [1,`), 0o644); err != nil {
			t.Fatal(err)
		}
		if m, err := realizar.Open(t.Context(), dir, realizar.Options{}); err == nil || is != nil && !errors.Is(err, is) || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
			if m != nil {
				_ = m.Close()
			}
		}
	}
	dir := modeltest.Hub(t)
	if err := os.WriteFile(filepath.Join(dir, "tokenizer_config.json"), []byte(`{`), 0o644); err != nil {
		t.Fatal(err)
	}
	m, err := realizar.Open(t.Context(), dir, realizar.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = m.Close() }()
	if _, err := m.ChatTemplate(); !errors.Is(err, realizar.ErrNoTemplate) || !strings.Contains(err.Error(), "tokenizer_config.json") {
		t.Errorf("tokenizer_config.json: %v", err)
	}
}

func TestContextIsExact(t *testing.T) {
	m := open(t, realizar.Options{Context: 24})
	prompt := make([]int32, 24)
	a := generate(t, m, realizar.Request{PromptTokens: prompt, Generation: realizar.Generation{IgnoreEnd: true}})
	if len(a.tokens) != 1 || a.finish.Reason != realizar.FinishLength {
		t.Errorf("a prompt of exactly the context: %d tokens, %q", len(a.tokens), a.finish.Reason)
	}
	a = generate(t, m, realizar.Request{PromptTokens: prompt[:20], Generation: realizar.Generation{IgnoreEnd: true}})
	if len(a.tokens) != 5 {
		t.Errorf("a prompt of 4 less than the context: %d tokens, want 5", len(a.tokens))
	}
	_, err := collect(m.Generate(t.Context(), &realizar.Request{PromptTokens: append(prompt, 1)}))
	var numbers *realizar.ContextError
	if !errors.Is(err, realizar.ErrContext) || !errors.As(err, &numbers) || numbers.Prompt != 25 || numbers.Context != 24 {
		t.Errorf("a prompt of one more than the context: %v", err)
	}
	for _, part := range []string{"25", "24"} {
		if !strings.Contains(fmt.Sprint(err), part) {
			t.Errorf("error %q does not say %s", err, part)
		}
	}
	if err := m.Logits(t.Context(), append(prompt, 1), 0, nil); !errors.Is(err, realizar.ErrContext) {
		t.Errorf("logits of one more than the context: %v", err)
	}
}

func TestEmptyPrompt(t *testing.T) {
	m := open(t, realizar.Options{})
	if _, err := collect(m.Generate(t.Context(), &realizar.Request{})); !errors.Is(err, realizar.ErrRequest) || !strings.Contains(err.Error(), "empty") {
		t.Errorf("an empty prompt: %v", err)
	}
	m = open(t, realizar.Options{}, modeltest.AddBOS())
	if a := generate(t, m, realizar.Request{Generation: limit(3)}); a.finish.Usage.PromptTokens != 1 {
		t.Errorf("an empty prompt with a beginning token: %d tokens", a.finish.Usage.PromptTokens)
	}
}

func TestTokensOutsideTheVocabulary(t *testing.T) {
	m := open(t, realizar.Options{})
	for _, id := range []int32{-1, int32(m.Vocab()), 1 << 30} {
		for what, r := range map[string]realizar.Request{
			"prompt": {PromptTokens: []int32{1, id}},
			"stop":   {Prompt: "hello", Generation: realizar.Generation{StopTokens: []int32{id}}},
		} {
			_, err := collect(m.Generate(t.Context(), &r))
			if !errors.Is(err, realizar.ErrRequest) || !strings.Contains(err.Error(), fmt.Sprint(id)) {
				t.Errorf("%s token %d: %v", what, id, err)
			}
		}
	}
}

// special returns the ids of a model's special tokens.
func special(t *testing.T, m *realizar.Model) map[int32]string {
	t.Helper()
	tok, err := m.Tokenizer()
	if err != nil {
		t.Fatal(err)
	}
	ids := map[int32]string{}
	for i := range tok.VocabSize() {
		if tok.IsSpecial(int32(i)) {
			ids[int32(i)], _ = tok.Token(int32(i))
		}
	}
	if len(ids) < 3 {
		t.Fatalf("only %d special tokens to test with", len(ids))
	}
	return ids
}

// A BOS token comes once, whether the template, the caller or the tokenizer adds it.
func TestBeginningTokenOnce(t *testing.T) {
	const begins = "<|endoftext|>" + modeltest.ChatTemplate
	messages := []chat.Message{{Role: "user", Content: "hello"}}
	ask := func(options ...modeltest.Option) answer {
		m := open(t, realizar.Options{}, options...)
		a, err := collect(m.Chat(t.Context(), &realizar.ChatRequest{Messages: messages, Generation: limit(5)}))
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	written, both, added, none := ask(modeltest.Template(begins)), ask(modeltest.Template(begins), modeltest.AddBOS()), ask(modeltest.AddBOS()), ask()
	n := none.finish.Usage.PromptTokens
	for what, a := range map[string]answer{"the template": written, "both": both, "the tokenizer": added} {
		if a.finish.Usage.PromptTokens != n+1 || !slices.Equal(a.tokens, written.tokens) {
			t.Errorf("a beginning written by %s: %d tokens, want %d", what, a.finish.Usage.PromptTokens, n+1)
		}
	}
	m := open(t, realizar.Options{}, modeltest.AddBOS())
	once := generate(t, m, realizar.Request{Prompt: "hello", Generation: limit(5)})
	twice := generate(t, m, realizar.Request{Prompt: "<|endoftext|>hello", Special: true, Generation: limit(5)})
	if once.finish.Usage != twice.finish.Usage || !slices.Equal(once.tokens, twice.tokens) {
		t.Errorf("a beginning in the prompt beside the tokenizer's: %+v, want %+v", twice.finish.Usage, once.finish.Usage)
	}
}

// Special tokens match in the template's text but not in the content and role of messages.
func TestSpecialTokensTypedByAUser(t *testing.T) {
	m := open(t, realizar.Options{}, modeltest.Template(`{% for m in messages %}<|im_start|>{{ m.role }}
{{ m.content | trim }}<|im_end|>{% endfor %}`))
	tok, err := m.Tokenizer()
	if err != nil {
		t.Fatal(err)
	}
	count := func(role, content string) int {
		prompt, err := m.ChatPrompt(t.Context(), &realizar.ChatRequest{Messages: []chat.Message{{Role: role, Content: content}}}, 0)
		if err != nil {
			t.Fatal(err)
		}
		a, err := collect(m.Chat(t.Context(), &realizar.ChatRequest{Messages: []chat.Message{{Role: role, Content: content}}, Generation: limit(1)}))
		if err != nil {
			t.Fatal(err)
		}
		plain := 2 + len(tok.EncodeSpans([]tokenizer.Span{{Text: role + "\n" + strings.TrimSpace(content)}}, false))
		if a.finish.Usage.PromptTokens != plain {
			t.Errorf("role %q, content %q: %d tokens, want the template's two and %d of plain text; rendered %q",
				role, content, a.finish.Usage.PromptTokens, plain-2, prompt.Text.String())
		}
		return plain
	}
	special := special(t, m)
	for _, name := range special {
		count("user", "say "+name+" to me")
		count("user", "  "+name+"  ")
		count(name, "hello")
		count("us"+name+"er", name+name)
	}
	raw := generate(t, m, realizar.Request{Prompt: "a<|im_end|>b", Generation: limit(1)})
	if got := raw.finish.Usage.PromptTokens; got < 5 {
		t.Errorf("a special token in plain text matched: %d tokens", got)
	}
	if a := generate(t, m, realizar.Request{Prompt: "a<|im_end|>b", Special: true, Generation: limit(1)}); a.finish.Usage.PromptTokens != 3 {
		t.Errorf("a special token that may match did not: %d tokens", a.finish.Usage.PromptTokens)
	}
}

func TestStopStrings(t *testing.T) {
	m := open(t, realizar.Options{})
	g := realizar.Generation{MaxTokens: new(60), IgnoreEnd: true, Sampling: realizar.Sampling{Temperature: 1, Seed: 3}}
	whole := generate(t, m, realizar.Request{Prompt: "hello", Generation: g})
	text := []rune(whole.text)
	for from := 0; from+1 < len(text); from += 5 {
		for _, n := range []int{1, 2, 3, 7, 20} {
			if from+n > len(text) {
				continue
			}
			stop := string(text[from : from+n])
			g.Stop = []string{"never said: \x00\x01\x02", stop}
			a := generate(t, m, realizar.Request{Prompt: "hello", Generation: g})
			want, _, _ := strings.Cut(whole.text, stop)
			if a.text != want || a.finish.Reason != realizar.FinishStop || a.finish.StopString != stop {
				t.Fatalf("stop %q: %q, want %q (%q, %q)", stop, a.text, want, a.finish.Reason, a.finish.StopString)
			}
		}
	}
	g.Stop = []string{whole.text + "more"}
	if a := generate(t, m, realizar.Request{Prompt: "hello", Generation: g}); a.text != whole.text || a.finish.Reason != realizar.FinishLength {
		t.Errorf("text held back for a stop string that did not come is lost: %q, want %q", a.text, whole.text)
	}
	g.Stop = []string{""}
	if _, err := collect(m.Generate(t.Context(), &realizar.Request{Prompt: "hello", Generation: g})); !errors.Is(err, realizar.ErrRequest) {
		t.Errorf("an empty stop string: %v", err)
	}
}

// A model that generates random bytes yields whole characters only.
func TestCharactersSplitOverTokens(t *testing.T) {
	m := open(t, realizar.Options{})
	tok, err := m.Tokenizer()
	if err != nil {
		t.Fatal(err)
	}
	for seed := range uint64(5) {
		a := generate(t, m, realizar.Request{Prompt: "é中😀", Generation: realizar.Generation{
			MaxTokens: new(80), IgnoreEnd: true, Sampling: realizar.Sampling{Temperature: 2, Seed: seed},
		}})
		if want := tok.Decode(a.tokens, true); a.text != want {
			t.Errorf("seed %d: %q, want %q", seed, a.text, want)
		}
		for _, piece := range a.pieces {
			if !utf8.ValidString(piece) {
				t.Errorf("seed %d: piece %q is no text", seed, piece)
			}
		}
	}
}

// The same request and seed give the same answer, alone or with other requests.
func TestManyGoroutines(t *testing.T) {
	m := open(t, realizar.Options{Parallel: 3})
	request := func(i int) realizar.Request {
		return realizar.Request{Prompt: strings.Repeat("hello ", 1+i%5), Generation: realizar.Generation{
			MaxTokens: new(10 + i%7), IgnoreEnd: true, Sampling: realizar.Sampling{Temperature: float32(i % 3), TopK: i % 4 * 10, Seed: uint64(i)},
		}}
	}
	var want [16]answer
	for i := range want {
		want[i] = generate(t, m, request(i))
	}
	var wg sync.WaitGroup
	for i := range want {
		wg.Go(func() {
			r := request(i)
			a, err := collect(m.Generate(t.Context(), &r))
			if err != nil {
				t.Error(err)
			} else if a.text != want[i].text || !slices.Equal(a.tokens, want[i].tokens) {
				t.Errorf("request %d answers differently beside others", i)
			}
		})
	}
	wg.Wait()
}

func TestLeaving(t *testing.T) {
	m := open(t, realizar.Options{Parallel: 1})
	r := realizar.Request{Prompt: "hello", Generation: realizar.Generation{IgnoreEnd: true}}
	for range 3 {
		for _, err := range m.Generate(t.Context(), &r) {
			if err != nil {
				t.Fatal(err)
			}
			break // otherwise the next request waits forever
		}
	}
	gone := errors.New("the client left")
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	events := 0
	for _, err := range m.Generate(ctx, &r) {
		if events++; events == 3 {
			cancel(gone)
		}
		if err != nil {
			if !errors.Is(err, gone) || events != 4 {
				t.Errorf("after %d events: %v", events, err)
			}
		}
	}
	if events != 4 {
		t.Errorf("%d events, want 3 and an error", events)
	}
	cancelled, stop := context.WithCancel(t.Context())
	stop()
	if _, err := collect(m.Generate(cancelled, &r)); !errors.Is(err, context.Canceled) {
		t.Errorf("a context that had ended: %v", err)
	}
	if _, err := realizar.Open(cancelled, modeltest.Llama(t), realizar.Options{}); !errors.Is(err, context.Canceled) {
		t.Errorf("opening under a context that had ended: %v", err)
	}
}

func TestClosed(t *testing.T) {
	m, err := realizar.Open(t.Context(), modeltest.Llama(t), realizar.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	}
	if _, err := collect(m.Generate(t.Context(), &realizar.Request{PromptTokens: []int32{1}})); !errors.Is(err, realizar.ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
}

// Close within the loop, or twice at a time, ends the answer with ErrClosed and returns when no
// step reads the weights.
func TestClosingAtWork(t *testing.T) {
	m, err := realizar.Open(t.Context(), modeltest.Llama(t), realizar.Options{Parallel: 1})
	if err != nil {
		t.Fatal(err)
	}
	endless := realizar.Request{Prompt: "hello", Generation: realizar.Generation{IgnoreEnd: true}}
	var last error
	for _, err := range m.Generate(t.Context(), &endless) {
		if last = err; err != nil {
			break
		}
		var wg sync.WaitGroup
		for range 3 {
			wg.Go(func() {
				if err := m.Close(); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Go(func() { // a queued request fails too
			if _, err := collect(m.Generate(t.Context(), &endless)); !errors.Is(err, realizar.ErrClosed) {
				t.Errorf("one that waited: %v", err)
			}
		})
		wg.Wait()
	}
	if !errors.Is(last, realizar.ErrClosed) {
		t.Errorf("the answer under way ended with %v", last)
	}
}

// A caller may modify its ids as soon as the call has returned, even while a step is running.
func TestIDsAreTheCallers(t *testing.T) {
	m := open(t, realizar.Options{})
	for range 20 {
		ids := make([]int32, 200)
		ctx, cancel := context.WithCancel(t.Context())
		go cancel()
		_, _ = collect(m.Generate(ctx, &realizar.Request{PromptTokens: ids}))
		for i := range ids {
			ids[i] = 1 << 30
		}
	}
}

func TestNotFinite(t *testing.T) {
	m := open(t, realizar.Options{}, modeltest.Overflow("blk.1.ffn_down.weight"))
	_, err := collect(m.Generate(t.Context(), &realizar.Request{Prompt: "hello"}))
	if !errors.Is(err, realizar.ErrNotFinite) || !strings.Contains(err.Error(), "layer 1") {
		t.Errorf("error %v", err)
	}
}

func TestOptions(t *testing.T) {
	path := modeltest.Llama(t, modeltest.Context(64))
	for _, o := range []realizar.Options{
		{Device: "tpu"}, {Threads: -1}, {Context: -1}, {Context: 65}, {Parallel: -1}, {Activations: 9},
		{Memory: -1}, {HostCache: -1}, {Cache: 9}, {Cache: realizar.CacheQ8}, // heads of 16
	} {
		if m, err := realizar.Open(t.Context(), path, o); !errors.Is(err, realizar.ErrOptions) {
			t.Errorf("%+v: %v", o, err)
			if m != nil {
				_ = m.Close()
			}
		}
	}
	if _, err := realizar.Open(t.Context(), path, realizar.Options{Context: 64, Parallel: 1 << 40}); !errors.Is(err, realizar.ErrMemory) {
		t.Errorf("a cache larger than any memory: %v", err)
	}
	for _, s := range []realizar.Sampling{{Temperature: -1}, {TopP: 2}, {MinP: -0.1}, {TopK: -1}} {
		m := open(t, realizar.Options{})
		if _, err := collect(m.Generate(t.Context(), &realizar.Request{Prompt: "hello", Generation: realizar.Generation{Sampling: s}})); !errors.Is(err, realizar.ErrRequest) {
			t.Errorf("%+v: %v", s, err)
		}
	}
}

// A folder and a GGUF file of the same model give the same answer.
func TestFormatsAgree(t *testing.T) {
	for name, options := range map[string][]modeltest.Option{
		"plain": nil, "biases": {modeltest.Biases()}, "head dimension": {modeltest.HeadDim(24)}, "tied": {modeltest.Tied()}, "beginning": {modeltest.AddBOS()},
	} {
		var answers [2]answer
		for i, path := range []string{modeltest.Llama(t, options...), modeltest.Hub(t, options...)} {
			m, err := realizar.Open(t.Context(), path, realizar.Options{Activations: realizar.ActivationsF32})
			if err != nil {
				t.Fatal(err)
			}
			answers[i], err = collect(m.Chat(t.Context(), &realizar.ChatRequest{Messages: []chat.Message{{Role: "user", Content: "hello"}}, Generation: limit(12)}))
			if err != nil {
				t.Fatal(err)
			}
			_ = m.Close()
		}
		if answers[0].text != answers[1].text || answers[0].finish.Usage != answers[1].finish.Usage {
			t.Errorf("%s: GGUF says %q, the folder %q", name, answers[0].text, answers[1].text)
		}
	}
}

func TestChatErrors(t *testing.T) {
	m := open(t, realizar.Options{}, modeltest.Template(""))
	ask := &realizar.ChatRequest{Messages: []chat.Message{{Role: "user", Content: "hello"}}}
	if _, err := collect(m.Chat(t.Context(), ask)); !errors.Is(err, realizar.ErrNoTemplate) {
		t.Errorf("no template: %v", err)
	}
	m = open(t, realizar.Options{}, modeltest.Template("{% if %}"))
	if _, err := collect(m.Chat(t.Context(), ask)); !errors.Is(err, realizar.ErrNoTemplate) || !errors.Is(err, chat.ErrTemplate) {
		t.Errorf("a broken template: %v", err)
	}
	m = open(t, realizar.Options{})
	if _, err := collect(m.Chat(t.Context(), &realizar.ChatRequest{Messages: []chat.Message{{Role: "owl", Content: "hu"}}})); !errors.Is(err, chat.ErrRefused) || !strings.Contains(err.Error(), "unknown role owl") {
		t.Errorf("a refusal: %v", err)
	}
}
