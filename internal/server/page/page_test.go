package page

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// budget bounds the size of all files together, compressed, in bytes. It includes files that are
// loaded later.
const budget = 250_000

func TestSize(t *testing.T) {
	all := 0
	for _, f := range New().files {
		all += len(f.gzip)
	}
	t.Logf("%d files of %d bytes, compressed", len(New().files), all)
	if all > budget {
		t.Errorf("the page has %d bytes, compressed; it may have %d", all, budget)
	}
}

func ask(p *Page, method, path string, header ...string) *http.Response {
	r := httptest.NewRequest(method, path, nil)
	for i := 0; i < len(header); i += 2 {
		r.Header.Add(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	if !p.Serve(w, r) {
		return nil
	}
	return w.Result()
}

func body(t *testing.T, r *http.Response) []byte {
	t.Helper()
	data, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// TestFiles checks the headers of every file, and that its content is the same compressed or not.
func TestFiles(t *testing.T) {
	p := New()
	if p.files["/"] == nil || len(p.files) < 5 {
		t.Fatalf("there are %d files", len(p.files))
	}
	for at, f := range p.files {
		plain, zipped := ask(p, "GET", at), ask(p, "GET", at, "Accept-Encoding", "gzip, br")
		text, compressed := body(t, plain), body(t, zipped)
		z, err := gzip.NewReader(bytes.NewReader(compressed))
		if err != nil {
			t.Fatalf("%s: %v", at, err)
		}
		if unzipped, err := io.ReadAll(z); err != nil || !bytes.Equal(unzipped, text) || len(text) == 0 {
			t.Errorf("%s: %v, %d bytes compressed are %d, and %d as they are", at, err, len(compressed), len(unzipped), len(text))
		}
		for r, want := range map[*http.Response]int{plain: len(text), zipped: len(compressed)} {
			h := r.Header
			if r.StatusCode != 200 || h.Get("Content-Length") != strconv.Itoa(want) {
				t.Errorf("%s: status %d, %s bytes of %d", at, r.StatusCode, h.Get("Content-Length"), want)
			}
			for name, value := range map[string]string{
				"Content-Security-Policy": policy, "X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer",
				"X-Frame-Options": "DENY", "X-DNS-Prefetch-Control": "off", "Cross-Origin-Resource-Policy": "same-origin", "Vary": "Accept-Encoding", "Content-Type": f.kind,
			} {
				if h.Get(name) != value {
					t.Errorf("%s: %s is %q, not %q", at, name, h.Get(name), value)
				}
			}
			if len(h["Set-Cookie"]) > 0 {
				t.Errorf("%s: there is a cookie", at)
			}
		}
		if plain.Header.Get("Content-Encoding") != "" || zipped.Header.Get("Content-Encoding") != "gzip" || plain.Header.Get("ETag") == zipped.Header.Get("ETag") {
			t.Errorf("%s: encodings and tags %v %v", at, plain.Header, zipped.Header)
		}
		kept := "public, max-age=31536000, immutable"
		if at == "/" || path.Base(at) == "licences.txt" {
			kept = "no-cache"
		}
		if c := plain.Header.Get("Cache-Control"); c != kept {
			t.Errorf("%s: Cache-Control is %q, not %q", at, c, kept)
		}
	}
}

// TestPolicy checks that the policy allows only the server as a source, and nothing inline.
func TestPolicy(t *testing.T) {
	directives := map[string]string{}
	for d := range strings.SplitSeq(policy, ";") {
		name, value, _ := strings.Cut(strings.TrimSpace(d), " ")
		directives[name] = value
	}
	for name, want := range map[string]string{
		"default-src": "'none'", "script-src": "'self'", "style-src": "'self'", "connect-src": "'self'", "img-src": "'self'", "font-src": "'self'",
		"base-uri": "'none'", "form-action": "'none'", "frame-ancestors": "'none'", "require-trusted-types-for": "'script'",
	} {
		if directives[name] != want {
			t.Errorf("%s is %q, not %q", name, directives[name], want)
		}
	}
	for _, word := range []string{"unsafe", "data:", "blob:", "http", "*"} {
		if strings.Contains(policy, word) {
			t.Errorf("the policy has %s", word)
		}
	}
}

// TestIndex checks that the first file obeys the policy and refers only to existing files and to no
// other host.
func TestIndex(t *testing.T) {
	p := New()
	index := string(body(t, ask(p, "GET", "/")))
	for _, bad := range []string{"<style", " style=", "javascript:", "data:", " onload", " onerror"} {
		if strings.Contains(index, bad) {
			t.Errorf("the page has %q", bad)
		}
	}
	for _, m := range regexp.MustCompile(`<script[^>]*>([^<]*)`).FindAllStringSubmatch(index, -1) {
		if m[1] != "" {
			t.Errorf("there is a script in the page: %s", m[0])
		}
	}
	links := regexp.MustCompile(`(?:src|href)="([^"]*)"`).FindAllStringSubmatch(index, -1)
	if len(links) < 3 {
		t.Errorf("the page names %d files:\n%s", len(links), index)
	}
	for _, m := range links {
		if at := path.Join("/", m[1]); p.files[at] == nil {
			t.Errorf("there is no %s, which the page names", m[1])
		}
	}
	for at := range p.files {
		text := string(body(t, ask(p, "GET", at)))
		for _, m := range regexp.MustCompile(`(?:url\(|src=|import\()["']?(https?:)?//[^"')\s]+`).FindAllString(text, -1) {
			t.Errorf("%s loads %s", at, m)
		}
	}
}

func TestHead(t *testing.T) {
	p := New()
	for _, coding := range []string{"gzip", "identity"} {
		head, get := ask(p, "HEAD", "/", "Accept-Encoding", coding), ask(p, "GET", "/", "Accept-Encoding", coding)
		if data := body(t, head); len(data) != 0 || head.StatusCode != 200 || fmt.Sprint(head.Header) != fmt.Sprint(get.Header) {
			t.Errorf("%s: %d bytes, %v, and of GET %v", coding, len(data), head.Header, get.Header)
		}
	}
}

// TestNotModified checks that a client that has a file in the same coding gets status 304.
func TestNotModified(t *testing.T) {
	p := New()
	for at := range p.files {
		tag := ask(p, "GET", at, "Accept-Encoding", "gzip").Header.Get("ETag")
		for _, test := range []struct {
			status int
			header []string
		}{
			{304, []string{"If-None-Match", tag, "Accept-Encoding", "gzip"}},
			{304, []string{"If-None-Match", `"a", W/` + tag, "Accept-Encoding", "gzip"}},
			{304, []string{"If-None-Match", `"a"`, "If-None-Match", tag, "Accept-Encoding", "gzip"}},
			{304, []string{"If-None-Match", "*"}},
			{200, []string{"If-None-Match", tag}},
			{200, []string{"If-None-Match", `"a"`, "Accept-Encoding", "gzip"}},
		} {
			r := ask(p, "GET", at, test.header...)
			if r.StatusCode != test.status || r.StatusCode == 304 && (len(body(t, r)) != 0 || r.Header.Get("ETag") == "" || r.Header.Get("Content-Encoding") != "") {
				t.Errorf("%s with %q: %d %v", at, test.header, r.StatusCode, r.Header)
			}
		}
	}
}

func TestTakesGzip(t *testing.T) {
	for header, want := range map[string]bool{
		"": false, "gzip": true, "br, GZIP": true, "gzip;q=0": false, "gzip; q=0.5, br": true, "*": true, "*;q=0": false, "gzip;q=0, *": false,
		"identity": false, "*;q=0, gzip": true, "gzip;q=x": false, "gzip ; Q=1": true, "x-gzip": true, "br;q=1, gzip;q=0.0": false,
	} {
		if takesGzip([]string{header}) != want {
			t.Errorf("%q: %v", header, !want)
		}
	}
	if !takesGzip([]string{"br", "gzip"}) {
		t.Error("a second header counts for nothing")
	}
}

// TestUnknown checks that paths of other files are not found.
func TestUnknown(t *testing.T) {
	p := New()
	for _, at := range []string{"/index.html", "/page/", "/page/none.js", "/page/../", "/page/licences.txt.gz", "//", "/dist/index.html.gz", "/page.go"} {
		if r := ask(p, "GET", at); r != nil {
			t.Errorf("%s: %d", at, r.StatusCode)
		}
	}
	if (&Page{}).Serve(httptest.NewRecorder(), httptest.NewRequest("GET", "/", nil)) {
		t.Error("an empty page has a file")
	}
}

// TestLicences checks that the page includes the licences of its components.
func TestLicences(t *testing.T) {
	text := string(body(t, ask(New(), "GET", "/page/licences.txt")))
	for _, name := range []string{"svelte", "marked", "highlight.js", "temml", "@fontsource/stix-two-math"} {
		if !slices.ContainsFunc(strings.Split(text, "\n"), func(line string) bool { return strings.HasPrefix(line, name+" ") }) {
			t.Errorf("there is no licence of %s", name)
		}
	}
}
