package pull

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"oras.land/oras-go/v2/registry/remote/auth"
	"oras.land/oras-go/v2/registry/remote/credentials"
	"oras.land/oras-go/v2/registry/remote/errcode"

	"github.com/realizar/realizar/internal/fetch"
	"github.com/realizar/realizar/internal/names"
	"github.com/realizar/realizar/internal/store"
)

// manifestTypes are the types of manifests that are read.
const manifestTypes = store.MediaManifest + ", " + store.MediaDockerManifest + ", " + store.MediaIndex + ", " + store.MediaDockerIndex

// maxSmall is the largest size, in bytes, of a layer that is downloaded although realizar does not
// read it. With such layers the model can be pushed as it came.
const maxSmall = 16 << 20

// RegistryHost returns the address of a registry. Docker's has an address other than its name.
func RegistryHost(host string) string {
	if host == "docker.io" || host == "index.docker.io" {
		return "registry-1.docker.io"
	}
	return host
}

// RegistryClient returns a client for registries that uses the credentials of docker login or of
// its credential helpers. If they are missing or refused, the error is a [fetch.StatusError].
func RegistryClient(client *http.Client) fetch.Doer {
	guarded := *client
	guarded.Transport = noPlain{client.Transport}
	c := &auth.Client{Client: &guarded, Cache: auth.NewCache(), Header: http.Header{"User-Agent": {"realizar"}}}
	if keys, err := credentials.NewStoreFromDocker(credentials.StoreOptions{}); err == nil {
		c.Credential = credentials.Credential(keys)
	}
	return registryDoer{c}
}

type registryDoer struct{ c *auth.Client }

// Do sends a request.
func (d registryDoer) Do(r *http.Request) (*http.Response, error) {
	response, err := d.c.Do(r)
	var refused *errcode.ErrorResponse
	switch {
	case errors.As(err, &refused) && refused.URL != nil:
		return nil, &fetch.StatusError{Status: refused.StatusCode, Where: refused.URL.Host + refused.URL.EscapedPath()}
	case errors.Is(err, auth.ErrBasicCredentialNotFound):
		return nil, &fetch.StatusError{Status: http.StatusUnauthorized, Where: r.URL.Host + r.URL.EscapedPath()}
	}
	return response, err
}

// A noPlain sends nothing to another machine without TLS. A registry names the server of its
// tokens, which gets the user's password.
type noPlain struct{ http.RoundTripper }

// RoundTrip sends a request.
func (t noPlain) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Scheme != "https" && !names.Local(r.URL.Host) {
		return nil, fmt.Errorf("the registry leads to %s://%s, which has no TLS", r.URL.Scheme, r.URL.Host)
	}
	return t.RoundTripper.RoundTrip(r)
}

func (p *Puller) pullRegistry(ctx context.Context, n names.Name) error {
	var doer fetch.Doer = p.Client.HTTP // Ollama's registry requires no credentials
	if n.Kind == names.Registry {
		doer = RegistryClient(p.Client.HTTP)
	}
	scheme := "https"
	if names.Local(n.Host) {
		scheme = "http"
	}
	base := scheme + "://" + RegistryHost(n.Host) + "/v2/" + n.Repository
	reference := n.Digest
	if reference == "" {
		reference = n.Tag
	}
	data, manifest, err := p.manifest(ctx, doer, base, reference)
	if err != nil {
		return err
	}
	if err := manifest.IsModel(); err != nil {
		return err
	}
	wanted, err := manifest.Wanted(maxSmall)
	if err != nil {
		return err
	}
	files := make([]remote, len(wanted))
	for i, f := range wanted {
		files[i] = remote{f, base + "/blobs/sha256:" + f.Digest.Hex(), doer}
	}
	return p.pullOwn(ctx, n, data, files)
}

// pullOwn downloads files and gives their manifest a name.
func (p *Puller) pullOwn(ctx context.Context, n names.Name, manifest []byte, files []remote) error {
	pull, err := p.Store.PullOwn(ctx)
	if err != nil {
		return err
	}
	defer pull.Release()
	if err := p.download(ctx, pull, files); err != nil {
		return err
	}
	return pull.Finish(ctx, n, manifest)
}

// manifest reads the manifest of a tag or a digest. Of a list of manifests it reads the first.
func (p *Puller) manifest(ctx context.Context, doer fetch.Doer, base, reference string) ([]byte, *store.Manifest, error) {
	for range 3 {
		data, header, err := p.Client.Read(ctx, doer, base+"/manifests/"+reference, http.Header{"Accept": {manifestTypes}}, store.MaxManifest)
		if err != nil {
			return nil, nil, err
		}
		want := reference
		if !strings.Contains(reference, ":") {
			want = header.Get("Docker-Content-Digest")
		}
		if strings.HasPrefix(want, "sha256:") {
			h := fetch.Digest(want).New(0)
			h.Write(data)
			if !fetch.Digest(want).Is(h) {
				return nil, nil, &fetch.DigestError{Where: strings.SplitN(base, "://", 2)[1] + "/manifests/" + reference, Want: want, Got: string(fetch.Digest(want).Of(h))}
			}
		}
		m, err := store.ParseManifest(data)
		if err != nil {
			return nil, nil, err
		}
		if len(m.Manifests) == 0 {
			return data, m, nil
		}
		reference = m.Manifests[0].Digest
	}
	return nil, nil, fmt.Errorf("%s/manifests: lists of lists of manifests", base)
}

// explainRegistry adds to the refusal of a registry or a web server what the user can do.
func explainRegistry(n names.Name, e *fetch.StatusError, err error) error {
	switch {
	case n.Kind == names.URL && e.Status == http.StatusNotFound:
		return fmt.Errorf("%s: the server has no such file; check the address (%w)", n, err)
	case n.Kind == names.URL:
		return fmt.Errorf("%s: %w", n, err)
	case e.Status == http.StatusNotFound:
		return fmt.Errorf("%s: the registry has no such model or tag; check the name (%w)", n, err)
	case e.Status == http.StatusUnauthorized, e.Status == http.StatusForbidden:
		return fmt.Errorf("%s: the registry has no such model, or it is private: check the name, or docker login %s (%w)", n, n.Host, err)
	}
	return fmt.Errorf("%s: %w; try again later", n, err)
}
