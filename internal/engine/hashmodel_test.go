package engine_test

import (
	"cmp"
	"math"
	"math/bits"
	"slices"

	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/internal/sample"
)

// The model that the fake device runs has a layer for each group of pages. Each
// keeps a number for every position:
//
//	x[0][p]   = hash(id, p, class of the length)
//	x[l+1][p] = hash(x[l][p], sum of hash(x[l][q], q) over what p sees of group l)
//	out[p]    = x[layers][p]
//
// A recurrent layer keeps one number for each sequence:
//
//	h[p]      = hash(h[p-1], x[l][p]), and 0 before the first position
//	x[l+1][p] = hash(x[l][p], h[p])
//
// A recurrent layer in chunks keeps one number for the positions before the current chunk, and the
// numbers x of the positions in the current chunk:
//
//	h[0]      = 0
//	h[i+1]    = hash(h[i], sum of hash(x[l][q], q) over the positions q of chunk i)
//	x[l+1][p] = hash(h[chunk of p], x[l][p], sum of hash(x[l][q], q) from the chunk's first q to p)
//
// so that every position that is missing, foreign, old or in the wrong place changes
// all that comes after it, and equal histories have equal pages.
const (
	vocab = 61 // and columns of logits; a mask is two words
	deep  = 2  // columns of a hidden state

	recurrent = -1 // the window of a recurrent layer
	delta     = -2 // the window of a recurrent layer in chunks
)

// chunked returns the window of a layer that sees the positions since the last multiple of n.
func chunked(n int) int { return -1000 - n }

// hasSlots reports whether the model has recurrent layers.
func (m *hashModel) hasSlots() bool {
	return slices.Contains(m.windows, recurrent) || slices.Contains(m.windows, delta)
}

// checkpoints returns the distance of positions that can have checkpoints.
func (m *hashModel) checkpoints() int {
	n := 64
	for slices.Contains(m.windows, delta) && n%m.chunk() > 0 {
		n += 64
	}
	return n
}

// hash mixes xs, in order.
func hash(xs ...uint64) uint64 {
	h := uint64(0x9e3779b97f4a7c15)
	for _, x := range xs {
		h = (h ^ x) * 0xd6e8feb86659fd93
		h ^= h >> 32
	}
	return h
}

// A hashModel holds the parameters of a model of hashes.
type hashModel struct {
	windows  []int // by layer, 0: all of the past, recurrent, delta or chunked
	every    int   // positions in a chunk of a delta layer; 0: 64
	numbers  int   // in a slot, all the same; 0: 1; beside delta layers, recurrent ones have fewer
	longFrom int   // longer sequences have other rotary frequencies; 0 for none
	dynamic  bool  // each length has its own
	whole    bool  // reads sequences as a whole; there are no windows
	head     bool  // has a head, which computes what the model does; there are no recurrent layers
}

func (m *hashModel) chunk() int { return cmp.Or(m.every, 64) }

// slot returns how many numbers a slot has of a recurrent layer or a delta layer.
func (m *hashModel) slot(w int) int {
	if w == recurrent && slices.Contains(m.windows, delta) {
		return max(1, m.numbers/16)
	}
	return max(1, m.numbers)
}

// program returns the model's program. A page of a layer takes 8 bytes for each of its tokens if
// the cache is F32, and a slot takes 8 bytes for each of its numbers.
func (m *hashModel) program() *plan.Program {
	p := &plan.Program{Shapes: [][2]plan.Dim{{plan.Rows, deep}, {plan.Rows, vocab}}, Hidden: 0, Logits: 1, Vocab: vocab, Whole: m.whole}
	for i, w := range m.windows {
		name := string(rune('a' + i))
		keys := plan.State{Name: name, KVHeads: 1, HeadDim: 1, ValueDim: 1}
		sums := plan.State{Name: name, Kind: plan.PerSequence, Size: 2 * m.slot(w)}
		p.Nodes = append(p.Nodes, plan.Node{Op: plan.Attention, State: len(p.States), Layer: i})
		switch {
		case w == recurrent:
			p.States = append(p.States, sums)
		case w == delta:
			sums.Every, keys.Chunk, keys.Exact = m.chunk(), m.chunk(), true
			p.States = append(p.States, sums, keys)
		case w < 0:
			keys.Chunk = -1000 - w
			p.States = append(p.States, keys)
		default:
			keys.Window = w
			p.States = append(p.States, keys)
		}
	}
	for i := range p.States { // each is a group
		s := &p.States[i]
		s.Group = i
		p.Groups = append(p.Groups, plan.Group{Kind: s.Kind, Window: s.Window, Chunk: s.Chunk, Every: s.Every})
	}
	if m.head {
		p.Head = &plan.Head{First: len(p.Nodes), Residual: -1, Hidden: 0, Logits: 1}
		p.Nodes = append(p.Nodes, p.Nodes...)
	}
	if m.longFrom > 0 {
		a := plan.RopeAttr{HeadDim: 4, Dims: 4, Freqs: []float64{1, 0.1}, Scale: 1, LongFrom: m.longFrom}
		if m.dynamic {
			a.Dynamic = &plan.DynamicNTK{Base: 100, Factor: 2}
		} else {
			a.LongFreqs = []float64{0.5, 0.05}
		}
		p.Nodes = append(p.Nodes, plan.Node{Op: plan.Rope, Attr: a, State: plan.NoState, Layer: plan.NoLayer})
	}
	return p
}

// class returns the class of rotary frequencies of a length.
func (m *hashModel) class(length int) int {
	switch {
	case m.longFrom == 0 || length <= m.longFrom:
		return 0
	case m.dynamic:
		return length
	}
	return 1
}

// fails reports whether the model cannot compute the position with that output.
func fails(out uint64) bool { return out>>40%8192 == 0 }

// numbers returns n numbers derived from out.
func numbers(out uint64, n int) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(hash(out, uint64(n), uint64(i)) >> 40)
	}
	return x
}

// adjusted returns the adjustments of every token.
type adjusted [vocab]struct {
	bias   float32
	count  int32
	prompt bool
}

// choose returns the token after the position with that output, and its log-probability. Everything
// that may change a sample changes it; what has no effect does not. ok is false if no token is
// allowed.
func choose(out uint64, p *sample.Params, mask []uint32, a *adjusted) (token int32, logProbability float32, ok bool) {
	float := func(x float32) uint64 { return uint64(math.Float32bits(x)) }
	h := hash(out, float(p.Temperature), uint64(p.TopK), float(p.TopP), float(p.MinP), float(p.Typical), p.Seed, uint64(p.Choice),
		float(p.Repetition), float(p.Frequency), float(p.Presence))
	repetition := p.Repetition != 0 && p.Repetition != 1
	open := uint64(1)<<vocab - 1
	if mask != nil {
		open &= uint64(mask[0]) | uint64(mask[1])<<32
	}
	for id := range a {
		t := &a[id]
		if math.IsInf(float64(t.bias), -1) {
			open &^= 1 << id
		}
		if open>>id&1 == 0 {
			continue
		}
		n := uint64(0)
		if repetition && (t.prompt || t.count > 0) {
			n = 1
		}
		if p.Presence != 0 && t.count > 0 {
			n |= 2
		}
		if p.Frequency != 0 {
			n |= uint64(t.count) << 2
		}
		if t.bias != 0 || n != 0 {
			h = hash(h, uint64(id), float(t.bias), n)
		}
	}
	if open == 0 {
		return -1, 0, false
	}
	h = hash(h, open)
	rest := open
	for range h >> 20 % uint64(bits.OnesCount64(open)) {
		rest &= rest - 1
	}
	return int32(bits.TrailingZeros64(rest)), -float32(h >> 44), true
}

// A reader computes the model without pages, steps or other sequences.
type reader struct {
	model   *hashModel
	prompt  int
	terms   [][]uint64 // by layer and position
	sums    []uint64   // by layer, of the terms that the next position sees, without its own; or h
	chunks  []uint64   // by delta layer, of the terms of the chunk
	out     uint64     // of the last position
	damaged bool
}

func newReader(m *hashModel, prompt int) *reader {
	return &reader{model: m, prompt: prompt, terms: make([][]uint64, len(m.windows)), sums: make([]uint64, len(m.windows)), chunks: make([]uint64, len(m.windows))}
}

// fork returns a copy of the reader.
func (r *reader) fork() *reader {
	f := *r
	f.sums, f.chunks, f.terms = slices.Clone(r.sums), slices.Clone(r.chunks), slices.Clone(r.terms)
	for i, t := range f.terms {
		f.terms[i] = slices.Clip(t)
	}
	return &f
}

// read runs one token.
func (r *reader) read(id int32) {
	pos := len(r.terms[0])
	x := hash(uint64(id), uint64(pos), uint64(r.model.class(max(r.prompt, pos+1))))
	for i, w := range r.model.windows {
		t := hash(x, uint64(pos))
		r.terms[i] = append(r.terms[i], t)
		switch {
		case w == recurrent:
			r.sums[i] = hash(r.sums[i], x)
			x = hash(x, r.sums[i])
			continue
		case w == delta:
			r.chunks[i] += t
			x = hash(r.sums[i], x, r.chunks[i])
			if (pos+1)%r.model.chunk() == 0 {
				r.sums[i], r.chunks[i] = hash(r.sums[i], r.chunks[i]), 0
			}
			continue
		case w < 0 && pos%(-1000-w) == 0:
			r.sums[i] = 0
		}
		r.sums[i] += t
		if w > 0 && pos >= w {
			r.sums[i] -= r.terms[i][pos-w]
		}
		x = hash(x, r.sums[i])
	}
	r.out = x
	r.damaged = r.damaged || fails(x)
}
