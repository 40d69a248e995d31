package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// An attack is what a malicious client does. Several clients repeat it at a time.
type attack struct {
	name string
	// do attacks once and returns the status of each answer, or cut.
	do func(ctx context.Context, url string) []int
	// wants are the permitted statuses of an answer. If it is nil, all but 500 are permitted.
	wants []int
}

// cut stands for the status if the server, or the attack, cut the connection.
const cut = 0

func (a *attack) may(status int) bool {
	if a.wants == nil {
		return status != http.StatusInternalServerError
	}
	return slices.Contains(a.wants, status)
}

// A tally maps a status to the number of answers that had it.
type tally map[int]int

func (t tally) add(statuses []int) {
	for _, s := range statuses {
		t[s]++
	}
}

func (t tally) total() (n int) {
	for _, m := range t {
		n += m
	}
	return n
}

func (t tally) String() string {
	var b strings.Builder
	for i, s := range slices.Sorted(maps.Keys(t)) {
		if i > 0 {
			b.WriteString(", ")
		}
		if s == cut {
			fmt.Fprintf(&b, "cut: %d", t[s])
		} else {
			fmt.Fprintf(&b, "%d: %d", s, t[s])
		}
	}
	return b.String()
}

// large is a request body that a client sends without having it in memory.
type large struct {
	head, tail string
	fill       string
	n          int // bytes of fill between head and tail
}

func (l *large) length() int64 { return int64(len(l.head) + l.n + len(l.tail)) }

func (l *large) reader() io.Reader {
	return io.MultiReader(strings.NewReader(l.head), io.LimitReader(&repeated{text: l.fill}, int64(l.n)), strings.NewReader(l.tail))
}

// repeated reads a text over and over.
type repeated struct {
	text string
	at   int
}

func (r *repeated) Read(p []byte) (n int, err error) {
	for n < len(p) {
		m := copy(p[n:], r.text[r.at:])
		n += m
		r.at = (r.at + m) % len(r.text)
	}
	return n, nil
}

// quick is the HTTP client of attacks that send the whole request and read the whole answer.
var quick = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64, DisableKeepAlives: true}, Timeout: 30 * time.Second}

// post sends a body, reads the answer and returns its status.
func post(ctx context.Context, url, path string, body *large) []int {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url+path, body.reader())
	if err != nil {
		return []int{cut}
	}
	r.ContentLength = body.length()
	r.Header.Set("Content-Type", "application/json")
	resp, err := quick.Do(r)
	if err != nil {
		return []int{cut}
	}
	_, _ = io.Copy(io.Discard, resp.Body)
	_ = resp.Body.Close()
	return []int{resp.StatusCode}
}

func text(s string) *large { return &large{head: s, fill: " "} }

// dial connects to the server and sends text. It returns nil if that fails.
func dial(ctx context.Context, url, text string) net.Conn {
	var d net.Dialer
	c, err := d.DialContext(ctx, "tcp", strings.TrimPrefix(url, "http://"))
	if err != nil {
		return nil
	}
	_ = c.SetDeadline(time.Now().Add(90 * time.Second))
	if _, err := io.WriteString(c, text); err != nil {
		_ = c.Close()
		return nil
	}
	return c
}

// status reads the status of an answer. It returns cut if there is none.
func status(c net.Conn) int {
	head := make([]byte, len("HTTP/1.1 200"))
	if _, err := io.ReadFull(c, head); err != nil {
		return cut
	}
	n, _ := strconv.Atoi(string(head[len(head)-3:]))
	return n
}

// hold keeps a connection open for d, or until it is cut or ctx ends.
func hold(ctx context.Context, c net.Conn, d time.Duration) {
	_ = c.SetReadDeadline(time.Now().Add(d))
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = io.Copy(io.Discard, c)
	}()
	select {
	case <-ctx.Done():
	case <-ended:
	}
	_ = c.Close()
	<-ended
}

// megabytes returns n MiB in bytes.
func megabytes(n int) int { return n << 20 }

// refusals are the statuses of requests that are invalid or for which there is no room.
var refusals = []int{http.StatusBadRequest, http.StatusRequestEntityTooLarge, http.StatusTooManyRequests}

// fill makes the model work as much as a single request can.
var fill = attack{"128 answers with the likeliest of each token", func(ctx context.Context, url string) []int {
	return post(ctx, url, "/v1/chat/completions", text(`{"model":"demo","messages":[{"role":"user","content":"Tell me a story."}],"n":128,"max_tokens":100,"logprobs":true,"top_logprobs":20,"ignore_eos":true}`))
}, append([]int{http.StatusOK}, refusals...)}

var attacks = slices.Concat(plainAttacks, grammarAttacks)

var plainAttacks = []attack{
	{"a prompt of 30 MB", func(ctx context.Context, url string) []int {
		return post(ctx, url, "/v1/completions", &large{head: `{"model":"demo","prompt":"`, fill: "a", n: megabytes(30), tail: `"}`})
	}, refusals},
	{"a prompt of 3 MB", func(ctx context.Context, url string) []int {
		return post(ctx, url, "/v1/completions", &large{head: `{"model":"demo","prompt":"`, fill: "a", n: megabytes(3), tail: `"}`})
	}, refusals},
	{"a message of 30 MB", func(ctx context.Context, url string) []int {
		return post(ctx, url, "/v1/chat/completions", &large{head: `{"model":"demo","messages":[{"role":"user","content":"`, fill: "word ", n: megabytes(30), tail: `"}]}`})
	}, append([]int{http.StatusUnprocessableEntity}, refusals...)},
	{"60,000 messages", func(ctx context.Context, url string) []int {
		const one = `{"role":"user","content":"a"},`
		return post(ctx, url, "/v1/chat/completions", &large{head: `{"model":"demo","messages":[`, fill: one, n: 60000 * len(one), tail: `{"role":"user","content":"a"}]}`})
	}, append([]int{http.StatusUnprocessableEntity}, refusals...)},
	{"30 MB to tokenize", func(ctx context.Context, url string) []int {
		return post(ctx, url, "/tokenize", &large{head: `{"prompt":"`, fill: "a", n: megabytes(30), tail: `"}`})
	}, refusals},
	{"5 MB of words to tokenize, which nobody reads", func(ctx context.Context, url string) []int {
		body := &large{head: `{"return_token_strs":true,"prompt":"`, fill: "some words, ", n: megabytes(5), tail: `"}`}
		c := dial(ctx, url, fmt.Sprintf("POST /tokenize HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n", body.length()))
		if c == nil {
			return []int{cut}
		}
		if t, ok := c.(*net.TCPConn); ok {
			_ = t.SetReadBuffer(4096)
		}
		if _, err := io.Copy(c, body.reader()); err != nil {
			_ = c.Close()
			return []int{cut}
		}
		got := status(c)
		select {
		case <-ctx.Done():
		case <-time.After(3 * time.Second):
		}
		_ = c.Close()
		return []int{got}
	}, append([]int{http.StatusOK}, refusals...)},
	{"ids that stand for long texts", func(ctx context.Context, url string) []int {
		return post(ctx, url, "/detokenize", &large{head: `{"tokens":[`, fill: "4000,", n: megabytes(20), tail: `1]}`})
	}, nil},
	{"16 million ids", func(ctx context.Context, url string) []int {
		return post(ctx, url, "/v1/completions", &large{head: `{"model":"demo","prompt":[`, fill: "1,", n: megabytes(31), tail: `1]}`})
	}, refusals},
	{"bodies without an end", func(ctx context.Context, url string) []int {
		body := &large{head: `{"model":"demo","prompt":"`, fill: "a", n: megabytes(31) - 100}
		c := dial(ctx, url, fmt.Sprintf("POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n", body.length()+10))
		if c == nil {
			return []int{cut}
		}
		_, _ = io.Copy(c, body.reader())
		hold(ctx, c, 5*time.Second)
		return []int{cut}
	}, nil},
	{"bodies that never come, of requests that are refused", func(ctx context.Context, url string) []int {
		var got []int
		for _, line := range []string{"POST /nothing", "PUT /v1/completions", "GET /health", "GET /metrics", "POST /ready", "POST /v1/models"} {
			c := dial(ctx, url, line+" HTTP/1.1\r\nHost: localhost\r\nContent-Length: 50\r\n\r\nabc")
			if c == nil {
				got = append(got, cut)
				continue
			}
			got = append(got, status(c))
			hold(ctx, c, 10*time.Second)
		}
		return got
	}, []int{200, 404, 405}},
	{"connections that say nothing", func(ctx context.Context, url string) []int {
		var all []net.Conn
		for range 30 {
			if c := dial(ctx, url, ""); c != nil {
				all = append(all, c)
			}
		}
		select {
		case <-ctx.Done():
		case <-time.After(time.Second):
		}
		for _, c := range all {
			_ = c.Close()
		}
		return []int{cut}
	}, nil},
	{"headers byte by byte", func(ctx context.Context, url string) []int {
		c := dial(ctx, url, "GET / HTTP/1.1\r\nX: ")
		if c == nil {
			return []int{cut}
		}
		for range 200 {
			if _, err := io.WriteString(c, "x"); err != nil || ctx.Err() != nil {
				break
			}
			time.Sleep(50 * time.Millisecond)
		}
		_ = c.Close()
		return []int{cut}
	}, nil},
	fill,
	{"clients that leave at once", func(ctx context.Context, url string) []int {
		body := `{"model":"demo","prompt":"a story","max_tokens":500,"ignore_eos":true,"stream":true}`
		c := dial(ctx, url, fmt.Sprintf("POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n%s", len(body), body))
		if c == nil {
			return []int{cut}
		}
		if t, ok := c.(*net.TCPConn); ok {
			_ = t.SetLinger(0)
		}
		_ = c.Close()
		return []int{cut}
	}, nil},
	{"refused requests on one connection", func(ctx context.Context, url string) []int {
		c := dial(ctx, url, "")
		if c == nil {
			return []int{cut}
		}
		go func() {
			for range 2000 {
				if _, err := io.WriteString(c, "GET /nothing HTTP/1.1\r\nHost: localhost\r\n\r\n"); err != nil {
					return
				}
			}
		}()
		var got []int
		for answers := bufio.NewReader(c); ctx.Err() == nil; {
			resp, err := http.ReadResponse(answers, nil)
			if err != nil {
				got = append(got, cut)
				break
			}
			_, _ = io.Copy(io.Discard, resp.Body)
			_ = resp.Body.Close()
			got = append(got, resp.StatusCode)
		}
		_ = c.Close()
		return got
	}, []int{404}},
	{"pages of a stranger", func(ctx context.Context, url string) []int {
		var got []int
		for _, line := range []string{"GET /metrics", "GET /v1/models", "GET /ready", "GET /health", "GET /nothing", "POST /tokenize"} {
			c := dial(ctx, url, line+" HTTP/1.1\r\nHost: stranger.example\r\nConnection: close\r\n\r\n")
			if c == nil {
				got = append(got, cut)
				continue
			}
			got = append(got, status(c))
			_ = c.Close()
		}
		return got
	}, []int{403}},
	{"objects in objects", func(ctx context.Context, url string) []int {
		return post(ctx, url, "/v1/chat/completions", &large{head: `{"model":"demo","messages":[{"role":"user","content":"a"}],"max_tokens":1,"metadata":`, fill: `{"a":`, n: megabytes(10), tail: "1"})
	}, refusals},
}
