package cpu

import (
	"github.com/realizar/realizar/internal/fuse"
	"github.com/realizar/realizar/internal/plan"
)

// observedRoom returns the number of elements of the largest value that can be observed.
func observedRoom(p *plan.Program, lim *plan.Limits) int {
	n := 0
	if lim.Observed {
		for _, s := range p.Shapes {
			n = max(n, lim.Size(s[0])*int(s[1]))
		}
	}
	return n
}

// observe passes the values that a stage has written to the batch's Observe.
func (e *executable) observe(s *fuse.Stage) {
	if e.batch.Observe == nil {
		return
	}
	for _, v := range s.IO().Out {
		rows, cols := e.size(v), int(e.p.Shapes[v][1])
		if rows == 0 {
			continue
		}
		for r := range rows {
			copy(e.seen[r*cols:][:cols], e.row(v, r))
		}
		e.batch.Observe(v, e.seen[:rows*cols:rows*cols])
	}
}
