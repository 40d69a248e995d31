package realizar

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/realizar/realizar/chat"
	"github.com/realizar/realizar/internal/engine"
	"github.com/realizar/realizar/internal/modeltest"
	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/modelfile"
)

// An encoder pools embeddings by their mean, unless its files name another pooling.
func TestEmbedByEncoder(t *testing.T) {
	for name, test := range map[string]struct {
		files map[string]string
		want  Pooling // auto: an error
		says  string
	}{
		"nothing is said": {nil, PoolingMean, ""},
		"cls":             {map[string]string{"1_Pooling/config.json": `{"pooling_mode_cls_token": true, "pooling_mode_mean_tokens": false}`}, PoolingCLS, ""},
		"max":             {map[string]string{"1_Pooling/config.json": `{"pooling_mode_max_tokens": true}`}, PoolingMax, ""},
		"one word":        {map[string]string{"1_Pooling/config.json": `{"pooling_mode": "lasttoken"}`}, PoolingLast, ""},
		"its parts": {map[string]string{
			"modules.json": `[{"idx": 0, "path": "", "type": "sentence_transformers.models.Transformer"}, ` +
				`{"idx": 1, "path": "1_Pooling", "type": "sentence_transformers.models.Pooling"}, {"path": "2_Normalize", "type": "sentence_transformers.models.Normalize"}]`,
			"1_Pooling/config.json": `{"pooling_mode_cls_token": true}`,
		}, PoolingCLS, ""},
		"elsewhere":        {map[string]string{"modules.json": `[{"path": "pool", "type": "sentence_transformers.models.Pooling"}]`}, PoolingAuto, `"pool"`},
		"a layer more":     {map[string]string{"modules.json": `[{"path": "2_Dense", "type": "sentence_transformers.models.Dense"}]`}, PoolingAuto, `"Dense"`},
		"no list":          {map[string]string{"modules.json": `{`}, PoolingAuto, "modules.json"},
		"no known pooling": {map[string]string{"1_Pooling/config.json": `{"pooling_mode_weightedmean_tokens": true}`}, PoolingAuto, "weightedmean_tokens"},
	} {
		m := opened(t, modeltest.Encoder(t, modeltest.EncoderShape{Files: test.files}))
		prompt, err := m.Prompt(t.Context(), &Request{Prompt: "hello world"}, 0)
		if err != nil {
			t.Fatal(err)
		}
		inputs := []EmbedInput{{Text: "hello world"}}
		got, err := m.Embed(t.Context(), &EmbedRequest{Inputs: inputs, KeepLength: true})
		if test.want == PoolingAuto {
			if !errors.Is(err, ErrConfig) || !strings.Contains(err.Error(), test.says) {
				t.Errorf("%s: %v, want an error with %q", name, err, test.says)
			}
			if _, err := m.Embed(t.Context(), &EmbedRequest{Inputs: inputs, Pooling: PoolingMean}); err != nil {
				t.Errorf("%s: a pooling that is chosen: %v", name, err)
			}
			continue
		}
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		rows := hidden(t, m, prompt.Tokens)
		for d, v := range got[0].Vector {
			want := map[Pooling]float64{PoolingCLS: float64(rows[0][d]), PoolingLast: float64(rows[len(rows)-1][d]), PoolingMax: math.Inf(-1)}
			for _, row := range rows {
				want[PoolingMean] += float64(row[d]) / float64(len(rows))
				want[PoolingMax] = max(want[PoolingMax], float64(row[d]))
			}
			if math.Abs(float64(v)-want[test.want]) > 1e-6 {
				t.Fatalf("%s: value %d is %v, want %v of %v", name, d, v, want[test.want], test.want)
			}
		}
	}
}

// The pooled vectors of encoders agree with transformers.
func TestEmbedConformance(t *testing.T) {
	dir := filepath.Join("internal", "arch", "testdata", "encoders")
	for _, name := range []string{"bert", "bert-plain", "roberta", "modernbert"} {
		f, err := modelfile.Open(filepath.Join(dir, name, "expected.safetensors"))
		if err != nil {
			t.Fatal(err)
		}
		floats := func(name string) []float32 {
			x, _ := f.Tensor(name)
			v, err := x.Float32s()
			if err != nil {
				t.Fatal(err)
			}
			return v
		}
		in := EmbedInput{}
		for _, id := range floats("input_ids") {
			in.Tokens = append(in.Tokens, int32(id))
		}
		m := opened(t, filepath.Join(dir, name))
		for pooling, want := range map[Pooling][]float32{PoolingAuto: floats("mean"), PoolingCLS: floats("cls")} {
			got, err := m.Embed(t.Context(), &EmbedRequest{Inputs: []EmbedInput{in}, Pooling: pooling, KeepLength: true})
			if err != nil {
				t.Fatal(err)
			}
			for d, v := range got[0].Vector {
				if math.Abs(float64(v-want[d])) > 1e-4*max(1, math.Abs(float64(want[d]))) {
					t.Fatalf("%s, %v: value %d is %v, want %v", name, pooling, d, v, want[d])
				}
			}
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}
}

// A request that the model is not made for is an error that says what the model is for.
func TestUnsuited(t *testing.T) {
	embeds := opened(t, modeltest.Encoder(t, modeltest.EncoderShape{}))
	ranks := opened(t, modeltest.Encoder(t, modeltest.EncoderShape{Labels: 1}))
	writes := opened(t, modeltest.Llama(t))
	generate := func(m *Model) (err error) {
		for _, err = range m.Generate(t.Context(), &Request{Prompt: "hello"}) {
		}
		return err
	}
	talk := func(m *Model) (err error) {
		for _, err = range m.Chat(t.Context(), &ChatRequest{Messages: []chat.Message{{Role: "user", Content: "hello"}}}) {
		}
		return err
	}
	logits := func(m *Model) error {
		return m.Logits(t.Context(), []int32{1}, 0, func(int, []float32) error { return nil })
	}
	embed := func(m *Model) error {
		_, err := m.Embed(t.Context(), &EmbedRequest{Inputs: []EmbedInput{{Text: "hello"}}})
		return err
	}
	rank := func(m *Model) error {
		_, err := m.Rank(t.Context(), &RankRequest{Query: "hello", Documents: []string{"world"}})
		return err
	}
	for i, test := range []struct {
		m    *Model
		do   func(*Model) error
		says string // empty: no error
	}{
		{embeds, generate, "a BertModel model is for embeddings"},
		{embeds, talk, "is for embeddings"},
		{embeds, logits, "is for embeddings"},
		{embeds, embed, ""},
		{embeds, rank, "is for embeddings"},
		{ranks, generate, "a BertForSequenceClassification model is for scores of pairs of texts"},
		{ranks, talk, "is for scores"},
		{ranks, logits, "is for scores"},
		{ranks, embed, "is for scores"},
		{ranks, rank, ""},
		{writes, generate, ""},
		{writes, embed, ""},
		{writes, rank, "a llama model is for writing text"},
	} {
		err := test.do(test.m)
		if test.says == "" && err != nil || test.says != "" && (!errors.Is(err, ErrUnsuited) || !strings.Contains(err.Error(), test.says) || strings.Count(err.Error(), "realizar: ") != 1) {
			t.Errorf("%d: %v, want an error with %q", i, err, test.says)
		}
	}
	if embeds.Labels() != 0 || ranks.Labels() != 1 || writes.Labels() != 0 || embeds.Context() != 64 {
		t.Errorf("%d, %d and %d labels, a context of %d", embeds.Labels(), ranks.Labels(), writes.Labels(), embeds.Context())
	}
}

func TestRank(t *testing.T) {
	documents := []string{"world", "hello world, this is the world", "", "in the"}
	for name, test := range map[string]struct {
		shape          modeltest.EncoderShape
		plain, untyped bool
	}{
		"one label":      {shape: modeltest.EncoderShape{Labels: 1}},
		"labels":         {shape: modeltest.EncoderShape{Labels: 3}, plain: true},
		"plain":          {shape: modeltest.EncoderShape{Labels: 1, Config: map[string]any{"sentence_transformers": map[string]any{"activation_fn": "torch.nn.modules.linear.Identity"}}}, plain: true},
		"plain, older":   {shape: modeltest.EncoderShape{Labels: 1, Config: map[string]any{"sbert_ce_default_activation_function": "torch.nn.modules.linear.Identity"}}, plain: true},
		"sigmoid of all": {shape: modeltest.EncoderShape{Labels: 2, Config: map[string]any{"sentence_transformers": map[string]any{"activation_fn": "torch.nn.modules.activation.Sigmoid"}}}},
		"without types":  {shape: modeltest.EncoderShape{Labels: 1, Files: map[string]string{"tokenizer_config.json": `{"model_input_names": ["input_ids", "attention_mask"]}`}}, untyped: true},
	} {
		t.Run(name, func(t *testing.T) {
			m := opened(t, modeltest.Encoder(t, test.shape))
			got, err := m.Rank(t.Context(), &RankRequest{Query: "hello<|im_end|>", Documents: documents})
			if err != nil || len(got) != len(documents) {
				t.Fatalf("%d scores, %v", len(got), err)
			}
			for i, document := range documents {
				ids := slices.Concat(m.tok.Encode(modeltest.EncoderCLS, false), encodePlain(m, "hello<|im_end|>"), m.tok.Encode(modeltest.EncoderSEP, false))
				types := make([]int32, len(ids))
				then := slices.Concat(encodePlain(m, document), m.tok.Encode(modeltest.EncoderSEP, false))
				ids, types = append(ids, then...), append(types, slices.Repeat([]int32{1}, len(then))...)
				if test.untyped {
					clear(types)
				}
				var want []float32
				r := &engine.Request{Prompt: ids, Types: types, Outputs: []engine.Output{{Want: plan.WantLogits}}}
				if _, err := m.engine.Run(t.Context(), r, func(r *engine.Result) (bool, error) {
					want = slices.Clone(r.Logits)
					return true, nil
				}); err != nil {
					t.Fatal(err)
				}
				if !slices.Equal(got[i].Logits, want) || got[i].Tokens != len(ids) || len(want) != test.shape.Labels {
					t.Errorf("document %d: logits %v of %d tokens, want %v of %d", i, got[i].Logits, got[i].Tokens, want, len(ids))
				}
				for k, v := range want {
					if !test.plain {
						v = float32(1 / (1 + math.Exp(-float64(v))))
					}
					if got[i].Scores[k] != v {
						t.Errorf("document %d: score %d is %v, want %v", i, k, got[i].Scores[k], v)
					}
				}
			}
			if none, err := m.Rank(t.Context(), &RankRequest{Query: "hello"}); err != nil || len(none) != 0 {
				t.Errorf("no documents have %d scores, %v", len(none), err)
			}
		})
	}
}

// encodePlain returns the ids of text in which special tokens do not match.
func encodePlain(m *Model, text string) []int32 {
	ids, _, _ := m.tok.EncodePair(nil, nil)
	n := len(ids)
	all, _ := m.Prompt(context.Background(), &Request{Prompt: text}, 0)
	return all.Tokens[1 : len(all.Tokens)-(n-2)]
}

func TestRankErrors(t *testing.T) {
	m := opened(t, modeltest.Encoder(t, modeltest.EncoderShape{Labels: 1}))
	long := strings.Repeat("b", 70)
	_, err := m.Rank(t.Context(), &RankRequest{Query: "a", Documents: []string{"a", long}})
	var context *ContextError
	if !errors.As(err, &context) || context.Prompt != 74 || context.Context != 64 || !strings.Contains(err.Error(), "(input 2 of 2)") {
		t.Errorf("a pair of 74 tokens: %v", err)
	}
	odd := opened(t, modeltest.Encoder(t, modeltest.EncoderShape{Labels: 1, Config: map[string]any{"sbert_ce_default_activation_function": "torch.nn.Tanh"}}))
	if _, err := odd.Rank(t.Context(), &RankRequest{Query: "a", Documents: []string{"a"}}); !errors.Is(err, ErrConfig) || !strings.Contains(fmt.Sprint(err), "torch.nn.Tanh") {
		t.Errorf("an odd function: %v", err)
	}
	types := modeltest.EncoderShape{Labels: 1}
	path := modeltest.Encoder(t, types)
	data, err := os.ReadFile(filepath.Join(path, "tokenizer.json"))
	if err != nil {
		t.Fatal(err)
	}
	at := strings.Index(string(data), `"post_processor"`)
	end := at + strings.Index(string(data)[at:], "},\n")
	text := string(data[:at]) + `"post_processor": {"type": "TemplateProcessing", "single": [{"Sequence": {"id": "A", "type_id": 0}}],
		"pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 7}}], "special_tokens": {}` + string(data[end:])
	if err := os.WriteFile(filepath.Join(path, "tokenizer.json"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := opened(t, path).Rank(t.Context(), &RankRequest{Query: "a", Documents: []string{"a"}}); !errors.Is(err, ErrConfig) || !strings.Contains(err.Error(), "type 7") {
		t.Errorf("a type that the model does not know: %v", err)
	}
	broken := modeltest.Encoder(t, modeltest.EncoderShape{Labels: 1, Config: map[string]any{"layer_norm_eps": -1}})
	if _, err := Open(t.Context(), broken, Options{}); !errors.Is(err, ErrConfig) {
		t.Errorf("a negative layer_norm_eps: %v", err)
	}
}
