package realizar_test

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/realizar/realizar"
	"github.com/realizar/realizar/internal/modeltest"
	"github.com/realizar/realizar/modelfile"
	"github.com/realizar/realizar/tensor"
)

func describe(t *testing.T, path string) *realizar.Description {
	t.Helper()
	d, err := realizar.Describe(path)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestDescribe(t *testing.T) {
	options := []modeltest.Option{modeltest.HeadDim(24), modeltest.Window(48), modeltest.AddBOS()}
	d := describe(t, modeltest.Llama(t, append(options, modeltest.DType(tensor.Q8_0))...))
	if d.Format != "GGUF" || d.Architecture != "llama" || d.Name != "test model" || d.Problem != "" || d.TensorCount != len(d.Tensors) || len(d.Tensors) != 21 {
		t.Errorf("got %+v", d)
	}
	want := realizar.Dimensions{Layers: 2, Hidden: 64, FFN: 96, Heads: 4, KVHeads: 2, HeadDim: 24, Vocab: 272, Context: 256, Windows: map[int]int{48: 2}}
	if diff := cmp.Diff(want, d.Dimensions); diff != "" {
		t.Errorf("dimensions (-want +got)\n%s", diff)
	}
	var share float64
	var parameters int64
	for _, s := range d.DTypes {
		share += s.Share
		parameters += s.Parameters
	}
	if len(d.DTypes) != 2 || d.DTypes[0].DType != tensor.Q8_0 || d.DTypes[1].Name != "F32" || share < 0.999 || share > 1.001 || parameters != d.Parameters {
		t.Errorf("dtypes are %+v of %d parameters", d.DTypes, d.Parameters)
	}
	if tok := d.Tokenizer; tok == nil || tok.Vocab != 272 || !tok.AddsBOS || tok.BOS != "<|endoftext|>" || tok.EOS != "<|im_end|>" || tok.Name != "gpt-2" {
		t.Errorf("tokenizer is %+v (%s)", tok, d.TokenizerProblem)
	}
	if !d.ChatTemplate || d.ToolTemplate || d.TemplateProblem != "" || d.Sampling != nil {
		t.Errorf("templates %v and %v (%s), sampling %v", d.ChatTemplate, d.ToolTemplate, d.TemplateProblem, d.Sampling)
	}

	hub := describe(t, modeltest.Hub(t, options...))
	if hub.Format != "safetensors" || hub.Architecture != "MistralForCausalLM" || hub.Parameters != d.Parameters {
		t.Errorf("the same model of a hub is %+v", hub)
	}
	if diff := cmp.Diff(d.Dimensions, hub.Dimensions); diff != "" {
		t.Errorf("dimensions of a hub's files (-GGUF +hub)\n%s", diff)
	}
}

func TestDescribeWhatCannotRun(t *testing.T) {
	unknown := describe(t, modeltest.Llama(t, modeltest.Architecture("abacus")))
	want := realizar.Dimensions{Layers: 2, Hidden: 64, FFN: 96, Heads: 4, KVHeads: 2, HeadDim: 16, Context: 256}
	if diff := cmp.Diff(want, unknown.Dimensions); diff != "" {
		t.Errorf("dimensions of an unknown architecture (-want +got)\n%s", diff)
	}
	if unknown.Architecture != "abacus" || !strings.Contains(unknown.Problem, "abacus") || unknown.Plan != "" || unknown.Tokenizer == nil {
		t.Errorf("an unknown architecture is %+v", unknown)
	}
	if _, err := unknown.Memory(realizar.Options{}); err == nil || !strings.Contains(err.Error(), "abacus") {
		t.Errorf("its memory is planned: %v", err)
	}
	if n := unknown.TokenBytes(10, realizar.ActivationsAuto, realizar.CacheAuto); n != 0 {
		t.Errorf("a token of it reads %d bytes", n)
	}
	vocabulary := describe(t, modeltest.Llama(t, modeltest.VocabularyOnly()))
	if !strings.Contains(vocabulary.Problem, "no weights") || vocabulary.Parameters != 0 || vocabulary.Tokenizer == nil || !vocabulary.ChatTemplate {
		t.Errorf("a vocabulary is %+v", vocabulary)
	}
	if _, err := realizar.Describe(filepath.Join(t.TempDir(), "absent")); err == nil || !strings.HasPrefix(err.Error(), "realizar: ") {
		t.Errorf("what is not there is described: %v", err)
	}
}

func TestDescriptionMemory(t *testing.T) {
	d := describe(t, modeltest.Llama(t))
	const width = 2 * 2 * 16 * 2 // keys and values of 2 heads of 16 in 2 layers
	for _, test := range []struct {
		o     realizar.Options
		cache int64
	}{
		{realizar.Options{}, 256 * width * 2},
		{realizar.Options{Parallel: 3}, 3 * 256 * width * 2},
		{realizar.Options{Context: 128}, 128 * width * 2},
		{realizar.Options{Context: 128, Activations: realizar.ActivationsF32}, 128 * width * 4},
	} {
		m, err := d.Memory(test.o)
		if err != nil {
			t.Fatal(err)
		}
		var weights int64
		for _, x := range d.Tensors {
			weights += x.Bytes
		}
		if len(m.States) != 1 || m.States[0].Bytes != test.cache || m.States[0].Layers != 2 || m.Weights != weights ||
			m.Scratch <= 0 || m.Total != m.Weights+m.Scratch+test.cache {
			t.Errorf("%+v takes %+v, want %d bytes of cache", test.o, m, test.cache)
		}
	}
	small, err := describe(t, modeltest.Llama(t, modeltest.Context(8192), modeltest.Window(32))).Memory(realizar.Options{})
	if err != nil {
		t.Fatal(err)
	}
	whole, err := describe(t, modeltest.Llama(t, modeltest.Context(8192))).Memory(realizar.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if a, b := small.States[0].Bytes, whole.States[0].Bytes; a*8 > b || small.States[0].Window != 32 {
		t.Errorf("a window of 32 keeps %d bytes, a context of 8192 %d", a, b)
	}
	for _, o := range []realizar.Options{{Context: 257}, {Context: -1}, {Parallel: -1}, {Device: "abacus"}} {
		if _, err := d.Memory(o); !errors.Is(err, realizar.ErrOptions) {
			t.Errorf("%+v: %v, want an error of the options", o, err)
		}
	}
	if _, err := d.Memory(realizar.Options{Parallel: 1 << 60}); !errors.Is(err, realizar.ErrMemory) {
		t.Errorf("2^60 answers: %v, want an error of the memory", err)
	}
}

// All answers share one KV cache, which takes all the memory that it may.
func TestDescriptionCache(t *testing.T) {
	d := describe(t, modeltest.Llama(t, modeltest.HeadDim(32)))
	memory := func(o realizar.Options) *realizar.Memory {
		t.Helper()
		o.Parallel = 8
		m, err := d.Memory(o)
		if err != nil {
			t.Fatal(err)
		}
		if m.Total != m.Weights+m.Scratch+m.States[0].Bytes || m.Tokens < m.Sequences*m.Context || m.Tokens > 8*m.Context {
			t.Errorf("%+v takes %+v", o, m)
		}
		return m
	}
	whole := memory(realizar.Options{})
	if whole.Sequences != 8 || whole.Tokens != 8*256 || whole.Cache != "F16" || whole.Host != 0 {
		t.Errorf("all that is wanted is %+v", whole)
	}
	one := whole.States[0].Bytes / 8
	for _, cache := range []struct {
		cache realizar.Cache
		bytes int64
	}{{realizar.CacheF32, 2 * one}, {realizar.CacheF16, one}, {realizar.CacheQ8, one * 17 / 32}, {realizar.CacheF8, one * 17 / 32}} {
		if m := memory(realizar.Options{Cache: cache.cache, HostCache: 1 << 20}); m.States[0].Bytes != 8*cache.bytes || m.Host != 1<<20 {
			t.Errorf("a cache of %v is %+v, want %d bytes", cache.cache, m, 8*cache.bytes)
		}
	}
	last := whole.Sequences
	for sequences := range int64(8) {
		limit := whole.Resident + whole.Scratch + (7-sequences)*one
		m := memory(realizar.Options{Memory: limit})
		taken := m.Resident + m.Scratch + m.States[0].Bytes
		if m.Sequences > last || m.Sequences < max(1, 6-int(sequences)) || taken > limit && m.Sequences > 1 {
			t.Errorf("of %d bytes it takes %d for %d sequences, after %d", limit, taken, m.Sequences, last)
		}
		last = m.Sequences
	}
	if m := memory(realizar.Options{Memory: whole.Resident + 1}); m.Sequences != 1 {
		t.Errorf("where there is room for none, %d sequences are planned for, want what one takes", m.Sequences)
	}
	for _, o := range []realizar.Options{{Memory: -1}, {HostCache: -1}, {Cache: 5}} {
		if _, err := d.Memory(o); !errors.Is(err, realizar.ErrOptions) {
			t.Errorf("%+v: %v, want an error of the options", o, err)
		}
	}
	narrow := describe(t, modeltest.Llama(t)) // its heads are of 16
	if _, err := narrow.Memory(realizar.Options{Cache: realizar.CacheQ8}); !errors.Is(err, realizar.ErrOptions) {
		t.Errorf("a q8 cache of heads of 16: %v", err)
	}
	if _, err := narrow.Memory(realizar.Options{Cache: realizar.CacheF8}); err != nil {
		t.Errorf("an f8 cache of heads of 16: %v", err)
	}
}

// Weights that the device repacks are part of the weights, and a head that shares its tensor with
// the embedding table counts once.
func TestDescriptionResident(t *testing.T) {
	q8 := modeltest.DType(tensor.Q8_0)
	for _, test := range []struct {
		name        string
		options     []modeltest.Option
		activations realizar.Activations
		table       bool // the embedding table is repacked
		resident    bool // any weight is repacked
	}{
		{"float32", nil, realizar.ActivationsAuto, false, false},
		{"Q8_0", []modeltest.Option{q8}, realizar.ActivationsAuto, false, true},
		{"Q8_0 with float32 activations", []modeltest.Option{q8}, realizar.ActivationsF32, false, false},
		{"Q8_0 with a tied head", []modeltest.Option{q8, modeltest.Tied()}, realizar.ActivationsAuto, true, true},
	} {
		d := describe(t, modeltest.Llama(t, test.options...))
		m, err := d.Memory(realizar.Options{Activations: test.activations})
		if err != nil {
			t.Fatal(err)
		}
		var weights, least int64
		for _, x := range d.Tensors {
			weights += x.Bytes
			if test.resident && x.DType == "Q8_0" && (test.table || x.Name != "token_embd.weight") {
				least += x.Bytes
			}
		}
		// Repacked rows are padded to cache lines.
		padded := least + least/16
		if m.Weights != max(weights, m.Resident) || m.Resident < least || m.Resident > padded || (m.Resident > 0) != test.resident {
			t.Errorf("%s: %d bytes of weights, %d laid out; want %d, and %d to %d", test.name, m.Weights, m.Resident, weights, least, padded)
		}
		if want := m.Weights + m.States[0].Bytes + m.Scratch; m.Total != want {
			t.Errorf("%s: a total of %d bytes, want %d", test.name, m.Total, want)
		}
	}
}

// A weight that is stored as several tensors is described as the tensor that it is read as. It is
// resident with every format of activations.
func TestDescribeDerived(t *testing.T) {
	for _, test := range []struct{ layout, dtype, parts string }{
		{"fp8 blocks", "F8_E4M3_32", "weight weight_scale_inv"}, {"awq", "Q5_0", "qweight scales qzeros"}, {"packed symmetric", "Q4_0", "weight_packed weight_scale"},
	} {
		plain := describe(t, modeltest.Hub(t))
		d := describe(t, modeltest.Hub(t, modeltest.Quantised(modeltest.LayoutOf(t, test.layout))))
		if d.Problem != "" || d.TensorCount != plain.TensorCount || d.Parameters != plain.Parameters || len(d.DTypes) != 2 {
			t.Errorf("%s: %d tensors of %d parameters, %+v, %s", test.layout, d.TensorCount, d.Parameters, d.DTypes, d.Problem)
		}
		var derived, all int64
		for i, x := range d.Tensors {
			all += x.Bytes
			if len(x.Parts) == 0 {
				continue
			}
			derived += x.Bytes
			prefix := strings.TrimSuffix(x.Name, "weight")
			if got := strings.ReplaceAll(strings.Join(x.Parts, " "), prefix, ""); x.DType != test.dtype || got != test.parts {
				t.Errorf("%s: tensor %d is %s made of %s, want %s of %s", test.layout, i, x.DType, got, test.dtype, test.parts)
			}
		}
		for _, a := range []realizar.Activations{realizar.ActivationsAuto, realizar.ActivationsF32} {
			m, err := d.Memory(realizar.Options{Activations: a})
			if err != nil {
				t.Fatal(err)
			}
			if m.Weights != all || m.Resident < derived || m.Resident > derived+derived/8 || derived == 0 {
				t.Errorf("%s, %v: %d bytes of weights, %d resident, want %d and %d or a little more", test.layout, a, m.Weights, m.Resident, all, derived)
			}
		}
		if got, most := d.TokenBytes(0, realizar.ActivationsAuto, realizar.CacheAuto), plain.TokenBytes(0, realizar.ActivationsAuto, realizar.CacheAuto); got <= derived || got >= most {
			t.Errorf("%s: a token reads %d bytes, want more than %d and less than %d", test.layout, got, derived, most)
		}
	}
	if _, err := realizar.Describe(modeltest.Hub(t, modeltest.Quantised(&modeltest.Layout{
		Config: map[string]any{"quant_method": "bitsandbytes"}, Store: modeltest.LayoutOf(t, "awq").Store,
	}))); !errors.Is(err, modelfile.ErrUnsupported) {
		t.Errorf("an unknown quant_method: %v", err)
	}
}

func TestDescriptionTokenBytes(t *testing.T) {
	const width = 2 * 2 * 16 * 2 // values of a token in the KV cache
	const table = 272 * 64 * 4   // bytes of the embedding table
	d := describe(t, modeltest.Llama(t))
	var weights int64
	for _, x := range d.Tensors {
		weights += x.Bytes
	}
	if got, want := d.TokenBytes(0, realizar.ActivationsAuto, realizar.CacheAuto), weights-table; got != want {
		t.Errorf("a first token reads %d bytes, want all weights but the table, %d", got, want)
	}
	for _, test := range []struct {
		activations realizar.Activations
		cache       realizar.Cache
		halves      int64 // half bytes of each value
	}{
		{realizar.ActivationsAuto, realizar.CacheAuto, 4}, {realizar.ActivationsF32, realizar.CacheAuto, 8},
		{realizar.ActivationsF32, realizar.CacheF16, 4}, {realizar.ActivationsAuto, realizar.CacheF32, 8},
	} {
		if got, want := d.TokenBytes(100, test.activations, test.cache), weights-table+100*width*test.halves/2; got != want {
			t.Errorf("%v, %v: after 100 tokens %d bytes, want %d", test.activations, test.cache, got, want)
		}
	}
	wide := describe(t, modeltest.Llama(t, modeltest.HeadDim(32)))
	for _, c := range []struct {
		d       *realizar.Description
		cache   realizar.Cache
		bytes   int64 // of a head of so many
		headDim int64
	}{{wide, realizar.CacheQ8, 34, 32}, {wide, realizar.CacheF8, 34, 32}, {d, realizar.CacheF8, 18, 16}} {
		got := c.d.TokenBytes(100, realizar.ActivationsAuto, c.cache) - c.d.TokenBytes(0, realizar.ActivationsAuto, c.cache)
		if want := 100 * width * c.headDim / 16 * c.bytes / c.headDim; got != want {
			t.Errorf("%v cache of heads of %d: 100 tokens add %d bytes, want %d", c.cache, c.headDim, got, want)
		}
	}
	tied := describe(t, modeltest.Llama(t, modeltest.Tied(), modeltest.Window(32)))
	if got, want := tied.TokenBytes(100, realizar.ActivationsAuto, realizar.CacheAuto), weights-table+32*width*2; got != want {
		t.Errorf("with a tied head and a window: %d bytes, want %d", got, want)
	}
}

func TestDescriptionTokenProducts(t *testing.T) {
	// Queries, keys, values and output; gate, up and down; without embedding table and head.
	const layers = 2 * (64*(4+2+2+4)*16 + 3*64*96)
	for _, test := range []struct {
		model             string
		activations       realizar.Activations
		quantized, floats int64
	}{
		{modeltest.Llama(t), realizar.ActivationsAuto, 0, layers},
		{modeltest.Llama(t, modeltest.DType(tensor.Q8_0)), realizar.ActivationsAuto, layers, 0},
		{modeltest.Llama(t, modeltest.DType(tensor.Q8_0)), realizar.ActivationsF32, 0, layers},
		{modeltest.Llama(t, modeltest.DType(tensor.F16), modeltest.Tied()), realizar.ActivationsAuto, 0, layers},
		{modeltest.Llama(t, modeltest.Architecture("abacus")), realizar.ActivationsAuto, 0, 0},
	} {
		d := describe(t, test.model)
		if quantized, floats := d.TokenProducts(test.activations); quantized != test.quantized || floats != test.floats {
			t.Errorf("%v with %v activations: %d and %d multiply-adds, want %d and %d",
				d.DTypes, test.activations, quantized, floats, test.quantized, test.floats)
		}
	}
}
