package e2e_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/ollama/ollama/api"

	"github.com/realizar/realizar/internal/pull/hubtest"
)

// A shop offers models: it has a hub and registries on loopback that offer the model of the
// tests. The store of the test is a folder of its own.
type shop struct {
	*hubtest.Server
	babble []byte
	name   string // name of the model in the registry
	open   string // host of a registry that accepts models
}

func newShop(t *testing.T) *shop {
	t.Helper()
	babble, err := os.ReadFile(model)
	if err != nil {
		t.Fatal(err)
	}
	s := &shop{Server: hubtest.New(t), babble: babble}
	s.AddRepo("org/babble", map[string][]byte{"babble-Q8_0.gguf": babble})
	s.AddManifest("ns/babble:1", fmt.Appendf(nil, `{"schemaVersion":2,"config":{"mediaType":"application/vnd.docker.container.image.v1+json","digest":%q,"size":2},"layers":[{"mediaType":"application/vnd.ollama.image.model","digest":%q,"size":%d}]}`,
		s.AddBlob([]byte("{}")), s.AddBlob(babble), len(babble)))
	s.name = s.Host + "/ns/babble:1"
	r := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	t.Cleanup(r.Close)
	s.open = r.Listener.Addr().String()
	home := t.TempDir()
	for name, value := range map[string]string{
		"HOME": home, "HF_HOME": filepath.Join(home, "hf"), "HF_HUB_CACHE": "", "HF_TOKEN": "", "HF_ENDPOINT": s.URL, "REALIZAR_HOME": filepath.Join(home, "realizar"),
		"OLLAMA_MODELS": filepath.Join(home, "ollama"),
	} {
		t.Setenv(name, value)
	}
	return s
}

// managed starts a server that lets clients change the models.
func (s *shop) managed(t *testing.T, args ...string) *server {
	t.Helper()
	return serve(t, append([]string{"--manage-models", "--allow-registry", s.Host, "--allow-registry", s.open}, args...)...)
}

// steps are the lines of a progress stream.
type steps []api.ProgressResponse

func (s *steps) add(p api.ProgressResponse) error {
	*s = append(*s, p)
	return nil
}

// are checks the lines, and that the file with the digest is complete at the end.
func (s steps) are(t *testing.T, digest string, size int, want ...string) {
	t.Helper()
	var got []string
	whole := digest == ""
	for _, p := range s {
		got = append(got, p.Status)
		if p.Completed > p.Total {
			t.Errorf("%+v", p)
		}
		whole = whole || p.Digest == digest && p.Completed == int64(size) && p.Total == int64(size)
	}
	if got = slices.Compact(got); !whole || !slices.Equal(slices.DeleteFunc(got, func(s string) bool { return strings.HasPrefix(s, "pulling ") && !slices.Contains(want, s) }), want) {
		t.Errorf("the lines are %+v, want %q and all of %s", s, want, digest)
	}
}

// listed returns the names of the models.
func listed(t *testing.T, c *api.Client) []string {
	t.Helper()
	list, err := c.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, m := range list.Models {
		names = append(names, m.Name)
		if m.Digest == "" || m.Size == 0 || m.ModifiedAt.IsZero() || m.Details.Family != "llama" || m.Details.QuantizationLevel != "Q8_0" {
			t.Errorf("%+v", m)
		}
	}
	return names
}

func has(t *testing.T, c *api.Client, want ...string) {
	t.Helper()
	if got := listed(t, c); !slices.Equal(got, want) {
		t.Errorf("the models are %q, want %q", got, want)
	}
}

// TestOllamaStoreClosed checks that without --manage-models nothing is fetched or changed.
func TestOllamaStoreClosed(t *testing.T) {
	shop := newShop(t)
	s := serve(t)
	c := s.ollama()
	progress := func(api.ProgressResponse) error { return nil }
	for name, err := range map[string]error{
		"pull": c.Pull(t.Context(), &api.PullRequest{Model: shop.name}, progress), "push": c.Push(t.Context(), &api.PushRequest{Model: "a/b"}, progress),
		"create": c.Create(t.Context(), &api.CreateRequest{Model: "a", From: "b"}, progress), "copy": c.Copy(t.Context(), &api.CopyRequest{Source: "a", Destination: "b"}),
		"delete": c.Delete(t.Context(), &api.DeleteRequest{Model: modelName}), "blob": c.CreateBlob(t.Context(), "sha256:"+strings.Repeat("0", 64), strings.NewReader("a")),
	} {
		t.Run(name, func(t *testing.T) { unhappy(t, err, 403, "--manage-models") })
	}
	var lines steps
	if err := c.Pull(t.Context(), &api.PullRequest{Model: modelName}, lines.add); err != nil {
		t.Error(err)
	}
	lines.are(t, "", 0, "success")
	if shop.Asked() != 0 {
		t.Error("something was asked for")
	}
}

func TestOllamaPull(t *testing.T) {
	shop := newShop(t)
	s := shop.managed(t)
	c := s.ollama()
	has(t, c, modelName+":latest")
	digest := "sha256:" + hubtest.SHA256(shop.babble)
	all := []string{modelName + ":latest"}
	for _, name := range []string{shop.name, "hf.co/org/babble:Q8_0"} {
		var lines steps
		if err := c.Pull(t.Context(), &api.PullRequest{Model: name}, lines.add); err != nil {
			t.Fatal(err)
		}
		lines.are(t, digest, len(shop.babble), "pulling manifest", "pulling "+digest[7:19], "verifying sha256 digest", "writing manifest", "success")
		lines = nil
		if err := c.Pull(t.Context(), &api.PullRequest{Model: name, Stream: new(false)}, lines.add); err != nil {
			t.Fatal(err)
		}
		lines.are(t, "", 0, "success")
		all = append(all, name)
		has(t, c, all...)
		show, err := c.Show(t.Context(), &api.ShowRequest{Model: name, Verbose: true})
		if err != nil || show.ModelInfo["llama.context_length"] != 1024.0 || show.Template == "" || len(show.Tensors) != 21 || !strings.Contains(show.Modelfile, "FROM "+name) || fmt.Sprint(show.Capabilities) != "[completion]" {
			t.Errorf("%+v (%v)", show, err)
		}
		// The server does not serve it, and the error says so.
		r := talk(question, 5)
		r.Model = name
		_, err = s.talk(r)
		unhappy(t, err, 404, "not found", "not served; name it")
	}
	if running, err := c.ListRunning(t.Context()); err != nil || len(running.Models) != 1 {
		t.Errorf("%+v (%v)", running, err)
	}
	var lines steps
	unhappy(t, c.Pull(t.Context(), &api.PullRequest{Model: "example.org/a/b"}, lines.add), 403, "--allow-registry example.org")
	unhappy(t, c.Pull(t.Context(), &api.PullRequest{Model: "../../etc/passwd"}, lines.add), 400, "want ollama:")
	if len(lines) > 0 {
		t.Errorf("%+v", lines)
	}
	// A stream that has begun ends with the error.
	if err := c.Pull(t.Context(), &api.PullRequest{Model: shop.Host + "/ns/other"}, lines.add); err == nil || !strings.Contains(err.Error(), "no such model or tag") {
		t.Error(err)
	}
	unhappy(t, c.Pull(t.Context(), &api.PullRequest{Model: shop.Host + "/ns/other", Stream: new(false)}, lines.add), 404, "no such model or tag")
}

// TestOllamaPullServed checks that with --models store a model can be used as soon as it is
// pulled, by its name in the hub or in Ollama's registry, and no longer after it is deleted.
// The store is empty at first.
func TestOllamaPullServed(t *testing.T) {
	shop := newShop(t)
	s := start(t, "--models", "store", "--manage-models", "--allow-registry", shop.Host)
	c := s.ollama()
	has(t, c)
	for _, name := range []string{shop.name, "hf.co/org/babble:Q8_0"} {
		var lines steps
		if err := c.Pull(t.Context(), &api.PullRequest{Model: name}, lines.add); err != nil {
			t.Fatal(err)
		}
		r := talk(question, 5)
		r.Model = name
		if answer, err := s.talk(r); err != nil || answer.EvalCount != 5 {
			t.Errorf("%+v (%v)", answer, err)
		}
		unhappy(t, c.Delete(t.Context(), &api.DeleteRequest{Model: name}), 409, "loaded")
		if err := c.Generate(t.Context(), &api.GenerateRequest{Model: name, KeepAlive: &api.Duration{}}, func(api.GenerateResponse) error { return nil }); err != nil {
			t.Error(err)
		}
		if err := c.Delete(t.Context(), &api.DeleteRequest{Model: name}); err != nil {
			t.Error(err)
		}
		_, err := s.talk(r)
		unhappy(t, err, 404, "not found")
	}
	has(t, c)
}

// stalls makes a server send half of a large file and then nothing.
var stalls = hubtest.Behavior{Fault: func(_ string, size int64) (hubtest.Fault, int64) {
	if size > 1000 {
		return hubtest.Stall, size / 2
	}
	return hubtest.None, 0
}}

// TestOllamaPullCancelled checks that a pull ends when its client leaves, and that the next
// one continues it.
func TestOllamaPullCancelled(t *testing.T) {
	shop := newShop(t)
	shop.Set(stalls)
	s := shop.managed(t)
	c := s.ollama()
	ctx, cancel := context.WithCancel(t.Context())
	err := c.Pull(ctx, &api.PullRequest{Model: shop.name}, func(p api.ProgressResponse) error {
		if p.Completed > 0 {
			cancel()
		}
		return ctx.Err()
	})
	if !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	has(t, c, modelName+":latest")
	shop.Set(hubtest.Behavior{})
	var lines steps
	if err := c.Pull(t.Context(), &api.PullRequest{Model: shop.name}, lines.add); err != nil {
		t.Fatal(err)
	}
	lines.are(t, "sha256:"+hubtest.SHA256(shop.babble), len(shop.babble), "pulling manifest", "pulling "+hubtest.SHA256(shop.babble)[:12], "verifying sha256 digest", "writing manifest", "success")
	has(t, c, modelName+":latest", shop.name)
}

// TestOllamaPullStopped checks that a server that is told to stop ends its pulls. The cleanup
// of the test checks that it exits with 0.
func TestOllamaPullStopped(t *testing.T) {
	shop := newShop(t)
	shop.Set(stalls)
	ended := make(chan error, 1)
	t.Run("server", func(t *testing.T) {
		c, came := shop.managed(t).ollama(), make(chan struct{})
		go func() {
			once := sync.OnceFunc(func() { close(came) })
			ended <- c.Pull(context.Background(), &api.PullRequest{Model: shop.name}, func(p api.ProgressResponse) error {
				if p.Completed > 0 {
					once()
				}
				return nil
			})
		}()
		<-came
	})
	if err := <-ended; err == nil || !strings.Contains(err.Error(), "shutting down") {
		t.Errorf("the client is told %v", err)
	}
}

func TestOllamaCopyDelete(t *testing.T) {
	shop := newShop(t)
	s := shop.managed(t)
	c := s.ollama()
	ignore := func(api.ProgressResponse) error { return nil }
	if err := c.Pull(t.Context(), &api.PullRequest{Model: shop.name}, ignore); err != nil {
		t.Fatal(err)
	}
	if err := c.Copy(t.Context(), &api.CopyRequest{Source: shop.name, Destination: "mine"}); err != nil {
		t.Fatal(err)
	}
	if err := c.Create(t.Context(), &api.CreateRequest{Model: "team/again:2", From: "mine"}, ignore); err != nil {
		t.Fatal(err)
	}
	has(t, c, modelName+":latest", shop.name, "mine:latest", "team/again:2")
	if err := c.Delete(t.Context(), &api.DeleteRequest{Model: shop.name}); err != nil {
		t.Fatal(err)
	}
	if err := c.Delete(t.Context(), &api.DeleteRequest{Model: "team/again:2"}); err != nil {
		t.Fatal(err)
	}
	has(t, c, modelName+":latest", "mine:latest")
	unhappy(t, c.Delete(t.Context(), &api.DeleteRequest{Model: "team/again:2"}), 404, "not found")
	unhappy(t, c.Delete(t.Context(), &api.DeleteRequest{Model: modelName}), 404, "not found") // it is a file that the command line names
	unhappy(t, c.Delete(t.Context(), &api.DeleteRequest{Model: "/etc/passwd"}), 400, "want ollama:")
	unhappy(t, c.Copy(t.Context(), &api.CopyRequest{Source: "none", Destination: "b"}), 404, "not found")
	unhappy(t, c.Copy(t.Context(), &api.CopyRequest{Source: "mine"}), 400, "destination")
	if _, err := os.Stat(model); err != nil {
		t.Error(err)
	}
}

// TestOllamaDeleteLoaded checks that a loaded model cannot be deleted until it is unloaded.
func TestOllamaDeleteLoaded(t *testing.T) {
	shop := newShop(t)
	if out, err := exec.Command(command, "pull", "ollama:"+shop.name, "--quiet").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	s := serveModel(t, "ollama:"+shop.name, "--manage-models", "--keep-alive", "1h")
	c := s.ollama()
	if a, err := s.talk(talk(question, 5)); err != nil || a.EvalCount == 0 {
		t.Fatalf("%+v, %v", a, err)
	}
	unhappy(t, c.Delete(t.Context(), &api.DeleteRequest{Model: shop.name}), 409, "is loaded", modelName)
	last := api.GenerateResponse{}
	if err := c.Generate(t.Context(), &api.GenerateRequest{Model: modelName, KeepAlive: &api.Duration{}}, func(a api.GenerateResponse) error { last = a; return nil }); err != nil || last.DoneReason != "unload" {
		t.Fatalf("%+v, %v", last, err)
	}
	for {
		running, err := c.ListRunning(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if len(running.Models) == 0 {
			break
		}
	}
	if err := c.Delete(t.Context(), &api.DeleteRequest{Model: shop.name}); err != nil {
		t.Error(err)
	}
}

func TestOllamaCreate(t *testing.T) {
	shop := newShop(t)
	s := shop.managed(t)
	c := s.ollama()
	digest := "sha256:" + hubtest.SHA256(shop.babble)
	blob := func() int {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodHead, s.url+"/api/blobs/"+digest, nil)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := (&http.Client{Transport: keyed{key}}).Do(r)
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		return answer.StatusCode
	}
	var lines steps
	r := &api.CreateRequest{Model: "made", Files: map[string]string{"model.gguf": digest}}
	if err := c.Create(t.Context(), r, lines.add); err == nil || !strings.Contains(err.Error(), "/api/blobs/") {
		t.Error(err)
	}
	if got := blob(); got != 404 {
		t.Errorf("HEAD: %d", got)
	}
	unhappy(t, c.CreateBlob(t.Context(), digest, strings.NewReader("something else")), 400, digest)
	unhappy(t, c.CreateBlob(t.Context(), "sha256:12", strings.NewReader("a")), 400, "64 hexadecimal digits")
	// A client that leaves before the end leaves nothing behind.
	ctx, cancel := context.WithCancel(t.Context())
	if err := c.CreateBlob(ctx, digest, io.MultiReader(bytes.NewReader(shop.babble[:1000]), leaving{cancel})); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if got := blob(); got != 404 {
		t.Errorf("HEAD: %d", got)
	}
	for range 2 { // the second time the file exists already
		if err := c.CreateBlob(t.Context(), digest, io.MultiReader(bytes.NewReader(shop.babble))); err != nil {
			t.Fatal(err)
		}
		if got := blob(); got != 200 {
			t.Errorf("HEAD: %d", got)
		}
	}
	lines = nil
	if err := c.Create(t.Context(), r, lines.add); err != nil {
		t.Fatal(err)
	}
	lines.are(t, "", 0, "using existing layer "+digest, "writing manifest", "success")
	has(t, c, modelName+":latest", "made:latest")
	want := run(t, question, "--max-tokens", "5")
	cmd := exec.Command(command, "run", "ollama:made", question, "--device", "cpu", "--json", "--temperature", "0", "--max-tokens", "5")
	out, err := cmd.Output()
	var got oracle
	if err := errors.Join(err, json.Unmarshal(out, &got)); err != nil || got.Text != want.Text {
		t.Errorf("%s, %v; want %q", out, err, want.Text)
	}
	for field, change := range map[string]func(*api.CreateRequest){
		"template": func(r *api.CreateRequest) { r.Template = "x" }, "system": func(r *api.CreateRequest) { r.System = "x" }, "quantize": func(r *api.CreateRequest) { r.Quantize = "q4_K_M" },
		"parameters": func(r *api.CreateRequest) { r.Parameters = map[string]any{"top_k": 1} }, "adapters": func(r *api.CreateRequest) { r.Adapters = map[string]string{"a": digest} },
		"messages": func(r *api.CreateRequest) { r.Messages = []api.Message{{Role: "user", Content: "x"}} }, "license": func(r *api.CreateRequest) { r.License = "MIT" },
	} {
		bad := &api.CreateRequest{Model: "other", From: "made"}
		change(bad)
		t.Run(field, func(t *testing.T) { unhappy(t, c.Create(t.Context(), bad, lines.add), 400, field) })
	}
	has(t, c, modelName+":latest", "made:latest")
}

// A leaving reader cancels the request that it is the body of.
type leaving struct{ leave func() }

func (l leaving) Read([]byte) (int, error) {
	l.leave()
	return 0, context.Canceled
}

func TestOllamaPush(t *testing.T) {
	shop := newShop(t)
	s := shop.managed(t)
	c := s.ollama()
	ignore := func(api.ProgressResponse) error { return nil }
	if err := c.Pull(t.Context(), &api.PullRequest{Model: shop.name}, ignore); err != nil {
		t.Fatal(err)
	}
	name := shop.open + "/team/babble:2"
	unhappy(t, c.Push(t.Context(), &api.PushRequest{Model: name}, ignore), 404, "not found")
	unhappy(t, c.Push(t.Context(), &api.PushRequest{Model: "mine"}, ignore), 400, "host/namespace/name:tag")
	unhappy(t, c.Push(t.Context(), &api.PushRequest{Model: "example.org/a/b"}, ignore), 403, "--allow-registry")
	if err := c.Copy(t.Context(), &api.CopyRequest{Source: shop.name, Destination: name}); err != nil {
		t.Fatal(err)
	}
	var lines steps
	if err := c.Push(t.Context(), &api.PushRequest{Model: name}, lines.add); err != nil {
		t.Fatal(err)
	}
	if first, last := lines[0], lines[len(lines)-1]; first.Status != "retrieving manifest" || last.Status != "success" ||
		!slices.Contains(lines, api.ProgressResponse{Status: "pushing " + hubtest.SHA256(shop.babble)[:12], Digest: "sha256:" + hubtest.SHA256(shop.babble), Total: int64(len(shop.babble)), Completed: int64(len(shop.babble))}) {
		t.Errorf("%+v", lines)
	}
	for _, gone := range []string{name, shop.name} {
		if err := c.Delete(t.Context(), &api.DeleteRequest{Model: gone}); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.Pull(t.Context(), &api.PullRequest{Model: name}, ignore); err != nil {
		t.Errorf("it does not come back: %v", err)
	}
	has(t, c, modelName+":latest", name)
}

// TestOllamaStoreKeys checks that clients without a valid key can do none of this.
func TestOllamaStoreKeys(t *testing.T) {
	shop := newShop(t)
	s := shop.managed(t)
	base, err := url.Parse(s.url)
	if err != nil {
		t.Fatal(err)
	}
	c := api.NewClient(base, &http.Client{Transport: keyed{"wrong"}})
	ignore := func(api.ProgressResponse) error { return nil }
	for name, err := range map[string]error{
		"pull": c.Pull(t.Context(), &api.PullRequest{Model: shop.name}, ignore), "push": c.Push(t.Context(), &api.PushRequest{Model: shop.name}, ignore),
		"create": c.Create(t.Context(), &api.CreateRequest{Model: "a", From: "b"}, ignore), "copy": c.Copy(t.Context(), &api.CopyRequest{Source: "a", Destination: "b"}),
		"delete": c.Delete(t.Context(), &api.DeleteRequest{Model: "a"}), "blob": c.CreateBlob(t.Context(), "sha256:"+strings.Repeat("0", 64), strings.NewReader("a")),
	} {
		var refused api.AuthorizationError
		if !errors.As(err, &refused) || refused.StatusCode != 401 {
			t.Errorf("%s: %v", name, err)
		}
	}
	if shop.Asked() != 0 {
		t.Error("something was asked for")
	}
}
