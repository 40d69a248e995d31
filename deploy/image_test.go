package deploy_test

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"

	"github.com/realizar/realizar/internal/longtest"
)

// The image without CUDA has one static program, which runs on a base without any file, and a user
// without rights. The base of deploy/image/static is replaced by an empty one, since tests do not
// depend on other registries.
func TestStaticImage(t *testing.T) {
	if !longtest.Wanted() {
		t.Skip("it builds an image with ko: set REALIZAR_LONG=1")
	}
	h := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	defer h.Close()
	base, err := mutate.ConfigFile(empty.Image, &v1.ConfigFile{OS: "linux", Architecture: "amd64", Config: v1.Config{User: "65532"}})
	if err != nil {
		t.Fatal(err)
	}
	upload(t, h.URL+"/v2/empty", base)
	folder, err := os.MkdirTemp("", "image") // ko takes the path for a repository's name: no capitals
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(folder) //nolint:errcheck // it is in the system's temporary folder
	cmd := exec.CommandContext(t.Context(), "ko", "build", "--push=false", "--bare", "--sbom=spdx", "--sbom-dir="+folder, "--oci-layout-path="+folder+"/image", "--platform=linux/amd64", "./cmd/realizar")
	cmd.Dir = ".."
	cmd.Env = append(os.Environ(), "KO_CONFIG_PATH=deploy/image/static", "KO_DEFAULTBASEIMAGE="+strings.TrimPrefix(h.URL, "http://")+"/empty:latest", "KO_DOCKER_REPO=realizar.example")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("ko build: %v\n%s", err, out)
	}
	if sboms, err := filepath.Glob(folder + "/*.spdx.json"); err != nil || len(sboms) == 0 {
		t.Errorf("the image has no SBOM (%v)", err)
	}
	image := only(t, folder+"/image")
	config, err := image.ConfigFile()
	if err != nil || config.Config.User != "65532" || len(config.Config.Entrypoint) != 1 {
		t.Fatalf("the image runs %+v (%v), want one program as user 65532", config, err)
	}
	program := extract(t, image, config.Config.Entrypoint[0])
	file, err := elf.Open(program)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for _, p := range file.Progs {
		if p.Type == elf.PT_INTERP {
			t.Error("the program needs a loader, which the base does not have")
		}
	}
	out, err := exec.CommandContext(t.Context(), program, "run", "demo", "What is 3 + 4?").CombinedOutput()
	if err != nil || !strings.Contains(string(out), "7") {
		t.Errorf("the program of the image answers %q (%v)", out, err)
	}
}

// upload writes an image without layers to a repository of a registry, under the tag latest.
func upload(t *testing.T, repository string, image v1.Image) {
	t.Helper()
	config, err := image.RawConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := image.RawManifest()
	if err != nil {
		t.Fatal(err)
	}
	send := func(method, url, kind string, body []byte) {
		r, err := http.NewRequestWithContext(t.Context(), method, url, bytes.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", kind)
		answer, err := http.DefaultClient.Do(r)
		if err != nil || answer.StatusCode != http.StatusCreated {
			t.Fatal(url, answer, err)
		}
		_ = answer.Body.Close()
	}
	send(http.MethodPost, fmt.Sprintf("%s/blobs/uploads/?digest=sha256:%x", repository, sha256.Sum256(config)), "application/octet-stream", config)
	send(http.MethodPut, repository+"/manifests/latest", "application/vnd.docker.distribution.manifest.v2+json", manifest)
}

// only returns the only image of an OCI layout.
func only(t *testing.T, path string) v1.Image {
	t.Helper()
	index, err := layout.ImageIndexFromPath(path)
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := index.IndexManifest()
	if err != nil || len(manifest.Manifests) != 1 {
		t.Fatal(manifest, err)
	}
	image, err := index.Image(manifest.Manifests[0].Digest)
	if err != nil {
		t.Fatal(err)
	}
	return image
}

// extract writes a file of the image to a temporary folder and returns its path.
func extract(t *testing.T, image v1.Image, path string) string {
	t.Helper()
	files := mutate.Extract(image)
	defer files.Close()
	for r := tar.NewReader(files); ; {
		head, err := r.Next()
		if errors.Is(err, io.EOF) {
			t.Fatalf("the image has no %s", path)
		}
		if err != nil {
			t.Fatal(err)
		}
		if filepath.Clean("/"+head.Name) != path || head.Typeflag != tar.TypeReg {
			continue
		}
		to := filepath.Join(t.TempDir(), "program")
		f, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY, 0o700)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.CopyN(f, r, head.Size); err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
		return to
	}
}
