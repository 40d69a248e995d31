package demo_test

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sync/errgroup"

	"github.com/realizar/realizar"
	"github.com/realizar/realizar/chat"
	"github.com/realizar/realizar/demo"
)

// A question is a held-out question, which was not in the training data, with the criteria for a
// right answer.
type question struct {
	Kind     string
	Held     string // what did not occur in training: the wording, the frame around it, or the combination
	Messages []struct{ Role, Content string }
	Must     []oneOf
	MustNot  []string `json:"must_not"`
	Exact    *string
}

// oneOf is a list of texts, one of which must be in the answer.
type oneOf []string

// UnmarshalJSON decodes a string or a list of strings.
func (o *oneOf) UnmarshalJSON(data []byte) error {
	var one string
	if json.Unmarshal(data, &one) == nil {
		*o = oneOf{one}
		return nil
	}
	return json.Unmarshal(data, (*[]string)(o))
}

// plain returns text in lower case with single spaces.
func plain(text string) string { return strings.ToLower(strings.Join(strings.Fields(text), " ")) }

// right reports whether an answer meets the question's criteria.
func (q *question) right(answer string) bool {
	if q.Exact != nil {
		return strings.Join(strings.Fields(answer), " ") == strings.Join(strings.Fields(*q.Exact), " ")
	}
	answer = plain(answer)
	for _, want := range q.Must {
		if !slices.ContainsFunc(want, func(w string) bool { return strings.Contains(answer, plain(w)) }) {
			return false
		}
	}
	return !slices.ContainsFunc(q.MustNot, func(bad string) bool { return strings.Contains(answer, strings.ToLower(bad)) })
}

// aboutCommands are the kinds of questions about commands and flags.
var aboutCommands = []string{"flags", "flags of commands", "commands", "command lines", "command lines explained"}

// questions returns the held-out questions of these kinds, or all.
func questions(t *testing.T, kinds ...string) (all []*question) {
	t.Helper()
	f, err := os.Open(filepath.Join("..", "train", "heldout.jsonl.gz"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(z)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		q := new(question)
		if err := json.Unmarshal(lines.Bytes(), q); err != nil {
			t.Fatal(err)
		}
		if len(kinds) == 0 || slices.Contains(kinds, q.Kind) {
			all = append(all, q)
		}
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	if len(all) < 1000 {
		t.Fatalf("%d questions, want more", len(all))
	}
	return all
}

// The model answers at least 95% of the held-out questions about commands and flags correctly. With
// -v the test logs the wrong answers.
func TestQuestions(t *testing.T) {
	all := questions(t, aboutCommands...)
	m, err := realizar.Open(t.Context(), demo.Name, realizar.Options{Device: "cpu"})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = m.Close() }()
	answers := make([]string, len(all))
	var asking errgroup.Group
	asking.SetLimit(16)
	for i, q := range all {
		asking.Go(func() error {
			r := &realizar.ChatRequest{Generation: realizar.Generation{MaxTokens: new(int)}}
			*r.MaxTokens = 200
			for _, message := range q.Messages {
				r.Messages = append(r.Messages, chat.Message{Role: message.Role, Content: message.Content})
			}
			var text strings.Builder
			for event, err := range m.Chat(t.Context(), r) {
				if err != nil {
					return err
				}
				text.WriteString(event.Text)
			}
			answers[i] = text.String()
			return nil
		})
	}
	if err := asking.Wait(); err != nil {
		t.Fatal(err)
	}
	wrong := 0
	for i, q := range all {
		if !q.right(answers[i]) {
			wrong++
			t.Logf("%s, %s: %q\n\t%q", q.Kind, q.Held, q.Messages[len(q.Messages)-1].Content, answers[i])
		}
	}
	t.Logf("%d of %d right", len(all)-wrong, len(all))
	if 100*wrong > 5*len(all) {
		t.Errorf("%d of %d questions about commands and flags are answered wrongly, more than 5%%", wrong, len(all))
	}
}

// Opening the model does not read a file of the same name in the current folder.
func TestOffline(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.WriteFile(demo.Name, []byte("another"), 0o600); err != nil {
		t.Fatal(err)
	}
	d, err := realizar.Describe(demo.Name)
	if err != nil || d.Problem != "" {
		t.Fatalf("%v, %s", err, d.Problem)
	}
	if d.FileBytes > 8<<20 {
		t.Errorf("the model takes %d bytes of the program, want 8 MiB at most", d.FileBytes)
	}
}
