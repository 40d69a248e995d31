package fetch_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/realizar/realizar/internal/fetch"
	"github.com/realizar/realizar/internal/pull/hubtest"
)

// waits are the delays that a client asked for.
type waits []time.Duration

func (w *waits) options(o fetch.Options) fetch.Options {
	o.Connections = 1
	o.Wait = func(ctx context.Context, d time.Duration) error {
		*w = append(*w, d)
		return ctx.Err()
	}
	return o
}

func serve(t *testing.T, h http.HandlerFunc) string {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
	})
	return s.URL
}

func download(t *testing.T, c *fetch.Client, url string, data []byte) (string, error) {
	t.Helper()
	t.Cleanup(c.Close)
	at := filepath.Join(t.TempDir(), "file")
	err := c.Download(t.Context(), fetch.File{URL: url, Size: int64(len(data)), Digest: fetch.SHA256(hubtest.SHA256(data))}, at, func(int64) {})
	return at, err
}

// Each attempt waits longer than the one before, and at least as long as the server asks.
func TestBackOff(t *testing.T) {
	data := []byte("abc")
	var n atomic.Int32
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		switch n.Add(1) {
		case 1, 2, 3:
			w.WriteHeader(http.StatusServiceUnavailable)
		case 4:
			w.Header().Set("Retry-After", "77")
			w.WriteHeader(http.StatusTooManyRequests)
		case 5:
			w.Header().Set("Retry-After", time.Now().Add(5*time.Minute).UTC().Format(http.TimeFormat))
			w.WriteHeader(http.StatusTooManyRequests)
		default:
			http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(data))
		}
	})
	var w waits
	if _, err := download(t, fetch.NewClient(w.options(fetch.Options{})), url, data); err != nil {
		t.Fatal(err)
	}
	if len(w) != 5 || w[0] < 250*time.Millisecond || w[0] > 500*time.Millisecond || w[2] < time.Second || w[2] > 2*time.Second || w[3] != 77*time.Second || w[4] < 4*time.Minute {
		t.Errorf("waits %v", w)
	}
}

// A persistent temporary error ends the download after some attempts, and a permanent one at once.
func TestGivesUp(t *testing.T) {
	for _, c := range []struct {
		name   string
		answer http.HandlerFunc
		says   string
		waits  int
	}{
		{"busy", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) }, "502 Bad Gateway; 4 attempts in a row", 3},
		{"missing", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNotFound) }, "404", 0},
		{"an hour", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "3600")
			w.WriteHeader(http.StatusTooManyRequests)
		}, "asks to wait 1h0m0s", 0},
		{"longer", func(w http.ResponseWriter, r *http.Request) {
			http.ServeContent(w, r, "", time.Time{}, bytes.NewReader([]byte("abcd")))
		}, "has 4 bytes, but the listing says 3", 3},
		{"round", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/x", http.StatusFound) }, "redirects more than 10 times", 3},
		{"packed", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			_, _ = w.Write([]byte("abc"))
		}, "gzip", 3},
	} {
		t.Run(c.name, func(t *testing.T) {
			var w waits
			at, err := download(t, fetch.NewClient(w.options(fetch.Options{Attempts: 4})), serve(t, c.answer)+"?key=secret", []byte("abc"))
			if err == nil || !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), "\n") || strings.Contains(err.Error(), "secret") {
				t.Errorf("error %v, want %q", err, c.says)
			}
			if len(w) != c.waits {
				t.Errorf("%d waits, want %d", len(w), c.waits)
			}
			if _, err := os.Stat(at); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("something is there: %v", err)
			}
		})
	}
}

// Without a network there are few attempts, and the error says so.
func TestUnreachable(t *testing.T) {
	var w waits
	_, err := download(t, fetch.NewClient(w.options(fetch.Options{})), "http://127.0.0.1:1", []byte("abc"))
	if !errors.Is(err, fetch.ErrUnreachable) || len(w) != 2 {
		t.Errorf("error %v after %d waits", err, len(w))
	}
}

// A server with an invalid certificate is not retried.
func TestCertificate(t *testing.T) {
	other := httptest.NewTLSServer(nil)
	other.Config.ErrorLog = log.New(io.Discard, "", 0)
	t.Cleanup(other.Close)
	var w waits
	_, err := download(t, fetch.NewClient(w.options(fetch.Options{})), other.URL, []byte("abc"))
	var certificate *tls.CertificateVerificationError
	if !errors.As(err, &certificate) || len(w) != 0 {
		t.Errorf("error %v after %d waits", err, len(w))
	}
}

// A stalled connection is replaced by another one.
func TestStall(t *testing.T) {
	data := bytes.Repeat([]byte("abc"), 1000)
	var n atomic.Int32
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if n.Add(1) == 1 {
			w.Header().Set("Content-Range", fmt.Sprintf("bytes 0-%d/%d", len(data)-1, len(data)))
			w.Header().Set("Content-Length", fmt.Sprint(len(data)))
			w.WriteHeader(http.StatusPartialContent)
			_, _ = w.Write(data[:500])
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
			return
		}
		if got, want := r.Header.Get("Range"), fmt.Sprintf("bytes=500-%d", len(data)-1); got != want {
			t.Errorf("asked for %q, want %q", got, want)
		}
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(data))
	})
	var w waits
	at, err := download(t, fetch.NewClient(w.options(fetch.Options{Stall: time.Second})), url, data)
	if got, readErr := os.ReadFile(at); err != nil || readErr != nil || !bytes.Equal(got, data) {
		t.Errorf("%v, %v, %d bytes", err, readErr, len(got))
	}
}

// Credentials stay with the first host, and no redirect leads from TLS to plain HTTP.
func TestRedirects(t *testing.T) {
	data := []byte("abc")
	other := serve(t, func(w http.ResponseWriter, r *http.Request) {
		for _, key := range []string{"Authorization", "Cookie", "Referer"} {
			if r.Header.Get(key) != "" {
				t.Errorf("%s was sent on", key)
			}
		}
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(data))
	})
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") == "" {
			t.Error("no key was sent")
		}
		http.Redirect(w, r, other, http.StatusTemporaryRedirect)
	})
	c := fetch.NewClient(fetch.Options{})
	t.Cleanup(c.Close)
	at := filepath.Join(t.TempDir(), "file")
	f := fetch.File{URL: url, Doer: keyed{c.HTTP}, Size: 3, Digest: fetch.SHA256(hubtest.SHA256(data))}
	if err := c.Download(t.Context(), f, at, func(int64) {}); err != nil {
		t.Error(err)
	}
	safe := httptest.NewTLSServer(http.RedirectHandler(other, http.StatusFound))
	t.Cleanup(safe.Close)
	var w waits
	c = fetch.NewClient(w.options(fetch.Options{Attempts: 2}))
	c.HTTP.Transport = safe.Client().Transport
	if _, err := download(t, c, safe.URL, data); err == nil || !strings.Contains(err.Error(), "which has no TLS") {
		t.Errorf("error %v", err)
	}
}

type keyed struct{ c *http.Client }

func (k keyed) Do(r *http.Request) (*http.Response, error) {
	r.Header.Set("Authorization", "Bearer secret")
	r.Header.Set("Cookie", "a=b")
	return k.c.Do(r)
}
