package kvtransfer_test

import (
	"io"
	"net"
	"slices"
	"testing"
	"time"

	"github.com/realizar/realizar/internal/kvtransfer"
)

// benchPages are the pages of 512 tokens of a model with 32 layers of 8 heads of 128 values in
// float16, as llama-3.1-8b has: 4 MiB each, 64 MiB in all.
func benchPages() [][]byte { return random(slices.Repeat([]int{4 << 20}, 16)...) }

// BenchmarkTransfer measures a transfer over the loopback interface, and in turn with it a plain
// copy of the same pages over one TCP connection. share is the median of the ratios of their speeds,
// and best-share the ratio of the best ones, which other programs of the machine disturb less.
func BenchmarkTransfer(b *testing.B) {
	from, to := open(b, kvtransfer.Config{}), open(b, kvtransfer.Config{})
	h := &held{pages: benchPages()}
	into := blank(h.pages)
	total := 0
	for _, p := range h.pages {
		total += len(p)
	}
	var shares, rates []float64
	least, leastPlain := time.Hour, time.Hour
	for b.Loop() {
		plain := plainCopy(b, h.pages, into)
		begun := time.Now()
		o, err := from.Offer(h, kvtransfer.Name{}, 0)
		if err == nil {
			err = to.Fetch(b.Context(), o, kvtransfer.Name{}, 0, into)
		}
		if err != nil {
			b.Fatal(err)
		}
		took := time.Since(begun)
		shares = append(shares, plain.Seconds()/took.Seconds())
		least, leastPlain = min(least, took), min(leastPlain, plain)
		rates = append(rates, float64(total)/took.Seconds()/1e9)
	}
	if !same(into, h.pages) {
		b.Error("the pages differ")
	}
	b.ReportMetric(median(shares), "share")
	b.ReportMetric(leastPlain.Seconds()/least.Seconds(), "best-share")
	b.ReportMetric(median(rates), "GB/s")
	b.ReportMetric(float64(total)/least.Seconds()/1e9, "best-GB/s")
}

func median(x []float64) float64 {
	slices.Sort(x)
	return x[len(x)/2]
}

// plainCopy returns how long pages take over a TCP connection into memory, without any check.
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
		if _, err := io.ReadFull(c, p); err != nil {
			b.Fatal(err)
		}
	}
	return time.Since(begun)
}
