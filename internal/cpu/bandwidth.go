package cpu

import (
	"bytes"
	"encoding/binary"
	"runtime"
	"time"
)

// ReadBandwidth measures how fast threads together read memory, in bytes a
// second: it reads a buffer of about so many bytes several times, by each of the
// loops that this package has for it, and takes the fastest pass. For the
// memory's own speed the buffer must be much larger than the caches. 0 or fewer
// threads means as many as the process may run on.
func ReadBandwidth(threads int, size int64) float64 {
	if threads <= 0 {
		threads = runtime.GOMAXPROCS(0)
	}
	const unit = 1 << 20
	data := make([]byte, max(1, size/unit)*unit)
	for i := 0; i < len(data); i += 4096 { // a page that was never written may be one zero page for all
		data[i] = 1
	}
	w := newWorkers(threads)
	defer w.close()
	found := make([]uint64, threads) // keeps the loops from being left out
	var best float64
	for range readPasses {
		for _, loop := range readLoops {
			begun := time.Now()
			w.share(len(data)/unit, 1, func(worker, lo, hi int) {
				for i := lo; i < hi; i++ {
					found[worker] += loop(data[i*unit : (i+1)*unit])
				}
			})
			if d := time.Since(begun).Seconds(); d > 0 {
				best = max(best, float64(len(data))/d)
			}
		}
	}
	runtime.KeepAlive(found)
	return best
}

const readPasses = 5

// readLoops read a megabyte. Which is the fastest depends on the machine: the
// second one uses the vector instructions of Go's own library.
var readLoops = []func([]byte) uint64{sumWords, findAbsent}

func sumWords(b []byte) uint64 {
	le := binary.LittleEndian
	var s [4]uint64
	for ; len(b) >= 64; b = b[64:] {
		s[0] += le.Uint64(b) + le.Uint64(b[8:])
		s[1] += le.Uint64(b[16:]) + le.Uint64(b[24:])
		s[2] += le.Uint64(b[32:]) + le.Uint64(b[40:])
		s[3] += le.Uint64(b[48:]) + le.Uint64(b[56:])
	}
	return s[0] + s[1] + s[2] + s[3]
}

// findAbsent looks for a byte that is not there.
func findAbsent(b []byte) uint64 { return uint64(bytes.IndexByte(b, 0xff)) }
