package main_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/registry"

	"github.com/realizar/realizar/internal/modeltest"
	"github.com/realizar/realizar/internal/pull/hubtest"
)

// A user runs commands with a hub and a new home folder.
type user struct {
	t    *testing.T
	home string
	env  []string
}

func newUser(t *testing.T, hub string) *user {
	t.Helper()
	home := t.TempDir()
	u := &user{t: t, home: home}
	for _, e := range os.Environ() {
		name, _, _ := strings.Cut(e, "=")
		if !strings.HasPrefix(name, "HF_") && !strings.HasPrefix(name, "XDG_") && !strings.HasPrefix(strings.ToUpper(name), "HTTP") && name != "OLLAMA_MODELS" {
			u.env = append(u.env, e)
		}
	}
	u.env = append(u.env, "HOME="+home, "USERPROFILE="+home, "AppData="+home, "HF_ENDPOINT="+hub, "OLLAMA_MODELS="+filepath.Join(home, "ollama"), "HF_TOKEN=hf_secret")
	return u
}

// run runs the command as the user.
func (u *user) run(args ...string) result {
	u.t.Helper()
	cmd := exec.CommandContext(u.t.Context(), binary, args...)
	cmd.Env = u.env
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	_ = cmd.Run()
	return result{stdout.String(), stderr.String(), cmd.ProcessState.ExitCode()}
}

// does runs a command that succeeds and returns its standard output.
func (u *user) does(args ...string) string {
	u.t.Helper()
	r := u.run(args...)
	if r.code != 0 {
		u.t.Fatalf("realizar %q: exit code %d, standard error %q", args, r.code, r.stderr)
	}
	return r.stdout
}

func babbleHub(t *testing.T) (*hubtest.Server, []byte) {
	t.Helper()
	s := hubtest.New(t)
	s.Set(hubtest.Behavior{Token: "hf_secret"})
	babble := modeltest.Babble(t)
	s.AddRepo("org/babble", map[string][]byte{"babble-Q8_0.gguf": babble, "README.md": []byte("x")})
	return s, babble
}

// TestModelsByName uses a model by name, from its pull to its removal.
func TestModelsByName(t *testing.T) {
	s, babble := babbleHub(t)
	u := newUser(t, s.URL)
	fails(t, u.run("run", "org/babble", "hi"), 1, "hf:org/babble is not on this machine; realizar pull hf:org/babble fetches it")
	if s.Asked() != 0 {
		t.Error("something was asked for unasked")
	}
	if out := u.does("list"); out != "" {
		t.Errorf("list: %q, want nothing", out)
	}
	path := strings.TrimSpace(u.does("pull", "org/babble", "--quiet"))
	if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, babble) {
		t.Fatalf("%s: %v", path, err)
	}
	want := u.does("run", path, "hi", "--max-tokens", "5")
	for _, name := range []string{"org/babble", "hf:org/babble:Q8_0", "hf:org/babble@main"} {
		if got := u.does("run", name, "hi", "--max-tokens", "5"); got != want {
			t.Errorf("%s answers %q, want %q", name, got, want)
		}
	}
	if out := u.does("inspect", "org/babble"); !strings.Contains(out, "llama") {
		t.Errorf("inspect: %q", out)
	}
	for _, part := range []string{"org/babble:Q8_0", "167.8 KiB", "llama", "1024", "Q8_0", "now", "hub"} {
		if out := u.does("list"); !strings.Contains(out, part) {
			t.Errorf("list: %q, want %q", out, part)
		}
	}
	if out := u.does("show", "org/babble"); !strings.Contains(out, hubtest.SHA256(babble)) || !strings.Contains(out, "Memory for one answer") {
		t.Errorf("show: %q", out)
	}
	if out := u.does("verify"); out != "org/babble:Q8_0  whole\n" {
		t.Errorf("verify: %q", out)
	}
	// Short names.
	u.does("cp", "hf:org/babble:Q8_0", "small")
	if got := u.does("run", "small", "hi", "--max-tokens", "5"); got != want {
		t.Errorf("small answers %q, want %q", got, want)
	}
	// Damaged files.
	blob, err := filepath.EvalSymlinks(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(blob, append([]byte("x"), babble[1:]...), 0o600); err != nil {
		t.Fatal(err)
	}
	if r := u.run("verify", "small"); r.code != 1 || !strings.Contains(r.stdout, "damaged") || !strings.Contains(r.stderr, "realizar rm") {
		t.Errorf("verify: %+v", r)
	}
	// A removal must be confirmed.
	fails(t, u.run("rm", "org/babble"), 2, "--yes")
	u.does("rm", "org/babble", "--yes")
	if out := u.does("list"); out != "" {
		t.Errorf("list: %q after it was removed", out)
	}
	left, err := os.ReadDir(filepath.Join(u.home, ".cache", "huggingface", "hub"))
	if err != nil || len(left) != 1 || left[0].Name() != ".locks" {
		t.Errorf("%v, %v are left, want the locks", left, err)
	}
	// With --pull a command downloads the model.
	if got := u.does("run", "org/babble", "hi", "--max-tokens", "5", "--pull"); got != want {
		t.Errorf("--pull: %q, want %q", got, want)
	}
}

func TestPullJSON(t *testing.T) {
	s, babble := babbleHub(t)
	u := newUser(t, s.URL)
	var last struct {
		Event, Path string
		Bytes, Of   int64
	}
	for line := range strings.Lines(u.does("pull", "hf:org/babble", "--json")) {
		if err := json.Unmarshal([]byte(line), &last); err != nil {
			t.Fatal(err)
		}
	}
	if last.Event != "done" || last.Bytes != int64(len(babble)) || last.Of != last.Bytes || !strings.HasSuffix(last.Path, "babble-Q8_0.gguf") {
		t.Errorf("the last line is %+v", last)
	}
}

// TestPush checks that a model that is pushed to a registry can be pulled again.
func TestPush(t *testing.T) {
	s, babble := babbleHub(t)
	r := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	defer r.Close()
	host := r.Listener.Addr().String()
	u := newUser(t, s.URL)
	u.does("pull", "hf:org/babble", "--quiet")
	digest := strings.TrimSpace(u.does("push", "hf:org/babble", "oci://"+host+"/team/babble:1"))
	if again := strings.TrimSpace(u.does("push", "org/babble", "oci://"+host+"/team/babble:2")); again != digest || !strings.HasPrefix(digest, "sha256:") {
		t.Errorf("pushed as %s and %s", digest, again)
	}
	other := newUser(t, s.URL)
	for _, name := range []string{"oci://" + host + "/team/babble:1", "oci://" + host + "/team/babble@" + digest} {
		path := strings.TrimSpace(other.does("pull", name, "--quiet"))
		if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, babble) {
			t.Errorf("%s: %v", path, err)
		}
	}
	// A model from a registry keeps its digest, and can get names of the user's own.
	name := "oci://" + host + "/team/babble:1"
	if again := strings.TrimSpace(other.does("push", name, "oci://"+host+"/other:3")); again != digest {
		t.Errorf("given on as %s, want %s", again, digest)
	}
	other.does("cp", name, "oci://"+host+"/mine:1")
	if out := other.does("list"); strings.Count(out, "oci://") != 3 {
		t.Errorf("list: %q", out)
	}
	if out := other.does("verify", name); !strings.Contains(out, "whole") {
		t.Errorf("verify: %q", out)
	}
	folder := filepath.Join(t.TempDir(), "copied")
	other.does("cp", name, folder+"/")
	if got, err := os.ReadFile(filepath.Join(folder, "babble-Q8_0.gguf")); err != nil || !bytes.Equal(got, babble) {
		t.Errorf("copied: %v", err)
	}
	other.does("rm", "--yes", name, "oci://"+host+"/team/babble@"+digest, "oci://"+host+"/mine:1")
	if out := other.does("gc", "--dry-run"); out != "0 bytes would be free\n" {
		t.Errorf("gc: %q", out)
	}
	fails(t, other.run("pull", name[:len(name)-1]+"9"), 1, "the registry has no such model or tag")
}

// TestOllamaStoreByName checks that a model in Ollama's folders is found by its name.
func TestOllamaStoreByName(t *testing.T) {
	u := newUser(t, "http://127.0.0.1:1")
	babble := modeltest.Babble(t)
	digest := hubtest.SHA256(babble)
	root := filepath.Join(u.home, "ollama")
	for path, data := range map[string][]byte{
		"blobs/sha256-" + digest:                         babble,
		"manifests/registry.ollama.ai/library/babble/1b": []byte(fmt.Sprintf(`{"schemaVersion":2,"layers":[{"mediaType":"application/vnd.ollama.image.model","digest":"sha256:%s","size":%d}]}`, digest, len(babble))),
	} {
		at := filepath.Join(root, filepath.FromSlash(path))
		if err := os.MkdirAll(filepath.Dir(at), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(at, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if got, want := u.does("run", "ollama:babble:1b", "hi", "--max-tokens", "4"), u.does("run", filepath.Join(root, "blobs", "sha256-"+digest), "hi", "--max-tokens", "4"); got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if out := u.does("list"); !strings.Contains(out, "ollama:babble:1b") {
		t.Errorf("list: %q", out)
	}
	fails(t, u.run("rm", "ollama:babble:1b", "--yes"), 1, "ollama rm babble:1b")
}
