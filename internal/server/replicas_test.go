package server_test

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/realizar/realizar"
	"github.com/realizar/realizar/internal/backends"
	"github.com/realizar/realizar/internal/backends/backendstest"
	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/internal/server"
)

// A twin is one of two devices that compute as processors do. If it is lost, its steps fail.
type twin struct {
	backends.Backend
	lost atomic.Bool
}

func (*twin) Name() string            { return "twin" }
func (*twin) Memory() plan.MemoryInfo { return plan.MemoryInfo{Free: 1 << 30, Total: 1 << 30} }

func (w *twin) Compile(ctx context.Context, p *plan.Program, l plan.Limits, loaded plan.Loaded) (plan.Executable, error) {
	x, err := w.Backend.Compile(ctx, p, l, loaded)
	return backendstest.Failing(x, func() error {
		if w.lost.Load() {
			return errors.New("the twin is lost")
		}
		return nil
	}), err
}

// The server is ready as long as a copy of its model works, and says how many do.
func TestReadyWithReplicas(t *testing.T) {
	var mu sync.Mutex
	twins := map[int]*twin{}
	all := backends.All
	t.Cleanup(func() { backends.All = all })
	backends.All = backends.List{{Name: "twin", Parallel: 4, Open: func(o backends.Options) (backends.Backend, error) {
		mu.Lock()
		defer mu.Unlock()
		b, err := backends.Processor.Open(backends.Options{})
		twins[o.Index] = &twin{Backend: b}
		return twins[o.Index], err
	}}, backends.Processor}
	s := serve(t, server.Config{}, realizar.Options{Device: "twin", Replicas: 2})
	ready := func(working int) {
		t.Helper()
		r := s.get("/ready")
		var got struct{ Replicas struct{ All, Working int } }
		if err := json.Unmarshal([]byte(r.body), &got); err != nil || r.status != 200 || got.Replicas.All != 2 || got.Replicas.Working != working {
			t.Errorf("%d %s, want %d of 2 replicas", r.status, r.body, working)
		}
	}
	ready(2)
	twins[1].lost.Store(true)
	failures := 0
	for i := range 20 {
		prompt := strings.Repeat(strconv.Itoa(i), 100)
		if r := s.post("/v1/completions", `{"model":"small","prompt":"`+prompt+`","max_tokens":1}`); r.status != 200 {
			failures++
		}
	}
	if failures != 1 {
		t.Errorf("%d of 20 requests have failed, one after the other; want 1", failures)
	}
	ready(1)
}
