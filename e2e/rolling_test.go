package e2e_test

import (
	"bufio"
	"fmt"
	"math/rand/v2"
	"net/http"

	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// A rotation is a load balancer: it gives requests to the servers that are in it.
type rotation struct {
	mu      sync.Mutex
	servers []*server
	sent    map[*server]*sync.WaitGroup // requests that the server has not begun to answer
}

// take returns a server for a request, which calls begun when the answer has begun.
func (r *rotation) take() (s *server, begun func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s = r.servers[rand.IntN(len(r.servers))]
	r.sent[s].Add(1)
	return s, r.sent[s].Done
}

// add adds a server.
func (r *rotation) add(s *server) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.servers = append(r.servers, s)
	r.sent[s] = new(sync.WaitGroup)
}

// remove removes the oldest server, and waits until it has begun to answer what it was given.
func (r *rotation) remove() *server {
	r.mu.Lock()
	old := r.servers[0]
	r.servers = r.servers[1:]
	r.mu.Unlock()
	r.sent[old].Wait()
	return old
}

// While servers are replaced one after another, as a rollout does, no stream is lost or cut off: each
// new one takes requests when it is ready, and each old one is taken out of the rotation before it is
// told to stop, and finishes its streams.
func TestRollingRestart(t *testing.T) {
	r := rotation{sent: map[*server]*sync.WaitGroup{}}
	open := func() *server {
		s := serveDemo(t, "--parallel", "64")
		s.get("/ready")
		return s
	}
	for range 3 {
		r.add(open())
	}
	var clients sync.WaitGroup
	var stop atomic.Bool
	var whole atomic.Int64
	for i := range 64 {
		clients.Go(func() {
			for n := 0; !stop.Load(); n++ {
				err := stream(&r, fmt.Sprintf("What is %d + %d?", i, n))
				if err != nil {
					t.Errorf("stream %d of client %d: %v", n, i, err)
					return
				}
				whole.Add(1)
			}
		})
	}
	for range 3 {
		for before := whole.Load(); whole.Load() < before+64 && !t.Failed(); {
			time.Sleep(time.Millisecond)
		}
		r.add(open())
		r.remove().stop() // it must exit with 0
	}
	stop.Store(true)
	clients.Wait()
	t.Logf("%d streams", whole.Load())
}

// stream asks for an answer as a stream and reads it to its end.
func stream(r *rotation, question string) error {
	s, begun := r.take()
	body := fmt.Sprintf(`{"model": %q, "messages": [{"role": "user", "content": %q}], "max_tokens": 60, "stream": true}`, demo, question)
	q, err := http.NewRequest(http.MethodPost, s.url+"/v1/chat/completions", strings.NewReader(body))
	if err != nil {
		begun()
		return err
	}
	q.Header.Set("Authorization", "Bearer "+key)
	q.Header.Set("Content-Type", "application/json")
	answer, err := http.DefaultClient.Do(q)
	begun()
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("status %d", answer.StatusCode)
	}
	last := ""
	lines := bufio.NewScanner(answer.Body)
	for lines.Scan() {
		if lines.Text() != "" {
			last = lines.Text()
		}
	}
	if err := lines.Err(); err != nil || last != "data: [DONE]" {
		return fmt.Errorf("the stream ends with %q: %w", last, err)
	}
	return nil
}
