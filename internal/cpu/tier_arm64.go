package cpu

import (
	"runtime"

	"golang.org/x/sys/cpu"
)

// neonLanes is the lanes of one register. With more lanes, only half as many tokens could share an
// unpacked word.
const neonLanes = 4

// tiers returns the instruction sets of this processor, best first. Every processor of a Mac has
// the dot product of bytes.
func tiers() []tier {
	if cpu.ARM64.HasASIMDDP || runtime.GOOS == "darwin" {
		return []tier{{name: "neon", dots: dotsNEON, stored: storedNEON, rows: rowsNEON, vector: &vectorNEON, attention: &attentionNEON, quantized: &quantizedNEON}, generic}
	}
	return []tier{generic}
}
