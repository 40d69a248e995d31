package pull

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/realizar/realizar/internal/fetch"
	"github.com/realizar/realizar/internal/names"
	"github.com/realizar/realizar/internal/store"
)

// DefaultEndpoint is the address of Hugging Face's hub.
const DefaultEndpoint = "https://huggingface.co"

// Bounds on a repository's listing.
const (
	maxListing = 16 << 20 // bytes of a page
	maxPages   = 128
	maxListed  = 100_000 // files and folders
	maxPath    = 1024
	maxDigest  = 128
	maxFile    = 1 << 46 // bytes
)

// HubEnvironment reads the hub's address, its token and whether it may be contacted, from the
// variables and the file that the hub's own tools use.
func (p *Puller) HubEnvironment(getenv func(string) string, home string) error {
	p.Endpoint = strings.TrimSuffix(getenv("HF_ENDPOINT"), "/")
	if v := strings.ToUpper(getenv("HF_HUB_OFFLINE")); v == "1" || v == "TRUE" || v == "YES" || v == "ON" {
		p.Offline = "HF_HUB_OFFLINE is set; unset it"
	}
	for _, name := range []string{"HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"} {
		if p.Token = strings.TrimSpace(getenv(name)); p.Token != "" {
			return checkToken(p.Token, name)
		}
	}
	path := getenv("HF_TOKEN_PATH")
	if path == "" {
		path = filepath.Join(store.HubHome(getenv, home), "token")
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil //nolint:nilerr // most users have no token; an unreadable file counts as none
	}
	p.Token = strings.TrimSpace(string(data))
	return checkToken(p.Token, path)
}

// checkToken returns an error if token cannot be one. The error does not show it.
func checkToken(token, from string) error {
	if len(token) > 1024 || strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return fmt.Errorf("%s holds no token of the hub: it has spaces, line feeds or too many characters; write the token alone", from)
	}
	return nil
}

func (p *Puller) endpoint() string {
	if p.Endpoint == "" {
		return DefaultEndpoint
	}
	return p.Endpoint
}

// A keyed client adds the hub's token to requests to the hub.
type keyed struct {
	client      fetch.Doer
	scheme      string
	host, token string
}

// Do sends a request.
func (k *keyed) Do(r *http.Request) (*http.Response, error) {
	if r.URL.Host == k.host && r.URL.Scheme == k.scheme {
		r.Header.Set("Authorization", "Bearer "+k.token)
	}
	return k.client.Do(r)
}

// hubDoer returns the client for the hub. It adds the token unless the connection would send it in
// the clear.
func (p *Puller) hubDoer() (fetch.Doer, error) {
	u, err := url.Parse(p.endpoint())
	if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" || u.User != nil {
		return nil, fmt.Errorf("HF_ENDPOINT is no address of a hub; want one such as %s", DefaultEndpoint)
	}
	if p.Token == "" || u.Scheme == "http" && !names.Local(u.Host) {
		return p.Client.HTTP, nil
	}
	return &keyed{p.Client.HTTP, u.Scheme, u.Host, p.Token}, nil
}

func (p *Puller) pullHub(ctx context.Context, n names.Name) error {
	doer, err := p.hubDoer()
	if err != nil {
		return err
	}
	commit, err := p.commit(ctx, doer, n)
	if err != nil {
		return err
	}
	listing, err := p.listing(ctx, doer, n, commit)
	if err != nil {
		return err
	}
	paths := make([]string, 0, len(listing))
	for path := range listing {
		paths = append(paths, path)
	}
	choice, err := names.Choose(paths, n.Quant)
	if err != nil {
		return err
	}
	files := make([]remote, 0, len(choice.Files))
	chosen := make([]store.File, 0, len(choice.Files))
	for _, path := range choice.Files {
		f, err := listing[path].file(path)
		if err != nil {
			return err
		}
		chosen = append(chosen, f)
		files = append(files, remote{f, p.endpoint() + "/" + n.RepoID() + "/resolve/" + commit + "/" + escapePath(path), doer})
	}
	pull, err := p.Store.PullHub(ctx, n, commit)
	if err != nil {
		return err
	}
	defer pull.Release()
	if err := p.download(ctx, pull, files); err != nil {
		return err
	}
	return pull.Finish(ctx, chosen)
}

func escapePath(path string) string {
	parts := strings.Split(path, "/")
	for i, part := range parts {
		parts[i] = url.PathEscape(part)
	}
	return strings.Join(parts, "/")
}

// commit returns the commit of a revision.
func (p *Puller) commit(ctx context.Context, doer fetch.Doer, n names.Name) (string, error) {
	revision := n.Revision
	if revision == "" {
		revision = names.DefaultRevision
	}
	data, _, err := p.Client.Read(ctx, doer, p.endpoint()+"/api/models/"+n.RepoID()+"/revision/"+url.PathEscape(revision), nil, maxListing)
	if err != nil {
		return "", err
	}
	var info struct{ SHA string }
	if err := json.Unmarshal(data, &info); err != nil || !names.IsCommit(info.SHA) {
		return "", fmt.Errorf("%s does not say which commit %s is; is it a hub? (HF_ENDPOINT)", p.endpoint(), revision)
	}
	if names.IsCommit(revision) && info.SHA != revision {
		return "", fmt.Errorf("%s answers with the commit %s where %s was asked for", p.endpoint(), info.SHA, revision)
	}
	return info.SHA, nil
}

// An entry is a file of a listing.
type entry struct {
	Type string
	OID  string
	Size int64
	Path string
	LFS  *struct {
		OID  string
		Size int64
	}
}

var hexForm = regexp.MustCompile(`^([0-9a-f]{40}|[0-9a-f]{64})$`)

// file returns an entry as a file to download. A file that the hub keeps outside git (LFS) has a
// SHA-256; others have git's id.
func (e entry) file(path string) (store.File, error) {
	f := store.File{Name: path, Size: e.Size}
	switch {
	case e.LFS != nil && hexForm.MatchString(e.LFS.OID) && len(e.LFS.OID) == 64:
		f.Digest, f.Size = fetch.SHA256(e.LFS.OID), e.LFS.Size
	case e.LFS == nil && hexForm.MatchString(e.OID) && len(e.OID) == 40:
		f.Digest = fetch.GitSHA1(e.OID)
	default:
		return f, fmt.Errorf("the hub lists %s without a digest that can be checked (SHA-256, or git's SHA-1)", path)
	}
	if f.Size < 0 || f.Size > maxFile {
		return f, fmt.Errorf("the hub lists %s with %d bytes", path, f.Size)
	}
	return f, nil
}

var nextPage = regexp.MustCompile(`<([^<>]+)>\s*;\s*rel="next"`)

// listing returns the files of a commit by path.
func (p *Puller) listing(ctx context.Context, doer fetch.Doer, n names.Name, commit string) (map[string]entry, error) {
	all := map[string]entry{}
	address := p.endpoint() + "/api/models/" + n.RepoID() + "/tree/" + commit + "?recursive=true"
	left := maxListed
	for range maxPages {
		data, header, err := p.Client.Read(ctx, doer, address, nil, maxListing)
		if err != nil {
			return nil, err
		}
		if err := readPage(data, &left, all); err != nil {
			return nil, fmt.Errorf("the listing of %s: %w", p.endpoint(), err)
		}
		m := nextPage.FindStringSubmatch(header.Get("Link"))
		if m == nil {
			return all, nil
		}
		if address, err = p.sameHub(m[1]); err != nil {
			return nil, err
		}
	}
	return nil, fmt.Errorf("the listing of %s has more than the %d pages that are read", p.endpoint(), maxPages)
}

// readPage adds the files of a page to files. It subtracts the page's entries from left, and returns
// an error if that becomes negative.
func readPage(data []byte, left *int, files map[string]entry) error {
	page := json.NewDecoder(bytes.NewReader(data))
	if t, err := page.Token(); err != nil || t != json.Delim('[') {
		return errors.New("it is no list in JSON; is it a hub? (HF_ENDPOINT)")
	}
	for page.More() {
		var e entry
		if err := page.Decode(&e); err != nil {
			return err
		}
		if *left--; *left < 0 {
			return fmt.Errorf("it has more than the %d files and folders that are read", maxListed)
		}
		if e.Type != "file" {
			continue
		}
		if len(e.Path) > maxPath || len(e.OID) > maxDigest || e.LFS != nil && len(e.LFS.OID) > maxDigest {
			return fmt.Errorf("it has a file %.80q, whose path or digest is too long", e.Path)
		}
		files[e.Path] = e
	}
	_, err := page.Token()
	return err
}

// sameHub returns the address of a next page, with the endpoint's host.
func (p *Puller) sameHub(next string) (string, error) {
	base, err := url.Parse(p.endpoint())
	if err != nil {
		return "", err
	}
	u, err := base.Parse(next)
	if err != nil {
		return "", errors.New("the hub's listing goes on at something that is no address")
	}
	// A mirror may pass on addresses of the hub that it mirrors.
	u.Scheme, u.Host, u.User = base.Scheme, base.Host, nil
	return u.String(), nil
}

// explainStatus adds to a server's refusal what the user can do.
func (p *Puller) explainStatus(n names.Name, e *fetch.StatusError, err error) error {
	if n.Kind != names.Hub {
		return explainRegistry(n, e, err)
	}
	page := p.endpoint() + "/" + n.RepoID()
	_, hub, _ := strings.Cut(p.endpoint(), "://")
	switch {
	case !strings.HasPrefix(e.Where, hub+"/"): // the host of the files knows nothing of accounts
	case e.Code == "GatedRepo" && p.Token == "", e.Status == http.StatusForbidden && p.Token == "":
		return fmt.Errorf("%s is gated: accept its terms at %s and set HF_TOKEN to a token of your account (%w)", n, page, err)
	case e.Code == "GatedRepo", e.Status == http.StatusForbidden:
		return fmt.Errorf("%s is gated, and your token's account may not have it: ask for access at %s (%w)", n, page, err)
	case e.Code == "RevisionNotFound":
		return fmt.Errorf("%s: the repository has no such revision; %s lists branches, tags and commits (%w)", n, page, err)
	case e.Code == "EntryNotFound":
		return fmt.Errorf("%s: the repository has no such file (%w)", n, err)
	case e.Status == http.StatusUnauthorized && p.Token == "", e.Status == http.StatusNotFound:
		return fmt.Errorf("%s: the hub has no such repository, or it is private: check the name, or set HF_TOKEN to a token that may read it (%w)", n, err)
	case e.Status == http.StatusUnauthorized:
		return fmt.Errorf("%s: the hub has no such repository, or does not take your token: check the name, and HF_TOKEN (%w)", n, err)
	case e.Status == http.StatusTooManyRequests:
		return fmt.Errorf("%s: the hub takes no more requests for now: wait, or set HF_TOKEN, with which more are allowed (%w)", n, err)
	}
	return fmt.Errorf("%s: %w; try again later", n, err)
}
