package server_test

import (
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/realizar/realizar"
	"github.com/realizar/realizar/internal/server"
)

// readKeys are those of a file with one key.
func readKeys(t *testing.T, key string) *server.Keys {
	t.Helper()
	path := filepath.Join(t.TempDir(), "keys")
	if err := os.WriteFile(path, []byte(key), 0o600); err != nil {
		t.Fatal(err)
	}
	keys, err := server.ReadKeys(path)
	if err != nil {
		t.Fatal(err)
	}
	return keys
}

// from asks for the models under another name of the server, or from a page, or with a key.
func (s *service) from(header, value string) reply {
	s.t.Helper()
	r, err := http.NewRequest(http.MethodGet, s.URL+"/v1/models", nil)
	if err != nil {
		s.t.Fatal(err)
	}
	r.Header.Set(header, value)
	if header == "Host" {
		r.Host = value
	}
	return s.send(r)
}

// What may change while a server runs holds for the requests that come afterwards, and one
// that makes no sense changes nothing.
func TestReload(t *testing.T) {
	log := &shared{}
	c := server.Config{Parallel: 16, MaxQueue: 4, Logger: slog.New(slog.NewTextHandler(log, nil))}
	s := serve(t, c, realizar.Options{})
	const prompt = `{"model":"small","prompt":"some words","max_tokens":1`
	keys := readKeys(t, "the-key")
	for _, test := range []struct {
		what          string
		change        func(*server.Config)
		ask           func() reply
		before, after int
	}{
		{"MaxBody", func(c *server.Config) { c.MaxBody = 20 }, func() reply { return s.post("/v1/completions", prompt+`}`) }, 200, 413},
		{"Lenient", func(c *server.Config) { c.Lenient = true }, func() reply { return s.post("/v1/completions", prompt+`,"magic":1}`) }, 400, 200},
		{"Deadlines", func(c *server.Config) { c.Deadlines.Request = 1 }, func() reply { return s.post("/v1/completions", prompt+`}`) }, 200, 503},
		{"Hosts", func(c *server.Config) { c.Hosts = []string{"me"} }, func() reply { return s.from("Host", "stranger") }, 200, 403},
		{"Origins", func(c *server.Config) { c.Origins = []string{"https://a.example"} }, func() reply {
			r := s.from("Origin", "https://a.example")
			if r.header.Get("Access-Control-Allow-Origin") == "" {
				r.status = 0
			}
			return r
		}, 0, 200},
		{"Keys", func(c *server.Config) { c.Keys = keys }, func() reply { return s.from("Authorization", "Bearer other") }, 200, 401},
		{"MaxQueue", func(c *server.Config) { c.MaxQueue = 7 }, func() reply {
			r := s.get("/ready")
			if _, err := fmt.Sscanf(r.body, `{"status":"ready","answers":0,"limit":%d}`, &r.status); err != nil {
				t.Error(err)
			}
			return r
		}, 20, 23},
		{"LogPrompts", func(c *server.Config) { c.LogPrompts = true }, func() reply {
			before := log.String()
			r := s.post("/v1/completions", prompt+`}`)
			for !strings.Contains(log.String()[len(before):], r.header.Get("X-Request-Id")) {
				runtime.Gosched()
			}
			r.status = strings.Count(log.String()[len(before):], "some words")
			return r
		}, 0, 1},
	} {
		check := func(when string, want int) {
			t.Helper()
			if r := test.ask(); r.status != want {
				t.Errorf("%s, %s: %d %s, want %d", test.what, when, r.status, r.body, want)
			}
		}
		reload := func(change func(*server.Config)) error {
			other := c
			change(&other)
			return s.server.Reload(other)
		}
		check("before", test.before)
		if err := reload(test.change); err != nil {
			t.Error(err)
		}
		check("after", test.after)
		for _, wrong := range []func(*server.Config){
			func(c *server.Config) { c.MaxQueue = -1 }, func(c *server.Config) { c.MaxBody = -1 },
			func(c *server.Config) { c.Deadlines.Write = -1 }, func(c *server.Config) { c.Origins = []string{"x"} },
		} {
			if err := reload(wrong); err == nil {
				t.Error("what makes no sense is no error")
			}
		}
		check("after an error", test.after)
		if err := reload(func(*server.Config) {}); err != nil {
			t.Error(err)
		}
		check("and back", test.before)
	}
}

// Requests have the settings that they came under, whenever these change.
func TestReloadBesideRequests(t *testing.T) {
	c := server.Config{Parallel: 4, MaxQueue: 100}
	s := serve(t, c, realizar.Options{})
	var asking sync.WaitGroup
	done := make(chan struct{})
	for range 4 {
		asking.Go(func() {
			for range 20 {
				r := s.post("/v1/completions", `{"model":"small","prompt":"x","max_tokens":3,"magic":1}`)
				if r.status != 200 && r.status != 400 {
					t.Errorf("%d %s", r.status, r.body)
				}
			}
		})
	}
	go func() { defer close(done); asking.Wait() }()
	for i := 0; ; i++ {
		select {
		case <-done:
			return
		default:
		}
		c.Lenient, c.MaxQueue, c.Deadlines.Request = i%2 == 0, 100+i%3, time.Duration(i%2)*time.Hour
		if err := s.server.Reload(c); err != nil {
			t.Fatal(err)
		}
	}
}

// Connections that are bounded anew stay until a new one comes, which keeps to the bounds.
func TestConnectionsBound(t *testing.T) {
	bounds, address := listen(t, http.NotFoundHandler(), 4, 4)
	var come int64
	connected := func(open, evicted int64) { // by one that says nothing
		t.Helper()
		connect(t, address, "")
		come++
		got := bounds.Stats()
		for int64(got.Open)+got.Evicted < come {
			runtime.Gosched()
			got = bounds.Stats()
		}
		if int64(got.Open) != open || got.Evicted != evicted || got.Refused != 0 {
			t.Errorf("%+v, want %d open, %d evicted", got, open, evicted)
		}
	}
	for i := range 4 {
		connected(int64(i+1), 0)
	}
	for _, wrong := range [][2]int{{0, 1}, {1, 0}, {-1, 1}} {
		if err := bounds.Bound(wrong[0], wrong[1]); err == nil {
			t.Errorf("bounds %v are no error", wrong)
		}
	}
	connected(4, 1)
	for _, test := range []struct {
		most, each    int
		open, evicted int64
	}{{2, 2, 2, 4}, {5, 5, 3, 4}, {5, 1, 1, 7}} {
		before := bounds.Stats().Open
		if err := bounds.Bound(test.most, test.each); err != nil {
			t.Error(err)
		}
		if got := bounds.Stats(); got.Open != before || got.Most != test.most {
			t.Errorf("%+v, want %d open of %d", got, before, test.most)
		}
		connected(test.open, test.evicted)
	}
}
