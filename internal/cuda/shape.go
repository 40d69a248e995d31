package cuda

import (
	"github.com/realizar/realizar/internal/cuda/driver"
	"github.com/realizar/realizar/internal/fuse"
	"github.com/realizar/realizar/internal/plan"
)

// contextSegment is how many positions attention takes together: contexts are cut
// at absolute multiples of it.
const contextSegment = 256

// A shape is the size that a graph is made for: no step that it serves is larger. The
// sizes of the step itself are read from the device's memory.
type shape struct {
	tokens   int // a power of two
	rows     int // a power of two, or 0
	segments int // of the longest context, a power of two

	single bool // every sequence has one token, as in decoding
}

// A samplingShape is the size of a graph that samples, and what it can do.
type samplingShape struct {
	rows     int  // a power of two
	adjusted bool // rows may have adjustments and be sampled typically
}

// shapeOf is the shape of the graph that runs b.
func shapeOf(b *plan.Batch) shape {
	s := shape{tokens: power(len(b.Tokens)), rows: power(len(b.Rows)), segments: 1, single: len(b.Tokens) == b.Seqs()}
	for q := range b.Seqs() {
		last := int(b.Positions[b.Start[q+1]-1])
		s.segments = max(s.segments, last/contextSegment+1)
	}
	s.segments = power(s.segments)
	return s
}

// power is the least power of two that is not below n; 0 for 0.
func power(n int) int {
	if n == 0 {
		return 0
	}
	p := 1
	for p < n {
		p *= 2
	}
	return p
}

// size is how many rows a value has.
func (s *shape) size(d plan.Dim) int {
	if d == plan.Rows {
		return s.rows
	}
	return s.tokens
}

// A launch is a kernel with what it is given, or several of which a step's shape
// chooses, or what else a stream is to do between kernels.
type launch struct {
	name     string                  // for people
	live     bool                    // it is done anew in every step, also where the others are in graphs
	runs     func(sh *shape) string  // nil: the only one runs; or which does, "" for none
	where    string                  // what it does, in words
	single   string                  // "", or what it does of a single row, where that is more
	moves    func(b *plan.Batch) int // the bytes that it reads and writes, see [plan.Span]; nil: none
	stage    *fuse.Stage             // that it is of, or nil
	last     bool                    // of its stage
	sampling bool                    // it chooses tokens
	place    int                     // of its layer in [plan.Result.Layers]; 0: it belongs to none
	rows     plan.Dim
	begin    func(s *driver.Stream, sh *shape) error
}

// kernel is the name of the kernel that runs in a step of that shape, "" for none.
func (l *launch) kernel(sh *shape) string {
	switch {
	case sh.size(l.rows) == 0:
		return ""
	case l.runs != nil:
		return l.runs(sh)
	}
	return l.name
}

// does says in words what it does in a step of that shape.
func (l *launch) does(sh *shape) string {
	if l.single != "" && sh.size(l.rows) == 1 {
		return l.single
	}
	return l.where
}

// give gives the stream all launches that have something to do.
func give(s *driver.Stream, sh *shape, all []launch) error {
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

// idle says that none of the launches has anything to do.
func idle(all []launch, sh *shape) bool {
	for i := range all {
		if !all[i].idle(sh) {
			return false
		}
	}
	return true
}

// idle says that the launch has nothing to do in a step of that shape.
func (l *launch) idle(sh *shape) bool { return l.kernel(sh) == "" }
