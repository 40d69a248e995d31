package cpu

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"testing"
)

// The loops read all bytes, and none past them.
func TestSumWords(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	buffer := guarded(t, 40<<9)
	for i := range buffer {
		buffer[i] = byte(random.Uint32())
	}
	for n := 0; n < len(buffer); n += 512 {
		b := buffer[len(buffer)-n:]
		var want uint64
		for i := 0; i < n; i += 8 {
			want += binary.LittleEndian.Uint64(b[i:])
		}
		for i, sum := range sumLoops() {
			if got := sum(b); got != want {
				t.Errorf("loop %d, %d bytes: sum %#x, want %#x", i, n, got, want)
			}
		}
	}
}

func BenchmarkSumWords(b *testing.B) {
	data := make([]byte, 256<<20)
	preferLargePages(data)
	for i := range data {
		data[i] = byte(i)
	}
	for i, sum := range sumLoops() {
		b.Run(fmt.Sprintf("loop=%d", i), func(b *testing.B) {
			b.SetBytes(int64(len(data)))
			for b.Loop() {
				for at := 0; at < len(data); at += readBlock {
					sum(data[at : at+readBlock])
				}
			}
		})
	}
}
