package synth

import (
	"bytes"
	"encoding/binary"
	"io"
	"math"
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

// weights returns the tensors of a model in the order of its file.
//
// Rows have length 1, so a projection of normalized values, of size 1, has size 1 again. The
// outputs of feed-forward layers are divided by the square root of half the number of layers, so
// the residual stream grows to about 1 for any number of layers. The embedding has the size that a
// head needs for logits of logitDeviation, since both may be one table. It is much smaller than the
// outputs of the layers; otherwise the most likely token would be the last one again. The output of
// attention is divided by 4, because these models attend to all tokens almost equally and the
// averages would make all positions alike.
func (s *Shape) weights() []weight {
	var all []weight
	matrix := func(r role, layer int, name string, rows, cols int, length float64) {
		all = append(all, weight{name: name + ".weight", role: r, layer: layer, shape: []int{rows, cols}, std: length / math.Sqrt(float64(cols))})
	}
	norm := func(layer int, name string, n int) {
		all = append(all, weight{name: name + ".weight", layer: layer, shape: []int{n}, mean: 1, std: 0.1})
	}
	experts := func(r role, layer int, name string, rows, cols int, length float64) {
		all = append(all, weight{name: name + "_exps.weight", role: r, layer: layer, shape: []int{s.Experts, rows, cols}, std: length / math.Sqrt(float64(cols))})
	}
	if s.RopeLong.Factor > 0 {
		f := s.ropeFactors()
		all = append(all, weight{name: "rope_freqs.weight", shape: []int{len(f)}, values: f})
	}
	matrix(embedding, 0, "token_embd", s.Vocab, s.Hidden, logitDeviation)
	fromFFN := math.Sqrt(2 / float64(s.Layers))
	fromAttention := fromFFN / 4
	q, kv := s.Heads*s.HeadDim, s.KVHeads*s.HeadDim
	for i := range s.Layers {
		block := "blk." + strconv.Itoa(i) + "."
		projection := func(r role, name string, rows int) {
			matrix(r, i, block+name, rows, s.Hidden, 1)
			if s.QKVBias {
				all = append(all, weight{name: block + name + ".bias", layer: i, shape: []int{rows}, std: 0.1})
			}
		}
		norm(i, block+"attn_norm", s.Hidden)
		projection(attnQ, "attn_q", q)
		projection(attnK, "attn_k", kv)
		projection(attnV, "attn_v", kv)
		if s.QKNorm {
			norm(i, block+"attn_q_norm", s.HeadDim)
			norm(i, block+"attn_k_norm", s.HeadDim)
		}
		matrix(attnOutput, i, block+"attn_output", s.Hidden, q, fromAttention)
		norm(i, block+"ffn_norm", s.Hidden)
		if s.Experts > 0 {
			matrix(router, i, block+"ffn_gate_inp", s.Experts, s.Hidden, 1)
			experts(ffnGate, i, block+"ffn_gate", s.ExpertFFN, s.Hidden, 1)
			experts(ffnUp, i, block+"ffn_up", s.ExpertFFN, s.Hidden, 1)
			// The outputs of a token's experts are averaged, which divides their sum by the root
			// of their number.
			experts(ffnDown, i, block+"ffn_down", s.Hidden, s.ExpertFFN, fromFFN*math.Sqrt(float64(s.Used)))
			continue
		}
		matrix(ffnGate, i, block+"ffn_gate", s.FFN, s.Hidden, 1)
		matrix(ffnUp, i, block+"ffn_up", s.FFN, s.Hidden, 1)
		matrix(ffnDown, i, block+"ffn_down", s.Hidden, s.FFN, fromFFN)
	}
	norm(0, "output_norm", s.Hidden)
	if !s.Tied {
		matrix(head, 0, "output", s.Vocab, s.Hidden, logitDeviation)
	}
	return all
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
