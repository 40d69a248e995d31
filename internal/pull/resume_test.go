package pull_test

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/realizar/realizar/internal/fetch"
	"github.com/realizar/realizar/internal/pull/hubtest"
)

// TestResume checks that bytes that were downloaded and noted are not downloaded again.
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
	again := hubtest.New(t) // it has sent nothing yet
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
