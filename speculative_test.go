package realizar_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/realizar/realizar"
	"github.com/realizar/realizar/internal/longtest"
	"github.com/realizar/realizar/internal/modeltest"
	"github.com/realizar/realizar/tensor"
)

// An answer has the same tokens, log-probabilities and end with proposals and without, whatever is
// asked for, alone and among others.
func TestSpeculativeAnswers(t *testing.T) {
	ends := modeltest.EndTokens()
	llama, mamba := modeltest.Llama(t, ends), modeltest.Mamba(t, false, ends)
	for _, test := range []struct {
		name, model, draft string
		tokens             []int
	}{
		{"demo/suffix", "demo/demo.gguf", "", []int{0, 5, realizar.MaxSpeculativeTokens}},
		{"demo/draft", "demo/demo.gguf", "demo/demo.gguf", []int{0, 5}},
		{"llama/suffix", llama, "", []int{0, 5, realizar.MaxSpeculativeTokens}},
		{"llama/draft", llama, modeltest.Llama(t, ends, modeltest.DType(tensor.Q8_0)), []int{0, 5, realizar.MaxSpeculativeTokens}},
		{"llama/another draft", llama, mamba, []int{3}}, // right by chance alone
		{"recurrent/another draft", mamba, llama, []int{3}},
		{"recurrent/recurrent draft", mamba, modeltest.Mamba(t, false, ends, modeltest.DType(tensor.BF16)), []int{4}},
		{"latent/mtp", modeltest.Llama(t, ends, modeltest.Predicting()), "", []int{0, 1, 5, realizar.MaxSpeculativeTokens}},
		{"llama/eagle", modeltest.Llama(t, ends, modeltest.LastToken()), modeltest.Eagle(t, ends, modeltest.LastToken()), []int{0, 1, 5, realizar.MaxSpeculativeTokens}},
		{"chunks/draft in chunks", modeltest.Mamba(t, true, ends), modeltest.Mamba(t, true, ends, modeltest.DType(tensor.BF16)), []int{5}},
	} {
		for _, tokens := range test.tokens {
			t.Run(fmt.Sprint(test.name, "/", tokens), func(t *testing.T) {
				// The cache has room for some of the answers only.
				o := realizar.Options{Device: "cpu", Parallel: 16, Context: 256, Speculative: realizar.SpeculativeSuffix, SpeculativeTokens: tokens, HostCache: 1 << 20}
				if strings.HasSuffix(test.name, "/mtp") {
					o.Speculative = realizar.SpeculativeMTP
				}
				if test.draft != "" {
					o.Speculative, o.Draft = realizar.SpeculativeDraft, test.draft
				}
				if strings.HasSuffix(test.name, "/eagle") {
					o.Speculative = realizar.SpeculativeEAGLE
				}
				m := sameAnswers(t, test.model, o)
				if wrong := strings.Contains(test.name, "another"); m.Proposals == 0 || m.AcceptedTokens == 0 && !wrong || m.AcceptedTokens == m.ProposedTokens {
					t.Errorf("of %d proposed tokens %d were right", m.ProposedTokens, m.AcceptedTokens)
				}
			})
		}
	}
}

// sameAnswers checks that a model answers with o as without speculation, and returns its metrics.
func sameAnswers(t *testing.T, model string, o realizar.Options) realizar.Metrics {
	var grammars []*realizar.Grammar
	for _, s := range schemas {
		g, err := realizar.JSONSchema([]byte(s), realizar.JSONOptions{})
		if err != nil {
			t.Fatal(err)
		}
		grammars = append(grammars, g)
	}
	m, err := realizar.Open(t.Context(), model, o)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	o.Speculative, o.Draft, o.SpeculativeTokens = realizar.SpeculativeOff, "", 0
	plain, err := realizar.Open(t.Context(), model, o)
	if err != nil {
		t.Fatal(err)
	}
	defer plain.Close()
	n := longtest.Cases(256, 128)
	for begin := 0; begin < n; begin += 64 {
		var all sync.WaitGroup
		for i := begin; i < begin+64; i++ {
			all.Go(func() {
				r := randomRequest(uint64(i), grammars)
				want, err := collect(plain.Generate(t.Context(), &r))
				got, gotErr := collect(m.Generate(t.Context(), &r))
				if (err == nil) != (gotErr == nil) || err != nil && err.Error() != gotErr.Error() {
					t.Errorf("request %d ends with %v, without proposals with %v", i, gotErr, err)
					return
				}
				if err != nil {
					return
				}
				for _, a := range []*answer{&want, &got} {
					a.finish.Timings, a.finish.Usage.CachedTokens = realizar.Timings{}, 0
				}
				if d := cmp.Diff(want, got, cmp.AllowUnexported(answer{})); d != "" {
					t.Errorf("request %d (-without proposals +with them): %s", i, d)
				}
			})
		}
		all.Wait()
	}
	if s := plain.Metrics(); s.Proposals > 0 {
		t.Errorf("%d proposals of a model that has none", s.Proposals)
	}
	return m.Metrics()
}

// randomRequest returns a request whose answer is likely to repeat parts of the prompt or itself.
func randomRequest(seed uint64, grammars []*realizar.Grammar) realizar.Request {
	rng := rand.New(rand.NewPCG(seed, 1))
	words := strings.Fields("the port of a server is 8080 and list words {\"name\": 12} again")
	var prompt []string
	for range 4 + rng.IntN(30) {
		prompt = append(prompt, words[rng.IntN(1+rng.IntN(len(words)))])
	}
	g := realizar.Generation{MaxTokens: new(1 + rng.IntN(60)), Priority: rng.IntN(2)}
	g.Seed = seed
	g.Temperature = []float32{0, 0, 0.7, 1.5}[rng.IntN(4)]
	switch rng.IntN(4) {
	case 0:
		g.TopP = 0.9
	case 1:
		g.MinP = 0.05
	case 2:
		g.TopK = 40
	}
	switch rng.IntN(5) {
	case 0:
		g.RepetitionPenalty = 1.1
	case 1:
		g.FrequencyPenalty, g.PresencePenalty = 0.3, 0.2
	}
	if rng.IntN(3) == 0 {
		g.Grammar = grammars[rng.IntN(len(grammars))]
	} else if rng.IntN(2) == 0 {
		g.IgnoreEnd = true
	}
	switch rng.IntN(4) {
	case 0:
		g.LogProbs = new(0)
	case 1:
		g.LogProbs = new(3)
	}
	if rng.IntN(4) == 0 {
		g.Stop = []string{words[rng.IntN(len(words))]}
	}
	if rng.IntN(4) == 0 {
		g.MinTokens = rng.IntN(*g.MaxTokens + 1)
	}
	if rng.IntN(5) == 0 {
		g.LogitBias = map[int32]float32{int32(rng.IntN(200)): 2, int32(200 + rng.IntN(50)): -3}
	}
	return realizar.Request{Prompt: strings.Join(prompt, " "), Generation: g}
}

// A draft model of other tokens, or for which memory has no room, is refused with what is wrong.
func TestDraftRefused(t *testing.T) {
	model := modeltest.Llama(t)
	for _, test := range []struct {
		what string
		o    realizar.Options
		is   error
		says []string
	}{
		{"other tokens", realizar.Options{Speculative: realizar.SpeculativeDraft, Draft: "demo/demo.gguf"}, realizar.ErrOptions, []string{"demo.gguf", "token ", "the same tokens"}},
		{"no file", realizar.Options{Speculative: realizar.SpeculativeDraft, Draft: "nowhere.gguf"}, os.ErrNotExist, []string{"draft model", "nowhere.gguf"}},
		{"no name", realizar.Options{Speculative: realizar.SpeculativeDraft}, realizar.ErrOptions, []string{"path"}},
		{"a name alone", realizar.Options{Draft: model}, realizar.ErrOptions, []string{"SpeculativeDraft"}},
		{"too little memory", realizar.Options{Speculative: realizar.SpeculativeDraft, Draft: model, Memory: 4096}, realizar.ErrMemory, []string{"the draft model does not fit", "4.0 KiB"}},
		{"too little memory beside it", realizar.Options{Speculative: realizar.SpeculativeDraft, Draft: "demo/demo.gguf", Memory: 25 << 20, Context: 1024, Parallel: 1}, realizar.ErrMemory, []string{"one answer of 1024 tokens", "MiB of the draft model"}},
	} {
		test.o.Device = "cpu"
		path := model
		if strings.HasSuffix(test.what, "beside it") {
			path = test.o.Draft
		}
		m, err := realizar.Open(t.Context(), path, test.o)
		if err == nil {
			t.Errorf("%s: no error", test.what)
			_ = m.Close()
			continue
		}
		for _, s := range test.says {
			if !errors.Is(err, test.is) || !strings.Contains(err.Error(), s) {
				t.Errorf("%s: %v; want %q, and %v", test.what, err, s, test.is)
			}
		}
	}
}

// The memory of a draft model is part of the plan, and what is planned as the least is enough.
func TestDraftMemory(t *testing.T) {
	model := modeltest.Llama(t)
	d, err := realizar.Describe(model)
	if err != nil {
		t.Fatal(err)
	}
	o := realizar.Options{Device: "cpu", Context: 256}
	alone, err := d.Memory(o)
	if err != nil {
		t.Fatal(err)
	}
	o.Speculative, o.Draft = realizar.SpeculativeDraft, model
	with, err := d.Memory(o)
	if err != nil {
		t.Fatal(err)
	}
	if with.Draft == 0 || alone.Draft > 0 || with.Total != alone.Total+with.Draft {
		t.Errorf("%d bytes beside a draft model of %d, %d alone", with.Total, with.Draft, alone.Total)
	}
	least, err := d.Least(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if o.Memory, o.Parallel = least.Bytes, 1; least.Bytes <= alone.Total-alone.Weights {
		t.Errorf("the least is %d bytes", least.Bytes)
	}
	m, err := realizar.Open(t.Context(), model, o)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	if m.Context() != 256 || m.HostMemory() > least.Bytes {
		t.Errorf("a context of %d in %d bytes of %d", m.Context(), m.HostMemory(), least.Bytes)
	}
}

// A model with a draft model closes while answers run.
func TestDraftClose(t *testing.T) {
	o := realizar.Options{Device: "cpu", Parallel: 4, Context: 256, Speculative: realizar.SpeculativeDraft, Draft: "demo/demo.gguf", SpeculativeTokens: 3}
	m, err := realizar.Open(t.Context(), "demo/demo.gguf", o)
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	begun := make(chan struct{}, 8)
	for i := range 8 {
		all.Go(func() {
			r := realizar.Request{Prompt: "Once upon a time"}
			r.Seed, r.Temperature, r.IgnoreEnd = uint64(i), 1, true
			for _, err := range m.Generate(t.Context(), &r) {
				if err != nil && !errors.Is(err, realizar.ErrClosed) {
					t.Error(err)
				}
				select {
				case begun <- struct{}{}:
				default:
				}
			}
		})
	}
	for range 8 {
		<-begun
	}
	if err := m.Close(); err != nil {
		t.Error(err)
	}
	all.Wait()
}

// A model without a layer for multi-token prediction is refused with the way out. The memory of one is
// part of the plan, and weights that are not asked for are not loaded.
func TestMultiTokenPrediction(t *testing.T) {
	for model, says := range map[string]string{
		modeltest.Llama(t):                     "not supported for ",
		modeltest.Llama(t, modeltest.Latent()): "blk.2.nextn.eh_proj.weight is missing",
	} {
		m, err := realizar.Open(t.Context(), model, realizar.Options{Device: "cpu", Speculative: realizar.SpeculativeMTP})
		if err == nil {
			_ = m.Close()
		}
		if err == nil || !strings.Contains(err.Error(), says) || !strings.Contains(err.Error(), "--speculative suffix") {
			t.Errorf("%v; want %q", err, says)
		}
	}
	d, err := realizar.Describe(modeltest.Llama(t, modeltest.Predicting(), modeltest.DType(tensor.Q8_0)))
	if err != nil {
		t.Fatal(err)
	}
	o := realizar.Options{Device: "cpu", Context: 256, Parallel: 2}
	without, err := d.Least(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	o.Speculative, o.SpeculativeTokens = realizar.SpeculativeMTP, 3
	with, err := d.Least(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	o.Memory = with.Bytes
	m, err := realizar.Open(t.Context(), d.Path, o)
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Close(); err != nil {
		t.Error(err)
	}
	if o.Memory = without.Bytes; with.Bytes <= without.Bytes {
		t.Errorf("%d bytes with the layer, %d without", with.Bytes, without.Bytes)
	}
	if m, err := realizar.Open(t.Context(), d.Path, o); !errors.Is(err, realizar.ErrMemory) {
		t.Errorf("in the memory of the model without the layer: %v", err)
		if err == nil {
			_ = m.Close()
		}
	}
}

// Without a path, the head is that in the model's folder. A model without one is refused with the way
// out.
func TestHeadOfModel(t *testing.T) {
	o := realizar.Options{Device: "cpu", Context: 64, Speculative: realizar.SpeculativeEAGLE}
	folder := t.TempDir()
	if err := os.CopyFS(folder, os.DirFS(modeltest.Hub(t))); err != nil {
		t.Fatal(err)
	}
	for _, model := range []string{folder, modeltest.Llama(t)} {
		m, err := realizar.Open(t.Context(), model, o)
		if err == nil {
			_ = m.Close()
		}
		if err == nil || !strings.Contains(err.Error(), model+"/eagle3") || !strings.Contains(err.Error(), "--speculative eagle=FOLDER") {
			t.Errorf("%v; want the missing head and the way out", err)
		}
	}
	if err := os.CopyFS(filepath.Join(folder, "eagle3"), os.DirFS(modeltest.Eagle(t))); err != nil {
		t.Fatal(err)
	}
	m, err := realizar.Open(t.Context(), folder, o)
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Close(); err != nil {
		t.Error(err)
	}
}
