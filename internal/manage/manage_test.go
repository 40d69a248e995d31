package manage_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/registry"
	"go.uber.org/goleak"

	"github.com/realizar/realizar/internal/fetch"
	"github.com/realizar/realizar/internal/manage"
	"github.com/realizar/realizar/internal/modeltest"
	"github.com/realizar/realizar/internal/pull"
	"github.com/realizar/realizar/internal/pull/hubtest"
	"github.com/realizar/realizar/internal/server"
	"github.com/realizar/realizar/internal/store"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A place is a manager with a store, and a hub and a registry to fetch from.
type place struct {
	*manage.Manager
	t      *testing.T
	remote *hubtest.Server
	store  *store.Store
	babble []byte

	mu     sync.Mutex
	loaded string   // the path of the loaded model
	events []string // calls of Added and Removed
}

func newPlace(t *testing.T, change func(*manage.Config)) *place {
	t.Helper()
	p := &place{t: t, remote: hubtest.New(t), babble: modeltest.Babble(t)}
	home := t.TempDir()
	p.store = &store.Store{Hub: filepath.Join(home, "hub"), Own: filepath.Join(home, "own"), Ollama: []string{filepath.Join(home, "ollama")}}
	client := fetch.NewClient(fetch.Options{})
	c := manage.Config{
		Puller: &pull.Puller{Store: p.store, Client: client, Endpoint: p.remote.URL}, Hosts: []string{p.remote.Host}, Every: time.Millisecond,
		Loaded:  func(path string) (string, bool) { p.mu.Lock(); defer p.mu.Unlock(); return "served", path == p.loaded },
		Added:   func(name, path string) { p.note("+"+name, path) },
		Removed: func(name, path string) { p.note("-"+name, path) },
	}
	if change != nil {
		change(&c)
	}
	p.Manager = manage.New(c)
	t.Cleanup(func() {
		p.Close()
		client.Close()
	})
	p.remote.AddRepo("org/babble", map[string][]byte{"babble-Q8_0.gguf": p.babble, "README.md": []byte("x")})
	p.add("ns/babble:1")
	return p
}

func (p *place) note(event, path string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.events = append(p.events, event)
	if _, err := os.Stat(path); strings.HasPrefix(event, "+") && err != nil {
		p.t.Errorf("%s: %v", event, err)
	}
}

// add adds the model to the registry and returns the name to pull.
func (p *place) add(name string) string {
	p.t.Helper()
	m := store.Manifest{SchemaVersion: 2, MediaType: store.MediaManifest}
	m.Config = store.Descriptor{MediaType: store.MediaPackConfig, Digest: p.remote.AddBlob([]byte("{}")), Size: 2}
	m.Layers = []store.Descriptor{{MediaType: "application/vnd.ollama.image.model", Digest: p.remote.AddBlob(p.babble), Size: int64(len(p.babble))}}
	data, err := json.Marshal(m)
	if err != nil {
		p.t.Fatal(err)
	}
	p.remote.AddManifest(name, data)
	return p.remote.Host + "/" + name
}

// pulled pulls a model from the registry and returns its name.
func (p *place) pulled() string {
	p.t.Helper()
	name := p.remote.Host + "/ns/babble:1"
	if err := p.Pull(p.t.Context(), name, ignore); err != nil {
		p.t.Fatal(err)
	}
	return name
}

func ignore(server.Progress) error { return nil }

// names returns the names of all models.
func (p *place) names() []string {
	p.t.Helper()
	all, err := p.List(p.t.Context())
	if err != nil {
		p.t.Fatal(err)
	}
	names := []string{}
	for _, m := range all {
		names = append(names, m.Name)
	}
	return names
}

func (p *place) has(want ...string) {
	p.t.Helper()
	if want == nil {
		want = []string{}
	}
	if diff := cmp.Diff(want, p.names()); diff != "" {
		p.t.Errorf("the models (-want +got)\n%s", diff)
	}
}

// faulty checks the error that a client sees.
func faulty(t *testing.T, err error, fault server.StoreFault, says string) {
	t.Helper()
	var e *server.StoreError
	if !errors.As(err, &e) || e.Fault != fault || !strings.Contains(e.Message, says) {
		t.Errorf("%v, want fault %d that says %q", err, fault, says)
	}
}

func TestPull(t *testing.T) {
	p := newPlace(t, nil)
	for _, name := range []string{p.remote.Host + "/ns/babble:1", "hf.co/org/babble:Q8_0", "oci://" + p.remote.Host + "/ns/babble:1"} {
		var all []server.Progress
		if err := p.Pull(t.Context(), name, func(g server.Progress) error { all = append(all, g); return nil }); err != nil {
			t.Fatal(err)
		}
		if !slices.IsSortedFunc(all, func(a, b server.Progress) int { return int(a.Phase - b.Phase) }) || all[0].Phase != server.ReadManifest || all[len(all)-1].Phase != server.WriteManifest {
			t.Errorf("%s: %+v", name, all)
		}
		if !slices.Contains(all, server.Progress{Phase: server.Transfer, Digest: "sha256:" + hubtest.SHA256(p.babble), Total: int64(len(p.babble)), Completed: int64(len(p.babble))}) {
			t.Errorf("%s: no line of the whole file in %+v", name, all)
		}
		m, err := p.Find(t.Context(), name)
		if err != nil || m.Name != name || m.Size < int64(len(p.babble)) || len(m.Digest) != 64 || m.Description.Architecture != "llama" {
			t.Errorf("%+v, %v", m, err)
		}
		if d, err := p.Describe(t.Context(), name); err != nil || len(d.Tensors) != m.Description.TensorCount || m.Description.Tensors != nil {
			t.Errorf("%v, %v", d, err)
		}
	}
	p.has(p.remote.Host+"/ns/babble:1", "hf.co/org/babble:Q8_0", "oci://"+p.remote.Host+"/ns/babble:1")
	if want := []string{"+" + p.remote.Host + "/ns/babble:1", "+hf.co/org/babble:Q8_0", "+oci://" + p.remote.Host + "/ns/babble:1"}; !slices.Equal(p.events, want) {
		t.Errorf("%q, want %q", p.events, want)
	}
}

// TestHostileNames checks that hosts that clients may not name are never contacted, and that paths
// are not names.
func TestHostileNames(t *testing.T) {
	p := newPlace(t, nil)
	secret := filepath.Join(t.TempDir(), "secret.gguf")
	if err := os.WriteFile(secret, p.babble, 0o600); err != nil {
		t.Fatal(err)
	}
	p.pulled()
	asked := p.remote.Asked()
	for _, name := range []string{
		"", secret, "file://" + secret, "ollama:" + secret, "../x", "..", "a/../../b", "./x", "~/x", "a\x00b", "a\nb", "\xff", "ns/../babble:1", "a:../b", `C:\x`, "hf.co/../x", "hf.co/a/b:/etc/x.gguf",
		"hf:org/" + strings.Repeat("a", 99), "oci://h/../a", strings.Repeat("a", 5000), "demo:..", "https://h/m.gguf", "a/b/c/d", " ",
	} {
		for what, err := range map[string]error{
			"pull": p.Pull(t.Context(), name, ignore), "push": p.Push(t.Context(), name, ignore), "copy from": p.Copy(t.Context(), name, "x"), "copy to": p.Copy(t.Context(), p.remote.Host+"/ns/babble:1", name),
			"delete": p.Delete(t.Context(), name), "create": p.Create(t.Context(), name, map[string]string{"m.gguf": "sha256:" + strings.Repeat("0", 64)}, ignore),
		} {
			var e *server.StoreError
			if !errors.As(err, &e) || e.Fault != server.NotAName {
				t.Errorf("%s %.60q: %v, want that it is no name", what, name, err)
			}
		}
		if _, err := p.Find(t.Context(), name); err == nil {
			t.Errorf("%q is found", name)
		}
	}
	for _, name := range []string{"example.org/a/b:1", "oci://example.org/a:1", "https://example.org/m.gguf#sha256=" + strings.Repeat("0", 64), "localhost:1/a/b", "169.254.169.254/a/b"} {
		faulty(t, p.Pull(t.Context(), name, ignore), server.NotAllowed, "--allow-registry")
		faulty(t, p.Push(t.Context(), name, ignore), server.NotAllowed, "--allow-registry")
	}
	if p.remote.Asked() != asked {
		t.Error("something was asked for")
	}
	p.has(p.remote.Host + "/ns/babble:1")
}

// TestPullIsShared checks that clients that pull the same model share one pull, which continues
// until the last client leaves.
func TestPullIsShared(t *testing.T) {
	p := newPlace(t, func(c *manage.Config) { c.AtOnce = 1 })
	arrived, release := make(chan struct{}), make(chan struct{})
	var once sync.Once
	p.remote.Set(hubtest.Behavior{Direct: true, Fault: func(path string, _ int64) (hubtest.Fault, int64) {
		if strings.HasPrefix(path, "sha256:"+hubtest.SHA256(p.babble)) {
			once.Do(func() { close(arrived) })
			<-release
		}
		return hubtest.None, 0
	}})
	name := p.remote.Host + "/ns/babble:1"
	first, leave := context.WithCancel(t.Context())
	results := make(chan error, 3)
	began := make(chan struct{}, 3)
	start := func(ctx context.Context) {
		go func() {
			results <- p.Pull(ctx, name, func(g server.Progress) error {
				if g.Phase == server.ReadManifest {
					began <- struct{}{}
				}
				return nil
			})
		}()
		<-began
	}
	start(first)
	<-arrived
	start(t.Context())
	start(t.Context())
	faulty(t, p.Pull(t.Context(), "hf.co/org/babble", ignore), server.StoreBusy, "retry soon")
	leave()
	if err := <-results; !errors.Is(err, context.Canceled) {
		t.Errorf("who left is told %v", err)
	}
	close(release)
	for range 2 {
		if err := <-results; err != nil {
			t.Error(err)
		}
	}
	p.has(name)
	if sent := p.remote.Sent("sha256:" + hubtest.SHA256(p.babble)); sent != int64(len(p.babble)) {
		t.Errorf("%d bytes were sent, want %d", sent, len(p.babble))
	}
}

// TestPullIsLeft checks that a pull ends when all of its clients have left, and that its files have
// no names.
func TestPullIsLeft(t *testing.T) {
	p := newPlace(t, func(c *manage.Config) { c.AtOnce = 1 })
	p.remote.Set(hubtest.Behavior{Fault: func(path string, size int64) (hubtest.Fault, int64) {
		if size > 1000 {
			return hubtest.Stall, size / 2
		}
		return hubtest.None, 0
	}})
	name := p.remote.Host + "/ns/babble:1"
	gone := errors.New("the client does not read")
	err := p.Pull(t.Context(), name, func(g server.Progress) error {
		if g.Completed > 0 {
			return gone
		}
		return nil
	})
	if !errors.Is(err, gone) {
		t.Fatal(err)
	}
	p.has()
	// The pull's place is free, and what it downloaded is not downloaded again.
	p.remote.Set(hubtest.Behavior{})
	for {
		err := p.Pull(t.Context(), name, ignore)
		if err == nil {
			break
		}
		faulty(t, err, server.StoreBusy, "") // the pull is ending
	}
	p.has(name)
}

func TestPullFaults(t *testing.T) {
	p := newPlace(t, nil)
	faulty(t, p.Pull(t.Context(), p.remote.Host+"/ns/other:1", ignore), server.NoModel, "no such model or tag")
	faulty(t, p.Pull(t.Context(), "hf.co/org/other", ignore), server.NoModel, "no such repository")
	p.remote.AddRepo("org/none", map[string][]byte{"README.md": []byte("x")})
	faulty(t, p.Pull(t.Context(), "hf.co/org/none", ignore), server.NotAModel, "")
	p.remote.AddManifest("ns/bad:1", []byte("{"))
	faulty(t, p.Pull(t.Context(), p.remote.Host+"/ns/bad:1", ignore), server.NoRegistry, "not JSON")
	huge := fmt.Sprintf(`{"schemaVersion":2,"layers":[{"mediaType":"application/vnd.ollama.image.model","digest":"sha256:%s","size":%d}]}`, strings.Repeat("0", 64), int64(1)<<45)
	p.remote.AddManifest("ns/huge:1", []byte(huge))
	err := p.Pull(t.Context(), p.remote.Host+"/ns/huge:1", ignore)
	faulty(t, err, server.NoSpace, "35184372088832 are to come")
	if strings.Contains(err.Error(), p.store.Own) {
		t.Errorf("%v says where models lie", err)
	}
	// Clients do not see errors of this machine.
	if err := os.WriteFile(p.store.Hub, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	var e *server.StoreError
	if err := p.Pull(t.Context(), "hf.co/org/babble", ignore); err == nil || errors.As(err, &e) {
		t.Errorf("a client is told %v", err)
	}
	p.has()
}

func TestCopyAndDelete(t *testing.T) {
	p := newPlace(t, nil)
	name := p.pulled()
	if err := p.Pull(t.Context(), "hf.co/org/babble:Q8_0", ignore); err != nil {
		t.Fatal(err)
	}
	for to, from := range map[string]string{"mine": name, "team/mine:2": "hf.co/org/babble:Q8_0", p.remote.Host + "/team/mine:3": name} {
		if err := p.Copy(t.Context(), from, to); err != nil {
			t.Fatalf("%s: %v", to, err)
		}
	}
	copies := []string{p.remote.Host + "/ns/babble:1", p.remote.Host + "/team/mine:3", "hf.co/org/babble:Q8_0", "mine:latest", "team/mine:2"}
	p.has(copies...)
	faulty(t, p.Copy(t.Context(), "other", "x"), server.NoModel, "not found")
	faulty(t, p.Copy(t.Context(), name, "hf.co/a/b"), server.NotAName, "namespace/name:tag")
	if err := p.Copy(t.Context(), name, name); err != nil {
		t.Error(err)
	}
	mine, err := p.Find(t.Context(), "mine")
	if err != nil {
		t.Fatal(err)
	}
	// A loaded model cannot be removed, by any of its names.
	p.mu.Lock()
	p.loaded = mine.Description.Path
	p.mu.Unlock()
	faulty(t, p.Delete(t.Context(), "mine"), server.InUse, `as "served"`)
	faulty(t, p.Copy(t.Context(), "team/mine:2", "mine"), server.InUse, "unload")
	p.mu.Lock()
	p.loaded = ""
	p.mu.Unlock()
	for i, gone := range copies {
		if err := p.Delete(t.Context(), gone); err != nil {
			t.Fatal(err)
		}
		p.has(copies[i+1:]...)
		for _, left := range copies[i+1:] {
			if m, err := p.Find(t.Context(), left); err != nil || m.Description == nil {
				t.Errorf("%s: %+v, %v", left, m, err)
			}
		}
		faulty(t, p.Delete(t.Context(), gone), server.NoModel, "not found")
	}
	if garbage, err := p.store.Garbage(false, time.Now()); err != nil || len(garbage) > 0 {
		t.Errorf("%+v, %v is left", garbage, err)
	}
}

// TestOllamasOwn checks that Ollama's models are listed and described, and never changed.
func TestOllamasOwn(t *testing.T) {
	p := newPlace(t, nil)
	digest := hubtest.SHA256(p.babble)
	for path, data := range map[string][]byte{
		"blobs/sha256-" + digest:                      p.babble,
		"manifests/registry.ollama.ai/library/own/1b": []byte(fmt.Sprintf(`{"schemaVersion":2,"layers":[{"mediaType":"application/vnd.ollama.image.model","digest":"sha256:%s","size":%d}]}`, digest, len(p.babble))),
		"manifests/hf.co/org/elsewhere/Q8_0":          []byte(fmt.Sprintf(`{"schemaVersion":2,"layers":[{"mediaType":"application/vnd.ollama.image.model","digest":"sha256:%s","size":%d}]}`, digest, len(p.babble))),
	} {
		at := filepath.Join(p.store.Ollama[0], filepath.FromSlash(path))
		if err := os.MkdirAll(filepath.Dir(at), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(at, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	p.has("hf.co/org/elsewhere:Q8_0", "own:1b")
	for _, name := range []string{"own:1b", "hf.co/org/elsewhere:Q8_0"} {
		faulty(t, p.Delete(t.Context(), name), server.NotAllowed, "Ollama's own")
		if err := p.Copy(t.Context(), name, "copied"); err != nil {
			t.Error(err)
		}
		faulty(t, p.Copy(t.Context(), "copied", "own:1b"), server.NotAllowed, "Ollama's own")
	}
	p.has("copied:latest", "hf.co/org/elsewhere:Q8_0", "own:1b")
}

func TestCreate(t *testing.T) {
	p := newPlace(t, nil)
	digest := "sha256:" + hubtest.SHA256(p.babble)
	files := map[string]string{"model.gguf": digest}
	if has, err := p.HasBlob(digest); has || err != nil {
		t.Errorf("%v, %v", has, err)
	}
	faulty(t, p.Create(t.Context(), "made", files, ignore), server.NoBlob, "/api/blobs/"+digest)
	faulty(t, p.AddBlob(t.Context(), digest, bytes.NewReader(p.babble[1:]), -1), server.WrongBlob, digest)
	faulty(t, p.AddBlob(t.Context(), "sha256:../../x", bytes.NewReader(nil), 0), server.NotAName, "digits")
	faulty(t, p.AddBlob(t.Context(), digest, bytes.NewReader(p.babble), 1<<50), server.NoSpace, "free")
	if err := p.AddBlob(t.Context(), digest, bytes.NewReader(p.babble), int64(len(p.babble))); err != nil {
		t.Fatal(err)
	}
	if has, err := p.HasBlob(digest); !has || err != nil {
		t.Errorf("%v, %v", has, err)
	}
	for _, bad := range []string{"../model.gguf", "/model.gguf", "a/../b.gguf", "a\x00.gguf", "con", ""} {
		faulty(t, p.Create(t.Context(), "made", map[string]string{bad: digest}, ignore), server.NotAName, "path")
	}
	faulty(t, p.Create(t.Context(), "made", map[string]string{"model.txt": digest}, ignore), server.NotAModel, "")
	p.has()
	if err := p.Create(t.Context(), "made", files, ignore); err != nil {
		t.Fatal(err)
	}
	p.has("made:latest")
	if m, err := p.Find(t.Context(), "made"); err != nil || m.Description == nil || m.Description.Architecture != "llama" {
		t.Errorf("%+v, %v", m, err)
	}
	// A file can become several models. A file that is not a model is refused.
	if err := p.Create(t.Context(), "again", files, ignore); err != nil {
		t.Error(err)
	}
	trash := []byte("GGUF and no more")
	if err := p.AddBlob(t.Context(), "sha256:"+hubtest.SHA256(trash), bytes.NewReader(trash), -1); err != nil {
		t.Fatal(err)
	}
	faulty(t, p.Create(t.Context(), "again", map[string]string{"model.gguf": "sha256:" + hubtest.SHA256(trash)}, ignore), server.NotAModel, "cannot be read")
	if m, err := p.Find(t.Context(), "again"); err != nil || m.Description == nil {
		t.Errorf("the model before is %+v, %v", m, err)
	}
	if left, err := os.ReadDir(filepath.Join(p.store.Own, "uploads")); err != nil || len(left) != 0 {
		t.Errorf("%v, %v is left of uploads", left, err)
	}
}

// TestUploadsGo checks that unused uploads are removed after a day.
func TestUploadsGo(t *testing.T) {
	p := newPlace(t, nil)
	digest := "sha256:" + hubtest.SHA256([]byte("x"))
	if err := p.AddBlob(t.Context(), digest, strings.NewReader("x"), 1); err != nil {
		t.Fatal(err)
	}
	yesterday := time.Now().Add(-25 * time.Hour)
	if err := os.Chtimes(filepath.Join(p.store.Own, "uploads", hubtest.SHA256([]byte("x"))), yesterday, yesterday); err != nil {
		t.Fatal(err)
	}
	if err := p.AddBlob(t.Context(), "sha256:"+hubtest.SHA256([]byte("y")), strings.NewReader("y"), 1); err != nil {
		t.Fatal(err)
	}
	if has, _ := p.HasBlob(digest); has {
		t.Error("an old upload is there")
	}
}

func TestPush(t *testing.T) {
	r := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	defer r.Close()
	host := r.Listener.Addr().String()
	p := newPlace(t, func(c *manage.Config) { c.Hosts = append(c.Hosts, host) })
	name := p.pulled()
	faulty(t, p.Push(t.Context(), "mine", ignore), server.NotAName, "copy it to")
	faulty(t, p.Push(t.Context(), host+"/team/mine:1", ignore), server.NoModel, "not found")
	if err := p.Pull(t.Context(), "hf.co/org/babble:Q8_0", ignore); err != nil {
		t.Fatal(err)
	}
	for _, copied := range [][2]string{{host + "/team/mine:1", name}, {"oci://" + host + "/team/mine:2", "hf.co/org/babble:Q8_0"}} {
		to, from := copied[0], copied[1]
		if err := p.Copy(t.Context(), from, to); err != nil {
			t.Fatal(err)
		}
		whole := false
		if err := p.Push(t.Context(), to, func(g server.Progress) error {
			whole = whole || g.Phase == server.Transfer && g.Total == int64(len(p.babble)) && g.Completed == g.Total
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		if from == name && !whole {
			t.Errorf("%s: nothing said that all was sent", to) // the registry has the files already
		}
		if err := p.Delete(t.Context(), to); err != nil {
			t.Fatal(err)
		}
		if err := p.Pull(t.Context(), to, ignore); err != nil {
			t.Errorf("%s does not come back: %v", to, err)
		}
	}
}

// FuzzNames checks that for any name a client gets an error that the name is invalid, unknown or
// not allowed, and that nothing is fetched or written.
func FuzzNames(f *testing.F) {
	for _, name := range []string{"a", "../x", "hf.co/org/repo:Q8_0@main", "h:5/n/m:t", "oci://h/a:1", "/etc/passwd", "a\x00", "https://h/m.gguf#sha256=" + strings.Repeat("0", 64), "hf:../..", "ollama:a/../b"} {
		f.Add(name)
	}
	home := f.TempDir()
	s := &store.Store{Hub: filepath.Join(home, "hub"), Own: filepath.Join(home, "own")}
	m := manage.New(manage.Config{Puller: &pull.Puller{Store: s, Client: fetch.NewClient(fetch.Options{}), Offline: "it is a test"}})
	f.Cleanup(m.Close)
	f.Fuzz(func(t *testing.T, name string) {
		_, err := m.Find(t.Context(), name)
		for _, err := range []error{err, m.Copy(t.Context(), name, "x"), m.Delete(t.Context(), name), m.Pull(t.Context(), name, ignore), m.Push(t.Context(), name, ignore)} {
			var e *server.StoreError
			if !errors.As(err, &e) {
				t.Errorf("%q: %v", name, err)
			}
		}
		if left, _ := os.ReadDir(home); len(left) > 0 {
			t.Errorf("%q: %v was written", name, left)
		}
	})
}
