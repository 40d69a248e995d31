package cpu

import "golang.org/x/sys/cpu"

// productLoops returns the loops of the tiers.
func productLoops() []peakLoop {
	var loops []peakLoop
	if cpu.X86.HasAVX512F && cpu.X86.HasAVX512VNNI {
		loops = append(loops, peakLoop{lanes: 16, grows: 16 * 4, run: peakProductsAVX512})
	}
	if cpu.X86.HasAVX2 {
		loops = append(loops, peakLoop{lanes: 8, grows: 12 * 4, run: peakProductsAVX2})
	}
	return loops
}

func floatLoops() []peakLoop {
	var loops []peakLoop
	if cpu.X86.HasAVX512F {
		loops = append(loops, peakLoop{lanes: 16, grows: 16, run: peakFloatsAVX512})
	}
	if cpu.X86.HasAVX2 && cpu.X86.HasFMA {
		loops = append(loops, peakLoop{lanes: 8, grows: 12, run: peakFloatsAVX2})
	}
	return loops
}
