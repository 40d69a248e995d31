//go:build unix

package server_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/realizar/realizar"
	"github.com/realizar/realizar/internal/modeltest"
	"github.com/realizar/realizar/internal/server"
)

// What tokens of many streams at one time take of the host beside the model and the engine: the
// processor time of the whole process per token, over connections to a client that reads and does
// nothing else, less what the same answers take without a server (host-µs/token).
func BenchmarkSSE(b *testing.B) {
	const tokens = 100
	for _, streams := range []int{64, 1024} {
		b.Run(fmt.Sprint(streams), func(b *testing.B) {
			s := serveNamed(b, []string{"m"}, server.Config{Parallel: 64, MaxQueue: streams}, realizar.Options{Parallel: 64, Threads: 1}, modeltest.Llama(b, modeltest.Context(256)))
			s.Client().Transport = manyConnections(b, streams)
			all := func(one func(i int) error) (wall, processor time.Duration) {
				begun, used := time.Now(), processorTime(b)
				var under sync.WaitGroup
				for i := range streams {
					under.Go(func() {
						if err := one(i); err != nil {
							b.Error(err)
						}
					})
				}
				under.Wait()
				return time.Since(begun), processorTime(b) - used
			}
			var served, model, wall time.Duration
			for b.Loop() {
				w, p := all(func(i int) error {
					body := fmt.Sprintf(`{"model":"m","prompt":[%d,7],"max_tokens":%d,"temperature":0,"ignore_eos":true,"stream":true}`, 5+i%50, tokens)
					r, err := s.Client().Post(s.URL+"/v1/completions", "application/json", strings.NewReader(body))
					if err != nil {
						return err
					}
					defer func() { _ = r.Body.Close() }()
					if r.StatusCode != http.StatusOK {
						return fmt.Errorf("status %d", r.StatusCode)
					}
					_, err = io.Copy(io.Discard, r.Body)
					return err
				})
				wall, served = wall+w, served+p
				_, p = all(func(i int) error {
					r := &realizar.Request{PromptTokens: []int32{int32(5 + i%50), 7}, Generation: realizar.Generation{MaxTokens: new(tokens), IgnoreEnd: true}}
					for _, err := range s.model.Generate(b.Context(), r) {
						if err != nil {
							return err
						}
					}
					return nil
				})
				model += p
			}
			n := float64(streams * tokens * b.N)
			b.ReportMetric(n/wall.Seconds(), "tok/s")
			b.ReportMetric(n/served.Seconds(), "tok/s/core")
			b.ReportMetric((served-model).Seconds()*1e6/n, "host-µs/token")
		})
	}
}

// processorTime is what the process has used.
func processorTime(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
