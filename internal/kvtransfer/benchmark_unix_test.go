//go:build unix

package kvtransfer_test

import (
	"io"
	"net"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/realizar/realizar/internal/kvtransfer"
)

// benchPages are the pages of 512 tokens of a model with 32 layers of 8 heads of 128 values in
// float16, as llama-3.1-8b has: 4 MiB each, 64 MiB in all.
func benchPages() [][]byte { return random(slices.Repeat([]int{4 << 20}, 16)...) }

// BenchmarkTransfer measures a transfer over the loopback interface, and in turn with it a plain
// copy of the same pages over one TCP connection. share is the median of the ratios of their speeds,
// and cpu-share that of the ratios of the processor time that both sides take, which other programs
// of the machine disturb less.
func BenchmarkTransfer(b *testing.B) {
	from, to := open(b, kvtransfer.Config{}), open(b, kvtransfer.Config{})
	h := &held{pages: benchPages()}
	into := blank(h.pages)
	total := 0
	for _, p := range h.pages {
		total += len(p)
	}
	var shares, rates []float64
	var cpuShares []float64
	for b.Loop() {
		start := processorTime(b)
		plain := plainCopy(b, h.pages, into)
		begun, middle := time.Now(), processorTime(b)
		o, err := from.Offer(h, kvtransfer.Name{}, 0)
		if err == nil {
			err = to.Fetch(b.Context(), o, kvtransfer.Name{}, 0, into)
		}
		if err != nil {
			b.Fatal(err)
		}
		took := time.Since(begun)
		shares = append(shares, plain.Seconds()/took.Seconds())
		cpuShares = append(cpuShares, (middle-start).Seconds()/(processorTime(b)-middle).Seconds())
		rates = append(rates, float64(total)/took.Seconds()/1e9)
	}
	if !same(into, h.pages) {
		b.Error("the pages differ")
	}
	b.ReportMetric(median(shares), "share")
	b.ReportMetric(median(cpuShares), "cpu-share")
	b.ReportMetric(median(rates), "GB/s")
}

func median(x []float64) float64 {
	slices.Sort(x)
	return x[len(x)/2]
}

// plainCopy returns how long io.Copy takes to move pages over a TCP connection into memory.
func plainCopy(b *testing.B, pages, into [][]byte) time.Duration {
	b.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	defer l.Close()
	begun := time.Now()
	go func() {
		c, err := l.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		all := net.Buffers(slices.Clone(pages))
		_, _ = io.Copy(c, &all)
	}()
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close()
	for _, p := range into {
		if n, err := io.Copy(&memory{p}, io.LimitReader(c, int64(len(p)))); err != nil || n < int64(len(p)) {
			b.Fatal(n, err)
		}
	}
	return time.Since(begun)
}

// A memory is written from its beginning on.
type memory struct{ rest []byte }

func (m *memory) Write(p []byte) (int, error) {
	n := copy(m.rest, p)
	m.rest = m.rest[n:]
	return n, nil
}

// processorTime returns the time that the process has taken of processors.
func processorTime(b *testing.B) time.Duration {
	b.Helper()
	var use unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &use); err != nil {
		b.Fatal(err)
	}
	return time.Duration(use.Utime.Nano() + use.Stime.Nano())
}
