//go:build amd64 || arm64

package cpu

import (
	"encoding/binary"
	"math"

	"github.com/realizar/realizar/tensor"
)

func storedF32(b []byte) float32 { return math.Float32frombits(binary.LittleEndian.Uint32(b)) }

func storedF16(b []byte) float32 { return tensor.F16ToF32(binary.LittleEndian.Uint16(b)) }

func storedBF16(b []byte) float32 {
	return math.Float32frombits(uint32(binary.LittleEndian.Uint16(b)) << 16)
}

// storedRows sums over whole registers of lanes elements of size bytes. The rest of k is added one
// by one, as in dotBlocks.
func storedRows(lanes, size int, value func(b []byte) float32, row func(dst *float32, w *byte, x *float32, n, stride int)) storedDots {
	return func(dst []float32, w []byte, stride int, x []float32, k, apart, tokens int) {
		n := k / lanes * lanes
		rows := min(dotRows, (len(w)+stride-1)/stride)
		w = w[:(rows-1)*stride+k*size]
		for t := range tokens {
			x, y := x[t*apart:][:k], dst[t*dotRows:][:dotRows]
			switch {
			case n == 0:
				clear(y[:rows])
			case rows == dotRows:
				row(&y[0], &w[0], &x[0], n, stride)
			default: // one row at a time, which row computes eight times
				var sums [dotRows]float32
				for r := range rows {
					row(&sums[0], &w[r*stride], &x[0], n, 0)
					y[r] = sums[0]
				}
			}
			if n == k {
				continue
			}
			for r := range rows {
				for i := n; i < k; i++ {
					y[r] += float32(value(w[r*stride+i*size:]) * x[i])
				}
			}
		}
	}
}
