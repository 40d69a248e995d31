package server_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/realizar/realizar"
	"github.com/realizar/realizar/internal/modeltest"
	"github.com/realizar/realizar/internal/server"
)

// A llamaAnswer is an answer in llama.cpp's dialect, or an event of a stream.
type llamaAnswer struct {
	Index     int
	Content   string
	Stop      bool
	StopType  string `json:"stop_type"`
	Word      string `json:"stopping_word"`
	Evaluated int    `json:"tokens_evaluated"`
	Predicted int    `json:"tokens_predicted"`
	Timings   map[string]float64
	PromptN   *float64 `json:"timings/prompt_n"`
	Scores    []struct {
		ID  int
		Top []struct{ ID int } `json:"top_logprobs"`
	} `json:"completion_probabilities"`
}

func (r reply) llama(t testing.TB) (a llamaAnswer) {
	t.Helper()
	if err := json.Unmarshal([]byte(r.body), &a); err != nil || r.status != 200 {
		t.Fatalf("%d %s (%v)", r.status, r.body, err)
	}
	return a
}

// gaps returns the metadata of tokens for gaps.
func gaps(ids ...uint32) (all []modeltest.Option) {
	for i, key := range []string{"fim_pre", "fim_suf", "fim_mid"} {
		all = append(all, modeltest.Metadata("tokenizer.ggml."+key+"_token_id", ids[i]))
	}
	return all
}

// says returns the model's greedy answer, without the server.
func (s *service) says(r *realizar.Request, tokens int) string {
	s.t.Helper()
	r.MaxTokens, r.IgnoreEnd = &tokens, true
	var b strings.Builder
	for e, err := range s.model.Generate(s.t.Context(), r) {
		if err != nil {
			s.t.Fatal(err)
		}
		b.WriteString(e.Text)
	}
	return b.String()
}

// TestLlamaCompletion checks that the answer at llama.cpp's paths is the model's, whole and as a
// stream.
func TestLlamaCompletion(t *testing.T) {
	s := serve(t, server.Config{}, realizar.Options{})
	want := s.says(&realizar.Request{Prompt: "hello world"}, 8)
	const body = `"prompt": "hello world", "n_predict": 8, "temperature": 0, "ignore_eos": true`
	for _, path := range []string{"/completion", "/completions"} {
		a := s.post(path, `{`+body+`, "n_probs": 2, "cache_prompt": true, "id_slot": -1, "response_fields": ["content", "timings/prompt_n"]}`).llama(t)
		if a.Content != want || !a.Stop || a.StopType != "limit" || a.Predicted != 8 || a.Evaluated != 2 || len(a.Scores) != 8 || len(a.Scores[0].Top) != 2 || a.PromptN == nil || a.Timings["predicted_n"] != 8 {
			t.Errorf("%s: %+v, want %q", path, a, want)
		}
	}
	text, ended := "", 0
	for _, line := range strings.Split(s.post("/completion", `{`+body+`, "stream": true}`).body, "\n") {
		if data, ok := strings.CutPrefix(line, "data: "); ok {
			a := reply{200, nil, data}.llama(t)
			if text += a.Content; a.Stop {
				ended++
			}
		}
	}
	if text != want || ended != 1 {
		t.Errorf("a stream of %q with %d ends, want %q", text, ended, want)
	}
	var list []llamaAnswer
	if err := json.Unmarshal([]byte(s.post("/completion", `{"prompt": ["hello world", "hello"], "n_predict": 8, "temperature": 0, "ignore_eos": true}`).body), &list); err != nil || len(list) != 2 || list[0].Content != want || list[1].Index != 1 {
		t.Errorf("%+v (%v)", list, err)
	}
	runes := []rune(want)
	stop, err := json.Marshal([]string{string(runes[len(runes)/2:])})
	if err != nil {
		t.Fatal(err)
	}
	if a := s.post("/completion", `{`+body+`, "stop": `+string(stop)+`}`).llama(t); a.StopType != "word" || a.Word == "" {
		t.Errorf("%+v", a)
	}
	for body, param := range map[string]string{
		`{}`: "prompt", `{"prompt": "a", "mirostat": 2}`: "mirostat", `{"prompt": "a", "samplers": ["magic"]}`: "samplers",
		`{"prompt": "a", "stream": true, "n_indent": 4}`: "n_indent", `{"prompt": "a", "repeat_last_n": 4, "repeat_penalty": 1.1}`: "repeat_last_n",
		`{"prompt": "a", "logit_bias": [[1000000, 1]]}`: "logit_bias",
	} {
		if r := s.post("/completion", body); r.status != 400 || !strings.Contains(r.body, `"param":"`+param+`"`) {
			t.Errorf("%s: %d %s", body, r.status, r.body)
		}
	}
	s.post("/infill", `{"input_prefix": "a", "input_suffix": "b"}`).fails(t, http.StatusUnprocessableEntity, "", "unsuited_model")
}

// TestLlamaInfill checks that a gap is filled with the tokens that the file names, and that these
// tokens are plain text in requests.
func TestLlamaInfill(t *testing.T) {
	s := serve(t, server.Config{}, realizar.Options{}, append(gaps(270, 271, 269), modeltest.AddBOS())...)
	tok, err := s.model.Tokenizer()
	if err != nil {
		t.Fatal(err)
	}
	bos, _ := tok.BOS()
	ids := append([]int32{bos, 270}, tok.Encode("hello w", false)...)
	ids = append(append(append(ids, 271), tok.Encode(" the", false)...), 269)
	want := s.says(&realizar.Request{PromptTokens: ids}, 8)
	const body = `"n_predict": 8, "temperature": 0, "ignore_eos": true`
	a := s.post("/infill", `{"input_prefix": "hello", "prompt": " w", "input_suffix": " the", `+body+`}`).llama(t)
	if a.Content != want || a.Evaluated != len(ids) {
		t.Errorf("%+v, want %q of %d tokens", a, want, len(ids))
	}
	for text, more := range map[string]bool{`{"text": "hello"}`: true, `{"filename": "a.go", "text": "hello", "time": 3}`: true} {
		if a := s.post("/infill", `{"input_prefix": "hello w", "input_suffix": " the", "input_extra": [`+text+`], `+body+`}`).llama(t); (a.Evaluated > len(ids)) != more {
			t.Errorf("%s: %+v", text, a)
		}
	}
	typed := s.post("/infill", `{"input_prefix": "<|endoftext|>", "input_suffix": "", `+body+`}`).llama(t)
	if typed.Evaluated < 6 {
		t.Errorf("a special token that was typed is not text: %+v", typed)
	}
	s.post("/infill", `{"input_prefix": "`+strings.Repeat("hello ", 5000)+`", "input_suffix": ""}`).fails(t, 400, "input_prefix", "context_length_exceeded")
	s.post("/infill", `{"input_prefix": "a"}`).fails(t, 400, "input_suffix", "missing_required_parameter")
}

// TestLlamaSamplers checks that samplers are accepted in the order in which settings apply or in an
// equivalent one, that the infill sampler is left out by name, and that an answer can be limited by
// time.
func TestLlamaSamplers(t *testing.T) {
	s := serve(t, server.Config{}, realizar.Options{})
	for more, param := range map[string]string{
		`"samplers": ["penalties", "temperature", "top_k", "typ_p", "top_p", "min_p"]`:                        "",
		`"samplers": ["dry", "top_k", "typical_p", "xtc", "top_p", "min_p", "temperature"], "temperature": 1`: "",
		`"samplers": ["top_k", "temperature", "top_p"]`:                                                       "",
		`"samplers": ["top_p", "temperature"], "temperature": 0`:                                              "",
		`"samplers": ["min_p", "top_p", "temperature"], "temperature": 0.5, "min_p": 0, "top_p": 1`:           "",
		`"samplers": []`: "",
		`"samplers": ["top_p", "temperature"], "temperature": 0.5`:                 "samplers",
		`"samplers": ["typ_p", "temperature"], "temperature": 0, "typical_p": 0.5`: "samplers",
		`"samplers": ["top_p", "top_k"], "temperature": 1`:                         "samplers",
		`"samplers": ["top_k", "penalties"], "repeat_penalty": 1.1`:                "samplers",
		`"samplers": ["top_k", "top_k"]`:                                           "samplers",
		`"samplers": ["typ_p", "typical_p"]`:                                       "samplers",
		`"t_max_predict_ms": "soon"`:                                               "t_max_predict_ms",
		`"seed": 1.5`:                                                              "seed",
		`"stop": [""]`:                                                             "stop",
	} {
		r := s.post("/completion", `{"prompt": "hello", "n_predict": 2, `+more+`}`)
		if param == "" && r.status != 200 || param != "" && (r.status != 400 || !strings.Contains(r.body, `"param":"`+param+`"`)) {
			t.Errorf("%s: %d %s", more, r.status, r.body)
		}
	}
	r := s.post("/completion", `{"prompt": "hello", "n_predict": 2, "top_k": 40, "top_p": 0.9, "samplers": ["top_k", "top_p", "infill"], "t_max_prompt_ms": 500, "t_max_predict_ms": 1000}`)
	if got := r.header.Get("X-Left-Out"); r.status != 200 || got != "samplers[2] (infill)" {
		t.Errorf("%d %s, left out are %q", r.status, r.body, got)
	}
	const lines = `{"prompt": "hello", "n_predict": 400, "grammar": "root ::= (\"hello\\n\"){200}"`
	if a := s.post("/completion", lines+`, "t_max_predict_ms": 1}`).llama(t); a.StopType != "limit" || a.Predicted >= 400 {
		t.Errorf("%+v", a)
	}
}

// TestLlamaProps checks /props, /slots and the rendering of a chat.
func TestLlamaProps(t *testing.T) {
	s := serve(t, server.Config{}, realizar.Options{Parallel: 3}, modeltest.Template(toolTemplate))
	var p struct {
		Defaults struct {
			Context int `json:"n_ctx"`
		} `json:"default_generation_settings"`
		Slots    int    `json:"total_slots"`
		Path     string `json:"model_path"`
		Template string `json:"chat_template"`
		EOS      string `json:"eos_token"`
	}
	if err := json.Unmarshal([]byte(s.get("/props").body), &p); err != nil || p.Defaults.Context != s.model.Context() || p.Slots != 3 || p.Path != name || p.Template != toolTemplate || p.EOS == "" {
		t.Errorf("%+v (%v)", p, err)
	}
	var slots []map[string]any
	if err := json.Unmarshal([]byte(s.get("/slots").body), &slots); err != nil || len(slots) != 3 || slots[0]["is_processing"] != false {
		t.Errorf("%v (%v)", slots, err)
	}
	const chat = `{"model": "small", "messages": [{"role": "user", "content": "hello"}]}`
	var rendered, applied struct{ Prompt string }
	_ = json.Unmarshal([]byte(s.post("/v1/chat/completions/render", chat).body), &rendered)
	if r := s.post("/apply-template", chat); json.Unmarshal([]byte(r.body), &applied) != nil || applied.Prompt == "" || applied != rendered {
		t.Errorf("%d %s, want %q", r.status, r.body, rendered.Prompt)
	}
}

// TestTokenizeContent checks that /tokenize accepts requests of vLLM's and of llama.cpp's clients.
func TestTokenizeContent(t *testing.T) {
	s := serve(t, server.Config{}, realizar.Options{}, modeltest.AddBOS())
	plain, added := s.tokenize(`{"content": "hello"}`), s.tokenize(`{"content": "hello", "add_special": true}`)
	if plain.Count != 1 || added.Count != 2 {
		t.Errorf("%v and %v", plain, added)
	}
	if r := s.post("/tokenize", `{"content": "hello", "with_pieces": true}`); !strings.Contains(r.body, `"piece":"hello"`) {
		t.Error(r.body)
	}
	s.post("/tokenize", `{"content": "a", "prompt": "b"}`).fails(t, 400, "prompt", "invalid_value")
	if r := s.post("/detokenize", fmt.Sprintf(`{"tokens": [%d]}`, plain.Tokens[0])); r.body != `{"prompt":"hello","content":"hello"}` {
		t.Error(r.body)
	}
}
