package lower

import (
	"github.com/realizar/realizar/internal/cuda/driver"
	"github.com/realizar/realizar/internal/plan"
)

// rowsPoolArgs are the pages of a recurrent layer's rows; see kernels/recurrent.cuh.
type rowsPoolArgs struct {
	base              driver.DevicePtr
	apart             int64
	pageTokens, width int32
}

// recurrentRows returns the location of the rows of a state per token, and of its table.
func (c *Compiler) recurrentRows(state int) (rowsPoolArgs, tableArgs) {
	k := &c.Pools[state]
	pool := rowsPoolArgs{base: k.Base, apart: int64(k.Apart), pageTokens: int32(c.Layout.lim.PageTokens), width: int32(k.State.Width())}
	return pool, tableArgs{pages: c.Step.pages[k.State.Group], places: c.Step.places[k.State.Group]}
}

// seqs returns the maximum number of sequences of a step of shape sh.
func (c *Compiler) seqs(sh *Shape) int { return min(sh.Tokens, c.Layout.lim.Seqs) }

// recurrentMoves returns the bytes of states and rows that a recurrent layer reads and writes: the
// matrix at the beginning of a chunk and at its end, and the rows of the chunk.
func recurrentMoves(matrix, rows int) func(b *plan.Batch) int {
	return func(b *plan.Batch) int {
		total := 0
		for s := range b.Seqs() {
			from := int(b.Positions[b.Start[s]])
			to := from + int(b.Start[s+1]-b.Start[s])
			total += 4 * rows * (to - from/plan.RecurrentChunk*plan.RecurrentChunk)
			if from >= plan.RecurrentChunk {
				total += 4 * matrix
			}
			if to/plan.RecurrentChunk > from/plan.RecurrentChunk {
				total += 4 * matrix
			}
		}
		return total
	}
}
