package load

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
)

// A Client sends requests to a server.
type Client struct {
	http *http.Client
	base string // without /v1
	key  string
}

// NewClient returns a client of the server at an address such as http://127.0.0.1:8080 or
// localhost:8080, with or without a path before /v1. A malformed address gives an error that wraps
// [ErrOptions].
func NewClient(address, key string, t http.RoundTripper) (*Client, error) {
	whole := address
	if place, _, _ := strings.Cut(address, "/"); !strings.Contains(address, "://") {
		if host, port, err := net.SplitHostPort(place); err == nil && host != "" && port != "" {
			whole = "http://" + address
		}
	}
	u, err := url.Parse(whole)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.RawQuery != "" || u.Fragment != "" {
		return nil, optionsErrorf("%.200q is not the address of a server; want one such as http://127.0.0.1:8080", address)
	}
	base := strings.TrimSuffix(strings.TrimRight(u.String(), "/"), "/v1")
	return &Client{http: &http.Client{Transport: t}, base: base, key: key}, nil
}

// A statusError reports a response whose status is an error.
type statusError struct {
	status  int
	message string
}

func (e *statusError) Error() string {
	if e.message == "" {
		return fmt.Sprintf("status %d", e.status)
	}
	return fmt.Sprintf("status %d: %s", e.status, e.message)
}

// A streamError reports an error in the middle of an answer.
type streamError struct{ message string }

func (e *streamError) Error() string { return "error in the stream: " + e.message }

var (
	errCutOff  = errors.New("the answer was cut off")
	errNoEvent = errors.New("the answer is not a stream of events in OpenAI's form")
)

// kind returns the key that err is counted under. It leaves out what differs between requests.
func kind(err error) string {
	var status *statusError
	var stream *streamError
	var dns *net.DNSError
	var op *net.OpError
	switch {
	case errors.As(err, &status):
		return fmt.Sprintf("status %d", status.status)
	case errors.As(err, &stream):
		return "error in the stream"
	case errors.Is(err, errCutOff), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return "cut off"
	case errors.Is(err, errNoEvent):
		return "no stream of events"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "connection refused"
	case errors.As(err, &dns):
		return "name not found"
	case errors.As(err, &op) && op.Op == "dial":
		return "no connection"
	}
	return "other"
}

func (c *Client) do(ctx context.Context, method, path string, body []byte) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, method, c.base+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	if c.key != "" {
		r.Header.Set("Authorization", "Bearer "+c.key)
	}
	answer, err := c.http.Do(r)
	if err != nil {
		return nil, err
	}
	if answer.StatusCode != http.StatusOK {
		defer func() { _ = answer.Body.Close() }()
		return nil, &statusError{answer.StatusCode, errorMessage(answer.Body)}
	}
	return answer, nil
}

// errorMessage returns the message in the body of an error, or the whole body if it does not have
// OpenAI's form. Of a page of HTML it returns nothing.
func errorMessage(body io.Reader) string {
	text, _ := io.ReadAll(io.LimitReader(body, 64<<10)) // the bytes read before an error will do
	var e struct{ Error serverError }
	if json.Unmarshal(text, &e) == nil && e.Error.Message != "" {
		return e.Error.Message
	}
	if text = bytes.TrimSpace(text); bytes.HasPrefix(text, []byte("<")) {
		return ""
	}
	return fmt.Sprintf("%.200s", text)
}

type serverError struct{ Message string }

// UnmarshalJSON reads OpenAI's form. It takes any other form as the message.
func (e *serverError) UnmarshalJSON(b []byte) error {
	var object struct{ Message string }
	if json.Unmarshal(b, &object) == nil && object.Message != "" {
		e.Message = object.Message
	} else {
		e.Message = string(b)
	}
	return nil
}

// Get reads a path of the server. It returns the header and the body, and an error if the body has
// more than most bytes.
func (c *Client) Get(ctx context.Context, path string, most int64) (http.Header, []byte, error) {
	answer, err := c.do(ctx, http.MethodGet, path, nil)
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = answer.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(answer.Body, most+1))
	if err == nil && int64(len(body)) > most {
		err = fmt.Errorf("%s has more than %d bytes", path, most)
	}
	return answer.Header, body, err
}

// call sends a request whose response is one JSON object.
func (c *Client) call(ctx context.Context, method, path string, body []byte, into any) error {
	answer, err := c.do(ctx, method, path, body)
	if err != nil {
		return err
	}
	defer func() { _ = answer.Body.Close() }()
	return json.NewDecoder(io.LimitReader(answer.Body, 16<<20)).Decode(into)
}

// onlyModel returns the name of the server's only model.
func (c *Client) onlyModel(ctx context.Context) (string, error) {
	var list struct{ Data []struct{ ID string } }
	if err := c.call(ctx, http.MethodGet, "/v1/models", nil, &list); err != nil {
		return "", fmt.Errorf("%s: no list of models: %w", c.base, err)
	}
	switch names := list.Data; len(names) {
	case 0:
		return "", fmt.Errorf("%s names no model; name one", c.base)
	case 1:
		return names[0].ID, nil
	default:
		var all []string
		for _, m := range names {
			all = append(all, m.ID)
		}
		return "", optionsErrorf("%s has %d models; name one of %s", c.base, len(names), strings.Join(all, ", "))
	}
}

// tokenize returns a text's ids, or none if the server does not support it.
func (c *Client) tokenize(ctx context.Context, model, text string) ([]int32, error) {
	body, err := json.Marshal(map[string]any{"model": model, "prompt": text, "add_special_tokens": false})
	if err != nil {
		return nil, err
	}
	var result struct{ Tokens []int32 }
	err = c.call(ctx, http.MethodPost, "/tokenize", body, &result)
	var status *statusError
	switch {
	case err == nil:
		return result.Tokens, nil
	case errors.As(err, &status) && status.status != http.StatusUnauthorized && status.status != http.StatusServiceUnavailable:
		return nil, nil
	case errors.As(err, new(*json.SyntaxError)), errors.As(err, new(*json.UnmarshalTypeError)):
		return nil, nil // the server returns some page for every path
	}
	return nil, fmt.Errorf("%s: %w", c.base, err)
}

// An answer is a streamed response, with the times at which its parts arrived.
type answer struct {
	due, sent, ended time.Time
	arrivals         []time.Time // of the parts with text
	usage            *usage      // nil if the server has not sent it
	meter            *atomic.Int64
}

type usage struct {
	PromptTokens     int `json:"prompt_tokens"`
	CompletionTokens int `json:"completion_tokens"`
	Details          struct {
		CachedTokens int `json:"cached_tokens"`
	} `json:"prompt_tokens_details"`
}

// A part is one event of a stream.
type part struct {
	Choices []struct {
		Text  string
		Delta struct {
			Content          string
			Reasoning        string
			ReasoningContent string          `json:"reasoning_content"`
			ToolCalls        json.RawMessage `json:"tool_calls"`
		}
		FinishReason string `json:"finish_reason"`
	}
	Usage *usage
	Error *serverError
}

func (p *part) hasText() bool {
	for i := range p.Choices {
		c := &p.Choices[i]
		if d := &c.Delta; c.Text != "" || d.Content != "" || d.Reasoning != "" || d.ReasoningContent != "" || len(d.ToolCalls) > 4 {
			return true // something no longer than null or [] is not a call
		}
	}
	return false
}

// maxEvent is the longest line of a stream that is accepted, in bytes.
const maxEvent = 16 << 20

// stream sends a request and reads the stream of its answer.
func (c *Client) stream(ctx context.Context, e Endpoint, body []byte, a *answer) error {
	path := "/v1/chat/completions"
	if e == Completions {
		path = "/v1/completions"
	}
	r, err := c.do(ctx, http.MethodPost, path, body)
	if err != nil {
		return err
	}
	defer func() { _ = r.Body.Close() }()
	lines := bufio.NewScanner(r.Body)
	lines.Buffer(make([]byte, 0, 4<<10), maxEvent)
	finished := false
	for lines.Scan() {
		data, ok := bytes.CutPrefix(lines.Bytes(), []byte("data:"))
		if !ok {
			continue // an empty line, a comment or another field
		}
		now := time.Now()
		data = bytes.TrimSpace(data)
		if string(data) == "[DONE]" {
			if !finished {
				return errCutOff
			}
			a.ended = now
			_, err := io.Copy(io.Discard, r.Body) // so that the connection can be reused
			return err
		}
		var p part
		if json.Unmarshal(data, &p) != nil {
			return errNoEvent
		}
		if p.Error != nil {
			return &streamError{p.Error.Message}
		}
		if p.hasText() {
			a.arrivals = append(a.arrivals, now)
			a.meter.Add(1)
		}
		for i := range p.Choices {
			finished = finished || p.Choices[i].FinishReason != ""
		}
		if p.Usage != nil {
			a.usage = p.Usage
		}
	}
	if err := lines.Err(); err != nil {
		return err
	}
	if len(a.arrivals) == 0 && !finished {
		return errNoEvent
	}
	return errCutOff
}
