// Package page has the page that the server shows in a browser, to chat with the model, to watch
// the server and to see the tokens of a prompt. Its source is the folder web; dist has the files
// that its build makes, compressed.
package page

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"path"
	"regexp"
	"strconv"
	"strings"
)

//go:generate sh -c "cd ../../../web && npm ci --ignore-scripts && npm run build"

//go:embed dist
var dist embed.FS

// policy is the page's content security policy: the browser may run and show only what the server
// sends, and contact only the server. Only the framework's own templates may become HTML.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; font-src 'self'; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'; " +
	"require-trusted-types-for 'script'; trusted-types svelte-trusted-html"

// A Page serves the files of dist. The zero value has none.
type Page struct {
	files map[string]*file // by path
}

// A file is a file of dist.
type file struct {
	kind string // Content-Type
	tag  string // the ETag without quotes
	gzip []byte
	size int // uncompressed, in bytes
}

// New returns the page of this build.
func New() *Page {
	p := &Page{files: map[string]*file{}}
	err := fs.WalkDir(dist, "dist", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		f, err := read(name)
		if err != nil {
			return err
		}
		at := strings.TrimSuffix(strings.TrimPrefix(name, "dist"), ".gz")
		if at == "/index.html" {
			at = "/"
		}
		p.files[at] = f
		return nil
	})
	if err != nil {
		panic(err) // a test reads the same files
	}
	return p
}

func read(name string) (*file, error) {
	data, err := dist.ReadFile(name)
	if err != nil {
		return nil, err
	}
	ext := path.Ext(strings.TrimSuffix(name, ".gz"))
	kind, ok := kinds[ext]
	if !strings.HasSuffix(name, ".gz") || len(data) < 18 || !ok {
		return nil, fmt.Errorf("page: %s is no file of a page, compressed", name)
	}
	sum := sha256.Sum256(data)
	return &file{
		kind: kind, tag: base64.RawURLEncoding.EncodeToString(sum[:12]), gzip: data,
		size: int(binary.LittleEndian.Uint32(data[len(data)-4:])), // gzip's trailer
	}, nil
}

// hashed matches paths that contain a hash of the file.
var hashed = regexp.MustCompile(`^/page/[\w-]+-[\w-]{8}\.\w+$`)

// kinds are the content types of the page's files. The system's table may have others.
var kinds = map[string]string{
	".html":  "text/html; charset=utf-8",
	".js":    "text/javascript; charset=utf-8",
	".css":   "text/css; charset=utf-8",
	".svg":   "image/svg+xml",
	".woff2": "font/woff2",
	".txt":   "text/plain; charset=utf-8",
}

// Serve answers a GET or HEAD request. It reports whether there is a file at the path.
func (p *Page) Serve(w http.ResponseWriter, r *http.Request) bool {
	f := p.files[r.URL.Path]
	if f == nil {
		return false
	}
	h := w.Header()
	h.Set("Content-Security-Policy", policy)
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Permissions-Policy", "camera=(), microphone=(), geolocation=()")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-DNS-Prefetch-Control", "off") // browsers may resolve the names in links, which an answer can choose
	h.Set("X-Frame-Options", "DENY")
	h.Add("Vary", "Accept-Encoding")
	h.Set("Cache-Control", "no-cache")
	if hashed.MatchString(r.URL.Path) {
		h.Set("Cache-Control", "public, max-age=31536000, immutable")
	}
	compressed := takesGzip(r.Header.Values("Accept-Encoding"))
	tag := strconv.Quote(f.tag)
	if compressed {
		tag = strconv.Quote(f.tag + "-gzip")
	}
	h.Set("ETag", tag)
	if matches(r.Header.Values("If-None-Match"), tag) {
		w.WriteHeader(http.StatusNotModified)
		return true
	}
	h.Set("Content-Type", f.kind)
	size := f.size
	if compressed {
		h.Set("Content-Encoding", "gzip")
		size = len(f.gzip)
	}
	h.Set("Content-Length", strconv.Itoa(size))
	w.WriteHeader(http.StatusOK)
	if r.Method != http.MethodHead {
		f.write(w, compressed)
	}
	return true
}

// write writes the file. Errors are ignored: the client has left.
func (f *file) write(w io.Writer, compressed bool) {
	if compressed {
		_, _ = w.Write(f.gzip)
		return
	}
	if z, err := gzip.NewReader(bytes.NewReader(f.gzip)); err == nil {
		_, _ = io.CopyN(w, z, int64(f.size))
	}
}

// takesGzip reports whether a client accepts gzip, by its Accept-Encoding. Without a mention of
// gzip or *, it does not.
func takesGzip(headers []string) bool {
	named, rest := -1.0, -1.0
	for part := range strings.SplitSeq(strings.Join(headers, ","), ",") {
		coding, parameters, _ := strings.Cut(part, ";")
		weight := weightOf(parameters)
		switch strings.ToLower(strings.TrimSpace(coding)) {
		case "gzip", "x-gzip":
			named = weight
		case "*":
			rest = weight
		}
	}
	if named < 0 {
		named = rest
	}
	return named > 0
}

// weightOf returns q of a coding's parameters: 1 if there is none, 0 if it is not a number.
func weightOf(parameters string) float64 {
	name, value, ok := strings.Cut(strings.TrimSpace(parameters), "=")
	if !ok || !strings.EqualFold(strings.TrimSpace(name), "q") {
		return 1
	}
	q, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
	if err != nil {
		return 0
	}
	return q
}

// matches reports whether If-None-Match contains tag.
func matches(headers []string, tag string) bool {
	for part := range strings.SplitSeq(strings.Join(headers, ","), ",") {
		if part = strings.TrimSpace(part); part == "*" || strings.TrimPrefix(part, "W/") == tag {
			return true
		}
	}
	return false
}
