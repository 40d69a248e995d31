package lower

import (
	"math"

	"github.com/realizar/realizar/internal/cuda/driver"
	"github.com/realizar/realizar/internal/fuse"
	"github.com/realizar/realizar/internal/plan"
)

// contextSegment is the number of positions in a segment of attention. Contexts are divided at
// absolute multiples of it.
const contextSegment = 256

// A Shape is the size for which a graph is captured. The steps that it serves are no larger.
// Kernels read the actual sizes of a step from device memory.
type Shape struct {
	Tokens   int // a power of two
	Rows     int // a power of two, or 0
	segments int // of the longest context, a power of two

	// In a step that decodes, a power of two that no sequence has more tokens than; otherwise 0.
	each int
	// In a step that decodes or has a sequence of one token, a power of two that it has no more
	// sequences than; otherwise 0.
	seqs int

	// In a decode step with prefixes, powers of two; otherwise 0.
	prefix int // segments of the longest prefix
	own    int // the most segments of a sequence outside its prefix
}

// mixed reports whether a step does not decode, but has sequences of one token.
func (s *Shape) mixed() bool { return s.each == 0 && s.seqs > 0 }

// A SamplingShape is the size of a graph that samples, and what the graph supports.
type SamplingShape struct {
	Rows     int  // a power of two
	Adjusted bool // rows may have adjustments and typical sampling
}

// ShapeOf returns the shape of the graph that runs b, whose prefixes are x.
func ShapeOf(b *plan.Batch, x *PrefixSet) Shape {
	s := Shape{
		Tokens: Power(len(b.Tokens)), Rows: Power(len(b.Rows)), segments: 1,
		prefix: Power(x.longest), own: Power(x.own),
	}
	each, least := 0, math.MaxInt
	for q := range b.Seqs() {
		last := int(b.Positions[b.Start[q+1]-1])
		s.segments = max(s.segments, last/contextSegment+1)
		n := int(b.Start[q+1] - b.Start[q])
		each, least = max(each, n), min(least, n)
	}
	s.segments = Power(s.segments)
	if each <= decodeTokens {
		s.each = Power(each)
	}
	if each <= decodeTokens || least == 1 {
		s.seqs = Power(b.Seqs())
	}
	return s
}

// Power returns the smallest power of two that is at least n, or 0 if n is 0.
func Power(n int) int {
	if n == 0 {
		return 0
	}
	p := 1
	for p < n {
		p *= 2
	}
	return p
}

// Size returns the number of rows of a value.
func (s *Shape) Size(d plan.Dim) int {
	if d == plan.Rows {
		return s.Rows
	}
	return s.Tokens
}

// A Launch is a kernel with its arguments, a choice of several by the step's shape, or other work
// of a stream between kernels.
type Launch struct {
	Name     string                  // for reports
	Live     bool                    // queued anew in every step, even if the other launches are in a graph
	runs     func(sh *Shape) string  // nil if the launch always runs; otherwise returns the kernel's name, "" if none runs
	choices  func(most int) string   // nil if there is no choice; see Describe
	where    string                  // the work in words
	single   string                  // the work for a single row, if that is more; otherwise ""
	Moves    func(b *plan.Batch) int // the bytes that it reads and writes; see [plan.Span]; nil for none
	Stage    *fuse.Stage             // the stage of the launch, or nil
	Last     bool                    // the last launch of its stage
	Sampling bool                    // samples tokens
	Place    int                     // index of its layer in [plan.Result.Layers]; 0 if it belongs to none
	rows     plan.Dim
	begin    func(s *driver.Stream, sh *Shape) error
}

// Kernel returns the name of the kernel that runs in a step of that shape, or "" if none does.
func (l *Launch) Kernel(sh *Shape) string {
	switch {
	case sh.Size(l.rows) == 0:
		return ""
	case l.runs != nil:
		return l.runs(sh)
	}
	return l.Name
}

// Describe names the kernels that run within the limits. Of several with a choice it says for how
// many input rows each is chosen, and whether the choice is measured or estimated.
func (l *Launch) Describe(lim *plan.Limits) string {
	if l.choices == nil {
		return l.Name
	}
	return l.choices(lim.Size(l.rows))
}

// Does describes the launch's work in a step of that shape.
func (l *Launch) Does(sh *Shape) string {
	if l.single != "" && sh.Size(l.rows) == 1 {
		return l.single
	}
	return l.where
}

// Give queues all launches that have work in a step of shape sh.
func Give(s *driver.Stream, sh *Shape, all []Launch) error {
	for i := range all {
		if all[i].idle(sh) {
			continue
		}
		if err := all[i].begin(s, sh); err != nil {
			return err
		}
	}
	return nil
}

// Idle reports whether no launch has work in a step of shape sh.
func Idle(all []Launch, sh *Shape) bool {
	for i := range all {
		if !all[i].idle(sh) {
			return false
		}
	}
	return true
}

// idle reports whether the launch has no work in a step of that shape.
func (l *Launch) idle(sh *Shape) bool { return l.Kernel(sh) == "" }
