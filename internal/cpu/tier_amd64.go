package cpu

import "golang.org/x/sys/cpu"

// tiers returns the instruction sets of this processor, best first.
func tiers() []tier {
	var all []tier
	avx2 := cpu.X86.HasAVX2 && cpu.X86.HasFMA && cpu.X86.HasF16C
	if avx2 && cpu.X86.HasAVX512F && cpu.X86.HasAVX512BW && cpu.X86.HasAVX512DQ && cpu.X86.HasAVX512VL && cpu.X86.HasAVX512VNNI {
		all = append(all, tier{name: "avx512", dots: dotsAVX512, stored: storedAVX512, rows: rowsAVX2, vector: &vectorAVX512, attention: &attentionAVX512, quantized: &quantizedAVX512})
	}
	if avx2 {
		all = append(all, tier{name: "avx2", dots: dotsAVX2, stored: storedAVX2, rows: rowsAVX2, vector: &vectorAVX2, attention: &attentionAVX2, quantized: &quantizedAVX2})
	}
	return append(all, generic)
}
