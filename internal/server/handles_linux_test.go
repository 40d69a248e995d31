package server_test

import (
	"io"
	"os"
	"sync"
	"testing"

	"github.com/realizar/realizar"
	"github.com/realizar/realizar/internal/server"
)

// TestHandles checks that a closed server has closed all its files and connections, whatever its
// clients did.
func TestHandles(t *testing.T) {
	round := func(t *testing.T) {
		s := serve(t, server.Config{Parallel: 4, MaxQueue: 16}, realizar.Options{Parallel: 4}, long)
		s.Client().Transport = manyConnections(t, 8)
		request := rawPost(`{"model":"small","prompt":"x","stream":true,"ignore_eos":true,"max_tokens":60000}`)
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() {
				s.post("/v1/chat/completions", chatBody("hi", `"max_tokens":3`))
				s.post("/v1/chat/completions", `{`)
			})
			all.Go(func() {
				c := s.dial(request)
				defer c.Close()
				if _, err := io.ReadFull(c, make([]byte, 300)); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		s.idle()
	}
	count := func() int {
		t.Helper()
		files, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Fatal(err)
		}
		return len(files)
	}
	t.Run("first", round) // opens what the process keeps open
	before := count()
	for range 3 {
		t.Run("again", round)
	}
	if after := count(); after > before {
		t.Errorf("%d files and connections are open, %d before", after, before)
	}
}
