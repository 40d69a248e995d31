package e2e_test

import (
	"bytes"
	"encoding/json"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"testing"
)

// postJSON sends a request to a server and returns the members of the answer.
func (s *server) postJSON(path string, body map[string]any) map[string]any {
	s.t.Helper()
	data, err := json.Marshal(body)
	if err != nil {
		s.t.Fatal(err)
	}
	r, err := http.NewRequest(http.MethodPost, s.url+path, bytes.NewReader(data))
	if err != nil {
		s.t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Authorization", "Bearer "+key)
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		s.t.Fatalf("%s %s: %v", resp.Status, answer, err)
	}
	var members map[string]any
	if err := json.Unmarshal(answer, &members); err != nil {
		s.t.Fatal(err)
	}
	return members
}

// One process runs prompts and another one answers them, with the tokens and log-probabilities of a
// process that does both; also when the first has gone.
func TestPrefillInAnotherProcess(t *testing.T) {
	file := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(file, []byte("4c0a7a2f6d0b4b0f9d55c3a1e6f78a12\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	transfers := func() *server {
		return serveDemo(t, "--parallel", "2", "--kv-host", "16MiB", "--kv-transfer", "tcp://127.0.0.1:0", "--kv-transfer-key-file", file)
	}
	whole, prefill, decode := serveDemo(t, "--parallel", "2"), transfers(), transfers()
	rng := rand.New(rand.NewPCG(2, 2))
	for i := range 12 {
		prompt := make([]int64, 40+rng.IntN(500))
		for k := range prompt {
			prompt[k] = 300 + rng.Int64N(1000)
		}
		params := prefill.postJSON("/v1/completions", map[string]any{
			"model": demo, "prompt": prompt, "max_tokens": 1, "max_completion_tokens": 1, "stream": false,
			"kv_transfer_params": map[string]any{"do_remote_decode": true, "do_remote_prefill": false, "remote_engine_id": nil, "remote_block_ids": nil, "remote_host": nil, "remote_port": nil},
		})["kv_transfer_params"].(map[string]any)
		gone := i == 11
		if gone {
			prefill.stop()
		}
		request := map[string]any{"model": demo, "prompt": prompt, "max_tokens": 12, "seed": i, "temperature": float64(i % 2), "logprobs": 3, "presence_penalty": float64(i % 3)}
		want := whole.postJSON("/v1/completions", request)
		request["kv_transfer_params"] = params
		got := decode.postJSON("/v1/completions", request)
		if !reflect.DeepEqual(got["choices"], want["choices"]) {
			t.Errorf("request %d of %d tokens: %v, want %v", i, len(prompt), got["choices"], want["choices"])
		}
		cached := got["usage"].(map[string]any)["prompt_tokens_details"].(map[string]any)["cached_tokens"]
		blocks := float64(32 * len(params["remote_block_ids"].([]any)))
		if gone {
			blocks = 0
		}
		if cached != blocks {
			t.Errorf("request %d: %v tokens are cached, want %v", i, cached, blocks)
		}
	}
}
