package cpu

import "golang.org/x/sys/cpu"

// tiers are the sets of instructions that this processor has, the best first.
func tiers() []tier {
	var all []tier
	avx2 := cpu.X86.HasAVX2 && cpu.X86.HasFMA && cpu.X86.HasF16C
	if avx2 && cpu.X86.HasAVX512F && cpu.X86.HasAVX512DQ && cpu.X86.HasAVX512VL {
		all = append(all, tier{"avx512", dotsAVX512, rowsAVX2})
	}
	if avx2 {
		all = append(all, tier{"avx2", dotsAVX2, rowsAVX2})
	}
	return append(all, generic)
}
