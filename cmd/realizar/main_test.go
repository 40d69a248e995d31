package main_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/realizar/realizar/internal/cpu"
	"github.com/realizar/realizar/internal/cuda/driver"
	"github.com/realizar/realizar/internal/modeltest"
	"github.com/realizar/realizar/modelfile"
)

// binary is the path of the built command.
var binary string

func TestMain(m *testing.M) {
	code, err := buildAndRun(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func buildAndRun(m *testing.M) (int, error) {
	if err := os.Setenv("REALIZAR_HISTORY", "off"); err != nil {
		return 0, err
	}
	dir, err := os.MkdirTemp("", "realizar-test")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(dir) //nolint:errcheck // in the system's folder for temporary files
	binary = filepath.Join(dir, "realizar")
	if runtime.GOOS == "windows" {
		binary += ".exe"
	}
	args := []string{"build", "-o", binary}
	if _, err := driver.Open(); !errors.Is(err, driver.ErrNoDriver) {
		args = append(args, "-tags", "nocuda") // so that the tests are the same on every machine
	}
	build := exec.Command("go", append(args, ".")...)
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return 0, fmt.Errorf("go build: %w\n%s", err, out)
	}
	return m.Run(), nil
}

// A result is the output and the exit code of a command.
type result struct {
	stdout, stderr string
	code           int
}

// realizarIn runs the command with a standard input.
func realizarIn(t *testing.T, stdin string, args ...string) result {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), binary, args...)
	var stdout, stderr bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(stdin), &stdout, &stderr
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return result{stdout.String(), stderr.String(), cmd.ProcessState.ExitCode()}
}

func realizarRun(t *testing.T, args ...string) result {
	t.Helper()
	return realizarIn(t, "", args...)
}

// output runs a command that succeeds without output on standard error, and returns its standard
// output.
func output(t *testing.T, stdin string, args ...string) string {
	t.Helper()
	r := realizarIn(t, stdin, args...)
	if r.code != 0 || r.stderr != "" {
		t.Fatalf("realizar %q: exit code %d, standard error %q", args, r.code, r.stderr)
	}
	return r.stdout
}

// fails checks that a command ended with code, wrote nothing to standard output, and wrote parts to
// standard error after one prefix.
func fails(t *testing.T, r result, code int, parts ...string) {
	t.Helper()
	if r.code != code {
		t.Errorf("exit code %d, want %d; standard error %q", r.code, code, r.stderr)
	}
	if r.stdout != "" {
		t.Errorf("standard output %q, want none", r.stdout)
	}
	if !strings.HasPrefix(r.stderr, "realizar: ") || strings.Count(r.stderr, "realizar: ") != 1 || !strings.HasSuffix(r.stderr, "\n") {
		t.Errorf("standard error %q, want whole lines that begin with realizar: once", r.stderr)
	}
	for _, p := range parts {
		if !strings.Contains(r.stderr, p) {
			t.Errorf("standard error %q does not say %q", r.stderr, p)
		}
	}
}

func writeFile(t *testing.T, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestUsageErrors(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		args []string
		says string
	}{
		{[]string{"fly"}, "fly"},
		{[]string{"run", "m", "p", "q"}, "q"},
		{[]string{"run", "m", "--wings"}, "--wings"},
		{[]string{"run", "m", "p", "--threads", "many"}, `"many"`},
		{[]string{"run", "m", "p", "--threads=-1"}, "--threads=-1"},
		{[]string{"run", "m", "p", "--context=-1"}, "--context=-1"},
		{[]string{"run", "m", "p", "--device", "tpu"}, `"tpu"`},
		{[]string{"run", "m", "p", "--activations", "f16"}, `"f16"`},
		{[]string{"run", "m", "p", "--temperature=-0.5"}, "--temperature=-0.5"},
		{[]string{"run", "m", "p", "--temperature=nan"}, "--temperature=NaN"},
		{[]string{"run", "m", "p", "--top-k=-1"}, "--top-k=-1"},
		{[]string{"run", "m", "p", "--top-p=1.5"}, "--top-p=1.5"},
		{[]string{"run", "m", "p", "--min-p=1.5"}, "--min-p=1.5"},
		{[]string{"run", "m", "p", "--typical-p=-0.1"}, "--typical-p=-0.1"},
		{[]string{"run", "m", "p", "--repetition-penalty=-1"}, "--repetition-penalty=-1: want 0.01 to 100"},
		{[]string{"run", "m", "p", "--presence-penalty=101"}, "--presence-penalty=101: want -100 to 100"},
		{[]string{"run", "m", "p", "--frequency-penalty=nan"}, "--frequency-penalty=NaN"},
		{[]string{"run", "m", "p", "--logit-bias", "5"}, "--logit-bias"},
		{[]string{"run", "m", "p", "--logit-bias=-5=1"}, "--logit-bias -5=1: want the id of a token"},
		{[]string{"run", "m", "p", "--logit-bias", "5=nan"}, "--logit-bias 5=NaN"},
		{[]string{"run", "m", "p", "--logit-bias", "5=inf"}, "--logit-bias 5=+Inf"},
		{[]string{"run", "m", "p", "--min-tokens=-1"}, "--min-tokens=-1"},
		{[]string{"run", "m", "p", "--min-tokens=3", "--max-tokens=2"}, "--min-tokens=3"},
		{[]string{"run", "m", "p", "--n=0"}, "--n=0: want 1 to 1024"},
		{[]string{"run", "m", "p", "--profile="}, "--profile: the name is empty"},
		{[]string{"run", "m", "p", "--n=2", "--trace-timing"}, "--trace-timing supports one answer"},
		{[]string{"run", "m", "p", "--parallel=-1"}, "--parallel=-1"},
		{[]string{"run", "m", "p", "--memory=8X"}, `"8X" is not a size`},
		{[]string{"run", "m", "p", "--kv-host=-1"}, `"-1" is not a size`},
		{[]string{"run", "m", "p", "--gpu-memory=150%"}, `"150%" is not an amount of device memory`},
		{[]string{"serve", "m", "--stream-weights=perhaps"}, `"perhaps"`},
		{[]string{"run", "m", "p", "--kv-cache=f4"}, `"f4"`},
		{[]string{"bench", "m", "--kv-cache=f4"}, `"f4"`},
		{[]string{"inspect", "m", "--memory=lots"}, `"lots" is not a size`},
		{[]string{"run", "m", "p", "--seed=-1"}, "--seed"},
		{[]string{"run", "m", "p", "--max-tokens=-1"}, "--max-tokens=-1"},
		{[]string{"run", "m", "p", "--stop="}, "--stop"},
		{[]string{"run", "m", "p", "--raw", "--system", "s"}, "--system"},
		{[]string{"run", "m", "p", "--device", "cuda:x"}, "cuda"},
		{[]string{"inspect", "m", "--device", "tpu"}, `"tpu" is not in this build; use auto, cpu`},
		{[]string{"bench", "m", "--device", "tpu"}, `"tpu"`},
		{[]string{"doctor", "--device", "tpu"}, `"tpu"`},
		{[]string{"doctor", "--tune", "--device", "cpu"}, "--device=cpu is no GPU"},
		{[]string{"doctor", "model.gguf"}, "model.gguf: doctor takes a model only with --tune"},
		{[]string{"inspect", "m", "--parallel", "0"}, "--parallel=0"},
		{[]string{"inspect", "m", "--context=-1"}, "--context=-1"},
		{[]string{"serve", "m", "--port=65536"}, "--port=65536"},
		{[]string{"serve", "m", "--tls-cert=c"}, "--tls-key"},
		{[]string{"serve", "m", "--max-queue=-1"}, "--max-queue=-1"},
		{[]string{"serve", "m", "--max-body=0"}, "--max-body=0"},
		{[]string{"serve", "m", "--write-timeout=0s"}, "--write-timeout=0s"},
		{[]string{"serve", "m", "--drain-timeout=-1s"}, "--drain-timeout=-1s"},
		{[]string{"serve", "m", "--served-model-name="}, "--served-model-name"},
		{[]string{"serve", "m", "--log=xml"}, `"xml"`},
		{[]string{"serve", "m", "--cors=example.org"}, "--cors=example.org: want *"},
		{[]string{"serve", "m", "--context=-1"}, "--context=-1"},
		{[]string{"tokenize"}, "<model>"},
		{[]string{"tokenize", "m", "--decode", "--special"}, "--special"},
		{[]string{"template", "m"}, "--vars"},
		{[]string{"template", "m", "--vars", "v", "--now", "noon"}, "--now=noon"},
		{[]string{"logits", "m"}, "--ids"},
		{[]string{"logits", "m", "--ids", "-"}, "--out"},
		{[]string{"logits", "m", "--ids", "-", "--out", "o", "--threads=-1"}, "--threads=-1"},
		{[]string{"bench", "m", "-p", "-1"}, "-p"},
		{[]string{"bench", "m", "-p", "0", "-n", "0"}, "nothing to measure"},
		{[]string{"bench", "m", "-r", "0"}, "-r 0"},
		{[]string{"bench", "m", "--context=-1"}, "--context=-1"},
		{[]string{"bench", "model", "m", "-r", "0"}, "-r 0"},
		{[]string{"bench", "serve", "localhost"}, `"localhost" is not the address of a server`},
		{[]string{"bench", "serve", "http://h", "--concurrency=0"}, "--concurrency=0"},
		{[]string{"bench", "serve", "http://h", "--rate=-1"}, "--rate=-1"},
		{[]string{"bench", "serve", "http://h", "--requests=0"}, "--requests=0"},
		{[]string{"bench", "serve", "http://h", "--duration=-1s"}, "--duration=-1s"},
		{[]string{"bench", "serve", "http://h", "--timeout=-1s"}, "--timeout=-1s"},
		{[]string{"bench", "serve", "http://h", "--prompt-tokens=5:1"}, `"5:1" is not a distribution of lengths`},
		{[]string{"bench", "serve", "http://h", "--shared-prefix=-1"}, "--shared-prefix=-1"},
		{[]string{"bench", "serve", "http://h", "--prefixes=2"}, "add --shared-prefix"},
		{[]string{"bench", "serve", "http://h", "--fields=[]"}, "is not a JSON object"},
		{[]string{"bench", "serve", "http://h", "--fields={}{}"}, "is not one JSON object"},
		{[]string{"bench", "serve", "http://h", "--json="}, "--json"},
		{[]string{"bench", "serve", "http://h", "--endpoint=mail"}, `"mail"`},
		{[]string{"synth", "llama-3.2-1b", "Q4_0"}, "<out>"},
		{[]string{"synth", "gpt-9", "Q4_0", "o"}, "qwen2.5-0.5b, qwen3-0.6b, llama-3.2-1b"},
		{[]string{"synth", "llama-3.2-1b", "Q9", "o"}, "Q4_K_S, Q4_K_M, Q5_0"},
		{[]string{"synth", "llama-3.2-1b", "Q4_0", "o", "--seed=-1"}, "--seed"},
		{[]string{"version", "1"}, "1"},
		{[]string{"help", "fly"}, "fly"},
	} {
		t.Run(strings.Join(test.args, " "), func(t *testing.T) {
			fails(t, realizarRun(t, test.args...), 2, test.says, "--help")
		})
	}
}

// TestDeviceFlagsOfTheProcessor checks that flags for a GPU are usage errors if the model runs on
// the CPU.
func TestDeviceFlagsOfTheProcessor(t *testing.T) {
	model := modeltest.Llama(t)
	for _, args := range [][]string{{"run", model, "hi"}, {"inspect", model}, {"bench", model}} {
		fails(t, realizarRun(t, append(args, "--device", "cpu", "--gpu-memory", "8GiB")...), 2, "a limit of device memory", "on the CPU")
		fails(t, realizarRun(t, append(args, "--device", "cpu", "--stream-weights", "always")...), 2, "weights stream only to a GPU", "on the CPU")
	}
	if _, err := driver.Open(); !errors.Is(err, driver.ErrNoDriver) {
		t.Skip("there is a driver")
	}
	for _, args := range [][]string{{"run", model, "hi", "--max-tokens", "1"}, {"inspect", model}} {
		if r := realizarRun(t, append(args, "--gpu-memory", "50%")...); r.code != 0 || !strings.Contains(r.stderr, "on the CPU: cuda: no usable NVIDIA driver") {
			t.Errorf("without a device: %+v", r)
		}
	}
}

// TestNoDevice checks that a missing device is a failure and not a usage error.
func TestNoDevice(t *testing.T) {
	if _, err := driver.Open(); !errors.Is(err, driver.ErrNoDriver) {
		t.Skip("there is a driver")
	}
	model := modeltest.Llama(t)
	for _, args := range [][]string{
		{"run", model, "hi"}, {"inspect", model, "--plan"}, {"bench", model}, {"bench", model, "-p", "0", "--batch", "2"},
	} {
		fails(t, realizarRun(t, append(args, "--device", "cuda")...), 1, "the device cannot be used: cuda: no usable NVIDIA driver")
	}
	r := realizarRun(t, "doctor", "--device", "cuda")
	if r.code != 1 || !strings.HasPrefix(r.stdout, "cuda          driver     failed  no usable NVIDIA driver") || r.stderr != "realizar: a check failed\n" {
		t.Errorf("doctor: %+v", r)
	}
}

// TestWithoutCUDA checks that a build without CUDA does not contain CUDA's packages, nor the
// package that loads libraries.
func TestWithoutCUDA(t *testing.T) {
	cmd := exec.Command("go", "list", "-deps", "-tags", "nocuda", ".")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(out)) {
		if p := strings.TrimSpace(line); strings.Contains(p, "purego") || strings.HasSuffix(p, "internal/cuda") || strings.HasSuffix(p, "internal/cuda/kernels") {
			t.Errorf("the command depends on %s", p)
		}
	}
}

func TestNoArguments(t *testing.T) {
	r := realizarRun(t)
	if r.code != 2 || r.stdout != "" || strings.Count(r.stderr, "\n    realizar ") != 4 || !strings.Contains(r.stderr, "realizar --help") {
		t.Errorf("got %+v, want four commands on standard error and exit code 2", r)
	}
}

func TestHelp(t *testing.T) {
	all := output(t, "", "--help")
	if output(t, "", "help") != all {
		t.Error("help and --help differ")
	}
	for _, command := range []string{"run", "serve", "inspect", "tokenize", "template", "logits", "bench", "synth", "doctor", "version"} {
		if !strings.Contains(all, "\n  "+command+" ") {
			t.Errorf("--help does not name %s", command)
		}
		help := output(t, "", command, "--help")
		if output(t, "", "help", command) != help {
			t.Errorf("help %s and %s --help differ", command, command)
		}
		if command != "version" && !strings.Contains(help, "Examples:\n\n    ") {
			t.Errorf("%s --help has no examples:\n%s", command, help)
		}
	}
	for _, command := range []string{"run", "serve", "logits", "bench"} {
		help := output(t, "", command, "--help-all")
		for _, flag := range []string{"--activations", "--threads", "--device", "--context", "--parallel", "--kv-cache", "--memory", "--kv-host", "--gpu-memory", "--stream-weights"} {
			if !strings.Contains(help, flag) {
				t.Errorf("%s --help-all does not name %s", command, flag)
			}
		}
	}
}

func TestVersion(t *testing.T) {
	got := output(t, "", "version")
	for _, flag := range []string{"--version", "-V"} {
		if again := output(t, "", flag); again != got {
			t.Errorf("%s says %q, version says %q", flag, again, got)
		}
	}
	for _, part := range []string{"realizar ", runtime.Version(), runtime.GOOS + "/" + runtime.GOARCH} {
		if !strings.Contains(got, part) {
			t.Errorf("version is %q, without %q", got, part)
		}
	}
	if strings.Count(got, "\n") != 1 {
		t.Errorf("version is %q, want one line", got)
	}
}

func TestVersionVerbose(t *testing.T) {
	got := output(t, "", "version", "--verbose")
	table := map[string]string{}
	for line := range strings.Lines(got) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), "  ")
		table[name] = strings.TrimSpace(value)
	}
	for name, want := range map[string]string{
		"go": runtime.Version(), "system": runtime.GOOS + "/" + runtime.GOARCH,
		"cpu kernels": fmt.Sprintf("%s (of %s)", cpu.New(0).Tier(), strings.Join(cpu.Tiers(), ", ")),
		"cpu threads": fmt.Sprintf("%d (cores: %d)", cpu.Threads(0), cpu.Cores()),
	} {
		if table[name] != want {
			t.Errorf("%s is %q, want %q, in:\n%s", name, table[name], want, got)
		}
	}
	if table["version"] == "" || table["revision"] == "" {
		t.Errorf("no version or no revision in:\n%s", got)
	}
}

// TestKernelsOfTheEnvironment checks that the environment selects the kernels, and that an invalid
// value stops every command.
func TestKernelsOfTheEnvironment(t *testing.T) {
	t.Setenv("REALIZAR_CPU", "generic")
	want := fmt.Sprintf("generic (of %s), by REALIZAR_CPU\n", strings.Join(cpu.Tiers(), ", "))
	if got := output(t, "", "version", "--verbose"); !strings.Contains(got, want) {
		t.Errorf("version is %q, without %q", got, want)
	}
	t.Setenv("REALIZAR_CPU", "abacus")
	for _, args := range [][]string{{"version"}, {"bench", "m"}, {"run", "m", "hi"}} {
		fails(t, realizarRun(t, args...), 2, "REALIZAR_CPU=abacus", strings.Join(cpu.Tiers(), ", "), "realizar "+args[0]+" --help")
	}
	if help := output(t, "", "--help"); !strings.Contains(help, "Usage:") {
		t.Errorf("--help is %q", help)
	}
}

func TestNoModel(t *testing.T) {
	text := writeFile(t, "notes.txt", "not a model at all")
	for _, args := range [][]string{
		{"run", "MODEL", "hi"}, {"inspect", "MODEL"}, {"tokenize", "MODEL"}, {"bench", "MODEL"},
	} {
		for _, path := range []string{text, filepath.Join(t.TempDir(), "absent.gguf"), t.TempDir()} {
			args := append([]string{}, args...)
			args[1] = path
			fails(t, realizarRun(t, args...), 1, filepath.Base(path))
		}
	}
}

// TestModelToDownload checks that if a model or one of its files is missing, the error says that it
// must be downloaded.
func TestModelToDownload(t *testing.T) {
	part := filepath.Join(t.TempDir(), "m-00001-of-00002.gguf")
	f, err := os.Create(part)
	if err != nil {
		t.Fatal(err)
	}
	err = modelfile.WriteGGUF(f, []modelfile.KeyValue{
		{Key: "split.no", Value: uint16(0)}, {Key: "split.count", Value: uint16(2)}, {Key: "split.tensors.count", Value: int32(0)},
	}, nil)
	if err := errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
	for path, parts := range map[string][]string{
		"https://host/model.gguf": {"https://host/model.gguf", "a file without a digest is not trusted"},
		"org-that-is-no-folder/m": {"org-that-is-no-folder/m", "is not on this machine; realizar pull hf:org-that-is-no-folder/m fetches it"},
		part:                      {filepath.Dir(part), "download part 2 of 2, m-00002-of-00002.gguf, into the same folder"},
	} {
		for _, command := range []string{"run", "inspect", "bench"} {
			fails(t, realizarRun(t, command, path), 1, parts...)
		}
	}
}
