package load

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"
)

// A counter is a server with token counts: three tokens for each word.
type counter struct{ stub }

func (c *counter) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Path != "/tokenize" {
		return c.stub.RoundTrip(r)
	}
	var body struct{ Prompt string }
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
		return nil, err
	}
	ids := make([]int, 3*len(strings.Fields(body.Prompt)))
	for i := range ids {
		ids[i] = i + 10
	}
	b, err := json.Marshal(map[string]any{"tokens": ids})
	return response(200, string(b)), err
}

// sent returns the bodies of the first n requests.
func sent(t *testing.T, o Options, server http.RoundTripper, n int) []map[string]any {
	t.Helper()
	g, err := newGenerator(t.Context(), o, server)
	if err != nil {
		t.Fatal(err)
	}
	bodies := make([]map[string]any, n)
	for i := range n {
		if err := json.Unmarshal(g.writer.request(i).body, &bodies[i]); err != nil {
			t.Fatal(err)
		}
	}
	return bodies
}

func text(body map[string]any) string {
	return body["messages"].([]any)[0].(map[string]any)["content"].(string)
}

func TestRequests(t *testing.T) {
	o := usual()
	o.Prompt, o.Answer = lengths("uniform:30:60"), lengths("uniform:2:9")
	o.Fields = map[string]any{"temperature": 0.5, "stream_options": nil, "max_tokens": nil, "top_k": json.Number("3")}
	a := sent(t, o, &stub{}, 20)
	if a[0]["model"] != "only" || a[0]["stream"] != true || a[0]["temperature"] != 0.5 || a[0]["top_k"] != 3.0 || a[0]["messages"].([]any)[0].(map[string]any)["role"] != "user" {
		t.Errorf("the request is %v", a[0])
	}
	for _, name := range []string{"stream_options", "max_tokens"} {
		if _, ok := a[0][name]; ok {
			t.Errorf("the request has %s", name)
		}
	}
	b := sent(t, o, &stub{}, 20)
	o.Seed++
	other := sent(t, o, &stub{}, 20)
	for i := range a {
		if n := len(strings.Fields(text(a[i]))); n < 30 || n > 60 {
			t.Errorf("a prompt of %d words", n)
		}
		if text(a[i]) != text(b[i]) || text(a[i]) == text(other[i]) || i > 0 && text(a[i]) == text(a[0]) {
			t.Errorf("prompt %d does not come from the seed and its number", i)
		}
	}
	o.Fields = nil
	if b := sent(t, o, &stub{}, 1)[0]; b["max_tokens"].(float64) < 2 || b["max_tokens"].(float64) > 9 || b["stream_options"].(map[string]any)["include_usage"] != true {
		t.Errorf("the request is %v", b)
	}
}

func TestSharedBeginnings(t *testing.T) {
	o := usual()
	o.Prompt, o.Shared, o.Prefixes = lengths("10"), 25, 3
	begins := map[string]int{}
	for _, body := range sent(t, o, &stub{}, 60) {
		words := strings.Fields(text(body))
		if len(words) != 35 {
			t.Fatalf("%d words, want 25 and 10", len(words))
		}
		begins[strings.Join(words[:25], " ")]++
	}
	if len(begins) != 3 {
		t.Errorf("%d beginnings, want 3", len(begins))
	}
	for _, n := range begins {
		if n < 8 {
			t.Errorf("a beginning is that of %d prompts in 60", n)
		}
	}
}

// If the server counts tokens, prompts of ids have exactly the tokens asked for, and prompts of
// words about as many.
func TestCounted(t *testing.T) {
	o := usual()
	o.Prompt, o.Shared, o.Prefixes = lengths("30"), 12, 1
	if n := len(strings.Fields(text(sent(t, o, &counter{}, 1)[0]))); n != 10+4 {
		t.Errorf("%d words of three tokens each, want 14", n)
	}
	o.Endpoint = Completions
	bodies := sent(t, o, &counter{}, 2)
	first, second := bodies[0]["prompt"].([]any), bodies[1]["prompt"].([]any)
	if len(first) != 42 || len(second) != 42 || !slices.Equal(first[:12], second[:12]) || slices.Equal(first, second) {
		t.Errorf("ids %v and %v", first, second)
	}
	for _, id := range first {
		if id.(float64) < 10 {
			t.Errorf("id %v is not the server's", id)
		}
	}
	if p, ok := sent(t, o, &stub{}, 1)[0]["prompt"].(string); !ok || len(strings.Fields(p)) != 42 {
		t.Errorf("without /tokenize the prompt is %q", p)
	}
}
