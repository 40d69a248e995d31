package server_test

import (
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/realizar/realizar"
	"github.com/realizar/realizar/internal/modeltest"
	"github.com/realizar/realizar/internal/server"
)

// A request need not name the one model that is served.
func TestUnnamedModel(t *testing.T) {
	s := serve(t, server.Config{}, realizar.Options{}, modeltest.Template(toolTemplate))
	for path, body := range map[string]string{
		"/v1/chat/completions": `{"messages":[{"role":"user","content":"hi"}],"max_tokens":2}`,
		"/v1/completions":      `{"prompt":"hi","max_tokens":2,"model":null}`,
		"/v1/responses":        `{"input":"hi","max_output_tokens":2,"model":""}`,
		"/v1/embeddings":       `{"input":"hi"}`,
	} {
		var a struct{ Model string }
		if r := s.post(path, body); json.Unmarshal([]byte(r.body), &a) != nil || r.status != 200 || a.Model != name {
			t.Errorf("%s: %d %s", path, r.status, r.body)
		}
	}
}

// What no client means anything by changes nothing.
func TestMeaningless(t *testing.T) {
	s := serve(t, server.Config{}, realizar.Options{}, modeltest.Template(toolTemplate))
	const nothing = `"user":"me","service_tier":"priority","store":false,"safety_identifier":null,"something_new":null,"temperature":0,"seed":null,"extra_body":{"a":1}`
	for path, body := range map[string]string{
		"/v1/chat/completions": `{"messages":[{"role":"user","content":"hi"}],"max_tokens":2,"metadata":{"a":"b"},` + nothing + `}`,
		"/v1/completions":      `{"prompt":"hi","max_tokens":2,"metadata":{"a":"b"},` + nothing + `}`,
		"/v1/responses":        `{"input":"hi","max_output_tokens":2,` + nothing + `}`,
		"/v1/embeddings":       `{"input":"hi","user":"me","metadata":{},"dimensions":null}`,
	} {
		if r := s.post(path, body); r.status != 200 || r.header.Get("X-Left-Out") != "" {
			t.Errorf("%s: %d %s", path, r.status, r.body)
		}
	}
}

// A suffix is the text behind a gap, and none for a model without the tokens for one.
func TestSuffix(t *testing.T) {
	s := serve(t, server.Config{}, realizar.Options{}, gaps(270, 271, 269)...)
	want := s.says(&realizar.Request{Infill: &realizar.Infill{Before: "hello", After: " world"}}, 6)
	const body = `"prompt":"hello","max_tokens":6,"temperature":0,"ignore_eos":true`
	var a struct{ Choices []struct{ Text string } }
	if r := s.post("/v1/completions", `{`+body+`,"suffix":" world"}`); json.Unmarshal([]byte(r.body), &a) != nil || len(a.Choices) != 1 || a.Choices[0].Text != want {
		t.Errorf("%d %s, want %q", r.status, r.body, want)
	}
	s.post("/v1/completions", `{`+body+`,"suffix":"a","echo":true}`).fails(t, 400, "echo", "invalid_value")
	s.post("/v1/completions", `{`+body+`,"suffix":"a","parse_special":true}`).fails(t, 400, "parse_special", "invalid_value")
	s.post("/v1/completions", `{"prompt":[1,2],"suffix":"a"}`).fails(t, 400, "suffix", "invalid_value")
}

// An embedding of fewer dimensions is the head of the whole one, of unit length.
func TestDimensions(t *testing.T) {
	s := serve(t, server.Config{}, realizar.Options{})
	vector := func(more string) []float64 {
		var a struct {
			Data []struct{ Embedding []float64 }
		}
		if r := s.post("/v1/embeddings", `{"input":"hello"`+more+`}`); json.Unmarshal([]byte(r.body), &a) != nil || len(a.Data) != 1 {
			t.Fatalf("%d %s", r.status, r.body)
		}
		return a.Data[0].Embedding
	}
	whole, short := vector(""), vector(`,"dimensions":8`)
	if len(short) != 8 {
		t.Fatalf("%d dimensions", len(short))
	}
	length, scale := 0.0, short[0]/whole[0]
	for i, f := range short {
		length += f * f
		if math.Abs(f-scale*whole[i]) > 1e-5 {
			t.Errorf("element %d is %v of %v", i, f, whole[i])
		}
	}
	if math.Abs(length-1) > 1e-5 {
		t.Errorf("the length is %v", math.Sqrt(length))
	}
}

// Tools that a model cannot have are left out, and named; functions beside them stay.
func TestToolsLeftOut(t *testing.T) {
	s := serve(t, server.Config{}, realizar.Options{}, modeltest.Template(toolTemplate))
	const chatFunction, function = `{"type":"function","function":{"name":"f","parameters":{}}}`, `{"type":"function","name":"f","parameters":{}}`
	const others = `{"type":"web_search"},{"type":"local\nshell"}`
	tokens := func(path, body string) int {
		r := s.post(path, body)
		var a struct {
			Usage struct {
				Prompt int `json:"prompt_tokens"`
				Input  int `json:"input_tokens"`
			}
		}
		if err := json.Unmarshal([]byte(r.body), &a); err != nil || r.status != 200 {
			t.Fatalf("%s: %d %s", body, r.status, r.body)
		}
		want := ""
		if strings.Contains(body, "web_search") {
			want = "tools[0] (web_search), tools[1] (local?shell)"
		}
		if got := r.header.Get("X-Left-Out"); got != want {
			t.Errorf("%s: left out are %q, want %q", body, got, want)
		}
		return a.Usage.Prompt + a.Usage.Input
	}
	for path, body := range map[string][2]string{
		"/v1/chat/completions": {`{"messages":[{"role":"user","content":"hi"}],"max_tokens":2,"tools":[`, chatFunction},
		"/v1/responses":        {`{"input":"hi","max_output_tokens":2,"tools":[`, function},
	} {
		if with, alone := tokens(path, body[0]+others+","+body[1]+"]}"), tokens(path, body[0]+body[1]+"]}"); with != alone {
			t.Errorf("%s: %d tokens with others, %d without", path, with, alone)
		}
		tokens(path, body[0]+others+"]}")
		s.post(path, body[0]+others+`],"tool_choice":"required"}`).fails(t, 400, "tool_choice", "invalid_value")
	}
}

// An address that has nothing says what there is.
func TestNothingThere(t *testing.T) {
	s := serve(t, server.Config{}, realizar.Options{})
	for path, says := range map[string]string{
		"/v1/audio/speech":                 "no sound",
		"/v1/images/generations":           "no images",
		"/images/generations":              "no images",
		"/v1/files":                        "not kept",
		"/v1/responses/resp_1":             "not kept",
		"/chat/completions":                "POST /v1/chat/completions",
		"/v1/v1/chat/completions":          "POST /v1/chat/completions",
		"/v1/api/chat":                     "POST /api/chat",
		"/nothing":                         "/v1/chat/completions",
		"/v1/" + strings.Repeat("a", 1000): "/v1/chat/completions",
	} {
		if e := s.get(path).fails(t, 404, "", "not_found"); !strings.Contains(e.Message, says) || len(e.Message) > 1000 {
			t.Errorf("%s: %s; want %q", path, e.Message, says)
		}
	}
}

// One model of a list, and the version of the program.
func TestModelNamed(t *testing.T) {
	s := serveNamed(t, []string{"small", "org/other"}, server.Config{Version: "v1.2.3"}, realizar.Options{}, modeltest.Llama(t))
	for _, id := range []string{"small", "org/other", "org%2Fother"} {
		if r := s.get("/v1/models/" + id); r.status != 200 || !strings.Contains(r.body, `"object":"model"`) {
			t.Errorf("%s: %d %s", id, r.status, r.body)
		}
	}
	if r := s.get("/v1/models/"); r.status != 200 || !strings.Contains(r.body, `"object":"list"`) {
		t.Errorf("%d %s", r.status, r.body)
	}
	var v map[string]string
	if err := json.Unmarshal([]byte(s.get("/version").body), &v); err != nil || v["version"] != "v1.2.3" {
		t.Errorf("%v (%v)", v, err)
	}
}
