package cpu

import "golang.org/x/sys/cpu"

// sumLoops returns the implementations of sumWords. Which is fastest depends on the machine and on
// the number of threads.
func sumLoops() []func([]byte) uint64 {
	var loops []func([]byte) uint64
	add := func(sum func(b *byte, n int) uint64, sumAhead func(b *byte, n, ahead int) uint64) {
		loops = append(loops, func(b []byte) uint64 {
			if len(b) < 512 {
				return 0
			}
			return sum(&b[0], len(b)&^511)
		})
		for _, ahead := range []int{1 << 10, 4 << 10} {
			loops = append(loops, func(b []byte) uint64 {
				if len(b) < 512 {
					return 0
				}
				return sumAhead(&b[0], len(b)&^511, ahead)
			})
		}
	}
	if cpu.X86.HasAVX512F {
		add(sumWordsAVX512, sumWordsAheadAVX512)
	}
	if cpu.X86.HasAVX2 {
		add(sumWordsAVX2, sumWordsAheadAVX2)
	}
	return append(loops, sumWords)
}
