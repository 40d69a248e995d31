package lower

import (
	"github.com/realizar/realizar/internal/fuse"
	"github.com/realizar/realizar/internal/plan"
)

// position implements [plan.Position].
type position struct{ ordinary }

func (position) writes(*fuse.Stage) bool { return false }

func (position) launches(c *Compiler, s *fuse.Stage) ([]Launch, error) {
	at := c.Step.positions
	if axis := s.Node().Attr.(plan.PositionAttr).Axis; axis > 0 {
		at = c.Step.axes[axis-1]
	}
	return c.lookUp(s.Node(), embedArgs{tokens: at})
}
