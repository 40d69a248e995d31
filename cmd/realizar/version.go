package main

import (
	"cmp"
	"fmt"
	"io"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/realizar/realizar/internal/cpu"
)

// versionCommand is `realizar version`.
type versionCommand struct {
	Verbose bool `help:"Also show how the program was built and what it computes with on this machine."`
}

// Run writes the version.
func (c *versionCommand) Run(a *app) error {
	b := readBuild()
	text := b.line() + "\n"
	if c.Verbose {
		text = b.table(a.kernels)
	}
	_, err := io.WriteString(a.out, text)
	return err
}

// build is what the binary knows of its origin.
type build struct {
	version  string
	revision string // empty if not built from a repository
	time     string // of the revision
	modified bool   // the files differed from the revision
}

func readBuild() build {
	b := build{version: "(devel)"}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return b
	}
	if info.Main.Version != "" {
		b.version = info.Main.Version
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.revision = s.Value
		case "vcs.time":
			b.time = s.Value
		case "vcs.modified":
			b.modified = s.Value == "true"
		}
	}
	return b
}

// line returns the version, the revision, the Go version and the system.
func (b *build) line() string {
	revision := ""
	if b.revision != "" {
		revision = " " + b.revision[:min(12, len(b.revision))]
		if b.modified {
			revision += "+changes"
		}
	}
	return fmt.Sprintf("realizar %s%s %s %s", b.version, revision, runtime.Version(), system())
}

// table returns a line for each property that distinguishes builds and machines. kernels are the
// CPU kernels that the user selected, or "".
func (b *build) table(kernels string) string {
	revision := "unknown"
	if b.revision != "" {
		revision = b.revision
		if b.time != "" {
			revision += ", " + b.time
		}
		if b.modified {
			revision += ", with changes"
		}
	}
	t := newTable()
	t.row("version", b.version)
	t.row("revision", revision)
	t.row("go", runtime.Version())
	t.row("system", system())
	forced := ""
	if kernels != "" {
		forced = ", by " + kernelsVariable
	}
	t.row("cpu kernels", fmt.Sprintf("%s (of %s)%s", cmp.Or(kernels, cpu.New(0).Tier()), strings.Join(cpu.Tiers(), ", "), forced))
	t.row("cpu threads", fmt.Sprintf("%d (cores: %d)", cpu.Threads(0), cpu.Cores()))
	return t.text()
}

func system() string { return runtime.GOOS + "/" + runtime.GOARCH }
