// Package pull brings models to this machine. It asks a hub or a registry which files a name
// denotes, downloads the missing ones, and has the store name them when all are complete.
//
// Servers are not trusted: sizes, names, digests and redirects may be hostile. Only bytes with the
// digest of the listing, or of the name itself, are accepted.
package pull

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"syscall"

	"golang.org/x/sync/errgroup"

	"github.com/realizar/realizar/internal/fetch"
	"github.com/realizar/realizar/internal/names"
	"github.com/realizar/realizar/internal/store"
)

// A Watcher is told the progress of a pull. Its methods may be called by many goroutines.
type Watcher interface {
	// Plan is called once, when the files of the model are known.
	Plan(files []store.File)
	// Came is called with n bytes of a file that have arrived or were there before. file is an
	// index of Plan's files. n is negative if bytes turned out to be wrong.
	Came(file int, n int64)
	// Waits is called when another process is downloading the file.
	Waits(file int)
}

// A Puller pulls models. Only Store and Client are required.
type Puller struct {
	Store   *store.Store
	Client  *fetch.Client
	Watcher Watcher

	Endpoint string // of the hub; empty means [DefaultEndpoint]
	Token    string // for the hub
	Offline  string // why nothing may be contacted; empty if it may
}

// Pull brings the model with a name to this machine and returns it.
func (p *Puller) Pull(ctx context.Context, n names.Name) (*store.Model, error) {
	if p.Offline != "" {
		return nil, fmt.Errorf("%s is not pulled: %s", n, p.Offline)
	}
	var err error
	switch n.Kind {
	case names.Hub:
		err = p.pullHub(ctx, n)
	case names.Ollama, names.Registry:
		err = p.pullRegistry(ctx, n)
	case names.URL:
		err = p.pullURL(ctx, n)
	default:
		return nil, fmt.Errorf("%s is a path: there is nothing to pull; want hf:org/repo, ollama:model, oci://registry/name:tag or https://host/file.gguf with its digest", n)
	}
	if err != nil {
		return nil, p.explain(n, err)
	}
	return p.Store.Find(n)
}

// A place is a folder of the store that files are downloaded to.
type place interface {
	Blob(fetch.Digest) string
	Lock(context.Context, fetch.Digest, func()) (*store.Lock, error)
	CheckSpace(int64) error
}

// A remote is a file and its source.
type remote struct {
	store.File
	url  string
	doer fetch.Doer
}

// together is the number of files that are downloaded at the same time.
const together = 4

// download downloads files to their places.
func (p *Puller) download(ctx context.Context, to place, files []remote) error {
	files = unique(files)
	listed := make([]store.File, len(files))
	var missing int64
	for i, f := range files {
		listed[i] = f.File
		missing += fetch.Missing(to.Blob(f.Digest), f.Size)
	}
	if err := to.CheckSpace(missing); err != nil {
		return err
	}
	if p.Watcher != nil {
		p.Watcher.Plan(listed)
	}
	work, ctx := errgroup.WithContext(ctx)
	work.SetLimit(together)
	for i, f := range files {
		work.Go(func() error {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			return p.downloadOne(ctx, to, i, f)
		})
	}
	return work.Wait()
}

func (p *Puller) downloadOne(ctx context.Context, to place, i int, f remote) error {
	came, waits := func(int64) {}, func() {}
	if p.Watcher != nil {
		came = func(n int64) { p.Watcher.Came(i, n) }
		waits = func() { p.Watcher.Waits(i) }
	}
	lock, err := to.Lock(ctx, f.Digest, waits)
	if err != nil {
		return err
	}
	defer lock.Release()
	at := to.Blob(f.Digest)
	if fetch.Whole(at, f.Size) {
		came(f.Size)
		return nil
	}
	return p.Client.Download(ctx, fetch.File{URL: f.url, Doer: f.doer, Size: f.Size, Digest: f.Digest}, at, came)
}

// unique returns files with one file for each digest.
func unique(files []remote) []remote {
	seen := map[fetch.Digest]bool{}
	var all []remote
	for _, f := range files {
		if !seen[f.Digest] {
			seen[f.Digest] = true
			all = append(all, f)
		}
	}
	return all
}

// explain says in one sentence what is wrong and what the user can do.
func (p *Puller) explain(n names.Name, err error) error {
	var status *fetch.StatusError
	var path *fs.PathError
	var certificate *tls.CertificateVerificationError
	switch {
	case errors.Is(err, context.Canceled):
		return err
	case errors.Is(err, fetch.ErrUnreachable) && n.Kind == names.Hub:
		return fmt.Errorf("%s: %w; check the network, and set HTTPS_PROXY if there is a proxy, or HF_ENDPOINT for a mirror of the hub", n, err)
	case errors.Is(err, fetch.ErrUnreachable):
		return fmt.Errorf("%s: %w; check the name and the network, and set HTTPS_PROXY if there is a proxy", n, err)
	case errors.As(err, &certificate):
		return fmt.Errorf("%s: %w; check the clock, and if a proxy of yours stands between, set SSL_CERT_FILE to a file with its authority's certificate", n, err)
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return fmt.Errorf("%s: the disk is full: %w; make room (realizar gc removes what no model has) and pull again: what has come is kept", n, err)
	case errors.As(err, &path) && (errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS) || path.Op == "mkdir"):
		return fmt.Errorf("%s: %s cannot be written to (%w); set %s to another folder", n, path.Path, path.Err, variableOf(n))
	case errors.As(err, &status):
		return p.explainStatus(n, status, err)
	}
	return fmt.Errorf("%s: %w", n, err)
}

// variableOf returns the environment variable that selects the folder for a model.
func variableOf(n names.Name) string {
	if n.Kind == names.Hub {
		return "HF_HUB_CACHE"
	}
	return "REALIZAR_HOME"
}
