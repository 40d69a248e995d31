package main_test

import (
	"encoding/json"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/realizar/realizar"
	"github.com/realizar/realizar/chat"
	"github.com/realizar/realizar/internal/modeltest"
)

// answer returns the library's answer to a request.
func answer(t *testing.T, model string, chatting bool, prompt string, g realizar.Generation) (text string, tokens []int32, finish *realizar.Finish) {
	t.Helper()
	m, err := realizar.Open(t.Context(), model, realizar.Options{Parallel: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = m.Close() }()
	events := m.Generate(t.Context(), &realizar.Request{Prompt: prompt, Special: true, Generation: g})
	if chatting {
		events = m.Chat(t.Context(), &realizar.ChatRequest{Messages: []chat.Message{{Role: "user", Content: prompt}}, Generation: g})
	}
	for e, err := range events {
		if err != nil {
			t.Fatal(err)
		}
		text += e.Text
		tokens = append(tokens, e.Tokens...)
		finish = e.Finish
	}
	return text, tokens, finish
}

func line(text string) string {
	if text == "" || strings.HasSuffix(text, "\n") {
		return text
	}
	return text + "\n"
}

func TestRun(t *testing.T) {
	for name, model := range map[string]string{"GGUF": modeltest.Llama(t), "hub": modeltest.Hub(t, modeltest.Window(24))} {
		t.Run(name, func(t *testing.T) {
			n := 20
			chatted, _, _ := answer(t, model, true, "hello world", realizar.Generation{MaxTokens: &n})
			raw, _, _ := answer(t, model, false, "hello world", realizar.Generation{MaxTokens: &n})
			both, _, _ := answer(t, model, true, "hello world\n\nother", realizar.Generation{MaxTokens: &n})
			if chatted == raw {
				t.Fatal("the chat template makes no difference")
			}
			for _, test := range []struct {
				name, stdin string
				args        []string
				want        string
			}{
				{"argument", "", []string{"hello world"}, chatted},
				{"argument and input", "other\n", []string{"hello world"}, both},
				{"input", "hello world", nil, chatted},
				{"input with a line feed", "hello world\n", nil, chatted},
				{"raw", "", []string{"hello world", "--raw"}, raw},
				{"raw input", "hello world", []string{"--raw"}, raw},
				{"one thread", "", []string{"hello world", "--threads", "1"}, chatted},
				{"device", "", []string{"hello world", "--device", "cpu", "--context", "128"}, chatted},
				{"greedy", "", []string{"hello world", "--temperature", "0"}, chatted},
			} {
				t.Run(test.name, func(t *testing.T) {
					args := append([]string{"run", model, "--max-tokens", "20"}, test.args...)
					if got := output(t, test.stdin, args...); got != line(test.want) {
						t.Errorf("wrote %q, want %q", got, line(test.want))
					}
				})
			}
		})
	}
}

func TestRunPromptIsExact(t *testing.T) {
	model := modeltest.Llama(t)
	n := 8
	want, _, _ := answer(t, model, false, "hello\n", realizar.Generation{MaxTokens: &n})
	if got := output(t, "hello\n", "run", model, "--raw", "--max-tokens", "8"); got != line(want) {
		t.Errorf("a raw prompt with a line feed gave %q, want %q", got, line(want))
	}
	special, _, _ := answer(t, model, false, "<|im_start|>user", realizar.Generation{MaxTokens: &n})
	if got := output(t, "", "run", model, "<|im_start|>user", "--raw", "--max-tokens", "8"); got != line(special) {
		t.Errorf("a raw prompt with a special token gave %q, want %q", got, line(special))
	}
}

func TestRunMaxTokens(t *testing.T) {
	model := modeltest.Llama(t)
	if got := output(t, "", "run", model, "hi", "--max-tokens", "0"); got != "" {
		t.Errorf("no tokens are %q", got)
	}
	one := 1
	want, _, _ := answer(t, model, true, "hi", realizar.Generation{MaxTokens: &one})
	if got := output(t, "", "run", model, "hi", "--max-tokens", "1"); got != line(want) {
		t.Errorf("one token is %q, want %q", got, line(want))
	}
}

// A jsonAnswer is the output of --json.
type jsonAnswer struct {
	Choice       *int    `json:"choice"`
	Text         string  `json:"text"`
	Tokens       []int32 `json:"tokens"`
	FinishReason string  `json:"finish_reason"`
	StopString   string  `json:"stop_string"`
	Usage        struct {
		Prompt     int  `json:"prompt_tokens"`
		Cached     *int `json:"cached_tokens"`
		Completion int  `json:"completion_tokens"`
	} `json:"usage"`
	Timings map[string]float64 `json:"timings"`
	Seed    uint64             `json:"seed"`
}

func runJSON(t *testing.T, args ...string) jsonAnswer {
	t.Helper()
	var a jsonAnswer
	out := output(t, "", append([]string{"run"}, append(args, "--json")...)...)
	if strings.Count(out, "\n") != 1 {
		t.Fatalf("--json wrote %q, want one line", out)
	}
	if err := json.Unmarshal([]byte(out), &a); err != nil {
		t.Fatal(err)
	}
	return a
}

func TestRunJSON(t *testing.T) {
	model := modeltest.Llama(t)
	n := 12
	text, tokens, finish := answer(t, model, true, "hi", realizar.Generation{MaxTokens: &n})
	got := runJSON(t, model, "hi", "--max-tokens", "12")
	if got.Text != text || !slices.Equal(got.Tokens, tokens) || got.FinishReason != string(finish.Reason) || got.StopString != "" {
		t.Errorf("got %+v, want %q, %v, %s", got, text, tokens, finish.Reason)
	}
	if got.Choice == nil || *got.Choice != 0 || got.Usage.Cached == nil || *got.Usage.Cached != 0 {
		t.Errorf("got %+v, want the choice 0 and no cached tokens", got)
	}
	if got.Usage.Prompt != finish.Usage.PromptTokens || got.Usage.Completion != finish.Usage.CompletionTokens {
		t.Errorf("usage is %+v, want %+v", got.Usage, finish.Usage)
	}
	for _, key := range []string{"queue_ms", "prefill_ms", "decode_ms", "prefill_tok_s", "decode_tok_s"} {
		if v, ok := got.Timings[key]; !ok || v < 0 {
			t.Errorf("timings are %v, without a %s of 0 or more", got.Timings, key)
		}
	}
	if none := runJSON(t, model, "hi", "--max-tokens", "0"); none.Tokens == nil || none.FinishReason != "length" {
		t.Errorf("no tokens are %+v, want an empty list and length", none)
	}
}

// TestRunSeveral checks that several answers are written one after the other, and that an answer
// does not depend on their number.
func TestRunSeveral(t *testing.T) {
	model := modeltest.Llama(t)
	args := []string{"run", model, "hi", "--max-tokens", "16", "--temperature", "1", "--seed", "3"}
	var answers []jsonAnswer
	for line := range strings.Lines(output(t, "", append(args, "--n", "3", "--json")...)) {
		var a jsonAnswer
		if err := json.Unmarshal([]byte(line), &a); err != nil {
			t.Fatal(err)
		}
		if a.Choice == nil || *a.Choice != len(answers) {
			t.Errorf("answer %d is %s", len(answers), line)
		}
		answers = append(answers, a)
	}
	if len(answers) != 3 || answers[0].Text == answers[1].Text || answers[1].Text == answers[2].Text {
		t.Fatalf("answers are %+v, want three different ones", answers)
	}
	if got := output(t, "", args...); got != line(answers[0].Text) {
		t.Errorf("one answer is %q, the first of three %q", got, answers[0].Text)
	}
	for _, parallel := range []string{"1", "2"} {
		want := "[1]\n" + line(answers[0].Text) + "\n[2]\n" + line(answers[1].Text)
		if got := output(t, "", append(args, "--n", "2", "--parallel", parallel)...); got != want {
			t.Errorf("two answers, %s at one time: %q, want %q", parallel, got, want)
		}
	}
	if got, want := output(t, "", "run", model, "hi", "--max-tokens", "0", "--n", "2"), "[1]\n\n[2]\n"; got != want {
		t.Errorf("two answers of no tokens are %q, want %q", got, want)
	}
	r := realizarRun(t, append(args, "--n", "3", "-v")...)
	if r.code != 0 || strings.Count(r.stderr, "\nanswer ") != 3 || strings.Count(r.stderr, "\nprompt ") != 1 {
		t.Errorf("--verbose said %q", r.stderr)
	}
}

// TestRunPenalties checks that the sampling flags have the effect of the library's fields.
func TestRunPenalties(t *testing.T) {
	model := modeltest.Llama(t)
	n := 30
	_, plain, _ := answer(t, model, true, "hi", realizar.Generation{MaxTokens: &n})
	for _, test := range []struct {
		args []string
		g    realizar.Generation
	}{
		{[]string{"--repetition-penalty", "1.5"}, realizar.Generation{Sampling: realizar.Sampling{RepetitionPenalty: 1.5}}},
		{[]string{"--presence-penalty", "0.25"}, realizar.Generation{Sampling: realizar.Sampling{PresencePenalty: 0.25}}},
		{[]string{"--frequency-penalty", "0.25"}, realizar.Generation{Sampling: realizar.Sampling{FrequencyPenalty: 0.25}}},
		{[]string{"--logit-bias", "7=50", "--logit-bias", "9=-inf"}, realizar.Generation{LogitBias: map[int32]float32{7: 50, 9: float32(math.Inf(-1))}}},
		{[]string{"--typical-p", "0.3", "--temperature", "2", "--seed", "1"}, realizar.Generation{Sampling: realizar.Sampling{Typical: 0.3, Temperature: 2, Seed: 1}}},
	} {
		test.g.MaxTokens = &n
		_, want, _ := answer(t, model, true, "hi", test.g)
		if slices.Equal(want, plain) {
			t.Errorf("%v changes nothing", test.args)
		}
		if got := runJSON(t, append([]string{model, "hi", "--max-tokens", "30"}, test.args...)...); !slices.Equal(got.Tokens, want) {
			t.Errorf("%v: %v, want %v", test.args, got.Tokens, want)
		}
	}
	end := modeltest.Llama(t, modeltest.Metadata("tokenizer.ggml.eos_token_id", uint32(plain[2])))
	if got := runJSON(t, end, "hi", "--max-tokens", "30", "--min-tokens", "8"); len(got.Tokens) < 8 {
		t.Errorf("at least 8 tokens are %v", got.Tokens)
	}
}

// TestRunMemory checks that the error of a cache that is too small says what would fit.
func TestRunMemory(t *testing.T) {
	model := modeltest.Llama(t, modeltest.Context(4096))
	fails(t, realizarRun(t, "run", model, "hi", "--memory", "10K"), 1, "one answer of 512 tokens takes", "10.0 KiB may be taken", "a memory of ")
	fails(t, realizarRun(t, "run", model, "hi", "--threads", "2", "--context", "4096", "--memory", "2M"), 1, "one answer of 4096 tokens", "2.0 MiB may be taken", "with a context of 2048", "a memory of ")
	fails(t, realizarRun(t, "run", model, "hi", "--kv-cache", "q8"), 2, "a q8 cache for heads of 16 values")
	want := output(t, "", "run", model, "hi", "--max-tokens", "8")
	for _, args := range [][]string{{"--memory", "64MiB"}, {"--kv-cache", "f16"}, {"--kv-host", "1MiB"}, {"--parallel", "5"}} {
		if got := output(t, "", append([]string{"run", model, "hi", "--max-tokens", "8"}, args...)...); got != want {
			t.Errorf("%v answers %q, want %q", args, got, want)
		}
	}
}

func TestRunStop(t *testing.T) {
	model := modeltest.Llama(t)
	whole := runJSON(t, model, "hi", "--max-tokens", "30").Text
	at := strings.IndexFunc(whole, func(r rune) bool { return r > ' ' && r < 127 && r != '"' })
	if at < 0 {
		t.Fatalf("the answer %q has no plain character", whole)
	}
	stop := whole[at : at+1]
	got := runJSON(t, model, "hi", "--max-tokens", "30", "--stop", "never, ever", "--stop", stop)
	if got.Text != whole[:at] || got.FinishReason != "stop" || got.StopString != stop {
		t.Errorf("got %+v, want %q, stopped by %q", got, whole[:at], stop)
	}
}

func TestRunSeed(t *testing.T) {
	model := modeltest.Llama(t)
	sample := func(more ...string) string {
		return output(t, "", append([]string{"run", model, "hi", "--max-tokens", "16", "--temperature", "1.5"}, more...)...)
	}
	if a, b := sample("--seed", "7"), sample("--seed", "7"); a != b {
		t.Errorf("one seed chose %q and %q", a, b)
	}
	if a, b := sample("--seed", "7"), sample("--seed", "8"); a == b {
		t.Errorf("two seeds chose %q", a)
	}
	r := realizarRun(t, "run", model, "hi", "--max-tokens", "16", "--temperature", "1.5", "--verbose")
	_, seed, ok := strings.Cut(strings.TrimSpace(r.stderr), "seed ")
	if !ok || r.code != 0 {
		t.Fatalf("--verbose: exit code %d, standard error %q, want a seed", r.code, r.stderr)
	}
	if got := sample("--seed", seed); got != r.stdout {
		t.Errorf("the seed %s that was shown chose %q, want %q", seed, got, r.stdout)
	}
}

func TestRunDefaultSampling(t *testing.T) {
	model := modeltest.Llama(t, modeltest.Metadata("general.sampling.temp", float32(1.25)), modeltest.Metadata("general.sampling.top_k", uint32(40)))
	r := realizarRun(t, "run", model, "hi", "--max-tokens", "4", "--top-p", "0.5", "--seed", "3", "-v")
	if want := "temperature 1.25, top-k 40, top-p 0.5, min-p 0, seed 3"; !strings.Contains(r.stderr, want) {
		t.Errorf("--verbose said %q, want %q", r.stderr, want)
	}
	r = realizarRun(t, "run", model, "hi", "--max-tokens", "4", "--temperature", "0", "-v")
	if !strings.Contains(r.stderr, "greedy") {
		t.Errorf("--verbose said %q, want greedy", r.stderr)
	}
}

func TestRunIdleFlags(t *testing.T) {
	r := realizarRun(t, "run", modeltest.Llama(t), "hi", "--max-tokens", "2", "--top-k", "5", "--seed", "1")
	if r.code != 0 || !strings.HasPrefix(r.stderr, "realizar: no effect at temperature 0, which takes the likeliest token: --top-k, --seed;") {
		t.Errorf("exit code %d, standard error %q", r.code, r.stderr)
	}
}

func TestRunWithoutTemplate(t *testing.T) {
	model := modeltest.Llama(t, modeltest.Template(""))
	n := 8
	want, _, _ := answer(t, model, false, "hello", realizar.Generation{MaxTokens: &n})
	r := realizarRun(t, "run", model, "hello", "--max-tokens", "8")
	if r.code != 0 || r.stdout != line(want) || !strings.Contains(r.stderr, "no chat template") {
		t.Errorf("got %+v, want %q and a note", r, line(want))
	}
	fails(t, realizarRun(t, "run", model, "hello", "--system", "be kind"), 2, "need a chat template, and the model has none")
	if got := output(t, "", "run", model, "hello", "--raw", "--max-tokens", "8"); got != line(want) {
		t.Errorf("--raw wrote %q, want %q", got, line(want))
	}
}

func TestRunBrokenTemplate(t *testing.T) {
	model := modeltest.Llama(t, modeltest.Template("{% for %}"))
	fails(t, realizarRun(t, "run", model, "hello"), 1, "template", "--raw")
	output(t, "", "run", model, "hello", "--raw", "--max-tokens", "1")
}

func TestRunSystem(t *testing.T) {
	model := modeltest.Llama(t)
	plain := runJSON(t, model, "hi", "--max-tokens", "1").Usage.Prompt
	system := runJSON(t, model, "hi", "--max-tokens", "1", "--system", "be kind").Usage.Prompt
	if system <= plain {
		t.Errorf("the prompt has %d tokens with instructions and %d without", system, plain)
	}
}

func TestRunRefused(t *testing.T) {
	model := modeltest.Llama(t, modeltest.Template(`{{ raise_exception('only on Sundays') }}`))
	fails(t, realizarRun(t, "run", model, "hi"), 1, "only on Sundays")
}

func TestRunContext(t *testing.T) {
	model := modeltest.Llama(t, modeltest.Context(64))
	fails(t, realizarRun(t, "run", model, strings.Repeat("x", 100), "--raw"), 1, "100 tokens", "64")
	fails(t, realizarRun(t, "run", model, "hi", "--context", "65"), 2, "65", "64")
	fails(t, realizarRun(t, "run", model, "xxxxx", "--raw", "--context", "4"), 1, "5 tokens", "the context 4")
	if got := runJSON(t, model, "hello", "--raw"); got.FinishReason == "length" && got.Usage.Prompt+got.Usage.Completion != 64+1 {
		t.Errorf("the answer ended after %d tokens of a context of 64", got.Usage.Prompt+got.Usage.Completion)
	}
}

func TestRunEmptyPrompt(t *testing.T) {
	fails(t, realizarRun(t, "run", modeltest.Llama(t), "", "--raw"), 1, "empty")
	begun := runJSON(t, modeltest.Llama(t, modeltest.AddBOS()), "", "--raw", "--max-tokens", "1")
	if begun.Usage.Prompt != 1 {
		t.Errorf("an empty prompt has %d tokens, want the one for the beginning", begun.Usage.Prompt)
	}
}

func TestRunNotFinite(t *testing.T) {
	model := modeltest.Llama(t, modeltest.Overflow("blk.1.ffn_down.weight"))
	fails(t, realizarRun(t, "run", model, "hi"), 1, "layer 1", "not finite")
}

func TestRunUnknownArchitecture(t *testing.T) {
	fails(t, realizarRun(t, "run", modeltest.Llama(t, modeltest.Architecture("abacus")), "hi"), 1, `"abacus"`, "the nearest known are")
}

// TestRunWithoutModel checks that the built-in model answers if none is named, with one line that
// says so.
func TestRunWithoutModel(t *testing.T) {
	r := realizarIn(t, "What is 12 + 30?", "run")
	if r.code != 0 || !strings.Contains(r.stdout, "42") {
		t.Errorf("exit code %d, %q", r.code, r.stdout)
	}
	if strings.Count(r.stderr, "\n") != 1 || !strings.Contains(r.stderr, "demo") || !strings.Contains(r.stderr, "realizar run MODEL") {
		t.Errorf("standard error %q, want one line that names the model and how to run another", r.stderr)
	}
	if r := realizarRun(t, "run", "demo", "What is 12 + 30?"); r.stderr != "" || !strings.Contains(r.stdout, "42") {
		t.Errorf("demo: %q, %q", r.stdout, r.stderr)
	}
	fails(t, realizarRun(t, "run", "What is 12 + 30?"), 1, "is neither a file nor the name of a model", `realizar run demo "What is 12 + 30?"`)
	fails(t, realizarRun(t, "run", "demo"), 2, "no prompt: standard input is empty", "realizar run --help")
}
