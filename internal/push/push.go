// Package push gives models of this machine to OCI registries, in the form of CNCF's
// ModelPack, which Docker's Model Runner reads too.
package push

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2"
	"oras.land/oras-go/v2/content"
	"oras.land/oras-go/v2/errdef"
	"oras.land/oras-go/v2/registry/remote"
	"oras.land/oras-go/v2/registry/remote/errcode"

	"github.com/realizar/realizar/internal/fetch"
	"github.com/realizar/realizar/internal/names"
	"github.com/realizar/realizar/internal/pull"
	"github.com/realizar/realizar/internal/store"
)

// An Artifact is what a registry gets.
type Artifact struct {
	Manifest []byte
	blobs    map[string]blob // by digest
}

// A blob is a file, or bytes.
type blob struct {
	path string
	data []byte
}

// Pack makes an artifact of a model. One that came from a registry is given on as it
// came. Files of others need digests ([store.WithDigests]).
func Pack(s *store.Store, m *store.Model) (*Artifact, error) {
	a := &Artifact{blobs: map[string]blob{}}
	if m.Place == store.OwnLayout {
		manifest, paths, err := s.Blobs(m)
		if err != nil {
			return nil, err
		}
		for digest, path := range paths {
			a.blobs[digest] = blob{path: path}
		}
		a.Manifest = manifest
		return a, nil
	}
	files := m.Weights()
	manifest, config, err := store.Pack(files)
	if err != nil {
		return nil, err
	}
	parsed, err := store.ParseManifest(manifest)
	if err != nil {
		return nil, err
	}
	for _, f := range files {
		a.blobs["sha256:"+f.Digest.Hex()] = blob{path: f.Path}
	}
	a.blobs[parsed.Config.Digest] = blob{data: config}
	a.Manifest = manifest
	return a, nil
}

// Model gives a model to a registry under a name with a tag, and returns the digest. hashed
// is told of bytes of a model that is packed for it, as they are read, and sent of n bytes that
// are sent of a file of size bytes.
func Model(ctx context.Context, client *http.Client, s *store.Store, m *store.Model, to names.Name, hashed func(int64), sent func(digest string, size, n int64)) (string, error) {
	if m.Place != store.OwnLayout {
		packed := *m
		packed.Files = m.Weights()
		if err := store.WithDigests(ctx, &packed, hashed); err != nil {
			return "", err
		}
		m = &packed
	}
	artifact, err := Pack(s, m)
	if err != nil {
		return "", err
	}
	return Push(ctx, client, artifact, to, sent)
}

// Push gives an artifact to a registry under a name with a tag. Progress is told of n bytes
// that were sent of a file of size bytes. What the registry has is not sent again. It returns the digest.
func Push(ctx context.Context, client *http.Client, a *Artifact, to names.Name, progress func(digest string, size, n int64)) (string, error) {
	if to.Kind != names.Registry || to.Tag == "" {
		return "", fmt.Errorf("%s: want a name with a tag: oci://registry/name:tag", to)
	}
	repository, err := remote.NewRepository(pull.RegistryHost(to.Host) + "/" + to.Repository)
	if err != nil {
		return "", fmt.Errorf("%s: %w", to, err)
	}
	repository.Client = pull.RegistryClient(client)
	repository.PlainHTTP = names.Local(to.Host)
	d, err := oras.Copy(ctx, &source{a, progress}, to.Tag, repository, to.Tag, oras.DefaultCopyOptions)
	if err != nil {
		return "", explain(to, err)
	}
	return d.Digest.String(), nil
}

// explain says what a registry's refusal means.
func explain(to names.Name, err error) error {
	var refused *errcode.ErrorResponse
	var key *fetch.StatusError
	status := 0
	switch {
	case errors.As(err, &key):
		status = key.Status
	case errors.As(err, &refused):
		status = refused.StatusCode
		for i := range refused.Errors { // what could steer a terminal is not shown
			refused.Errors[i].Message = fmt.Sprintf("%.200q", refused.Errors[i].Message)
			refused.Errors[i].Code, refused.Errors[i].Detail = fmt.Sprintf("%.40q", refused.Errors[i].Code), nil
		}
	}
	switch status {
	case http.StatusUnauthorized, http.StatusForbidden:
		return fmt.Errorf("%s: the registry does not let you write there: docker login %s, and check the name (%w)", to, to.Host, err)
	case http.StatusNotFound:
		return fmt.Errorf("%s: the registry has no such place; check the name (%w)", to, err)
	}
	return fmt.Errorf("%s: %w; check the name and the network, and push again: what has arrived is not sent twice", to, err)
}

// A source has one artifact.
type source struct {
	a        *Artifact
	progress func(digest string, size, n int64)
}

// Resolve is the artifact by whatever name.
func (s *source) Resolve(context.Context, string) (ocispec.Descriptor, error) {
	return s.descriptor()
}

func (s *source) descriptor() (ocispec.Descriptor, error) {
	var m struct{ MediaType string }
	if err := json.Unmarshal(s.a.Manifest, &m); err != nil {
		return ocispec.Descriptor{}, err
	}
	if m.MediaType == "" {
		m.MediaType = store.MediaManifest
	}
	return content.NewDescriptorFromBytes(m.MediaType, s.a.Manifest), nil
}

// Exists reports whether bytes are of the artifact.
func (s *source) Exists(_ context.Context, d ocispec.Descriptor) (bool, error) {
	_, ok := s.a.blobs[d.Digest.String()]
	return ok, nil
}

// Fetch reads bytes of the artifact.
func (s *source) Fetch(_ context.Context, d ocispec.Descriptor) (io.ReadCloser, error) {
	if own, err := s.descriptor(); err != nil || own.Digest == d.Digest {
		return io.NopCloser(bytes.NewReader(s.a.Manifest)), err
	}
	b, ok := s.a.blobs[d.Digest.String()]
	switch {
	case !ok:
		return nil, fmt.Errorf("%s: %w", d.Digest, errdef.ErrNotFound)
	case b.path == "":
		return io.NopCloser(bytes.NewReader(b.data)), nil
	}
	f, err := os.Open(b.path)
	if err != nil {
		return nil, err
	}
	return &sending{f, func(n int64) { s.progress(d.Digest.String(), d.Size, n) }}, nil
}

// A sending file tells how much of it has been read, which is why all of it is read by Read.
type sending struct {
	file     *os.File
	progress func(int64)
}

// Read reads on.
func (s *sending) Read(p []byte) (int, error) {
	n, err := s.file.Read(p)
	s.progress(int64(n))
	return n, err
}

// Close closes the file.
func (s *sending) Close() error { return s.file.Close() }
