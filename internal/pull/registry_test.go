package pull_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/realizar/realizar/internal/pull"
	"github.com/realizar/realizar/internal/pull/hubtest"
	"github.com/realizar/realizar/internal/store"
)

// A layer is a layer of a test's manifest.
type layer struct {
	media, name string
	data        []byte
}

// addModel adds an artifact to a server.
func addModel(t testing.TB, s *hubtest.Server, name string, layers ...layer) {
	t.Helper()
	m := store.Manifest{SchemaVersion: 2, MediaType: store.MediaManifest}
	config := []byte("{}")
	m.Config = store.Descriptor{MediaType: store.MediaPackConfig, Digest: s.AddBlob(config), Size: int64(len(config))}
	for _, l := range layers {
		d := store.Descriptor{MediaType: l.media, Digest: s.AddBlob(l.data), Size: int64(len(l.data))}
		if l.name != "" {
			d.Annotations = map[string]string{store.AnnotationPackPath: l.name}
		}
		m.Layers = append(m.Layers, d)
	}
	data, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	s.AddManifest(name, data)
}

// archive returns a tar of files. header, unless nil, changes their headers.
func archive(t *testing.T, files map[string]string, header func(*tar.Header)) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for name, data := range files {
		h := &tar.Header{Name: name, Size: int64(len(data)), Mode: 0o600, Typeflag: tar.TypeReg}
		if header != nil {
			header(h)
		}
		if err := w.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
		if h.Typeflag != tar.TypeReg {
			continue
		}
		if _, err := io.WriteString(w, data); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func zipped(t *testing.T, data []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := w.Write(data); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func zstandard(t *testing.T, data []byte) []byte {
	t.Helper()
	w, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	return w.EncodeAll(data, nil)
}

// TestArtifacts checks the files of artifacts of every form that is read, and their names.
func TestArtifacts(t *testing.T) {
	const docker, pack = "application/vnd.docker.ai.", "application/vnd.cncf.model."
	config := archive(t, map[string]string{"config.json": "{}", "./tokenizer.json": "[]"}, nil)
	for form, c := range map[string]struct {
		layers []layer
		main   string
		files  string
	}{
		"docker":  {[]layer{{docker + "gguf.v3", "", []byte("a")}, {docker + "license", "", []byte("l")}, {docker + "mmproj", "", []byte("p")}}, "model.gguf", "LICENSE mmproj.gguf model.gguf"},
		"shards":  {[]layer{{docker + "gguf.v3", "", []byte("a")}, {docker + "gguf.v3", "", []byte("b")}}, "model-00001-of-00002.gguf", "model-00001-of-00002.gguf model-00002-of-00002.gguf"},
		"folder":  {[]layer{{docker + "safetensors", "", []byte("a")}, {docker + "vllm.config.tar", "", config}}, "", "config.json model.safetensors tokenizer.json"},
		"pack":    {[]layer{{pack + "weight.v1.raw", "sub/x-Q4_0.gguf", []byte("a")}, {pack + "doc.v1.raw", "README.md", []byte("d")}}, "sub/x-Q4_0.gguf", "README.md sub/x-Q4_0.gguf"},
		"tars":    {[]layer{{pack + "weight.v1.tar", "", archive(t, map[string]string{"m.gguf": "w"}, nil)}, {pack + "weight.config.v1.tar+gzip", "", zipped(t, archive(t, map[string]string{"x/y.json": "{}"}, nil))}}, "m.gguf", "m.gguf x/y.json"},
		"zstd":    {[]layer{{pack + "weight.v1.tar+zstd", "", zstandard(t, archive(t, map[string]string{"m.gguf": "w"}, nil))}}, "m.gguf", "m.gguf"},
		"ollama":  {[]layer{{"application/vnd.ollama.image.model", "", []byte("a")}, {"application/vnd.ollama.image.template", "", []byte("{{ .Prompt }}")}}, "model.gguf", "model.gguf"},
		"earlier": {[]layer{{"application/vnd.cnai.model.weight.v1.raw", "m.gguf", []byte("a")}}, "m.gguf", "m.gguf"},
	} {
		t.Run(form, func(t *testing.T) {
			s := hubtest.New(t)
			addModel(t, s, "org/"+form+":1", c.layers...)
			p := puller(t, s, quick())
			m, err := p.Pull(t.Context(), name(t, "oci://"+s.Host+"/org/"+form+":1"))
			if err != nil {
				t.Fatal(err)
			}
			view := m.Path
			if c.main != "" {
				view = strings.TrimSuffix(filepath.ToSlash(m.Path), "/"+c.main)
			}
			var files []string
			for _, at := range walk(t, view) {
				rel, err := filepath.Rel(view, at)
				if err != nil {
					t.Fatal(err)
				}
				if _, err := os.ReadFile(at); err != nil {
					t.Error(err)
				}
				files = append(files, filepath.ToSlash(rel))
			}
			if got := strings.Join(slices.Sorted(slices.Values(files)), " "); got != c.files {
				t.Errorf("the files %q, want %q; the model is %s", got, c.files, m.Path)
			}
		})
	}
}

// TestHostileArtifacts checks that invalid manifests and archives are errors, and that nothing gets
// a name.
func TestHostileArtifacts(t *testing.T) {
	const pack = "application/vnd.cncf.model."
	weights := layer{pack + "weight.v1.raw", "m.gguf", []byte("a")}
	tarOf := func(name string, header func(*tar.Header)) layer {
		return layer{pack + "weight.config.v1.tar", "", archive(t, map[string]string{name: "x"}, header)}
	}
	link := func(kind byte) func(*tar.Header) {
		return func(h *tar.Header) { h.Typeflag, h.Linkname, h.Size = kind, "/etc/passwd", 0 }
	}
	for says, layers := range map[string][]layer{
		"../m.gguf":                 {{pack + "weight.v1.raw", "../m.gguf", nil}},
		"absolute":                  {{pack + "weight.v1.raw", "/etc/m.gguf", nil}},
		"one file":                  {weights, {pack + "doc.v1.raw", "M.gguf", []byte("b")}},
		"a folder of":               {weights, {pack + "doc.v1.raw", "m.gguf/x", []byte("b")}},
		`"../x"`:                    {weights, tarOf("../x", nil)},
		`"/x"`:                      {weights, tarOf("/x", nil)},
		"is no file":                {weights, tarOf("x", link(tar.TypeSymlink))},
		"no file (type":             {weights, tarOf("x", link(tar.TypeLink))},
		"(type '4')":                {weights, tarOf("x", func(h *tar.Header) { h.Typeflag, h.Size = tar.TypeBlock, 0 })},
		"file exists":               {weights, tarOf("m.gguf", nil)},
		"times its size":            {weights, {pack + "weight.config.v1.tar+zstd", "", bomb(t)}},
		"more than 8 times":         {weights, {pack + "weight.config.v1.tar", "", sparse(t, "a", "b")}},
		`"M.gguf" are one`:          {weights, tarOf("M.gguf", nil)},
		"case does not count; name": {weights, {pack + "weight.config.v1.tar", "", archive(t, map[string]string{"\u00e9": "", "e\u0301": ""}, nil)}},
		"the archive":               {weights, {pack + "weight.config.v1.tar+gzip", "", []byte("none")}},
		"single tensors":            {{"application/vnd.ollama.image.tensor", "", []byte("x")}},
		"no layer with wei":         {{"application/vnd.oci.image.layer.v1.tar+gzip", "", zipped(t, nil)}},
	} {
		s := hubtest.New(t)
		addModel(t, s, "org/bad:1", layers...)
		p := puller(t, s, quick())
		n := name(t, "oci://"+s.Host+"/org/bad:1")
		if _, err := p.Pull(t.Context(), n); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: error %v", says, err)
		}
		if _, err := p.Store.Find(n); !errors.Is(err, store.ErrAbsent) {
			t.Errorf("%s: it is there: %v", says, err)
		}
		views, err := os.ReadDir(filepath.Join(p.Store.Own, "views"))
		if len(views) > 0 || err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s: %v, %v are left", says, views, err)
		}
	}
	d := "sha256:" + strings.Repeat("a", 64)
	for text, says := range map[string]string{
		`{`: "no JSON", `{"schemaVersion":1}`: "version 1", `{"schemaVersion":2}`: "no layer",
		`{"schemaVersion":2,"layers":[{"mediaType":"x","digest":"sha512:` + strings.Repeat("a", 128) + `","size":1}]}`: "only sha256",
		`{"schemaVersion":2,"layers":[{"mediaType":"x","digest":"sha256:../../x","size":1}]}`:                          "64 hexadecimal",
		`{"schemaVersion":2,"layers":[{"mediaType":"x","digest":"` + d + `","size":-1}]}`:                              "-1 bytes",
		`{"schemaVersion":2,"layers":[{"mediaType":"x","digest":"` + d + `","size":9000000000000000000}]}`:             "9000000000000000000 bytes",
		`{"schemaVersion":2,"layers":[{}` + strings.Repeat(",{}", 1<<20) + `]}`:                                        "more than those of",
		strings.Repeat(" ", store.MaxManifest+1):                                                                       "more than the",
	} {
		s := hubtest.New(t)
		s.AddManifest("org/bad:1", []byte(text))
		if _, err := puller(t, s, quick()).Pull(t.Context(), name(t, "oci://"+s.Host+"/org/bad:1")); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%.60s: error %v, want %q", text, err, says)
		}
	}
}

// bomb returns a small archive of a large file.
func bomb(t *testing.T) []byte {
	t.Helper()
	return zstandard(t, archive(t, map[string]string{"x": strings.Repeat("\x00", 300<<20)}, nil))
}

// sparse returns an archive of files that are holes of 130 MiB.
func sparse(t *testing.T, files ...string) []byte {
	t.Helper()
	var all []byte
	for _, name := range files {
		record := func(key, value string) string {
			n := len(key) + len(value) + 3
			n += len(strconv.Itoa(n + 2))
			return fmt.Sprintf("%d %s=%s\n", n, key, value)
		}
		size := strconv.Itoa(130 << 20)
		extended := archive(t, map[string]string{"x": record("GNU.sparse.numblocks", "1") + record("GNU.sparse.size", size) + record("GNU.sparse.map", size+",0")}, nil)
		// The tar writer does not write sparse files: the first header becomes one of PAX records.
		extended[156] = tar.TypeXHeader
		copy(extended[148:156], "        ")
		sum := 0
		for _, b := range extended[:512] {
			sum += int(b)
		}
		copy(extended[148:], fmt.Sprintf("%06o\x00 ", sum))
		all = append(append(all, extended[:1024]...), archive(t, map[string]string{name: ""}, nil)[:512]...)
	}
	return append(all, make([]byte, 1024)...)
}

// TestRegistryKeys checks that the credentials of docker login are used for their registry only.
// They must not go to the host of its files, which hubtest checks, nor anywhere without TLS.
func TestRegistryKeys(t *testing.T) {
	s := hubtest.New(t)
	s.Set(hubtest.Behavior{Bearer: true, Login: "me:verysecret"})
	data := content(1, 20_000)
	addModel(t, s, "org/x:1", layer{store.MediaPackWeights, "m.gguf", data})
	n := name(t, "oci://"+s.Host+"/org/x:1")
	folder := t.TempDir()
	t.Setenv("DOCKER_CONFIG", folder)
	p := puller(t, s, quick())
	for _, c := range []struct{ login, says string }{{"", "docker login"}, {"me:wrong", "docker login"}, {"me:verysecret", ""}} {
		write(t, filepath.Join(folder, "config.json"), fmt.Sprintf(`{"auths":{%q:{"auth":%q}}}`, s.Host, base64.StdEncoding.EncodeToString([]byte(c.login))))
		if c.login == "" {
			write(t, filepath.Join(folder, "config.json"), "{}")
		}
		m, err := p.Pull(t.Context(), n)
		switch {
		case c.says == "" && err == nil:
			wantFiles(t, m, map[string][]byte{"m.gguf": data})
		case err == nil || !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), "verysecret"):
			t.Errorf("%s: error %v, want %q", c.login, err, c.says)
		}
	}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://elsewhere.invalid/token", nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := pull.RegistryClient(p.Client.HTTP).Do(r); err == nil || !strings.Contains(err.Error(), "has no TLS") {
		t.Errorf("without TLS: %v", err)
	}
}

// TestURL checks that a file of a web server is accepted only with its digest.
func TestURL(t *testing.T) {
	s := hubtest.New(t)
	data := content(1, 20_000)
	s.AddRepo("plain/plain", map[string][]byte{"m-Q4_0.gguf": data})
	p := puller(t, s, quick())
	m, err := p.Pull(t.Context(), name(t, s.URL+"/files/m-Q4_0.gguf#sha256="+hubtest.SHA256(data)))
	if err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(m.Path); err != nil || !bytes.Equal(got, data) || filepath.Base(m.Path) != "m-Q4_0.gguf" || m.Quant != "Q4_0" {
		t.Errorf("%+v, %v", m, err)
	}
	n := name(t, s.URL+"/files/m-Q4_0.gguf#sha256="+hubtest.SHA256([]byte("other")))
	if _, err := p.Pull(t.Context(), n); err == nil || !strings.Contains(err.Error(), "the bytes have the digest") {
		t.Errorf("other bytes: %v", err)
	}
	if _, err := p.Store.Find(n); !errors.Is(err, store.ErrAbsent) {
		t.Errorf("other bytes: %v", err)
	}
	if _, err := p.Pull(t.Context(), name(t, s.URL+"/files/none.gguf#sha256="+hubtest.SHA256(data))); err == nil || !strings.Contains(err.Error(), "no such file") {
		t.Errorf("no file: %v", err)
	}
}

// TestRemove checks that models that share files are removed one by one, and that nothing remains.
func TestRemove(t *testing.T) {
	s := hubtest.New(t)
	p := puller(t, s, quick())
	data := content(1, 10_000)
	s.AddRepo("org/x", map[string][]byte{"x-Q4_K_M.gguf": data, "x-Q8_0.gguf": content(2, 100)})
	for i := range 2 {
		addModel(t, s, fmt.Sprintf("org/m%d:1", i), layer{store.MediaDockerGGUF, "", data}, layer{"application/vnd.docker.ai.license", "", []byte{byte(i)}})
	}
	var all []*store.Model
	for _, text := range []string{"hf:org/x", "hf:org/x:Q8_0", "oci://" + s.Host + "/org/m0:1", "oci://" + s.Host + "/org/m1:1"} {
		m, err := p.Pull(t.Context(), name(t, text))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, m)
	}
	hold, err := p.Store.PullHub(t.Context(), all[0].Name, hubtest.Commit)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Store.Remove(all[0]); err == nil || !strings.Contains(err.Error(), "being pulled") {
		t.Errorf("removed while it is pulled: %v", err)
	}
	hold.Release()
	for i, m := range all {
		freed, err := p.Store.Remove(m)
		if err != nil || freed == 0 || i == 2 && freed > 1000 {
			t.Errorf("%s: %d bytes, %v", m.Name, freed, err)
		}
		left, err := p.Store.List()
		if err != nil || len(left) != len(all)-1-i {
			t.Errorf("after %s: %d models are left, %v", m.Name, len(left), err)
		}
		for _, m := range left {
			if damaged, _, err := p.Store.Verify(t.Context(), m, func(int64) {}); err != nil || len(damaged) > 0 {
				t.Errorf("%s is damaged: %v, %v", m.Name, damaged, err)
			}
		}
	}
	for _, at := range walk(t, filepath.Dir(p.Store.Hub)) {
		if base := filepath.Base(at); !strings.HasSuffix(base, ".lock") && base != "index.json" && base != "oci-layout" {
			t.Errorf("%s is left", at)
		}
	}
}
