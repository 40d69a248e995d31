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

// schedules runs a test with few seeds, or with as many as REALIZAR_PULL_SCHEDULES says. Many seeds
// share one server.
func schedules(t *testing.T, few int, run func(t *testing.T, s *hubtest.Server, seed uint64)) {
	t.Helper()
	n := few
	if text := os.Getenv("REALIZAR_PULL_SCHEDULES"); text != "" {
		if _, err := fmt.Sscan(text, &n); err != nil {
			t.Fatal(err)
		}
	}
	const parts = 4
	for part := range parts {
		t.Run(fmt.Sprint(part), func(t *testing.T) {
			t.Parallel()
			s := hubtest.New(t)
			for i := part; i < n; i += parts {
				s.Clear()
				run(t, s, uint64(i))
				if t.Failed() {
					t.Fatalf("schedule %d", i)
				}
			}
		})
	}
}

// A sample is a model to pull, and the behavior of its server without faults.
type sample struct {
	name     names.Name
	files    map[string][]byte
	behavior hubtest.Behavior
}

// sampleOf adds a random model to a server.
func sampleOf(tb testing.TB, s *hubtest.Server, r *rand.Rand, seed uint64) sample {
	tb.Helper()
	file := func() []byte {
		seed += 1e6
		return content(seed, r.IntN(40_000))
	}
	m := sample{behavior: hubtest.Behavior{Direct: r.IntN(2) == 0}}
	id := fmt.Sprintf("org/m%d", seed)
	kind := r.IntN(5)
	if kind < 3 {
		m.name = name(tb, "hf:"+id)
		if r.IntN(2) == 0 {
			m.behavior.Token = "hf_secret"
		}
	}
	switch kind {
	case 0:
		m.files = map[string][]byte{"m-Q4_K_M.gguf": file()}
	case 1:
		m.name.Revision = hubtest.Commit
		m.files = map[string][]byte{"m-00001-of-00003.gguf": file(), "m-00002-of-00003.gguf": file(), "m-00003-of-00003.gguf": file()}
	case 2:
		m.files = map[string][]byte{
			"config.json": content(seed, 50), "tokenizer.json": file(), names.WeightsIndex: content(seed+1, 100),
			"model-00001-of-00002.safetensors": file(), "model-00002-of-00002.safetensors": file(),
		}
	case 3:
		m.name = name(tb, "ollama:"+s.Host+"/"+id)
		m.files = map[string][]byte{"model.gguf": file()}
		addModel(tb, s, id+":latest", layer{"application/vnd.ollama.image.model", "", m.files["model.gguf"]})
	case 4:
		m.name = name(tb, "oci://"+s.Host+"/"+id+":1")
		m.behavior.Bearer = r.IntN(2) == 0
		m.files = map[string][]byte{"m.gguf": file(), "README.md": file()}
		addModel(tb, s, id+":1", layer{store.MediaPackWeights, "m.gguf", m.files["m.gguf"]}, layer{store.MediaPackDoc, "README.md", m.files["README.md"]})
	}
	if kind < 3 {
		s.AddRepo(id, m.files)
	}
	s.Set(m.behavior)
	return m
}

// withFaults returns the behavior of the sample's server with the faults of f.
func (m sample) withFaults(f *schedule) hubtest.Behavior {
	b := m.behavior
	b.Fault = f.fault
	return b
}

// A schedule makes random faults.
type schedule struct {
	mu    sync.Mutex
	r     *rand.Rand
	left  int // faults still to be made
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
	listing := path == "revision" || path == "tree" || path == "manifest" || path == "token"
	switch {
	case f == hubtest.Stall && !s.stall, f == hubtest.Expired && !hubtest.Large(path):
		f = hubtest.Cut
	case listing && f == hubtest.Flip: // only TLS protects a listing
		f = hubtest.Busy
	}
	return f, s.r.Int64N(max(1, size))
}

// A killer is a watcher that ends a pull after so many pieces.
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

// spoil damages the remains of a pull as a crash of the machine may.
func spoil(tb testing.TB, folder string, r *rand.Rand) {
	tb.Helper()
	for _, suffix := range []string{fetch.PartialSuffix, fetch.NotesSuffix} {
		for _, at := range walk(tb, folder) {
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

// walk returns all files below a folder.
func walk(tb testing.TB, folder string) (all []string) {
	tb.Helper()
	err := filepath.WalkDir(folder, func(at string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			all = append(all, at)
		}
		return nil
	})
	if err != nil {
		tb.Fatal(err)
	}
	return all
}

// wantWhole checks that every file has the bytes that its name stands for, and that all models that
// the store finds and lists are complete.
func wantWhole(tb testing.TB, s *store.Store, m sample) {
	tb.Helper()
	byDigest := map[string][]byte{}
	for _, data := range m.files {
		byDigest[hubtest.SHA256(data)] = data
		byDigest[hubtest.GitSHA1(data)] = data
	}
	for _, at := range walk(tb, filepath.Dir(s.Hub)) {
		if want, ok := byDigest[filepath.Base(at)]; ok {
			if got, err := os.ReadFile(at); err != nil || !bytes.Equal(got, want) {
				tb.Errorf("%s is not whole", at)
			}
		}
	}
	found, err := s.Find(m.name)
	switch {
	case err == nil:
		wantFiles(tb, found, m.files)
	case !errors.Is(err, store.ErrAbsent):
		tb.Error(err)
	}
	all, err := s.List()
	if err != nil {
		tb.Error(err)
	}
	for _, listed := range all {
		wantFiles(tb, listed, m.files)
	}
}

// wantPulled checks that a pull from a server without faults gets the model, reports progress for
// all bytes, and leaves nothing but the model.
func wantPulled(tb testing.TB, p *pull.Puller, s *hubtest.Server, m sample) {
	tb.Helper()
	s.Set(m.behavior)
	last := &killer{came: map[int]int64{}}
	p.Watcher, p.Client = last, fetch.NewClient(quick())
	defer p.Client.Close()
	pulled, err := p.Pull(tb.Context(), m.name)
	if err != nil {
		tb.Fatal(err)
	}
	wantFiles(tb, pulled, m.files)
	wantWhole(tb, p.Store, m)
	var came int64
	for _, n := range last.came {
		came += n
	}
	if came != last.due {
		tb.Errorf("progress was told of %d bytes, of %d", came, last.due)
	}
	if _, err := p.Store.Garbage(true, time.Now().Add(2*time.Hour)); err != nil {
		tb.Error(err)
	}
	wantWhole(tb, p.Store, m)
	folder := filepath.Dir(p.Store.Hub)
	for _, at := range walk(tb, folder) {
		if strings.Contains(filepath.Base(at), ".realizar-") {
			tb.Errorf("%s is left behind", at)
		}
	}
	if err := os.RemoveAll(folder); err != nil {
		tb.Fatal(err)
	}
}

// TestSchedules checks that after any faults and interruptions a pull ends with the right bytes or
// an error, that the store names only complete models, and that a last pull succeeds.
func TestSchedules(t *testing.T) {
	schedules(t, 300, func(t *testing.T, s *hubtest.Server, seed uint64) {
		r := rand.New(rand.NewPCG(seed, 2))
		m := sampleOf(t, s, r, seed)
		faults := &schedule{r: rand.New(rand.NewPCG(seed, 3)), left: r.IntN(25), stall: seed%16 == 0}
		s.Set(m.withFaults(faults))
		o := quick()
		o.Connections = 1 + r.IntN(4)
		if faults.stall {
			o.Stall = 50 * time.Millisecond
		}
		p := puller(t, s, o)
		p.Token = m.behavior.Token
		for range r.IntN(5) {
			ctx, cancel := context.WithCancel(t.Context())
			p.Watcher = &killer{after: 1 + r.IntN(60), cancel: cancel, came: map[int]int64{}}
			pulled, err := p.Pull(ctx, m.name)
			cancel()
			if err == nil {
				wantFiles(t, pulled, m.files)
			}
			wantWhole(t, p.Store, m)
			spoil(t, filepath.Dir(p.Store.Hub), r)
		}
		p.Client.Close()
		wantPulled(t, p, s, m)
	})
}
