package mesh

import (
	"fmt"
	"slices"

	"github.com/realizar/realizar/internal/plan"
)

// A page in host memory holds the pages of all parts, one after the other. Parts with the same heads
// share one, which the first of them writes and all read.
type pageLayout struct {
	part  [][]span // by group and part: its place in the page
	owner [][]bool // by group and part: writes the page
}

// A span is bytes of a page.
type span struct{ lo, hi int }

// layoutPages places the pages of the parts of p.
func layoutPages(p *plan.Program, parts []Part, l *plan.Limits) (pageLayout, error) {
	var y pageLayout
	for g := range p.Groups {
		// heads returns what of the group's states a part has.
		heads := func(part *Part) (rs []plan.Range) {
			for s, state := range p.States {
				if state.Group == g {
					rs = append(rs, part.heads[s])
				}
			}
			return rs
		}
		var spans []span
		var owns []bool
		end := 0
		for i := range parts {
			n, err := l.PageBytes(parts[i].Program, g)
			if err != nil {
				return y, err
			}
			own := heads(&parts[i])
			first := slices.IndexFunc(parts[:i], func(other Part) bool { return slices.Equal(heads(&other), own) })
			if first >= 0 {
				spans, owns = append(spans, spans[first]), append(owns, false)
				continue
			}
			spans, owns = append(spans, span{end, end + n}), append(owns, true)
			end += n
		}
		if n, err := l.PageBytes(p, g); err != nil || n != end {
			return y, fmt.Errorf("mesh: the states of layers with different numbers of heads share pages, which cannot be divided into %d parts (%d bytes instead of %d); use --split layers or fewer devices", len(parts), end, n)
		}
		y.part, y.owner = append(y.part, spans), append(y.owner, owns)
	}
	return y, nil
}

// operations appends to ops what part does for the operations of a step on pages. The result is nil
// only if there are none.
func (y *pageLayout) operations(ops, of []plan.StateOp, part int) []plan.StateOp {
	ops = slices.Grow(ops, len(of))
	for _, op := range of {
		s := y.part[op.Group][part]
		if op.Kind == plan.SavePage && !y.owner[op.Group][part] || s.lo == s.hi {
			continue
		}
		op.Host = op.Host[s.lo:s.hi:s.hi]
		ops = append(ops, op)
	}
	return ops
}
