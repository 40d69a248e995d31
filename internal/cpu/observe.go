package cpu

import (
	"github.com/realizar/realizar/internal/fuse"
	"github.com/realizar/realizar/internal/plan"
)

// observedRoom is how many elements the largest value has that steps let be observed.
func observedRoom(p *plan.Program, lim *plan.Limits) int {
	n := 0
	if lim.Observed {
		for _, s := range p.Shapes {
			n = max(n, lim.Size(s[0])*int(s[1]))
		}
	}
	return n
}

// observe tells the step's batch of what a stage has written, where it wants to know.
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
