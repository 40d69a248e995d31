package anthropic_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/realizar/realizar"
	"github.com/realizar/realizar/internal/modeltest"
	"github.com/realizar/realizar/internal/server"
	"github.com/realizar/realizar/internal/server/dialects"
	"github.com/realizar/realizar/internal/server/servertest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A service is a server of a small model at an address.
type service struct {
	*httptest.Server
	t      testing.TB
	model  *realizar.Model
	server *server.Server
}

// serve serves a small model, as c says.
func serve(t testing.TB, c server.Config, options ...modeltest.Option) *service {
	t.Helper()
	if c.Dialects == nil {
		c.Dialects = dialects.All
	}
	if c.Parallel == 0 {
		c.Parallel = 4
	}
	m := servertest.Open(t, modeltest.Llama(t, options...), realizar.Options{Parallel: 4})
	h, s := servertest.Serve(t, servertest.One(t, m, "small", "other"), c)
	return &service{h, t, m, s}
}

// A reply is an answer that has come as a whole.
type reply struct {
	status int
	header http.Header
	body   string
}

// post sends body, which is JSON, to path, with headers in pairs.
func (s *service) post(path, body string, headers ...string) reply {
	s.t.Helper()
	r, err := http.NewRequest(http.MethodPost, s.URL+path, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	resp, err := s.Client().Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return reply{resp.StatusCode, resp.Header, string(data)}
}

// A messageJSON is an answer.
type messageJSON struct {
	ID, Type, Role, Model string
	Content               []blockJSON
	StopReason            *string         `json:"stop_reason"`
	StopSequence          *string         `json:"stop_sequence"`
	StopDetails           json.RawMessage `json:"stop_details"`
	Usage                 usageJSON
	Timings               json.RawMessage
}

type blockJSON struct {
	Type      string          `json:"type"`
	Text      string          `json:"text,omitempty"`
	Thinking  string          `json:"thinking,omitempty"`
	Signature string          `json:"signature,omitempty"`
	ID        string          `json:"id,omitempty"`
	Name      string          `json:"name,omitempty"`
	Input     json.RawMessage `json:"input,omitempty"`
}

type usageJSON struct {
	Input   int `json:"input_tokens"`
	Created int `json:"cache_creation_input_tokens"`
	Cached  int `json:"cache_read_input_tokens"`
	Output  int `json:"output_tokens"`
	Details struct {
		Thinking int `json:"thinking_tokens"`
	} `json:"output_tokens_details"`
	Tier string `json:"service_tier"`
}

func (u usageJSON) prompt() int { return u.Input + u.Created + u.Cached }

// whole reads an answer that is not a stream.
func (r reply) whole(t testing.TB) messageJSON {
	t.Helper()
	var m messageJSON
	if err := json.Unmarshal([]byte(r.body), &m); err != nil || r.status != 200 {
		t.Fatalf("%d %s: %v", r.status, r.body, err)
	}
	if m.Type != "message" || m.Role != "assistant" || m.Model != "small" || !strings.HasPrefix(m.ID, "msg_") || m.Content == nil || m.StopReason == nil || string(m.StopDetails) != "null" || m.Usage.Tier != "standard" {
		t.Errorf("a message %s", r.body)
	}
	return m
}

func value(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// say asks for an answer, whole and as a stream, which must be the same but for the names
// of calls.
func (s *service) say(fields string) messageJSON {
	s.t.Helper()
	whole := s.post("/v1/messages?beta=true", body(fields)).whole(s.t)
	streamed, _ := s.stream(body(fields + `, "stream": true`))
	for _, m := range []*messageJSON{&whole, &streamed} {
		m.ID = ""
		for i := range m.Content {
			if m.Content[i].Type == "tool_use" && len(m.Content[i].ID) != 9 {
				s.t.Errorf("the name of a call is %q", m.Content[i].ID)
			}
			m.Content[i].ID = ""
		}
	}
	if streamed.Usage.prompt() != whole.Usage.prompt() {
		s.t.Errorf("a prompt of %+v, and in a stream %+v", whole.Usage, streamed.Usage)
	}
	a, b := whole, streamed
	a.Usage.Input, a.Usage.Cached, b.Usage.Input, b.Usage.Cached = 0, 0, 0, 0
	if one, other := encoded(s.t, a), encoded(s.t, b); one != other {
		s.t.Errorf("%s: an answer is %s, in a stream %s", fields, one, other)
	}
	return whole
}

// body is a request; fields are those beside the model.
func body(fields string) string { return `{"model": "small", ` + fields + `}` }

func encoded(t testing.TB, v any) string {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// stream sends a request whose answer is a stream, and adds it up as Anthropic's clients
// do. It returns the stream's text, too.
func (s *service) stream(body string) (messageJSON, string) {
	s.t.Helper()
	r := s.post("/v1/messages", body)
	if r.status != 200 || !strings.HasPrefix(r.header.Get("Content-Type"), "text/event-stream") {
		s.t.Fatalf("%d %s", r.status, r.body)
	}
	m, err := added(r.body)
	if err != nil {
		s.t.Fatalf("%v in\n%s", err, r.body)
	}
	return m, r.body
}

// added adds a stream up.
func added(text string) (m messageJSON, err error) {
	name, open, ended, inputs := "", -1, false, map[int]string{}
	lines := bufio.NewScanner(strings.NewReader(text))
	lines.Buffer(nil, 1<<22)
	for lines.Scan() {
		line := lines.Text()
		if n, ok := strings.CutPrefix(line, "event: "); ok {
			name = n
			continue
		}
		data, ok := strings.CutPrefix(line, "data: ")
		if !ok {
			continue
		}
		var e struct {
			Type    string
			Index   int
			Message *messageJSON
			Block   *blockJSON `json:"content_block"`
			Delta   struct {
				Type, Text, Thinking, Signature string
				JSON                            string          `json:"partial_json"`
				StopReason                      *string         `json:"stop_reason"`
				StopSequence                    *string         `json:"stop_sequence"`
				StopDetails                     json.RawMessage `json:"stop_details"`
			}
			Usage   usageJSON
			Timings json.RawMessage
			Error   json.RawMessage
		}
		if err := json.Unmarshal([]byte(data), &e); err != nil || e.Type != name || ended {
			return m, fmt.Errorf("an event %q: %s: %w", name, data, err)
		}
		switch e.Type {
		case "message_start":
			m = *e.Message
			if len(m.Content) != 0 || m.Content == nil || m.StopReason != nil || m.Usage.Output != 0 {
				return m, fmt.Errorf("a message begins as %s", data)
			}
		case "ping":
		case "content_block_start":
			if open >= 0 || e.Index != len(m.Content) || e.Block.Type == "tool_use" && string(e.Block.Input) != "{}" {
				return m, fmt.Errorf("a block begins amid another one: %s", data)
			}
			open, m.Content = e.Index, append(m.Content, *e.Block)
		case "content_block_delta":
			if e.Index != open {
				return m, fmt.Errorf("a delta of no block: %s", data)
			}
			b := &m.Content[open]
			switch b.Type + " " + e.Delta.Type {
			case "text text_delta":
				b.Text += e.Delta.Text
			case "thinking thinking_delta":
				b.Thinking += e.Delta.Thinking
			case "thinking signature_delta":
				b.Signature += e.Delta.Signature
			case "tool_use input_json_delta":
				inputs[open] += e.Delta.JSON
			default:
				return m, fmt.Errorf("a delta of another block: %s", data)
			}
		case "content_block_stop":
			if e.Index != open {
				return m, fmt.Errorf("no block ends: %s", data)
			}
			if in := inputs[open]; in != "" {
				if m.Content[open].Input = json.RawMessage(in); !json.Valid([]byte(in)) {
					m.Content[open].Input = json.RawMessage("{}") // it was cut off
				}
			}
			open = -1
		case "message_delta":
			if open >= 0 {
				return m, fmt.Errorf("a message ends amid a block")
			}
			e.Usage.Tier = m.Usage.Tier
			m.StopReason, m.StopSequence, m.StopDetails, m.Usage, m.Timings = e.Delta.StopReason, e.Delta.StopSequence, e.Delta.StopDetails, e.Usage, e.Timings
		case "message_stop":
			ended = true
		default:
			return m, fmt.Errorf("an event %s", data)
		}
	}
	if !ended {
		return m, fmt.Errorf("the stream has no end")
	}
	return m, lines.Err()
}
