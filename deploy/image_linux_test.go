package deploy_test

import (
	"archive/tar"
	"bufio"
	"bytes"
	"crypto/sha256"
	"debug/buildinfo"
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
	"regexp"
	"strings"
	"syscall"
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
	revision, err := exec.CommandContext(t.Context(), "git", "rev-parse", "HEAD").Output()
	if err == nil {
		cmd.Env = append(cmd.Env, "GOFLAGS="+os.Getenv("GOFLAGS")+" -buildvcs=true")
	}
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
	root := extract(t, image)
	program := filepath.Join(root, config.Config.Entrypoint[0])
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
	t.Run("provenance", func(t *testing.T) { saysWhatItIsBuiltFrom(t, program, strings.TrimSpace(string(revision))) })
	t.Run("serve", func(t *testing.T) { serveConfined(t, root, config.Config.Entrypoint[0]) })
}

// saysWhatItIsBuiltFrom checks that a program carries the checksums of its modules, its build tags, and
// the revision, which is empty outside of a repository.
func saysWhatItIsBuiltFrom(t *testing.T, program, revision string) {
	info, err := buildinfo.ReadFile(program)
	if err != nil {
		t.Fatal(err)
	}
	if info.Main.Path != "github.com/realizar/realizar" || len(info.Deps) == 0 {
		t.Errorf("the program is of %s with %d modules", info.Main.Path, len(info.Deps))
	}
	for _, m := range info.Deps {
		if !strings.HasPrefix(m.Sum, "h1:") {
			t.Errorf("module %s %s has the checksum %q", m.Path, m.Version, m.Sum)
		}
	}
	settings := map[string]string{}
	for _, s := range info.Settings {
		settings[s.Key] = s.Value
	}
	if !strings.Contains(settings["-tags"], "nocuda") {
		t.Errorf("the program has the tags %q, want nocuda", settings["-tags"])
	}
	if settings["vcs.revision"] != revision {
		t.Errorf("the program is of revision %q, want %q", settings["vcs.revision"], revision)
	}
}

// serveConfined runs a server where root is all that it sees, as a user who may write nothing there
// and has no capabilities. It must answer, and exit with 0 when it is told to stop.
func serveConfined(t *testing.T, root, program string) {
	if os.Getuid() != 0 {
		t.Skip("only root may change the root of a process")
	}
	cmd := exec.CommandContext(t.Context(), program, "serve", "demo", "--device", "cpu", "--port", "0")
	cmd.Dir, cmd.Env = "/", []string{}
	cmd.SysProcAttr = &syscall.SysProcAttr{Chroot: root, Credential: &syscall.Credential{Uid: 65532, Gid: 65532}}
	var log strings.Builder
	cmd.Stderr = &log
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if cmd.ProcessState == nil {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		}
	}()
	line, _ := bufio.NewReader(stdout).ReadString('\n')
	url := regexp.MustCompile(`http://\S+`).FindString(line)
	if url == "" {
		_ = cmd.Wait()
		t.Fatalf("the server says %q; its log:\n%s", line, log.String())
	}
	r, err := http.Post(url+"/v1/chat/completions", "application/json", strings.NewReader(`{"messages": [{"role": "user", "content": "What is 3 + 4?"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	answer, err := io.ReadAll(r.Body)
	_ = r.Body.Close()
	if err != nil || r.StatusCode != http.StatusOK || !strings.Contains(string(answer), "7") {
		t.Errorf("the server answers %s %s (%v)", r.Status, answer, err)
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("the server ends with %v; its log:\n%s", err, log.String())
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

// extract writes the files of the image to a temporary folder, where only root may write.
func extract(t *testing.T, image v1.Image) string {
	t.Helper()
	root := t.TempDir()
	files := mutate.Extract(image)
	defer files.Close()
	for r := tar.NewReader(files); ; {
		head, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if head.Typeflag != tar.TypeReg {
			continue
		}
		to := filepath.Join(root, filepath.Clean("/"+head.Name))
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			t.Fatal(err)
		}
		f, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY, head.FileInfo().Mode().Perm())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.CopyN(f, r, head.Size); err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
	return root
}
