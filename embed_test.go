package realizar

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/realizar/realizar/internal/engine"
	"github.com/realizar/realizar/internal/modeltest"
	"github.com/realizar/realizar/internal/plan"
)

func opened(t *testing.T, path string) *Model {
	t.Helper()
	m, err := Open(t.Context(), path, Options{Parallel: 3})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = m.Close() })
	return m
}

// hidden returns the hidden states of all tokens.
func hidden(t *testing.T, m *Model, ids []int32) (rows [][]float32) {
	t.Helper()
	r := &engine.Request{Prompt: ids}
	for i := range ids {
		r.Outputs = append(r.Outputs, engine.Output{Token: int32(i), Want: plan.WantHidden})
	}
	if _, err := m.engine.Run(t.Context(), r, func(r *engine.Result) (bool, error) {
		rows = append(rows, slices.Clone(r.Hidden))
		return true, nil
	}); err != nil {
		t.Fatal(err)
	}
	return rows
}

func TestEmbed(t *testing.T) {
	m := opened(t, modeltest.Llama(t))
	var inputs []EmbedInput
	var tokens [][]int32
	for n := 1; n <= 120; n = n*2 + 1 {
		ids := make([]int32, n)
		for i := range ids {
			ids[i] = int32(i*i+n) % 250
		}
		inputs, tokens = append(inputs, EmbedInput{Tokens: ids}), append(tokens, ids)
	}
	text, err := m.Prompt(t.Context(), &Request{Prompt: "hello<|im_end|>"}, 0)
	if err != nil {
		t.Fatal(err)
	}
	inputs, tokens = append(inputs, EmbedInput{Text: "hello<|im_end|>"}), append(tokens, text.Tokens)
	for _, pooling := range []Pooling{PoolingAuto, PoolingMean, PoolingLast, PoolingCLS} {
		for _, keep := range []bool{false, true} {
			all, err := m.Embed(t.Context(), &EmbedRequest{Inputs: inputs, Pooling: pooling, KeepLength: keep})
			if err != nil || len(all) != len(inputs) {
				t.Fatalf("%v: %d embeddings of %d inputs, %v", pooling, len(all), len(inputs), err)
			}
			for i, got := range all {
				rows := hidden(t, m, tokens[i])
				want := make([]float64, len(rows[0]))
				var length float64
				for d := range want {
					switch pooling {
					case PoolingMean:
						for _, row := range rows {
							want[d] += float64(row[d]) / float64(len(rows))
						}
					case PoolingCLS:
						want[d] = float64(rows[0][d])
					default:
						want[d] = float64(rows[len(rows)-1][d])
					}
					length += want[d] * want[d]
				}
				if length = math.Sqrt(length); keep {
					length = 1
				}
				for d, v := range got.Vector {
					if math.Abs(float64(v)-want[d]/length) > 1e-6 || got.Tokens != len(tokens[i]) {
						t.Fatalf("%v of %d tokens (length kept: %v): value %d is %v, want %v", pooling, got.Tokens, keep, d, v, want[d]/length)
					}
				}
			}
		}
	}
	if all, err := m.Embed(t.Context(), &EmbedRequest{}); err != nil || len(all) != 0 {
		t.Errorf("no inputs have %d embeddings, %v", len(all), err)
	}
}

func TestEmbedErrors(t *testing.T) {
	m := opened(t, modeltest.Llama(t))
	long := EmbedInput{Tokens: make([]int32, 257)}
	short := EmbedInput{Text: "hello"}
	for _, test := range []struct {
		r    EmbedRequest
		is   error
		says []string
	}{
		{EmbedRequest{Inputs: []EmbedInput{short, long}}, ErrContext, []string{"257", "256", "(input 2 of 2)"}},
		{EmbedRequest{Inputs: []EmbedInput{long}}, ErrContext, []string{"257", "256"}},
		{EmbedRequest{Inputs: []EmbedInput{{}}}, ErrRequest, []string{"empty"}},
		{EmbedRequest{Inputs: []EmbedInput{{Tokens: []int32{272}}}}, ErrRequest, []string{"272"}},
		{EmbedRequest{Inputs: []EmbedInput{{Text: "a", Tokens: []int32{2}}}}, ErrRequest, []string{"both"}},
		{EmbedRequest{Inputs: []EmbedInput{short}, Pooling: 9}, ErrRequest, []string{"pooling(9)"}},
	} {
		_, err := m.Embed(t.Context(), &test.r)
		if !errors.Is(err, test.is) || strings.Count(fmt.Sprint(err), "realizar: ") != 1 {
			t.Errorf("%+v: %v", test.r.Pooling, err)
		}
		for _, part := range test.says {
			if !strings.Contains(fmt.Sprint(err), part) {
				t.Errorf("error %q does not say %q", err, part)
			}
		}
	}
	broken := opened(t, modeltest.Llama(t, modeltest.Overflow("blk.1.ffn_down.weight")))
	if _, err := broken.Embed(t.Context(), &EmbedRequest{Inputs: []EmbedInput{short, short}}); !errors.Is(err, ErrNotFinite) {
		t.Errorf("a broken model embeds: %v", err)
	}
}

// The model's files set the default pooling.
func TestReadPooling(t *testing.T) {
	for _, test := range []struct {
		name string
		kind any
		want Pooling
	}{{"none", 0, PoolingLast}, {"mean", 1, PoolingMean}, {"cls", 2, PoolingCLS}, {"last", 3, PoolingLast}, {"rank", 4, PoolingAuto}, {"unsaid", nil, PoolingLast}} {
		var options []modeltest.Option
		if kind, ok := test.kind.(int); ok {
			options = append(options, modeltest.Metadata("llama.pooling_type", uint32(kind)))
		}
		m := opened(t, modeltest.Llama(t, options...))
		if m.pooling != test.want || (m.poolingErr != nil) != (test.want == PoolingAuto) {
			t.Errorf("%s: %v, %v, want %v", test.name, m.pooling, m.poolingErr, test.want)
		}
		_, err := m.Embed(t.Context(), &EmbedRequest{Inputs: []EmbedInput{{Text: "hello"}}})
		if (err != nil) != (test.want == PoolingAuto) || err != nil && (!errors.Is(err, ErrConfig) || !strings.Contains(err.Error(), "llama.pooling_type is 4")) {
			t.Errorf("%s: %v", test.name, err)
		}
	}
	for config, want := range map[string]Pooling{
		`{"pooling_mode_cls_token": false, "pooling_mode_mean_tokens": true, "pooling_mode_lasttoken": false, "include_prompt": true}`: PoolingMean,
		`{"pooling_mode_cls_token": true}`:                                   PoolingCLS,
		`{"pooling_mode_lasttoken": true}`:                                   PoolingLast,
		`{"pooling_mode_cls_token": true, "pooling_mode_mean_tokens": true}`: PoolingAuto,
		`{"pooling_mode_max_tokens": true}`:                                  PoolingMax,
		`{"pooling_mode_weightedmean_tokens": true}`:                         PoolingAuto,
		`{`: PoolingAuto,
	} {
		dir := modeltest.Hub(t)
		if err := os.Mkdir(filepath.Join(dir, "1_Pooling"), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "1_Pooling", "config.json"), []byte(config), 0o600); err != nil {
			t.Fatal(err)
		}
		if m := opened(t, dir); m.pooling != want || (m.poolingErr != nil) != (want == PoolingAuto) {
			t.Errorf("%s: %v, %v, want %v", config, m.pooling, m.poolingErr, want)
		}
	}
}
