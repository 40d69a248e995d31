package server_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/realizar/realizar"
	"github.com/realizar/realizar/internal/modeltest"
	"github.com/realizar/realizar/internal/server"
)

// TestItemReference checks that a turn that refers to items of the previous answer equals the turn
// that sends them.
func TestItemReference(t *testing.T) {
	s := serve(t, server.Config{}, realizar.Options{}, modeltest.Template(toolTemplate))
	type response struct {
		Output []struct {
			ID      string
			Content []struct{ Text string }
		}
		Usage struct {
			Input int `json:"input_tokens"`
		}
	}
	ask := func(body string) (a response) {
		r := s.post("/v1/responses", body)
		if err := json.Unmarshal([]byte(r.body), &a); err != nil || r.status != 200 || len(a.Output) != 1 {
			t.Fatalf("%s: %d %s (%v)", body, r.status, r.body, err)
		}
		return a
	}
	const first = `{"input":"hello","temperature":0,"max_output_tokens":6`
	second := func(item string) string {
		return `{"input":[{"role":"user","content":"hello"},` + item + `,{"role":"user","content":"more"}],"temperature":0,"max_output_tokens":6}`
	}
	a := ask(first + `}`)
	text, err := json.Marshal(a.Output[0].Content[0].Text)
	if err != nil {
		t.Fatal(err)
	}
	want := ask(second(`{"role":"assistant","content":` + string(text) + `}`))
	for range 2 { // any number of times
		got := ask(second(`{"type":"item_reference","id":"` + a.Output[0].ID + `"}`))
		if got.Usage != want.Usage || got.Output[0].Content[0].Text != want.Output[0].Content[0].Text {
			t.Errorf("%+v, want %+v", got, want)
		}
	}
	stream := s.post("/v1/responses", first+`,"stream":true}`).body
	_, rest, _ := strings.Cut(stream, `"item":{"type":"message","id":"`)
	id, _, _ := strings.Cut(rest, `"`)
	if got := ask(second(`{"type":"item_reference","id":"` + id + `"}`)); got.Usage != want.Usage {
		t.Errorf("of a stream: %+v, want %+v", got, want)
	}
	unkept := ask(first + `,"store":false}`)
	s.post("/v1/responses", second(`{"type":"item_reference","id":"`+unkept.Output[0].ID+`"}`)).fails(t, 400, "input[1].id", "invalid_value")
}
