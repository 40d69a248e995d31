package lower

import "github.com/realizar/realizar/internal/plan"

// seqs returns the maximum number of sequences of a step of shape sh.
func (c *Compiler) seqs(sh *Shape) int { return min(sh.Tokens, c.Layout.lim.Seqs) }

// recurrentMoves returns the bytes that a recurrent layer reads and writes for sequences with least
// to most tokens in the step: the matrix at the beginning of a chunk and at its end, the rows of the
// chunk, and token bytes for each token.
func recurrentMoves(matrix, rows, token, least, most int) func(b *plan.Batch) int {
	return func(b *plan.Batch) int {
		total := 0
		for s := range b.Seqs() {
			n := int(b.Start[s+1] - b.Start[s])
			if n < least || n > most {
				continue
			}
			from := int(b.Positions[b.Start[s]])
			to := from + n
			total += n*token + 4*rows*(to-from/plan.RecurrentChunk*plan.RecurrentChunk)
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
