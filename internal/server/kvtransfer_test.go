package server_test

import (
	"encoding/json"
	"fmt"
	"net"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/realizar/realizar"
	"github.com/realizar/realizar/internal/kvtransfer"
	"github.com/realizar/realizar/internal/modeltest"
	"github.com/realizar/realizar/internal/server"
)

// transferring returns a server that transfers pages, and its peer.
func transferring(t *testing.T, key string, lease time.Duration, path string) (*service, *kvtransfer.Peer) {
	t.Helper()
	l, err := kvtransfer.Listen("tcp://127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := kvtransfer.New(l, kvtransfer.Config{Key: []byte(key), Host: "127.0.0.1", Port: l.Addr().(*net.TCPAddr).Port, Lease: lease, Stall: 5 * time.Second})
	s := serveNamed(t, []string{"babble"}, server.Config{Parallel: 4, Transfer: p}, realizar.Options{HostCache: 16 << 20, TransferCache: true, Context: 1024}, path)
	t.Cleanup(func() { _ = p.Close() })
	return s, p
}

// A transferAnswer is what the tests read of an answer.
type transferAnswer struct {
	Choices []struct {
		Text     string
		Message  struct{ Content string }
		Logprobs json.RawMessage
	}
	Usage struct {
		Details struct {
			Cached int `json:"cached_tokens"`
		} `json:"prompt_tokens_details"`
	}
	Params json.RawMessage `json:"kv_transfer_params"`
}

func transferAnswerOf(t *testing.T, r reply) (a transferAnswer) {
	t.Helper()
	if err := json.Unmarshal([]byte(r.body), &a); err != nil || r.status != 200 {
		t.Fatalf("%d %s: %v", r.status, r.body, err)
	}
	return a
}

const (
	sharedKey = "a key of at least thirty-two bytes"
	// prefillParams are what llm-d's sidecar sends to the server that runs the prompt.
	prefillParams = `"kv_transfer_params":{"do_remote_decode":true,"do_remote_prefill":false,"remote_engine_id":null,"remote_block_ids":null,"remote_host":null,"remote_port":null},` +
		`"stream":false,"max_tokens":1,"max_completion_tokens":1`
)

// One server runs the prompt, and another one answers as one server does that does both. What is
// exchanged has the fields of vLLM's connectors, and may pass through programs that read and write
// JSON.
func TestPrefillElsewhere(t *testing.T) {
	path := modeltest.Llama(t, modeltest.Context(1024))
	prefill, sender := transferring(t, sharedKey, 0, path)
	decode, receiver := transferring(t, sharedKey, 0, path)
	whole, _ := transferring(t, sharedKey, 0, path)
	text := strings.Repeat("the world and some words ", 20)
	chat := func(i int) string { return fmt.Sprintf(`"messages":[{"role":"user","content":"%d %s"}]`, i, text) }
	completion := func(i int) string { return fmt.Sprintf(`"prompt":"%d %s"`, i, text) }
	for i, test := range []struct{ path, request, rest string }{
		{"/v1/completions", completion(1), `"max_tokens":9,"temperature":0,"logprobs":2`},
		{"/v1/completions", completion(2) + `,"cache_salt":"mine"`, `"max_tokens":9,"seed":7,"frequency_penalty":1`},
		{"/v1/chat/completions", chat(3), `"max_tokens":9,"seed":7,"logprobs":true`},
		{"/v1/chat/completions", chat(4), `"max_tokens":9,"temperature":0,"n":2`},
	} {
		first := transferAnswerOf(t, prefill.post(test.path, "{"+test.request+","+prefillParams+"}"))
		var params map[string]any
		if err := json.Unmarshal(first.Params, &params); err != nil {
			t.Fatalf("%s: %v", first.Params, err)
		}
		var names []string
		for name := range params {
			names = append(names, name)
		}
		slices.Sort(names)
		want := []string{"do_remote_decode", "do_remote_prefill", "remote_block_ids", "remote_engine_id", "remote_host", "remote_num_tokens", "remote_port", "remote_request_id", "tp_size"}
		blocks, _ := params["remote_block_ids"].([]any)
		if !slices.Equal(names, want) || params["do_remote_prefill"] != true || params["do_remote_decode"] != false || params["tp_size"] != 1.0 ||
			params["remote_host"] != "127.0.0.1" || len(blocks) < 3 || params["remote_num_tokens"] != float64(32*len(blocks)) || params["remote_engine_id"] != prefill.model.CacheIdentity() {
			t.Errorf("the offer is %s", first.Params)
		}
		passed, err := json.Marshal(params)
		if err != nil {
			t.Fatal(err)
		}
		got := transferAnswerOf(t, decode.post(test.path, "{"+test.request+","+test.rest+`,"kv_transfer_params":`+string(passed)+"}"))
		all := transferAnswerOf(t, whole.post(test.path, "{"+test.request+","+test.rest+"}"))
		if !reflect.DeepEqual(got.Choices, all.Choices) {
			t.Errorf("%s: %+v, want %+v", test.path, got.Choices, all.Choices)
		}
		if got.Usage.Details.Cached != 32*len(blocks) || got.Params != nil {
			t.Errorf("%s: %d tokens are cached of %d; %s", test.path, got.Usage.Details.Cached, 32*len(blocks), got.Params)
		}
		if s := receiver.Stats().Received; s.Done != uint64(i+1) || s.Failed > 0 || s.Bytes == 0 {
			t.Errorf("%+v", s)
		}
	}
	families := server.Scrape(t, decode.URL+"/metrics")
	if n := families["realizar_kv_transfer_received_total"].GetMetric()[0].GetCounter().GetValue(); n != 4 {
		t.Errorf("%v transfers are counted", n)
	}
	if s := sender.Stats(); s.Held != 0 || s.Offers != 4 {
		t.Errorf("%+v", s)
	}
}

// What is wrong with an offer makes the server compute the prompt itself, with the same answer.
func TestPrefillThatIsNotThere(t *testing.T) {
	path := modeltest.Llama(t, modeltest.Context(1024))
	prefill, _ := transferring(t, sharedKey, 0, path)
	brief, _ := transferring(t, sharedKey, time.Nanosecond, path)
	other, _ := transferring(t, sharedKey, 0, modeltest.Llama(t, modeltest.Context(1024), modeltest.Seed(5)))
	stranger, _ := transferring(t, strings.Repeat("x", 32), 0, path)
	whole, _ := transferring(t, sharedKey, 0, path)
	decode, peer := transferring(t, sharedKey, 0, path)
	prompt := func(i int) string { return fmt.Sprintf(`"prompt":"%d %s"`, i, strings.Repeat("more words ", 20)) }
	for i, test := range []struct {
		what   string
		from   *service
		change func(p map[string]any)
	}{
		{"no lease", brief, nil},
		{"another model", other, nil},
		{"another key", stranger, nil},
		{"another host", prefill, func(p map[string]any) { p["remote_host"] = "127.0.0.9" }},
		{"another port", prefill, func(p map[string]any) { p["remote_port"] = 1 }},
		{"fewer blocks", prefill, func(p map[string]any) { p["remote_block_ids"] = []int{0} }},
		{"no blocks", prefill, func(p map[string]any) { p["remote_block_ids"] = []int{} }},
		{"many blocks", prefill, func(p map[string]any) { p["remote_block_ids"] = make([]int, 5000) }},
		{"another id", prefill, func(p map[string]any) { p["remote_request_id"] = "an id" }},
		{"tls", prefill, func(p map[string]any) { p["remote_tls"] = true }},
	} {
		first := transferAnswerOf(t, test.from.post("/v1/completions", "{"+prompt(i)+","+prefillParams+"}"))
		var params map[string]any
		if err := json.Unmarshal(first.Params, &params); err != nil {
			t.Fatalf("%s: %v", first.Params, err)
		}
		if test.change != nil {
			test.change(params)
		}
		passed, err := json.Marshal(params)
		if err != nil {
			t.Fatal(err)
		}
		const rest = `,"max_tokens":8,"temperature":0`
		got := transferAnswerOf(t, decode.post("/v1/completions", "{"+prompt(i)+rest+`,"kv_transfer_params":`+string(passed)+"}"))
		want := transferAnswerOf(t, whole.post("/v1/completions", "{"+prompt(i)+rest+"}"))
		if !reflect.DeepEqual(got.Choices, want.Choices) || got.Usage.Details.Cached != 0 {
			t.Errorf("%s: %+v, want %+v", test.what, got, want)
		}
	}
	if n := peer.Stats().Received.Done; n != 0 {
		t.Errorf("%d transfers are done", n)
	}
	// An offer of one prompt with another one.
	first := transferAnswerOf(t, prefill.post("/v1/completions", "{"+prompt(50)+","+prefillParams+"}"))
	if got := transferAnswerOf(t, decode.post("/v1/completions", "{"+prompt(51)+`,"kv_transfer_params":`+string(first.Params)+"}")); got.Usage.Details.Cached != 0 {
		t.Errorf("pages of another prompt are used: %+v", got)
	}
	// A prompt of less than a page.
	if a := transferAnswerOf(t, prefill.post("/v1/completions", `{"prompt":"a",`+prefillParams+"}")); string(a.Params) != "null" {
		t.Errorf("an offer of a short prompt: %s", a.Params)
	}
}

// Requests that cannot mean what they say are refused.
func TestWrongTransfers(t *testing.T) {
	path := modeltest.Llama(t, modeltest.Context(1024))
	s, _ := transferring(t, sharedKey, 0, path)
	plain := serveNamed(t, []string{"babble"}, server.Config{Parallel: 4}, realizar.Options{}, path)
	const param = "kv_transfer_params"
	for _, test := range []struct {
		s           *service
		rest        string
		param, code string
	}{
		{plain, `"kv_transfer_params":{"do_remote_decode":true}`, param, ""},
		{s, `"kv_transfer_params":{"do_remote_decode":true,"do_remote_prefill":true}`, param, ""},
		{s, `"kv_transfer_params":{"do_remote_decode":true},"stream":true`, param, ""},
		{s, `"kv_transfer_params":{"do_remote_prefill":true}`, param, ""},
		{s, `"kv_transfer_params":{"do_remote_prefill":true,"remote_port":0}`, param + ".remote_port", ""},
		{s, `"kv_transfer_params":{"do_remote_prefill":1}`, param + ".do_remote_prefill", ""},
		{s, `"kv_transfer_params":{"remote_block_ids":[[1]]}`, param + ".remote_block_ids", ""},
		{s, `"kv_transfer_params":{"other":1}`, param + ".other", "unknown_parameter"},
		{s, `"kv_transfer_params":1`, param, ""},
		{s, `"max_tokens":1,"max_completion_tokens":2`, "max_tokens", ""},
	} {
		r := test.s.post("/v1/completions", `{"prompt":"hello",`+test.rest+"}")
		var body struct{ Error failure }
		if err := json.Unmarshal([]byte(r.body), &body); err != nil || r.status != 400 || value(body.Error.Param) != test.param || test.code != "" && value(body.Error.Code) != test.code {
			t.Errorf("%s: %d %s (%v)", test.rest, r.status, r.body, err)
		}
	}
	if r := s.post("/v1/completions", `{"prompt":["a","b"],"kv_transfer_params":{"do_remote_decode":true}}`); r.status != 400 {
		t.Errorf("%d %s", r.status, r.body)
	}
	for _, rest := range []string{`{}`, `{"do_remote_decode":false,"do_remote_prefill":false,"remote_host":null}`, "null"} {
		if a := transferAnswerOf(t, plain.post("/v1/completions", `{"prompt":"hello","max_tokens":1,"kv_transfer_params":`+rest+"}")); a.Params != nil {
			t.Errorf("%s: %s", rest, a.Params)
		}
	}
}
