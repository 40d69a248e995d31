package server_test

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/realizar/realizar"
	"github.com/realizar/realizar/internal/modeltest"
	"github.com/realizar/realizar/internal/server"
)

// streamRequest is one of a kind: greedy or not, a chat or completions, with texts of
// several lengths.
func streamRequest(i int) (path, body string) {
	more := fmt.Sprintf(`"max_tokens":%d,"seed":%d,"temperature":%v,"stream":true,"stream_options":{"include_usage":true}`, 8+i%17, i, float64(i%3)*0.7)
	if i%2 == 0 {
		return "/v1/chat/completions", chatBody(fmt.Sprintf("question %d of %d", i, i*i), more)
	}
	return "/v1/completions", fmt.Sprintf(`{"model":"small","prompt":"text number %d",%s}`, i, more)
}

// Many streams at one time: each is what it is alone, and whole.
func TestManyStreams(t *testing.T) {
	const streams = 256
	rounds := 1
	if n, err := strconv.Atoi(os.Getenv("REALIZAR_STREAM_ROUNDS")); err == nil {
		rounds = n // for a longer trial
	}
	s := serve(t, server.Config{Parallel: 16, MaxQueue: streams}, realizar.Options{Parallel: 16}, modeltest.Context(512))
	s.Client().Transport = manyConnections(t, streams)
	type answer struct {
		text   string
		tokens int
	}
	get := func(i int) (answer, error) {
		stream, err := s.stream(streamRequest(i))
		switch {
		case err != nil:
			return answer{}, fmt.Errorf("stream %d: %w", i, err)
		case !stream.done || stream.usage == nil || stream.reason[0] == "":
			return answer{}, fmt.Errorf("stream %d is cut off: %+v", i, stream)
		}
		return answer{stream.texts[0], stream.usage.Completion}, nil
	}
	alone := make([]answer, streams)
	for i := range alone {
		var err error
		if alone[i], err = get(i); err != nil {
			t.Fatal(err)
		}
	}
	for range rounds {
		var all sync.WaitGroup
		for i := range streams {
			all.Go(func() {
				switch got, err := get(i); {
				case err != nil:
					t.Error(err)
				case got != alone[i]:
					t.Errorf("stream %d is %v beside others, alone %v", i, got, alone[i])
				}
			})
		}
		all.Wait()
	}
	s.idle()
}

// A stream that waits for its turn has comments. The rest of it is what it is without them.
func TestWaitingStreamHasComments(t *testing.T) {
	s := serve(t, server.Config{Parallel: 1, MaxQueue: 8, StreamKeepAlive: time.Millisecond}, realizar.Options{Parallel: 1}, long)
	for path, body := range map[string]string{
		"/v1/completions":      `{"model":"small","prompt":"a","stream":true,"max_tokens":5,"temperature":0,"ignore_eos":true}`,
		"/v1/chat/completions": chatBody("hi", `"stream":true,"max_tokens":5,"temperature":0,"ignore_eos":true`),
	} {
		alone, err := s.stream(path, body)
		if err != nil {
			t.Fatal(err)
		}
		// The endless stream may lose its place before the other one has waited for long.
		const comments = ":\n\n:\n\n"
		for begin := make([]byte, len(comments)); string(begin) != comments; {
			stop := s.endless()
			r, err := s.Client().Post(s.URL+path, "application/json", strings.NewReader(body))
			if err != nil {
				t.Fatal(err)
			}
			if _, err := io.ReadFull(r.Body, begin); err != nil {
				t.Fatal(err)
			}
			stop()
			got, err := readStream(io.MultiReader(bytes.NewReader(begin), r.Body))
			r.Body.Close()
			if err != nil || !got.done || got.reason[0] != "length" || got.texts[0] != alone.texts[0] {
				t.Errorf("%s: after comments %+v, without them %+v; %v", path, got, alone, err)
			}
		}
	}
	s.idle()
}
