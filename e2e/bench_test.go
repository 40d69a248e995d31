package e2e_test

import (
	"encoding/json"
	"os/exec"
	"testing"
)

// tokens returns the sums of the prompt tokens and of the answer tokens that the server
// counts.
func (s *server) tokens() [2]float64 {
	return [2]float64{s.metric("vllm:request_prompt_tokens_sum"), s.metric("vllm:request_generation_tokens_sum")}
}

// TestBenchServe checks that the load generator and the server count the same tokens.
func TestBenchServe(t *testing.T) {
	s := serve(t)
	for _, endpoint := range []string{"chat", "completions"} {
		cmd := exec.Command(command, "bench", "serve", s.url, "--api-key", key, "--endpoint", endpoint, "-c", "6", "-n", "60",
			"--prompt-tokens", "40", "--shared-prefix", "100", "--answer-tokens", "25", "--ignore-eos", "--json", "-")
		before := s.tokens()
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		var r struct {
			Model        string
			Completed    int
			Failed       int
			PromptTokens int                 `json:"prompt_tokens"`
			CachedTokens int                 `json:"cached_tokens"`
			AnswerTokens int                 `json:"answer_tokens"`
			FirstToken   struct{ Count int } `json:"first_token_ms"`
		}
		if err := json.Unmarshal(out, &r); err != nil {
			t.Fatal(err)
		}
		if r.Model != modelName || r.Completed != 60 || r.Failed != 0 || r.AnswerTokens != 60*25 || r.FirstToken.Count != 60 {
			t.Errorf("%s: %s", endpoint, out)
		}
		if endpoint == "completions" && r.PromptTokens != 60*140 || r.PromptTokens < 60*120 || r.PromptTokens > 60*220 {
			t.Errorf("%s: %d prompt tokens, want about %d", endpoint, r.PromptTokens, 60*140)
		}
		if r.CachedTokens < 50*64 {
			t.Errorf("%s: %d tokens of the shared beginning were in the cache", endpoint, r.CachedTokens)
		}
		after := s.tokens()
		if after[0]-before[0] != float64(r.PromptTokens) || after[1]-before[1] != float64(r.AnswerTokens) {
			t.Errorf("%s: the server counts %v before and %v after, for %d and %d tokens", endpoint, before, after, r.PromptTokens, r.AnswerTokens)
		}
	}
}
