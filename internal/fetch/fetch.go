// Package fetch downloads files of known size and digest. It uses parallel ranges, resumes
// interrupted downloads, and verifies the whole file before it takes its final name. It speaks HTTP
// and knows nothing about hubs.
package fetch

import (
	"context"
	"crypto/sha1" //nolint:gosec // git's ids of files, as hubs list them, are SHA-1
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

// A Doer sends a request with the credentials that the server wants. An [http.Client] is a Doer.
type Doer interface {
	Do(*http.Request) (*http.Response, error)
}

// Options configure a [Client]. Zero values select the defaults.
type Options struct {
	Connections int           // simultaneous connections over all files; default 8
	Piece       int64         // bytes per range request; default 4 to 32 MiB, by the file's size
	Record      int64         // bytes between records of progress; default 1 MiB
	Attempts    int           // consecutive attempts that bring nothing before giving up; default 8
	Stall       time.Duration // the longest that a connection may stay silent; default one minute

	// Wait waits before another attempt. The default is a timer.
	Wait func(context.Context, time.Duration) error
	// Sync makes a file durable. The default is its Sync method.
	Sync func(interface{ Sync() error }) error
}

// A Client downloads files. It is safe for concurrent use.
type Client struct {
	HTTP *http.Client // drops credentials on redirects to another host

	options Options
	slots   chan struct{} // one element for each open connection
	reached atomic.Bool   // some server has responded
}

// NewClient returns a client that uses the proxies of the environment.
func NewClient(o Options) *Client {
	if o.Connections <= 0 {
		o.Connections = 8
	}
	if o.Record <= 0 {
		o.Record = 1 << 20
	}
	if o.Attempts <= 0 {
		o.Attempts = 8
	}
	if o.Stall <= 0 {
		o.Stall = time.Minute
	}
	if o.Wait == nil {
		o.Wait = waitByClock
	}
	if o.Sync == nil {
		o.Sync = func(f interface{ Sync() error }) error { return f.Sync() }
	}
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true) // one connection for each range
	transport := &http.Transport{
		Proxy: http.ProxyFromEnvironment, Protocols: protocols, DisableCompression: true,
		DialContext:         (&net.Dialer{Timeout: 30 * time.Second, KeepAlive: 30 * time.Second}).DialContext,
		TLSHandshakeTimeout: 30 * time.Second, IdleConnTimeout: 90 * time.Second, MaxIdleConnsPerHost: o.Connections, ReadBufferSize: 128 << 10, MaxResponseHeaderBytes: 1 << 20,
	}
	return &Client{HTTP: &http.Client{Transport: transport, CheckRedirect: checkRedirect}, options: o, slots: make(chan struct{}, o.Connections)}
}

// Close closes idle connections.
func (c *Client) Close() { c.HTTP.CloseIdleConnections() }

// maxRedirects is the maximum number of redirects of a request.
const maxRedirects = 10

// checkRedirect removes credentials from requests to a host other than the first one.
func checkRedirect(r *http.Request, via []*http.Request) error {
	first := via[0].URL
	switch {
	case len(via) > maxRedirects:
		return fmt.Errorf("%s redirects more than %d times", first.Host, maxRedirects)
	case first.Scheme == "https" && r.URL.Scheme != "https":
		return fmt.Errorf("%s redirects to %s://%s, which has no TLS", first.Host, r.URL.Scheme, r.URL.Host)
	}
	r.Header.Del("Referer")
	if r.URL.Host != first.Host || r.URL.Scheme != first.Scheme {
		r.Header.Del("Authorization")
		r.Header.Del("Cookie")
	}
	return nil
}

func waitByClock(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// A StatusError is a response with a status other than success.
type StatusError struct {
	Status int
	Where  string // host and path, without the query, which may hold a key
	Code   string // the hub's error code, from X-Error-Code
	Text   string // the server's message; may be empty
	After  time.Duration
}

// Error returns the status and the server's message.
func (e *StatusError) Error() string {
	s := fmt.Sprintf("%s answers %d %s", e.Where, e.Status, http.StatusText(e.Status))
	if e.Text != "" {
		s += fmt.Sprintf(" (%s)", e.Text)
	}
	return s
}

// temporary reports whether another attempt may succeed.
func (e *StatusError) temporary() bool {
	switch e.Status {
	case http.StatusRequestTimeout, http.StatusTooEarly, http.StatusTooManyRequests:
		return true
	}
	return e.Status >= 500 && e.Status != http.StatusNotImplemented && e.Status != http.StatusHTTPVersionNotSupported
}

// newStatusError returns the error for a response. It does not close the body.
func newStatusError(r *http.Response) *StatusError {
	e := &StatusError{Status: r.StatusCode, Where: where(r.Request.URL), Code: clip(r.Header.Get("X-Error-Code"), 64), Text: clip(r.Header.Get("X-Error-Message"), 200)}
	after := r.Header.Get("Retry-After")
	if seconds, err := strconv.ParseInt(after, 10, 32); err == nil && seconds > 0 {
		e.After = time.Duration(seconds) * time.Second
	} else if at, err := http.ParseTime(after); err == nil {
		e.After = max(0, time.Until(at))
	}
	return e
}

// clip returns the first most bytes of a server's text, without control characters, which could
// steer a terminal.
func clip(s string, most int) string {
	s = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r >= 0x80 && r < 0xa0 {
			return -1
		}
		return r
	}, s)
	return s[:min(len(s), most)]
}

// where returns the host and path of an address. The query is left out because it may hold a
// signature.
func where(u *url.URL) string { return u.Host + u.EscapedPath() }

// A DigestError reports a file whose digest differs from the listed one.
type DigestError struct{ Where, Want, Got string }

// Error returns both digests.
func (e *DigestError) Error() string {
	return fmt.Sprintf("%s: the bytes have the digest %s, but the listing says %s; the file was discarded: try again, and if it happens again, the server or a proxy alters the file", e.Where, e.Got, e.Want)
}

// A lengthError reports a file whose size differs from the listed one. Got is negative if the
// server does not report the size.
type lengthError struct {
	Where     string
	Want, Got int64
}

// Error returns both sizes.
func (e *lengthError) Error() string {
	if e.Got < 0 {
		return fmt.Sprintf("%s has fewer bytes than the %d that the listing says; try again later", e.Where, e.Want)
	}
	return fmt.Sprintf("%s has %d bytes, but the listing says %d; try again later", e.Where, e.Got, e.Want)
}

// ErrUnreachable reports that no server responded.
var ErrUnreachable = errors.New("no server responds")

// errStalled reports that a connection stayed silent for too long.
var errStalled = errors.New("the connection stalled")

// maxAfter is the longest wait that a server may ask for.
const maxAfter = 10 * time.Minute

// attempts counts consecutive attempts that brought nothing.
type attempts struct {
	c      *Client
	failed int
}

// next waits before the next attempt. It returns an error if there should be none.
func (a *attempts) next(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	var status *StatusError
	var after time.Duration
	if errors.As(err, &status) {
		if !status.temporary() {
			return err
		}
		after = status.After
	}
	var certificate *tls.CertificateVerificationError
	if errors.Is(err, errPermanent) || errors.As(err, &certificate) {
		return err
	}
	a.failed++
	most := a.c.options.Attempts
	var network *net.OpError // includes failed DNS lookups
	unreachable := !a.c.reached.Load() && errors.As(err, &network)
	if unreachable {
		most = min(most, 3) // there may be no network
	}
	if after > maxAfter {
		return fmt.Errorf("%w; the server asks to wait %v, try again then", err, after.Round(time.Second))
	}
	if a.failed >= most {
		if unreachable {
			return fmt.Errorf("%w: %w", ErrUnreachable, err)
		}
		return fmt.Errorf("%w; %d attempts in a row brought nothing", err, a.failed)
	}
	backOff := min(500*time.Millisecond<<(a.failed-1), 30*time.Second)
	backOff = backOff/2 + rand.N(backOff/2+1)
	return a.c.options.Wait(ctx, max(backOff, after))
}

// errPermanent marks errors that another attempt would repeat.
var errPermanent = errors.New("")

// Read reads a short response of status 200 and at most most bytes, retrying as needed.
func (c *Client) Read(ctx context.Context, doer Doer, address string, header http.Header, most int64) ([]byte, http.Header, error) {
	a := attempts{c: c}
	for {
		data, got, err := c.read(ctx, doer, address, header, most)
		if err == nil {
			return data, got, nil
		}
		if err := a.next(ctx, err); err != nil {
			return nil, nil, err
		}
	}
}

func (c *Client) read(ctx context.Context, doer Doer, address string, header http.Header, most int64) ([]byte, http.Header, error) {
	r, err := c.send(ctx, doer, address, header)
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = r.Body.Close() }()
	if r.StatusCode != http.StatusOK {
		return nil, nil, newStatusError(r)
	}
	data, err := io.ReadAll(io.LimitReader(r.Body, most+1))
	switch {
	case err != nil:
		return nil, nil, fmt.Errorf("%s: %w", where(r.Request.URL), err)
	case int64(len(data)) > most:
		return nil, nil, fmt.Errorf("%w%s: the response has more than the %d bytes allowed", errPermanent, where(r.Request.URL), most)
	}
	return data, r.Header, nil
}

// Size returns the size of a file in bytes, as the server reports it.
func (c *Client) Size(ctx context.Context, doer Doer, address string) (int64, error) {
	a := attempts{c: c}
	for {
		n, err := c.size(ctx, doer, address)
		if err == nil {
			return n, nil
		}
		if err := a.next(ctx, err); err != nil {
			return 0, err
		}
	}
}

func (c *Client) size(ctx context.Context, doer Doer, address string) (int64, error) {
	r, err := c.send(ctx, doer, address, http.Header{"Range": {"bytes=0-0"}})
	if err != nil {
		return 0, err
	}
	defer func() { _ = r.Body.Close() }()
	switch m := contentRange.FindStringSubmatch(r.Header.Get("Content-Range")); {
	case r.StatusCode == http.StatusPartialContent && m != nil && m[3] != "*":
		return strconv.ParseInt(m[3], 10, 64)
	case r.StatusCode == http.StatusOK && r.ContentLength >= 0:
		return r.ContentLength, nil
	case r.StatusCode == http.StatusOK || r.StatusCode == http.StatusPartialContent:
		return 0, fmt.Errorf("%w%s does not report the size of the file", errPermanent, where(r.Request.URL))
	}
	return 0, newStatusError(r)
}

// send sends one request. The request and the reading of its body fail if nothing arrives for
// longer than Stall.
func (c *Client) send(ctx context.Context, doer Doer, address string, header http.Header) (*http.Response, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		cancel(nil)
		return nil, fmt.Errorf("%w%w", errPermanent, err)
	}
	for key, values := range header {
		request.Header[key] = values
	}
	request.Header.Set("User-Agent", "realizar")
	request.Header.Set("Accept-Encoding", "identity")
	timer := time.AfterFunc(c.options.Stall, func() { cancel(errStalled) })
	response, err := doer.Do(request)
	if err != nil {
		timer.Stop()
		err = bare(err, request.URL)
		if errors.Is(context.Cause(ctx), errStalled) {
			err = fmt.Errorf("%s: %w", where(request.URL), errStalled)
		}
		cancel(nil)
		return nil, err
	}
	c.reached.Store(true)
	response.Body = &watched{response.Body, timer, c.options.Stall, cancel, ctx}
	return response, nil
}

// bare returns an error without the query of the requested address, which may hold a key.
func bare(err error, asked *url.URL) error {
	var e *url.Error
	if errors.As(err, &e) {
		return fmt.Errorf("%s: %w", where(asked), e.Err)
	}
	return err
}

// A watched body fails if it stays silent for too long.
type watched struct {
	body interface {
		Read([]byte) (int, error)
		Close() error
	}
	timer  *time.Timer
	stall  time.Duration
	cancel context.CancelCauseFunc
	ctx    context.Context
}

func (w *watched) Read(p []byte) (int, error) {
	n, err := w.body.Read(p)
	if n > 0 {
		w.timer.Reset(w.stall)
	}
	if err != nil && errors.Is(context.Cause(w.ctx), errStalled) {
		err = errStalled
	}
	return n, err
}

func (w *watched) Close() error {
	w.timer.Stop()
	w.cancel(nil)
	return w.body.Close()
}

// A Digest identifies a file's content: sha256:... or git-sha1:..., git's blob id.
type Digest string

// The prefixes of digests.
const (
	sha256Prefix = "sha256:"
	gitPrefix    = "git-sha1:"
)

// SHA256 returns the digest with the given hexadecimal digits.
func SHA256(hex string) Digest { return Digest(sha256Prefix + hex) }

// GitSHA1 returns the digest for git's blob id of a file.
func GitSHA1(hex string) Digest { return Digest(gitPrefix + hex) }

// Hex returns the hexadecimal digits.
func (d Digest) Hex() string { return string(d[strings.IndexByte(string(d), ':')+1:]) }

// New returns a hash that computes the digest of a file of the given size in bytes.
func (d Digest) New(size int64) hash.Hash {
	if strings.HasPrefix(string(d), gitPrefix) {
		h := sha1.New()                            //nolint:gosec // as above
		_, _ = fmt.Fprintf(h, "blob %d\x00", size) // a hash never fails
		return h
	}
	return sha256.New()
}

// Is reports whether h has computed this digest.
func (d Digest) Is(h hash.Hash) bool { return hex.EncodeToString(h.Sum(nil)) == d.Hex() }

// Of returns the digest that h has computed, of the same kind as d.
func (d Digest) Of(h hash.Hash) Digest {
	return d[:strings.IndexByte(string(d), ':')+1] + Digest(hex.EncodeToString(h.Sum(nil)))
}
