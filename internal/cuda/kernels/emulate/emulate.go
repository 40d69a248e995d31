// Package emulate runs kernels without a GPU, for tests. It compiles a family of kernels for the
// host with clang, maps the memory of a driver of package drivertest, and runs the launches of that
// driver. Results are correct up to rounding, and the orders of sums are those of the kernels;
// times mean nothing. It emulates the kernels for all devices (sm_80) and those for Hopper, but for
// products of float8.
//
// A kernel that reads uninitialized shared memory or device memory gets NaN. Deadlocks, misaligned
// accesses and indices beyond arrays are errors. Every other launch runs its blocks and their
// threads in descending order, so that results that depend on an order differ. Exchanges among
// devices run in ascending order alone: a block waits for that of the same number on another device.
package emulate

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/binary"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/realizar/realizar/internal/cuda/driver"
	"github.com/realizar/realizar/internal/cuda/driver/drivertest"
)

// The host's versions of headers replace those of the kernels.
//
//go:embed *.cuh *.h
var headers embed.FS

// A GPU is an emulated device.
type GPU struct {
	t       testing.TB
	clang   string
	of      driver.Capability
	sources string // folder of the rewritten sources
	builds  string // folder of compiled programs
	arena   []byte
	file    *os.File
	texts   []byte // all headers, for digests
	kernels map[string][]kernel

	// Idle names a family whose launches do nothing, because a test needs no results of theirs.
	Idle string

	mu       sync.Mutex
	programs map[string]*program // by family and device
	launches int
	failed   bool
}

// A kernel is a kernel of a family, with the name of its argument structure.
type kernel struct{ name, arguments string }

// Open prepares a device of capability 8.0 for a test and its subtests. It skips the test if there is
// no clang-19. REALIZAR_EMULATED names a folder that keeps compiled kernels for later runs.
func Open(t testing.TB) *GPU { return OpenOf(t, driver.Capability{Major: 8}) }

// OpenOf is Open for a device of another capability.
func OpenOf(t testing.TB, of driver.Capability) *GPU {
	t.Helper()
	clang, err := exec.LookPath("clang-19")
	if err != nil {
		t.Skip("there is no clang-19")
	}
	g := &GPU{t: t, clang: clang, of: of, sources: t.TempDir(), builds: os.Getenv("REALIZAR_EMULATED"), programs: map[string]*program{}}
	if g.builds == "" {
		g.builds = t.TempDir()
	}
	if g.file, g.arena, err = newArena(); err != nil {
		t.Skipf("no memory that processes share: %v", err)
	}
	t.Cleanup(g.close)
	if err := g.write(); err != nil {
		t.Fatal(err)
	}
	return g
}

// Options returns the options of a driver that has the device, as often as devices says, and runs its
// launches.
func (g *GPU) Options(devices int) drivertest.Options {
	device := drivertest.Device{Name: "emulated", Memory: len(g.arena) / 4 / devices, Capability: g.of}
	return drivertest.Options{Devices: slices.Repeat([]drivertest.Device{device}, devices), Arena: g.arena, Run: g.run}
}

// PTX prefixes the text of a family with its name, which identifies the family in launches.
func (g *GPU) PTX(family string, text []byte) []byte {
	return append([]byte("// "+family+"\n"), text...)
}

func (g *GPU) close() {
	for _, p := range g.programs {
		_ = p.in.Close()
		_ = p.cmd.Wait()
	}
	_ = g.file.Close()
	freeArena(g.arena)
}

var extern = regexp.MustCompile(`extern __shared__ (\w+) (\w+)\[\];`)

// rewritten returns a source in the form that the host compiles.
func rewritten(text []byte) []byte {
	text = bytes.ReplaceAll(text, []byte(`extern "C" __global__`), []byte("static"))
	return extern.ReplaceAll(text, []byte("$1 *const $2 = reinterpret_cast<$1 *>(machine::here->shared);"))
}

// write writes the sources of all families and their headers.
func (g *GPU) write() error {
	const kernels = "github.com/realizar/realizar/internal/cuda/kernels"
	folder, err := exec.Command("go", "list", "-f", "{{.Dir}}", kernels).Output()
	if err != nil {
		return fmt.Errorf("emulate: the folder of %s: %w", kernels, err)
	}
	from := strings.TrimSpace(string(folder))
	gen := exec.Command("go", "run", "./gen", "-sources", g.sources)
	gen.Dir = from
	if out, err := gen.CombinedOutput(); err != nil {
		return fmt.Errorf("emulate: the sources: %w\n%s", err, out)
	}
	layouts, err := os.ReadFile(filepath.Join(from, "layouts.txt"))
	if err != nil {
		return err
	}
	g.kernels = map[string][]kernel{}
	for line := range strings.Lines(string(layouts)) {
		if words := strings.Fields(line); len(words) > 3 && words[0] == "kernels" {
			for _, name := range words[3:] {
				g.kernels[words[1]] = append(g.kernels[words[1]], kernel{name, words[2]})
			}
		}
	}
	texts := map[string][]byte{}
	read := func(folder fs.FS, pattern string, change func([]byte) []byte) error {
		names, err := fs.Glob(folder, pattern)
		for _, name := range names {
			text, readErr := fs.ReadFile(folder, name)
			if readErr != nil {
				return readErr
			}
			texts[name] = change(text)
		}
		return err
	}
	same := func(text []byte) []byte { return text }
	for _, r := range []struct {
		folder  fs.FS
		pattern string
		change  func([]byte) []byte
	}{{os.DirFS(from), "*.cuh", rewritten}, {os.DirFS(from), "*.h", same}, {os.DirFS(g.sources), "*.cc", rewritten}, {headers, "*.cuh", same}, {headers, "*.h", same}} {
		if err := read(r.folder, r.pattern, r.change); err != nil {
			return err
		}
	}
	var all []string
	for name, text := range texts {
		if err := os.WriteFile(filepath.Join(g.sources, name), text, 0o600); err != nil {
			return err
		}
		if !strings.HasSuffix(name, ".cc") {
			all = append(all, name+"\n"+string(text))
		}
	}
	slices.Sort(all)
	g.texts = []byte(strings.Join(all, ""))
	return nil
}

// A program runs the kernels of a family.
type program struct {
	cmd  *exec.Cmd
	in   io.WriteCloser
	out  io.Reader
	said bytes.Buffer
}

// program returns the running program of a family on a device.
func (g *GPU) program(family string, device int) (*program, error) {
	key := fmt.Sprint(family, " ", device)
	if p := g.programs[key]; p != nil {
		return p, nil
	}
	p := &program{}
	file, err := g.build(family)
	if err != nil {
		return nil, err
	}
	p.cmd = exec.Command(file, fmt.Sprint(addressOf(g.arena)), fmt.Sprint(len(g.arena)))
	p.cmd.ExtraFiles, p.cmd.Stderr = []*os.File{g.file}, &p.said
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	if p.out, err = p.cmd.StdoutPipe(); err != nil {
		return nil, err
	}
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	g.programs[key] = p
	return p, nil
}

// build compiles a family, unless its program exists.
func (g *GPU) build(family string) (string, error) {
	source, err := os.ReadFile(filepath.Join(g.sources, family+".cc"))
	if err != nil {
		return "", err
	}
	var text strings.Builder
	fmt.Fprintf(&text, "#include \"machine.h\"\nnamespace {\n%s\n}\nint main(int argc, char **argv) {\n  const machine::Kernel kernels[] = {\n", source)
	for _, k := range g.kernels[family] {
		fmt.Fprintf(&text, "    {\"%s %s\", [](const void *a) { machine::invoke<%s>(%[2]s, a); }},\n", family, k.name, k.arguments)
	}
	text.WriteString("  };\n  return machine::serve(argc, argv, kernels);\n}\n")
	options := []string{"-x", "c++", "-", "-I.", "-std=c++20", "-O1", "-march=native", "-ffp-contract=off", "-fno-exceptions", "-fno-pie", "-no-pie", "-w",
		"-fsanitize=alignment,bounds", "-fsanitize-trap=all", "-lm", fmt.Sprintf("-D__CUDA_ARCH__=%d", 100*g.of.Major+10*g.of.Minor)}
	sum := sha256.Sum256(slices.Concat(g.texts, []byte(text.String()), []byte(strings.Join(options, " "))))
	file := filepath.Join(g.builds, fmt.Sprintf("%s-%x", family, sum[:8]))
	if _, err := os.Stat(file); err == nil {
		return file, nil
	}
	cmd := exec.Command(g.clang, append(options, "-o", file+".new")...)
	cmd.Dir, cmd.Stdin = g.sources, strings.NewReader(text.String())
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("emulate: %s: %w\n%s", family, err, out)
	}
	return file, os.Rename(file+".new", file)
}

// run runs a launch. A kernel that fails fails the test; after that the device runs nothing.
func (g *GPU) run(l *drivertest.Launch, text string) {
	line, _, _ := strings.Cut(text, "\n")
	family := strings.TrimPrefix(line, "// ")
	if family == g.Idle {
		return
	}
	p, number, err := g.begin(family, l.Device)
	if err == nil && p != nil {
		err = g.launch(p, family, number, l)
	}
	if err != nil {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.failed = true
		g.t.Errorf("emulate: %v", err)
	}
}

// begin returns the program for a launch and the launch's number; no program after a failure.
func (g *GPU) begin(family string, device int) (*program, int, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.failed {
		return nil, 0, nil
	}
	g.launches++
	p, err := g.program(family, device)
	return p, g.launches, err
}

func (g *GPU) launch(p *program, family string, number int, l *drivertest.Launch) error {
	which := slices.IndexFunc(g.kernels[family], func(k kernel) bool { return k.name == l.Kernel })
	if which < 0 {
		return fmt.Errorf("layouts.txt has no kernel %s of %s: run go generate", l.Kernel, family)
	}
	descending := int32(number % 2)
	if family == "gather" || family == "reduce" {
		descending = 0
	}
	header := [10]int32{
		int32(which), int32(l.Grid.X), int32(max(1, l.Grid.Y)), int32(max(1, l.Grid.Z)),
		int32(l.Block.X), int32(l.Shared), descending, int32(len(l.Params)), int32(max(1, l.Cluster.X)), int32(max(1, l.Cluster.Y)),
	}
	var message bytes.Buffer
	if err := binary.Write(&message, binary.LittleEndian, header); err != nil {
		return err
	}
	message.Write(l.Params)
	_, err := p.in.Write(message.Bytes())
	if err == nil {
		_, err = io.ReadFull(p.out, make([]byte, 1))
	}
	if err != nil {
		err = fmt.Errorf("%s %s of %v blocks of %d threads: %w, %w\n%s", family, l.Kernel, l.Grid, l.Block.X, err, p.cmd.Wait(), p.said.Bytes())
	}
	return err
}
