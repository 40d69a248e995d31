// Package hubtest has hubs and registries for tests. They serve HTTP on loopback and make the
// faults that a test asks for.
package hubtest

import (
	"crypto/sha1" //nolint:gosec // git's ids are SHA-1
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// Commit is the commit of every repository's main branch.
const Commit = "0123456789abcdef0123456789abcdef01234567"

// A Fault is an error in one answer of a server.
type Fault int

// The faults.
const (
	None       Fault = iota
	Cut              // the connection ends in the middle of the body
	Close            // the connection ends before the answer
	Busy             // status 500, 502, 503 or 504
	Slow             // the body comes in many small pieces
	TooMany          // status 429 with Retry-After
	WrongTotal       // Content-Range or Content-Length has another size of the file
	WrongStart       // bytes of another range than requested, declared as such
	Flip             // one bit is wrong
	Short            // fewer bytes than requested, declared as such
	Whole            // the whole file, though a part was requested
	NoRange          // status 206 without a range
	Stall            // the body stops in the middle
	Expired          // status 403 of an address that was valid for a while
	Faults           // the number of faults
)

// A Behavior says how a server answers.
type Behavior struct {
	Token  string // required by the hub, unless empty
	Gated  bool   // the token's account has no access to the files
	Direct bool   // large files are not on another host

	Bearer bool   // registries require a token
	Login  string // user:password that gets this token; empty means any

	// List changes a file's entry in the hub's listings.
	List func(entry map[string]any)

	// Fault is called for each answer with the path requested and the answer's size in bytes. It
	// returns the fault and its offset in the answer.
	Fault func(path string, size int64) (f Fault, n int64)
}

// A Server is a hub like Hugging Face's, registries like Ollama's and like OCI's, a web server, and
// the host of large files.
type Server struct {
	URL  string // of the hub
	Host string // of the registry: host and port

	tb       testing.TB
	mu       sync.Mutex
	behavior Behavior

	repos map[string]map[string][]byte
	blobs map[string][]byte // by digest, sha256:...
	tags  map[string][]byte // manifests by repository:tag
	sent  map[string]int64  // bytes by the file's path
	asked int

	digests map[*byte]string // of large files
	files   *httptest.Server
}

// New starts a server, which is closed when the test ends.
func New(tb testing.TB) *Server {
	s := &Server{tb: tb}
	s.Clear()
	api := http.NewServeMux()
	api.HandleFunc("GET /api/models/{org}/{repo}/revision/{revision}", s.revision)
	api.HandleFunc("GET /api/models/{org}/{repo}/tree/{commit}", s.tree)
	api.HandleFunc("GET /token", s.token)
	api.HandleFunc("GET /v2/{namespace}/{name}/manifests/{reference}", s.manifest)
	api.HandleFunc("GET /v2/{namespace}/{name}/blobs/{digest}", s.blob)
	api.HandleFunc("GET /files/{name}", s.plain)
	web := http.NewServeMux()
	web.HandleFunc("GET /{org}/{repo}/resolve/{commit}/{path...}", s.resolve)
	hub := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, pattern := api.Handler(r); pattern != "" {
			api.ServeHTTP(w, r)
			return
		}
		web.ServeHTTP(w, r)
	}))
	s.files = httptest.NewServer(http.HandlerFunc(s.file))
	tb.Cleanup(func() {
		hub.CloseClientConnections()
		hub.Close()
		s.files.CloseClientConnections()
		s.files.Close()
	})
	s.URL, s.Host = hub.URL, hub.Listener.Addr().String()
	return s
}

// Set sets the server's behavior.
func (s *Server) Set(b Behavior) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.behavior = b
}

func (s *Server) behaves() Behavior {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.behavior
}

// Clear removes all repositories, blobs and manifests.
func (s *Server) Clear() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.repos, s.blobs, s.tags = map[string]map[string][]byte{}, map[string][]byte{}, map[string][]byte{}
	s.sent, s.digests = map[string]int64{}, map[*byte]string{}
}

// AddRepo adds a repository.
func (s *Server) AddRepo(id string, files map[string][]byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.repos[id] = files
}

// Warm computes the digests of a repository's files.
func (s *Server) Warm(id string) {
	s.mu.Lock()
	files := s.repos[id]
	s.mu.Unlock()
	for _, data := range files {
		s.digest(data)
	}
}

// AddBlob adds a blob and returns its digest.
func (s *Server) AddBlob(data []byte) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	d := "sha256:" + SHA256(data)
	s.blobs[d] = data
	return d
}

// AddManifest gives a manifest a name, such as library/small:1b.
func (s *Server) AddManifest(name string, data []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tags[name] = data
}

// Sent returns how many bytes of a file the server has begun to send.
func (s *Server) Sent(path string) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sent[path]
}

// Asked returns the number of requests.
func (s *Server) Asked() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asked
}

// SHA256 returns a digest in hexadecimal.
func SHA256(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// digest returns the SHA-256 of a file. The digest of a large file is computed once.
func (s *Server) digest(data []byte) string {
	if len(data) < 1<<20 {
		return SHA256(data)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.digests[&data[0]] == "" {
		s.digests[&data[0]] = SHA256(data)
	}
	return s.digests[&data[0]]
}

// GitSHA1 returns git's id of a file.
func GitSHA1(data []byte) string {
	h := sha1.New() //nolint:gosec // as above
	_, _ = fmt.Fprintf(h, "blob %d\x00", len(data))
	h.Write(data)
	return hex.EncodeToString(h.Sum(nil))
}

// Large reports whether the hub keeps a file outside git.
func Large(path string) bool {
	return strings.HasSuffix(path, ".gguf") || strings.HasSuffix(path, ".safetensors")
}

// fault counts a request and returns the fault of its answer.
func (s *Server) fault(path string, size int64) (Fault, int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked++
	if s.behavior.Fault == nil {
		return None, 0
	}
	return s.behavior.Fault(path, size)
}

// allowed reports whether a request may have its repository. If not, it answers it.
func (s *Server) allowed(w http.ResponseWriter, r *http.Request) bool {
	refuse := func(status int, code, text string) bool {
		w.Header().Set("X-Error-Code", code)
		w.Header().Set("X-Error-Message", text)
		w.WriteHeader(status)
		return false
	}
	_, there := s.repo(r)
	b := s.behaves()
	switch {
	case b.Token != "" && r.Header.Get("Authorization") != "Bearer "+b.Token:
		return refuse(http.StatusUnauthorized, "", "Invalid username or password.")
	case !there && b.Token == "":
		return refuse(http.StatusUnauthorized, "RepoNotFound", "Repository not found")
	case !there:
		return refuse(http.StatusNotFound, "RepoNotFound", "Repository not found")
	case b.Gated:
		return refuse(http.StatusForbidden, "GatedRepo", "Access to this model is restricted.")
	}
	return true
}

func (s *Server) repo(r *http.Request) (map[string][]byte, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	files, ok := s.repos[r.PathValue("org")+"/"+r.PathValue("repo")]
	return files, ok
}

func (s *Server) revision(w http.ResponseWriter, r *http.Request) {
	if !s.allowed(w, r) {
		return
	}
	if v := r.PathValue("revision"); v != "main" && v != "refs/pr/1" && v != Commit {
		w.Header().Set("X-Error-Code", "RevisionNotFound")
		http.NotFound(w, r)
		return
	}
	s.send(w, r, "revision", []byte(`{"id":"x","sha":"`+Commit+`","gated":false}`))
}

// page is the number of files on a page of the listing.
const page = 3

func (s *Server) tree(w http.ResponseWriter, r *http.Request) {
	if !s.allowed(w, r) {
		return
	}
	files, _ := s.repo(r)
	var all []map[string]any
	for _, path := range slices.Sorted(maps.Keys(files)) {
		data := files[path]
		e := map[string]any{"type": "file", "size": len(data), "path": path}
		if !Large(path) {
			e["oid"] = GitSHA1(data)
		} else {
			e["oid"] = GitSHA1([]byte("a pointer"))
			e["lfs"] = map[string]any{"oid": s.digest(data), "size": len(data), "pointerSize": 134}
			e["xetHash"] = "abc"
		}
		if change := s.behaves().List; change != nil {
			change(e)
		}
		all = append(all, e)
	}
	all = append(all, map[string]any{"type": "directory", "oid": "x", "size": 0, "path": "folder"})
	from, _ := strconv.Atoi(r.URL.Query().Get("cursor"))
	from = max(0, min(from, len(all)))
	to := min(from+page, len(all))
	if to < len(all) {
		w.Header().Set("Link", fmt.Sprintf(`<https://huggingface.co%s?recursive=true&cursor=%d>; rel="next"`, r.URL.EscapedPath(), to))
	}
	body, err := json.Marshal(all[from:to])
	if err != nil {
		panic(err)
	}
	s.send(w, r, "tree", body)
}

func (s *Server) resolve(w http.ResponseWriter, r *http.Request) {
	if !s.allowed(w, r) {
		return
	}
	path := r.PathValue("path")
	files, _ := s.repo(r)
	data, ok := files[path]
	if !ok || r.PathValue("commit") != Commit {
		w.Header().Set("X-Error-Code", "EntryNotFound")
		http.NotFound(w, r)
		return
	}
	w.Header().Set("X-Repo-Commit", Commit)
	if Large(path) {
		w.Header().Set("X-Linked-Etag", `"`+s.digest(data)+`"`)
		w.Header().Set("X-Linked-Size", strconv.Itoa(len(data)))
		s.redirect(w, r, path, data)
		return
	}
	s.send(w, r, path, data)
}

// redirect sends a file, or redirects to the other host that has it.
func (s *Server) redirect(w http.ResponseWriter, r *http.Request, path string, data []byte) {
	if s.behaves().Direct {
		s.send(w, r, path, data)
		return
	}
	digest := s.digest(data)
	s.mu.Lock()
	s.blobs["sha256:"+digest] = data
	s.mu.Unlock()
	http.Redirect(w, r, s.files.URL+"/"+digest+"?path="+url.QueryEscape(path)+"&signature=secret", http.StatusFound)
}

// file handles requests to the other host.
func (s *Server) file(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Authorization") != "" || r.Header.Get("Cookie") != "" {
		s.tb.Errorf("a key was sent to another host than the hub: %s", r.URL.Path)
	}
	s.mu.Lock()
	data, ok := s.blobs["sha256:"+strings.TrimPrefix(r.URL.Path, "/")]
	s.mu.Unlock()
	if !ok {
		http.NotFound(w, r)
		return
	}
	s.send(w, r, r.URL.Query().Get("path"), data)
}

// registryToken is the token that registries require.
const registryToken = "registry_secret"

// token handles requests for the registry's token.
func (s *Server) token(w http.ResponseWriter, r *http.Request) {
	user, password, _ := r.BasicAuth()
	if login := s.behaves().Login; login != "" && login != user+":"+password {
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	s.send(w, r, "token", []byte(`{"token":"`+registryToken+`"}`))
}

// admitted reports whether a request has the token, if the registry requires one. If not, it
// answers it.
func (s *Server) admitted(w http.ResponseWriter, r *http.Request) bool {
	if !s.behaves().Bearer || r.Header.Get("Authorization") == "Bearer "+registryToken {
		return true
	}
	w.Header().Set("WWW-Authenticate", fmt.Sprintf(`Bearer realm="%s/token",service="registry",scope="repository:%s/%s:pull"`, s.URL, r.PathValue("namespace"), r.PathValue("name")))
	w.WriteHeader(http.StatusUnauthorized)
	return false
}

func (s *Server) manifest(w http.ResponseWriter, r *http.Request) {
	if !s.admitted(w, r) {
		return
	}
	s.mu.Lock()
	data, ok := s.tags[r.PathValue("namespace")+"/"+r.PathValue("name")+":"+r.PathValue("reference")]
	s.mu.Unlock()
	if !ok {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", "application/vnd.docker.distribution.manifest.v2+json")
	w.Header().Set("Docker-Content-Digest", "sha256:"+SHA256(data))
	s.send(w, r, "manifest", data)
}

func (s *Server) blob(w http.ResponseWriter, r *http.Request) {
	if !s.admitted(w, r) {
		return
	}
	s.mu.Lock()
	data, ok := s.blobs[r.PathValue("digest")]
	s.mu.Unlock()
	if !ok {
		http.NotFound(w, r)
		return
	}
	s.redirect(w, r, r.PathValue("digest"), data)
}

// plain handles requests for files of the web server: those of the repository plain/plain.
func (s *Server) plain(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	files := s.repos["plain/plain"]
	s.mu.Unlock()
	data, ok := files[r.PathValue("name")]
	if !ok {
		http.NotFound(w, r)
		return
	}
	s.send(w, r, r.PathValue("name"), data)
}

// send answers with a file or the requested part of it, and with the fault of the answer.
func (s *Server) send(w http.ResponseWriter, r *http.Request, path string, data []byte) {
	from, to, part := int64(0), int64(len(data)), false
	if _, err := fmt.Sscanf(r.Header.Get("Range"), "bytes=%d-%d", &from, &to); err == nil {
		part = true
		to = min(to+1, int64(len(data)))
		if from >= int64(len(data)) {
			w.WriteHeader(http.StatusRequestedRangeNotSatisfiable)
			return
		}
	}
	f, n := s.fault(path, to-from)
	total := int64(len(data))
	switch f {
	case Close:
		hangUp(w)
		return
	case Busy:
		w.WriteHeader([...]int{http.StatusInternalServerError, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout}[n%4])
		return
	case TooMany:
		w.Header().Set("Retry-After", "7")
		w.WriteHeader(http.StatusTooManyRequests)
		return
	case Expired:
		w.WriteHeader(http.StatusForbidden)
		return
	case Whole:
		from, to, part = 0, int64(len(data)), false
	case Short:
		to = max(from+1, to-n)
	case WrongTotal:
		total += 1 + n
	case WrongStart:
		from = (from + 1 + n) % int64(len(data)+1)
		to = max(from, to)
	}
	body := data[from:to]
	w.Header().Set("ETag", `"`+s.digest(data)+`"`)
	if f == Flip && len(body) > 0 {
		body = slices.Clone(body)
		body[n%int64(len(body))] ^= 1
	}
	if part {
		if f != NoRange {
			w.Header().Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", from, to-1, total))
		}
		w.Header().Set("Content-Length", strconv.Itoa(len(body)))
		w.WriteHeader(http.StatusPartialContent)
	} else {
		w.Header().Set("Content-Length", strconv.FormatInt(int64(len(body))+total-int64(len(data)), 10))
	}
	if f == Cut || f == Stall {
		body = body[:min(n, int64(len(body)))]
	}
	s.mu.Lock()
	s.sent[path] += int64(len(body))
	s.mu.Unlock()
	for f == Slow && len(body) > 100 {
		_, _ = w.Write(body[:len(body)/2])
		_ = http.NewResponseController(w).Flush()
		body = body[len(body)/2:]
	}
	_, _ = w.Write(body)
	switch f {
	case Cut, WrongTotal:
		hangUp(w)
	case Stall:
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
		panic(http.ErrAbortHandler)
	}
}

// hangUp closes the connection after what was written.
func hangUp(w http.ResponseWriter) {
	_ = http.NewResponseController(w).Flush()
	if c, _, err := http.NewResponseController(w).Hijack(); err == nil {
		_ = c.(interface{ CloseWrite() error }).CloseWrite()
		_ = c.Close()
		return
	}
	panic(http.ErrAbortHandler)
}
