package pull_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/realizar/realizar/internal/fetch"
	"github.com/realizar/realizar/internal/names"
	"github.com/realizar/realizar/internal/pull"
	"github.com/realizar/realizar/internal/pull/hubtest"
	"github.com/realizar/realizar/internal/store"
)

// quick returns options for small files and no waiting.
func quick() fetch.Options {
	return fetch.Options{
		Connections: 3, Piece: 4 << 10, Record: 1 << 10, Stall: 30 * time.Second,
		Wait: func(ctx context.Context, _ time.Duration) error { return ctx.Err() },
		Sync: func(interface{ Sync() error }) error { return nil },
	}
}

func puller(tb testing.TB, s *hubtest.Server, o fetch.Options) *pull.Puller {
	tb.Helper()
	c := fetch.NewClient(o)
	tb.Cleanup(c.Close)
	folder := tb.TempDir()
	return &pull.Puller{
		Store:    &store.Store{Hub: filepath.Join(folder, "hub"), Ollama: []string{filepath.Join(folder, "ollama")}, Own: filepath.Join(folder, "own"), Sync: o.Sync},
		Client:   c,
		Endpoint: s.URL,
	}
}

func name(tb testing.TB, text string) names.Name {
	tb.Helper()
	n, err := names.Parse(text)
	if err != nil {
		tb.Fatal(err)
	}
	return n
}

// content returns n bytes that depend on seed.
func content(seed uint64, n int) []byte {
	b := make([]byte, n)
	r := rand.New(rand.NewPCG(seed, 1))
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}

// wantFiles checks that a model has exactly the given files.
func wantFiles(tb testing.TB, m *store.Model, files map[string][]byte) {
	tb.Helper()
	for _, f := range m.Files {
		got, err := os.ReadFile(f.Path)
		if want, ok := files[f.Name]; err != nil || !ok || !bytes.Equal(got, want) {
			tb.Errorf("%s: %d bytes, %v, that are not those of the hub", f.Name, len(got), err)
		}
	}
	if len(m.Files) != len(files) {
		tb.Errorf("%d files, want %d", len(m.Files), len(files))
	}
}

func TestHub(t *testing.T) {
	s := hubtest.New(t)
	gguf, folder := content(1, 50_000), content(2, 30_000)
	s.AddRepo("org/mixed", map[string][]byte{
		"README.md": []byte("text"), "m-Q4_K_M.gguf": gguf, "m-Q8_0.gguf": content(3, 10), "config.json": []byte("{}"), "model.safetensors": folder, "tokenizer.json": []byte("[]"), "empty.txt": {},
	})
	p := puller(t, s, quick())
	n := name(t, "hf:org/mixed")
	if _, err := p.Store.Find(n); !errors.Is(err, store.ErrAbsent) || !strings.Contains(err.Error(), "realizar pull hf:org/mixed") {
		t.Errorf("before it is pulled: %v", err)
	}
	m, err := p.Pull(t.Context(), n)
	if err != nil {
		t.Fatal(err)
	}
	wantFiles(t, m, map[string][]byte{"m-Q4_K_M.gguf": gguf})
	if got, err := os.ReadFile(m.Path); err != nil || !bytes.Equal(got, gguf) || filepath.Base(m.Path) != "m-Q4_K_M.gguf" {
		t.Errorf("%s does not open the model: %v", m.Path, err)
	}
	m, err = p.Pull(t.Context(), name(t, "hf:org/mixed:safetensors@refs/pr/1"))
	if err != nil {
		t.Fatal(err)
	}
	wantFiles(t, m, map[string][]byte{"README.md": []byte("text"), "config.json": []byte("{}"), "model.safetensors": folder, "tokenizer.json": []byte("[]"), "empty.txt": {}})
	// The layout is that of the hub's own tools.
	repo := filepath.Join(p.Store.Hub, "models--org--mixed")
	for at, want := range map[string]string{"refs/main": hubtest.Commit, "refs/refs/pr/1": hubtest.Commit, "blobs/" + hubtest.GitSHA1([]byte("{}")): "{}", "blobs/" + hubtest.SHA256(folder): string(folder)} {
		if got, err := os.ReadFile(filepath.Join(repo, at)); err != nil || string(got) != want {
			t.Errorf("%s: %d bytes, %v", at, len(got), err)
		}
	}
	if link, err := os.Readlink(filepath.Join(repo, "snapshots", hubtest.Commit, "m-Q4_K_M.gguf")); err != nil || link != "../../blobs/"+hubtest.SHA256(gguf) {
		t.Errorf("the snapshot's link is %q, %v", link, err)
	}
	// Files that are present are not downloaded again.
	before := s.Sent("m-Q4_K_M.gguf")
	if _, err := p.Pull(t.Context(), n); err != nil || s.Sent("m-Q4_K_M.gguf") != before {
		t.Errorf("pulled again: %v, %d bytes", err, s.Sent("m-Q4_K_M.gguf")-before)
	}
	all, err := p.Store.List()
	if err != nil || len(all) != 2 {
		t.Errorf("%d models, %v, want 2", len(all), err)
	}
}

// TestHubCacheOfOthers checks that files that another tool put into the cache are found and not
// downloaded.
func TestHubCacheOfOthers(t *testing.T) {
	s := hubtest.New(t)
	p := puller(t, s, quick())
	repo := filepath.Join(p.Store.Hub, "models--org--x")
	version := filepath.Join(repo, "snapshots", hubtest.Commit)
	for _, f := range []struct{ path, data string }{{"refs/main", hubtest.Commit + "\n"}, {"blobs/" + hubtest.SHA256([]byte("abc")), "abc"}, {"blobs/x.incomplete", "a"}} {
		write(t, filepath.Join(repo, f.path), f.data)
	}
	if err := os.MkdirAll(version, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("../../blobs/"+hubtest.SHA256([]byte("abc")), filepath.Join(version, "x-Q5_K_M.gguf")); err != nil {
		t.Fatal(err)
	}
	m, err := p.Store.Find(name(t, "hf:org/x"))
	if err != nil || m.Quant != "Q5_K_M" || m.Size() != 3 || s.Asked() != 0 {
		t.Errorf("%+v, %v, %d requests", m, err, s.Asked())
	}
	// A link that leads out of the cache is an error. A dangling link counts as a missing file.
	secret := filepath.Join(t.TempDir(), "secret")
	write(t, secret, "x")
	for target, want := range map[string]string{secret: "leads to", "../../blobs/none": "is not on this machine"} {
		at := filepath.Join(version, "x-Q4_K_M.gguf")
		if err := os.Symlink(target, at); err != nil {
			t.Fatal(err)
		}
		if _, err := p.Store.Find(name(t, "hf:org/x:Q4_K_M")); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("a link to %s: %v, want %q", target, err, want)
		}
		if err := os.Remove(at); err != nil {
			t.Fatal(err)
		}
	}
}

func write(tb testing.TB, path, data string) {
	tb.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		tb.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(data), 0o600); err != nil {
		tb.Fatal(err)
	}
}

// TestToken checks that the token goes only to the hub, and appears in no error.
func TestToken(t *testing.T) {
	s := hubtest.New(t)
	const token = "hf_verysecret"
	s.AddRepo("org/private", map[string][]byte{"m.gguf": content(1, 20_000)})
	n := name(t, "hf:org/private")
	p := puller(t, s, quick())
	for _, c := range []struct {
		token, name, says string
		gated             bool
	}{
		{"", "hf:org/private", "set HF_TOKEN", false}, {"wrong", "hf:org/private", "does not take your token", false},
		{token, "hf:org/missing", "no such repository", false}, {token, "hf:org/private@none", "no such revision", false}, {token, "hf:org/private", "ask for access", true},
	} {
		p.Token = c.token
		s.Set(hubtest.Behavior{Token: token, Gated: c.gated})
		_, err := p.Pull(t.Context(), name(t, c.name))
		if err == nil || !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), token) {
			t.Errorf("%+v: error %v", c, err)
		}
	}
	p.Token = token
	s.Set(hubtest.Behavior{Token: token})
	m, err := p.Pull(t.Context(), n)
	if err != nil {
		t.Fatal(err)
	}
	wantFiles(t, m, map[string][]byte{"m.gguf": content(1, 20_000)})
}

func TestTokenFromFile(t *testing.T) {
	home := t.TempDir()
	write(t, filepath.Join(home, ".cache", "huggingface", "token"), "hf_abc\n")
	write(t, filepath.Join(home, "other"), "hf_def")
	write(t, filepath.Join(home, "bad"), "two words")
	for _, c := range []struct {
		env  map[string]string
		want string
	}{
		{nil, "hf_abc"}, {map[string]string{"HF_TOKEN": "hf_x"}, "hf_x"}, {map[string]string{"HF_TOKEN_PATH": filepath.Join(home, "other")}, "hf_def"},
		{map[string]string{"HF_HOME": filepath.Join(home, "none")}, ""},
	} {
		var p pull.Puller
		if err := p.HubEnvironment(func(key string) string { return c.env[key] }, home); err != nil || p.Token != c.want {
			t.Errorf("%v: the token %q, %v, want %q", c.env, p.Token, err, c.want)
		}
	}
	var p pull.Puller
	err := p.HubEnvironment(func(key string) string { return map[string]string{"HF_TOKEN_PATH": filepath.Join(home, "bad")}[key] }, home)
	if err == nil || strings.Contains(err.Error(), "two words") {
		t.Errorf("a token that is none: %v", err)
	}
}

// TestHostileListings checks that an invalid path in a listing is an error before anything is
// written.
func TestHostileListings(t *testing.T) {
	for _, files := range []map[string][]byte{
		{"../../x-Q4_K_M.gguf": {1}}, {"/etc/x.gguf": {1}}, {"a\\b.gguf": {1}}, {"x\x00.gguf": {1}}, {"config.json": {1}, "CONFIG.json": {2}, "model.safetensors": {3}},
	} {
		s := hubtest.New(t)
		s.AddRepo("org/bad", files)
		p := puller(t, s, quick())
		_, err := p.Pull(t.Context(), name(t, "hf:org/bad"))
		if err == nil {
			t.Errorf("%v are taken", files)
		}
		if _, err := os.Stat(p.Store.Hub); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%v: something was written", files)
		}
	}
}

// TestLyingListings checks that a hub whose listing has wrong sizes or digests, or too many files,
// gives no model.
func TestLyingListings(t *testing.T) {
	data := content(1, 20_000)
	lfs := func(e map[string]any) map[string]any { return e["lfs"].(map[string]any) }
	for says, lie := range map[string]func(map[string]any){
		"the listing says 20001":     func(e map[string]any) { lfs(e)["size"] = len(data) + 1 },
		"the listing says 19999":     func(e map[string]any) { lfs(e)["size"] = len(data) - 1 },
		"the bytes have the digest":  func(e map[string]any) { lfs(e)["oid"] = hubtest.SHA256(nil) },
		"without a digest":           func(e map[string]any) { lfs(e)["oid"] = "sha512:" + hubtest.SHA256(nil) },
		"without a digest that can ": func(e map[string]any) { lfs(e)["oid"] = "../../../x" },
		"-1 bytes":                   func(e map[string]any) { lfs(e)["size"] = -1 },
		"1152921504606846976 bytes":  func(e map[string]any) { lfs(e)["size"] = 1 << 60 },
		"is too long":                func(e map[string]any) { e["path"] = strings.Repeat("a", 2000) },
	} {
		s := hubtest.New(t)
		s.AddRepo("org/x", map[string][]byte{"x.gguf": data})
		s.Set(hubtest.Behavior{List: func(e map[string]any) {
			if e["lfs"] != nil {
				lie(e)
			}
		}})
		p := puller(t, s, quick())
		if _, err := p.Pull(t.Context(), name(t, "hf:org/x")); err == nil || !strings.Contains(err.Error(), says) || strings.Contains(err.Error(), "\n") {
			t.Errorf("error %v, want %q", err, says)
		}
		if _, err := p.Store.Find(name(t, "hf:org/x")); !errors.Is(err, store.ErrAbsent) {
			t.Errorf("%s: it is there: %v", says, err)
		}
	}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.Contains(r.URL.Path, "/revision/") {
			_, _ = fmt.Fprintf(w, `{"sha":%q}`, hubtest.Commit)
			return
		}
		w.Header().Set("Link", "<"+r.URL.String()+`>; rel="next"`)
		_, _ = io.WriteString(w, "[{}"+strings.Repeat(",{}", 30_000)+"]")
	}))
	defer s.Close()
	p := puller(t, hubtest.New(t), quick())
	p.Endpoint = s.URL
	if _, err := p.Pull(t.Context(), name(t, "hf:org/x")); err == nil || !strings.Contains(err.Error(), "more than the 100000 files") {
		t.Errorf("a listing without end: %v", err)
	}
}
