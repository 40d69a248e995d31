package cuda

import (
	"github.com/realizar/realizar/internal/fuse"
	"github.com/realizar/realizar/internal/plan"
)

// position is [plan.Position].
type position struct{ ordinary }

func (position) writes(*fuse.Stage) bool { return false }

func (position) launches(c *compiler, s *fuse.Stage) ([]launch, error) {
	at := c.step.positions
	if axis := s.Node().Attr.(plan.PositionAttr).Axis; axis > 0 {
		at = c.step.axes[axis-1]
	}
	return c.lookUp(s.Node(), embedArgs{tokens: at})
}
