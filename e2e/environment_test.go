package e2e_test

import (
	"testing"

	"github.com/anthropics/anthropic-sdk-go"
	"github.com/ollama/ollama/api"
	"github.com/openai/openai-go/v3"
)

// TestEnvironment checks that clients take the server's address and key from the environment
// variables in docs/clients.md.
func TestEnvironment(t *testing.T) {
	s := serve(t)
	t.Setenv("OPENAI_BASE_URL", s.url+"/v1")
	t.Setenv("OPENAI_API_KEY", key)
	c := openai.NewClient()
	if m, err := c.Models.Get(t.Context(), modelName); err != nil || m.ID != modelName {
		t.Errorf("OpenAI's client: %+v, %v", m, err)
	}
	t.Setenv("ANTHROPIC_BASE_URL", s.url)
	for _, name := range []string{"ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"} {
		t.Setenv("ANTHROPIC_API_KEY", "")
		t.Setenv(name, key)
		a := anthropic.NewClient()
		if m, err := a.Messages.New(t.Context(), messaged(question, 2)); err != nil || m.Model != modelName {
			t.Errorf("Anthropic's client with %s: %v", name, err)
		}
	}
	open := serve(t, "--api-key-file=") // Ollama's client does not send a key
	t.Setenv("OLLAMA_HOST", open.url)
	o, err := api.ClientFromEnvironment()
	if err != nil {
		t.Fatal(err)
	}
	if list, err := o.List(t.Context()); err != nil || len(list.Models) != 1 || list.Models[0].Name != modelName+":latest" {
		t.Errorf("Ollama's client: %+v, %v", list, err)
	}
}
