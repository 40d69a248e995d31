package arch

import (
	"encoding/binary"
	"fmt"
	"maps"
	"math"

	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/tensor"
)

// Gemma 3n (Gemma team, 2025, the model card of google/gemma-3n-E4B): a residual of several streams,
// of which a layer predicts all, computes one and corrects all (Baykal et al., "Alternating Updates
// for Efficient Transformers", 2023); a narrow layer beside attention (Menghani et al., "LAuReL:
// Learned Augmented Residual Layer", 2024); gates of which only the largest stay in the first
// layers; per-layer embeddings, and layers that share keys and values.
func init() {
	hubNames := maps.Clone(sandwichNames)
	maps.Copy(hubNames, perLayerNames)
	maps.Copy(hubNames, map[string]string{
		"altup_proj_exp": "*altup_projections.@", "altup_unembd_proj_exp": "*altup_unembed_projections.@",
		"altup_router": "*layers.#.altup.modality_router", "altup_router_norm": "*layers.#.altup.router_norm",
		"altup_predict_coef": "*layers.#.altup.prediction_coefs", "altup_correct_coef": "*layers.#.altup.correction_coefs",
		"altup_correct_scale": "*layers.#.altup.correct_output_scale.",
		"laurel_l":            "*layers.#.laurel.linear_left", "laurel_r": "*layers.#.laurel.linear_right", "laurel_post_norm": "*layers.#.laurel.post_laurel_norm",
	})
	for _, a := range []architecture{
		{gguf: "gemma3n", hub: "Gemma3nForCausalLM", kind: "gemma3n_text"},
		{hub: "Gemma3nForConditionalGeneration", kind: "gemma3n"},
	} {
		a.title, a.about = "Gemma 3n (text)", "a residual of several streams, per-layer embeddings, layers that share keys and values, sparse gates"
		a.keys, a.hubNames, a.adapt, a.block = gemmaKeys, hubNames, gemma3n, gemma3nLayer
		a.ggufNames = map[string]string{"altup_proj_exps": "altup_proj", "altup_unembd_proj_exps": "altup_unembd_proj"}
		a.defaults = map[string]int{"sliding_window": 512, "num_key_value_heads": 2}
		register(a)
	}
}

// An altUp holds the numbers of a residual of several streams.
type altUp struct {
	Streams, Active int
	Clip            float64 // bound of the weights of corrections; 0: none
	Scaled          bool    // the active stream is scaled before it gates per-layer embeddings
}

func gemma3n(c *config, s *Spec) {
	s.EmbeddingScale = math.Sqrt(float64(s.Hidden))
	s.AttentionScale, s.Act, s.QKNorm = 1, plan.GELUTanh, qkHeads
	s.LogitCap = c.softcap("final_logit_softcapping", 30)
	s.RopeBase = 1e6
	shared := c.first("attention.shared_kv_layers", 0)
	s.AltUp = altUp{c.integer("altup.num_inputs", 4), c.first("altup.active_idx", 0), 120, true}
	s.PerLayer = c.integer("embedding_length_per_layer_input", 256)
	quantiles, _ := c.m.Floats(c.key("activation_sparsity_scale"))
	if c.gguf {
		s.alternate(c, 5, 512)
	} else {
		s.headDim(c, 256)
		attentionBias(c, s)
		s.Act = c.activation("hidden_act", "gelu_pytorch_tanh")
		s.LocalBase = c.optional("rope_local_base_freq")
		s.slidingLayers(c, func(i int) bool { return (i+1)%5 != 0 })
		shared = c.first("num_kv_shared_layers", 15)
		s.PerLayer = c.integer("hidden_size_per_layer_input", 256)
		s.AltUp = altUp{c.integer("altup_num_inputs", 4), c.first("altup_active_idx", 0), c.softcap("altup_coef_clip", 120), c.flag("altup_correct_scale", true)}
		quantiles = c.sparsity(s)
	}
	if s.LocalBase == 0 {
		s.LocalBase = 1e4
	}
	if len(quantiles) > 0 && len(quantiles) != s.Layers {
		c.failf("the sparsity of gates is given for %d layers of %d", len(quantiles), s.Layers)
	}
	if s.AltUp.Active >= s.AltUp.Streams {
		c.failf("stream %d is active, of %d", s.AltUp.Active, s.AltUp.Streams)
	}
	s.Sparsity = quantiles
	s.shareKV(c, shared)
}

// sparsity reads the share of gates that become 0 in each layer, as quantiles of the normal
// distribution; -Inf where none do.
func (c *config) sparsity(s *Spec) []float64 {
	const key = "activation_sparsity_pattern"
	shares, ok := c.m.Floats(key)
	if !c.has(key) {
		shares, ok = make([]float64, len(s.Windows)), true
		for i := range min(10, len(shares)) {
			if len(shares) > 10 {
				shares[i] = 0.95
			}
		}
	}
	if !ok {
		c.failf("%s is of type %s, want a list of numbers", key, c.m.Type(key))
	}
	var quantiles []float64
	for i, share := range shares {
		if !(share >= 0 && share < 1) {
			c.failf("%s[%d] is %v, want a number from 0 to below 1", key, i, share)
		}
		quantiles = append(quantiles, math.Sqrt2*math.Erfinv(2*share-1))
	}
	return quantiles
}

func gemma3nLayer(b *plan.Builder, s *Spec, w layer, x plan.Value) plan.Value {
	if w.index == 0 {
		w.streams = openStreams(b, s, w, x)
	}
	active := s.AltUp.Active
	coefs := linear(b, w, modalities(b, s, w, w.streams[active]), "altup_predict_coef", s.AltUp.Streams*s.AltUp.Streams, without)
	var predicted []plan.Value
	for i, stream := range w.streams {
		predicted = append(predicted, b.Add(stream, b.Mix(coefs, i*s.AltUp.Streams, w.streams...)))
	}
	y := gemma3nActive(b, s, w, predicted[active])

	coefs = b.Linear(modalities(b, s, w, y), w.corrections(s), ones(s.AltUp.Streams))
	innovation := b.Add(y, b.Scale(predicted[active], -1))
	for i, stream := range predicted {
		w.streams[i] = b.Add(stream, b.Mix(coefs, i, innovation))
	}
	first := w.streams[active]
	if scale := w.weight("altup_correct_scale"); s.AltUp.Scaled {
		first = b.MulBy(first, scale)
	}
	further := perLayer(b, s, w, first)
	for i := 1; i < len(w.streams); i++ {
		w.streams[i] = b.Add(w.streams[i], further)
	}
	if w.index == s.Layers-1 {
		return closeStreams(b, s, w)
	}
	return w.streams[0]
}

// gemma3nActive is attention and feed-forward layer of the active stream.
func gemma3nActive(b *plan.Builder, s *Spec, w layer, x plan.Value) plan.Value {
	h := norm(b, s, w, x, "attn_norm", s.Hidden)
	left := w.weight("laurel_l")
	narrow := linear(b, w, linear(b, w, h, "laurel_l", left.Rows(), without), "laurel_r", s.Hidden, without)
	beside := b.Add(h, norm(b, s, w, narrow, "laurel_post_norm", s.Hidden))
	x = b.Add(x, norm(b, s, w, valueNormed(b, s, w, h), "post_attention_norm", s.Hidden))
	x = b.Scale(b.Add(x, beside), math.Sqrt2/2)

	h = norm(b, s, w, x, "ffn_norm", s.Hidden)
	gate, up := linear(b, w, h, "ffn_gate", s.FFN, without), linear(b, w, h, "ffn_up", s.FFN, without)
	if s.Sparsity != nil && s.Sparsity[w.index] > -1e29 { // -Inf keeps all
		gate = b.Sparsify(gate, s.Sparsity[w.index])
	}
	y := linear(b, w, b.GLU(gate, up, plan.GLUAttr{Act: s.Act}), "ffn_down", s.Hidden, without)
	return b.Add(x, norm(b, s, w, y, "post_ffw_norm", s.Hidden))
}

// modalities returns the values that a stream's coefficients are computed from.
func modalities(b *plan.Builder, s *Spec, w layer, x plan.Value) plan.Value {
	h := b.Scale(norm(b, s, w, x, "altup_router_norm", s.Hidden), 1/float64(s.Hidden))
	return b.Activate(linear(b, w, h, "altup_router", s.AltUp.Streams, without), plan.Tanh)
}

// corrections returns the weight of the coefficients of corrections, within its bound.
func (l layer) corrections(s *Spec) *tensor.Tensor {
	w := l.weight("altup_correct_coef")
	values, err := w.Float32s()
	if n := s.AltUp.Streams; err != nil || len(w.Shape) != 2 || w.Shape[0] != n || w.Shape[1] != n {
		l.b.Fail(fmt.Errorf("%w: %s has shape %v, want [%d %d]", ErrTensor, w.Name, w.Shape, n, n))
	}
	clipped := &tensor.Tensor{Name: w.Name, DType: tensor.F32, Shape: w.Shape}
	for _, v := range values {
		if clip := float32(s.AltUp.Clip); clip > 0 {
			v = max(-clip, min(v, clip))
		}
		clipped.Data = binary.LittleEndian.AppendUint32(clipped.Data, math.Float32bits(v))
	}
	return clipped
}

// altUpEps is the least mean square of a projected stream.
const altUpEps = 1e-5

// openStreams returns the streams before the first layer: the embedding and projections of it, as
// large as it.
func openStreams(b *plan.Builder, s *Spec, w layer, x plan.Value) []plan.Value {
	streams := []plan.Value{x}
	for _, p := range (layer{w.weights, noLayer}).matrices("altup_proj", s.AltUp.Streams-1, s.Hidden, s.Hidden) {
		streams = append(streams, b.Rescale(b.Linear(x, p, nil), x, altUpEps))
	}
	return streams
}

// closeStreams returns the mean of the streams after the last layer, projected and as large as the
// first.
func closeStreams(b *plan.Builder, s *Spec, w layer) plan.Value {
	x := w.streams[0]
	for i, p := range (layer{w.weights, noLayer}).matrices("altup_unembd_proj", s.AltUp.Streams-1, s.Hidden, s.Hidden) {
		x = b.Add(x, b.Rescale(b.Linear(w.streams[i+1], p, nil), w.streams[0], altUpEps))
	}
	return b.Scale(x, 1/float64(s.AltUp.Streams))
}
