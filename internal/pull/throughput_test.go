package pull_test

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/realizar/realizar/internal/fetch"
	"github.com/realizar/realizar/internal/pull/hubtest"
)

// BenchmarkPull pulls a file from loopback to the disk, with its digest verified, and writes the
// same bytes to the same disk directly, in turns. It reports the medians, in MB/s, and their ratio.
// The server is in the same process. REALIZAR_PULL_BYTES is the size in bytes.
func BenchmarkPull(b *testing.B) {
	size := 64 << 20
	if n, err := strconv.Atoi(os.Getenv("REALIZAR_PULL_BYTES")); err == nil {
		size = n
	}
	data := content(1, size)
	s := hubtest.New(b)
	s.AddRepo("org/x", map[string][]byte{"x.gguf": data})
	s.Warm("org/x")
	n := name(b, "hf:org/x")
	var writes, pulls []float64
	for b.Loop() {
		at := filepath.Join(b.TempDir(), "x")
		begun := time.Now()
		if err := writeAndSync(at, data); err != nil {
			b.Fatal(err)
		}
		writes = append(writes, float64(size)/1e6/time.Since(begun).Seconds())
		if err := os.Remove(at); err != nil {
			b.Fatal(err)
		}
		p := puller(b, s, fetch.Options{})
		begun = time.Now()
		if _, err := p.Pull(b.Context(), n); err != nil {
			b.Fatal(err)
		}
		pulls = append(pulls, float64(size)/1e6/time.Since(begun).Seconds())
		if err := os.RemoveAll(filepath.Dir(p.Store.Hub)); err != nil {
			b.Fatal(err)
		}
	}
	b.Logf("writes %.0f, pulls %.0f", writes, pulls)
	b.ReportMetric(median(writes), "write-MB/s")
	b.ReportMetric(median(pulls), "pull-MB/s")
	b.ReportMetric(median(pulls)/median(writes), "pull/write")
}

func median(all []float64) float64 {
	slices.Sort(all)
	return all[len(all)/2]
}

func writeAndSync(at string, data []byte) error {
	f, err := os.Create(at)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	for len(data) > 0 {
		n := min(len(data), 1<<20)
		if _, err := f.Write(data[:n]); err != nil {
			return err
		}
		data = data[n:]
	}
	return f.Sync()
}
