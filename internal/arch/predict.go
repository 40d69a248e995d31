package arch

import (
	"fmt"
	"slices"

	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/modelfile"
)

// A predictor is the formulas of a program's head, see [plan.Head].
type predictor interface {
	// feature returns the hidden state that the head reads of each token, [T, width]. x is the residual
	// stream after the last layer.
	feature(b *plan.Builder, s *Spec, w *weights, x plan.Value) plan.Value
	// layer returns the head's own hidden state [T, width]: hidden is the hidden state of the position
	// before each token. It is called twice, for the part of the program that needs its keys and values
	// alone and for the head.
	layer(b *plan.Builder, s *Spec, w *weights, hidden plan.Value) plan.Value
	// logits returns the input of the last product and the logits for rows of layer's result.
	logits(b *plan.Builder, s *Spec, w *weights, x plan.Value) (in, logits plan.Value)
}

// BuildPredicting is [Build] with the head that the checkpoint brings to predict the token after the
// next one. The error wraps [ErrConfig] if the architecture has none, and [ErrTensor] if the file lacks
// its tensors.
func BuildPredicting(f *modelfile.File) (*Model, error) {
	return guarded(f, func(a *architecture, s *Spec, w *weights) (predictor, error) {
		if a.nextn == nil || s.Latent != nil && s.Latent.Index != nil {
			return nil, fmt.Errorf("%w: multi-token prediction is not supported for %s; use --speculative suffix", ErrConfig, a.title)
		}
		p := &multiToken{nextn: *a.nextn}
		if top := p.weights(s, w); !top.has("nextn.eh_proj") {
			return nil, fmt.Errorf("%w: %s is missing; the file has no layer that predicts further tokens; use --speculative suffix", ErrTensor, top.name("nextn.eh_proj", ".weight"))
		}
		return p, nil
	})
}

// predict adds the head p to a program with an output.
func predict(b *plan.Builder, s *Spec, w *weights, p predictor, x plan.Value) {
	hidden := p.feature(b, s, w, x)
	state := b.State(plan.State{Name: "hidden", Kind: plan.PerToken, KVHeads: 1, HeadDim: b.Cols(hidden), Window: 2, Exact: true})
	b.Store(state, hidden)
	p.layer(b, s, w, b.Recall(state))
	b.Head()
	x = p.layer(b, s, w, b.Recall(state))
	b.Store(state, x)
	b.Output(p.logits(b, s, w, b.Pick(x)))
}

// A nextn says how an architecture's checkpoints lay out the layer that predicts the token after the
// next one: as a layer after the last, unless it has a base of its own.
type nextn struct {
	base  string            // in safetensors: prefix of the layers that predict, counted from 0
	names names             // in safetensors: names that differ from those of other layers
	like  func(s *Spec) int // the layer that has the same numbers; nil: the last
	dense bool              // it has no experts
}

// nextnNames are the names in safetensors checkpoints of what a layer that predicts has beside the
// tensors of other layers.
var nextnNames = names{
	"nextn.enorm":            "*layers.#.enorm",
	"nextn.hnorm":            "*layers.#.hnorm",
	"nextn.eh_proj":          "*layers.#.eh_proj",
	"nextn.shared_head_norm": "*layers.#.shared_head.norm",
	"nextn.shared_head_head": "*layers.#.shared_head.head",
	"nextn.embed_tokens":     "*layers.#.embed_tokens",
}

// A multiToken is the first module of multi-token prediction (DeepSeek-AI, "DeepSeek-V3 Technical
// Report", 2024, section 2.2): one more layer of the model reads the token's embedding and the hidden
// state of the position before it, each normalized. Hidden states are those after the last norm of the
// model or of the module, as vLLM and SGLang pass them on.
type multiToken struct{ nextn nextn }

// weights returns the tensors of the layer that predicts.
func (p *multiToken) weights(s *Spec, w *weights) layer {
	own := *w
	own.names = with(with(nextnNames, w.names), p.nextn.names)
	if !w.hub {
		own.names = w.names
	} else if p.nextn.base != "" {
		own.base, own.before = p.nextn.base, s.Layers
	}
	return layer{&own, s.Layers}
}

// spec returns the numbers of the layer that predicts.
func (p *multiToken) spec(s *Spec) *Spec {
	n, like := s.Layers, s.Layers-1
	if p.nextn.like != nil {
		like = p.nextn.like(s)
	}
	own := *s
	for _, list := range []*[]int{&own.EachFFN, &own.EachHeads, &own.EachKVHeads, &own.EachHeadDim, &own.Windows, &own.Chunks} {
		*list = lengthened(*list, n, like)
	}
	for _, list := range []*[]bool{&own.Unturned, &own.EachSinks, &own.Sparse, &own.Recurrent} {
		*list = lengthened(*list, n, like)
	}
	for _, list := range []*[]float64{&own.EachScale, &own.Limits, &own.ExpertLimits} {
		*list = lengthened(*list, n, like)
	}
	own.Unseen = 1
	layer := own.at(n)
	if p.nextn.dense {
		layer.Experts = 0
	}
	return layer
}

// lengthened returns the first n of a list by layer and one more, which is like one of them.
func lengthened[T any](list []T, n, like int) []T {
	if list == nil {
		return nil
	}
	return append(slices.Clone(list[:n]), list[like])
}

func (p *multiToken) feature(b *plan.Builder, s *Spec, w *weights, x plan.Value) plan.Value {
	return norm(b, s, layer{w, noLayer}, x, "output_norm", s.Hidden)
}

func (p *multiToken) layer(b *plan.Builder, s *Spec, w *weights, hidden plan.Value) plan.Value {
	own, top := p.weights(s, w), layer{w, noLayer}
	b.Layer(own.index)
	defer b.Layer(plan.NoLayer)
	table := top.weight("token_embd")
	if own.has("nextn.embed_tokens") {
		table = own.weight("nextn.embed_tokens")
	}
	embedded := norm(b, s, own, b.Scale(b.Embed(table), s.EmbeddingScale), "nextn.enorm", s.Hidden)
	hidden = norm(b, s, own, hidden, "nextn.hnorm", s.Hidden)
	x := w.block(b, p.spec(s), own, linear(b, own, b.Concat(embedded, hidden), "nextn.eh_proj", s.Hidden, without))
	if own.has("nextn.shared_head_norm") {
		return norm(b, s, own, x, "nextn.shared_head_norm", s.Hidden)
	}
	return norm(b, s, top, x, "output_norm", s.Hidden)
}

func (p *multiToken) logits(b *plan.Builder, s *Spec, w *weights, x plan.Value) (in, logits plan.Value) {
	if own := p.weights(s, w); own.has("nextn.shared_head_head") {
		return x, scaled(b, s, b.Linear(x, own.matrix("nextn.shared_head_head", layer{w, noLayer}.weight("token_embd").Shape[0]), nil))
	}
	return x, outputLogits(b, s, layer{w, noLayer}, x)
}
