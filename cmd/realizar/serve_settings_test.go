//go:build unix

package main_test

import (
	"crypto/tls"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/realizar/realizar/internal/modeltest"
)

// A printed is a setting in the output of serve --print-config --json.
type printed struct {
	Name   string
	Value  any
	Source string
	Place  string
}

// settings returns the settings of serve with env added to the environment.
func settings(t *testing.T, env []string, args ...string) map[string]printed {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), binary, append([]string{"serve", "--print-config", "--json"}, args...)...)
	cmd.Env = append(os.Environ(), env...)
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%q %q: %v", env, args, err)
	}
	all := map[string]printed{}
	for line := range strings.Lines(string(out)) {
		var one printed
		if err := json.Unmarshal([]byte(line), &one); err != nil {
			t.Fatal(err)
		}
		all[one.Name] = one
	}
	return all
}

// TestServeSettings checks that flags override the environment, the environment the file, and the
// file the defaults.
func TestServeSettings(t *testing.T) {
	t.Parallel()
	file := writeFile(t, "serve.yaml", "max-queue: 1\nlenient: true\ncors: [https://a.example, https://b.example]\nmodel: file.gguf\nmax-body: 1MiB\nollama-port: 0\nwrite-timeout: 1m\ngpu-memory: 50%\nlog: json\n")
	place := func(line int) string { return fmt.Sprintf("%s:%d", file, line) }
	config, queue := []string{"--config", file}, "REALIZAR_MAX_QUEUE=2"
	for _, test := range []struct {
		env, args []string
		want      printed
	}{
		{nil, nil, printed{"max-queue", 1024., "default", ""}},
		{nil, nil, printed{"cors", nil, "default", ""}},
		{nil, nil, printed{"ollama-port", nil, "default", ""}},
		{nil, config, printed{"max-queue", 1., "file", place(1)}},
		{[]string{"REALIZAR_CONFIG=" + file}, nil, printed{"max-queue", 1., "file", place(1)}},
		{[]string{"REALIZAR_CONFIG=/nothing"}, config, printed{"max-queue", 1., "file", place(1)}},
		{[]string{queue}, nil, printed{"max-queue", 2., "environment", "REALIZAR_MAX_QUEUE"}},
		{[]string{queue}, config, printed{"max-queue", 2., "environment", "REALIZAR_MAX_QUEUE"}},
		{[]string{"REALIZAR_MAX_QUEUE="}, config, printed{"max-queue", 1., "file", place(1)}},
		{[]string{queue}, append(config, "--max-queue", "3"), printed{"max-queue", 3., "flag", "--max-queue"}},
		{nil, append(config, "--max-queue", "1024"), printed{"max-queue", 1024., "flag", "--max-queue"}},
		{nil, config, printed{"lenient", true, "file", place(2)}},
		{nil, append(config, "--lenient=false"), printed{"lenient", false, "flag", "--lenient"}},
		{[]string{"REALIZAR_LENIENT=no"}, config, printed{"lenient", false, "environment", "REALIZAR_LENIENT"}},
		{nil, config, printed{"cors", []any{"https://a.example", "https://b.example"}, "file", place(3)}},
		{nil, append(config, "--cors", "*"), printed{"cors", []any{"*"}, "flag", "--cors"}},
		{[]string{"REALIZAR_CORS=*, https://c.example"}, config, printed{"cors", []any{"*", "https://c.example"}, "environment", "REALIZAR_CORS"}},
		{nil, config, printed{"model", []any{"file.gguf"}, "file", place(4)}},
		{[]string{"REALIZAR_MODEL=env.gguf"}, config, printed{"model", []any{"env.gguf"}, "environment", "REALIZAR_MODEL"}},
		{nil, append(config, "flag.gguf"), printed{"model", []any{"flag.gguf"}, "flag", "MODEL"}},
		{[]string{"REALIZAR_MODEL=a.gguf, b.gguf"}, config, printed{"model", []any{"a.gguf", "b.gguf"}, "environment", "REALIZAR_MODEL"}},
		{nil, config, printed{"max-body", "1MiB", "file", place(5)}},
		{nil, config, printed{"ollama-port", 0., "file", place(6)}},
		{nil, config, printed{"write-timeout", "1m0s", "file", place(7)}},
		{nil, config, printed{"gpu-memory", "50%", "file", place(8)}},
		{nil, config, printed{"log", "json", "file", place(9)}},
		// Secrets are hidden.
		{[]string{"REALIZAR_OTLP_ENDPOINT=https://user:secret@collector:4318/v1?key=secret"}, nil,
			printed{"otlp-endpoint", "https://xxxxx@collector:4318/v1?xxxxx", "environment", "REALIZAR_OTLP_ENDPOINT"}},
		{[]string{"REALIZAR_MODEL=https://user:%zz@host/m.gguf"}, nil, printed{"model", []any{"xxxxx"}, "environment", "REALIZAR_MODEL"}},
	} {
		got := settings(t, test.env, test.args...)[test.want.Name]
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%q %q (-want +got):\n%s", test.env, test.args, diff)
		}
	}
}

// TestServePrintConfig checks that the output of --print-config is a file with the same settings.
func TestServePrintConfig(t *testing.T) {
	args := []string{
		"m: \"x\".gguf", "--cors", "*", "--cors", "https://a.example", "--served-model-name", "a, b", "--served-model-name", "Null", "--max-body", "1536KiB",
		"--gpu-memory", "0.25", "--memory", "1000", "--request-timeout", "90s", "--no-ui", "--ollama-port", "0", "--device", "cpu", "--api-key-file", "schlüssel\n.txt", "--threads", "2",
	}
	want := settings(t, nil, args...)
	text := output(t, "", append([]string{"serve", "--print-config"}, args...)...)
	got := settings(t, nil, "--config", writeFile(t, "serve.yaml", text))
	for _, name := range slices.Sorted(maps.Keys(want)) {
		if diff := cmp.Diff(want[name].Value, got[name].Value); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if source := got[name].Source; (source == "file") != (want[name].Value != nil) {
			t.Errorf("%s, which was %v, is from the %s", name, want[name].Value, source)
		}
	}
	if !strings.Contains(text, "port:                         8080 ") || !strings.Contains(text, "# --max-body\n") || !strings.Contains(text, "# default\n") {
		t.Errorf("it writes\n%s", text)
	}
}

// TestServeSettingErrors checks that an invalid setting is an error that says where it is.
func TestServeSettingErrors(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"\nmax-queu: 1":                "serve.yaml:2: \"max-queu\" is not a setting; the nearest are max-queue, ",
		"api_keys: secret":             "serve.yaml:1: \"api_keys\" is not a setting; the nearest are tls-key, api-key-file or ",
		"--port: 1":                    "the nearest are port, ",
		"config: serve.yaml":           "\"config\" is not a setting",
		"print-config: true":           "\"print-config\" is not a setting",
		"\x1b[2J: 1":                   "serve.yaml:1: the character U+001B is not text",
		"\"\\e[2J\": 1":                "serve.yaml:1: \"\\x1b[2J\" is not a setting",
		"port: http":                   "serve.yaml:1: port: expected a valid 64 bit int but got \"http\"\n",
		"port: 70000":                  "serve.yaml:1: port=70000: want 1 to 65535, or 0 for a free one\n",
		"port: [1, 2]":                 "serve.yaml:1: port: want one value, not a list\n",
		"port:":                        "serve.yaml:1: \"port\" has no value",
		"log: loud":                    "serve.yaml:1: log: \"loud\" is not one of text, json, none\n",
		"max-body: big":                "serve.yaml:1: max-body: \"big\" is not a size: want a number of bytes",
		"lenient: perhaps":             "serve.yaml:1: lenient: bool value must be true",
		"cors:\n- x":                   "serve.yaml:1: cors=x: want *, or an origin such as https://example.org\n",
		"threads: -1":                  "serve.yaml:1: threads=-1: want 1 or more",
		"device: abacus":               "serve.yaml:1: device: device \"abacus\"",
		"served-model-name: ''":        "serve.yaml:1: served-model-name: the name is empty\n",
		"tls-cert: x":                  "--tls-cert and --tls-key go together",
		"allow-registry: x":            "--allow-registry needs --manage-models",
		"port: 1\nport: 2":             "serve.yaml:2: \"port\" appears twice, first in line 1",
		"port 1":                       "serve.yaml:1: want a key with its value in each line",
		"a: {":                         "serve.yaml:1: not valid YAML",
		"#" + strings.Repeat("x", 1e5): "serve.yaml is too large; want 65536 bytes at most",
	} {
		fails(t, realizarRun(t, "serve", "--config", writeFile(t, "serve.yaml", text)), 2, want)
	}
	// A value in the file is checked even if a flag overrides it.
	fails(t, realizarRun(t, "serve", "--config", writeFile(t, "serve.yaml", "port: http"), "--port", "0"), 2, "serve.yaml:1: port: expected")
	fails(t, realizarRun(t, "serve", "--config", "/nothing"), 2, "--config: stat /nothing: no such file")
	fails(t, realizarRun(t, "serve", "--config", t.TempDir()), 2, "is not a regular file")
	fails(t, realizarRun(t, "serve", "--json"), 2, "--json needs --print-config")
	for variable, want := range map[string]string{
		"REALIZAR_CONFIG=/nothing":              "REALIZAR_CONFIG: stat /nothing: no such file",
		"REALIZAR_MAX_QUEUE=-1":                 "REALIZAR_MAX_QUEUE=-1: want 0 or more\n",
		"REALIZAR_MAX_QUEUE=many":               "REALIZAR_MAX_QUEUE: expected a valid 64 bit int but got \"many\"\n",
		"REALIZAR_CORS=https://a.example,x":     "REALIZAR_CORS=x: want *",
		"REALIZAR_PORT=tcp://10.0.0.1:80":       "Kubernetes sets it where a service has that name: set enableServiceLinks: false",
		"REALIZAR_KV_CACHE=q9":                  "REALIZAR_KV_CACHE: \"q9\" is not one of auto, f16, q8, f8, f32\n",
		"REALIZAR_SERVED_MODEL_NAME=a, ,b":      "REALIZAR_SERVED_MODEL_NAME: the name is empty\n",
		"REALIZAR_REQUEST_TIMEOUT=5":            "REALIZAR_REQUEST_TIMEOUT: expected duration but got \"5\"",
		"REALIZAR_CHECK_REFERENCE=-1":           "REALIZAR_CHECK_REFERENCE=-1: want 1 or more steps",
		"REALIZAR_CONFIG=" + os.DevNull:         "REALIZAR_CONFIG: " + os.DevNull + " is not a regular file",
		"REALIZAR_MAX_CONNECTIONS=-5":           "REALIZAR_MAX_CONNECTIONS=-5: want 1 or more",
		"REALIZAR_OLLAMA_PORT=tcp://10.0.0.1:1": "REALIZAR_OLLAMA_PORT: expected a valid 64 bit int",
	} {
		u := newUser(t, "")
		u.env = append(u.env, variable)
		fails(t, u.run("serve", "--port", "0"), 2, want)
	}
}

// limit returns how many requests the server runs and queues at a time.
func (s *served) limit() int {
	s.t.Helper()
	_, body := s.get("/ready")
	var ready struct{ Limit int }
	if err := json.Unmarshal([]byte(body), &ready); err != nil {
		s.t.Fatal(err)
	}
	return ready.Limit
}

// TestServeFileChanges checks that the file is read again however it is replaced, and on SIGHUP.
func TestServeFileChanges(t *testing.T) {
	t.Parallel()
	model := modeltest.Llama(t)
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	write := func(path, text string) { t.Helper(); must(os.WriteFile(path, []byte(text), 0o600)) }
	link := func(to, path string) { // Kubernetes replaces links this way
		t.Helper()
		must(os.Symlink(to, path+".new"))
		must(os.Rename(path+".new", path))
	}
	for name, replace := range map[string]func(s *served, path, text string){
		"in place": func(_ *served, path, text string) { write(path, text) },
		"renamed":  func(_ *served, path, text string) { write(path+"~", text); must(os.Rename(path+"~", path)) },
		"linked": func(_ *served, path, text string) {
			folder := t.TempDir()
			write(filepath.Join(folder, "serve.yaml"), text)
			link(folder, filepath.Join(filepath.Dir(path), "..data"))
		},
		"SIGHUP": func(s *served, path, text string) { write(path, text); s.signal(syscall.SIGHUP) },
	} {
		t.Run(name, func(t *testing.T) {
			first, folder := t.TempDir(), t.TempDir()
			path := filepath.Join(folder, "serve.yaml")
			write(filepath.Join(first, "serve.yaml"), "max-queue: 4\nparallel: 2\n")
			if name == "linked" {
				link(first, filepath.Join(folder, "..data"))
				link(filepath.Join("..data", "serve.yaml"), path)
			} else {
				path = filepath.Join(first, "serve.yaml")
			}
			s := serve(t, model, "--config", path)
			if got := s.limit(); got != 6 {
				t.Errorf("at first there are %d places, want 6", got)
			}
			replace(s, path, "max-queue: 7\nparallel: 3\n")
			s.log.wait("settings were read again")
			if got := s.limit(); got != 9 {
				t.Errorf("there are %d places, want 9", got)
			}
			log := s.log.String()
			for _, want := range []string{
				`level=INFO msg="a setting was changed" setting=max-queue old=4 new=7 from=` + path + `:1`,
				`level=WARN msg="a setting cannot change while the server runs: restart it" setting=parallel old=2 new=3 from=` + path + `:2`,
			} {
				if !strings.Contains(log, want) {
					t.Errorf("the log does not say %s:\n%s", want, log)
				}
			}
			s.signal(syscall.SIGTERM)
			if code := s.exit(); code != 0 {
				t.Errorf("exit code %d: %s", code, s.log)
			}
		})
	}
}

// TestServeReload checks that a file with an error changes nothing, and that flags override the
// file.
func TestServeReload(t *testing.T) {
	first, second := writeFile(t, "first", "first-key\n"), writeFile(t, "second", "second-key\n")
	cert, certKey, _ := writeCertificate(t, 1)
	otherCert, otherKey, _ := writeCertificate(t, 2)
	file := writeFile(t, "serve.yaml", "")
	write := func(text string, format ...any) {
		t.Helper()
		if err := os.WriteFile(file, fmt.Appendf(nil, text, format...), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	common := "write-timeout: 1m\nserved-model-name: m\n"
	write("%sapi-key-file: %s\ntls-cert: %s\ntls-key: %s\nmax-body: 1KiB\n", common, first, cert, certKey)
	s := serve(t, modeltest.Llama(t), "--config", file, "--max-queue", "9", "--parallel", "1")
	var serial int64
	s.client.Transport = &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{
		InsecureSkipVerify: true, //nolint:gosec // the test looks at the certificate itself
		VerifyConnection: func(c tls.ConnectionState) error {
			serial = c.PeerCertificates[0].SerialNumber.Int64()
			return nil
		},
	}}
	check := func(what string, wantSerial int64, statuses map[string]int, longBody int) {
		t.Helper()
		for key, want := range statuses {
			if got := s.status("/v1/models", "Authorization", "Bearer "+key); got != want || serial != wantSerial {
				t.Errorf("%s: %s has status %d, certificate %d, want %d, %d", what, key, got, serial, want, wantSerial)
			}
		}
		resp, err := s.post("/tokenize", `{"prompt":"`+strings.Repeat("x", 2000)+`"}`, "Authorization", "Bearer first-key", "X-Api-Key", "second-key")
		if err != nil {
			t.Fatal(err)
		}
		if resp.Body.Close(); resp.StatusCode != longBody {
			t.Errorf("%s: a long request has status %d, want %d", what, resp.StatusCode, longBody)
		}
		if got := s.limit(); got != 10 {
			t.Errorf("%s: there are %d places, want 10", what, got)
		}
	}
	firstKey := map[string]int{"first-key": 200, "second-key": 401}
	check("at first", 1, firstKey, 413)
	reload := func(says string) {
		t.Helper()
		before := strings.Count(s.log.String(), "certificates were read again")
		s.signal(syscall.SIGHUP)
		s.log.waitFor(func(log string) bool { return strings.Count(log, "certificates were read again") > before })
		if !strings.Contains(s.log.String(), says) {
			t.Errorf("the log does not say %s:\n%s", says, s.log)
		}
	}
	write("max-body: 1MiB\nmax-bodi: 1\n")
	reload("settings stay as they were\" error=\"" + file + ":2:")
	check("after an error", 1, firstKey, 413)
	write("%smax-body: 1MiB\napi-key-file: %s\ntls-cert: %s\ntls-key: %s\n", common, "/nothing", cert, certKey)
	reload("open /nothing: no such file")
	check("without the file of keys", 1, firstKey, 413)
	write("%smax-body: 1MiB\napi-key-file: %s\ntls-cert: %s\ntls-key: %s\n", common, first, otherCert, certKey)
	reload("certificate " + otherCert)
	check("with another's key", 1, firstKey, 413)
	write("%s", common)
	reload(`setting=api-key-file old=` + first + ` new="" from=default`)
	check("without files", 1, firstKey, 200)
	write("%smax-body: 1MiB\napi-key-file: %s\ntls-cert: %s\ntls-key: %s\nmax-queue: 1\n", common, first, otherCert, otherKey)
	reload("setting=tls-key old=" + certKey + " new=" + otherKey)
	check("with another certificate", 2, firstKey, 200)
	if strings.Contains(s.log.String(), "setting=max-queue") {
		t.Error("the file goes before a flag")
	}
	write("%smax-body: 1KiB\napi-key-file: %s\ntls-cert: %s\ntls-key: %s\n", common, second, otherCert, otherKey)
	reload("setting=api-key-file old=" + first + " new=" + second)
	check("with other keys", 2, map[string]int{"first-key": 401, "second-key": 200}, 401)
	if log := s.log.String(); strings.Contains(log, "-key\"") || strings.Contains(log, "=first-key") || strings.Contains(log, "=second-key") {
		t.Errorf("the log has a key:\n%s", log)
	}
	s.signal(syscall.SIGTERM)
	if code := s.exit(); code != 0 {
		t.Errorf("exit code %d: %s", code, s.log)
	}
}
