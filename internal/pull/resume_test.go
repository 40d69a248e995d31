package pull_test

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/realizar/realizar/internal/fetch"
	"github.com/realizar/realizar/internal/pull/hubtest"
)

// What has come and was noted is not fetched again.
func TestResume(t *testing.T) {
	s := hubtest.New(t)
	data := content(1, 400_000)
	s.AddRepo("org/x", map[string][]byte{"x.gguf": data})
	p := puller(t, s, quick())
	n := name(t, "hf:org/x")
	blob := filepath.Join(p.Store.Hub, "models--org--x", "blobs", hubtest.SHA256(data))
	for _, after := range []int{1, 10, 40} {
		ctx, cancel := context.WithCancel(t.Context())
		p.Watcher = &killer{after: after, cancel: cancel, came: map[int]int64{}}
		if _, err := p.Pull(ctx, n); err == nil {
			t.Fatal("a pull that was interrupted is through")
		}
		cancel()
	}
	missing := fetch.Missing(blob, int64(len(data)))
	if missing == 0 || missing == int64(len(data)) {
		t.Fatalf("%d bytes are missing", missing)
	}
	again := hubtest.New(t) // which has sent nothing yet
	again.AddRepo("org/x", map[string][]byte{"x.gguf": data})
	p.Watcher, p.Endpoint = nil, again.URL
	m, err := p.Pull(t.Context(), n)
	if err != nil {
		t.Fatal(err)
	}
	wantFiles(t, m, map[string][]byte{"x.gguf": data})
	if sent := again.Sent("x.gguf"); sent != missing {
		t.Errorf("%d bytes were sent where %d were missing", sent, missing)
	}
}

// BenchmarkPull is a pull of one file from loopback to the disk, against writing the
// same bytes alone. REALIZAR_PULL_BYTES is how many they are.
func BenchmarkPull(b *testing.B) {
	size := 64 << 20
	if n, err := strconv.Atoi(os.Getenv("REALIZAR_PULL_BYTES")); err == nil {
		size = n
	}
	data := content(1, size)
	b.Run("write", func(b *testing.B) {
		b.SetBytes(int64(size))
		for range b.N {
			f, err := os.Create(filepath.Join(b.TempDir(), "x"))
			if err != nil {
				b.Fatal(err)
			}
			for at := 0; at < size; at += 1 << 20 {
				if _, err := f.Write(data[at:min(size, at+1<<20)]); err != nil {
					b.Fatal(err)
				}
			}
			if err := f.Sync(); err != nil {
				b.Fatal(err)
			}
			if err := f.Close(); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("hash", func(b *testing.B) {
		b.SetBytes(int64(size))
		for range b.N {
			hubtest.SHA256(data)
		}
	})
	b.Run("pull", func(b *testing.B) {
		b.SetBytes(int64(size))
		s := hubtest.New(b)
		s.AddRepo("org/x", map[string][]byte{"x.gguf": data})
		s.Warm("org/x")
		b.ResetTimer()
		for range b.N {
			p := puller(b, s, fetch.Options{})
			p.Store.Sync = nil
			if _, err := p.Pull(b.Context(), name(b, "hf:org/x")); err != nil {
				b.Fatal(err)
			}
			b.StopTimer()
			if err := os.RemoveAll(filepath.Dir(p.Store.Hub)); err != nil {
				b.Fatal(err)
			}
			b.StartTimer()
		}
	})
}
