package ollama_test

import (
	"bufio"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/realizar/realizar"
	"github.com/realizar/realizar/internal/modeltest"
	"github.com/realizar/realizar/internal/server"
	"github.com/realizar/realizar/internal/server/ollama"
	"github.com/realizar/realizar/internal/server/servertest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// name is what the model is served under.
const name = "small"

// A service is a server of a small model that speaks Ollama's dialect alone.
type service struct {
	*httptest.Server
	t     testing.TB
	model *realizar.Model
}

func serve(t testing.TB, c server.Config, options ...modeltest.Option) *service {
	t.Helper()
	return serveFile(t, c, modeltest.Llama(t, options...))
}

func serveFile(t testing.TB, c server.Config, path string) *service {
	t.Helper()
	return serveNamed(t, []string{name}, time.Time{}, c, path)
}

// serveNamed serves the model at path under these names, created at that time.
func serveNamed(t testing.TB, names []string, created time.Time, c server.Config, path string) *service {
	t.Helper()
	m := servertest.Open(t, path, realizar.Options{})
	models := servertest.One(t, m, names...)
	if !created.IsZero() {
		h, _ := models.Look(names[0])
		h.Model.Created = created
		h.Release()
	}
	c.Parallel, c.Dialects = 16, []server.Dialect{ollama.Dialect{}}
	h, _ := servertest.Serve(t, models, c)
	return &service{h, t, m}
}

// A reply is an answer that has come as a whole.
type reply struct {
	status int
	header http.Header
	body   string
}

func (s *service) send(method, path, body string) reply {
	s.t.Helper()
	r, err := http.NewRequest(method, s.URL+path, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
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

func (s *service) post(path, body string) reply {
	s.t.Helper()
	return s.send(http.MethodPost, path, body)
}

// fails reads an error of that status, whose text has all that it says.
func (r reply) fails(t testing.TB, status int, says ...string) {
	t.Helper()
	var body map[string]string
	if err := json.Unmarshal([]byte(r.body), &body); err != nil || len(body) != 1 || body["error"] == "" || r.status != status {
		t.Errorf("%d %s is no error of %d (%v)", r.status, r.body, status, err)
	}
	for _, s := range says {
		if !strings.Contains(body["error"], s) {
			t.Errorf("%q does not say %q", body["error"], s)
		}
	}
}

// An answer is a line of a stream, or all of an answer.
type answer struct {
	Model     string
	CreatedAt string `json:"created_at"`
	Message   *struct {
		Role, Content, Thinking string
		ToolCalls               []struct {
			ID       string
			Function struct {
				Index     int
				Name      string
				Arguments map[string]any
			}
		} `json:"tool_calls"`
	}
	Response, Thinking *string
	Done               bool
	DoneReason         string `json:"done_reason"`
	Context            []int32
	LogProbs           []struct {
		Token   string
		LogProb float64
		Bytes   []int
		Top     []struct {
			Token   string
			LogProb float64
			Bytes   []int
		} `json:"top_logprobs"`
	}
	Total      int64 `json:"total_duration"`
	Load       int64 `json:"load_duration"`
	PromptEval int64 `json:"prompt_eval_duration"`
	Eval       int64 `json:"eval_duration"`
	Prompt     int   `json:"prompt_eval_count"`
	Count      int   `json:"eval_count"`
}

// text is what the line says.
func (a answer) text() string {
	if a.Message != nil {
		return a.Message.Content
	}
	if a.Response != nil {
		return *a.Response
	}
	return ""
}

// whole reads an answer that is no stream.
func (r reply) whole(t testing.TB) answer {
	t.Helper()
	var a answer
	if err := json.Unmarshal([]byte(r.body), &a); err != nil || r.status != 200 || r.header.Get("Content-Type") != "application/json" || !a.Done {
		t.Fatalf("%d %q %s: %v", r.status, r.header.Get("Content-Type"), r.body, err)
	}
	return a
}

// lines reads a stream: all its lines, and what they say together.
func (r reply) lines(t testing.TB) (all []answer, text string) {
	t.Helper()
	if r.status != 200 || r.header.Get("Content-Type") != server.Lines {
		t.Fatalf("%d %q %s", r.status, r.header.Get("Content-Type"), r.body)
	}
	scan := bufio.NewScanner(strings.NewReader(r.body))
	scan.Buffer(nil, 1<<20)
	for scan.Scan() {
		var a answer
		if err := json.Unmarshal(scan.Bytes(), &a); err != nil {
			t.Fatalf("%s: %v", scan.Bytes(), err)
		}
		if len(all) > 0 && all[len(all)-1].Done {
			t.Errorf("a line after the last: %s", scan.Bytes())
		}
		all = append(all, a)
		text += a.text()
	}
	if len(all) == 0 || !all[len(all)-1].Done || all[len(all)-1].text() != "" {
		t.Fatalf("the stream has no end: %s", r.body)
	}
	return all, text
}
