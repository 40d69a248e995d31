package arch

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strings"

	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/modelfile"
	"github.com/realizar/realizar/tensor"
)

// An eagle is an EAGLE-3 head: a decoder layer in a file of its own that predicts the token after the
// next one from hidden states of three layers of its target (Li et al., "EAGLE-3: Scaling up Inference
// Acceleration of Large Language Models via Training-Time Test", 2025). For a token with embedding e
// and the hidden state g of the position before it:
//
//	x = [norm(e), norm(g)]
//	y = r + attention(x), where r is g, or norm(g) with norm_before_residual
//	h = y + feedForward(norm(y))
//	logits = lm_head · norm(h), by draft ids
//
// g is fc · [three streams of the target], or h of the head's own step before. The embedding is the
// target's, unless the file has one.
//
// Published heads are folders of safetensors. The configuration is that of their layer, as EAGLE's
// authors and SpecForge write it, or has it in transformer_layer_config, as speculators does.
// llama.cpp's converter writes GGUF files of the architecture eagle3.
type eagle struct {
	spec   Spec
	config config // of its layer
	w      *weights
	index  int               // of its layer: the first after the target's
	taps   [3]int            // the streams that it reads, by the number of layers before them
	normed bool              // norm_before_residual
	ids    []int32           // of the target's tokens, by draft id; nil: the same ones
	failed func(error) error // names the head
}

// OpenEagle is [Build] with the EAGLE-3 head at path, which it opens. If path is empty, it is the head
// that the model brings: eagle3 in its folder, or registered by that name.
func OpenEagle(f *modelfile.File, path string) (m *Model, head *modelfile.File, err error) {
	brought := path == ""
	if brought {
		path = f.Path() + "/eagle3"
	}
	head, err = modelfile.Open(path)
	switch {
	case err != nil && brought:
		return nil, nil, fmt.Errorf("the model brings no EAGLE-3 head: %w; --speculative eagle=FOLDER takes another one", err)
	case err != nil:
		return nil, nil, fmt.Errorf("the EAGLE-3 head: %w", err)
	}
	if m, err = BuildEagle(f, head); err != nil {
		return nil, nil, errors.Join(err, head.Close())
	}
	return m, head, nil
}

// BuildEagle is [Build] with the EAGLE-3 head of the file head.
func BuildEagle(f, head *modelfile.File) (*Model, error) {
	var e *eagle
	failed := func(err error) error { return fmt.Errorf("EAGLE-3 head %s: %w", head.Path(), err) }
	m, err := guarded(f, func(a *architecture, s *Spec, w *weights) (predictor, error) {
		if a.encode != nil {
			return nil, fmt.Errorf("%w: EAGLE-3 heads predict tokens of models that continue texts, which %s does not", ErrConfig, a.title)
		}
		err := head.Guard(func() (err error) {
			if e, err = newEagle(head, s, w); err == nil {
				e.failed = failed
			}
			return err
		})
		if err != nil {
			return nil, failed(err)
		}
		return e, nil
	})
	if err != nil {
		return nil, err
	}
	if err := e.w.unused(&e.spec); err != nil {
		return nil, failed(err)
	}
	return m, nil
}

// eagleLayers are the prefixes that the names of a head's layer have in safetensors.
var eagleLayers = []string{"midlayer.", "layers.0."}

// eagleNames returns the names of a head's tensors.
func eagleNames(f *modelfile.File) *architecture {
	a := &architecture{hubNames: names{"fc": "*fc", "d2t": "*d2t.", "t2d": "*t2d."}, ggufNames: names{"fc": "fc", "d2t": "d2t.", "hidden_norm": "blk.0.attn_norm_2"}}
	prefix := eagleLayers[0]
	for _, t := range f.Tensors() {
		if strings.HasPrefix(strings.TrimPrefix(t.Name, "model."), eagleLayers[1]) {
			prefix = eagleLayers[1]
		}
	}
	a.hubNames["hidden_norm"] = "*" + prefix + "hidden_norm"
	for short, name := range hubNames {
		if rest, ok := strings.CutPrefix(name, "*layers.#."); ok {
			a.hubNames[short], a.ggufNames[short] = "*"+prefix+rest, "blk.0."+short
		}
	}
	return a
}

// newEagle reads the head in f, for a target of that specification and weights.
func newEagle(f *modelfile.File, target *Spec, of *weights) (*eagle, error) {
	c := &config{m: f.Meta(), gguf: f.Format() == modelfile.GGUF, name: "eagle3"}
	if name, _ := f.Meta().String("general.architecture"); c.gguf && name != c.name {
		return nil, fmt.Errorf("%w %q, want %q", ErrUnknown, name, c.name)
	}
	own := *c // of the layer
	if inner := f.Meta().Under("transformer_layer_config"); !c.gguf && len(inner.Keys()) > 0 {
		own.m = inner
	}
	e := &eagle{spec: own.spec(plan.RMSNorm), w: newWeights(f, eagleNames(f)), index: target.Layers, normed: c.flag("norm_before_residual", false)}
	s := &e.spec
	s.Rope.Interleaved = c.gguf
	attentionBias(&own, s)
	mlpBias(&own, s)
	c.only("eagle_config.use_aux_hidden_state", true)
	for _, key := range []string{"norm_before_fc", "fc_norm", "norm_output"} {
		c.only(key, false)
	}
	if n := c.integer("target_hidden_size", target.Hidden); n != target.Hidden {
		c.failf("%s is %d; the hidden states of the target have %d numbers", c.key("target_hidden_size"), n, target.Hidden)
	}
	if s.Layers != 1 {
		c.failf("it has %d layers; EAGLE-3 heads have 1", s.Layers)
	}
	e.taps = c.eagleTaps(target.Layers)
	vocab := layer{of, noLayer}.rowsOf("token_embd")
	if n := own.first("vocab_size", vocab); n > vocab {
		c.failf("%s is %d; the target has %d tokens", own.key("vocab_size"), n, vocab)
	}
	e.ids = c.draftIDs(layer{e.w, noLayer}, vocab)
	if own.err != nil {
		return nil, own.err
	}
	// The head is the layer after the target's last one, and sees no position without a hidden state.
	s.Windows, s.Unseen = make([]int, e.index+1), 1
	e.config = own
	return e, c.err
}

// rowsOf returns the rows of a tensor, or 0.
func (l layer) rowsOf(short string) int {
	if t := l.find(l.name(short, ".weight")); t != nil && len(t.Shape) == 2 {
		return t.Shape[0]
	}
	return 0
}

// eagleTaps returns the streams that the head reads, by the number of layers before them. vLLM's key
// and GGUF's have these numbers; eagle_config, which SGLang reads, has the layer before each, counted
// from 0. Without a key both programs read the streams before layers 2 and n/2 and the last three.
func (c *config) eagleTaps(layers int) (taps [3]int) {
	list, from := []int64{2, int64(layers / 2), int64(layers - 3)}, "the default"
	for _, k := range []struct {
		key   string
		after int64
	}{{"eagle_config.eagle_aux_hidden_state_layer_ids", 1}, {"eagle_aux_hidden_state_layer_ids", 0}, {"extract_layers", 0}} {
		if found, ok := c.m.Ints(c.key(k.key)); ok && len(found) > 0 {
			list, from = nil, c.key(k.key)
			for _, n := range found {
				list = append(list, min(n, largest)+k.after)
			}
		}
	}
	if len(list) != len(taps) {
		c.failf("%s has %d layers; EAGLE-3 heads read 3", from, len(list))
		return taps
	}
	for i, n := range list {
		if n < 0 || n > int64(layers) {
			c.failf("%s reads the stream after %d layers; the target has %d layers", from, n, layers)
			return taps
		}
		taps[i] = int(n)
	}
	return taps
}

// draftIDs returns the target's token of each draft id, or nil if they are the same. In safetensors
// d2t has the difference of both, in GGUF the token.
func (c *config) draftIDs(w layer, vocab int) []int32 {
	w.ignore("t2d") // says which tokens d2t names
	w.find(w.name("t2d", ""))
	t := w.find(w.name("d2t", ""))
	if t == nil {
		return nil
	}
	if t.DType != tensor.I64 && t.DType != tensor.I32 || len(t.Shape) != 1 {
		c.failf("%s is %v of shape %v, want integers in one row", t.Name, t.DType, t.Shape)
		return nil
	}
	if n := t.Shape[0]; n > vocab {
		c.failf("%s has %d tokens; the target has %d", t.Name, n, vocab)
		return nil
	}
	ids, taken := make([]int32, t.Shape[0]), make([]bool, vocab)
	for i := range ids {
		id := int64(0)
		if t.DType == tensor.I64 {
			id = int64(binary.LittleEndian.Uint64(t.Data[8*i:])) //nolint:gosec // a signed number's bits
		} else {
			id = int64(int32(binary.LittleEndian.Uint32(t.Data[4*i:]))) //nolint:gosec // a signed number's bits
		}
		if !c.gguf && id <= largest {
			id += int64(i)
		}
		if id < 0 || id >= int64(vocab) || taken[id] {
			c.failf("%s[%d] stands for token %d, which the target does not have or an earlier one stands for; the target has %d tokens", t.Name, i, id, vocab)
			return nil
		}
		ids[i], taken[id] = int32(id), true //nolint:gosec // below vocab
	}
	return ids
}

// own returns the head's tensors of its layer, and those outside of it.
func (e *eagle) own(w *weights) (inside, top layer) {
	e.w.b, e.w.spec = w.b, &e.spec
	return layer{e.w, e.index}, layer{e.w, noLayer}
}

// feature implements [predictor].
func (e *eagle) feature(b *plan.Builder, s *Spec, w *weights, _ plan.Value) plan.Value {
	b.Wrap(e.failed)
	defer b.Wrap(nil)
	_, top := e.own(w)
	if e.spec.rope(&e.config, e.w); e.config.err != nil {
		b.Fail(e.config.err)
	}
	var all plan.Value
	for i, n := range e.taps {
		x := w.residuals[n]
		if b.Cols(x) != s.Hidden {
			b.Failf("an EAGLE-3 head reads hidden states of %d numbers, those of this architecture have %d", s.Hidden, b.Cols(x))
		}
		if i == 0 {
			all = x
		} else {
			all = b.Concat(all, x)
		}
	}
	if fc := top.weight("fc"); len(fc.Shape) != 2 || fc.Shape[1] != b.Cols(all) {
		b.Fail(fmt.Errorf("%w: %s has shape %v, want %d columns for three hidden states of the target", ErrTensor, fc.Name, fc.Shape, b.Cols(all)))
	}
	return linear(b, top, all, "fc", e.spec.Hidden, without)
}

// layer implements [predictor].
func (e *eagle) layer(b *plan.Builder, _ *Spec, w *weights, hidden plan.Value) plan.Value {
	b.Wrap(e.failed)
	defer b.Wrap(nil)
	own, top := e.own(w)
	s := &e.spec
	b.Layer(own.index)
	defer b.Layer(plan.NoLayer)
	table := layer{w, noLayer}.weight("token_embd")
	if top.has("token_embd") {
		table = top.weight("token_embd")
	}
	embedded := norm(b, s, own, b.Embed(table), "attn_norm", s.Hidden)
	normed := norm(b, s, own, hidden, "hidden_norm", s.Hidden)
	if e.normed {
		hidden = normed
	}
	x := b.Add(hidden, attention(b, s, own, b.Concat(embedded, normed)))
	return b.Add(x, feedForward(b, s, own, norm(b, s, own, x, "ffn_norm", s.Hidden)))
}

// logits implements [predictor].
func (e *eagle) logits(b *plan.Builder, s *Spec, w *weights, x plan.Value) (in, logits plan.Value) {
	b.Wrap(e.failed)
	defer b.Wrap(nil)
	_, top := e.own(w)
	in = norm(b, &e.spec, top, x, "output_norm", e.spec.Hidden)
	rows := layer{w, noLayer}.weight("token_embd").Shape[0]
	switch {
	case e.ids != nil:
		return in, b.Spread(b.Linear(in, top.matrix("output", len(e.ids)), nil), e.ids, rows)
	case top.has("output"):
		return in, b.Linear(in, top.matrix("output", rows), nil)
	}
	return in, outputLogits(b, s, layer{w, noLayer}, in)
}
