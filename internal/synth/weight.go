package synth

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"io"
	"math"
	"slices"
	"strconv"

	"github.com/realizar/realizar/internal/random"
	"github.com/realizar/realizar/tensor"
)

// A weight is a tensor of a model without a format.
type weight struct {
	name      string
	role      role
	layer     int
	shape     []int
	mean, std float64
	values    []float32 // nil if the values are random
}

func (w *weight) cols() int { return w.shape[len(w.shape)-1] }

func (w *weight) elems() int {
	n := 1
	for _, d := range w.shape {
		n *= d
	}
	return n
}

// logitDeviation is the standard deviation of the logits. With this value some tokens are much more
// likely than others, and none is certain.
const logitDeviation = 1.5

// A layout lists the tensors of a model.
type layout struct {
	s   *Shape
	all []weight

	fromFFN, fromMixer float64 // lengths of the rows whose results are added to the residual stream
}

// leastMixer is the least standard deviation of the output of attention and of what is in its place.
const leastMixer = 9e-4

// weights returns the tensors of a model in the order of its file.
//
// Rows have length 1, so a projection of normalized values, of size 1, has size 1 again. The
// outputs of feed-forward layers are divided by the square root of half the number of layers, so
// the residual stream grows to about 1 for any number of layers. The embedding has the size that a
// head needs for logits of logitDeviation, since both may be one table. It is much smaller than the
// outputs of the layers; otherwise the most likely token would be the last one again. The output of
// attention, and of what is in its place, is divided by 4, because these models attend to all tokens
// almost equally and the averages would make all positions alike. It is
// not below leastMixer, because the scales of some formats are float16.
func (s *Shape) weights() []weight {
	fromFFN := math.Sqrt(2 / float64(s.Layers))
	l, f := &layout{s: s, fromFFN: fromFFN, fromMixer: max(fromFFN/4, leastMixer*math.Sqrt(float64(max(s.Hidden, s.Heads*s.HeadDim))))}, s.family()
	if s.RopeLong.Factor > 0 {
		f := s.ropeFactors()
		l.all = append(l.all, weight{name: "rope_freqs.weight", shape: []int{len(f)}, values: f})
	}
	l.matrix(embedding, 0, "token_embd", s.Vocab, s.Hidden, logitDeviation)
	for i := range s.Layers {
		l.norm(i, block(i)+"attn_norm", s.Hidden)
		switch {
		case !s.attends(i):
			f.mixer(l, i)
		case f.attention != nil:
			f.attention(l, i)
		default:
			l.attention(i)
		}
		l.norm(i, block(i)+cmp.Or(f.ffnNorm, "ffn_norm"), s.Hidden)
		l.feedForward(i)
	}
	l.norm(0, cmp.Or(f.outputNorm, "output_norm"), s.Hidden)
	if !s.Tied {
		l.matrix(head, 0, "output", s.Vocab, s.Hidden, logitDeviation)
	}
	return l.all
}

// attends reports whether a layer has attention.
func (s *Shape) attends(layer int) bool {
	return s.Attending == nil || slices.Contains(s.Attending, layer)
}

// block returns the prefix of a layer's tensors.
func block(layer int) string { return "blk." + strconv.Itoa(layer) + "." }

// matrix adds a matrix whose rows have that length.
func (l *layout) matrix(r role, layer int, name string, rows, cols int, length float64) {
	l.all = append(l.all, weight{name: name + ".weight", role: r, layer: layer, shape: []int{rows, cols}, std: length / math.Sqrt(float64(cols))})
}

// stack adds n matrices in one tensor.
func (l *layout) stack(r role, layer int, name string, n, rows, cols int, length float64) {
	l.all = append(l.all, weight{name: name + ".weight", role: r, layer: layer, shape: []int{n, rows, cols}, std: length / math.Sqrt(float64(cols))})
}

// vector adds numbers that are float32 in every mix.
func (l *layout) vector(layer int, name string, mean, std float64, shape ...int) {
	l.all = append(l.all, weight{name: name, layer: layer, shape: shape, mean: mean, std: std})
}

func (l *layout) norm(layer int, name string, n int) { l.vector(layer, name+".weight", 1, 0.1, n) }

// attention adds queries, keys, values and the output of attention.
func (l *layout) attention(i int) {
	s := l.s
	q, kv := s.Heads*s.HeadDim, s.KVHeads*s.HeadDim
	projection := func(r role, name string, rows int) {
		l.matrix(r, i, block(i)+name, rows, s.Hidden, 1)
		if s.QKVBias {
			l.vector(i, block(i)+name+".bias", 0, 0.1, rows)
		}
	}
	queries, length := q, l.fromMixer
	if s.OutGate { // which halves the result
		queries, length = 2*q, 2*l.fromMixer
	}
	projection(attnQ, "attn_q", queries)
	projection(attnK, "attn_k", kv)
	projection(attnV, "attn_v", kv)
	if s.QKNorm {
		l.norm(i, block(i)+"attn_q_norm", s.HeadDim)
		l.norm(i, block(i)+"attn_k_norm", s.HeadDim)
	}
	l.matrix(attnOutput, i, block(i)+"attn_output", s.Hidden, q, length)
}

// feedForward adds a layer's experts, or its feed-forward layer.
func (l *layout) feedForward(i int) {
	s := l.s
	gated := func(suffix string, ffn int) {
		l.matrix(ffnGate, i, block(i)+"ffn_gate"+suffix, ffn, s.Hidden, 1)
		l.matrix(ffnUp, i, block(i)+"ffn_up"+suffix, ffn, s.Hidden, 1)
		l.matrix(ffnDown, i, block(i)+"ffn_down"+suffix, s.Hidden, ffn, l.fromFFN)
	}
	if s.Experts == 0 || i < s.Dense {
		gated("", s.FFN)
		return
	}
	l.matrix(router, i, block(i)+"ffn_gate_inp", s.Experts, s.Hidden, 1)
	l.stack(ffnGate, i, block(i)+"ffn_gate_exps", s.Experts, s.ExpertFFN, s.Hidden, 1)
	l.stack(ffnUp, i, block(i)+"ffn_up_exps", s.Experts, s.ExpertFFN, s.Hidden, 1)
	// The outputs of a token's experts are averaged, which divides their sum by the root of their
	// number.
	l.stack(ffnDown, i, block(i)+"ffn_down_exps", s.Experts, s.Hidden, s.ExpertFFN, l.fromFFN*math.Sqrt(float64(s.Used)))
	if s.SharedFFN == 0 {
		return
	}
	gated("_shexp", s.SharedFFN)
	if s.family().sharedGate {
		l.vector(i, block(i)+"ffn_gate_inp_shexp.weight", 0, 1/math.Sqrt(float64(s.Hidden)), s.Hidden)
	}
}

// ropeFactors returns the divisors of the rotary frequencies, one for each pair of a head: Llama
// 3's scaling ([RopeLong]) with a smooth transition between the two bounds, as llama.cpp's
// converter writes it.
func (s *Shape) ropeFactors() []float32 {
	long := &s.RopeLong
	all := make([]float32, s.HeadDim/2)
	for i := range all {
		wavelength := 2 * math.Pi * math.Pow(s.RopeBase, 2*float64(i)/float64(s.HeadDim))
		turns := float64(long.Original) / wavelength // rotations in the original context
		switch {
		case turns > long.High:
			all[i] = 1
		case turns < long.Low:
			all[i] = float32(long.Factor)
		default:
			kept := (turns - long.Low) / (long.High - long.Low)
			all[i] = float32(1 / ((1-kept)/long.Factor + kept))
		}
	}
	return all
}

// Params returns the number of the model's trained weights, without ropeFactors.
func (s *Shape) Params() int64 {
	var n int64
	for _, w := range s.weights() {
		if w.values == nil {
			n += int64(w.elems())
		}
	}
	return n
}

// BitsPerWeight returns the size in bits of the tensors of a file of this shape and mix, divided by
// the number of weights.
func (m *Mix) BitsPerWeight(s *Shape) float64 {
	var bits, n float64
	for _, w := range s.weights() {
		d := m.dtype(s, w.role, w.layer, w.cols())
		bits += 8 * float64(w.elems()/d.BlockLen()*d.BlockBytes())
		n += float64(w.elems())
	}
	return bits / n
}

// fixed writes values that are not random.
func fixed(values []float32) io.WriterTo {
	var data []byte
	for _, v := range values {
		data = binary.LittleEndian.AppendUint32(data, math.Float32bits(v))
	}
	return bytes.NewReader(data)
}

// filler returns the filler of a weight's data in format d.
func (w *weight) filler(seed uint64, d tensor.DType) (*random.Filler, error) {
	return random.NewFiller(random.Seed(seed, w.name), d, w.mean, w.std)
}
