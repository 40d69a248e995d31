package pull_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/realizar/realizar/internal/fetch"
	"github.com/realizar/realizar/internal/names"
	"github.com/realizar/realizar/internal/pull"
	"github.com/realizar/realizar/internal/pull/hubtest"
	"github.com/realizar/realizar/internal/store"
)

// quick are options for small files and no waiting.
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

// content is bytes that differ from file to file.
func content(seed uint64, n int) []byte {
	b := make([]byte, n)
	r := rand.New(rand.NewPCG(seed, 1))
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}

// wantFiles checks that a model has these files and no others.
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
	// What is there is not fetched again.
	before := s.Sent("m-Q4_K_M.gguf")
	if _, err := p.Pull(t.Context(), n); err != nil || s.Sent("m-Q4_K_M.gguf") != before {
		t.Errorf("pulled again: %v, %d bytes", err, s.Sent("m-Q4_K_M.gguf")-before)
	}
	all, err := p.Store.List()
	if err != nil || len(all) != 2 {
		t.Errorf("%d models, %v, want 2", len(all), err)
	}
}

// Files that another tool has put into the cache are found, and not fetched.
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
	// A link that leads out of the cache is an error, and one that leads nowhere no file.
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

// The token goes to the hub and nowhere else, and in no error.
func TestToken(t *testing.T) {
	s := hubtest.New(t)
	s.Token = "hf_verysecret"
	s.AddRepo("org/private", map[string][]byte{"m.gguf": content(1, 20_000)})
	n := name(t, "hf:org/private")
	p := puller(t, s, quick())
	for _, c := range []struct {
		token, name, says string
		gated             bool
	}{
		{"", "hf:org/private", "set HF_TOKEN", false}, {"wrong", "hf:org/private", "does not take your token", false},
		{s.Token, "hf:org/missing", "no such repository", false}, {s.Token, "hf:org/private@none", "no such revision", false}, {s.Token, "hf:org/private", "ask for access", true},
	} {
		p.Token, s.Gated = c.token, c.gated
		_, err := p.Pull(t.Context(), name(t, c.name))
		if err == nil || !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), s.Token) {
			t.Errorf("%+v: error %v", c, err)
		}
	}
	p.Token, s.Gated = s.Token, false
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

// What a listing says that cannot be is an error before anything is written.
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

// A Schedule is what goes wrong, by a number.
type schedule struct {
	mu    sync.Mutex
	r     *rand.Rand
	left  int // faults that may come yet
	stall bool
}

func (s *schedule) fault(path string, size int64) (hubtest.Fault, int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.left == 0 || s.r.IntN(3) != 0 {
		return hubtest.None, 0
	}
	s.left--
	f := hubtest.Fault(s.r.IntN(int(hubtest.Faults)))
	listing := path == "revision" || path == "tree" || path == "manifest"
	switch {
	case f == hubtest.Stall && !s.stall, f == hubtest.Expired && !hubtest.Large(path):
		f = hubtest.Cut
	case listing && f == hubtest.Flip: // nothing but TLS keeps a listing as it is
		f = hubtest.Busy
	}
	return f, s.r.Int64N(max(1, size))
}

// A killer ends a pull when so many pieces have come.
type killer struct {
	mu     sync.Mutex
	after  int
	cancel context.CancelFunc
	came   map[int]int64
	due    int64
}

func (k *killer) Plan(files []store.File) {
	for _, f := range files {
		k.due += f.Size
	}
}
func (k *killer) Waits(int) {}
func (k *killer) Came(file int, n int64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.came[file] += n
	if k.after--; k.after == 0 {
		k.cancel()
	}
}

// spoil does to what a pull has left behind what a crash of the machine may do.
func spoil(tb testing.TB, folder string, r *rand.Rand) {
	tb.Helper()
	for _, suffix := range []string{fetch.PartialSuffix, fetch.NotesSuffix} {
		for at := range walk(tb, folder) {
			info, err := os.Stat(at)
			if err != nil || !strings.HasSuffix(at, suffix) || info.Size() == 0 || r.IntN(3) != 0 {
				continue
			}
			switch r.IntN(3) {
			case 0:
				err = os.Truncate(at, r.Int64N(info.Size()))
			case 1:
				err = os.Remove(at)
			case 2:
				var data []byte
				if data, err = os.ReadFile(at); err == nil {
					data[r.IntN(len(data))] ^= 1 << r.IntN(8)
					err = os.WriteFile(at, data, 0o600)
				}
			}
			if err != nil {
				tb.Fatal(err)
			}
		}
	}
}

func walk(tb testing.TB, folder string) map[string]bool {
	tb.Helper()
	all := map[string]bool{}
	err := filepath.WalkDir(folder, func(at string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			all[at] = true
		}
		return nil
	})
	if err != nil {
		tb.Fatal(err)
	}
	return all
}

// wantWhole checks that whatever has a file's name has its bytes, and that whatever the
// store finds is whole.
func wantWhole(tb testing.TB, s *store.Store, n names.Name, files map[string][]byte) {
	tb.Helper()
	byDigest := map[string][]byte{}
	for _, data := range files {
		byDigest[hubtest.SHA256(data)] = data
		byDigest[hubtest.GitSHA1(data)] = data
	}
	for at := range walk(tb, filepath.Dir(s.Hub)) {
		if want, ok := byDigest[filepath.Base(at)]; ok {
			if got, err := os.ReadFile(at); err != nil || !bytes.Equal(got, want) {
				tb.Errorf("%s is not whole", at)
			}
		}
	}
	m, err := s.Find(n)
	switch {
	case err == nil:
		wantFiles(tb, m, files)
	case !errors.Is(err, store.ErrAbsent):
		tb.Error(err)
	}
}

// schedules is how many of them a test runs: many where the environment says so.
func schedules(tb testing.TB, few int) int {
	tb.Helper()
	n := few
	if text := os.Getenv("REALIZAR_PULL_SCHEDULES"); text != "" {
		if _, err := fmt.Sscan(text, &n); err != nil {
			tb.Fatal(err)
		}
	}
	return n
}

// After any faults and interruptions a pull ends with the right bytes or an error, the
// store names nothing that is not whole, and in the end the model is there.
func TestSchedules(t *testing.T) {
	n := schedules(t, 300)
	const parts = 6
	for part := range parts {
		t.Run(fmt.Sprint(part), func(t *testing.T) {
			t.Parallel()
			s := hubtest.New(t)
			for i := part; i < n; i += parts {
				runSchedule(t, s, uint64(i))
				if t.Failed() {
					t.Fatalf("schedule %d", i)
				}
			}
		})
	}
}

func runSchedule(t *testing.T, s *hubtest.Server, seed uint64) {
	r := rand.New(rand.NewPCG(seed, 2))
	n, files := model(t, s, r, seed)
	faults := &schedule{r: rand.New(rand.NewPCG(seed, 3)), left: r.IntN(25), stall: seed%16 == 0}
	s.SetFault(faults.fault)
	s.Redirect = r.IntN(2) == 0
	o := quick()
	o.Connections = 1 + r.IntN(4)
	if faults.stall {
		o.Stall = 50 * time.Millisecond
	}
	p := puller(t, s, o)
	defer p.Client.Close()
	for range r.IntN(5) {
		ctx, cancel := context.WithCancel(t.Context())
		p.Watcher = &killer{after: 1 + r.IntN(60), cancel: cancel, came: map[int]int64{}}
		m, err := p.Pull(ctx, n)
		cancel()
		if err == nil {
			wantFiles(t, m, files)
		}
		wantWhole(t, p.Store, n, files)
		spoil(t, filepath.Dir(p.Store.Hub), r)
	}
	s.SetFault(nil)
	last := &killer{came: map[int]int64{}}
	p.Watcher, p.Client = last, fetch.NewClient(quick())
	defer p.Client.Close()
	m, err := p.Pull(t.Context(), n)
	if err != nil {
		t.Fatal(err)
	}
	wantFiles(t, m, files)
	var came int64
	for _, n := range last.came {
		came += n
	}
	if came != last.due {
		t.Errorf("progress was told of %d bytes, of %d", came, last.due)
	}
	for at := range walk(t, filepath.Dir(p.Store.Hub)) {
		if strings.Contains(filepath.Base(at), ".realizar-") {
			t.Errorf("%s is left behind", at)
		}
	}
	if err := os.RemoveAll(filepath.Dir(p.Store.Hub)); err != nil {
		t.Fatal(err)
	}
}

// model puts a model of some kind on a server.
func model(t *testing.T, s *hubtest.Server, r *rand.Rand, seed uint64) (names.Name, map[string][]byte) {
	size := func() int { return r.IntN(40_000) }
	id := fmt.Sprintf("org/m%d", seed)
	switch r.IntN(4) {
	case 0:
		files := map[string][]byte{"m-Q4_K_M.gguf": content(seed, size())}
		s.AddRepo(id, files)
		return name(t, "hf:"+id), files
	case 1:
		files := map[string][]byte{"m-00001-of-00003.gguf": content(seed, size()), "m-00002-of-00003.gguf": content(seed+1e6, size()), "m-00003-of-00003.gguf": content(seed+2e6, size())}
		s.AddRepo(id, files)
		return name(t, "hf:"+id+"@"+hubtest.Commit), files
	case 2:
		files := map[string][]byte{
			"config.json": content(seed, 50), "tokenizer.json": content(seed+1e6, size()), "model-00001-of-00002.safetensors": content(seed+2e6, size()),
			"model-00002-of-00002.safetensors": content(seed+3e6, size()), names.WeightsIndex: content(seed+4e6, 100),
		}
		s.AddRepo(id, files)
		return name(t, "hf:"+id), files
	}
	data, config := content(seed, size()), []byte(fmt.Sprintf(`{"x":%d}`, seed))
	s.AddManifest(id+":latest", []byte(fmt.Sprintf(`{"schemaVersion":2,"mediaType":%q,"config":{"mediaType":"x","digest":%q,"size":%d},"layers":[{"mediaType":"application/vnd.ollama.image.model","digest":%q,"size":%d}]}`,
		store.MediaDockerManifest, s.AddBlob(config), len(config), s.AddBlob(data), len(data))))
	return name(t, "ollama:"+s.Host+"/"+id), map[string][]byte{"model.gguf": data}
}
