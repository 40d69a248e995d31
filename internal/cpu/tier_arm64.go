package cpu

import (
	"runtime"

	"golang.org/x/sys/cpu"
)

// neonLanes are those of one register: with more, half as many tokens would share
// the unpacking of a word.
const neonLanes = 4

// tiers are the sets of instructions that this processor has, the best first. Every
// processor of a Mac has the products of bytes.
func tiers() []tier {
	if cpu.ARM64.HasASIMDDP || runtime.GOOS == "darwin" {
		return []tier{{name: "neon", dots: dotsNEON, stored: storedNEON, rows: rowsNEON, vector: &vectorNEON, attention: &attentionNEON, quantized: &quantizedNEON}, generic}
	}
	return []tier{generic}
}
