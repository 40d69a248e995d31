package realizar_test

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
)

const module = "github.com/realizar/realizar"

// floors are the layers of packages, lowest first. A package imports only from lower floors, and
// packages on one floor do not import each other. "." is the root package.
var floors = []string{
	"internal/budget internal/bytesize internal/longtest internal/machine internal/nearest internal/rx internal/server/fields internal/server/jsontext internal/server/page internal/server/promtext internal/settings internal/fetch internal/names internal/pull/hubtest internal/kvtransfer internal/zmtp internal/zmtp/zmtptest",
	"internal/jinja tensor tokenizer internal/rx/pattern internal/grammar internal/sample internal/cuda/driver internal/cuda/kernels internal/load internal/pool internal/server/fields/fieldstest internal/store",
	"chat modelfile internal/grammar/ebnf internal/grammar/jsonschema internal/eval internal/plan internal/random internal/watch internal/cuda/driver/drivertest internal/cuda/device internal/pull",
	"internal/grammar/gbnf internal/grammar/lark internal/grammar/tags internal/turn internal/fuse internal/cuda/kernels/emulate internal/cuda/weights internal/synth internal/push",
	"internal/cuda/lower internal/cuda/kernels/gen",
	"internal/cuda/measure",
	"demo internal/arch internal/backends/backendstest internal/check internal/cpu internal/cuda internal/engine internal/mesh internal/modeltest internal/plan/plantest internal/synth/synthtest",
	"internal/draft internal/backends internal/hub",
	"internal/describe internal/memory",
	". cuda",
	"internal/kvevents internal/kvevents/kveventstest internal/server",
	"internal/manage internal/server/anthropic internal/server/ollama internal/server/openai internal/server/servertest",
	"internal/server/llamacpp internal/server/vllm",
	"internal/server/dialects",
	"cmd/realizar deploy train/export",
}

func TestFloors(t *testing.T) {
	floor := map[string]int{}
	for i, packages := range floors {
		for _, p := range strings.Fields(packages) {
			floor[strings.TrimSuffix(module+"/"+p, "/.")] = i
		}
	}
	// Build constraints make the imports of a package depend on the system.
	for _, arch := range []string{"amd64", "arm64"} {
		t.Run(arch, func(t *testing.T) {
			for _, p := range listPackages(t, arch) {
				for _, fault := range floorFaults(floor, p) {
					t.Error(fault)
				}
			}
		})
	}
}

type listed struct {
	path, dir            string
	imports, testImports []string
}

// floorFaults returns the faults of a package's imports. Tests in the package may also import
// others of the same floor. Tests in a package NAME_test may import anything.
func floorFaults(floor map[string]int, p listed) []string {
	own, ok := floor[p.path]
	if !ok {
		return []string{fmt.Sprintf("%s is on no floor: give it a place in floors_test.go", p.path)}
	}
	var faults []string
	for _, to := range p.imports {
		if at, ours := floor[to]; ours && at >= own {
			faults = append(faults, fmt.Sprintf("%s (floor %d) imports %s (floor %d): it may import only from below", p.path, own, to, at))
		}
	}
	for _, to := range p.testImports {
		if at, ours := floor[to]; ours && at > own {
			faults = append(faults, fmt.Sprintf("a test in %s (floor %d) imports %s (floor %d): move it to package %s_test", p.path, own, to, at, p.path[strings.LastIndex(p.path, "/")+1:]))
		}
	}
	return faults
}

func listPackages(t *testing.T, arch string) []listed {
	t.Helper()
	const format = `{{.ImportPath}}|{{.Dir}}|{{join .Imports " "}}|{{join .TestImports " "}}`
	cmd := exec.Command("go", "list", "-f", format, "./...")
	cmd.Env = append(os.Environ(), "GOOS=linux", "GOARCH="+arch, "CGO_ENABLED=0")
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v\n%s", err, &stderr)
	}
	var packages []listed
	for line := range strings.Lines(string(out)) {
		f := strings.Split(strings.TrimSpace(line), "|")
		p := listed{f[0], f[1], strings.Fields(f[2]), strings.Fields(f[3])}
		packages = append(packages, p)
		// go test caches this result by the files that the test opened. It does not see the files
		// that go list reads.
		if _, err := os.ReadDir(p.dir); err != nil {
			t.Fatal(err)
		}
	}
	return packages
}

func TestFloorFaults(t *testing.T) {
	floor := map[string]int{"m/a": 0, "m/b": 0, "m/c": 1}
	for _, test := range []struct {
		p    listed
		want string // part of the only fault; empty: no fault
	}{
		{listed{path: "m/a", imports: []string{"fmt", "example.com/x"}}, ""},
		{listed{path: "m/c", imports: []string{"m/a", "m/b"}, testImports: []string{"m/a", "m/c"}}, ""},
		{listed{path: "m/a", imports: []string{"m/b"}}, "m/a (floor 0) imports m/b (floor 0)"},
		{listed{path: "m/a", imports: []string{"m/c"}}, "m/a (floor 0) imports m/c (floor 1)"},
		{listed{path: "m/a", testImports: []string{"m/b"}}, ""},
		{listed{path: "m/a", testImports: []string{"m/c"}}, "move it to package a_test"},
		{listed{path: "m/d", imports: []string{"m/c"}}, "m/d is on no floor"},
	} {
		faults := floorFaults(floor, test.p)
		if test.want == "" && len(faults) != 0 || test.want != "" && (len(faults) != 1 || !strings.Contains(faults[0], test.want)) {
			t.Errorf("%+v: %q, want %q", test.p, faults, test.want)
		}
	}
}
